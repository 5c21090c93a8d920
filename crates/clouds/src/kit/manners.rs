// SPDX-License-Identifier: Apache-2.0
//! Asking no more than is wanted, and telling no secret.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

use super::{Behaviour, Stage, Verdict, ensure};
use crate::fake::{Answer, Trouble};
use crate::fault::{Operation, Outcome};

pub const ALL: &[Behaviour] = &[
    Behaviour { name: "retry-after-is-kept", run: |stage| Box::pin(retry_after(stage)) },
    Behaviour { name: "too-often-without-a-word-is-a-pause", run: |stage| Box::pin(without_a_word(stage)) },
    Behaviour { name: "the-key-is-never-told", run: |stage| Box::pin(no_key(stage)) },
];

async fn retry_after(stage: &Stage) -> Verdict {
    let wait = Duration::from_secs(17);
    stage.server.trouble(Operation::List, Trouble::RefuseFor(wait.as_secs()));
    match stage.cloud.list(&Stage::owner()).await {
        Ok(_) => return Err("429 passes for a listing".to_owned()),
        Err(fault) => ensure(fault.outcome == Outcome::RateLimited { after: Some(wait) }, || fault.to_string())?,
    }
    pause_of(stage, wait).await
}

async fn without_a_word(stage: &Stage) -> Verdict {
    stage.server.trouble(Operation::List, Trouble::Instead(Answer::empty(429)));
    match stage.cloud.list(&Stage::owner()).await {
        Ok(_) => return Err("429 passes for a listing".to_owned()),
        Err(fault) => ensure(matches!(fault.outcome, Outcome::RateLimited { .. }), || fault.to_string())?,
    }
    pause_of(stage, Duration::from_secs(1)).await
}

/// The next question waits, whoever asks it.
async fn pause_of(stage: &Stage, least: Duration) -> Verdict {
    let refused = stage.server.asked(Operation::List).last().map(|(_, at)| *at);
    let _ = stage.cloud.offers().await;
    let next = stage.server.asked(Operation::Offers).last().map(|(_, at)| *at);
    let (Some(refused), Some(next)) = (refused, next) else { return Ok(()) };
    let pause = next - refused;
    ensure(pause >= least, || format!("it was asked again after {pause:?}, and wanted {least:?}"))
}

/// The cloud writes the key into its errors, whole and in part; nothing of it comes out.
async fn no_key(stage: &Stage) -> Verdict {
    let id = &stage.launched(2).await?.id;
    let order = stage.order(1).await?;
    let mut texts = vec![format!("{:?} {order:?}", stage.cloud)];
    for secret in stage.credentials.secrets() {
        let key = secret.reveal();
        let part: String = key.chars().skip(3).take(20).collect();
        let url = percent_encoding::utf8_percent_encode(key, percent_encoding::NON_ALPHANUMERIC).to_string();
        let told = format!("{key} {part} {url} {} {}", STANDARD.encode(key), STANDARD.encode(format!("{key}:")));
        let body =
            json!({ "message": told, "error": { "message": told, "code": told }, "detail": told, "title": told });
        for on in [Operation::Offers, Operation::List, Operation::Describe, Operation::Terminate, Operation::Launch] {
            for answer in [Answer::json(400, &body), Answer::json(401, &body), Answer::json(200, &json!([told]))] {
                stage.server.trouble(on, Trouble::Instead(answer));
                if let Err(fault) = stage.ask(on, &order, id).await {
                    texts.push(format!("{fault} {fault:?}"));
                }
            }
        }
    }
    for secret in stage.credentials.secrets() {
        for text in &texts {
            ensure(is_free_of(text, secret.reveal()), || format!("the key is told: {text}"))?;
        }
    }
    ensure(texts.len() > 10, || "almost nothing failed".to_owned())
}

/// Not one run of twelve letters of it, in any of its spellings.
pub fn is_free_of(text: &str, secret: &str) -> bool {
    let url = percent_encoding::utf8_percent_encode(secret, percent_encoding::NON_ALPHANUMERIC).to_string();
    let spellings = [secret.to_owned(), url, STANDARD.encode(secret), STANDARD.encode(format!("{secret}:"))];
    spellings.iter().all(|spelling| {
        let letters: Vec<char> = spelling.chars().collect();
        letters.windows(12).all(|run| !text.contains(&run.iter().collect::<String>()))
    })
}
