//! `cargo xtask testbed`: the test bed by hand.
//!
//! `up` sets it up and proves it, `cargo` builds programs for a guest whose processor is not ours, `run` runs one command in a
//! guest of its own, `shell` opens a shell in one, `papers` runs the papers' experiments, `down` removes everything. What a guest is
//! and is not good for stands in docs/design/testbed.md.

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};
use std::{env, fs, thread};

use evener_testbed::{
    Awake, Builder, Error, Guest, Icount, Module, ModuleCounts, Outcome, Profile, Throttle, Toolchain,
};
use serde_json::json;

use super::papers;
use crate::tree::cargo;

/// How often output of a running guest is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(100);

const USAGE: &str = "\
usage: cargo xtask testbed up [--profile PROFILE]  fetches QEMU, a kernel and busybox; boots a first guest
                              [--toolchain]        and before that what builds programs for it
       cargo xtask testbed cargo [--profile PROFILE] WORD...  cargo with that, for armv7 or PROFILE; it builds in target/testbed/armv7/build
       cargo xtask testbed run [OPTION]... COMMAND runs a line of shell in a new guest; its exit status is ours
       cargo xtask testbed shell [OPTION]...       a shell in a new guest; Ctrl-D or Ctrl-A X ends it
       cargo xtask testbed papers [NAME]...        the papers' experiments in guests, and their page
       cargo xtask testbed papers again [NAME]...  only the simulator's predictions in those, from what was measured then
       cargo xtask testbed down                    removes target/testbed
options: --profile x86_64|armv7|aarch64  the machine
         --program FILE          a program of this machine, with its libraries, on the guest's search path
         --library FILE          a library that programs open at run time
         --file FILE:PATH        a file, at PATH in the guest
         --kernel-module NAME    loads cuse, tls, ...
         --share FOLDER          shows a folder of this machine at /share
         --network               lets the guest reach this machine's loopback, as 10.0.2.2
         --module built-in|none|vhost-user:SOCKET[,event_idx=off]
         --user-space            a second module, at PCI address 0000:00:10.0, for programs of the guest to drive by VFIO
         --throttle-bps N, --throttle-ops N   of the built-in module (QEMU 8)
         --awake                 keeps this machine's processors awake meanwhile, one for each core of the guest (docs/design/testbed.md)
         --vcpus N, --memory MIB, --icount, --limit SECONDS (default 300)
         --out FOLDER            keeps what the command leaves in /out
         --json                  status, output, kernel warnings and module counts as one line of JSON";

