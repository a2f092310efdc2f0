//! Rust text without what is not code.

/// `source` with comments blanked and each literal reduced to its first quote; lines stay where they are.
pub(crate) fn code_only(source: &str) -> String {
    let mut code = String::with_capacity(source.len());
    let mut rest = source;
    let mut before = ' ';
    while let Some(first) = rest.chars().next() {
        let quiet_bytes = quiet(rest, before);
        let taken = &rest[..quiet_bytes.max(first.len_utf8())];
        match quiet_bytes {
            0 => code.push(first),
            _ => blank(taken, &mut code),
        }
        before = first;
        rest = &rest[taken.len()..];
    }
    code
}

/// Whether `word` stands in `code` as a word of its own.
pub(crate) fn has_word(code: &str, word: &str) -> bool {
    code.split(|c: char| !is_word(c)).any(|part| part == word)
}

pub(crate) fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn blank(taken: &str, code: &mut String) {
    if !taken.starts_with('/') {
        code.push('"');
    }
    code.extend(taken.chars().map(|c| if c == '\n' { '\n' } else { ' ' }));
}

/// Length of the comment or literal that `rest` starts with, 0 where it starts with code.
fn quiet(rest: &str, before: char) -> usize {
    if rest.starts_with("//") {
        return rest.find('\n').unwrap_or(rest.len());
    }
    if rest.starts_with("/*") {
        return block_comment(rest);
    }
    if let Some(string) = rest.strip_prefix('"') {
        return 1 + up_to_quote(string, '"');
    }
    if rest.starts_with('\'') {
        return char_literal(rest);
    }
    if is_word(before) { 0 } else { raw_string(rest) }
}

fn block_comment(rest: &str) -> usize {
    let mut depth = 0_usize;
    let mut at = 0;
    while at < rest.len() {
        match rest.as_bytes().get(at..at + 2) {
            Some(b"/*") => (depth, at) = (depth + 1, at + 2),
            Some(b"*/") => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            return at;
        }
    }
    rest.len()
}

/// Bytes up to and with the next `quote` that no backslash escapes.
fn up_to_quote(rest: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in rest.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            c if c == quote => return at + 1,
            _ => {}
        }
    }
    rest.len()
}

/// Tells `'x'` and `'\n'` from a lifetime.
fn char_literal(rest: &str) -> usize {
    let mut after = rest[1..].char_indices();
    let (first, second) = (after.next(), after.next());
    match (first, second) {
        (Some((_, '\\')), _) => 1 + up_to_quote(&rest[1..], '\''),
        (Some(_), Some((at, '\''))) => at + 2,
        _ => 0,
    }
}

fn raw_string(rest: &str) -> usize {
    let after = rest.strip_prefix(['b', 'c']).unwrap_or(rest);
    let Some(after) = after.strip_prefix('r') else { return 0 };
    let hashes = after.bytes().take_while(|&byte| byte == b'#').count();
    let Some(body) = after[hashes..].strip_prefix('"') else { return 0 };
    let end = format!("\"{}", "#".repeat(hashes));
    let body_bytes = body.find(&end).map_or(body.len(), |at| at + end.len());
    rest.len() - body.len() + body_bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words_in(source: &str) -> Vec<String> {
        let code = code_only(source);
        assert_eq!(code.lines().count(), source.lines().count(), "lines moved: {code}");
        code.split(|c| !is_word(c)).filter(|word| !word.is_empty()).map(str::to_owned).collect()
    }

    #[test]
    fn comments_and_literals_are_no_code() {
        assert_eq!(words_in("a // b\nc /* d /* e */ f */ g"), ["a", "c", "g"]);
        assert_eq!(words_in(r#"a "b \" c" d"#), ["a", "d"]);
        assert_eq!(words_in("a r#\"b \" c\"# d br\"e\\\" f"), ["a", "d", "f"]);
        assert_eq!(words_in("a 'b' c '\\'' d '\"' e"), ["a", "c", "d", "e"]);
        assert_eq!(words_in("/// unsafe\nfn a() {\n    let b = \"x\n y\";\n}"), ["fn", "a", "let", "b"]);
    }

    #[test]
    fn a_lifetime_does_not_open_a_literal() {
        assert_eq!(words_in("fn a<'m>(b: &'m u8) -> Job<'_> { unsafe {} }").last().unwrap(), "unsafe");
    }

    #[test]
    fn an_open_end_ends_with_the_text() {
        assert_eq!(words_in("a \"b"), ["a"]);
        assert_eq!(words_in("a /* b"), ["a"]);
        assert_eq!(words_in("a r#\"b\""), ["a"]);
    }

    #[test]
    fn a_word_is_found_only_whole() {
        assert!(has_word("{ unsafe { x } }", "unsafe"));
        assert!(!has_word("#![forbid(unsafe_code)]", "unsafe"));
    }
}
