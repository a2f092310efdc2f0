//! The load: `wrk`, one thread, eight connections that stay open.

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
}
