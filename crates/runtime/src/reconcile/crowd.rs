// SPDX-License-Identifier: Apache-2.0
//! Newcomers wait until all of a crowd are there. Work for some of them would keep the server busy, and who brings them
//! one by one, as kubectl does, would wait for that work at each: a hundred came in twelve seconds, and come in one.
//! Whoever comes alone, or first, waits for nobody: the work for one is little.

use std::{collections::VecDeque, time::Duration};

use futures::{Stream, StreamExt, stream::BoxStream};
use tokio::time::{Instant, timeout_at};

/// A crowd is there when nobody has come for so long, or for so many times as long as it takes one of them to come: on a
/// busy server whoever brings them stumbles.
const QUIET: Duration = Duration::from_millis(50);
const STEPS: u32 = 4;
/// Whoever comes after such a break is the first of others.
const BREAK: Duration = Duration::from_millis(250);
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
    let (coming, held, step) = (Some(coming), VecDeque::new(), Duration::ZERO);
    let crowd = Crowd { coming, is_new, held, first: None, last: None, step, goes: false };
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
    /// How long it takes a newcomer to come, lately.
    step: Duration,
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
            let quiet = (self.step * STEPS).clamp(QUIET, BREAK);
            let due = self.first.zip(self.last).map(|(first, last)| (first + MOST).min(last + quiet));
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
        let step = self.last.replace(now).map(|last| now - last).filter(|step| *step < BREAK);
        if let Some(step) = step {
            // One slow step is soon forgotten.
            self.step = step.max(self.step / 2);
        }
        let follows = self.first.is_some() || step.is_some();
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

    /// 2, and then 4 and so on, each so long after the one before it.
    fn come(say: mpsc::UnboundedSender<Item>, steps: &[Duration]) {
        let steps = steps.to_vec();
        tokio::spawn(async move {
            let mut one = 2;
            say.unbounded_send(Ok(one)).unwrap();
            for step in steps {
                tokio::time::sleep(step).await;
                one += 2;
                say.unbounded_send(Ok(one)).unwrap();
            }
            std::future::pending::<()>().await;
            drop(say);
        });
    }

    #[tokio::test(start_paused = true)]
    async fn the_first_goes_at_once_and_the_others_when_none_has_come_for_a_moment() {
        let (say, mut crowd) = crowd();
        let start = Instant::now();
        come(say, &[QUIET / 10, QUIET / 10]);
        assert_eq!((crowd.next().await, start.elapsed()), (Some(Ok(2)), Duration::ZERO));
        for one in [4, 6] {
            assert_eq!((crowd.next().await, start.elapsed()), (Some(Ok(one)), QUIET / 5 + QUIET));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_brings_them_may_stumble() {
        let (say, mut crowd) = crowd();
        let start = Instant::now();
        // One is late, and those after it come as fast as before.
        let (slow, fast) = (QUIET * 2, QUIET / 10);
        come(say, &[slow, slow, fast, fast, fast, fast]);
        assert_eq!((crowd.next().await, start.elapsed()), (Some(Ok(2)), Duration::ZERO));
        let all = slow * 2 + fast * 4;
        for one in [4, 6, 8, 10, 12, 14] {
            assert_eq!((crowd.next().await, start.elapsed()), (Some(Ok(one)), all + QUIET), "{one}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_crowd_is_waited_for_as_well() {
        let (say, mut crowd) = crowd();
        let (start, step) = (Instant::now(), QUIET * 6 / 5);
        come(say, &[step; 4]);
        assert_eq!((crowd.next().await, start.elapsed()), (Some(Ok(2)), Duration::ZERO));
        for one in [4, 6, 8, 10] {
            assert_eq!((crowd.next().await, start.elapsed()), (Some(Ok(one)), step * (4 + STEPS)), "{one}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_comes_alone_waits_for_nobody() {
        let (say, mut crowd) = crowd();
        for one in [2, 4] {
            let start = Instant::now();
            say.unbounded_send(Ok(one)).unwrap();
            assert_eq!((crowd.next().await, start.elapsed()), (Some(Ok(one)), Duration::ZERO));
            tokio::time::sleep(BREAK).await;
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
