//! A program that is written and then started, in a process whose other threads start programs as well.

use std::io::{self, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::error::at;

/// Writes a program: `bytes` under `path`, in place of what is there, with mode 755. It can be started as soon as this
/// returns.
///
/// A child writes it, which never forks. Were the file open for writing in this process, a thread that forks at that
/// moment would leave the descriptor to its child until the child's exec, and a start of the program meanwhile would fail
/// with "Text file busy" (`ETXTBSY`). Not taken: to start it again after such a failure, for often not we start it, but cargo,
/// `setpriv`, or a shell that we started.
///
/// # Errors
///
/// Where `install` cannot be started or does not write the file: what it printed.
pub fn write_program(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut install = Command::new("install");
    install.args(["-m", "755", "--", "/dev/stdin"]).arg(path);
    let mut child = install.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    // One that cannot write the file closes the pipe; its status says so below.
    let fed = child.stdin.take().map_or(Ok(()), |mut stdin| stdin.write_all(bytes));
    let output = child.wait_with_output()?;
    let stderr = String::from_utf8_lossy(&output.stderr);
    match output.status.success() {
        true => fed,
        false => Err(at(path, io::Error::other(stderr.trim().to_owned()))),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::{fs, thread};

    use super::*;

    #[test]
    fn a_program_can_be_started_at_once_though_other_threads_start_programs_all_the_time() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("program");
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    while !is_over.load(Ordering::Relaxed) {
                        assert!(Command::new("true").status().unwrap().success());
                    }
                });
            }
            let ran: Vec<_> = (0..100)
                .map(|number| {
                    write_program(&program, format!("#!/bin/sh\nexit {number}\n").as_bytes()).unwrap();
                    Command::new(&program).status().map(|status| status.code())
                })
                .collect();
            is_over.store(true, Ordering::Relaxed);
            for (number, code) in (0..).zip(ran) {
                assert_eq!(code.unwrap(), Some(number));
            }
        });
    }

    #[test]
    fn where_it_cannot_be_written_the_reason_is_told_with_its_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("gone/program");
        let error = write_program(&path, &vec![0; 1 << 20]).unwrap_err().to_string();
        assert!(error.contains("gone/program") && error.contains("No such file"), "{error}");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