/// Runs one of the six.
pub(crate) fn run(words: &[&str]) -> ExitCode {
    let done = match words {
        ["up"] => up(Profile::X86_64, false).map(|()| ExitCode::SUCCESS),
        ["up", "--profile", name] => profile(name).and_then(|of| up(of, false)).map(|()| ExitCode::SUCCESS),
        ["up", "--profile", name, "--toolchain"] => {
            profile(name).and_then(|of| up(of, true)).map(|()| ExitCode::SUCCESS)
        }
        ["cargo", "--profile", name, rest @ ..] => profile(name).and_then(|of| build(of, rest)),
        ["cargo", rest @ ..] => build(Profile::Armv7, rest),
        ["down"] => evener_testbed::down().map(|()| ExitCode::SUCCESS).map_err(|error| error.to_string()),
        ["papers", "again", names @ ..] => papers::predict_again(names).map(|()| ExitCode::SUCCESS),
        ["papers", names @ ..] => papers::make(names).map(|()| ExitCode::SUCCESS),
        ["run", rest @ ..] => RunOptions::read(rest).and_then(RunOptions::run),
        ["shell", rest @ ..] => RunOptions::read(rest).and_then(RunOptions::shell),
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    done.unwrap_or_else(|reason| {
        eprintln!("testbed: {reason}");
        ExitCode::FAILURE
    })
}

fn up(profile: Profile, with_toolchain: bool) -> Result<(), String> {
    let start = Instant::now();
    if with_toolchain {
        let toolchain = Toolchain::fetch(profile).map_err(|error| error.to_string())?;
        println!("{:6} ms  {}", start.elapsed().as_millis(), toolchain.rustc);
    }
    let probe = probe(profile)?;
    let ready = evener_testbed::up(profile, probe.as_deref(), &mut |step| {
        println!("{:6} ms  {}", step.took_ms, step.what);
    })
    .map_err(|error| error.to_string())?;
    let note = if ready.kernel_is_pinned { "" } else { ", not the one that everything was tried with" };
    println!("{:6} ms  ready: {} {}{note}", start.elapsed().as_millis(), ready.kernel, ready.kernel_version);
    evener_testbed::lost(profile).iter().for_each(|lost| println!("note: {lost}"));
    Ok(())
}

/// The program that proves a guest, built for its processor; none where there is no compiler for it.
fn probe(profile: Profile) -> Result<Option<PathBuf>, String> {
    let (mut build, folder) = match (profile, Toolchain::find(profile)) {
        (Profile::X86_64, _) => {
            let this = env::current_exe().map_err(|error| error.to_string())?;
            (cargo(), this.parent().map(Path::to_owned).unwrap_or_default())
        }
        (_, Ok(toolchain)) => (toolchain.cargo(cargo().get_program()), toolchain.built()),
        (_, Err(_)) => return Ok(None),
    };
    build.args(["build", "-q", "-p", "evener-testbed", "--bin", "testbed-probe"]);
    match build.status().is_ok_and(|status| status.success()) {
        true => Ok(Some(folder.join("testbed-probe"))),
        false => Err("testbed-probe does not build".to_owned()),
    }
}

/// Runs cargo with the compilers for a foreign profile.
fn build(profile: Profile, words: &[&str]) -> Result<ExitCode, String> {
    let toolchain = Toolchain::find(profile).map_err(|error| error.to_string())?;
    let status = toolchain.cargo(cargo().get_program()).args(words).status();
    let code = status.map_err(|error| error.to_string())?.code();
    Ok(ExitCode::from(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)))
}

fn profile(name: &str) -> Result<Profile, String> {
    match name {
        "x86_64" => Ok(Profile::X86_64),
        "armv7" => Ok(Profile::Armv7),
        "aarch64" => Ok(Profile::Aarch64),
        _ => Err(format!("no such profile: {name}")),
    }
}

/// The options of the command line.
#[derive(Default)]
struct RunOptions {
    builder: Builder,
    throttle: Throttle,
    out: Option<PathBuf>,
    json: bool,
    awake: bool,
    command: String,
}

impl RunOptions {
    fn read(words: &[&str]) -> Result<Self, String> {
        let mut options = Self::default();
        let mut words = words.iter();
        while let Some(&word) = words.next() {
            if !word.starts_with("--") {
                options.command = words.fold(word.to_owned(), |line, word| line + " " + word);
                return Ok(options);
            }
            match word {
                "--" => {}
                "--json" => options.json = true,
                "--awake" => options.awake = true,
                "--user-space" => options.builder = options.builder.user_space_module(),
                "--network" => options.builder = options.builder.host_loopback(),
                "--icount" => options.builder = options.builder.icount(Icount::NEAR_AM3358),
                _ => {
                    let value = words.next().ok_or_else(|| format!("{word} needs a value"))?;
                    options = options.with_value(word, value)?;
                }
            }
        }
        Ok(options)
    }

