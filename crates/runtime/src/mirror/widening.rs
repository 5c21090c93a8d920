// SPDX-License-Identifier: Apache-2.0
//! A mirror of some objects of a kind, and of more of them once somebody needs those. What is not watched costs the
//! server nothing, and where there are many of it that is most of what a watch costs.

use std::sync::{Arc, Once};

use kube::{Api, Resource, runtime::watcher};
use serde::de::DeserializeOwned;
use tokio::sync::watch;

use super::Mirror;
use crate::Runtime;

/// Watches a part from the first look on, and the whole from the first look at the whole, until the controllers of this
/// term end.
pub struct Widening<K> {
    mirror: Arc<Mirror<K>>,
    runtime: Runtime,
    part: watcher::Config,
    whole: watcher::Config,
    begun: Once,
    width: watch::Sender<Width>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Width {
    Part,
    /// The whole is wanted, and the mirror may still pass for complete with a part.
    Wanted,
    Whole,
}

impl<K> Widening<K>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + std::fmt::Debug + Send + Sync + 'static,
{
    /// Both are label selectors; the part must be a part of the whole.
    pub fn new(runtime: &Runtime, mirror: Arc<Mirror<K>>, part: &str, whole: &str) -> Self {
        let config = |labels| runtime.watching.clone().labels(labels);
        Self {
            mirror,
            part: config(part),
            whole: config(whole),
            runtime: runtime.clone(),
            begun: Once::new(),
            width: watch::Sender::new(Width::Part),
        }
    }

    /// The mirror, once it holds the part at least.
    pub async fn look(&self) -> &Mirror<K> {
        self.begin();
        self.mirror.wait_ready().await;
        &self.mirror
    }

    /// The mirror, once it holds the whole.
    pub async fn look_at_all(&self) -> &Mirror<K> {
        self.width.send_if_modified(|width| {
            let is_news = *width == Width::Part;
            if is_news {
                *width = Width::Wanted;
            }
            is_news
        });
        self.begin();
        // The sender lives in self, so the wait cannot fail.
        let _ = self.width.subscribe().wait_for(|width| *width == Width::Whole).await;
        self.mirror.wait_ready().await;
        &self.mirror
    }

    /// The mirror as it is, for those who only want to hear of changes.
    pub fn mirror(&self) -> &Arc<Mirror<K>> {
        &self.mirror
    }

    fn begin(&self) {
        self.begun.call_once(|| {
            let api = Api::<K>::all(self.runtime.client.clone());
            let (mirror, width) = (self.mirror.clone(), self.width.clone());
            let (part, whole) = (self.part.clone(), self.whole.clone());
            let work = async move {
                let mut wish = width.subscribe();
                let wanted = async { drop(wish.wait_for(|width| *width != Width::Part).await) };
                mirror.follow_until(api.clone(), part, wanted).await;
                mirror.doubt();
                width.send_replace(Width::Whole);
                mirror.follow(api, whole).await;
            };
            tokio::spawn(self.runtime.stop.clone().run_until_cancelled_owned(work));
        });
    }
}
