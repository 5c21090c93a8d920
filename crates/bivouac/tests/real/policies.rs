// SPDX-License-Identifier: Apache-2.0
//! The admission policies as the chart installs them, on a real API server: who may change a Workspace, what is
//! protected, and the member labels.

use std::collections::BTreeMap;

use bivouac_api::tenant::Workspace;
use bivouac_testenv::TestCluster;
use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client, ResourceExt};
use serde_json::{Value, json};

use crate::install;
use crate::operator::{Operator, eventually, ready_workspace};

const DENIED: &str = "only users with the 'admin' role";
const PROTECTED: &str = "this object is protected: remove the annotation bivouac.dev/deletion-protection";
const PROTECTION: &str = "bivouac.dev/deletion-protection";

fn workspace(name: &str, members: Value) -> Workspace {
    let json = json!({
        "apiVersion": "tenant.otterscale.io/v1alpha1", "kind": "Workspace", "metadata": {"name": name},
        "spec": {"namespace": name, "members": members},
    });
    serde_json::from_value(json).unwrap()
}

fn crew() -> Value {
    json!([
        {"role": "admin", "subject": "ada"},
        {"role": "admin", "subject": "pilots", "kind": "Group"},
        {"role": "admin", "subject": "system:serviceaccount:default:robot", "kind": "ServiceAccount"},
        {"role": "edit", "subject": "eve"},
        {"role": "edit", "subject": "loaders", "kind": "Group"},
        {"role": "view", "subject": "vic@example.com"},
    ])
}

/// A cluster with both charts where RBAC lets everybody write Workspaces: the policies alone decide.
async fn open_cluster() -> (TestCluster, bivouac_testenv::Identity) {
    let cluster = install::cluster().await;
    let account = install::install(&cluster, &["tenancy.openToAuthenticated=true"]).await;
    let stranger = cluster.client_as("stranger", &[]).await.unwrap();
    let probe = PostParams { dry_run: true, ..PostParams::default() };
    let strangers = Api::<Workspace>::all(stranger.client.clone());
    eventually("the membership policy is active", 60, async || {
        let made = strangers.create(&probe, &workspace("probe", json!([{"role": "admin", "subject": "ada"}]))).await;
        made.is_err_and(|error| error.to_string().contains(DENIED)).then_some(())
    })
    .await;
    let all = Api::<Workspace>::all(cluster.client());
    eventually("the label policy is active", 60, async || {
        let made = all.create(&probe, &workspace("probe", json!([{"role": "admin", "subject": "ada"}]))).await;
        made.unwrap().labels().contains_key("user.otterscale.io/ada").then_some(())
    })
    .await;
    (cluster, account)
}

/// What comes of trying to change and to delete, without doing it.
async fn try_both(client: Client, name: &str) -> [Result<(), String>; 2] {
    let api = Api::<Workspace>::all(client);
    let note = json!({"metadata": {"annotations": {"note": "changed"}}});
    let changed = api.patch(name, &PatchParams { dry_run: true, ..PatchParams::default() }, &Patch::Merge(note)).await;
    let deleted = api.delete(name, &DeleteParams { dry_run: true, ..DeleteParams::default() }).await;
    [changed.map(drop).map_err(|error| error.to_string()), deleted.map(drop).map_err(|error| error.to_string())]
}

