// SPDX-License-Identifier: Apache-2.0
//! The kit finds mistakes: a good client with one mistake in it fails, and by the behaviour that is meant for it.

use std::sync::Arc;

use bivouac_clouds::fake::Server;
use bivouac_clouds::kit::{self, Stage, behaviours};
use bivouac_clouds::{
    Account, Capabilities, Cloud, Credentials, Fault, Line, Machine, Order, Outcome, Owner, Pending, Secret, State,
    find,
};
use bivouac_market::Listing;
use bytes::Bytes;
use http::{Request, Response};
use serde_json::Value;
use tower::ServiceExt;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mistake {
    None,
    RetriesALaunch,
    TrustsTheFirstPage,
    DropsRetryAfter,
    TellsTheKey,
    TakesAFailedListForAnEmptyOne,
    ListsWhatIsNotOurs,
    CallsStrangeThingsRunning,
    CallsWhatEndsGone,
    TakesARefusedEndForAnEnd,
    ForgetsWhatItBought,
}

/// A good client, apart from one thing.
#[derive(Debug)]
struct Careless {
    good: Arc<dyn Cloud>,
    mistake: Mistake,
    key: Secret,
}

impl Careless {
    fn tell<T>(&self, result: Result<T, Fault>) -> Result<T, Fault> {
        result.map_err(|fault| match self.mistake {
            Mistake::TellsTheKey => Fault { says: format!("{} (with {})", fault.says, self.key.reveal()), ..fault },
            _ => fault,
        })
    }
}

impl Cloud for Careless {
    fn name(&self) -> &'static str {
        self.good.name()
    }

    fn capabilities(&self) -> Capabilities {
        self.good.capabilities()
    }

    fn offers(&self) -> Pending<'_, Vec<Listing>> {
        Box::pin(async move { self.tell(self.good.offers().await) })
    }

    fn launch<'a>(&'a self, order: &'a Order) -> Pending<'a, Machine> {
        Box::pin(async move {
            let launched = self.good.launch(order).await;
            match (&launched, self.mistake) {
                (Err(fault), Mistake::RetriesALaunch) if fault.outcome == Outcome::Ambiguous => {
                    self.good.launch(order).await
                }
                (Err(fault), Mistake::ForgetsWhatItBought) if fault.outcome == Outcome::Ambiguous => {
                    Err(Fault { outcome: Outcome::Transient, ..fault.clone() })
                }
                _ => self.tell(launched),
            }
        })
    }

    fn describe<'a>(&'a self, id: &'a str) -> Pending<'a, Machine> {
        Box::pin(async move {
            let mut machine = self.tell(self.good.describe(id).await)?;
            if self.mistake == Mistake::CallsStrangeThingsRunning && machine.state == State::Unknown {
                machine.state = State::Running;
            }
            if self.mistake == Mistake::CallsWhatEndsGone {
                machine.state = State::Gone;
            }
            Ok(machine)
        })
    }

    fn list<'a>(&'a self, owner: &'a Owner) -> Pending<'a, Vec<Machine>> {
        Box::pin(async move {
            match self.mistake {
                Mistake::TakesAFailedListForAnEmptyOne => Ok(self.good.list(owner).await.unwrap_or_default()),
                Mistake::ListsWhatIsNotOurs => {
                    let mut all = self.good.list(owner).await?;
                    all.extend(self.good.list(&Owner("99999999".to_owned())).await?);
                    Ok(all)
                }
                _ => self.tell(self.good.list(owner).await),
            }
        })
    }

    fn terminate<'a>(&'a self, id: &'a str) -> Pending<'a, ()> {
        Box::pin(async move {
            let ended = self.good.terminate(id).await;
            if self.mistake == Mistake::TakesARefusedEndForAnEnd { Ok(()) } else { self.tell(ended) }
        })
    }

    fn verify(&self) -> Pending<'_, Account> {
        Box::pin(async move { self.tell(self.good.verify().await) })
    }
}

/// Mistakes of somebody who does not read all of an answer.
fn blind(server: &Server, mistake: Mistake) -> Line {
    let server = server.clone();
    let service = tower::service_fn(move |request: Request<Bytes>| {
        let server = server.clone();
        async move { server.handle(request).await }
    });
    Line::new(service.map_response(move |mut response: Response<Bytes>| {
        match mistake {
            Mistake::DropsRetryAfter => {
                response.headers_mut().remove("retry-after");
            }
            Mistake::TrustsTheFirstPage => {
                if let Ok(mut body) = serde_json::from_slice::<Value>(response.body()) {
                    body.as_object_mut().map(|body| body.remove("meta"));
                    *response.body_mut() = Bytes::from(body.to_string());
                }
            }
            _ => {}
        }
        response
    }))
}

/// The behaviours that it fails.
fn failures(mistake: Mistake) -> Vec<&'static str> {
    let entry = find("vultr").unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    let mut failed = Vec::new();
    for behaviour in behaviours() {
        let credentials: Credentials = kit::credentials(entry);
        let passed = runtime.block_on(async {
            let server = entry.server(&credentials).unwrap();
            let good = (entry.client)(&credentials, blind(&server, mistake), entry.base).unwrap();
            let key = credentials.secrets().next().unwrap().clone();
            let cloud = Arc::new(Careless { good, mistake, key });
            (behaviour.run)(&Stage { cloud, server, credentials }).await
        });
        if passed.is_err() {
            failed.push(behaviour.name);
        }
    }
    failed
}

#[test]
fn every_planted_mistake_is_found() {
    assert_eq!(failures(Mistake::None), [""; 0], "without a mistake all is well");
    for (mistake, behaviour) in [
        (Mistake::RetriesALaunch, "a-launch-in-doubt-is-looked-for"),
        (Mistake::TrustsTheFirstPage, "every-page-is-read"),
        (Mistake::DropsRetryAfter, "retry-after-is-kept"),
        (Mistake::TellsTheKey, "the-key-is-never-told"),
        (Mistake::TakesAFailedListForAnEmptyOne, "half-a-listing-is-none"),
        (Mistake::ListsWhatIsNotOurs, "only-ours-are-listed"),
        (Mistake::CallsStrangeThingsRunning, "a-strange-state-is-told-as-it-is"),
        (Mistake::CallsWhatEndsGone, "a-late-end-is-seen-as-ending"),
        (Mistake::TakesARefusedEndForAnEnd, "a-refused-question-says-why"),
        (Mistake::ForgetsWhatItBought, "a-launch-in-doubt-is-looked-for"),
    ] {
        let failed = failures(mistake);
        println!("{mistake:?}: {}", failed.join(", "));
        assert!(failed.contains(&behaviour), "{mistake:?} is not found by {behaviour}: {failed:?}");
    }
}
