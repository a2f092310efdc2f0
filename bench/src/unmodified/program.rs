//! What a program of the table is: where it is had from, what it prepares, and what it does in a run.
//!
//! Path: [`Program::needs`] (is it there?) -> [`Program::prepare`] (data, keys, the truth) -> [`Work::once`] in each run -> its proof beside [`Work::truth`].

use super::place::{Place, Run};
use crate::error::BenchError;

/// A program as its own makers built it.
pub trait Program: Sync {
    /// Its name in the table, and on the command line.
    fn name(&self) -> &'static str;

    /// What it does in a run, in words.
    fn what(&self) -> &'static str;

    /// Debian's packages that have it.
    fn packages(&self) -> &'static [&'static str];

    /// Files and commands that are there where it is installed.
    fn needs(&self) -> &'static [&'static str];

    /// Whether it runs for root only.
    fn needs_root(&self) -> bool {
        false
    }

    /// What it has most of its ciphers' work from.
    fn cipher(&self) -> Cipher;

    /// Lines of the provider's section that a user who knows the program would write.
    fn hand(&self) -> &'static [&'static str];

    /// What the project asks of it, where it asks something.
    fn figure(&self) -> Option<Asked> {
        None
    }

    /// Makes what all runs use, by OpenSSL alone.
    ///
    /// # Errors
    ///
    /// Where the program or a file of it refuses.
    fn prepare(&self, place: &Place) -> Result<Box<dyn Work>, BenchError>;
}

/// A prepared program.
pub trait Work {
    /// Does the work once, and gives a proof of what came out: what OpenSSL alone reads out of it, or a sum of it.
    ///
    /// # Errors
    ///
    /// Where the program fails.
    fn once(&mut self, run: &Run<'_>) -> Result<String, BenchError>;

    /// What each run has to prove.
    fn truth(&self) -> &str;
}

/// A cipher by itself, as `openssl speed -evp` measures it.
#[derive(Clone, Copy, Debug)]
pub struct Cipher {
    /// As `openssl speed` calls it.
    pub name: &'static str,
    /// Of a message.
    pub bytes: u32,
    /// Which direction most of the work is.
    pub is_decrypted: bool,
    /// Bytes that go through it in a run: where `perf` is missing, its share is reckoned by that.
    pub volume_bytes: u64,
}

/// A figure to reach.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Asked {
    /// At most this of plain's time.
    pub ratio_max: f64,
    /// Wall time instead of core time.
    pub is_wall: bool,
}

impl Asked {
    /// So much of plain's core time at most.
    #[must_use]
    pub const fn core(ratio_max: f64) -> Self {
        Self { ratio_max, is_wall: false }
    }
}
