// SPDX-License-Identifier: Apache-2.0
//! One pass instead of five: a pass that writes four children hears of each of them again.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    hash::Hash,
    time::Duration,
};

use futures::{Stream, StreamExt, stream::BoxStream};
use tokio::time::{Instant, sleep_until, timeout_at};

/// Something that was heard of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Heard<T> {
    /// Likely to be heard of again in a moment.
    Soon(T),
    /// Somebody waits for it.
    Now(T),
}

/// Names everything once for all that is heard of it within a pause, at the end of that pause. What somebody waits for is
/// named at once, but not twice within a pause: two that undo each other's work must not do so as fast as they can.
pub fn gather<T>(heard: BoxStream<'static, Heard<T>>, pause: Duration) -> impl Stream<Item = T> + Send
where
    T: Eq + Hash + Clone + Send + 'static,
{
    let (known, lately) = (HashSet::new(), HashMap::new());
    let gathering =
        Gathering { heard: Some(heard), known, due: VecDeque::new(), lately, named: VecDeque::new(), pause };
    futures::stream::unfold(gathering, |mut gathering| async move {
        let next = gathering.next().await?;
        Some((next, gathering))
    })
}

struct Gathering<T> {
    /// `None` once it has ended.
    heard: Option<BoxStream<'static, Heard<T>>>,
    known: HashSet<T>,
    /// Oldest first, for all wait equally long.
    due: VecDeque<(Instant, T)>,
    /// When everything was named last that was named less than a pause ago.
    lately: HashMap<T, Instant>,
    /// The same in the order of time.
    named: VecDeque<(Instant, T)>,
    pause: Duration,
}

impl<T: Eq + Hash + Clone> Gathering<T> {
    async fn next(&mut self) -> Option<T> {
        loop {
            let (now, due) = (Instant::now(), self.due.front().map(|(due, _)| *due));
            if due.is_some_and(|due| due <= now) {
                let (_, one) = self.due.pop_front()?;
                self.known.remove(&one);
                self.forget(now);
                self.lately.insert(one.clone(), now);
                self.named.push_back((now, one.clone()));
                return Some(one);
            }
            match (&mut self.heard, due) {
                (None, due) => sleep_until(due?).await,
                (Some(heard), Some(due)) => {
                    if let Ok(heard) = timeout_at(due, heard.next()).await {
                        self.hear(heard);
                    }
                }
                (Some(heard), None) => {
                    let heard = heard.next().await;
                    self.hear(heard);
                }
            }
        }
    }

    fn hear(&mut self, heard: Option<Heard<T>>) {
        let now = Instant::now();
        self.forget(now);
        match heard {
            Some(Heard::Now(one)) if !self.lately.contains_key(&one) => self.due.push_front((now, one)),
            Some(Heard::Now(one) | Heard::Soon(one)) => {
                if self.known.insert(one.clone()) {
                    self.due.push_back((now + self.pause, one));
                }
            }
            None => self.heard = None,
        }
    }

    /// What was named a pause ago.
    fn forget(&mut self, now: Instant) {
        while let Some((at, old)) = self.named.pop_front_if(|(at, _)| *at + self.pause <= now) {
            if self.lately.get(&old) == Some(&at) {
                self.lately.remove(&old);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::channel::mpsc;

    use super::*;

    const PAUSE: Duration = Duration::from_millis(100);

    #[tokio::test(start_paused = true)]
    async fn what_is_heard_five_times_is_named_once_a_pause_after_the_first() {
        let (say, heard) = mpsc::unbounded();
        let mut gathered = Box::pin(gather(heard.boxed(), PAUSE));
        let start = Instant::now();
        ["a", "b", "a", "a"].into_iter().for_each(|one| say.unbounded_send(Heard::Soon(one)).unwrap());
        assert_eq!((gathered.next().await, start.elapsed()), (Some("a"), PAUSE));
        assert_eq!((gathered.next().await, start.elapsed()), (Some("b"), PAUSE));
        say.unbounded_send(Heard::Soon("a")).unwrap();
        drop(say);
        assert_eq!(gathered.next().await, Some("a"), "the end does not lose what waits");
        assert_eq!(gathered.next().await, None);
    }

    #[tokio::test(start_paused = true)]
    async fn what_cannot_wait_is_named_at_once_and_holds_nobody_else_up() {
        let (say, heard) = mpsc::unbounded();
        let mut gathered = Box::pin(gather(heard.boxed(), PAUSE));
        let start = Instant::now();
        [Heard::Soon("a"), Heard::Soon("b"), Heard::Now("b")]
            .into_iter()
            .for_each(|one| say.unbounded_send(one).unwrap());
        assert_eq!((gathered.next().await, start.elapsed()), (Some("b"), Duration::ZERO));
        assert_eq!((gathered.next().await, start.elapsed()), (Some("a"), PAUSE));
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_undoes_our_work_at_once_is_answered_once_in_a_pause() {
        let (say, heard) = mpsc::unbounded();
        let mut gathered = Box::pin(gather(heard.boxed(), PAUSE));
        let start = Instant::now();
        for turn in 0..10 {
            say.unbounded_send(Heard::Now("a")).unwrap();
            assert_eq!((gathered.next().await, start.elapsed()), (Some("a"), PAUSE * turn));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_never_stops_talking_holds_nobody_up() {
        let heard = futures::stream::unfold((), |()| async {
            tokio::time::sleep(PAUSE / 50).await;
            Some((Heard::Soon("a"), ()))
        });
        let named = gather(heard.boxed(), PAUSE).take(3).collect::<Vec<_>>();
        assert_eq!(tokio::time::timeout(PAUSE * 4, named).await.unwrap(), ["a"; 3]);
    }
}
