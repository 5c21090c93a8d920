// SPDX-License-Identifier: Apache-2.0
//! Newcomers wait until all of a crowd are there. Work for some of them would keep the server busy, and who brings them
//! one by one, as kubectl does, would wait for that work at each: a hundred came in twelve seconds, and come in one.
//! Whoever comes alone, or first, waits for nobody: the work for one is little.

use std::{collections::VecDeque, time::Duration};

use futures::{Stream, StreamExt, stream::BoxStream};
use tokio::time::{Instant, timeout_at};

/// A crowd is there when nobody has come for so long.
const QUIET: Duration = Duration::from_millis(50);
/// Where newcomers never cease, the first of them waits no longer.
const MOST: Duration = Duration::from_secs(2);

/// Everything that comes, at once; newcomers close behind another one when none has come for a moment.
pub fn together<T, E>(
    coming: BoxStream<'static, Result<T, E>>,
    is_new: impl Fn(&T) -> bool + Send + 'static,
) -> impl Stream<Item = Result<T, E>> + Send
where
    T: Send + 'static,
    E: Send + 'static,
{
    let crowd = Crowd { coming: Some(coming), is_new, held: VecDeque::new(), first: None, last: None, goes: false };
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
    /// When the first of those came who are held.
    first: Option<Instant>,
    /// When the last newcomer came.
    last: Option<Instant>,
    /// Those who are held are on their way.
    goes: bool,
}

impl<T, E, F: Fn(&T) -> bool> Crowd<T, E, F> {
    async fn next(&mut self) -> Option<Result<T, E>> {
        loop {
            if self.goes {
                match self.held.pop_front() {
                    Some(one) => return Some(Ok(one)),
                    None => (self.goes, self.first) = (false, None),
                }
            }
            let due = self.first.zip(self.last).map(|(first, last)| (first + MOST).min(last + QUIET));
            let coming = match (&mut self.coming, due) {
                (None, None) => return None,
                (None, Some(_)) => None,
                (Some(_), Some(due)) if due <= Instant::now() => None,
                (Some(coming), Some(due)) => timeout_at(due, coming.next()).await.ok(),
                (Some(coming), None) => Some(coming.next().await),
            };
            match coming {
                Some(Some(Ok(one))) if (self.is_new)(&one) && self.follows() => self.held.push_back(one),
                Some(Some(other)) => return Some(other),
                Some(None) => self.coming = None,
                None => self.goes = true,
            }
        }
    }

    /// Whether a newcomer who comes now is close behind another one, and has to wait.
    fn follows(&mut self) -> bool {
        let now = Instant::now();
        let before = self.last.replace(now);
        let follows = self.first.is_some() || before.is_some_and(|before| now < before + QUIET);
        if follows {
            self.first.get_or_insert(now);
        }
        follows
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
    async fn the_first_goes_at_once_and_the_others_when_none_has_come_for_a_moment() {
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
        assert_eq!((crowd.next().await, start.elapsed()), (Some(Ok(2)), Duration::ZERO));
        for one in [4, 6] {
            assert_eq!((crowd.next().await, start.elapsed()), (Some(Ok(one)), QUIET * 2));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_comes_alone_waits_for_nobody() {
        let (say, mut crowd) = crowd();
        for one in [2, 4] {
            let start = Instant::now();
            say.unbounded_send(Ok(one)).unwrap();
            assert_eq!((crowd.next().await, start.elapsed()), (Some(Ok(one)), Duration::ZERO));
            tokio::time::sleep(QUIET).await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_known_and_what_fails_waits_for_nobody() {
        let (say, mut crowd) = crowd();
        let start = Instant::now();
        [Ok(2), Ok(4), Ok(3), Err("lost")].into_iter().for_each(|one| say.unbounded_send(one).unwrap());
        for one in [Ok(2), Ok(3), Err("lost")] {
            assert_eq!((crowd.next().await, start.elapsed()), (Some(one), Duration::ZERO));
        }
        assert_eq!((crowd.next().await, start.elapsed()), (Some(Ok(4)), QUIET));
    }

    #[tokio::test(start_paused = true)]
    async fn newcomers_without_end_hold_nobody_up() {
        let coming = futures::stream::unfold(0, |one| async move {
            tokio::time::sleep(QUIET / 10).await;
            Some((Item::Ok(one), one + 2))
        });
        let mut crowd = together(coming.boxed(), |_| true).boxed();
        assert_eq!(crowd.next().await, Some(Ok(0)), "the first waits for nobody");
        let start = Instant::now();
        assert_eq!(crowd.next().await, Some(Ok(2)));
        assert!(start.elapsed() <= MOST + QUIET, "{:?}", start.elapsed());
    }

    #[tokio::test(start_paused = true)]
    async fn the_end_loses_nobody() {
        let (say, crowd) = crowd();
        [Ok(2), Ok(4), Ok(6)].into_iter().for_each(|one| say.unbounded_send(one).unwrap());
        drop(say);
        assert_eq!(crowd.collect::<Vec<_>>().await, [Ok(2), Ok(4), Ok(6)]);
    }
}
