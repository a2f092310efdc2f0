//! The README on a Debian that has nothing yet, pasted line by line.
//!
//! Path of a release: debootstrap makes a root below `target/fresh`, once -> a copy of it, with a clone of what is committed here ->
//! the README's blocks in the order of a reader who installs first -> `./x prepare`, which must find all that it asks for -> what was
//! downloaded and is left, beside what the README says. Minutes are only told: they are the machine's.
//! Needs root, debootstrap and the network; certificates that this machine trusts besides are taken along.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Instant;
use std::{fs, io};

use evener_testbed::Block;

use super::Tally;
use crate::tree::root;

const RELEASES: [&str; 2] = ["bookworm", "trixie"];

/// What is downloaded or left may be this many times what the README says, or the part of it.
const OFF_MAX: f64 = 1.3;

/// Runs it for each release.
pub(super) fn run(tally: &mut Tally) {
    if !is_root() || !debootstrap_is_here() {
        return tally.print("skipped: the README on a fresh Debian (needs root and the package debootstrap)");
    }
    for release in RELEASES {
        tally.begin(&format!("the README on a fresh {release}"));
        match Fresh::make(release) {
            Ok(fresh) => paste(tally, &fresh),
            Err(reason) => tally.fail(&format!("a fresh {release}: {reason}")),
        }
    }
}

pub(super) fn debootstrap_is_here() -> bool {
    Command::new("debootstrap").arg("--version").output().is_ok()
}

pub(super) fn is_root() -> bool {
    Command::new("id").arg("-u").output().is_ok_and(|output| output.stdout == b"0\n")
}

/// Pastes what the README says, and tells what it took.
fn paste(tally: &mut Tally, fresh: &Fresh) {
    let page = fs::read_to_string(root().join("README.md")).unwrap_or_default();
    let cached = fresh.downloaded();
    let (mut first, others): (Vec<Block>, Vec<Block>) =
        Block::all(&page).into_iter().partition(|block| block.not_run.is_some());
    for block in &mut first {
        // Each line by itself, for each takes minutes.
        for line in block.commands.lines() {
            let begun = Instant::now();
            judge(tally, &at(block), line, fresh.shell(line).map(|text| (true, text)));
            let words = line.split('#').next().unwrap_or(line).trim();
            tally.print(&format!(
                "{}: `{words}` {:.1} min",
                fresh.release,
                begun.elapsed().as_secs_f64() / 60.0
            ));
            if words == "./x install" {
                compare(tally, &page, "MB to download", fresh.downloaded().saturating_sub(cached));
                compare(tally, &page, "MB below `target/`", fresh.megabytes("srv/evener/target"));
            }
        }
    }
    for block in others {
        let outcome = fresh.shell(&block.commands).map(|text| (block.shows(&text), text));
        judge(tally, &at(&block), &block.commands, outcome);
    }
    let begun = Instant::now();
    let outcome = fresh.shell("./x prepare").map(|text| (!text.contains("going on without"), text));
    judge(tally, fresh.release, "./x prepare", outcome);
    tally.print(&format!("{}: `./x prepare` {:.1} min", fresh.release, begun.elapsed().as_secs_f64() / 60.0));
}

/// Where a block stands.
fn at(block: &Block) -> String {
    format!("README.md:{}", block.line)
}

/// Counts what was pasted; shows what it printed where that is not what the page says.
pub(super) fn judge(tally: &mut Tally, at: &str, commands: &str, outcome: Result<(bool, String), String>) {
    match outcome {
        Ok((true, _)) => tally.passed += 1,
        Ok((false, text)) | Err(text) => {
            tally.print(&text);
            tally.fail(&format!("{at}: {commands}"));
        }
    }
}

/// Holds a number of the README's to what was measured.
fn compare(tally: &mut Tally, page: &str, what: &str, measured: u64) {
    tally.print(&format!("{measured} {what}"));
    if is_as_said(page, what, measured) {
        tally.passed += 1;
    } else {
        tally.fail(&format!("README.md says otherwise than {measured} {what}"));
    }
}

/// Whether the page has `what` behind a number that is near.
fn is_as_said(page: &str, what: &str, measured: u64) -> bool {
    let page = page.split_whitespace().collect::<Vec<_>>().join(" ");
    let number = page
        .split_once(what)
        .and_then(|(before, _)| before.split_whitespace().next_back()?.replace(',', "").parse::<u32>().ok());
    let near = |said: u32| {
        let over = f64::from(u32::try_from(measured).unwrap_or(u32::MAX)) / f64::from(said);
        (1.0 / OFF_MAX..=OFF_MAX).contains(&over)
    };
    number.is_some_and(near)
}

