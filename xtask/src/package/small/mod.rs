//! `cargo xtask small`: command and module for boards, and what they may take: bytes, memory, instructions until the first message.
//!
//! Path: the board's tool chain with the sources of its standard library -> both built by the profile `small`, the library with them, for that which
//! comes compiled is half as large as all of ours: it can print backtraces, and is no Thumb code -> sizes without symbols, held to
//! [`Limits`] -> resident memory of a program with the module and without, on an emulated board ([`on_board`]) -> on this machine also memory of its
//! own. What runs first lies together in the module ([`early`]).

mod early;
mod musl;
mod on_board;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use evener_testbed::{Profile, Toolchain};

use super::{finish, stripped_size, with_path};
use crate::programs::{MODULE, answer, built_library, built_linked, built_small_command, run};
use crate::tree::{cargo, root};

/// What the two files may take.
struct Limits {
    module_bytes: u64,
    command_bytes: u64,
}

const ARMV7: Limits = Limits { module_bytes: 700_000, command_bytes: 3_000_000 };

/// What a program has more with the module: KiB of resident memory, and KiB that no other process has.
const RESIDENT_KIB_MAX: u64 = 600;
const OWN_KIB_MAX: u64 = 600;
/// And instructions from its start to the end of the first message: 1 ms of a core at 1 GHz.
const START_INSTRUCTIONS_MAX: u64 = 1_000_000;

/// A program that has loaded the module has more than so much more of each: a fifth and a tenth of what was measured.
const LEAST_KIB: u64 = 100;
const LEAST_INSTRUCTIONS: u64 = 100_000;

/// Relocations in a form that is a tenth as long and quicker to do: C libraries know it from glibc 2.36 and musl 1.2.4 on.
const PACKED: &str = "-C link-arg=-Wl,-z,pack-relative-relocs";

pub(crate) fn small() -> std::process::ExitCode {
    finish("small", measured())
}

/// Makes the script anew by which the module for boards is linked.
pub(crate) fn small_early() -> std::process::ExitCode {
    finish("small", toolchain().and_then(|toolchain| early::write(&toolchain, for_board(&toolchain, THUMB))))
}

fn toolchain() -> Result<Toolchain, String> {
    let toolchain = Toolchain::fetch(Profile::Armv7).and_then(Toolchain::with_sources);
    toolchain.map_err(|error| format!("no tool chain for boards: {error}"))
}

/// Code of half the length, which every ARMv7 has.
const THUMB: &str = "+thumb-mode";

/// A line for each figure; an error where one is over its limit.
fn measured() -> Result<String, String> {
    let toolchain = toolchain()?;
    let mut figures = on_arm(&toolchain)?;
    let mut note = String::new();
    match musl::module_bytes(&toolchain) {
        Ok(is) => {
            figures.push(Figure { of: "evener.so, ARMv7, musl, bytes", is, most: ARMV7.module_bytes });
        }
        Err(musl::Reason::NotHere(reason)) => note = format!("skipped: evener.so with musl ({reason})\n"),
        Err(musl::Reason::Fault(reason)) => return Err(reason),
    }
    let mut here = cargo();
    here.env("RUSTFLAGS", PACKED).env("CARGO_TARGET_DIR", root().join("target/small"));
    let module = built_library(here, "small", "evener-provider", MODULE)?;
    figures.extend(in_a_program(&module)?);
    let lines = figures.iter().map(|figure| format!("{}: {}\n", figure.of, figure.is));
    let text: String = lines.chain([note]).collect();
    let over: Vec<String> = figures.iter().filter_map(Figure::excess).collect();
    if over.is_empty() { Ok(text) } else { Err(format!("{text}{}", over.join("; "))) }
}

/// Both files for ARMv7 with glibc, and what the module takes there.
fn on_arm(toolchain: &Toolchain) -> Result<Vec<Figure>, String> {
    let board = || for_board(toolchain, THUMB);
    let module = built_linked(board(), "small", "evener-provider", MODULE, &early::link_arguments())?;
    let command = built_small_command(board())?;
    let size = |path: &Path| stripped_size(path, toolchain.tool("strip"));
    Ok(vec![
        Figure { of: "evener.so, ARMv7, bytes", is: size(&module)?, most: ARMV7.module_bytes },
        Figure { of: "evener, ARMv7, bytes", is: size(&command)?, most: ARMV7.command_bytes },
        Figure {
            of: "memory of a program with evener.so, ARMv7, KiB more",
            is: on_board::more_kib(toolchain, &module)?,
            most: RESIDENT_KIB_MAX,
        },
        Figure {
            of: "start of a program with evener.so, ARMv7, instructions more",
            is: on_board::more_instructions(toolchain, &module)?,
            most: START_INSTRUCTIONS_MAX,
        },
    ])
}

/// A count and its limit.
struct Figure {
    of: &'static str,
    is: u64,
    most: u64,
}

impl Figure {
    fn excess(&self) -> Option<String> {
        (self.is > self.most).then(|| format!("{}: {}, at most {}", self.of, self.is, self.most))
    }
}

/// Cargo for a board whose flash and memory are short. The standard library is built from its sources by a flag that compilers of a release know only so.
fn for_board(toolchain: &Toolchain, features: &str) -> Command {
    let mut command = toolchain.cargo(cargo().get_program());
    command
        .env("RUSTC_BOOTSTRAP", "1")
        .env("RUSTFLAGS", format!("-C target-feature={features} -C symbol-mangling-version=v0 {PACKED}"));
    command.env("CARGO_UNSTABLE_BUILD_STD", "std,panic_unwind");
    command.env("CARGO_UNSTABLE_BUILD_STD_FEATURES", "optimize_for_size");
    command.env("CARGO_TARGET_DIR", root().join("target/small"));
    command
}

