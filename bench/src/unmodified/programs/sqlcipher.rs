//! SQLCipher: many connections read one encrypted database.

use crate::error::BenchError;
use crate::unmodified::place::{Place, Run, said};
use crate::unmodified::program::{Cipher, Program, Work};

pub(super) struct SqlCipher;

const CONNECTIONS: usize = 60;
const ROWS: usize = 4_000;

impl Program for SqlCipher {
    fn name(&self) -> &'static str {
        "sqlcipher"
    }

    fn what(&self) -> &'static str {
        "SQLCipher, 60 connections at once read a database of 16 MB each, pages of 4 KiB by AES-256-CBC and HMAC"
    }

    fn packages(&self) -> &'static [&'static str] {
        &["sqlcipher"]
    }

    fn needs(&self) -> &'static [&'static str] {
        &["sqlcipher"]
    }

    fn cipher(&self) -> Cipher {
        let volume_bytes = (CONNECTIONS * ROWS * 4096) as u64;
        Cipher { name: "aes-256-cbc", bytes: 4096, is_decrypted: true, volume_bytes }
    }

    fn hand(&self) -> &'static [&'static str] {
        &["kernels = on"]
    }

    fn prepare(&self, place: &Place) -> Result<Box<dyn Work>, BenchError> {
        place.write("key", KEY)?;
        place.write("fill", FILL.replace("ROWS", &ROWS.to_string()))?;
        place.write(
            "read",
            "select count(*), sum(length(v)), sum(unicode(substr(v, 4000))), max(v) from t;\n",
        )?;
        let mut fill = place.plain("sh");
        fill.args(["-ec", "cat key fill | sqlcipher data; cat key read | sqlcipher data"]);
        let truth = said(fill)?;
        Ok(Box::new(Connections { truth: vec![truth; CONNECTIONS].join("\n") }))
    }
}

struct Connections {
    truth: String,
}

impl Work for Connections {
    fn once(&mut self, run: &Run<'_>) -> Result<String, BenchError> {
        let mut command = run.command("sh");
        let script =
            "i=0; while [ $i -lt $0 ]; do cat key read | sqlcipher data > out.$i & i=$((i + 1)); done; wait";
        command.args(["-ec", script, &CONNECTIONS.to_string()]);
        run.timed(|| run.said(command))?;
        let mut all = run.plain("sh");
        all.args(["-c", "cat out.* && rm out.*"]);
        said(all)
    }

    fn truth(&self) -> &str {
        &self.truth
    }
}

const KEY: &str = "PRAGMA key = \"x'00112233445566778899aabbccddeeff0123456789abcdef0123456789abcdef'\";\nPRAGMA cipher_page_size = 4096;\n";
const FILL: &str = "\
create table t (v);
with recursive n(i) as (select 1 union all select i + 1 from n where i < ROWS) insert into t select hex(randomblob(2000)) from n;
";
