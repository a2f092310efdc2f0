//! `cargo xtask instructions`: what short messages of an OpenSSL program take in instructions, by OpenSSL alone and with Evener.
//!
//! Steps: the provider is built with optimisation, the program `small_calls` by the C compiler -> a [`Setup`] for each column, a line of
//! [`MESSAGES`] for each row -> valgrind counts two runs that differ in nothing but how many messages they encrypt or hash ([`message`]) -> a
//! table, and an error where a figure is over [`Setup::most`].

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode};

use tempfile::TempDir;

use crate::programs::{built, run};
use crate::tree::root;

/// Algorithm and bytes of a message.
const MESSAGES: [(&str, u32); 8] = [
    ("AES-128-CBC", 16),
    ("AES-128-CBC", 1024),
    ("AES-128-CTR", 16),
    ("AES-128-CTR", 1024),
    ("AES-256-GCM", 16),
    ("AES-256-GCM", 1024),
    ("SHA-256", 16),
    ("SHA-256", 1024),
];

/// Messages of the two runs: what a process does once is in both.
const COUNTS: [u64; 2] = [100, 2100];

/// How a program is configured.
struct Setup {
    name: &'static str,
    /// Keys of the provider's section; `None`: OpenSSL alone.
    keys: Option<&'static str>,
    /// Instructions of a message that are too many, per 1000 of OpenSSL alone.
    most: u64,
}

/// A hash by Evener is counted for `evener status` message by message, which takes 110 instructions; of SHA-256 without the processor's own
/// instructions, which valgrind does not have, that is 3.7 % at 16 bytes.
const SETUPS: [Setup; 3] = [
    Setup { name: "OpenSSL alone", keys: None, most: 1000 },
    Setup { name: "nothing configured", keys: Some(""), most: 1005 },
    Setup { name: "`combine` and `threads`", keys: Some("combine = auto\nthreads = auto\n"), most: 1045 },
];

/// What messages took: a row for each of [`MESSAGES`], a column for each of [`SETUPS`].
type Table = Vec<[u64; SETUPS.len()]>;

