//! Questions of age plugins, on the terminal.

use std::io::{BufRead as _, BufReader, Write as _};

use evener_files::age_keys::Dialog;
use secrecy::SecretString;

use super::secret_text;
use crate::terminal::output::{self, plain};
use crate::terminal::prompt::hidden;

/// Shows on standard error and asks on the terminal, whatever standard input is.
pub(crate) struct TerminalDialog;

impl Dialog for TerminalDialog {
    fn message(&self, plugin: &str, text: &str) {
        output::line(format_args!("plugin {plugin}: {text}"));
    }

    fn ask(&self, plugin: &str, prompt: &str, is_secret: bool) -> Option<SecretString> {
        let prompt = format!("{prompt} (for plugin {plugin}): ");
        if is_secret {
            return secret_text(&hidden(&prompt).ok()?).ok();
        }
        line_from_terminal(&prompt).map(SecretString::from)
    }

    fn confirm(&self, plugin: &str, prompt: &str, yes: &str, no: Option<&str>) -> Option<bool> {
        let choices = match no {
            Some(no) => format!("1: {yes}, 2: {no}"),
            None => format!("1: {yes}"),
        };
        match line_from_terminal(&format!("{prompt} (for plugin {plugin}; {choices}): "))?.as_str() {
            "1" => Some(true),
            "2" if no.is_some() => Some(false),
            _ => None,
        }
    }
}

/// A line that is shown while it is typed.
fn line_from_terminal(prompt: &str) -> Option<String> {
    let mut terminal = std::fs::OpenOptions::new().read(true).write(true).open("/dev/tty").ok()?;
    terminal.write_all(plain(prompt).as_bytes()).ok()?;
    let mut line = String::new();
    BufReader::new(terminal).read_line(&mut line).ok()?;
    Some(line.trim_end_matches(['\r', '\n']).to_owned())
}
