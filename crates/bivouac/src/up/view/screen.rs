// SPDX-License-Identifier: Apache-2.0
//! The picture in a terminal. It is drawn again when something changed, and once a second for the clock.

use std::{
    io,
    time::{Duration, Instant},
};

use crossterm::event::{Event, EventStream, KeyCode, KeyEventKind, KeyModifiers};
use futures::StreamExt;
use jiff::Zoned;
use ratatui::{text::Text, widgets::Paragraph};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::{CALM, Scene, draw};

const CLOCK: Duration = Duration::from_secs(1);

pub async fn show(
    mut scene: watch::Receiver<Scene>,
    colour: bool,
    began: Instant,
    stop: &CancellationToken,
) -> io::Result<Duration> {
    // Only what differs from the last picture is sent, so nothing flickers.
    let mut terminal = ratatui::try_init()?;
    let shown = watch_keys(&mut terminal, &mut scene, colour, began, stop).await;
    ratatui::try_restore()?;
    shown
}

async fn watch_keys(
    terminal: &mut ratatui::DefaultTerminal,
    scene: &mut watch::Receiver<Scene>,
    colour: bool,
    began: Instant,
    stop: &CancellationToken,
) -> io::Result<Duration> {
    let mut keys = EventStream::new();
    let mut first = None;
    while !stop.is_cancelled() {
        let now = scene.borrow_and_update().clone();
        terminal.draw(|frame| {
            let area = frame.area();
            let lines = draw::lines(&now, &Zoned::now(), area.width.into(), area.height.into(), colour);
            frame.render_widget(Paragraph::new(Text::from(lines)), area);
        })?;
        first.get_or_insert_with(|| began.elapsed());
        tokio::select! {
            () = stop.cancelled() => {}
            changed = scene.changed() => {
                if changed.is_err() {
                    break;
                }
                tokio::time::sleep(CALM).await;
            }
            () = tokio::time::sleep(CLOCK) => {}
            event = keys.next() => match event {
                Some(Ok(event)) => if ends(&event) { stop.cancel() },
                // Without keys, a signal still ends it.
                Some(Err(_)) | None => stop.cancelled().await,
            },
        }
    }
    Ok(first.unwrap_or_default())
}

fn ends(event: &Event) -> bool {
    let Event::Key(key) = event else { return false };
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    key.kind == KeyEventKind::Press
        && match key.code {
            KeyCode::Char('q') => true,
            // In this mode the terminal makes no signal of it.
            KeyCode::Char('c') => control,
            _ => false,
        }
}