/// Prints the table; fails where something in it takes more than it may.
pub(crate) fn run_instructions() -> ExitCode {
    let found = counted().map(|table| {
        print!("{}", markdown(&table));
        excesses(&table)
    });
    let lines = found.unwrap_or_else(|reason| vec![reason]);
    lines.iter().for_each(|line| eprintln!("xtask: {line}"));
    if lines.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// What takes more than it may, one line each.
fn excesses(table: &Table) -> Vec<String> {
    let mut found = Vec::new();
    for ((algorithm, bytes), row) in MESSAGES.iter().zip(table) {
        for (setup, taken) in SETUPS.iter().zip(row) {
            if taken * 1000 > row[0] * setup.most {
                found.push(format!(
                    "{algorithm}, {bytes} B, {}: {taken} instructions, {} by OpenSSL alone",
                    setup.name, row[0]
                ));
            }
        }
    }
    found
}

fn markdown(table: &Table) -> String {
    let names = SETUPS.iter().map(|setup| setup.name).collect::<Vec<_>>().join(" | ");
    let mut text = format!("| message | {names} |\n|---|{}\n", "---|".repeat(SETUPS.len()));
    for ((algorithm, bytes), row) in MESSAGES.iter().zip(table) {
        let cells = row.map(|taken| taken.to_string()).join(" | ");
        // Writing to a string does not fail.
        _ = writeln!(text, "| {algorithm}, {bytes} B | {cells} |");
    }
    text
}

fn counted() -> Result<Table, String> {
    let folder = tempfile::tempdir().map_err(|error| format!("no folder: {error}"))?;
    let program = folder.path().join("small_calls");
    let source = root().join("conformance/openssl/programs/small_calls.c");
    let mut compiler = Command::new("cc");
    compiler.arg("-O1").arg("-o").arg(&program).arg(source).arg("-lcrypto");
    run(compiler)?;
    let module = built()?.module;
    let mut table = vec![[0; SETUPS.len()]; MESSAGES.len()];
    for (column, setup) in SETUPS.iter().enumerate() {
        let configuration = configured(&folder, setup, &module)?;
        for (row, (algorithm, bytes)) in table.iter_mut().zip(MESSAGES) {
            row[column] = message(&program, &configuration, algorithm, bytes)?;
        }
    }
    Ok(table)
}

/// The path of the setup's `openssl.cnf`.
fn configured(folder: &TempDir, setup: &Setup, module: &Path) -> Result<std::path::PathBuf, String> {
    let evener = setup.keys.map_or_else(String::new, |keys| {
        format!("[evener_sect]\nidentity = evener\nmodule = {}\nactivate = 1\n{keys}", module.display())
    });
    let line = if setup.keys.is_some() { "evener = evener_sect\n" } else { "" };
    let text = format!(
        "openssl_conf = init\n[init]\nproviders = provider_sect\nalg_section = evp_properties\nrandom = random_sect\n\
         [evp_properties]\ndefault_properties = ?provider=evener\n[random_sect]\nproperties = provider=default\n\
         [provider_sect]\ndefault = default_sect\n{line}[default_sect]\nactivate = 1\n{evener}"
    );
    let path = folder.path().join("openssl.cnf");
    fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(path)
}

/// Instructions of one message.
fn message(program: &Path, configuration: &Path, algorithm: &str, bytes: u32) -> Result<u64, String> {
    let mut taken = [0; COUNTS.len()];
    for (taken, count) in taken.iter_mut().zip(COUNTS) {
        let mut command = Command::new("valgrind");
        command.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]).arg(program);
        command.args([algorithm, &count.to_string(), &bytes.to_string()]).env("OPENSSL_CONF", configuration);
        // In the usual directory one process in 64 clears away what ended ones have left.
        command.env("EVENER_STATISTICS_DIR", configuration.with_file_name("counts"));
        let output = command.output().map_err(|error| format!("valgrind: {error}"))?;
        if !output.status.success() {
            return Err(format!("{algorithm}: small_calls failed under valgrind"));
        }
        *taken = collected(&String::from_utf8_lossy(&output.stderr))
            .ok_or("valgrind does not say how many instructions it counted")?;
    }
    Ok(taken[1].saturating_sub(taken[0]) / (COUNTS[1] - COUNTS[0]))
}

/// The number on callgrind's line `==PID== Collected : NUMBER`.
fn collected(report: &str) -> Option<u64> {
    report.lines().find_map(|line| line.split_once("Collected : ")?.1.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::{MESSAGES, SETUPS, collected, excesses, markdown};

    #[test]
    fn the_number_is_read_where_callgrind_prints_it() {
        let report =
            "==7== Events    : Ir\n==7== Collected : 3960557\n==7== \n==7== I   refs:      3,960,557\n";
        assert_eq!(collected(report), Some(3_960_557));
        assert_eq!(collected("==7== Collected :\n"), None);
        assert_eq!(collected(""), None);
    }

    #[test]
    fn a_message_that_takes_more_than_its_column_may_is_named_and_no_other() {
        let mut table = vec![[1000, 1005, 1045]; MESSAGES.len()];
        assert!(excesses(&table).is_empty());
        table[4] = [1722, 1722, 2824];
        let found = excesses(&table);
        let line =
            "AES-256-GCM, 16 B, `combine` and `threads`: 2824 instructions, 1722 by OpenSSL alone".to_owned();
        assert_eq!(found, [line]);
        table[0][1] = 1006;
        assert_eq!(excesses(&table).len(), 2);
    }

    #[test]
    fn a_table_has_a_row_for_each_message_and_a_column_for_each_setup() {
        let text = markdown(&vec![[1, 2, 3]; MESSAGES.len()]);
        assert_eq!(text.lines().count(), MESSAGES.len() + 2);
        assert!(text.lines().all(|line| line.matches('|').count() == SETUPS.len() + 2));
        assert!(text.contains("| AES-128-CBC, 16 B | 1 | 2 | 3 |"));
    }
}
