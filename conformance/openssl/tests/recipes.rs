//! OpenSSL's own recipes (`test/recipes`) of its command: ciphers, digests, MACs, CMS, PKCS #12, requests. What each says of a case under the default provider judges what it
//! says with Evener's before it, and where requests are routed.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs, thread};

use evener_conformance_openssl::{Setup, bounded, openssl_build, openssl_sources, print_line, skipped};

/// Each by the command alone, so that nothing has to be built.
const SHORT: [&str; 2] = ["20-test_mac", "20-test_dgst"];
const LONG: [&str; 8] = [
    "20-test_enc",
    "20-test_enc_more",
    "20-test_pkeyutl",
    "20-test_kdf",
    "25-test_req",
    "25-test_pkcs7",
    "80-test_cms",
    "80-test_pkcs12",
];
const SECONDS_MAX: u32 = 900;

/// What stands for a built tree: the command, and what the build would have said of itself.
struct Tree {
    folder: tempfile::TempDir,
    sources: PathBuf,
}

impl Tree {
    fn new() -> Option<Self> {
        let (sources, version) = openssl_sources()?;
        let modules = Command::new("perl").args(["-MTest::More", "-MFile::Compare", "-e1"]).output();
        if !modules.is_ok_and(|output| output.status.success()) {
            return None;
        }
        print_line(&format!("recipes of OpenSSL {version}"));
        let made = Self { folder: tempfile::tempdir().unwrap(), sources };
        let command = command().unwrap();
        fs::create_dir(made.path().join("apps")).unwrap();
        symlink(&command, made.path().join("apps/openssl")).unwrap();
        let listed = Command::new(command).args(["list", "-disabled"]).output().unwrap();
        let listed = String::from_utf8(listed.stdout).unwrap().to_lowercase();
        let disabled: Vec<&str> = listed.lines().skip(1).chain(["module", "engine", "fips"]).collect();
        let text = format!(
            "package configdata; our (%config, %target, %available_protocols);\nour %disabled = map {{ $_ => 1 }} qw({});\n1;\n",
            disabled.join(" ")
        );
        fs::write(made.path().join("configdata.pm"), text).unwrap();
        Some(made)
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    /// The verdict on each case of a recipe, in order.
    fn verdicts(&self, recipe: &str, setup: &Setup) -> Vec<String> {
        let results = self.path().join("runs").join(recipe).join(setup.name());
        fs::create_dir_all(&results).unwrap();
        let mut perl = setup.command("perl");
        perl.arg("-I").arg(self.sources.join("util/perl"));
        perl.arg(self.sources.join("test/recipes").join(format!("{recipe}.t"))).current_dir(&results);
        perl.env("SRCTOP", &self.sources).env("BLDTOP", self.path()).env("RESULT_D", &results);
        // The command is run as it is, without the build's wrapper.
        perl.env("EXE_SHELL", "env").env("PERL", "perl");
        let output = bounded(SECONDS_MAX, &perl);
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let is_verdict = |line: &&str| line.starts_with("ok ") || line.starts_with("not ok ");
        said.lines().map(str::trim_start).filter(is_verdict).map(str::to_owned).collect()
    }
}

/// The command openssl: of another build, or the one that a shell would find.
fn command() -> Option<PathBuf> {
    if let Some(build) = openssl_build() {
        return Some(build.join("apps/openssl"));
    }
    let path = env::var_os("PATH")?;
    env::split_paths(&path).map(|folder| folder.join("openssl")).find(|file| file.is_file())
}

/// Runs them with each setup side by side. Some cases of newer sources fail with an older library, with Evener as without.
fn all_say_the_same(recipes: &[&str], cases_min: usize, routed_min: u64) {
    let Some(tree) = Tree::new() else {
        return skipped(
            "OpenSSL's sources or perl with its modules are not there (`./x prepare` fetches sources)",
        );
    };
    let setups = [Setup::plain(), Setup::evener("combine = auto\nthreads = auto"), Setup::routed()];
    let mut cases = 0;
    for recipe in recipes {
        let [judge, ways, routed] = thread::scope(|scope| {
            setups
                .each_ref()
                .map(|setup| scope.spawn(|| tree.verdicts(recipe, setup)))
                .map(|run| run.join().expect("a recipe ends"))
        });
        let failed = judge.iter().filter(|line| line.starts_with("not ")).count();
        print_line(&format!("{recipe}: {} cases, of which {failed} fail without Evener", judge.len()));
        assert!(
            !judge.is_empty() && ways == judge && routed == judge,
            "{recipe}: {judge:#?}\n{ways:#?}\n{routed:#?}"
        );
        cases += judge.len() - failed;
    }
    let routed = setups[2].routed_count();
    print_line(&format!("{cases} cases, {routed} requests routed to an emulated module"));
    assert!(cases >= cases_min && routed >= routed_min, "{cases} cases, {routed} routed");
}

#[test]
fn recipes_of_macs_and_digests_say_the_same_with_evener_as_without() {
    all_say_the_same(&SHORT, 50, 10);
}

#[test]
#[ignore = "takes minutes; for test-full"]
fn recipes_of_the_command_say_the_same_with_evener_as_without() {
    all_say_the_same(&LONG, 500, 500);
}
