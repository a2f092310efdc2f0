//! What is said to a plugin, and what its answers mean.

use secrecy::ExposeSecret as _;
use zeroize::Zeroizing;

use super::Plugin;
use super::process::Process;
use crate::error::FormatError;
use crate::keys::age::file_key::{FileKey, Wrapped};
use crate::keys::age::stanza::{Stanza, decoded};

/// Has a plugin wrap a file key.
pub(super) fn wrap(plugin: &Plugin, file_key: &FileKey) -> Result<Wrapped, FormatError> {
    let mut process = Process::start(&plugin.name, "recipient-v1")?;
    process.tell(if plugin.is_identity { "add-identity" } else { "add-recipient" }, &[&plugin.text], b"")?;
    process.tell("wrap-file-key", &[], &**file_key)?;
    process.tell("extension-labels", &[], b"")?;
    process.tell("done", &[], b"")?;
    let (mut wrapped, mut has_labels) = (Wrapped { stanzas: Vec::new(), labels: [].into() }, false);
    loop {
        let said = process.hear()?;
        match (&*said.kind, &said.args[..]) {
            ("recipient-stanza", [index, kind, args @ ..]) if index == "0" => {
                let args: Vec<&str> = args.iter().map(String::as_str).collect();
                wrapped.stanzas.push(Stanza::new(kind, &args, &said.body));
                process.tell("ok", &[], b"")?;
            }
            ("labels", labels) if !has_labels => {
                has_labels = true;
                wrapped.labels = labels.iter().cloned().collect();
                process.tell("ok", &[], b"")?;
            }
            ("done", _) if wrapped.stanzas.is_empty() => return Err(process.fact("made no stanza")),
            ("done", _) => return Ok(wrapped),
            _ => answer(plugin, &mut process, &said)?,
        }
    }
}

/// Has a plugin look for its stanza.
pub(super) fn unwrap(plugin: &Plugin, stanzas: &[Stanza]) -> Result<Option<FileKey>, FormatError> {
    let mut process = Process::start(&plugin.name, "identity-v1")?;
    process.tell("add-identity", &[&plugin.text], b"")?;
    for stanza in stanzas {
        let mut args = vec!["0", &stanza.kind];
        args.extend(stanza.args.iter().map(String::as_str));
        process.tell("recipient-stanza", &args, &stanza.body)?;
    }
    process.tell("done", &[], b"")?;
    let mut file_key = None;
    loop {
        let said = process.hear()?;
        match (&*said.kind, &said.args[..]) {
            ("file-key", [index]) if index == "0" && file_key.is_none() => {
                let key = said.body[..].try_into().map(Zeroizing::new);
                file_key = Some(key.map_err(|_| process.fact("gave a key of another length"))?);
                process.tell("ok", &[], b"")?;
            }
            ("done", _) => return Ok(file_key),
            _ => answer(plugin, &mut process, &said)?,
        }
    }
}

/// Answers what both sides of the protocol know.
fn answer(plugin: &Plugin, process: &mut Process, said: &Stanza) -> Result<(), FormatError> {
    let text = plain(&said.body);
    match (&*said.kind, &said.args[..]) {
        ("error", _) => {
            process.tell("ok", &[], b"")?;
            Err(process.fact(&text))
        }
        ("msg", _) => {
            plugin.dialog.message(&plugin.name, &text);
            process.tell("ok", &[], b"")
        }
        ("request-secret" | "request-public", _) => {
            match plugin.dialog.ask(&plugin.name, &text, said.kind == "request-secret") {
                Some(value) => process.tell("ok", &[], value.expose_secret().as_bytes()),
                None => process.tell("fail", &[], b""),
            }
        }
        ("confirm", [yes, no @ ..]) if no.len() <= 1 => {
            let word = |word: &String| decoded(word).map(|word| plain(&word));
            let yes = word(yes).ok_or_else(|| process.fact("asked for a decision without words"))?;
            let no = no.first().and_then(word);
            match plugin.dialog.confirm(&plugin.name, &text, &yes, no.as_deref()) {
                Some(true) => process.tell("ok", &["yes"], b""),
                Some(false) => process.tell("ok", &["no"], b""),
                None => process.tell("fail", &[], b""),
            }
        }
        ("recipient-stanza" | "labels" | "file-key", _) => {
            Err(process.fact("said what the protocol does not allow"))
        }
        _ => process.tell("unsupported", &[], b""),
    }
}

/// A plugin's words as one line for a terminal.
fn plain(words: &[u8]) -> String {
    let text = String::from_utf8_lossy(words);
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect::<String>().trim().to_owned()
}
