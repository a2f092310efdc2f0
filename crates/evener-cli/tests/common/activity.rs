//! Statistics files as another program would leave them: written word by word after docs/reference/counters.md, and put in place at once.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Child, Command, Stdio};

use evener::core::counts::{Count, FILE_WORDS, MAGIC, Row, VERSION};

use super::Place;

/// Writes the file of process `pid` with these counts into `stats`, which it makes. Start and boot are unknown, so the process counts as
/// running while its number does.
pub fn write_statistics(place: &Place, pid: u32, name: &[u8], counts: &[(Row, Count, u32)]) {
    let folder = place.join("stats");
    fs::create_dir_all(&folder).unwrap();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o700)).unwrap();
    let mut words = vec![0_u32; FILE_WORDS];
    words[..4].copy_from_slice(&[MAGIC, VERSION, u32::try_from(FILE_WORDS).unwrap(), pid]);
    for (row, count, number) in counts {
        assert!(*number < 1 << 31, "the upper word would not be 0");
        words[row.word(*count) + 1] = *number;
    }
    let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
    bytes[32..32 + name.len()].copy_from_slice(name);
    fs::rename(place.write("draft", bytes), folder.join(format!("{pid}.stats"))).unwrap();
}

/// A process that ends with its test.
pub struct Guarded(pub Child);

impl Guarded {
    /// One that does nothing, and keeps nothing open of what the test has.
    pub fn sleeper() -> Self {
        let mut sleep = Command::new("sleep");
        sleep.arg("600").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Self(sleep.spawn().unwrap())
    }

    pub fn id(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}
