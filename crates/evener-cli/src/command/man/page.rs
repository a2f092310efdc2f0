//! One manual page: what clap knows of a command, and the sections that a reader looks for besides.

use std::io;

use clap::Command;
use clap::builder::StyledStr;
use clap_mangen::Man;

/// The page of a command.
pub(super) fn rendered(command: Command) -> io::Result<Vec<u8>> {
    let name = command.get_display_name().unwrap_or_else(|| command.get_name()).to_owned();
    let examples = command.get_before_help().map(StyledStr::to_string);
    let notes = command.get_after_long_help().or_else(|| command.get_after_help()).map(StyledStr::to_string);
    let has_subcommands = command.has_subcommands();
    let siblings: Vec<String> =
        command.get_subcommands().map(|below| format!("{name}-{}", below.get_name())).collect();
    let man = Man::new(command).manual("Evener");
    let mut page = Vec::new();
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    man.render_options_section(&mut page)?;
    if has_subcommands {
        man.render_subcommands_section(&mut page)?;
    }
    let mut page = String::from_utf8_lossy(&page).into_owned();
    let examples = examples.iter().flat_map(|text| text.lines()).filter(|line| !line.ends_with("Examples:"));
    literal(&mut page, "EXAMPLES", examples);
    if let Some(notes) = notes.filter(|notes| !notes.starts_with("Exit status:")) {
        literal(&mut page, "NOTES", notes.lines());
    }
    listed(&mut page, "EXIT STATUS", STATUS.iter().copied());
    listed(&mut page, "ENVIRONMENT", of_command(&ENVIRONMENT, &name));
    listed(&mut page, "FILES", of_command(&FILES, &name));
    see_also(&mut page, &name, &siblings);
    Ok(page.into_bytes())
}

/// How each command ends.
const STATUS: [(&str, &str); 4] = [
    ("0", "All was done."),
    ("1", "Some of it failed; what did is named on standard error."),
    ("2", "Nothing was done: wrong usage, or a key or path that cannot be used."),
    ("130", "It was stopped by a signal, by which it ends when all is cleaned up: so a shell names SIGINT."),
];

/// Commands, a name and what it says.
type Rows<const N: usize> = [(&'static [&'static str], &'static str, &'static str); N];

const RUNS: &[&str] = &["evener", "evener-encrypt", "evener-decrypt"];
const MEASURING: &[&str] =
    &["evener", "evener-encrypt", "evener-decrypt", "evener-verify", "evener-devices", "evener-explain"];
const WATCHING: &[&str] = &["evener", "evener-status", "evener-top"];

const ENVIRONMENT: Rows<7> = [
    (
        MEASURING,
        "EVENER_CACHE_DIR",
        "Where what was measured and learned of costs is kept; unless set, evener in $XDG_CACHE_HOME or in ~/.cache.",
    ),
    (
        RUNS,
        "EVENER_STATE_DIR",
        "Where the secret of records is kept, and records that cannot lie beside their output; unless set, evener in $XDG_STATE_HOME or in ~/.local/state.",
    ),
    (
        MEASURING,
        "EVENER_DISABLE",
        "Drivers and instructions to leave out, with commas between them: multibuffer, lanes, sha, avx512.",
    ),
    (
        MEASURING,
        "EVENER_ARBITER",
        "Whether turns are taken at modules that other processes have, too: on, off, or a weight from 2 to 64.",
    ),
    (WATCHING, "EVENER_ARBITER_DIR", "Where the processes of a user that share modules meet."),
    (WATCHING, "EVENER_STATISTICS_DIR", "Where the provider's counts of each process lie."),
    (&[], "TERM", "Where it is dumb or not set, no progress is drawn."),
];

const FILES: Rows<4> = [
    (
        RUNS,
        ".OUT.evener-record",
        "Beside OUT: which outputs are finished, sealed; it only saves work and may be removed.",
    ),
    (
        RUNS,
        "OUT/.evener-identity.age",
        "The key of a tree under a passphrase, in an age file under that passphrase; without it the tree cannot be opened.",
    ),
    (MEASURING, "~/.cache/evener/", "What was measured; it may be removed."),
    (&[], "~/.local/state/evener/", "What has to last from run to run, for its user only."),
];

/// The rows of a command; those of no command in particular are of all.
fn of_command<'r, const N: usize>(
    rows: &'r Rows<N>,
    name: &'r str,
) -> impl Iterator<Item = (&'static str, &'static str)> + 'r {
    rows.iter().filter(move |row| row.0.is_empty() || row.0.contains(&name)).map(|row| (row.1, row.2))
}

/// Other pages: those below it, the one above it, and programs that read the same files.
fn see_also(page: &mut String, name: &str, below: &[String]) {
    let mut names: Vec<String> = below.to_vec();
    if let Some((above, _)) = name.rsplit_once('-') {
        names.insert(0, above.to_owned());
    }
    if matches!(name, "evener" | "evener-encrypt" | "evener-decrypt") {
        names.extend(["age", "openssl-enc", "tar"].map(str::to_owned));
    }
    page.push_str(".SH \"SEE ALSO\"\n");
    let names: Vec<_> = names.iter().map(|name| format!(".BR {} (1)", escaped(name))).collect();
    page.push_str(&names.join(",\n"));
    page.push('\n');
}

/// A section of lines that stay as they are.
fn literal<'l>(page: &mut String, title: &str, lines: impl Iterator<Item = &'l str>) {
    let lines: Vec<_> = lines.map(escaped).collect();
    if !lines.is_empty() {
        page.push_str(&format!(".SH \"{title}\"\n.nf\n{}\n.fi\n", lines.join("\n")));
    }
}

/// A section of names, each with a sentence.
fn listed<'r>(page: &mut String, title: &str, rows: impl Iterator<Item = (&'r str, &'r str)>) {
    page.push_str(&format!(".SH \"{title}\"\n"));
    for (name, text) in rows {
        page.push_str(&format!(".TP\n\\fB{}\\fR\n{}\n", escaped(name), escaped(text)));
    }
}

/// A line as roff takes it for text.
fn escaped(line: &str) -> String {
    let text = line.replace('\\', "\\e").replace('-', "\\-");
    if text.starts_with(['.', '\'']) { format!("\\&{text}") } else { text }
}
