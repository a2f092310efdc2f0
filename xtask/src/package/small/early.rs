//! What of the module runs from a program's start to the end of its first message, laid together: `packaging/boards/early.ld`.
//!
//! Why: a kernel maps 64 KiB around each page of a file that is touched, so that functions strewn over the whole file make all of it resident.
//!
//! Path of a new script ([`write`]): the module with its symbols -> a program that loads it, under qemu-arm, which says each instruction that it translates
//! -> the functions that those are in ([`Functions`]), by names without the compiler's hashes -> a linker script ([`script`]). The module
//! is linked with it by [`link_arguments`]; a name that is gone is nothing to the linker, and a function that came lies with the others.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;

use evener_testbed::Toolchain;

use super::with_path;
use crate::programs::{MODULE, answer, built_linked};
use crate::tree::root;

const SCRIPT: &str = "packaging/boards/early.ld";

/// What rustc hands the linker first of all, for names in an archive must be wanted before the C library's own offer them.
pub(super) fn link_arguments() -> Vec<String> {
    vec!["-Z".to_owned(), format!("pre-link-arg=-Wl,-T,{}", root().join(SCRIPT).display())]
}

/// Makes the script anew, with a module that `board` builds.
pub(super) fn write(toolchain: &Toolchain, mut board: Command) -> Result<String, String> {
    board.env("CARGO_PROFILE_SMALL_STRIP", "none");
    let module = built_linked(board, "small", "evener-provider", MODULE, &link_arguments())?;
    let folder = tempfile::tempdir().map_err(|error| format!("no folder: {error}"))?;
    let program = super::program(folder.path(), &toolchain.cc())?;
    let configuration = super::configuration(folder.path(), &module, true)?;
    let translated = Translated::of(toolchain, &program, &configuration, folder.path())?;
    let functions = Functions::of(toolchain, &module)?;
    let names = functions.at(&translated.addresses);
    let path = root().join(SCRIPT);
    fs::write(&path, script(&names)).map_err(|error| with_path(&path, &error))?;
    Ok(format!("{}: {} names\n", SCRIPT, names.len()))
}

/// Addresses of instructions that were translated, from the module's first byte on.
struct Translated {
    addresses: Vec<u64>,
}

impl Translated {
    fn of(
        toolchain: &Toolchain,
        program: &Path,
        configuration: &Path,
        folder: &Path,
    ) -> Result<Self, String> {
        let trace = folder.join("trace");
        let emulation = toolchain.emulation("qemu-arm");
        let mut words = emulation.split(' ');
        let mut qemu = Command::new(words.next().unwrap_or_default());
        qemu.args(words).args(["-d", "in_asm", "-D"]).arg(&trace).arg(program);
        super::under(&mut qemu, configuration);
        let output = qemu.env("LD_DEBUG", "files").output();
        let output = output.map_err(|error| format!("qemu-arm (Debian: qemu-user): {error}"))?;
        let said = String::from_utf8_lossy(&output.stderr);
        let base = base(&said).ok_or_else(|| format!("the module was not loaded: {said}"))?;
        let text = fs::read_to_string(&trace).map_err(|error| with_path(&trace, &error))?;
        Ok(Self { addresses: addresses(&text).filter_map(|address| address.checked_sub(base)).collect() })
    }
}

/// Where the loader put the module: `base: 0x3ef24000` in the lines that follow its name.
fn base(said: &str) -> Option<u64> {
    let mut lines = said.lines().skip_while(|line| !line.contains(MODULE) || !line.contains("generating"));
    let after = lines.find_map(|line| line.split_once("base: 0x"))?.1;
    u64::from_str_radix(after.split_whitespace().next()?, 16).ok()
}

/// Of lines as `0x40010760:  e59fa03c  ldr ...`.
fn addresses(trace: &str) -> impl Iterator<Item = u64> {
    let address = |line: &str| u64::from_str_radix(line.strip_prefix("0x")?.split_once(':')?.0, 16).ok();
    trace.lines().filter_map(address)
}

/// The module's functions by their first byte: where each ends, and all its names.
struct Functions(BTreeMap<u64, (u64, Vec<String>)>);

impl Functions {
    fn of(toolchain: &Toolchain, module: &Path) -> Result<Self, String> {
        let mut nm = toolchain.tool("nm");
        nm.args(["-S", "--defined-only"]).arg(module);
        Ok(Self::read(&answer(nm)?))
    }

    /// Of lines as `000352f4 00000018 t NAME`. The lowest bit of an address says that Thumb's instructions are there.
    fn read(symbols: &str) -> Self {
        let mut functions = BTreeMap::new();
        for line in symbols.lines() {
            let [address, bytes, "t" | "T" | "w" | "W", name] = line.split(' ').collect::<Vec<_>>()[..]
            else {
                continue;
            };
            let number = |text| u64::from_str_radix(text, 16).ok();
            let Some((address, bytes)) = number(address).zip(number(bytes)) else { continue };
            let first = address & !1;
            let (end, names): &mut (u64, Vec<String>) = functions.entry(first).or_default();
            *end = (*end).max(first + bytes);
            names.push(name.to_owned());
        }
        Self(functions)
    }