    fn with_value(mut self, option: &str, value: &str) -> Result<Self, String> {
        let number = || value.parse::<u64>().map_err(|_| format!("{option} needs a number, not {value}"));
        match option {
            "--profile" => self.builder = self.builder.profile(profile(value)?),
            "--program" => self.builder = self.builder.program(value),
            "--library" => self.builder = self.builder.library(value),
            "--kernel-module" => self.builder = self.builder.kernel_module(value),
            "--share" => self.builder = self.builder.share(value),
            "--out" => self.out = Some(PathBuf::from(value)),
            "--limit" => self.builder = self.builder.limit(Duration::from_secs(number()?)),
            "--vcpus" => {
                let count = number()?.try_into().map_err(|_| "--vcpus: at most 255".to_owned())?;
                self.builder = self.builder.vcpus(count);
            }
            "--memory" => {
                let mib =
                    number()?.try_into().map_err(|_| "--memory: more MiB than any machine has".to_owned())?;
                self.builder = self.builder.memory_mib(mib);
            }
            "--throttle-bps" => self.throttle.bytes_per_s = number()?,
            "--throttle-ops" => self.throttle.ops_per_s = number()?,
            "--module" => self.builder = self.builder.module(module(value)?),
            "--file" => {
                let (source, path) = value.rsplit_once(':').ok_or("--file needs FILE:PATH")?;
                let bytes = fs::read(source).map_err(|error| format!("{source}: {error}"))?;
                self.builder = self.builder.file(path, bytes);
            }
            _ => return Err(format!("unknown option {option}\n{USAGE}")),
        }
        if self.throttle != Throttle::default() {
            self.builder = self.builder.module(Module::BuiltIn(self.throttle));
        }
        Ok(self)
    }

    fn shell(self) -> Result<ExitCode, String> {
        self.builder.shell().map(|()| ExitCode::SUCCESS).map_err(|error| error.to_string())
    }

    fn run(self) -> Result<ExitCode, String> {
        if self.command.is_empty() {
            return Err("run needs a command".to_owned());
        }
        let (out, json) = (self.out, self.json);
        let awake = self.awake.then(Awake::hold);
        if matches!(awake, Some(None)) {
            return Err("--awake: this system does not let us".to_owned());
        }
        let mut guest = self.builder.boot().map_err(|error| error.to_string())?;
        if awake.is_some() && !guest.set_apart().map_err(|error| error.to_string())? {
            return Err("--awake: this machine has too few processors".to_owned());
        }
        let outcome = watched(&mut guest, &self.command, json).map_err(|error| error.to_string())?;
        if let Some(folder) = out {
            keep(&outcome, &folder)?;
        }
        let warnings = outcome.kernel_log.warnings();
        if json {
            println!("{}", line_of(&outcome, guest.boot_s, counts(&guest)));
        } else {
            warnings.iter().for_each(|line| eprintln!("testbed: the guest's kernel warns: {line}"));
        }
        let status = u8::try_from(outcome.status).unwrap_or(u8::MAX);
        guest.shut_down().map_err(|error| error.to_string())?;
        Ok(ExitCode::from(status))
    }
}

/// What the kernel's module and the one for user space did. QEMU 7 does not count; a vhost-user module counts by itself.
fn counts(guest: &Guest) -> [Option<ModuleCounts>; 2] {
    let Ok(mut qmp) = guest.qmp() else { return [None; 2] };
    [qmp.module_counts().ok(), qmp.user_space_module_counts().ok()]
}

/// All that is known of a command, as one line of JSON.
fn line_of(outcome: &Outcome, boot_s: f64, [module, user_space]: [Option<ModuleCounts>; 2]) -> String {
    json!({
        "outcome": outcome,
        "boot_s": boot_s,
        "kernel_warnings": outcome.kernel_log.warnings(),
        "module": module,
        "user_space_module": user_space,
    })
    .to_string()
}

/// Writes what the command left in /out below `folder`.
fn keep(outcome: &Outcome, folder: &Path) -> Result<(), String> {
    for (name, bytes) in &outcome.files {
        let path = folder.join(name);
        let above = path.parent().unwrap_or(folder);
        let written = fs::create_dir_all(above).and_then(|()| fs::write(&path, bytes));
        written.map_err(|error| format!("{}: {error}", path.display()))?;
    }
    Ok(())
}

