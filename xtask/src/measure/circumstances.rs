//! Under which circumstances something was measured: date, machine, versions, load.

use std::fs;
use std::path::Path;
use std::process::Command;

use evener_testbed::Awake;
use serde_json::Value;

use crate::programs::{answer, first_line_of};
use crate::tree::root;

/// Date, machine and versions, as a list.
pub(crate) fn circumstances(evener: &Path, load_before: &str) -> Result<String, String> {
    let mut devices = Command::new(evener);
    devices.args(["devices", "--json"]);
    let version = first_line_of(&evener.to_string_lossy(), &["--version"]);
    let system = first_line_of("uname", &["-srm"]);
    told(&answer(devices)?, &version, &system, load_before)
}

/// The same of a guest's processor, from what `evener devices --json` and `evener --version` printed there, in this order.
pub(crate) fn circumstances_of(printed: &str, load_before: &str) -> Result<String, String> {
    let (devices, version) =
        printed.trim_end().rsplit_once('\n').ok_or("the guest does not say what it is")?;
    told(devices, version, "a guest of the test bed", load_before)
}

fn told(devices: &str, version: &str, system: &str, load_before: &str) -> Result<String, String> {
    let devices: Value = serde_json::from_str(devices).map_err(|error| error.to_string())?;
    let lines = [
        format!("date: {}", first_line_of("date", &["-u", "+%Y-%m-%d"])),
        format!("processor: {}", processor(&devices)),
        format!("system: {system}"),
        format!("libraries: {}", libraries(&devices)),
        format!("compiler: {}", first_line_of("rustc", &["--version"])),
        format!("evener: {version}, commit {}", commit()),
        format!("load: {load_before} before, {} after", load()),
    ];
    Ok(lines.map(|line| format!("- {line}\n")).concat())
}

/// Whether the host's processors fell asleep between requests, as a line of the circumstances.
pub(crate) fn sleep(awake: Option<&Awake>) -> String {
    let state = if awake.is_some() { "kept awake" } else { "free to sleep" };
    format!("- processors of the host: {state}\n")
}

/// Features that say nothing where all of them are there, for no processor so far has all of these and lacks the others.
const IMPLIED: [&str; 6] = ["PCLMULQDQ", "VPCLMULQDQ", "AVX-512F", "AVX-512BW", "AVX-512IFMA", "GFNI"];

fn processor(devices: &Value) -> String {
    let processor = &devices["processor"];
    let all = processor["features"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let all: Vec<_> = all.collect();
    let are_all_there = IMPLIED.iter().all(|feature| all.contains(feature));
    let features: Vec<_> = all.into_iter().filter(|it| !are_all_there || !IMPLIED.contains(it)).collect();
    let model = processor["model"].as_str().unwrap_or("unknown");
    format!("{model}, {} cores used; {}", devices["workers"]["count"], features.join(", "))
}

fn libraries(devices: &Value) -> String {
    let drivers = devices["drivers"].as_array().into_iter().flatten();
    let detail = |driver: &Value| {
        let there = driver["detail"].as_str().map(str::to_owned);
        there.unwrap_or_else(|| format!("no {}", driver["name"].as_str().unwrap_or("driver")))
    };
    drivers.map(detail).collect::<Vec<_>>().join("; ")
}

/// Short name of what is checked out; marked where files differ from it.
pub(crate) fn commit() -> String {
    let folder = root().to_string_lossy().into_owned();
    first_line_of("git", &["-C", &folder, "describe", "--always", "--dirty=, changed", "--exclude", "*"])
}

/// Load of the machine over the last minute.
pub(crate) fn load() -> String {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split_whitespace().next().unwrap_or("unknown").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_is_described_by_what_evener_knows_of_it() {
        let devices = serde_json::json!({
            "processor": { "model": "Z80", "features": ["AES-NI", "VAES"] },
            "workers": { "count": 2 },
            "drivers": [{ "name": "libcrypto", "detail": "OpenSSL 3" }, { "name": "multibuffer", "missing": "no" }],
        });
        assert_eq!(processor(&devices), "Z80, 2 cores used; AES-NI, VAES");
        assert_eq!(libraries(&devices), "OpenSSL 3; no multibuffer");
    }
}
