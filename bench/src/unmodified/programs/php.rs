//! PHP's `openssl_encrypt` on long strings.

use crate::error::BenchError;
use crate::unmodified::place::{Place, Run, said};
use crate::unmodified::program::{Asked, Cipher, Program, Work};

/// Strings of a size.
pub(super) struct Strings {
    name: &'static str,
    what: &'static str,
    count: u32,
    bytes: u32,
    hand: &'static [&'static str],
    asked: Asked,
}

pub(super) const GCM_8M: Strings = Strings {
    name: "php-8m",
    what: "PHP's openssl_encrypt, AES-256-GCM, 120 strings of 8 MiB",
    count: 120,
    bytes: 8 << 20,
    hand: &["kernels = on"],
    asked: Asked::core(0.86),
};

pub(super) const GCM_256M: Strings = Strings {
    name: "php-256m",
    what: "PHP's openssl_encrypt, AES-256-GCM, one string of 256 MB; wall time is that of the call",
    count: 1,
    bytes: 256_000_000,
    hand: &["threads = auto", "split = 1048576", "guard = off"],
    asked: Asked { ratio_max: 1.0 / 1.4, is_wall: true },
};

/// Prints the seconds of the last call, its tag, and a sum of its ciphertext; with a third word, whether it is what OpenSSL reads.
const SCRIPT: &str = "\
<?php
[, $count, $bytes] = array_map('intval', $argv);
$text = str_repeat(pack('J', 0x9e3779b97f4a7c15), intdiv($bytes, 8));
$key = str_repeat('k', 32);
for ($i = 0; $i < $count; $i++) {
    $nonce = pack('NJ', 0, $i);
    $began = hrtime(true);
    $sealed = openssl_encrypt($text, 'aes-256-gcm', $key, OPENSSL_RAW_DATA, $nonce, $tag);
    $took = hrtime(true) - $began;
}
echo $took / 1e9, ' ', bin2hex($tag), hash('xxh3', $sealed);
if (isset($argv[3])) echo openssl_decrypt($sealed, 'aes-256-gcm', $key, OPENSSL_RAW_DATA, $nonce, $tag) === $text ? '' : ' unreadable';
";

impl Program for Strings {
    fn name(&self) -> &'static str {
        self.name
    }

    fn what(&self) -> &'static str {
        self.what
    }

    fn packages(&self) -> &'static [&'static str] {
        &["php-cli"]
    }

    fn needs(&self) -> &'static [&'static str] {
        &["php"]
    }

    fn cipher(&self) -> Cipher {
        let volume_bytes = u64::from(self.count) * u64::from(self.bytes);
        Cipher { name: "aes-256-gcm", bytes: 8 << 20, is_decrypted: false, volume_bytes }
    }

    fn hand(&self) -> &'static [&'static str] {
        self.hand
    }

    fn figure(&self) -> Option<Asked> {
        Some(self.asked)
    }

    fn prepare(&self, place: &Place) -> Result<Box<dyn Work>, BenchError> {
        place.write("seal.php", SCRIPT)?;
        let words = [self.count, self.bytes].map(|number| number.to_string());
        let mut plain = place.plain("php");
        plain.args(["-d", "memory_limit=-1", "seal.php"]).args(&words).arg("read");
        let (_, truth) = parts(&said(plain)?);
        Ok(Box::new(Loop { words, truth, is_call: self.count == 1 }))
    }
}

struct Loop {
    words: [String; 2],
    truth: String,
    is_call: bool,
}

impl Work for Loop {
    fn once(&mut self, run: &Run<'_>) -> Result<String, BenchError> {
        let mut command = run.command("php");
        command.args(["-d", "memory_limit=-1", "seal.php"]).args(&self.words);
        let (seconds, proof) = parts(&run.timed(|| run.said(command))?);
        if self.is_call {
            run.set_wall(seconds);
        }
        Ok(proof)
    }

    fn truth(&self) -> &str {
        &self.truth
    }
}

/// Seconds, and all that stands behind them.
fn parts(told: &str) -> (f64, String) {
    let (seconds, proof) = told.split_once(' ').unwrap_or((told, ""));
    (seconds.parse().unwrap_or(f64::NAN), proof.to_owned())
}
