// SPDX-License-Identifier: Apache-2.0
//! Links between the Markdown files.

use std::path::Path;

use super::{Text, has_extension};

/// Links in a Markdown file that point to nothing below `root`.
pub fn broken(file: &Text, root: &Path) -> Vec<String> {
    if !has_extension(&file.path, &["md"]) {
        return Vec::new();
    }
    let folder = root.join(&file.path).parent().map(Path::to_path_buf).unwrap_or_default();
    let missing = |target: &&str| !folder.join(target).exists();
    targets(&file.text).filter(missing).map(|target| format!("{}: no file {target}", file.path.display())).collect()
}

/// The files that links and images name, without what is on the web or in the same page.
fn targets(text: &str) -> impl Iterator<Item = &str> {
    let mut fenced = false;
    let prose = text.lines().filter(move |line| {
        let fence = line.trim_start().starts_with("```");
        fenced ^= fence;
        !fenced && !fence
    });
    // Every other piece between backticks is code.
    let prose = prose.flat_map(|line| line.split('`').step_by(2));
    let links = prose.flat_map(|line| line.split("](").skip(1)).filter_map(|rest| rest.split([')', ' ']).next());
    let files = links.map(|link| link.split('#').next().unwrap_or(link));
    files.filter(|link| !link.is_empty() && !link.contains("://") && !link.starts_with("mailto:"))
}

#[cfg(test)]
mod tests {
    use super::{super::Text, broken, targets};

    #[test]
    fn links_to_files_are_found() {
        let text = "See [a](a.md#top), ![b](img/b.png \"B\"), [c](https://c.example/x) and [d](#d).\n\
                    ```\n[e](e.md)\n```\nNot `[f](f.md)`, but [g](../g.md)\n[h](mailto:h@i.example)";
        assert_eq!(targets(text).collect::<Vec<_>>(), ["a.md", "img/b.png", "../g.md"]);
    }

    #[test]
    fn a_link_to_nothing_is_broken() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("docs")).unwrap();
        std::fs::write(root.path().join("here.md"), "").unwrap();
        let file = Text { path: "docs/page.md".into(), text: "[x](../here.md) [y](gone.md)".into() };
        assert_eq!(broken(&file, root.path()), ["docs/page.md: no file gone.md"]);
    }
}
