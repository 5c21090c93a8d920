// SPDX-License-Identifier: Apache-2.0
//! One MiniCluster, watched to its end: what it waits for, what its lead broker writes, and its exit code.

use std::{pin::Pin, time::Duration};

use anyhow::{Result, bail};
use bivouac_api::flux::MiniCluster;
use futures::{Stream, StreamExt};
use k8s_openapi::api::core::v1::Pod;
use kube::{
    ResourceExt,
    runtime::{WatchStreamExt, watcher},
};

use super::{
    access::Place,
    list::condition,
    output::{self, has_begun, status},
};

/// A controller that runs has looked at a new object by then.
const UNSEEN: Duration = Duration::from_secs(10);
/// How long the output may lag behind the word that all is over.
const DRAIN: Duration = Duration::from_secs(10);
/// How long a lead broker that ended may take to be told as the end of all.
const VERDICT: Duration = Duration::from_secs(30);
/// Kubernetes' own label for the rank of a pod.
pub const RANK: &str = "batch.kubernetes.io/job-completion-index";

type Watched<T> = Pin<Box<dyn Stream<Item = Result<T, watcher::Error>> + Send>>;

/// Shows the output of the lead broker if `show` says so. Gives the exit code of the work.
pub async fn to_the_end(place: &Place, name: &str, show: bool) -> Result<i32> {
    let mut sight = Sight::new(place, name, 0);
    let mut shown = None;
    let mut told = None;
    loop {
        let fresh = |sight: &Sight<'_>| sight.begun().filter(|uid| show && Some(uid) != shown.as_ref());
        let is_news = |sight: &Sight<'_>| sight.over().is_some() || fresh(sight).is_some();
        match told {
            None => sight.until(is_news).await?,
            // The lead decides for all, unless another one takes its place. The controller's word is better, if it comes.
            // What it says of the start until then is old.
            Some(code) => match tokio::time::timeout(VERDICT, sight.look_until(is_news)).await {
                Ok(news) => news?,
                Err(_) if sight.lead.as_ref().and_then(ResourceExt::uid) == shown => return Ok(code),
                Err(_) => told = None,
            },
        }
        if let Some(uid) = fresh(&sight) {
            let pod = sight.lead_name();
            told = sight.beside(output::follow(place, &pod, name), &uid).await?;
            shown = Some(uid);
        } else if let Some(over) = sight.over() {
            if let Some(sentence) = over.trouble {
                eprintln!("{name}: {sentence}");
            }
            let code = over.exit_code.or(told).unwrap_or_default();
            // A failure that was not the lead's, such as a deadline, is one all the same.
            return Ok(if over.failed && code == 0 { 1 } else { code });
        }
    }
}

/// Waits for a pod of this rank whose container has begun, and gives its name.
pub async fn begun(place: &Place, name: &str, rank: u32) -> Result<String> {
    let mut sight = Sight::new(place, name, rank);
    sight.until(|sight| sight.begun().is_some() || sight.over().is_some()).await?;
    if sight.begun().is_none() {
        bail!("{name} is over, and no pod of rank {rank} is left");
    }
    Ok(sight.lead_name())
}

/// How it ended.
struct Over {
    failed: bool,
    exit_code: Option<i32>,
    trouble: Option<String>,
}

/// What is seen of the MiniCluster and of one of its pods.
struct Sight<'a> {
    place: &'a Place,
    name: String,
    object: Option<MiniCluster>,
    lead: Option<Pod>,
    /// All pods that were there at first have been seen.
    is_whole: bool,
    objects: Watched<Option<MiniCluster>>,
    pods: Watched<watcher::Event<Pod>>,
    said: String,
}

impl<'a> Sight<'a> {
    fn new(place: &'a Place, name: &str, rank: u32) -> Self {
        let config = watcher::Config::default().labels(&format!("job-name={name},{RANK}={rank}"));
        Self {
            place,
            name: name.to_owned(),
            object: None,
            lead: None,
            is_whole: false,
            objects: watcher::watch_object(place.miniclusters(), name).default_backoff().boxed(),
            pods: watcher::watcher(place.pods(), config).default_backoff().boxed(),
            said: String::new(),
        }
    }

    /// Looks until it is so, and tells what it waits for meanwhile.
    async fn until(&mut self, is_so: impl Fn(&Self) -> bool) -> Result<()> {
        while !is_so(self) {
            self.tell();
            self.look().await?;
        }
        Ok(())
    }

    /// Looks until it is so.
    async fn look_until(&mut self, is_so: impl Fn(&Self) -> bool) -> Result<()> {
        while !is_so(self) {
            self.look().await?;
        }
        Ok(())
    }

    /// Lets a copy of the output run until it ends, its pod is another one, or all is over and it had its time.
    async fn beside(&mut self, copy: impl Future<Output = Result<Option<i32>>>, uid: &str) -> Result<Option<i32>> {
        let mut copy = std::pin::pin!(copy);
        loop {
            tokio::select! {
                done = &mut copy => return done,
                looked = self.look() => looked?,
            }
            if self.over().is_some() || self.begun().is_some_and(|now| now != uid) {
                return tokio::time::timeout(DRAIN, copy).await.unwrap_or(Ok(None));
            }
        }
    }

