//! The same for programs that know nothing of Evener: `openssl speed -multi`, whose processes have one message at a time.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, ensure};
use evener_bench::programs::openssl_conf::Providers;

use super::Arguments;
use super::processes::{MessageCost, Work};

/// Megabytes per second of all processes together, by `providers`, which reach the host at `socket`.
pub(super) fn run(
    arguments: &Arguments,
    provider: &Path,
    providers: Providers,
    socket: &Path,
) -> anyhow::Result<Work> {
    let provider = provider.canonicalize().with_context(|| provider.display().to_string())?;
    let folder = tempfile::tempdir()?;
    let configuration = folder.path().join("openssl.cnf");
    let settings = [format!("modules = hosted:{}", socket.display())];
    std::fs::write(&configuration, providers.configuration(&provider, &settings))?;
    let seconds = (arguments.window_ms / 1_000).max(1);
    let mut command = Command::new("openssl");
    command.env("OPENSSL_CONF", &configuration).args(["speed", "-elapsed", "-evp", "aes-128-cbc"]);
    command.args(["-multi", &arguments.processes.to_string(), "-seconds", &seconds.to_string()]);
    if arguments.async_jobs > 0 {
        command.args(["-async_jobs", &arguments.async_jobs.to_string()]);
    }
    let output = command.args(["-bytes", &arguments.bytes.to_string()]).output().context("openssl")?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let rate = rate(&String::from_utf8_lossy(&output.stdout)).context("openssl speed tells no rate")?;
    // It tells the sum only.
    Ok(Work { rate, fairness: f64::NAN, message: MessageCost { client_us: f64::NAN, host_us: f64::NAN } })
}

/// Of a table that ends with `AES-128-CBC    1963321.94k`, thousands of bytes a second.
fn rate(table: &str) -> Option<f64> {
    let row = table.lines().rfind(|line| line.starts_with("AES-128-CBC"))?;
    let number = row.split_whitespace().last()?.strip_suffix('k')?;
    Some(number.parse::<f64>().ok()? / 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_the_last_word_of_the_cipher_s_row() {
        let table = "version: 3.0.19\nThe 'numbers' are in 1000s of bytes per second processed.\n\
                     type          16384 bytes\nAES-128-CBC    1963321.94k\n";
        assert_eq!(rate(table), Some(1_963.321_94));
        assert_eq!(rate("type 16384 bytes\n"), None);
    }
}
