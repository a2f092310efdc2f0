//! Keys of a run: read by who uses them, from a file, the environment or a command; wiped, and never in a message. Nor is what was given in the
//! place of a reference to one: a path is shown once the file is open, and a variable's name once it is set.

use std::io::{ErrorKind, Read};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use evener_files::Task;
use evener_files::age_keys::{Identities, Recipients, is_age_file};
use evener_files::format::tink::Tink;
use evener_files::format::{Opener, Sealer};
use evener_files::keyset::Keyset;
use evener_shards::{Direction, Keys};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;
use rustix::io::Errno;
use zeroize::Zeroizing;

use crate::outcome::{Failure, Kind};
use crate::spared::Spared;

/// Longest text that is taken for a key. Assumed, not measured: 1 MiB, far beyond any.
const KEY_BYTES_MAX: usize = 1 << 20;

/// Least time that a command for a key has, whatever `--timeout` says. Assumed, not measured: 10 s, for one that asks a service takes a few.
const COMMAND_TIME_MIN: Duration = Duration::from_secs(10);

/// What is to be done, with the keys for it, whose files are spared. A command for a key ends within `timeout`.
pub(crate) fn task(
    direction: Direction,
    keys: &Keys,
    spared: &mut Spared,
    timeout: Duration,
) -> Result<Task, Failure> {
    let mut secrets = secrets(keys, spared, timeout.max(COMMAND_TIME_MIN))?;
    let has_age =
        !(keys.identities.is_empty() && keys.recipients.is_empty() && keys.recipients_files.is_empty());
    let keyset = secrets.iter().position(|(_, text)| Keyset::form(text).is_ok());
    match keyset {
        Some(place) if secrets.len() == 1 && !has_age => {
            let (name, text) = secrets.swap_remove(place);
            let keyset =
                Keyset::parse(&text).map_err(|error| Failure::never(format_args!("{name}: {error}")))?;
            let tink = Tink::new(keyset, keys.associated_data.clone());
            Ok(match direction {
                Direction::Encrypt => Task::Encrypt(Sealer::Tink(tink)),
                Direction::Decrypt => Task::Decrypt(Opener::Tink(tink)),
            })
        }
        Some(_) => Err(Failure::never("keys of one kind are needed, one Tink keyset or age's")),
        None if !keys.associated_data.is_empty() => {
            Err(Failure::never("associated data go with a Tink keyset only"))
        }
        None => age(direction, keys, &secrets, spared),
    }
}

/// A text that holds a key, and where it is from.
type Secret = (String, Zeroizing<Vec<u8>>);

/// All that may hold secrets.
fn secrets(keys: &Keys, spared: &mut Spared, time: Duration) -> Result<Vec<Secret>, Failure> {
    let mut secrets = Vec::new();
    let key = keys.key.iter().map(|file| ("--key".to_owned(), file));
    for (option, file) in key.chain(numbered("--identity", &keys.identities)) {
        secrets.push((file.display().to_string(), read_file(&option, file, spared)?));
    }
    if let Some(name) = &keys.key_env {
        let value = std::env::var_os(name);
        let value = value.ok_or_else(|| Failure::never("the variable that --key-env names is not set"))?;
        secrets.push((name.clone(), Zeroizing::new(value.into_encoded_bytes())));
    }
    if let Some(command) = &keys.key_command {
        // A shell would name what it does not find.
        if holds_key(command) {
            return Err(Failure::never(
                "--key-command is a command that prints a key, and this has one in it",
            ));
        }
        secrets.push(("the command for the key".to_owned(), printed(command, time)?));
    }
    match secrets.iter().find(|(_, text)| is_age_file(text)) {
        Some((name, _)) => Err(Failure::never(format_args!(
            "{name} is under a passphrase, and no person is there to be asked for it"
        ))),
        None => Ok(secrets),
    }
}

