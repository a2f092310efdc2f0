//! The commands that a page tells its reader to type, and what it shows of them.
//!
//! A fenced `sh` block is run by `sh -eu`, both outputs together; an `output` block behind it shows what is printed. In the latter `…` stands
//! for what varies in a line, alone in a line for any lines. Comments that a reader does not see come before a block:
//! `<!-- before: COMMANDS -->` makes what it needs, `<!-- needs: PROGRAM -->` skips it where that is not installed,
//! `<!-- not run: REASON -->` always.

/// A fenced block of shell commands, and what a reader is told of it.
#[derive(Debug, Default)]
pub struct Block {
    /// Line of the page at which it begins, from 1.
    pub line: usize,
    /// What a reader pastes.
    pub commands: String,
    /// What is to be printed, where the page says that.
    pub shows: Option<String>,
    /// Commands that make what it needs.
    pub before: String,
    /// Programs that it needs.
    pub needs: Vec<String>,
    /// Why tests leave it out.
    pub not_run: Option<String>,
}

impl Block {
    /// The blocks of a page in their order.
    #[must_use]
    pub fn all(page: &str) -> Vec<Self> {
        let mut blocks: Vec<Self> = Vec::new();
        let mut next = Self::default();
        let mut lines = page.lines().enumerate();
        while let Some((number, line)) = lines.next() {
            let says = |what: &str| {
                line.strip_prefix(&format!("<!-- {what}: "))?.strip_suffix(" -->").map(str::to_owned)
            };
            next.before.extend(says("before").map(|commands| commands + "\n"));
            next.needs.extend(says("needs"));
            next.not_run = says("not run").or(next.not_run);
            let Some(language) = line.strip_prefix("```") else { continue };
            let body: Vec<&str> =
                lines.by_ref().map(|(_, line)| line).take_while(|line| *line != "```").collect();
            let commands = body.join("\n");
            match (language, blocks.last_mut()) {
                ("sh", _) => {
                    blocks.push(Self { line: number + 1, commands, ..std::mem::take(&mut next) });
                }
                ("output", Some(block)) => block.shows = Some(commands),
                _ => {}
            }
        }
        blocks
    }

    /// Whether what was printed is what the page shows, if it shows anything.
    #[must_use]
    pub fn shows(&self, printed: &str) -> bool {
        self.shows.as_ref().is_none_or(|shown| is_shown(shown, printed))
    }
}

fn is_shown(shown: &str, printed: &str) -> bool {
    let shown: Vec<&str> = shown.lines().collect();
    let printed: Vec<&str> = printed.lines().collect();
    lines_match(&shown, &printed)
}

fn lines_match(shown: &[&str], printed: &[&str]) -> bool {
    match shown {
        [] => printed.is_empty(),
        ["…", rest @ ..] => (0..=printed.len()).any(|skip| lines_match(rest, &printed[skip..])),
        [first, rest @ ..] => printed
            .split_first()
            .is_some_and(|(line, others)| line_matches(first, line) && lines_match(rest, others)),
    }
}

fn line_matches(shown: &str, printed: &str) -> bool {
    let parts: Vec<&str> = shown.split('…').collect();
    let [first, middle @ .., last] = parts.as_slice() else { return shown.trim_end() == printed.trim_end() };
    let Some(mut rest) = printed.strip_prefix(first) else { return false };
    for part in middle {
        let Some((_, after)) = rest.split_once(part) else { return false };
        rest = after;
    }
    rest.trim_end().ends_with(last.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_is_compared_but_for_what_varies() {
        assert!(is_shown("a … c\n…\nz", "a b c\nd\ne\nz\n") && is_shown("…\nz", "z") && is_shown("", ""));
        assert!(
            !is_shown("a … c", "a b d")
                && !is_shown("a", "a\nb")
                && !is_shown("", "a")
                && !is_shown("a\n…\nz", "a\nb")
        );
    }

    #[test]
    fn a_block_has_what_is_said_before_it_and_shown_behind_it() {
        let page = "x\n<!-- not run: long -->\n```sh\na\nb\n```\n```output\nc\n```\n<!-- needs: p -->\n```sh\nd\n```\n";
        let blocks = Block::all(page);
        assert_eq!(blocks.len(), 2);
        assert_eq!((blocks[0].line, blocks[0].commands.as_str()), (3, "a\nb"));
        assert_eq!((blocks[0].shows.as_deref(), blocks[0].not_run.as_deref()), (Some("c"), Some("long")));
        assert_eq!((blocks[1].needs.as_slice(), blocks[1].not_run.as_deref()), (&["p".to_owned()][..], None));
        assert!(blocks[1].shows("anything") && !blocks[0].shows("anything"));
    }
}
