//! How people misspell keys. The core answers a query for one key and lists none, so a key that no provider reads can
//! only be found by asking for it.
//!
//! Path: a table is made when this is compiled -> all of it is one query ([`all`]; `mod.rs`) -> what the
//! section has of it is reported with the key that was [`intended_key`] it.

use std::ffi::CStr;

use super::KEYS;

/// Space for a key with a typo and the nul behind it.
const ROOM: usize = 16;

/// A key that is none.
#[derive(Clone, Copy)]
struct Typo {
    text: [u8; ROOM],
    /// Which of [`KEYS`] was meant.
    meant: usize,
}

/// What goes wrong with a key.
#[derive(Clone, Copy)]
enum TypoKind {
    /// The letter at a place is missing.
    LeftOut(usize),
    /// It comes twice.
    Doubled(usize),
    /// It comes after the next one.
    Late(usize),
    Capitals,
    Plural,
}

/// How many there are at most.
pub(super) const COUNT: usize = count();

static TABLE: [Typo; COUNT] = table();

/// Of each row of the table, measured when this is compiled and not in each program that starts; empty where the table has left one out.
static NAMES: [&CStr; COUNT] = names();

/// Every misspelling that is looked for; none is a key.
pub(super) fn all() -> impl Iterator<Item = &'static CStr> {
    NAMES.iter().copied().filter(|name| !name.is_empty())
}

/// The key that was meant by `name`, if that is such a misspelling.
pub(super) fn intended_key(name: &CStr) -> Option<&'static CStr> {
    let at = NAMES.iter().position(|typo| *typo == name && !name.is_empty())?;
    Some(KEYS[TABLE[at].meant].name)
}

const fn names() -> [&'static CStr; COUNT] {
    let (mut names, mut at) = ([c""; COUNT], 0);
    while at < names.len() {
        if let Ok(name) = CStr::from_bytes_until_nul(&TABLE[at].text) {
            names[at] = name;
        }
        at += 1;
    }
    names
}

const fn count() -> usize {
    let (mut count, mut key) = (0, 0);
    while key < KEYS.len() {
        count += slips(KEYS[key].name.to_bytes().len());
        key += 1;
    }
    count
}

/// How many misspellings of a key so long there are.
const fn slips(letters: usize) -> usize {
    3 * letters + 1
}

const fn slip(letters: usize, number: usize) -> TypoKind {
    let at = number / 3;
    match number % 3 {
        0 if at == letters => TypoKind::Capitals,
        0 => TypoKind::LeftOut(at),
        1 => TypoKind::Doubled(at),
        // Nothing comes after the last.
        _ if at + 1 == letters => TypoKind::Plural,
        _ => TypoKind::Late(at),
    }
}

const fn table() -> [Typo; COUNT] {
    let mut table = [Typo { text: [0; ROOM], meant: 0 }; COUNT];
    let (mut next, mut meant) = (0, 0);
    while meant < KEYS.len() {
        let name = KEYS[meant].name.to_bytes();
        let mut number = 0;
        while number < slips(name.len()) {
            let text = spelt(name, slip(name.len(), number));
            if !is_used(&text) {
                table[next] = Typo { text, meant };
            }
            number += 1;
            next += 1;
        }
        meant += 1;
    }
    table
}

/// Whether it is another key, or OpenSSL's own in the same section, which is no misspelling of `modules`. Asked here and not of each program that starts.
const fn is_used(text: &[u8; ROOM]) -> bool {
    let (mut is_used, mut key) = (is(text, b"module"), 0);
    while key < KEYS.len() {
        is_used |= is(text, KEYS[key].name.to_bytes());
        key += 1;
    }
    is_used
}

const fn is(text: &[u8; ROOM], name: &[u8]) -> bool {
    let mut at = 0;
    while at < name.len() && text[at] == name[at] {
        at += 1;
    }
    at == name.len() && text[at] == 0
}

/// `name` as it comes out.
const fn spelt(name: &[u8], slip: TypoKind) -> [u8; ROOM] {
    let (mut text, mut from, mut to) = ([0; ROOM], 0, 0);
    while from < name.len() {
        let letter = name[from];
        match slip {
            TypoKind::LeftOut(at) if at == from => {
                from += 1;
                continue;
            }
            TypoKind::Doubled(at) if at == from => {
                text[to] = letter;
                to += 1;
                text[to] = letter;
            }
            TypoKind::Late(at) if at == from => text[to] = name[from + 1],
            TypoKind::Late(at) if at + 1 == from => text[to] = name[at],
            TypoKind::Capitals => text[to] = letter.to_ascii_uppercase(),
            _ => text[to] = letter,
        }
        from += 1;
        to += 1;
    }
    if let TypoKind::Plural = slip {
        text[to] = b's';
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_missed_by_a_letter_by_capitals_and_by_an_s() {
        let names: Vec<&str> = all().map(|name| name.to_str().unwrap()).collect();
        let meant = |text: &CStr| intended_key(text).map(|name| name.to_str().unwrap());
        for (slip, key) in [
            (c"tread", None),
            (c"treads", Some("threads")),
            (c"hreads", Some("threads")),
            (c"thread", Some("threads")),
            (c"threadss", Some("threads")),
            (c"tthreads", Some("threads")),
            (c"htreads", Some("threads")),
            (c"threasd", Some("threads")),
            (c"THREADS", Some("threads")),
            (c"guards", Some("guard")),
            (c"statistiscs", None),
            (c"moduls", Some("modules")),
            (c"module", None),
        ] {
            assert_eq!(meant(slip), key, "{slip:?}");
            assert_eq!(names.contains(&slip.to_str().unwrap()), key.is_some(), "{slip:?}");
        }
        assert!(KEYS.iter().all(|key| !names.contains(&key.name.to_str().unwrap())));
        assert!(names.len() > 140, "{}", names.len());
    }
}
