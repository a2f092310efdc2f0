//! A server of OpenSSH's for one measurement: keys and configuration in a folder, and what a client says to reach it.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::stopwatch;
use crate::error::BenchError;

/// Where a server that root starts parts from its rights; the distribution makes it at the machine's start.
const PRIVILEGE_FOLDER: &str = "/run/sshd";

/// Keys of a server and a user, and the server's configuration.
#[derive(Clone, Debug)]
pub struct Site {
    folder: PathBuf,
    port: u16,
}

impl Site {
    /// Makes them in `folder`, which others may enter from then on; the server takes these `ciphers`, with commas between them.
    ///
    /// # Errors
    ///
    /// [`BenchError::Command`] where there is no `ssh-keygen`, [`BenchError::File`] where a file cannot be written.
    pub fn make(folder: &Path, port: u16, ciphers: &str) -> Result<Self, BenchError> {
        for name in ["host", "user"] {
            let mut command = Command::new("ssh-keygen");
            command.args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(folder.join(name));
            stopwatch::run(command)?;
        }
        let at = folder.display();
        let text = format!(
            "Port {port}\nListenAddress 127.0.0.1\nHostKey {at}/host\nAuthorizedKeysFile {at}/user.pub\nStrictModes no\n\
             UsePAM no\nPasswordAuthentication no\nPermitRootLogin yes\nPidFile none\nCiphers {ciphers}\nSubsystem sftp internal-sftp\n"
        );
        let failed =
            |error: std::io::Error| BenchError::File { path: at.to_string(), error: error.to_string() };
        fs::write(folder.join("sshd_config"), text).map_err(failed)?;
        fs::set_permissions(folder, Permissions::from_mode(0o755)).map_err(failed)?;
        if rustix::process::getuid().is_root() {
            fs::create_dir_all(PRIVILEGE_FOLDER).map_err(failed)?;
        }
        Ok(Self { folder: folder.to_owned(), port })
    }

    /// Words of the server, which stays in the foreground.
    #[must_use]
    pub fn server_words(&self) -> [String; 3] {
        ["-D".to_owned(), "-f".to_owned(), self.folder.join("sshd_config").display().to_string()]
    }

    /// Words of `ssh` and `sftp` by which they reach the server with this cipher, and nothing of this machine's is read or kept.
    #[must_use]
    pub fn client_words(&self, cipher: &str) -> Vec<String> {
        let user = self.folder.join("user").display().to_string();
        let mut words =
            ["-F", "none", "-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null"]
                .map(str::to_owned)
                .to_vec();
        words.extend(["-o", "BatchMode=yes", "-c", cipher, "-i", &user, "-o"].map(str::to_owned));
        words.push(format!("Port={}", self.port));
        words
    }

    /// Where this user logs in.
    ///
    /// # Errors
    ///
    /// [`BenchError::Command`] where this user has no name.
    pub fn address(&self) -> Result<String, BenchError> {
        let mut id = Command::new("id");
        id.arg("-un");
        Ok(format!("{}@127.0.0.1", String::from_utf8_lossy(&stopwatch::run(id)?).trim()))
    }
}

/// What a server lacks on this machine, where root starts it.
#[must_use]
pub fn missing() -> Option<&'static str> {
    // Its children become that user; the distribution makes it with the package.
    let has_user = fs::read_to_string("/etc/passwd").is_ok_and(|users| users.contains("\nsshd:"));
    (rustix::process::getuid().is_root() && !has_user).then_some("there is no user sshd")
}
