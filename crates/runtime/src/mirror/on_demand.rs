// SPDX-License-Identifier: Apache-2.0
//! A mirror of something that is no child. It costs nothing until somebody looks.

use std::sync::{Arc, Once};

use kube::{Api, Resource, runtime::watcher};
use serde::de::DeserializeOwned;

use super::Mirror;
use crate::Runtime;

/// Watches one kind from the first look on, until the controllers of this term end.
pub struct OnDemand<K> {
    mirror: Arc<Mirror<K>>,
    runtime: Runtime,
    config: watcher::Config,
    begun: Once,
}

impl<K> OnDemand<K>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + std::fmt::Debug + Send + Sync + 'static,
{
    /// `narrow` says which objects matter.
    pub fn new(
        runtime: &Runtime,
        mirror: Arc<Mirror<K>>,
        narrow: impl FnOnce(watcher::Config) -> watcher::Config,
    ) -> Self {
        let config = narrow(runtime.watching.clone());
        Self { mirror, runtime: runtime.clone(), config, begun: Once::new() }
    }

    /// The mirror, once its first list is complete: half a list is no ground for a decision.
    pub async fn look(&self) -> &Mirror<K> {
        self.begun.call_once(|| {
            let api = Api::<K>::all(self.runtime.client.clone());
            let work = self.mirror.clone().follow(api, self.config.clone());
            tokio::spawn(self.runtime.stop.clone().run_until_cancelled_owned(work));
        });
        self.mirror.wait_ready().await;
        &self.mirror
    }

    /// The mirror as it is, for those who only want to hear of changes.
    pub fn mirror(&self) -> &Arc<Mirror<K>> {
        &self.mirror
    }
}