#[tokio::test]
async fn only_admins_change_a_workspace() {
    let (cluster, account) = open_cluster().await;
    let admin = cluster.client();
    Api::<Workspace>::all(admin.clone()).create(&PostParams::default(), &workspace("crew", crew())).await.unwrap();
    let boss = ["create", "clusterrolebinding", "boss", "--clusterrole=cluster-admin", "--user=boss"];
    install::succeeds(cluster.kubectl(&boss).await.unwrap());
    let lead = ["create", "clusterrolebinding", "lead", "--clusterrole=bivouac-workspace-admin", "--user=lead"];
    install::succeeds(cluster.kubectl(&lead).await.unwrap());

    let refused: [(&str, &[&str]); 5] =
        [("mallory", &[]), ("eve", &[]), ("gus", &["loaders"]), ("vic@example.com", &[]), ("pilots", &[])];
    for (user, groups) in refused {
        let who = cluster.client_as(user, groups).await.unwrap();
        for tried in try_both(who.client.clone(), "crew").await {
            let why = tried.expect_err(user);
            assert!(why.contains(DENIED) && why.contains(&format!("{user} is not one of them")), "{user}: {why}");
        }
    }
    let allowed: [(&str, &[&str]); 5] = [
        ("ada", &[]),
        ("gus", &["pilots"]),
        ("system:serviceaccount:default:robot", &[]),
        ("boss", &[]),
        ("lead", &[]),
    ];
    for (user, groups) in allowed {
        let who = cluster.client_as(user, groups).await.unwrap();
        assert_eq!(try_both(who.client.clone(), "crew").await, [Ok(()), Ok(())], "{user}");
    }
    assert_eq!(try_both(admin.clone(), "crew").await, [Ok(()), Ok(())]);
    // The operator labels, whoever the members are.
    let [changed, _] = try_both(account.client.clone(), "crew").await;
    assert_eq!(changed, Ok(()));

    nobody_promotes_themselves(&cluster).await;
    nothing_is_odd_about_the_expressions(&admin).await;
    foreground_deletion_ends(&cluster).await;
}

async fn nobody_promotes_themselves(cluster: &TestCluster) {
    let eve = cluster.client_as("eve", &[]).await.unwrap();
    let api = Api::<Workspace>::all(eve.client.clone());
    let promoted = json!({"spec": {"members": [{"role": "admin", "subject": "eve"}]}});
    let error = api.patch("crew", &PatchParams::default(), &Patch::Merge(promoted)).await.unwrap_err().to_string();
    assert!(error.contains(DENIED), "{error}");
    let for_others =
        workspace("others", json!([{"role": "admin", "subject": "ada"}, {"role": "edit", "subject": "eve"}]));
    let error = api.create(&PostParams::default(), &for_others).await.unwrap_err().to_string();
    assert!(error.contains(DENIED), "{error}");
    let own = workspace("own", json!([{"role": "admin", "subject": "eve"}]));
    api.create(&PostParams::default(), &own).await.unwrap();
    api.delete("own", &DeleteParams::default()).await.unwrap();
}

/// The server type-checks every expression against the real schemas.
async fn nothing_is_odd_about_the_expressions(admin: &Client) {
    let policies = Api::<ValidatingAdmissionPolicy>::all(admin.clone());
    let checked = eventually("the policies are type-checked", 60, async || {
        let all = policies.list(&ListParams::default()).await.unwrap().items;
        let all: Option<Vec<_>> =
            all.into_iter().map(|policy| policy.status.and_then(|status| status.type_checking)).collect();
        all.filter(|all| !all.is_empty())
    })
    .await;
    for one in checked {
        assert_eq!(one.expression_warnings.unwrap_or_default(), []);
    }
}

/// The garbage collector takes its finalizer off the Workspace: a change by somebody who is no member.
async fn foreground_deletion_ends(cluster: &TestCluster) {
    let api = Api::<Workspace>::all(cluster.client());
    api.delete("crew", &DeleteParams::foreground()).await.unwrap();
    eventually("foreground deletion ends", 30, async || api.get_opt("crew").await.unwrap().is_none().then_some(()))
        .await;
}

#[tokio::test]
async fn protection_holds_for_the_workspace_and_its_namespace() {
    let (cluster, account) = open_cluster().await;
    let client = cluster.client();
    let workspaces = Api::<Workspace>::all(client.clone());
    let namespaces = Api::<Namespace>::all(client.clone());
    let mut operator = Operator::start(account.kubeconfig(), install::NAMESPACE, "bivouac-0");
    operator.ready().await;

    let mut vault = workspace("vault", crew());
    vault.annotations_mut().insert(PROTECTION.to_owned(), "true".to_owned());
    workspaces.create(&PostParams::default(), &vault).await.unwrap();
    ready_workspace(&client, "vault").await;
    let error = workspaces.delete("vault", &DeleteParams::default()).await.unwrap_err().to_string();
    assert!(error.contains(PROTECTED), "{error}");
    let error = namespaces.delete("vault", &DeleteParams::default()).await.unwrap_err().to_string();
    assert!(error.contains(PROTECTED), "{error}");
    let everything = workspaces.delete_collection(&DeleteParams::default(), &ListParams::default()).await;
    assert!(everything.unwrap_err().to_string().contains(PROTECTED));

    // The operator is away, so the namespace keeps its annotation: the end of the Workspace is the end of it all the same.
    operator.terminate();
    operator.ended(20).await;
    let unprotected = json!({"metadata": {"annotations": {PROTECTION: null}}});
    workspaces.patch("vault", &PatchParams::default(), &Patch::Merge(unprotected)).await.unwrap();
    workspaces.delete("vault", &DeleteParams::default()).await.unwrap();
    eventually("the namespace goes with its Workspace", 60, async || {
        namespaces.get_opt("vault").await.unwrap().is_none().then_some(())
    })
    .await;
}

