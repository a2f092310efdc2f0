//! Python and Node, where they are installed: queried by a few lines that they run.

use std::process::{Command, Stdio};

use serde::Serialize;

use super::Finding;

/// What an interpreter printed.
#[derive(Serialize)]
pub(super) struct Runtime {
    name: &'static str,
    /// Of the OpenSSL inside it.
    version: String,
    /// Whether Evener's provider was in the process after it had encrypted or hashed.
    evener_loaded: bool,
    #[serde(skip)]
    cure: &'static str,
}

/// Prints the version, then whether the module is mapped.
const SSL: &str = "import ssl, hashlib\nssl.create_default_context()\nhashlib.sha256(b'x').digest()\n\
                   print(ssl.OPENSSL_VERSION)\nprint('/evener.so' in open('/proc/self/maps').read())";

/// In a process without `ssl`, whose OpenSSL may be another.
const CRYPTOGRAPHY: &str = "from cryptography.hazmat.backends.openssl.backend import backend\n\
                            from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes\n\
                            Cipher(algorithms.AES(bytes(16)), modes.CBC(bytes(16))).encryptor().update(bytes(16))\n\
                            print(backend.openssl_version_text())\nprint('/evener.so' in open('/proc/self/maps').read())";

const NODE: &str = "const c = require('crypto');\n\
                    c.createCipheriv('aes-128-cbc', Buffer.alloc(16), Buffer.alloc(16)).update(Buffer.alloc(16));\n\
                    console.log('OpenSSL ' + process.versions.openssl);\n\
                    console.log(require('fs').readFileSync('/proc/self/maps', 'utf8').includes('/evener.so') ? 'True' : 'False');";

const CONFIGURE: &str = "start it with OPENSSL_CONF set";
const CONFIGURE_NODE: &str =
    "start it with OPENSSL_CONF set and a `nodejs_conf` line in that file, or with --openssl-config=FILE";

pub(super) fn installed() -> Vec<Runtime> {
    let runtimes = [
        ("Python ssl", "python3", "-c", SSL, CONFIGURE),
        ("Python cryptography", "python3", "-c", CRYPTOGRAPHY, CONFIGURE),
        ("Node", "node", "-e", NODE, CONFIGURE_NODE),
    ];
    runtimes
        .into_iter()
        .filter_map(|(name, program, option, script, cure)| query(name, program, [option, script], cure))
        .collect()
}

/// What says whether the provider counts: what is tried here is no request of a program's.
const COUNTS: &str = "EVENER_STATISTICS";

/// Nothing where it is not installed, or cannot do this.
fn query(name: &'static str, program: &str, script: [&str; 2], cure: &'static str) -> Option<Runtime> {
    let mut command = Command::new(program);
    command.args(script).env(COUNTS, "off").stdin(Stdio::null()).stderr(Stdio::null());
    let output = command.output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let mut lines = text.lines();
    let (version, loaded) = (lines.next()?, lines.next()?);
    output.status.success().then(|| Runtime {
        name,
        version: version.to_owned(),
        evener_loaded: loaded == "True",
        cure,
    })
}

impl Runtime {
    pub(super) fn line(&self) -> String {
        let loaded = if self.evener_loaded { "has loaded" } else { "has not loaded" };
        format!("{} ({}) {loaded} Evener's provider", self.name, self.version)
    }

    pub(super) fn finding(&self) -> Option<Finding> {
        let fact = || format!("{} ({}) did not load Evener's provider", self.name, self.version);
        (!self.evener_loaded).then(|| Finding::new("runtime", fact(), self.cure))
    }
}