    /// The names of all that these addresses are in, without hashes.
    fn at(&self, addresses: &[u64]) -> BTreeSet<String> {
        let function = |address: &u64| {
            let (_, (end, names)) = self.0.range(..=*address).next_back()?;
            (address < end).then_some(names)
        };
        let names = addresses.iter().filter_map(function).flatten();
        names.map(|name| pattern(name)).collect()
    }
}

/// A symbol as a pattern: of Rust's mangled names (v0) without what is another with each compiler and each folder, the crates' numbers
/// (`Cs1AbC_`) and the places to which later parts refer (`B1c_`).
fn pattern(name: &str) -> String {
    if !name.starts_with("_R") {
        return name.to_owned();
    }
    // What the compiler adds where a name came twice is another each time.
    let (mut rest, end) = name.split_once('.').map_or((name, ""), |(before, _)| (before, ".*"));
    let mut pattern = String::new();
    while let Some(at) = rest.find(['C', 'B']) {
        let (before, from) = rest.split_at(at);
        pattern += before;
        let digits = from[1..].bytes().take_while(u8::is_ascii_alphanumeric).count();
        let is_number = from[1 + digits..].starts_with('_');
        let is_short = match from.starts_with('C') {
            true => from[1..].starts_with('s'),
            false => digits <= 3,
        };
        let taken = if is_number && is_short { 1 + digits } else { 1 };
        pattern += &from[..1];
        if taken > 1 {
            pattern.push('*');
        }
        rest = &from[taken..];
    }
    pattern + rest + end
}

fn script(names: &BTreeSet<String>) -> String {
    let head = "/* Made by `cargo xtask small early`: what a program runs of evener.so up to the end of its first message lies together, with the constants\n \
                * behind it, so that the kernel maps no more of the file than that. Functions of libm are linked in: the library itself would be\n \
                * mapped for three of them. GNU ld puts these sections before its own script's. */\n";
    let rows: String = names.iter().map(|name| format!("    *(.text*.{name})\n")).collect();
    format!(
        "{head}EXTERN(fmax fmin round)\nINPUT(-l:libm.a)\nSECTIONS {{\n  .text.early : {{\n    \
         *crti.o(.text) *crtbegin*.o(.text) *libc_nonshared.a:(.text .text.*)\n{rows}  }}\n  \
         .rodata.early : {{ *(.rodata .rodata.*) }}\n}}\nINSERT BEFORE .text;\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_in_the_function_that_begins_before_it_and_has_not_ended() {
        let symbols = "00000011 00000006 t _RNvC1_1a\n00000011 00000006 t alias\n\
                       00000020 00000004 T b\n00000030 00000004 d data\n00000040 t $t\n";
        let functions = Functions::read(symbols);
        let at = |address: u64| functions.at(&[address]).into_iter().collect::<Vec<_>>();
        assert_eq!(at(0x10), ["_RNvC1_1a", "alias"]);
        assert_eq!(at(0x15), ["_RNvC1_1a", "alias"]);
        assert_eq!(at(0x16), [""; 0]);
        assert_eq!(at(0x23), ["b"]);
        assert_eq!(at(0x30), [""; 0]);
    }

    #[test]
    fn a_trace_and_a_loader_say_addresses() {
        let trace = "IN: \n0x40010760:  e59fa03c  ldr      sl, [pc, #0x3c]\n----\nOBJD-T: 00\n";
        assert_eq!(addresses(trace).collect::<Vec<_>>(), [0x4001_0760]);
        let said = format!(
            "1: file=libz [0]; generating link map\n 1: base: 0x1 size\n\
             1: file=/m/{MODULE} [0]; generating link map\n 1: dynamic: 0x3e  base: 0x3ef24000   size: 0x5\n"
        );
        assert_eq!(base(&said), Some(0x3ef2_4000));
        assert_eq!(base("nothing"), None);
    }

    #[test]
    fn a_pattern_holds_for_the_same_function_of_another_compiler() {
        let here = "_RNvMs_NtCs9ltgdHTiPiY_11evener_ring6threadNtB4_5Block3new.llvm.123";
        assert_eq!(pattern(here), "_RNvMs_NtC*_11evener_ring6threadNtB*_5Block3new.*");
        // `Cs` and `B` within names are no numbers.
        assert_eq!(pattern("_RNvC5Crate5BytesB"), "_RNvC5Crate5BytesB");
        assert_eq!(pattern("OSSL_provider_init"), "OSSL_provider_init");
        let text = script(&BTreeSet::from([pattern(here)]));
        assert!(text.contains("    *(.text*._RNvMs_NtC*_11evener_ring6threadNtB*_5Block3new.*)\n"), "{text}");
    }
}
