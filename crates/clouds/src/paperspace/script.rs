// SPDX-License-Identifier: Apache-2.0
//! Startup scripts: the only way to hand something to a machine. They outlive it, and hold what nobody else may know.

use serde::Deserialize;
use serde_json::json;

use super::Paperspace;
use crate::fault::{Fault, Operation};
use crate::script::as_script;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Script {
    id: String,
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    assigned_machine_ids: Option<Vec<String>>,
    #[serde(default)]
    dt_deleted: Option<String>,
}

impl Paperspace {
    /// Makes the script of a machine that is yet to be bought.
    pub(super) async fn make_script(&self, name: &str, user_data: &str) -> Result<String, Fault> {
        let operation = Operation::Verify;
        let body = json!({ "name": name, "script": as_script(name, user_data), "isRunOnce": true });
        let call = self.wire.post(operation, "/startup-scripts").json(&body);
        let reply = call.accepted().await?;
        let answer = reply.json().unwrap_or_default();
        let id = ["/id", "/data/id"].iter().find_map(|pointer| answer.pointer(pointer)?.as_str());
        id.map(str::to_owned).ok_or_else(|| self.wire.nonsense(operation, &reply, "it made a script and named none"))
    }

    /// Whatever it says, a machine that was not bought needs none.
    pub(super) async fn forget_script(&self, id: &str) {
        let _ = self.drop_script(Operation::Verify, id).await;
    }

    /// All scripts that were made for a machine, by its name or by its id.
    pub(super) async fn drop_scripts(&self, operation: Operation, name: Option<&str>, id: &str) -> Result<(), Fault> {
        let all: Vec<Script> = self.pages(operation, "/startup-scripts", &[]).await?;
        for script in all.iter().filter(|script| script.dt_deleted.is_none() && script.is_for(name, id)) {
            self.drop_script(operation, &script.id).await?;
        }
        Ok(())
    }

    async fn drop_script(&self, operation: Operation, id: &str) -> Result<(), Fault> {
        let call = self.wire.delete(operation, format!("/startup-scripts/{id}"));
        super::gone_is_done(call.accepted().await)
    }
}

// === impl Script ===

impl Script {
    /// What is not called as ours are called is somebody else's.
    fn is_for(&self, name: Option<&str>, id: &str) -> bool {
        let Some(own) = self.name.as_deref().filter(|own| own.starts_with("tgp-")) else { return false };
        name == Some(own) || self.assigned_machine_ids.iter().flatten().any(|assigned| assigned == id)
    }
}

impl super::wire::Identified for Script {
    fn id(&self) -> &str {
        &self.id
    }
}