fn member_labels(workspace: &Workspace) -> BTreeMap<String, String> {
    let ours = workspace.labels().iter().filter(|(key, _)| key.starts_with("user.otterscale.io/"));
    ours.map(|(key, value)| (key.trim_start_matches("user.otterscale.io/").to_owned(), value.clone())).collect()
}

fn labels(names: &[&str]) -> BTreeMap<String, String> {
    names.iter().map(|name| ((*name).to_owned(), "true".to_owned())).collect()
}

/// No operator runs here: the server keeps the labels alone.
#[tokio::test]
async fn labels_mirror_the_members() {
    let (cluster, _) = open_cluster().await;
    let api = Api::<Workspace>::all(cluster.client());
    let made = api.create(&PostParams::default(), &workspace("crew", crew())).await.unwrap();
    assert_eq!(member_labels(&made), labels(&["ada", "pilots", "eve", "loaders"]));

    let labelled = json!({
        "metadata": {"labels": {"team": "moon", "user.otterscale.io/hash-0123abcd": "true", "user.otterscale.io/mallory": "true",
            "user.otterscale.io/ada": "no"}},
        "spec": {"members": [
            {"role": "admin", "subject": "ada"}, {"role": "edit", "subject": "ada"}, {"role": "view", "subject": "New.One_2"}]},
    });
    let changed = api.patch("crew", &PatchParams::default(), &Patch::Merge(labelled)).await.unwrap();
    assert_eq!(member_labels(&changed), labels(&["ada", "New.One_2", "hash-0123abcd"]));
    assert_eq!(changed.labels()["team"], "moon");

    let erased = json!({"metadata": {"labels": null}});
    let changed = api.patch("crew", &PatchParams::default(), &Patch::Merge(erased)).await.unwrap();
    assert_eq!(member_labels(&changed), labels(&["ada", "New.One_2"]));

    // Nobody whose name fits a label: no labels, no error.
    let mut odd = workspace("odd", json!([{"role": "admin", "subject": "carol@example.com"}]));
    odd.labels_mut().insert("user.otterscale.io/hash-ffff".to_owned(), "true".to_owned());
    let odd = api.create(&PostParams::default(), &odd).await.unwrap();
    assert_eq!(member_labels(&odd), labels(&["hash-ffff"]));
    let bare = api
        .create(&PostParams::default(), &workspace("bare", json!([{"role": "admin", "subject": "x@y"}])))
        .await
        .unwrap();
    assert_eq!(member_labels(&bare), labels(&[]));
    // Long names fill a label key to its last character.
    let long = "l".repeat(63);
    let made = api
        .create(&PostParams::default(), &workspace("long", json!([{"role": "admin", "subject": long}])))
        .await
        .unwrap();
    assert_eq!(member_labels(&made), labels(&[&long]));

    // Who forgets the members hears it from the schema.
    let raw = json!({"apiVersion": "tenant.otterscale.io/v1alpha1", "kind": "Workspace", "metadata": {"name": "nobody"}, "spec": {}});
    let resource = kube::core::ApiResource::erase::<Workspace>(&());
    let api = Api::<kube::core::DynamicObject>::all_with(cluster.client(), &resource);
    let nobody = serde_json::from_value(raw).unwrap();
    let refused = api.create(&PostParams::default(), &nobody).await.unwrap_err().to_string();
    assert!(refused.contains("spec.members: Required value"), "{refused}");
}