/// What the module takes of memory and instructions in a program that loads it, as `evener provider install` has it loaded.
fn in_a_program(module: &Path) -> Result<[Figure; 2], String> {
    // Pages of a file that are not on the disk yet count as the program's own.
    let synced = fs::File::open(module).and_then(|file| file.sync_all());
    synced.map_err(|error| with_path(module, &error))?;
    let folder = tempfile::tempdir().map_err(|error| format!("no folder: {error}"))?;
    let program = program(folder.path(), Path::new("cc"))?;
    let configurations = [false, true].map(|with| configuration(folder.path(), module, with));
    let [without, with] = configurations;
    let (without, with) = (without?, with?);
    let own = more(own_kib(&program, &with)?, own_kib(&program, &without)?, LEAST_KIB)?;
    let instructions =
        more(instructions(&program, &with)?, instructions(&program, &without)?, LEAST_INSTRUCTIONS)?;
    Ok([
        Figure {
            of: "memory of a program with evener.so that no other has, x86-64, KiB more",
            is: own,
            most: OWN_KIB_MAX,
        },
        Figure {
            of: "start of a program with evener.so, x86-64, instructions more",
            is: instructions,
            most: START_INSTRUCTIONS_MAX,
        },
    ])
}

/// What a program has more with the module, which is at least so much where it is loaded: a program that goes on without would be small indeed.
fn more(with: u64, without: u64, least: u64) -> Result<u64, String> {
    let more = with.checked_sub(without).filter(|more| *more >= least);
    more.ok_or_else(|| format!("the module is not loaded: {with} with it, {without} without"))
}

/// A program that encrypts one message and says what memory it has, compiled into `folder`.
fn program(folder: &Path, compiler: &Path) -> Result<PathBuf, String> {
    let program = folder.join("resident");
    let mut compiler = Command::new(compiler);
    compiler.args(["-O1", "-o"]).arg(&program);
    compiler.arg(root().join("conformance/openssl/programs/resident.c")).arg("-lcrypto");
    run(compiler)?;
    Ok(program)
}

fn configuration(folder: &Path, module: &Path, with: bool) -> Result<PathBuf, String> {
    let (line, section) = match with {
        true => (
            "evener = evener_sect\n",
            format!(
                "[evener_sect]\nidentity = evener\nmodule = {}\nactivate = 1\ncombine = auto\n",
                module.display()
            ),
        ),
        false => ("", String::new()),
    };
    let text = format!(
        "openssl_conf = init\n[init]\nproviders = provider_sect\nalg_section = evp_properties\nrandom = random_sect\n\
         [evp_properties]\ndefault_properties = ?provider=evener\n[random_sect]\nproperties = provider=default\n\
         [provider_sect]\ndefault = default_sect\n{line}[default_sect]\nactivate = 1\n{section}"
    );
    let path = folder.join(format!("{with}.cnf"));
    fs::write(&path, text).map_err(|error| with_path(&path, &error))?;
    Ok(path)
}

/// The program under a configuration, with counts of its own: the usual folder may hold what has to be cleared away.
fn under(command: &mut Command, configuration: &Path) {
    command
        .env("OPENSSL_CONF", configuration)
        .env("EVENER_STATISTICS_DIR", configuration.with_file_name("counts"));
}

/// The least of nine: what it has of its own. How much of a file is mapped with it is the kernel's choice.
fn own_kib(program: &Path, configuration: &Path) -> Result<u64, String> {
    let once = |_| {
        let mut command = Command::new(program);
        under(&mut command, configuration);
        let text = answer(command)?;
        let number = text.split_whitespace().nth(1).and_then(|number| number.parse().ok());
        number.ok_or_else(|| format!("resident printed {text:?}"))
    };
    (0..9).map(once).collect::<Result<Vec<u64>, _>>()?.into_iter().min().ok_or_else(|| "no run".to_owned())
}

fn instructions(program: &Path, configuration: &Path) -> Result<u64, String> {
    let mut command = Command::new("valgrind");
    command.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]).arg(program);
    under(&mut command, configuration);
    let output = command.output().map_err(|error| format!("valgrind: {error}"))?;
    let report = String::from_utf8_lossy(&output.stderr);
    let collected = report.lines().find_map(|line| line.split_once("Collected : ")?.1.trim().parse().ok());
    collected.filter(|_| output.status.success()).ok_or_else(|| format!("valgrind counted nothing: {report}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_over_its_limit_is_named_and_one_at_it_is_not() {
        let figure = |is| Figure { of: "evener.so, bytes", is, most: 700_000 };
        assert_eq!(figure(700_000).excess(), None);
        assert_eq!(figure(700_001).excess().as_deref(), Some("evener.so, bytes: 700001, at most 700000"));
    }

    #[test]
    fn a_module_that_takes_nothing_was_not_loaded() {
        assert_eq!(more(500, 100, 100), Ok(400));
        assert!(more(150, 100, 100).is_err() && more(90, 100, 1).is_err());
    }

    #[test]
    fn a_configuration_names_the_module_or_does_not() {
        let folder = tempfile::tempdir().unwrap();
        let text = |with| {
            let path = configuration(folder.path(), Path::new("/m/evener.so"), with).unwrap();
            fs::read_to_string(path).unwrap()
        };
        assert!(text(true).contains("module = /m/evener.so\n") && !text(false).contains("evener.so"));
    }
}