/// What was given by an option that may be repeated, each with the words for it.
fn numbered<'k, T>(option: &str, given: &'k [T]) -> impl Iterator<Item = (String, &'k T)> {
    let count = given.len();
    given.iter().enumerate().map(move |(at, one)| match count {
        1 => (option.to_owned(), one),
        _ => (format!("{option}, {} of {count}", at + 1), one),
    })
}

/// Whether a file is one of a key, as far as its form tells.
pub(crate) fn is_key(text: &[u8]) -> bool {
    is_age_file(text) || std::str::from_utf8(text).is_ok_and(holds_key)
}

/// Whether a text has a key in it, as far as its form tells: a mark with what a key is made of behind it. A command may search for the mark alone.
fn holds_key(text: &str) -> bool {
    let mut upper = Zeroizing::new(String::with_capacity(text.len()));
    // Quotation marks in quotation marks have them.
    upper.extend(text.chars().filter(|sign| *sign != '\\'));
    upper.make_ascii_uppercase();
    let behind = |mark: &str| -> Vec<&str> {
        upper.match_indices(mark).map(|(at, mark)| &upper[at + mark.len()..]).collect()
    };
    let secret_keys = ["AGE-SECRET-KEY-1", "AGE-SECRET-KEY-PQ-1"].map(behind).concat();
    let keyset_values = [("\"KEYDATA\"", "\"VALUE\""), ("\"ENCRYPTEDKEYSET\"", "\"ENCRYPTEDKEYSET\"")]
        .map(|(mark, name)| if upper.contains(mark) { behind(name) } else { Vec::new() });
    secret_keys.iter().any(|rest| run(rest, is_bech32) >= 40)
        || behind("AGE-PLUGIN-").iter().any(|rest| is_of_plugin(rest))
        || behind("PRIVATE KEY-----").iter().any(|rest| begins_pem(rest))
        || keyset_values.concat().iter().any(|rest| is_json_bytes(rest))
}

/// Signs of one kind with which a text begins.
fn run(text: &str, is_one: fn(char) -> bool) -> usize {
    text.find(|sign| !is_one(sign)).unwrap_or(text.len())
}

fn is_bech32(sign: char) -> bool {
    "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L".contains(sign)
}

fn is_base64(sign: char) -> bool {
    sign.is_ascii_alphanumeric() || matches!(sign, '+' | '/' | '=')
}

/// Whether the name of a plugin and an identity of it stand there. Identities may be short: 6 signs are their checksum.
fn is_of_plugin(text: &str) -> bool {
    let word = &text[..run(text, |sign| sign.is_ascii_alphanumeric() || "+-._".contains(sign))];
    word.rsplit_once("-1").is_some_and(|(_, data)| run(data, is_bech32) >= 12)
}

/// Whether a line of base64 stands behind the first line of a PEM file, or behind the header of one under a passphrase.
fn begins_pem(text: &str) -> bool {
    let text = text.trim_start();
    let is_line = |text: &str| run(text, is_base64) >= 40;
    // The slash of a path: no key begins with one.
    let is_key = is_line(text) && !text.starts_with('/');
    let has_header = ["PROC-TYPE:", "NPROC-TYPE:"].iter().any(|header| text.starts_with(header));
    is_key || has_header && text.split(|sign| !is_base64(sign)).any(is_line)
}

/// Whether the value of a JSON name is a string of base64.
fn is_json_bytes(text: &str) -> bool {
    let value = text.trim_start().strip_prefix(':').map(str::trim_start);
    value.and_then(|value| value.strip_prefix('"')).is_some_and(|value| run(value, is_base64) >= 20)
}

