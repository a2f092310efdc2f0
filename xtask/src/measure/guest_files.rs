//! `cargo xtask guest files`: what a byte of a file takes in instructions, by Evener and by age, on ARM's processors.
//!
//! Steps: a guest of each profile whose clock counts instructions, with `evener` as it is released and Debian's own `age` -> each
//! encrypts and decrypts a small file and a large one ([`SCRIPT`]); what a process does once is in both, so that their difference is
//! of the bytes alone ([`Taken`]) -> a table of medians.

use std::path::PathBuf;
use std::time::Duration;

use evener_testbed::{Guest, Icount, Profile};

use super::papers::built_for;

/// The profiles by the names of their rows.
const PROFILES: [(&str, Profile); 2] = [("armv7", Profile::Armv7), ("aarch64", Profile::Aarch64)];
const WAYS: [&str; 2] = ["encrypt", "decrypt"];

/// MiB of the two files.
const SMALL: u64 = 1;
const LARGE: u64 = 17;

/// What evener may take of age's instructions.
const ASKED: f64 = 0.9;

const NANOSECONDS_PER_INSTRUCTION: u64 = 1 << Icount::NEAR_AM3358.shift;
/// Assumed, not measured: beyond what ten rounds take on a busy host.
const LIFE: Duration = Duration::from_secs(1_800);
const MEMORY_MIB: u32 = 1_024;

/// Prints `WHO WAY MIB NANOSECONDS` for each step. The kernel's clock by its own list of timers: nothing of busybox's shows
/// nanoseconds. Both must understand what the other wrote.
const SCRIPT: &str = r#"
set -e
export HOME=/tmp EVENER_CACHE_DIR=/tmp/costs
now() { sed -n '/^now at/{s/[^0-9]//g;p;q}' /proc/timer_list; }
cd /tmp
age-keygen -o key 2>/dev/null
to=$(age-keygen -y key)
for mib in SIZES; do dd if=/dev/urandom of=plain.$mib bs=1M count=$mib 2>/dev/null; done
for round in $(seq ROUNDS); do
    for mib in SIZES; do
        rm -f of.*
        a=$(now); age -r $to -o of.age plain.$mib
        b=$(now); evener encrypt --quiet -r $to -o of.evener plain.$mib
        c=$(now); age -d -i key -o of.plain of.evener
        d=$(now); evener decrypt --quiet -i key -o of.plain.too of.age
        e=$(now); cmp of.plain plain.$mib; cmp of.plain.too plain.$mib
        echo "age encrypt $mib $((b - a))"
        echo "evener encrypt $mib $((c - b))"
        echo "age decrypt $mib $((d - c))"
        echo "evener decrypt $mib $((e - d))"
    done
done
"#;

/// Measures in both guests and prints the table.
///
/// # Errors
///
/// Where something does not build or cannot be fetched, or a guest or a command in it fails.
pub(crate) fn measure(rounds: &str) -> Result<(), String> {
    let mut table =
        "| guest | | age | evener | evener / age | asked |\n|---|---|---|---|---|---|\n".to_owned();
    for (name, profile) in PROFILES {
        let taken = Taken::read(&printed(profile, rounds)?);
        for way in WAYS {
            table += &taken.row(name, way).ok_or_else(|| format!("{name}: a step is missing"))?;
        }
    }
    print!("Instructions a byte, medians of {rounds} rounds:\n\n{table}");
    Ok(())
}

fn printed(profile: Profile, rounds: &str) -> Result<String, String> {
    let age = evener_testbed::package(profile, "age").map_err(|error| error.to_string())?;
    let program = |name: &str| -> PathBuf { age.join("usr/bin").join(name) };
    let builder =
        Guest::builder().profile(profile).icount(Icount::NEAR_AM3358).memory_mib(MEMORY_MIB).limit(LIFE);
    let builder = builder.program(built_for(profile)?).program(program("age")).program(program("age-keygen"));
    let mut guest = builder.boot().map_err(|error| error.to_string())?;
    let script = SCRIPT.replace("SIZES", &format!("{SMALL} {LARGE}")).replace("ROUNDS", rounds);
    let outcome = guest.run(&script).map_err(|error| error.to_string())?;
    guest.shut_down().map_err(|error| error.to_string())?;
    match outcome.status {
        0 => Ok(outcome.stdout),
        status => Err(format!("status {status} in the guest\n{}", outcome.stderr)),
    }
}

/// Lines of the script: who, which way, MiB, nanoseconds.
struct Taken(Vec<(String, String, u64, u64)>);

impl Taken {
    fn read(text: &str) -> Self {
        let line = |line: &str| {
            let mut words = line.split(' ').map(str::to_owned);
            let (who, way) = (words.next()?, words.next()?);
            let mut numbers = words.map_while(|word| word.parse().ok());
            Some((who, way, numbers.next()?, numbers.next()?))
        };
        Self(text.lines().filter_map(line).collect())
    }

    fn row(&self, guest: &str, way: &str) -> Option<String> {
        let (age, evener) = (self.of_a_byte("age", way)?, self.of_a_byte("evener", way)?);
        Some(format!("| {guest} | {way} | {age:.1} | {evener:.1} | {:.2} | {ASKED} |\n", evener / age))
    }

    /// Instructions of a byte: what the large file took more than the small one.
    fn of_a_byte(&self, who: &str, way: &str) -> Option<f64> {
        let [small, large] = [SMALL, LARGE].map(|mib| self.median(who, way, mib));
        let (small, large) = (small?, large?);
        let bytes = (LARGE - SMALL) << 20;
        #[allow(clippy::cast_precision_loss, reason = "far below 2^53")]
        let of = |count: u64| count as f64;
        Some(of(large.saturating_sub(small) / NANOSECONDS_PER_INSTRUCTION) / of(bytes))
    }

    fn median(&self, who: &str, way: &str, mib: u64) -> Option<u64> {
        let is_asked = |row: &&(String, String, u64, u64)| (&*row.0, &*row.1, row.2) == (who, way, mib);
        let mut all: Vec<u64> = self.0.iter().filter(is_asked).map(|row| row.3).collect();
        all.sort_unstable();
        all.get(all.len() / 2).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::Taken;

    #[test]
    fn a_byte_takes_what_the_large_file_took_more_than_the_small_one() {
        let mib = 1_u64 << 20;
        let text = format!(
            "noise\nage encrypt 1 {}\nage encrypt 17 {}\nevener encrypt 1 7\nevener encrypt 17 {}\n",
            1_000 + 2 * mib,
            1_000 + 2 * mib + 2 * 16 * mib * 50,
            7 + 2 * 16 * mib * 10
        );
        let taken = Taken::read(&text);
        assert_eq!(
            taken.row("armv7", "encrypt").as_deref(),
            Some("| armv7 | encrypt | 50.0 | 10.0 | 0.20 | 0.9 |\n")
        );
        assert_eq!(taken.row("armv7", "decrypt"), None);
    }

    #[test]
    fn a_round_that_strays_is_not_the_median() {
        let taken = Taken::read("age encrypt 1 5\nage encrypt 1 900\nage encrypt 1 6\n");
        assert_eq!(taken.median("age", "encrypt", 1), Some(6));
    }
}
