//! Where a limit allows no thread more (`ulimit -u`, `TasksMax`), one does the work, and makes what many make.
#![allow(clippy::unwrap_used, reason = "a test")]

use std::fs;

use crate::common::{self, Place, Ran, noise, skipped, there_is};
use evener_files::keyset::Template;

/// A place in which programs are started as a user who may have so many threads.
struct Limited {
    place: Place,
    nobody: &'static [&'static str],
}

impl Limited {
    /// One with inputs of no byte, of a few segments of 4 KiB and of a few of 1 MiB below `in`, and a directory `out` for all.
    fn new() -> Option<Self> {
        let (place, nobody) = Place::for_nobody()?;
        if !there_is("prlimit") {
            skipped("prlimit is not installed");
            return None;
        }
        fs::create_dir(place.join("out")).unwrap();
        common::allow(&place.join("out"), 0o777);
        for (name, text) in texts() {
            place.write(format!("in/{name}"), text);
        }
        Some(Self { place, nobody })
    }

    /// Runs the command beside that many threads of the same user, itself among them.
    fn evener(&self, threads: u32, line: &str) -> Ran {
        let limit = format!("--nproc={threads}:{threads}");
        let words = [self.nobody, &["prlimit", &limit, "./evener"]].concat();
        let run = self.place.program(words[0]).args(&words[1..]).args(line.split(' '));
        run.env("EVENER_CACHE_DIR", self.place.join("cache")).run().succeeded()
    }

    /// A key file that the limited user may read too.
    fn keygen(&self, line: &str) -> Ran {
        let made = self.place.evener().arg("keygen").args(line.split(' ')).run().succeeded();
        common::allow(&self.place.join(line.split(' ').next_back().unwrap()), 0o644);
        made
    }

    /// Each input is encrypted from file to pipe, and all of them as an archive, and `other` reads it; then all of it is read back through pipes.
    fn goes_through_pipes(&self, encrypt: &str, decrypt: &str, other: &dyn Fn(&str) -> Vec<u8>) {
        // No thread at all, and one that works beside none that reads.
        for threads in [1, 2] {
            for (name, text) in texts() {
                let source = format!("in/{name}");
                let sealed = self.evener(threads, &format!("encrypt -q --workers 1 {encrypt} -o - {source}"));
                self.place.write("sealed", sealed.stdout());
                assert!(other("sealed") == text, "{encrypt}, {name}: another reads it, {threads} threads");
                let back = self.evener(threads, &format!("decrypt -q --workers 1 {decrypt} -o - sealed"));
                assert!(back.stdout() == text, "{decrypt}, {name}, {threads} threads");
            }
            let archive = self.evener(threads, &format!("encrypt -q --workers 1 --tar {encrypt} -o - in"));
            self.place.write("sealed", archive.stdout());
            self.place.write("archive", other("sealed"));
            let list = self.place.program("tar").args(["-tf", "archive"]).run().succeeded();
            assert_eq!(list.stdout_text().lines().count(), 1 + texts().len(), "{encrypt}, {threads} threads");
            let unpack = format!("decrypt -q --force --workers 1 --tar {decrypt} -o out/unpacked sealed");
            self.evener(threads, &unpack);
            for (name, text) in texts() {
                assert!(fs::read(self.place.join("out/unpacked/in").join(name)).unwrap() == text, "{name}");
            }
        }
    }
}

/// Inputs by their names.
fn texts() -> [(&'static str, Vec<u8>); 3] {
    [("empty", Vec::new()), ("small", noise(5, 9_000)), ("large", noise(6, 3_000_000))]
}

#[test]
fn where_no_thread_can_be_had_one_does_the_work_on_a_tree() {
    let Some(limited) = Limited::new() else { return };
    // From none beside the first to some and then no more.
    for threads in 1..6 {
        let (sealed, back) = (format!("out/sealed{threads}"), format!("out/back{threads}"));
        limited.evener(threads, &format!("encrypt --key k.json -q --workers 4 -o {sealed} in"));
        limited.evener(threads, &format!("decrypt --key k.json -q --workers 4 -o {back} {sealed}"));
        for (name, text) in texts() {
            assert!(fs::read(limited.place.join(&back).join(name)).unwrap() == text, "{threads}, {name}");
        }
    }
}

#[test]
fn a_pipe_without_threads_makes_and_reads_every_template_of_tink() {
    let Some(limited) = Limited::new() else { return };
    for template in Template::ALL {
        let key = format!("{}.json", template.name);
        limited.keygen(&format!("--template {} {key}", template.name));
        let options = format!("--key {key}");
        // Files and their authentic segments, with threads: what Google's Tink reads in `conformance/interop`.
        let with_threads = |sealed: &str| {
            let decrypt =
                limited.place.evener().args(["decrypt", "-q", "--force", "--key", &key, "-o", "plain"]);
            decrypt.arg(sealed).run().succeeded();
            fs::read(limited.place.join("plain")).unwrap()
        };
        limited.goes_through_pipes(&options, &options, &with_threads);
    }
}

#[test]
fn a_pipe_without_threads_makes_and_reads_what_age_and_openssl_do() {
    let Some(limited) = Limited::new() else { return };
    if !(there_is("age") && there_is("openssl")) {
        return skipped("age or openssl is not installed");
    }
    let place = &limited.place;
    let made = limited.keygen("--age id");
    let recipient = made.stderr().trim().strip_prefix("Public key: ").unwrap();
    let age = |sealed: &str| {
        place.program("age").args(["-d", "-i", "id", sealed]).run().succeeded().stdout().to_vec()
    };
    for armor in ["", "-a "] {
        limited.goes_through_pipes(&format!("{armor}-r {recipient}"), "-i id", &age);
    }
    place.write("pass", "open sesame\n");
    common::allow(&place.join("pass"), 0o644);
    // In segments that are chained, in segments that are not, and in none.
    for cipher in ["aes-256-cbc", "aes-128-ctr", "chacha20"] {
        let option = format!("-{cipher}");
        let words = ["enc", "-d", &option, "-pbkdf2", "-pass", "file:pass", "-in"];
        let openssl = |sealed: &str| {
            place.program("openssl").args(words).arg(sealed).run().succeeded().stdout().to_vec()
        };
        let options = format!("--format openssl --cipher {cipher} --passphrase-file pass");
        limited.goes_through_pipes(&options, &options, &openssl);
    }
}