fn age(direction: Direction, keys: &Keys, secrets: &[Secret], spared: &mut Spared) -> Result<Task, Failure> {
    let of = |name: &str| {
        let name = name.to_owned();
        move |error: evener_files::FormatError| Failure::never(format_args!("{name}: {error}"))
    };
    if direction == Direction::Decrypt {
        let mut identities = Identities::default();
        for (name, text) in secrets {
            identities.add_file(text, &mut |_| None).map_err(of(name))?;
        }
        return match secrets {
            [] => Err(Failure::never("a key is needed: --key, --identity, --key-env or --key-command")),
            _ => Ok(Task::Decrypt(Opener::Age(identities))),
        };
    }
    let mut recipients = Recipients::default();
    for (option, text) in numbered("--recipient", &keys.recipients) {
        recipients.add(text).map_err(of(&option))?;
    }
    for (option, file) in numbered("--recipients-file", &keys.recipients_files) {
        let text = read_file(&option, file, spared)?;
        add_file(&mut recipients, &text).map_err(of(&file.display().to_string()))?;
    }
    for (name, text) in secrets {
        match holds_identities(text) {
            true => recipients.add_identity_file(text, &mut |_| None).map_err(of(name))?,
            false => add_file(&mut recipients, text).map_err(of(name))?,
        }
    }
    if recipients.texts().is_empty() {
        return Err(Failure::never(
            "a key is needed: --key, --recipient, --identity, --key-env or --key-command",
        ));
    }
    Ok(Task::Encrypt(Sealer::Age(recipients)))
}

/// Whether a text has identities, age's, a plugin's or SSH's, as far as their marks tell; else it is to have recipients.
fn holds_identities(text: &[u8]) -> bool {
    const MARKS: [&[u8]; 3] = [b"AGE-SECRET-KEY-", b"AGE-PLUGIN-", b"PRIVATE KEY-----"];
    MARKS.iter().any(|mark| text.windows(mark.len()).any(|start| start == *mark))
}

/// Adds the recipients of a file; one that cannot be used is an error, for no person reads a warning.
fn add_file(recipients: &mut Recipients, text: &[u8]) -> Result<(), evener_files::FormatError> {
    let unusable = recipients.add_file(text)?;
    unusable.into_iter().next().map_or(Ok(()), |unusable| Err(unusable.error))
}

/// The contents of a file that `option` names. It may be a key that was given in the place of its file, and is shown only if there is such a file.
fn read_file(option: &str, path: &Path, spared: &mut Spared) -> Result<Zeroizing<Vec<u8>>, Failure> {
    let file = evener_fd::open_named(path, OFlags::RDONLY | OFlags::CLOEXEC)
        .map_err(|error| Failure::never(format_args!("{option}: cannot open the file: {error}")))?;
    spared.add(&file, "a key of this run");
    read_all(std::fs::File::from(file))
        .map_err(|error| Failure::never(format_args!("cannot read {}: {error}", path.display())))
}

/// What a command prints within `time`, which a shell runs.
fn printed(command: &str, time: Duration) -> Result<Zeroizing<Vec<u8>>, Failure> {
    let failed = |what: String| Failure::new(Kind::Transient, format_args!("the command for the key {what}"));
    let shell = Command::new("sh").args(["-c", command]).stdin(Stdio::null()).stdout(Stdio::piped()).spawn();
    let mut shell = shell.map_err(|error| failed(format!("was not started: {error}")))?;
    let end = Instant::now() + time;
    let text = shell.stdout.take().map(|output| read_all(Timed { output, end })).transpose();
    let status = match &text {
        // What it started may have its output open for ever.
        Err(error) if error.kind() == ErrorKind::TimedOut => Ok(None),
        _ => ended(&mut shell, end),
    };
    let status = status.map_err(|error| failed(format!("cannot be waited for: {error}")))?;
    let Some(status) = status else {
        _ = (shell.kill(), shell.wait());
        return Err(failed(format!("did not end within {} s", time.as_secs())));
    };
    let text = text.map_err(|error| failed(format!("was not understood: {error}")))?;
    // A key server that is busy answers later.
    if status.success() { Ok(text.unwrap_or_default()) } else { Err(failed(format!("failed ({status})"))) }
}

