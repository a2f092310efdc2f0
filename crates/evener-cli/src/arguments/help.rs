//! The help: examples before options, and commands in groups. What is rare, an option says of itself (`hide_short_help`).

use clap::Command;
use clap::builder::StyledStr;

use crate::terminal::output::wrapped;

/// Groups of commands, in the order of the help.
const GROUPS: [(&str, &[&str]); 4] = [
    ("Files", &["encrypt", "decrypt", "verify", "inspect", "sum", "keygen", "keyset"]),
    ("Objects in stores, on many machines", &["plan", "run-shard"]),
    (
        "OpenSSL and modules",
        &["provider", "doctor", "status", "top", "devices", "explain", "host", "cryptodev"],
    ),
    ("Experiments", &["bench", "sim", "demo"]),
];

/// Commands about the command itself, which the help names in a sentence.
#[cfg(feature = "manuals")]
const ABOUT_ITSELF: &str = "`evener help COMMAND` says more of each; `evener man` and `evener completions` make manual pages and \
                            completions for a shell.";
#[cfg(not(feature = "manuals"))]
const ABOUT_ITSELF: &str =
    "`evener help COMMAND` says more of each; of this small build some commands are left out.";

/// As clap's own, but for the place of examples.
const TEMPLATE: &str = "{about-with-newline}\n{usage-heading} {usage}\n\n{before-help}{all-args}{after-help}";

/// The command with its help as it is shown.
pub(super) fn dressed(command: Command) -> Command {
    let groups = grouped(&command);
    let template = format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{{before-help}}{groups}Options:\n{{options}}{{after-help}}"
    );
    undergone(command).help_template(template)
}

/// A command and those below it.
fn undergone(command: Command) -> Command {
    examples_first(command).help_template(TEMPLATE).mut_subcommands(undergone)
}

/// Puts examples before the options; what follows them is for the long help.
fn examples_first(command: Command) -> Command {
    let Some(text) = command.get_after_help().map(StyledStr::to_string) else { return command };
    if !text.starts_with("Examples:") {
        return command;
    }
    let (examples, rest) = text.split_once("\n\n").unwrap_or((&text, ""));
    let command = command.before_help(examples.trim_end().to_owned()).after_help(None::<&'static str>);
    if rest.is_empty() { command } else { command.after_long_help(rest.to_owned()) }
}

/// The groups as text.
fn grouped(command: &Command) -> String {
    let mut text = String::new();
    for (title, names) in GROUPS {
        let commands = names.iter().filter_map(|name| command.find_subcommand(name));
        let lines: String = commands.map(line).collect();
        // A small build is without some of them.
        if !lines.is_empty() {
            text += &format!("{title}:\n{lines}\n");
        }
    }
    text + &wrapped("", ABOUT_ITSELF, COLUMNS) + "\n"
}

/// A command in its group.
fn line(command: &Command) -> String {
    let about = command.get_about().map(StyledStr::to_string).unwrap_or_default();
    wrapped(&format!("  {:<11}", command.get_name()), &about, COLUMNS)
}

/// Columns that every terminal has.
const COLUMNS: usize = 80;

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;
    use crate::arguments::Arguments;

    #[cfg(all(feature = "experiments", feature = "servers", feature = "manuals"))]
    #[test]
    fn each_command_is_in_one_group_or_about_the_command_itself() {
        let mut grouped: Vec<_> = GROUPS.iter().flat_map(|(_, names)| *names).copied().collect();
        grouped.extend(["completions", "man"]);
        grouped.sort_unstable();
        let command = Arguments::command();
        let mut all: Vec<_> = command.get_subcommands().map(Command::get_name).collect();
        all.sort_unstable();
        assert_eq!(grouped, all);
    }
}
