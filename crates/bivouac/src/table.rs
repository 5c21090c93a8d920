// SPDX-License-Identifier: Apache-2.0
//! Columns for people.

use std::io::IsTerminal;

/// Lines under a heading, each column as wide as it must be; one in which nothing stands is left out. The columns of
/// `right` end together. A line that is longer than `most` is cut, and ends in an ellipsis then.
pub fn table<const N: usize>(heading: [&str; N], rows: &[[String; N]], right: &[usize], most: usize) -> String {
    let mut widths = heading.map(|word| word.chars().count());
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = cell.chars().count().max(*width);
        }
    }
    let line = |cells: &[String; N]| {
        let cells = cells.iter().zip(widths).enumerate().filter(|(_, (_, width))| *width > 0);
        let cells = cells.map(|(column, (cell, width))| match right.contains(&column) {
            true => format!("{cell:>width$}"),
            false => format!("{cell:<width$}"),
        });
        let line = cells.collect::<Vec<_>>().join("  ");
        cut(line.trim_end(), most) + "\n"
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
pub fn terminal() -> usize {
    let size = std::io::stdout().is_terminal().then(|| crossterm::terminal::size().ok()).flatten();
    size.map_or(usize::MAX, |(columns, _)| columns.into())
}
