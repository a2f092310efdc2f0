//! Who does AES-GCM where that is measured: what one process settled is what the next one does, and nonsense settles nothing.

#![allow(unsafe_code, reason = "room: its support calls libcrypto")]
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test, which says what it skips")]

use std::path::{Path, PathBuf};
use std::{env, fs};

use evener_kernels::Level;
use evener_provider::OSSL_provider_init;

mod support;

use support::ffi::{CipherCtx, DEFAULT};
use support::{both_providers, bytes, in_program};

const GCM: [&str; 3] = ["AES-128-GCM", "AES-192-GCM", "AES-256-GCM"];

/// A message with each length of key is what the default provider makes of it; returns how many a kernel did, and how many kernels were found wrong.
fn messages() -> (u32, u32) {
    let (_default, evener) = both_providers(OSSL_provider_init);
    for name in GCM {
        let [ours, theirs] = ["evener", "default"].map(|provider| {
            let cipher = DEFAULT.cipher(name, &format!("provider={provider}")).unwrap();
            let context = CipherCtx::new();
            assert!(context.init(
                Some(&cipher),
                Some(&bytes(1, cipher.key_bytes())),
                Some(&bytes(2, 12)),
                Some(true)
            ));
            let mut out = context.update(&bytes(3, 5_000)).unwrap();
            out.extend(context.last().unwrap());
            out.extend(context.octets(c"tag", 16).unwrap());
            out
        });
        assert!(ours == theirs, "{name}");
    }
    [c"evener-native", c"evener-wrong-kernels"].map(|key| evener.count(key).unwrap()).into()
}

/// Runs `body` in a program of its own that keeps what it settles in `directory`.
fn in_program_with(name: &str, kernels: &str, directory: &Path, expected: u32) {
    let (directory, text) = (directory.display().to_string(), expected.to_string());
    let variables = [("EVENER_KERNELS", kernels), ("EVENER_STATISTICS_DIR", &directory), (EXPECTED, &text)];
    in_program(name, "", &variables, || {
        let expected: u32 = env::var(EXPECTED).unwrap().parse().unwrap();
        assert_eq!(messages(), (expected, 0));
    });
}

/// How many messages a kernel is to do.
const EXPECTED: &str = "MESSAGES_OF_KERNELS";

fn has_kernels() -> bool {
    let has = Level::best().is_some();
    if !has {
        println!("skipped: no kernels for this processor, or by this compiler");
    }
    has
}

/// The file of choices, with `word` for each length of key where that is given; its words.
fn kept(directory: &Path, word: Option<u32>) -> Vec<u32> {
    let mut files = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let file: PathBuf =
        files.find(|path| path.to_string_lossy().contains("/kernels.")).expect("a file of choices");
    if let Some(word) = word {
        fs::write(&file, [word; 3].map(u32::to_ne_bytes).concat()).unwrap();
    }
    fs::read(file).unwrap().chunks_exact(4).map(|word| u32::from_ne_bytes(word.try_into().unwrap())).collect()
}

#[test]
fn a_kernel_that_is_told_to_work_does_once_it_gave_a_known_answer() {
    let place = tempfile::tempdir().unwrap();
    let directory = &place.path().join("choices");
    if has_kernels() {
        let name = "a_kernel_that_is_told_to_work_does_once_it_gave_a_known_answer";
        in_program_with(name, "on", directory, 3);
    }
}

#[test]
fn what_one_process_settled_is_what_the_next_does_and_nonsense_settles_nothing() {
    let name = "what_one_process_settled_is_what_the_next_does_and_nonsense_settles_nothing";
    let place = tempfile::tempdir().unwrap();
    let directory = &place.path().join("choices");
    if !has_kernels() {
        return;
    }
    // Three messages are no work that a comparison would pay for.
    in_program_with(name, "auto", directory, 0);
    if env::var_os(EXPECTED).is_some() {
        return;
    }
    assert_eq!(kept(directory, None), [0; 3], "nothing is settled");
    for (word, expected) in [(2, 3), (1, 0), (77, 0), (0, 0)] {
        kept(directory, Some(word));
        in_program_with(name, "auto", directory, expected);
        assert_eq!(kept(directory, None), [word; 3]);
    }
}

#[test]
fn where_nothing_can_be_kept_the_inner_cipher_works() {
    let name = "where_nothing_can_be_kept_the_inner_cipher_works";
    if has_kernels() {
        in_program_with(name, "auto", Path::new("/nowhere/at/all"), 0);
    }
}