/// How a process ended, if it did up to a moment.
fn ended(process: &mut Child, end: Instant) -> std::io::Result<Option<ExitStatus>> {
    loop {
        match process.try_wait()? {
            None if Instant::now() < end => std::thread::sleep(LOOK),
            ended => return Ok(ended),
        }
    }
}

/// How often it is looked whether a command that has closed its output has ended. Assumed, not measured: 5 ms, of which no person hears.
const LOOK: Duration = Duration::from_millis(5);

/// The output of a command, up to a moment.
struct Timed {
    output: ChildStdout,
    end: Instant,
}

impl Read for Timed {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        loop {
            let left = Timespec::try_from(self.end.saturating_duration_since(Instant::now()));
            let left = left.map_err(std::io::Error::other)?;
            match poll(&mut [PollFd::new(&self.output, PollFlags::IN)], Some(&left)) {
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
                Ok(0) => return Err(ErrorKind::TimedOut.into()),
                Ok(_) => return self.output.read(buffer),
            }
        }
    }
}

fn read_all(from: impl Read) -> std::io::Result<Zeroizing<Vec<u8>>> {
    // Space for all of it from the start, so that no copy is left behind by growing.
    let mut text = Zeroizing::new(Vec::with_capacity(KEY_BYTES_MAX + 1));
    from.take(KEY_BYTES_MAX as u64 + 1).read_to_end(&mut text)?;
    if text.len() > KEY_BYTES_MAX {
        return Err(std::io::Error::new(ErrorKind::InvalidData, "longer than a key can be"));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_told_from_a_command_that_has_only_the_mark_of_one() {
        let (bech32, base64) = ("QPZRY9X8GF2TVDW0S3JN".repeat(3), "b3BlbnNzaC1rZXktdjEA/+".repeat(3));
        for key in [
            format!("AGE-SECRET-KEY-1{bech32}"),
            format!("echo age-secret-key-1{}", bech32.to_lowercase()),
            format!("echo 'AGE-SECRET-KEY-PQ-1{bech32}'"),
            "AGE-PLUGIN-FIDO2-HMAC-1QQQPZRY9X8GF2TV".to_owned(),
            format!("grep AGE-SECRET-KEY- <<< AGE-SECRET-KEY-1{bech32}"),
            format!("-----BEGIN OPENSSH PRIVATE KEY-----\n{base64}\n-----END OPENSSH PRIVATE KEY-----"),
            format!("printf '-----BEGIN PRIVATE KEY-----\\n{base64}'"),
            format!(
                "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: DES,0A\n\n{base64}\n"
            ),
            format!(
                r"-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: DES,0A\n\n{base64}\n"
            ),
            format!(r#"{{"key":[{{"keyData":{{"typeUrl":"t","value": "{base64}"}}}}]}}"#),
            format!(r#"echo "{{\"keyData\":{{\"value\":\"{base64}\"}}}}""#),
            format!(r#"{{"encryptedKeyset":"{base64}"}}"#),
        ] {
            assert!(holds_key(&key), "{key}");
        }
        let path = "/home/somebody/directory/another/directory/keys";
        for command in [
            "grep AGE-SECRET-KEY- identities".to_owned(),
            "grep -o 'AGE-SECRET-KEY-1[A-Z0-9]*' notes".to_owned(),
            "grep AGE-SECRET-KEY-1 identities # one of several".to_owned(),
            "grep AGE-PLUGIN-YUBIKEY-1 identities".to_owned(),
            format!("sed -n '/BEGIN OPENSSH PRIVATE KEY-----/,/END OPENSSH PRIVATE KEY-----/p' {path}"),
            format!("grep -A9 -e '-----BEGIN PRIVATE KEY-----' {path}"),
            format!(r"grep -A9 -e -----BEGIN\ PRIVATE\ KEY----- {path}"),
            format!(r#"jq '{{"keyData": {{"value": .value}}}}' {path}"#),
            format!(r#"jq '."encryptedKeyset"' {path}"#),
        ] {
            assert!(!holds_key(&command), "{command}");
        }
    }
}
