// SPDX-License-Identifier: Apache-2.0
//! Columns for people.

use std::io::IsTerminal;

/// Lines under a heading, each column as wide as it must be. A line that does not fit the terminal is cut.
pub fn table<const N: usize>(heading: [&str; N], rows: &[[String; N]], right: &[usize]) -> String {
    let mut widths = heading.map(|word| word.chars().count());
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = cell.chars().count().max(*width);
        }
    }
    let line = |cells: &[String; N]| {
        let cells = cells.iter().zip(widths).enumerate().map(|(column, (cell, width))| match right.contains(&column) {
            true => format!("{cell:>width$}"),
            false => format!("{cell:<width$}"),
        });
        let line = cells.collect::<Vec<_>>().join("  ");
        cut(line.trim_end(), terminal()) + "\n"
    };
    std::iter::once(line(&heading.map(str::to_owned))).chain(rows.iter().map(line)).collect()
}

fn cut(line: &str, width: usize) -> String {
    if line.chars().count() <= width {
        return line.to_owned();
    }
    line.chars().take(width.saturating_sub(1)).chain(['…']).collect()
}

/// The columns of a terminal. A file or a pipe has no end.
fn terminal() -> usize {
    let size = std::io::stdout().is_terminal().then(|| crossterm::terminal::size().ok()).flatten();
    size.map_or(usize::MAX, |(columns, _)| columns.into())
}