    /// Waits for something new.
    async fn look(&mut self) -> Result<()> {
        tokio::select! {
            object = self.objects.next() => match object {
                Some(Ok(Some(object))) => self.object = Some(object),
                Some(Ok(None)) if self.object.is_some() => bail!("{} was deleted", self.name),
                Some(Ok(None)) => {
                    // The usual sentence for what is not there.
                    self.place.get(&self.name).await?;
                }
                Some(Err(error)) => self.bear(error)?,
                None => bail!("the API server tells no more"),
            },
            event = self.pods.next() => match event {
                Some(Ok(watcher::Event::Apply(pod) | watcher::Event::InitApply(pod))) => self.take(pod),
                Some(Ok(watcher::Event::InitDone)) => self.is_whole = true,
                Some(Ok(_)) => {}
                Some(Err(error)) => self.bear(error)?,
                None => bail!("the API server tells no more"),
            },
            () = tokio::time::sleep(UNSEEN) => {
                if self.object.as_ref().is_some_and(|object| object.status.is_none()) {
                    self.say("no controller has looked at it yet; does `bivouac operator` run for this cluster?".to_owned());
                }
            }
        }
        Ok(())
    }

    /// The newest pod of the rank counts.
    fn take(&mut self, pod: Pod) {
        let newer = |one: &Pod| one.creation_timestamp() <= pod.creation_timestamp();
        if self.lead.as_ref().is_none_or(newer) {
            self.lead = Some(pod);
        }
    }

    /// The watch goes on by itself; only what will not change by waiting is an end.
    fn bear(&mut self, error: watcher::Error) -> Result<()> {
        use watcher::Error::{InitialListFailed, WatchFailed, WatchStartFailed};
        match error {
            InitialListFailed(error) | WatchStartFailed(error) | WatchFailed(error) => match &error {
                kube::Error::Api(status) if [401, 403, 404].contains(&status.code) => {
                    return Err(self.place.explain(&error));
                }
                _ => self.say("the API server does not answer; trying on".to_owned()),
            },
            _ => {}
        }
        Ok(())
    }

    fn lead_name(&self) -> String {
        self.lead.as_ref().map(ResourceExt::name_any).unwrap_or_default()
    }

    /// The uid of the pod, once its container has begun.
    fn begun(&self) -> Option<String> {
        let lead = self.lead.as_ref()?;
        status(lead, &self.name).filter(|one| has_begun(one))?;
        lead.uid()
    }

    /// Only once its pods are known: they may have something to show.
    fn over(&self) -> Option<Over> {
        let object = self.object.as_ref().filter(|_| self.is_whole)?;
        let holds = |type_: &str| condition(object, type_).filter(|one| one.status == "True");
        let failed = holds("Failed");
        if failed.is_none() && holds("JobFinished").is_none() {
            return None;
        }
        let exit_code = object.status.as_ref().and_then(|status| status.exit_code);
        Some(Over { failed: failed.is_some(), exit_code, trouble: failed.map(|one| one.message.clone()) })
    }

    /// What it waits for, in the words of who knows it best.
    fn tell(&mut self) {
        let Some(object) = &self.object else { return };
        let Some(ready) = condition(object, "Ready") else { return };
        let pod = self.lead.as_ref().and_then(obstacle);
        let text = match pod {
            Some(pod) if ready.reason == "BrokersStarting" => format!("{}; {pod}", ready.message),
            _ => ready.message.clone(),
        };
        self.say(text);
    }

    /// Nothing is said twice.
    fn say(&mut self, text: String) {
        if text != self.said {
            eprintln!("{}: {text}", self.name);
            self.said = text;
        }
    }
}

/// What keeps a pod from starting, if something does.
fn obstacle(pod: &Pod) -> Option<String> {
    let status = pod.status.as_ref()?;
    let conditions = status.conditions.iter().flatten();
    let unplaced = conditions.filter(|one| one.type_ == "PodScheduled" && one.status == "False");
    let unplaced = unplaced.filter_map(|one| one.message.as_deref()).next();
    let containers = status.init_container_statuses.iter().chain(&status.container_statuses).flatten();
    let stuck = containers.filter_map(|one| one.state.as_ref()?.waiting.as_ref()).find_map(|waiting| {
        let reason =
            waiting.reason.as_deref().filter(|reason| !["PodInitializing", "ContainerCreating"].contains(reason))?;
        Some(format!("{reason}: {}", waiting.message.as_deref().unwrap_or_default()))
    });
    let why = unplaced.map(str::to_owned).or(stuck)?;
    Some(format!("pod {}: {}", pod.name_any(), why.trim_end_matches([':', ' '])))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn told(status: serde_json::Value) -> Option<String> {
        obstacle(&serde_json::from_value(json!({"metadata": {"name": "a-0-x"}, "status": status})).unwrap())
    }

    #[test]
    fn a_pod_says_what_keeps_it() {
        let unplaced = json!({"type": "PodScheduled", "status": "False", "message": "0/3 nodes are available"});
        assert_eq!(told(json!({"conditions": [unplaced]})).as_deref(), Some("pod a-0-x: 0/3 nodes are available"));
        let waits = |reason: &str| {
            let waiting = json!({"waiting": {"reason": reason, "message": "no such image"}});
            let container =
                json!({"name": "a", "image": "", "imageID": "", "ready": false, "restartCount": 0, "state": waiting});
            told(json!({"containerStatuses": [container]}))
        };
        assert_eq!(waits("ImagePullBackOff").as_deref(), Some("pod a-0-x: ImagePullBackOff: no such image"));
        assert_eq!(waits("PodInitializing"), None, "that is how every pod begins");
    }
}
