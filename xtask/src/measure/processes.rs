//! `cargo xtask guest processes`: paper 001's program in the guest, where the papers' module lives.
//!
//! Steps: `processes` of the bench and the command are built -> a host on this machine that is the guest's virtio-crypto device, because QEMU's own holds 128 keys and each process has
//! one -> a guest -> the program in it, under SCHED_RR as on the other machines, once for each of [`PARTS`] -> its pages and pictures, in `docs/results/`.
//!
//! | name | the guest's processes reach |
//! |---|---|
//! | `afalg` | the device behind the kernel, each by a socket of AF_ALG in which it sleeps; a core of this machine computes |
//! | `slow` | the same with a module that takes a millisecond, so that the module is what is short, as in the papers |
//! | `virtio` | a host in the guest, which drives QEMU's second device by VFIO |

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use evener_testbed::{Awake, Guest, Module, USER_SPACE_MODULE};

use super::circumstances::{circumstances, load, sleep};
use super::papers;
use crate::programs::{built_evener, built_of};

/// Processes by the parts of a measurement: a report that is lost loses one part.
const PARTS: [&str; 3] = ["1,2,4,8,16,32", "64,128,256", "512,1024"];
/// The three longest parts with three rounds of four modes, beside other work.
const LIMIT: Duration = Duration::from_secs(3_600);
/// 1500 processes with page tables, libraries and buffers of their own take some 2.5 GiB.
const MEMORY_MIB: u32 = 5_120;
/// Two sessions for each key, of 1500 processes and what is open before.
const SESSIONS: &str = "4096";

/// What is measured under a name: what the host of this machine serves, and what the program is told.
struct Kind {
    module: &'static str,
    words: String,
}

fn kind(name: &str) -> Option<Kind> {
    let of = |module, words: String| Some(Kind { module, words });
    match name {
        "afalg" => of("cpu", "kernel --total 4096 --least 12".to_owned()),
        "slow" => {
            let words = "kernel --service-us 1000 --modes plain,lists64,fifo --total 2048 --least 6";
            of("emulated:d=0+0,h=1000000+0", words.to_owned())
        }
        "virtio" => {
            let words = "--service-us 100 --modes plain,lists64,fifo --total 4096 --least 12";
            of("cpu", format!("host --module virtio:{USER_SPACE_MODULE} --evener evener {words}"))
        }
        _ => None,
    }
}

/// Measures it, and writes its pages.
pub(super) fn measure(name: &str) -> Result<(), String> {
    let Kind { module, words } = kind(name).ok_or("there are afalg, slow and virtio")?;
    let (evener, load_before) = (built_evener()?, load());
    let program = built_of("evener-bench", &["--bin", "processes"])?.join("processes");
    let host = Host::start(&evener, module)?;
    let builder = Guest::builder()
        .program(program)
        .program(&evener)
        .program("/usr/bin/chrt")
        .memory_mib(MEMORY_MIB)
        .limit(LIMIT);
    let builder = builder.module(Module::VhostUser { socket: host.socket(), event_idx: true });
    let builder = if name == "virtio" { builder.user_space_module() } else { builder };
    let awake = Awake::hold();
    let mut guest = builder.boot().map_err(|error| error.to_string())?;
    let is_apart = guest.set_apart().map_err(|error| error.to_string())?;
    let mut lines = vec![format!(
        "in the test bed's guest: QEMU under emulation, {MEMORY_MIB} MiB; what follows is of the machine that emulates it"
    )];
    lines.extend(
        circumstances(&evener, &load_before)?.lines().map(|line| line.trim_start_matches("- ").to_owned()),
    );
    lines.extend(
        (sleep(awake.as_ref()) + papers::apart(is_apart))
            .lines()
            .map(|line| line.trim_start_matches("- ").to_owned()),
    );
    let told: String =
        lines.iter().map(|line| format!(" --circumstance '{}'", line.replace('\'', " "))).collect();
    let stem = format!("processes-guest-{name}");
    for (part, counts) in PARTS.into_iter().enumerate() {
        let append = if part > 0 { " --append" } else { "" };
        let command = format!(
            "ulimit -n 65536; mkdir -p /kept; chrt -r 1 processes {words} --counts {counts} --rounds 3 \
             --command 'cargo xtask guest processes {name}, {counts}'{told} --out /kept/{stem}{append} && cp /kept/* /out/"
        );
        let outcome = guest.run(&command).map_err(|error| error.to_string())?;
        print!("{}", outcome.stdout);
        eprint!("{}", outcome.stderr);
        if outcome.status != 0 {
            return Err(format!("status {} of the part {counts}", outcome.status));
        }
        for (file, bytes) in &outcome.files {
            let path = crate::tree::root().join("docs/results").join(file);
            fs::write(&path, bytes).map_err(|error| format!("{}: {error}", path.display()))?;
        }
    }
    guest.shut_down().map_err(|error| error.to_string())
}

/// A host on this machine that is a guest's device. It ends with this.
struct Host {
    process: Child,
    folder: tempfile::TempDir,
}

impl Host {
    fn start(evener: &Path, module: &str) -> Result<Self, String> {
        let text = |error: std::io::Error| error.to_string();
        let folder = tempfile::tempdir().map_err(text)?;
        let mut command = Command::new(evener);
        command.args(["host", "--module", module, "--sessions", SESSIONS, "--socket"]);
        command.arg(folder.path().join("socket")).stdin(Stdio::null()).stdout(Stdio::null());
        let host = Self { process: command.spawn().map_err(text)?, folder };
        let until = std::time::Instant::now() + Duration::from_secs(30);
        while std::os::unix::net::UnixStream::connect(host.socket()).is_err() {
            if std::time::Instant::now() > until {
                return Err("the host does not listen".to_owned());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(host)
    }

    fn socket(&self) -> std::path::PathBuf {
        self.folder.path().join("socket")
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        // It may be gone already.
        self.process.kill().unwrap_or_default();
        drop(self.process.wait());
    }
}
