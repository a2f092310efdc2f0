//! The process of a plugin, and stanzas to and from it.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use zeroize::Zeroizing;

use crate::error::FormatError;
use crate::keys::age::stanza::Stanza;

/// Longest stanza that is read from a plugin. Assumed, not measured: 4 MiB, as the longest header.
const STANZA_BYTES_MAX: usize = 4 << 20;

/// A running plugin. Dropped, its ends are closed, and it is told to stop and waited for.
pub(super) struct Process {
    name: String,
    child: Child,
    to: Option<ChildStdin>,
    from: Option<BufReader<ChildStdout>>,
}

impl Process {
    /// Starts `age-plugin-NAME` of the user's PATH for one side of the protocol.
    pub(super) fn start(name: &str, side: &str) -> Result<Self, FormatError> {
        let program = find(name).ok_or_else(|| fact(name, "age-plugin-", name, " is not in PATH"))?;
        let mut child = Command::new(program)
            .arg(format!("--age-plugin={side}"))
            // No plugin is to rely on where it was started.
            .current_dir(std::env::temp_dir())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| fact(name, "cannot be started: ", &error.to_string(), ""))?;
        let (to, from) = (child.stdin.take(), child.stdout.take().map(BufReader::new));
        Ok(Self { name: name.to_owned(), child, to, from })
    }

    /// Writes a stanza.
    pub(super) fn tell(&mut self, kind: &str, args: &[&str], body: &[u8]) -> Result<(), FormatError> {
        let mut text = Zeroizing::new(Vec::with_capacity(256 + 2 * body.len()));
        Stanza::new(kind, args, body).write(&mut text);
        let written = self.to.as_mut().map(|to| to.write_all(&text).and_then(|()| to.flush()));
        match written {
            Some(Ok(())) => Ok(()),
            _ => Err(fact(&self.name, "ended early", "", "")),
        }
    }

    /// Reads a stanza.
    pub(super) fn hear(&mut self) -> Result<Stanza, FormatError> {
        let mut text = Zeroizing::new(Vec::with_capacity(4096));
        let ended = || fact(&self.name, "ended early", "", "");
        let from = self.from.as_mut().ok_or_else(ended)?;
        loop {
            let start = text.len();
            let space = (STANZA_BYTES_MAX - start) as u64;
            let read = from.by_ref().take(space).read_until(b'\n', &mut text);
            if !read.is_ok_and(|bytes| bytes > 0) || !text.ends_with(b"\n") {
                return Err(ended());
            }
            // The line of words has any length; a line of the body that is not full is the last.
            if start > 0 && text.len() - start <= 64 {
                break;
            }
        }
        let (stanza, _) = Stanza::read(&text)
            .ok_or_else(|| fact(&self.name, "said what the protocol does not allow", "", ""))?;
        Ok(stanza)
    }

    /// What went wrong with the plugin, in its words.
    pub(super) fn fact(&self, text: &str) -> FormatError {
        fact(&self.name, text, "", "")
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        (self.to, self.from) = (None, None);
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        // It may have ended by itself, and then nothing is to be stopped.
        pid.map(|pid| kill_process(pid, Signal::INT));
        self.child.wait().ok();
    }
}

fn fact(name: &str, before: &str, what: &str, behind: &str) -> FormatError {
    // Plugins' words go to a terminal.
    let plain = |text: &str| text.chars().filter(|c| !c.is_control()).collect::<String>();
    FormatError::Plugin { name: name.to_owned(), fact: format!("{before}{}{behind}", plain(what)) }
}

/// The program in the directories of PATH; those that depend on where one stands are left out.
fn find(name: &str) -> Option<PathBuf> {
    let directories = std::env::var_os("PATH")?;
    std::env::split_paths(&directories)
        .filter(|directory| directory.is_absolute())
        .map(|directory| directory.join(format!("age-plugin-{name}")))
        .find(|program| rustix::fs::access(program, rustix::fs::Access::EXEC_OK).is_ok() && program.is_file())
}
