//! Python's `cryptography`, the distribution's, which uses the system's OpenSSL: `AESGCM` in a loop.

use crate::error::BenchError;
use crate::unmodified::place::{Place, Run, said};
use crate::unmodified::program::{Asked, Cipher, Program, Work};

/// Messages of a size.
pub(super) struct AesGcm {
    name: &'static str,
    what: &'static str,
    messages: u32,
    bytes: u32,
    asked: Asked,
}

pub(super) const AESGCM_16K: AesGcm = AesGcm {
    name: "python-16k",
    what: "python3-cryptography's AESGCM encrypts 60,000 messages of 16 KiB",
    messages: 60_000,
    bytes: 16 << 10,
    asked: Asked::core(0.75),
};

pub(super) const AESGCM_1M: AesGcm = AesGcm {
    name: "python-1m",
    what: "python3-cryptography's AESGCM encrypts 1,200 messages of 1 MiB",
    messages: 1_200,
    bytes: 1 << 20,
    asked: Asked::core(0.89),
};

const SCRIPT: &str = include_str!("../../../../conformance/openssl/programs/aesgcm.py");

/// Reads with the same key what the script kept of its last message.
const READ: &str = "\
import sys
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
number, size = map(int, sys.argv[1:])
text = AESGCM(bytes(range(32))).decrypt(number.to_bytes(12, 'big'), open('sealed', 'rb').read(), None)
print(text == bytes(size))
";

impl Program for AesGcm {
    fn name(&self) -> &'static str {
        self.name
    }

    fn what(&self) -> &'static str {
        self.what
    }

    fn packages(&self) -> &'static [&'static str] {
        &["python3-cryptography"]
    }

    fn needs(&self) -> &'static [&'static str] {
        &["(/usr/bin/python3 -c 'import cryptography')"]
    }

    fn cipher(&self) -> Cipher {
        let volume_bytes = u64::from(self.messages) * u64::from(self.bytes);
        Cipher { name: "aes-256-gcm", bytes: self.bytes, is_decrypted: false, volume_bytes }
    }

    fn hand(&self) -> &'static [&'static str] {
        &["kernels = on"]
    }

    fn figure(&self) -> Option<Asked> {
        Some(self.asked)
    }

    fn prepare(&self, place: &Place) -> Result<Box<dyn Work>, BenchError> {
        place.write("aesgcm.py", SCRIPT)?;
        place.write("read.py", READ)?;
        Ok(Box::new(Loop { messages: self.messages, bytes: self.bytes }))
    }
}

struct Loop {
    messages: u32,
    bytes: u32,
}

impl Work for Loop {
    fn once(&mut self, run: &Run<'_>) -> Result<String, BenchError> {
        let [messages, bytes] = [self.messages, self.bytes].map(|number| number.to_string());
        let mut command = run.command("/usr/bin/python3");
        command.args(["aesgcm.py", &messages, &bytes, "sealed"]);
        run.timed(|| run.said(command))?;
        let mut read = run.plain("/usr/bin/python3");
        read.args(["read.py", &(self.messages - 1).to_string(), &bytes]);
        said(read)
    }

    fn truth(&self) -> &str {
        "True"
    }
}