/// A root with a release and a clone of this repository in it.
struct Fresh {
    release: &'static str,
    root: PathBuf,
}

/// `$1` the root, `$2` what is pasted. Mounts are of this shell's own.
const ENTER: &str = "\
mount -t proc proc \"$1/proc\" && mount --rbind /dev \"$1/dev\" && mount -t sysfs sysfs \"$1/sys\" && mount -t tmpfs tmpfs \"$1/tmp\" &&
exec chroot \"$1\" sh -eu -c \"exec 2>&1; cd /srv/evener
$2\"";

impl Fresh {
    fn make(release: &'static str) -> Result<Self, String> {
        let workspace = root();
        let folder = workspace.join("target/fresh");
        let (base, root) = (folder.join(format!("{release}.base")), folder.join(release));
        let text = |error: io::Error| error.to_string();
        fs::create_dir_all(&folder).map_err(text)?;
        let done = base.join("var/lib/dpkg/status");
        if !done.exists() || base.join("debootstrap").exists() {
            debootstrap(release, &base)?;
        }
        finish(Command::new("rm").args(["-rf", "--one-file-system"]).arg(&root))?;
        finish(Command::new("cp").args(["-ax", "--reflink=auto"]).arg(&base).arg(&root))?;
        let mut clone = Command::new("git");
        clone.args(["clone", "-q", "--no-hardlinks"]).arg(workspace).arg(root.join("srv/evener"));
        finish(&mut clone)?;
        Ok(Self { release, root })
    }

    /// What these lines print together; where they fail, with their status.
    fn shell(&self, commands: &str) -> Result<String, String> {
        let mut command = Command::new("unshare");
        command
            .args(["--mount", "--pid", "--fork", "--kill-child", "sh", "-c", ENTER, "sh"])
            .arg(&self.root)
            .arg(commands);
        command.env_clear().env("HOME", "/root").env("LANG", "C.UTF-8");
        command.env("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
        finish(&mut command)
    }

    /// Packages, their lists and crates that were fetched, MB.
    fn downloaded(&self) -> u64 {
        let places = ["var/cache/apt/archives", "var/lib/apt/lists", "root/.cargo/registry/cache"];
        places.iter().map(|place| self.megabytes(place)).sum()
    }

    /// What lies below a folder, MB.
    fn megabytes(&self, place: &str) -> u64 {
        let told = Command::new("du").arg("-sm").arg(self.root.join(place)).output();
        let number = |output: Output| String::from_utf8(output.stdout).ok()?.split('\t').next()?.parse().ok();
        told.ok().and_then(number).unwrap_or(0)
    }
}

/// The least of a release, with the archives that an installed one asks.
fn debootstrap(release: &str, base: &Path) -> Result<(), String> {
    finish(Command::new("rm").args(["-rf", "--one-file-system"]).arg(base))?;
    finish(Command::new("debootstrap").args(["--variant=minbase", release]).arg(base))?;
    // It has named the archive that it took; updates and security stand beside it.
    let list = base.join("etc/apt/sources.list");
    let named = fs::read_to_string(&list).map_err(|error| error.to_string())?;
    let archive = named.split_whitespace().nth(1).ok_or("debootstrap names no archive")?;
    let archives = format!(
        "deb {archive} {release} main\ndeb {archive} {release}-updates main\n\
         deb {archive}-security {release}-security main\n"
    );
    fs::write(list, archives).map_err(|error| error.to_string())?;
    let trusted = Path::new("/usr/local/share/ca-certificates");
    if trusted.exists() {
        finish(Command::new("cp").args(["-a"]).arg(trusted).arg(base.join("usr/local/share")))?;
    }
    Ok(())
}

/// What it printed, where it succeeds.
pub(super) fn finish(command: &mut Command) -> Result<String, String> {
    let output =
        command.output().map_err(|error| format!("{}: {error}", command.get_program().to_string_lossy()))?;
    let text =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    if output.status.success() { Ok(text) } else { Err(format!("{}: {text}", output.status)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_readme_says_is_held_to_what_was_measured() {
        let page = "some 5 minutes, 400 MB to download,\nand 1,500 MB below\n`target/`";
        assert!(is_as_said(page, "MB to download", 420) && is_as_said(page, "MB below `target/`", 1300));
        assert!(!is_as_said(page, "MB to download", 600) && !is_as_said(page, "MB to download", 300));
        assert!(!is_as_said(page, "MB of memory", 400), "nothing is said of it");
    }
}
