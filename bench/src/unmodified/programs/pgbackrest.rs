//! pgBackRest: a full, encrypted backup of a cluster by eight processes.

use crate::error::BenchError;
use crate::programs::cluster::Cluster;
use crate::programs::openssl_conf::Providers;
use crate::unmodified::place::{Place, Run, said};
use crate::unmodified::program::{Cipher, Program, Work};

pub(super) struct PgBackRest;

impl Program for PgBackRest {
    fn name(&self) -> &'static str {
        "pgbackrest"
    }

    fn what(&self) -> &'static str {
        "pgBackRest, a full backup of 300 MB, 8 processes, repo-cipher-type=aes-256-cbc, no compression"
    }

    fn packages(&self) -> &'static [&'static str] {
        &["pgbackrest", "postgresql"]
    }

    fn needs(&self) -> &'static [&'static str] {
        &["pgbackrest", "(ls /usr/lib/postgresql/*/bin/pgbench)"]
    }

    fn cipher(&self) -> Cipher {
        Cipher { name: "aes-256-cbc", bytes: 64 << 10, is_decrypted: false, volume_bytes: 320_000_000 }
    }

    fn hand(&self) -> &'static [&'static str] {
        &["combine = auto"]
    }

    fn prepare(&self, place: &Place) -> Result<Box<dyn Work>, BenchError> {
        // Its processes are the user postgres's, as is what they keep.
        if rustix::process::geteuid().is_root() {
            let mut own = place.plain("sh");
            own.args(["-c", "chown postgres counts-*"]);
            said(own)?;
        }
        let cluster = Cluster::generate(&place.path("no-module"), 20)?;
        let truth = cluster.fingerprint()?;
        Ok(Box::new(Backup { cluster, truth }))
    }
}

struct Backup {
    cluster: Cluster,
    truth: String,
}

impl Work for Backup {
    fn once(&mut self, run: &Run<'_>) -> Result<String, BenchError> {
        let backup = self.cluster.words(&["backup", "--type=full", "--repo1-retention-full=1"]);
        let mut command = run.command(&backup[0]);
        command.args(&backup[1..]);
        run.timed(|| run.said(command))?;
        self.cluster.restore(Providers::Default, None)?;
        self.cluster.restored_fingerprint()
    }

    fn truth(&self) -> &str {
        &self.truth
    }
}
