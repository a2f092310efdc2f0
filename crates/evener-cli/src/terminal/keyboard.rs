//! Keys as a terminal sends them: bytes in, [`Key`]s out. Sequences may come in pieces.

/// A key that means something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Key {
    Quit,
    Help,
    Escape,
    Up,
    Down,
    Sort,
    Pause,
}

/// Where in a sequence the last byte stood.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Decoder {
    #[default]
    Ground,
    /// Behind ESC.
    Escape,
    /// Behind `ESC [`, which ends with the first byte from `@` to `~`.
    Sequence,
    /// Behind `ESC O`, which one byte ends.
    Single,
}

impl Decoder {
    /// The keys in `bytes`. An ESC at their end counts as the key of that name: a terminal sends a sequence in one piece; what
    /// comes behind it is still read as the rest of a sequence.
    pub(crate) fn keys(&mut self, bytes: &[u8]) -> Vec<Key> {
        let mut keys: Vec<Key> = bytes.iter().filter_map(|byte| self.key(*byte)).collect();
        if *self == Self::Escape {
            keys.push(Key::Escape);
        }
        keys
    }

    fn key(&mut self, byte: u8) -> Option<Key> {
        match (std::mem::take(self), byte) {
            (_, 0x1b) => {
                *self = Self::Escape;
                None
            }
            (Self::Escape, b'[') => {
                *self = Self::Sequence;
                None
            }
            (Self::Escape, b'O') => {
                *self = Self::Single;
                None
            }
            (Self::Sequence, b'0'..=b'?') => {
                *self = Self::Sequence;
                None
            }
            (Self::Sequence | Self::Single, b'A') => Some(Key::Up),
            (Self::Sequence | Self::Single, b'B') => Some(Key::Down),
            (Self::Sequence | Self::Single, _) => None,
            (Self::Escape | Self::Ground, byte) => letter(byte),
        }
    }
}

const fn letter(byte: u8) -> Option<Key> {
    match byte {
        b'q' | b'Q' => Some(Key::Quit),
        b'h' | b'H' | b'?' => Some(Key::Help),
        b'k' => Some(Key::Up),
        b'j' => Some(Key::Down),
        b's' => Some(Key::Sort),
        b'p' => Some(Key::Pause),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(pieces: &[&[u8]]) -> Vec<Key> {
        let mut decoder = Decoder::default();
        pieces.iter().flat_map(|piece| decoder.keys(piece)).collect()
    }

    #[test]
    fn arrows_are_understood_in_both_notations_and_with_modifiers() {
        let pressed = keys(&[b"\x1b[A\x1bOB\x1b[1;5Aj?"]);
        assert_eq!(pressed, [Key::Up, Key::Down, Key::Up, Key::Down, Key::Help]);
    }

    #[test]
    fn a_sequence_that_means_nothing_presses_no_key_of_its_letters() {
        assert_eq!(keys(&[b"\x1b[15~\x1b[200~\x1b[q\x1bOs\x00\xffx"]), []);
        assert_eq!(keys(&[b"\x1b[1", b";5q", b"p"]), [Key::Pause]);
        assert_eq!(keys(&[b"\x1b", b"q"]), [Key::Escape, Key::Quit]);
    }
}
