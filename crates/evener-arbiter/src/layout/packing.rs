//! Words that hold several things, as types. Any 32 bits can be read as each of them.

/// A permit that is free.
pub(crate) const FREE: u32 = 0;

/// Who has a permit: a place in one of its lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Owner {
    pub(crate) place: usize,
    /// Modulo 2^18.
    pub(crate) generation: u32,
}

impl Owner {
    pub(crate) const fn new(place: usize, generation: u32) -> Self {
        Self { place, generation: generation & GENERATIONS }
    }

    /// Never [`FREE`].
    #[expect(clippy::cast_possible_truncation, reason = "a place has 12 bits")]
    pub(crate) const fn word(self) -> u32 {
        self.generation << 14 | (self.place as u32 + 1)
    }

    /// None where the permit is free, or what the word says is no place of so many.
    pub(crate) const fn of(word: u32, places: usize) -> Option<Self> {
        let place = (word & 0x3FFF) as usize;
        if place == 0 || place > places {
            return None;
        }
        Some(Self { place: place - 1, generation: word >> 14 })
    }
}

/// A slot of a ring of waiters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slot {
    /// Of the position that it is of, modulo 2^18.
    pub(crate) lap: u32,
    pub(crate) kind: Kind,
}

/// What is in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Nothing yet.
    Empty,
    /// A place that waits.
    Waiting(usize),
    /// One that does so no longer.
    Gone,
}

impl Slot {
    #[expect(clippy::cast_possible_truncation, reason = "a place has 12 bits")]
    pub(crate) const fn word(self) -> u32 {
        let low = match self.kind {
            Kind::Empty => 0,
            Kind::Waiting(place) => 1 << 12 | (place as u32 & 0xFFF),
            Kind::Gone => 2 << 12,
        };
        self.lap << 14 | low
    }

    pub(crate) const fn of(word: u32) -> Self {
        let kind = match word >> 12 & 3 {
            0 => Kind::Empty,
            1 => Kind::Waiting((word & 0xFFF) as usize),
            _ => Kind::Gone,
        };
        Self { lap: word >> 14, kind }
    }

    pub(crate) const fn empty(lap: u32) -> Self {
        Self { lap: lap & GENERATIONS, kind: Kind::Empty }
    }

    pub(crate) const fn waiting(lap: u32, place: usize) -> Self {
        Self { lap: lap & GENERATIONS, kind: Kind::Waiting(place) }
    }

    pub(crate) const fn gone(lap: u32) -> Self {
        Self { lap: lap & GENERATIONS, kind: Kind::Gone }
    }

    /// Laps that it is ahead of `lap`, less than 2^17 either way.
    #[expect(clippy::cast_possible_wrap, reason = "the top bits are a sign")]
    pub(crate) const fn ahead_of(self, lap: u32) -> i32 {
        (self.lap.wrapping_sub(lap) << 14) as i32 >> 14
    }
}

/// What a place is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    Idle,
    /// It asks for a permit of a module, and may wait for it.
    Asking(usize),
    /// It has one.
    Holding(usize),
}

impl Phase {
    #[expect(clippy::cast_possible_truncation, reason = "there are 64 modules")]
    pub(crate) const fn word(self) -> u32 {
        match self {
            Self::Idle => 0,
            Self::Asking(module) => 1 << 8 | (module as u32 & 0xFF),
            Self::Holding(module) => 2 << 8 | (module as u32 & 0xFF),
        }
    }

    pub(crate) const fn of(word: u32) -> Self {
        match word >> 8 {
            1 => Self::Asking((word & 0xFF) as usize),
            2 => Self::Holding((word & 0xFF) as usize),
            _ => Self::Idle,
        }
    }
}

/// Generations and laps have 18 bits.
const GENERATIONS: u32 = (1 << 18) - 1;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goes_into_a_word_comes_out_of_it() {
        for (place, generation) in [(0, 0), (0, GENERATIONS), (4095, 1), (4095, GENERATIONS)] {
            let owner = Owner::new(place, generation);
            assert_ne!(owner.word(), FREE);
            assert_eq!(Owner::of(owner.word(), 4096), Some(owner));
            for slot in [Slot::empty(generation), Slot::waiting(generation, place), Slot::gone(generation)] {
                assert_eq!(Slot::of(slot.word()), slot);
            }
        }
        for phase in [Phase::Idle, Phase::Asking(63), Phase::Holding(0)] {
            assert_eq!(Phase::of(phase.word()), phase);
        }
        assert_eq!(Owner::of(FREE, 4096), None);
        assert_eq!(Owner::of(9, 8), None);
    }

    #[test]
    fn laps_are_compared_across_their_wrap() {
        assert_eq!(Slot::empty(0).ahead_of(GENERATIONS), 1);
        assert_eq!(Slot::empty(GENERATIONS).ahead_of(0), -1);
        assert_eq!(Slot::gone(7).ahead_of(7), 0);
    }
}
