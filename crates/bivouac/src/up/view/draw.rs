// SPDX-License-Identifier: Apache-2.0
//! The picture, as a pure function of the scene, the time and the size of the terminal.

use jiff::Zoned;
use ratatui::{
    style::{Color, Modifier, Style, Stylize},
    text::{Line, Span},
};

use super::{
    super::{kubectl_is_there, scene, seconds, shell_path},
    Scene,
    plain::NO_KUBECTL,
};

/// Below this, only the numbers are shown.
const ROOMY: usize = 16;
const KIND: usize = 24;

/// At most `height` lines of at most `width` characters.
pub fn lines(scene: &Scene, now: &Zoned, width: usize, height: usize, colour: bool) -> Vec<Line<'static>> {
    let mut all = head(scene, now, width);
    let foot = if height >= ROOMY { foot(scene, width) } else { Vec::new() };
    let room = height.saturating_sub(all.len() + foot.len());
    let (kinds, waits, events) = (kinds(scene), waits(scene, width), events(scene, now));
    // Numbers first; what waits gets half of the rest if it needs it; events take what is left.
    let kinds_room = (kinds.len().max(1) + 2).min(room);
    let waits_room = (waits.len().max(1) + 2).min((room - kinds_room).div_ceil(2).max(4)).min(room - kinds_room);
    let events_room = room - kinds_room - waits_room;
    all.extend(section("KIND                     COUNT  STATE", kinds, "nothing yet", kinds_room, Keep::First));
    all.extend(section("WAITING", waits, "nothing waits", waits_room, Keep::First));
    all.extend(section("EVENTS", events, "nothing happened yet", events_room, Keep::Last));
    all.resize(height.saturating_sub(foot.len()), Line::default());
    all.extend(foot);
    all.truncate(height);
    let all = all.into_iter().map(|line| cut(line, width));
    if colour { all.collect() } else { all.map(bare).collect() }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Keep {
    First,
    Last,
}

fn head(scene: &Scene, now: &Zoned, width: usize) -> Vec<Line<'static>> {
    let left = format!(" Bivouac {}  {}", env!("CARGO_PKG_VERSION"), scene.address);
    let up = now.timestamp().duration_since(scene.began).as_secs();
    let right = match scene.ready {
        Some(took) => format!("ready in {}, up {} ", seconds(took), spoken(up)),
        None => format!("{} ... ", scene.stage),
    };
    let gap = width.saturating_sub(left.chars().count() + right.chars().count()).max(1);
    let mut all = vec![Line::from(vec![left.bold(), " ".repeat(gap).into(), right.into()])];
    if let Some(trouble) = &scene.trouble {
        let words = wrapped(trouble, width.saturating_sub(3));
        all.extend(words.into_iter().map(|line| Line::from(format!(" ! {line}").bold().red())));
    }
    all
}

fn foot(scene: &Scene, width: usize) -> Vec<Line<'static>> {
    let mut all = vec![Line::default()];
    for command in &scene.commands {
        all.extend(
            wrapped(command, width.saturating_sub(3)).into_iter().map(|line| Line::from(format!(" {line}").cyan())),
        );
    }
    if !scene.commands.is_empty() && !kubectl_is_there() {
        all.push(Line::from(format!(" {NO_KUBECTL}").yellow()));
    }
    let kept = format!(" q stops it; the state stays in {}", shell_path(&scene.data_dir));
    all.push(Line::from(kept.dim()));
    all
}

/// A heading and its lines, in the room there is. What does not fit is counted.
fn section(
    title: &'static str,
    mut body: Vec<Line<'static>>,
    nothing: &'static str,
    room: usize,
    keep: Keep,
) -> Vec<Line<'static>> {
    // A heading without a line below it says nothing.
    if room < 3 {
        return Vec::new();
    }
    let space = room - 2;
    if body.is_empty() {
        body.push(Line::from(format!(" {nothing}").dim()));
    }
    if body.len() > space && keep == Keep::Last {
        body.drain(..body.len() - space);
    } else if body.len() > space {
        let left = body.len() - (space - 1);
        body.truncate(space - 1);
        body.push(Line::from(format!(" and {left} more").dim()));
    }
    [Line::default(), Line::from(format!(" {title}").dim())].into_iter().chain(body).collect()
}

