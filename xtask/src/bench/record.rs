//! Writing a measurement into `docs/benchmarks.md`, between the marks of its benchmark.

use anyhow::{Context, Result};

use crate::files::{self, Mode};
use crate::output::{HintExt, Printer};
use crate::repository::Repository;

const END: &str = "<!-- end -->";

/// Replaces what stands between `<!-- bench NAME -->` and `<!-- end -->`.
pub(crate) fn record(name: &str, table: &str, printer: &Printer) -> Result<()> {
    let path = Repository::locate()?.root().join("docs/benchmarks.md");
    let page = files::read_if_there(&path)?.context("there is no docs/benchmarks.md")?;
    let written = between_marks(&page, name, table)
        .with_context(|| format!("docs/benchmarks.md has no place for `bench {name}`"))
        .hint(format!("put `<!-- bench {name} -->` and `{END}` on lines of their own"))?;
    files::write(&path, written.as_bytes(), Mode::Readable)?;
    printer.note("Wrote docs/benchmarks.md");
    Ok(())
}

fn between_marks(page: &str, name: &str, table: &str) -> Option<String> {
    let mark = format!("<!-- bench {name} -->\n");
    let start = page.find(&mark)? + mark.len();
    let end = start + page[start..].find(END)?;
    Some(format!("{}\n{}\n\n{}", &page[..start], table.trim(), &page[end..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "a\n<!-- bench one -->\nold\n<!-- end -->\nb\n<!-- bench two -->\n<!-- end -->\n";

    #[test]
    fn replaces_only_its_own_table() {
        let once = between_marks(PAGE, "one", "new").unwrap();
        assert_eq!(once, PAGE.replace("old\n", "\nnew\n\n"));
        assert_eq!(between_marks(&once, "one", "new").unwrap(), once);
    }

    #[test]
    fn finds_no_place_without_marks() {
        assert_eq!(between_marks(PAGE, "three", "new"), None);
    }
}
