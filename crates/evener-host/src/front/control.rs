//! The control socket: one command per line, one line of JSON in answer.

use std::io::{BufRead as _, BufReader, ErrorKind, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use serde_json::json;

use crate::front::admin_command::AdminCommand;
use crate::state::host_state::HostState;

/// Answers commands until the other side closes or the host stops.
pub(crate) fn serve(shared: &HostState, mut stream: UnixStream) {
    let Ok(reading) = stream.try_clone() else { return };
    let limited = reading.set_read_timeout(Some(LOOK_EVERY));
    if limited.and_then(|()| stream.set_write_timeout(Some(ANSWER_TIMEOUT))).is_err() {
        return;
    }
    let mut reader = BufReader::new(reading.take(TALK_BYTES_MAX));
    let mut line = String::new();
    while !shared.is_stopping() {
        match reader.read_line(&mut line) {
            Ok(0) => return,
            Ok(_) => {
                if writeln!(stream, "{}", answer(shared, &line)).is_err() {
                    return;
                }
                line.clear();
            }
            // Half a line stays in `line` and is continued.
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            Err(_) => return,
        }
    }
}

fn answer(shared: &HostState, line: &str) -> serde_json::Value {
    let refused = |reason: String| json!({ "error": reason });
    match line.trim().parse() {
        Ok(AdminCommand::Report) => {
            serde_json::to_value(shared.report()).unwrap_or_else(|error| refused(error.to_string()))
        }
        Ok(AdminCommand::Reset) => {
            shared.resets.fetch_add(1, Relaxed);
            shared.wake();
            json!({ "ok": true })
        }
        Ok(AdminCommand::Emulation(change)) => match &shared.control {
            Some(control) => {
                change.apply(control);
                shared.wake();
                json!({ "ok": true })
            }
            None => refused("this module is not emulated".to_owned()),
        },
        Err(error) => refused(error.to_string()),
    }
}

/// How long an answer may wait for a user that reads none: else the host could not end. Assumed, not measured: 1 s.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(1);

/// How soon a control connection notices that the host stops.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// What one control connection may say, in bytes: a limit, so that no line grows without end.
const TALK_BYTES_MAX: u64 = 1 << 20;