fn kinds(scene: &Scene) -> Vec<Line<'static>> {
    let row = |(kind, states): (&str, std::collections::BTreeMap<&str, usize>)| {
        let total: usize = states.values().sum();
        let mut spans = vec![Span::from(format!(" {:<KIND$}{total:>6}  ", scene::plural(kind)))];
        for (at, (state, count)) in states.iter().enumerate() {
            spans.push(Span::from(if at == 0 { "" } else { ", " }));
            spans.push(Span::styled(format!("{count} {state}"), mood(state)));
        }
        Line::from(spans)
    };
    scene.summary().into_iter().map(row).collect()
}

fn waits(scene: &Scene, width: usize) -> Vec<Line<'static>> {
    let waits = scene.waits();
    // The names have a column of their own, unless that leaves no room for the reasons.
    let longest = waits.iter().map(|(who, _)| who.chars().count()).max().unwrap_or_default();
    let column = longest.min(width / 3);
    let row = |(who, why): (String, &str)| {
        let who = shortened(&who, column);
        Line::from(vec![format!(" {who:<column$}  ").into(), why.to_owned().yellow()])
    };
    waits.into_iter().map(row).collect()
}

fn events(scene: &Scene, now: &Zoned) -> Vec<Line<'static>> {
    let row = |event: &scene::Happening| {
        let at = event.at.to_zoned(now.time_zone().clone()).strftime("%H:%M:%S").to_string();
        let reason = Span::styled(event.reason.clone(), if event.warning { mood("Failed") } else { Style::new() });
        Line::from(vec![format!(" {at}  {}  ", event.about).into(), reason, format!("  {}", event.note).dim()])
    };
    scene.events.iter().map(row).collect()
}

/// Colour follows the word; the word says all by itself.
fn mood(state: &str) -> Style {
    match state {
        "Ready" | "Running" | "Complete" | "Succeeded" | "Active" => Style::new().fg(Color::Green),
        "Failed" | "Error" | "Unknown" => Style::new().fg(Color::Red),
        "Stored" => Style::new(),
        _ => Style::new().fg(Color::Yellow),
    }
}

fn spoken(seconds: i64) -> String {
    match (seconds / 86_400, seconds / 3_600 % 24, seconds / 60 % 60) {
        (0, 0, 0) => format!("{seconds} s"),
        (0, 0, minutes) => format!("{minutes} min"),
        (0, hours, minutes) => format!("{hours} h {minutes} min"),
        (days, hours, _) => format!("{days} d {hours} h"),
    }
}

fn shortened(text: &str, width: usize) -> String {
    match text.chars().count() > width {
        true if width == 0 => String::new(),
        true => text.chars().take(width.saturating_sub(1)).chain(['…']).collect(),
        false => text.to_owned(),
    }
}

fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut().filter(|line| line.chars().count() + 1 + word.chars().count() <= width) {
            Some(line) => *line = format!("{line} {word}"),
            None => lines.push(word.to_owned()),
        }
    }
    lines
}

/// Ends a line that is too long with a mark.
fn cut(line: Line<'static>, width: usize) -> Line<'static> {
    if line.width() <= width {
        return line;
    }
    let mut left = width;
    let mut spans = Vec::new();
    for span in line.spans {
        let text = shortened(&span.content, left);
        left -= text.chars().count();
        spans.push(Span::styled(text, span.style));
        if left == 0 {
            break;
        }
    }
    Line::from(spans)
}

fn bare(line: Line<'static>) -> Line<'static> {
    let plain = |span: Span<'static>| {
        let strong = span.style.add_modifier & Modifier::BOLD;
        Span::styled(span.content, Style::new().add_modifier(strong))
    };
    Line::from(line.spans.into_iter().map(plain).collect::<Vec<_>>())
}

#[cfg(test)]
pub mod tests;
