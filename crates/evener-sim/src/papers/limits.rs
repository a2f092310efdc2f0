//! What of the papers is not reproduced here, and why: nothing of it may be claimed.

/// A part of a paper that no model here predicts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotReproduced {
    /// Paper: `000` to `004`.
    pub paper: &'static str,
    /// Which cells, columns or figures.
    pub what: &'static str,
    /// Why not.
    pub why: &'static str,
}

/// Everything that is not reproduced.
#[must_use]
pub fn not_reproduced() -> &'static [NotReproduced] {
    NOT_REPRODUCED
}

const NOT_REPRODUCED: &[NotReproduced] = &[
    NotReproduced {
        paper: "001",
        what: "every number",
        why: "figure 7 has no values in the text; slots, the shape of throughput and that a crossover can exist are \
              modelled, and the place of the crossover is put in",
    },
    NotReproduced {
        paper: "002",
        what: "polling, in numbers (table 2 and table 3)",
        why: "how the monitor waits and wakes is not described; the event model misses its times by 22 % on average",
    },
    NotReproduced {
        paper: "002",
        what: "figure 11, CPU only and proposed between 1500 and 3500 B",
        why: "the text gives no values; the crossover in it cannot be decided from table 2 either",
    },
    NotReproduced { paper: "002", what: "figure A.3, decryption", why: "the text gives no values" },
    NotReproduced {
        paper: "003",
        what: "every number of table 1",
        why: "server, network and cipher suite are not stated, and the difference of 322 ns/B between both ways cannot \
              come from paper 002's costs, where it is 34 to 50 ns/B; only the sign at each size and the two sizes \
              between which it changes can be said",
    },
    NotReproduced {
        paper: "004",
        what: "Mars, with one process and with six",
        why: "a framework of others, whose scheduler the paper does not describe; with six processes it gets seven times \
              as fast from 256 to 1024 B",
    },
    NotReproduced {
        paper: "004",
        what: "the main processor alone (PPE)",
        why: "a library on one core with two threads: nothing of the proposal is in it",
    },
    NotReproduced {
        paper: "004",
        what: "Core2Duo",
        why: "another machine without the proposal, quoted for comparison",
    },
    NotReproduced {
        paper: "004",
        what: "the one-process columns of the proposal",
        why: "they are the model's input; in CBC a call of 256 B takes 29.85 us, longer than one of 1024 B, which no \
              smooth cost explains",
    },
    NotReproduced {
        paper: "004",
        what: "figure 8, two to five processes",
        why: "the text gives no values; the model's curve flattens at 8192 B where the text says linear, and at the two \
              ends, which the tables give, it is not linear",
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::papers::table::SEED004_TABLE3;

    fn reason(paper: &str, words: &str) -> &'static str {
        let named = |part: &&NotReproduced| part.paper == paper && part.what.contains(words);
        not_reproduced().iter().find(named).unwrap().why
    }

    #[test]
    fn everything_that_has_no_values_or_no_model_is_named() {
        let parts = [
            ("001", "every number"),
            ("002", "polling"),
            ("002", "figure 11"),
            ("002", "figure A.3"),
            ("003", "every number"),
            ("004", "Mars"),
            ("004", "PPE"),
            ("004", "Core2Duo"),
            ("004", "figure 8"),
        ];
        for (paper, words) in parts {
            assert!(!reason(paper, words).is_empty(), "{paper} {words}");
        }
    }

    #[test]
    fn the_numbers_among_the_reasons_are_those_of_the_tables() {
        let call_us = |row: usize| {
            let column = |name| SEED004_TABLE3.numbers(name).unwrap()[row];
            8.0 * column("data_size_bytes") / column("proposed_mbps")
        };
        assert!(reason("004", "one-process").contains(&format!("{:.2} us", call_us(2))));
        assert!(call_us(2) > call_us(3));
        let [with, without] = crate::papers::android::Uploads::printed().unwrap().lines;
        let slope = format!("{:.0} ns/B between", (without.ms_per_byte - with.ms_per_byte) * 1e6);
        assert!(reason("003", "every number").contains(&slope), "{slope}");
    }
}
