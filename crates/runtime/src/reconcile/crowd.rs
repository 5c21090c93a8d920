// SPDX-License-Identifier: Apache-2.0
//! Newcomers wait until all of a crowd are there. Work for the first of them would keep the server busy, and who brings
//! them one by one, as kubectl does, would wait for that work at each: a hundred came in twelve seconds, and come in one.

use std::{collections::VecDeque, time::Duration};

use futures::{Stream, StreamExt, stream::BoxStream};
use tokio::time::{Instant, timeout_at};

/// Whoever is alone waits so long.
const QUIET: Duration = Duration::from_millis(100);
/// Where newcomers never cease, the first of them waits no longer.
const MOST: Duration = Duration::from_secs(2);

/// Everything that comes, at once; newcomers when none has come for a moment.
pub fn together<T, E>(
    coming: BoxStream<'static, Result<T, E>>,
    is_new: impl Fn(&T) -> bool + Send + 'static,
) -> impl Stream<Item = Result<T, E>> + Send
where
    T: Send + 'static,
    E: Send + 'static,
{
    let crowd = Crowd { coming: Some(coming), is_new, held: VecDeque::new(), since: None, goes: false };
    futures::stream::unfold(crowd, |mut crowd| async move {
        let next = crowd.next().await?;
        Some((next, crowd))
    })
}

struct Crowd<T, E, F> {
    /// `None` once it has ended.
    coming: Option<BoxStream<'static, Result<T, E>>>,
    is_new: F,
    held: VecDeque<T>,
    /// When the first and the last came that are held.
    since: Option<(Instant, Instant)>,
    /// Those who are held are on their way.
    goes: bool,
}

impl<T, E, F: Fn(&T) -> bool> Crowd<T, E, F> {
    async fn next(&mut self) -> Option<Result<T, E>> {
        loop {
            if self.goes {
                match self.held.pop_front() {
                    Some(one) => return Some(Ok(one)),
                    None => (self.goes, self.since) = (false, None),
                }
            }
            let due = self.since.map(|(first, last)| (first + MOST).min(last + QUIET));
            let coming = match (&mut self.coming, due) {
                (None, None) => return None,
                (None, Some(_)) => None,
                (Some(_), Some(due)) if due <= Instant::now() => None,
                (Some(coming), Some(due)) => timeout_at(due, coming.next()).await.ok(),
                (Some(coming), None) => Some(coming.next().await),
            };
            match coming {
                Some(Some(Ok(one))) if (self.is_new)(&one) => self.hold(one),
                Some(Some(other)) => return Some(other),
                Some(None) => self.coming = None,
                None => self.goes = true,
            }
        }
    }

    fn hold(&mut self, one: T) {
        let now = Instant::now();
        self.since = Some((self.since.map_or(now, |(first, _)| first), now));
        self.held.push_back(one);
    }
}

#[cfg(test)]
mod tests {
    use futures::channel::mpsc;

    use super::*;

    type Item = Result<u32, &'static str>;

    /// Even numbers are new.
    fn crowd() -> (mpsc::UnboundedSender<Item>, BoxStream<'static, Item>) {
        let (say, coming) = mpsc::unbounded();
        (say, together(coming.boxed(), |one| one % 2 == 0).boxed())
    }

    #[tokio::test(start_paused = true)]
    async fn newcomers_go_together_when_none_has_come_for_a_moment() {
        let (say, mut crowd) = crowd();
        let start = Instant::now();
        tokio::spawn(async move {
            for one in [2, 4, 6] {
                say.unbounded_send(Ok(one)).unwrap();
                tokio::time::sleep(QUIET / 2).await;
            }
            std::future::pending::<()>().await;
            drop(say);
        });
        for one in [2, 4, 6] {
            assert_eq!((crowd.next().await, start.elapsed()), (Some(Ok(one)), QUIET * 2));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_known_and_what_fails_waits_for_nobody() {
        let (say, mut crowd) = crowd();
        let start = Instant::now();
        [Ok(2), Ok(3), Err("lost")].into_iter().for_each(|one| say.unbounded_send(one).unwrap());
        assert_eq!((crowd.next().await, start.elapsed()), (Some(Ok(3)), Duration::ZERO));
        assert_eq!((crowd.next().await, start.elapsed()), (Some(Err("lost")), Duration::ZERO));
        assert_eq!((crowd.next().await, start.elapsed()), (Some(Ok(2)), QUIET));
    }

    #[tokio::test(start_paused = true)]
    async fn newcomers_without_end_hold_nobody_up() {
        let coming = futures::stream::unfold(0, |one| async move {
            tokio::time::sleep(QUIET / 10).await;
            Some((Item::Ok(one), one + 2))
        });
        let mut crowd = together(coming.boxed(), |_| true).boxed();
        let start = Instant::now();
        assert_eq!(crowd.next().await, Some(Ok(0)));
        assert!(start.elapsed() <= MOST + QUIET, "{:?}", start.elapsed());
    }

    #[tokio::test(start_paused = true)]
    async fn the_end_loses_nobody() {
        let (say, crowd) = crowd();
        [Ok(2), Ok(4)].into_iter().for_each(|one| say.unbounded_send(one).unwrap());
        drop(say);
        assert_eq!(crowd.collect::<Vec<_>>().await, [Ok(2), Ok(4)]);
    }
}
