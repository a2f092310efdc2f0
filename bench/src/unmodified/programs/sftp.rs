//! A file by OpenSSH's sftp over the loopback, there and back; client and server are both counted.

use crate::error::BenchError;
use crate::programs::openssh::{Site, missing};
use crate::unmodified::configuration::MALLOC;
use crate::unmodified::place::{Place, Run, free_port, read};
use crate::unmodified::program::{Asked, Cipher, Program, Work};

pub(super) struct Sftp;

const CIPHER: &str = "aes256-gcm@openssh.com";
const FILE_BYTES: usize = 256 << 20;

impl Program for Sftp {
    fn name(&self) -> &'static str {
        "sftp"
    }

    fn what(&self) -> &'static str {
        "sftp and sshd, aes256-gcm@openssh.com: a file of 256 MiB there and back over the loopback, both ends counted, malloc set in all"
    }

    fn packages(&self) -> &'static [&'static str] {
        &["openssh-server", "openssh-client"]
    }

    fn needs(&self) -> &'static [&'static str] {
        &["/usr/sbin/sshd", "sftp", "ssh-keygen"]
    }

    fn cipher(&self) -> Cipher {
        // Each byte is encrypted and decrypted, there and back.
        Cipher {
            name: "aes-256-gcm",
            bytes: 32 << 10,
            is_decrypted: false,
            volume_bytes: 4 * FILE_BYTES as u64,
        }
    }

    fn hand(&self) -> &'static [&'static str] {
        &["kernels = on"]
    }

    fn figure(&self) -> Option<Asked> {
        Some(Asked::core(0.9))
    }

    fn prepare(&self, place: &Place) -> Result<Box<dyn Work>, BenchError> {
        if let Some(what) = missing() {
            return Err(BenchError::Library(what.to_owned()));
        }
        let port = free_port()?;
        let site = Site::make(&place.path(""), port, CIPHER)?;
        let file = Place::data(FILE_BYTES);
        place.write("file", &file)?;
        let [from, up, down] = ["file", "up", "down"].map(|name| place.path(name).display().to_string());
        place.write("batch", format!("put {from} {up}\nget {up} {down}\n"))?;
        Ok(Box::new(Transfer { site, port, file }))
    }
}

struct Transfer {
    site: Site,
    port: u16,
    file: Vec<u8>,
}

impl Work for Transfer {
    fn once(&mut self, run: &Run<'_>) -> Result<String, BenchError> {
        // Whether glibc gives the buffers' memory back and takes it again hangs on how pieces arrive: 1,600 or 50,000 page faults of a client, a third of its
        // core time, by any configuration.
        let mut server = run.command("/usr/sbin/sshd");
        server.args(self.site.server_words()).envs(MALLOC);
        let server = run.serve(server, self.port)?;
        let mut client = run.command("sftp");
        client.args(self.site.client_words(CIPHER)).arg("-b").arg(run.place().path("batch"));
        client.arg(self.site.address()?).envs(MALLOC);
        run.timed(|| run.said(client))?;
        drop(server);
        let mut equal = Vec::new();
        for name in ["up", "down"] {
            equal.push(read(&run.place().path(name))? == self.file);
            run.place().write(name, "")?;
        }
        Ok(format!("{equal:?}"))
    }

    fn truth(&self) -> &str {
        "[true, true]"
    }
}