/// Runs `command` and, unless `silent`, shows what it writes while it runs.
fn watched(guest: &mut Guest, command: &str, silent: bool) -> Result<Outcome, Error> {
    let [stdout, stderr] = guest.live_output();
    guest.start(command)?;
    if silent {
        return guest.finish();
    }
    thread::scope(|scope| {
        let (done, is_done) = mpsc::channel::<()>();
        scope.spawn(move || {
            let (mut stdout, mut stderr) = (Follower::new(stdout), Follower::new(stderr));
            loop {
                // The sender is dropped at the end; what came until then is shown still.
                let over = is_done.recv_timeout(LOOK_EVERY) == Err(RecvTimeoutError::Disconnected);
                stdout.show(&mut io::stdout());
                stderr.show(&mut io::stderr());
                if over {
                    return;
                }
            }
        });
        let outcome = guest.finish();
        drop(done);
        outcome
    })
}

/// Shows what a file gets.
struct Follower {
    path: PathBuf,
    seen: usize,
}

impl Follower {
    fn new(path: PathBuf) -> Self {
        Self { path, seen: 0 }
    }

    fn show(&mut self, to: &mut impl io::Write) {
        let bytes = fs::read(&self.path).unwrap_or_default();
        // A reader that went away is no reason to stop the guest.
        to.write_all(bytes.get(self.seen..).unwrap_or_default())
            .and_then(|()| to.flush())
            .unwrap_or_default();
        self.seen = bytes.len();
    }
}

fn module(text: &str) -> Result<Module, String> {
    match (text, text.strip_prefix("vhost-user:")) {
        ("built-in", _) => Ok(Module::BuiltIn(Throttle::default())),
        ("none", _) => Ok(Module::None),
        (_, Some(rest)) => {
            let socket = rest.strip_suffix(",event_idx=off");
            let event_idx = socket.is_none();
            Ok(Module::VhostUser { socket: PathBuf::from(socket.unwrap_or(rest)), event_idx })
        }
        _ => Err(format!("no such module: {text}")),
    }
}

#[cfg(test)]
mod tests {
    use evener_testbed::KernelLog;
    use serde_json::Value;

    use super::*;

    #[test]
    fn a_command_is_reported_as_one_line_of_json() {
        let outcome = Outcome {
            status: 3,
            stdout: "two\nlines\n".to_owned(),
            stderr: "a \"word\"\n".to_owned(),
            guest_s: 0.25,
            files: [("kept".to_owned(), vec![0, 255])].into(),
            kernel_log: KernelLog("<6>[ 1.0] fine\n<4>[ 1.1] a warning\n".to_owned()),
        };
        let counts = ModuleCounts { encrypted_count: 7, encrypted_bytes: 112, ..ModuleCounts::default() };
        let line = line_of(&outcome, 3.5, [Some(counts), None]);
        assert_eq!(line.lines().count(), 1, "{line}");
        let expected = json!({
            "outcome": { "status": 3, "stdout": "two\nlines\n", "stderr": "a \"word\"\n", "guest_s": 0.25 },
            "boot_s": 3.5,
            "kernel_warnings": ["<4>[ 1.1] a warning"],
            "module": { "encrypted_count": 7, "decrypted_count": 0, "encrypted_bytes": 112, "decrypted_bytes": 0 },
            "user_space_module": null,
        });
        assert_eq!(serde_json::from_str::<Value>(&line).unwrap(), expected);
        let line = line_of(&outcome, 3.5, [None, Some(counts)]);
        let outcome = serde_json::from_str::<Value>(&line).unwrap();
        assert_eq!(
            (&outcome["module"], &outcome["user_space_module"]["encrypted_bytes"]),
            (&Value::Null, &json!(112))
        );
    }

    #[test]
    fn options_stand_before_the_command_and_its_words_are_one_line() {
        let options =
            RunOptions::read(&["--json", "--out", "kept", "--", "echo", "--json", "a b"]).ok().unwrap();
        assert_eq!(
            (options.json, options.out, &*options.command),
            (true, Some("kept".into()), "echo --json a b")
        );
        assert!(RunOptions::read(&["--limit", "soon", "true"]).is_err_and(|reason| reason.contains("soon")));
        assert!(
            RunOptions::read(&["--jsonl", "true"])
                .is_err_and(|reason| reason.contains("needs a value") || reason.contains("--jsonl"))
        );
    }
}
