//! `openssl enc` on a file in memory.

use crate::error::BenchError;
use crate::unmodified::place::{Place, Run, read, said};
use crate::unmodified::program::{Cipher, Program, Work};

/// A direction of a cipher.
pub(super) struct Enc {
    name: &'static str,
    what: &'static str,
    cipher: &'static str,
    is_decrypted: bool,
}

pub(super) const CTR: Enc = Enc {
    name: "openssl-enc-ctr",
    what: "openssl enc -aes-256-ctr, a file of 512 MiB in memory",
    cipher: "aes-256-ctr",
    is_decrypted: false,
};

pub(super) const CBC_DECRYPTION: Enc = Enc {
    name: "openssl-dec-cbc",
    what: "openssl enc -d -aes-256-cbc, a file of 512 MiB in memory",
    cipher: "aes-256-cbc",
    is_decrypted: true,
};

const FILE_BYTES: usize = 512 << 20;
const KEY: &str = "00112233445566778899aabbccddeeff0123456789abcdef0123456789abcdef";
const IV: &str = "ffeeddccbbaa99887766554433221100";

impl Program for Enc {
    fn name(&self) -> &'static str {
        self.name
    }

    fn what(&self) -> &'static str {
        self.what
    }

    fn packages(&self) -> &'static [&'static str] {
        &["openssl"]
    }

    fn needs(&self) -> &'static [&'static str] {
        &["openssl"]
    }

    fn cipher(&self) -> Cipher {
        // The filter for ciphers takes so much at a time, whatever -bufsize says.
        Cipher {
            name: self.cipher,
            bytes: 4096,
            is_decrypted: self.is_decrypted,
            volume_bytes: FILE_BYTES as u64,
        }
    }

    fn hand(&self) -> &'static [&'static str] {
        &["kernels = on"]
    }

    fn prepare(&self, place: &Place) -> Result<Box<dyn Work>, BenchError> {
        let text = Place::data(FILE_BYTES);
        place.write("text", &text)?;
        let work = File { cipher: self.cipher, is_decrypted: self.is_decrypted, text };
        let mut command = place.plain("openssl");
        command.args(work.words(false, "text", "sealed"));
        said(command)?;
        Ok(Box::new(work))
    }
}

struct File {
    cipher: &'static str,
    is_decrypted: bool,
    text: Vec<u8>,
}

impl File {
    fn words(&self, is_decrypted: bool, from: &str, to: &str) -> Vec<String> {
        let cipher = format!("-{}", self.cipher);
        let mut words = vec!["enc", &cipher, "-K", KEY, "-iv", IV, "-in", from, "-out", to];
        words.extend(is_decrypted.then_some("-d"));
        words.into_iter().map(str::to_owned).collect()
    }
}

impl Work for File {
    fn once(&mut self, run: &Run<'_>) -> Result<String, BenchError> {
        let (from, to) = if self.is_decrypted { ("sealed", "opened") } else { ("text", "fresh") };
        let mut command = run.command("openssl");
        command.args(self.words(self.is_decrypted, from, to));
        run.timed(|| run.said(command))?;
        if !self.is_decrypted {
            let mut read = run.plain("openssl");
            read.args(self.words(true, to, "opened"));
            said(read)?;
        }
        let is_equal = read(&run.place().path("opened"))? == self.text;
        run.place().write("opened", "")?;
        run.place().write("fresh", "")?;
        Ok(if is_equal { "the text" } else { "another text" }.to_owned())
    }

    fn truth(&self) -> &str {
        "the text"
    }
}
