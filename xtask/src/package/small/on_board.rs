//! What a program that loads the module takes on a board: all of its resident pages, in the guest `armv7`, where every file lies in memory, so that the
//! kernel maps as much around each page that is touched as it ever does; and the instructions from its start to the end of its first message, by qemu-arm,
//! which is told to translate them one by one and to name each that it runs.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use evener_testbed::{Guest, Profile, Toolchain};

use crate::programs::answer;

/// Runs with the module and as many without; where a file's pages begin in the address space is chance, and with it how many come along.
const RUNS: usize = 15;
/// Assumed, not measured: beyond what a guest takes for them on a busy host.
const LIFE: Duration = Duration::from_secs(300);

/// KiB that the program has more with the module: the difference of medians.
pub(super) fn more_kib(toolchain: &Toolchain, module: &Path) -> Result<u64, String> {
    let folder = tempfile::tempdir().map_err(|error| format!("no folder: {error}"))?;
    let program = super::program(folder.path(), &toolchain.cc())?;
    let inside = Path::new("/payload/evener.so");
    let [without, with] = [false, true].map(|with| super::configuration(folder.path(), inside, with));
    let libraries = toolchain.root().join("usr").join(toolchain.gnu()).join("lib");
    let file = |path: &Path| std::fs::read(path).map_err(|error| super::with_path(path, &error));
    let builder = Guest::builder().profile(Profile::Armv7).limit(LIFE).program(program);
    let builder = builder.file("/payload/evener.so", file(module)?);
    let builder = builder.file("/lib/libgcc_s.so.1", file(&libraries.join("libgcc_s.so.1"))?);
    let builder = builder.file("/without.cnf", file(&without?)?).file("/with.cnf", file(&with?)?);
    let mut guest = builder.boot().map_err(|error| error.to_string())?;
    let script = format!(
        "for round in $(seq {RUNS}); do for with in without with; do \
         echo $with $(OPENSSL_CONF=/$with.cnf resident); done; done"
    );
    let outcome = guest.run(&script).map_err(|error| error.to_string())?;
    guest.shut_down().map_err(|error| error.to_string())?;
    let medians = ["without", "with"].map(|name| median(&outcome.stdout, name));
    let [Some(without), Some(with)] = medians else {
        return Err(format!("resident printed {:?} {:?}", outcome.stdout, outcome.stderr));
    };
    super::more(with, without, super::LEAST_KIB)
}

/// The median of the first numbers in lines that this word begins; `None` where there are fewer than [`RUNS`].
fn median(printed: &str, name: &str) -> Option<u64> {
    let number = |line: &str| {
        let mut words = line.split(' ');
        if words.next() == Some(name) { words.next()?.parse().ok() } else { None }
    };
    let mut numbers: Vec<u64> = printed.lines().filter_map(number).collect();
    numbers.sort_unstable();
    (numbers.len() == RUNS).then(|| numbers[RUNS / 2])
}

/// Instructions that the program runs more with the module.
pub(super) fn more_instructions(toolchain: &Toolchain, module: &Path) -> Result<u64, String> {
    let folder = tempfile::tempdir().map_err(|error| format!("no folder: {error}"))?;
    let program = super::program(folder.path(), &toolchain.cc())?;
    let emulation = toolchain.emulation("qemu-arm");
    let one_by_one = one_by_one()?;
    let count = |with: bool| {
        let mut shell = Command::new("sh");
        // The third descriptor is the pipe, for the program prints, too.
        shell.args(["-c", "\"$@\" 3>&1 >/dev/null | grep -c ^Trace", "sh"]).args(emulation.split(' '));
        shell.args([one_by_one, "-d", "exec,nochain", "-D", "/dev/fd/3"]).arg(&program);
        super::under(&mut shell, &super::configuration(folder.path(), module, with)?);
        let text = answer(shell)?;
        text.trim().parse::<u64>().map_err(|_| format!("qemu-arm named {text:?} instructions"))
    };
    super::more(count(true)?, count(false)?, super::LEAST_INSTRUCTIONS)
}

/// By which option qemu translates one instruction at a time: QEMU 8.1 gave it another name, and 9 knows no other.
fn one_by_one() -> Result<&'static str, String> {
    let mut help = Command::new("qemu-arm");
    help.arg("-help");
    let text = answer(help).map_err(|reason| format!("qemu-arm (Debian: qemu-user): {reason}"))?;
    Ok(if text.contains("one-insn-per-tb") { "-one-insn-per-tb" } else { "-singlestep" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_median_is_of_all_runs_of_its_name() {
        let line = |number: usize| format!("with {number} 7\nwithout 1 1\n");
        let all: String = (1..=RUNS).map(line).collect();
        assert_eq!(median(&all, "with"), Some(RUNS as u64 / 2 + 1));
        assert_eq!(median(&all, "neither"), None);
        let all_but_one: String = (2..=RUNS).map(line).collect();
        assert_eq!(median(&all_but_one, "with"), None);
    }
}
