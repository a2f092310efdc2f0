//! A certificate for servers under test.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::bounded;

/// Makes `cert.pem` for `localhost` and `key.pem` in `folder`, by the `openssl` command without Evener.
///
/// # Panics
///
/// Where the command does not make them.
pub fn make_certificate(folder: &Path) {
    // A build of OpenSSL that is not installed finds no configuration of its own.
    fs::write(folder.join("req.cnf"), "[req]\ndistinguished_name = name\n[name]\n")
        .expect("the folder is ours");
    let request = "req -config req.cnf -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2";
    let mut command = Command::new("openssl");
    command.env_remove("OPENSSL_CONF").args(request.split(' ')).args(["-subj", "/CN=localhost"]);
    command.args(["-keyout", "key.pem", "-out", "cert.pem"]).current_dir(folder);
    let made = bounded(30, &command);
    assert!(made.status.success(), "{made:?}");
}
