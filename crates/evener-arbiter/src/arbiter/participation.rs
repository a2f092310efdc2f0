//! Whether a process takes turns at modules among those of its user, as people write it.

use std::str::FromStr;

use crate::gate::WEIGHT_MAX;

/// Whether a process takes part: `off`, `on`, or with a weight from 1 to [`WEIGHT_MAX`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Participation {
    /// It knows of no other process.
    Off,
    /// It has so many requests for each one of another that waits.
    Weight(u32),
}

/// As one of all.
impl Default for Participation {
    fn default() -> Self {
        Self::Weight(1)
    }
}

impl FromStr for Participation {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        match text {
            "off" => Ok(Self::Off),
            "on" => Ok(Self::default()),
            number => {
                let weight = number.parse().ok().filter(|weight| (1..=WEIGHT_MAX).contains(weight));
                weight.map(Self::Weight).ok_or(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_stays_out_or_takes_part_with_a_weight_that_the_segment_has_space_for() {
        let read = |text: &str| text.parse::<Participation>();
        assert_eq!([read("off"), read("on")], [Ok(Participation::Off), Ok(Participation::Weight(1))]);
        assert_eq!([read("1"), read("64")], [1, 64].map(|weight| Ok(Participation::Weight(weight))));
        assert!(["0", "65", "-1", "", "auto", "3.5"].into_iter().all(|text| read(text).is_err()));
    }
}
