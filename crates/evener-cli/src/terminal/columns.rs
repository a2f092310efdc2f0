//! Text in columns of a terminal: cut or filled to a width, whatever it holds.

use unicode_width::UnicodeWidthChar as _;

/// `text` in exactly `width` columns: cut where it is longer, filled with spaces where it is shorter. Whatever has no width of its
/// own (control characters, marks that change the direction of writing, accents without a letter) becomes a question mark, and so
/// does U+FFFD, for terminals differ in what they make of it: no text moves the cursor or its neighbours.
pub(crate) fn fit(text: &str, width: usize) -> String {
    let mut fitted = String::with_capacity(width);
    let mut used = 0;
    for character in text.chars() {
        let (character, columns) = match character.width() {
            Some(columns @ 1..) if character != char::REPLACEMENT_CHARACTER => (character, columns),
            _ => ('?', 1),
        };
        if used + columns > width {
            break;
        }
        fitted.push(character);
        used += columns;
    }
    fitted.extend(std::iter::repeat_n(' ', width - used));
    fitted
}

/// `text` without what has no width of its own, as [`fit`] has it, and not filled.
pub(crate) fn plain(text: &str) -> String {
    fit(text, text.chars().count() * 2).trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_takes_the_columns_that_it_is_given_whatever_it_holds() {
        assert_eq!(fit("abc", 5), "abc  ");
        assert_eq!(fit("abcdef", 3), "abc");
        assert_eq!(fit("日本語", 5), "日本 ");
        assert_eq!(fit("a\u{1b}[2J\u{202e}\u{fffd}", 8), "a?[2J?? ");
        assert_eq!(fit("x", 0), "");
        assert_eq!(plain("日\u{200b}x"), "日?x");
    }
}
