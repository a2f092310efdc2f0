//! The load: `wrk`, one thread, eight connections that stay open; or `curl`, one request after the other, so many.

use std::process::Command;

/// Asks for `url` over and over for so many seconds; returns the requests that were answered.
///
/// # Errors
///
/// Where `wrk` is missing, says nothing that is understood, or any answer was none.
pub(crate) fn requests(url: &str, seconds: u32) -> Result<u64, String> {
    let duration = format!("{seconds}s");
    let output = Command::new("wrk").args(["-t", "1", "-c", "8", "-d", &duration, url]).output();
    let output = output.map_err(|error| format!("wrk (package wrk): {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    match answered(&text) {
        Some(requests) if output.status.success() && is_clean(&text) => Ok(requests),
        _ => Err(format!("wrk said: {text}{}", String::from_utf8_lossy(&output.stderr))),
    }
}

/// Who gets a connection of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Connection {
    /// One for all requests.
    Kept,
    /// Each request, and with it a full handshake.
    Each,
}

/// Asks for `url`, of which there are so many bytes, exactly so often, one request after the other.
///
/// # Errors
///
/// Where `curl` is missing, or an answer or the number of connections is another.
pub(crate) fn exactly(url: &str, bytes: usize, requests: u32, connection: Connection) -> Result<(), String> {
    let mut curl = Command::new("curl");
    curl.args(["-q", "-sS", "-k", "--noproxy", "*", "--http1.1", "--tlsv1.3", "-o", "/dev/null"]);
    // Its own limit is short for a server that is watched beside others.
    curl.args(["--connect-timeout", "86400", "-w", "%{http_code} %{size_download} %{num_connects}\n"]);
    if connection == Connection::Each {
        curl.args(["--no-sessionid", "-H", "Connection: close"]);
    }
    let output = curl.arg(format!("{url}?[1-{requests}]")).output();
    let output = output.map_err(|error| format!("curl (package curl): {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    match output.status.success() && is_exactly(&text, bytes, requests, connection) {
        true => Ok(()),
        false => Err(format!("curl said: {text}{}", String::from_utf8_lossy(&output.stderr))),
    }
}

/// Whether each line is `200 BYTES CONNECTIONS`, there are so many, and only those that should made a connection.
fn is_exactly(text: &str, bytes: usize, requests: u32, connection: Connection) -> bool {
    let expected = |request: u32| {
        let is_new = request == 0 || connection == Connection::Each;
        format!("200 {bytes} {}", u32::from(is_new))
    };
    text.lines().eq((0..requests).map(expected))
}

/// The number in `  12345 requests in 2.00s, 120.00MB read`.
fn answered(text: &str) -> Option<u64> {
    let line = text.lines().find(|line| line.contains(" requests in "))?;
    line.split_whitespace().next()?.parse().ok().filter(|&requests| requests > 0)
}

fn is_clean(text: &str) -> bool {
    !text.contains("Socket errors") && !text.contains("Non-2xx")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_answers_of_a_clean_run_count() {
        let clean = "Running 2s test\n  2 threads\n  4711 requests in 2.00s, 45.00MB read\n";
        assert_eq!((answered(clean), is_clean(clean)), (Some(4711), true));
        let broken =
            "  17 requests in 2.00s, 1.00MB read\n  Socket errors: connect 0, read 3, write 0, timeout 0\n";
        assert_eq!((answered(broken), is_clean(broken)), (Some(17), false));
        assert_eq!(answered("unable to connect"), None);
    }

    #[test]
    fn each_answer_is_whole_and_no_connection_is_lost() {
        let kept = |text| is_exactly(text, 7, 2, Connection::Kept);
        assert!(kept("200 7 1\n200 7 0\n"));
        assert!(!kept("200 7 1\n200 7 1\n"), "the connection was closed in between");
        assert!(!kept("200 7 1\n"), "one answer is missing");
        assert!(!kept("200 7 1\n200 6 0\n"), "one answer is short");
        assert!(!kept("200 7 1\n404 7 0\n"), "one answer is another");
        assert!(is_exactly("200 7 1\n200 7 1\n", 7, 2, Connection::Each));
    }
}
