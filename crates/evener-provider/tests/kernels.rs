//! Who does ciphers that kernels of ours may do where that is measured: what one process settled is what the next one does, and nonsense settles nothing.

#![allow(unsafe_code, reason = "room: its support calls libcrypto")]
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test, which says what it skips")]

use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::process::id;
use std::{env, fs};

use evener::counts_file::{Directories, of_process};
use evener_core::counts::{Count, Row};
use evener_kernels::Level;
use evener_provider::{OSSL_provider_init, plant_unwinding, plant_wrong_kernels};

mod support;

use support::ffi::{Cipher, CipherCtx, DEFAULT, errors};
use support::{both_providers, bytes, in_program, started};

const GCM: [&str; 3] = ["AES-128-GCM", "AES-192-GCM", "AES-256-GCM"];
/// The others, and how many of their two directions kernels do.
const OTHERS: [(&str, u32); 11] = [
    ("AES-128-CTR", 2),
    ("AES-192-CTR", 2),
    ("AES-256-CTR", 2),
    ("AES-128-CBC", 1),
    ("AES-192-CBC", 1),
    ("AES-256-CBC", 1),
    ("AES-128-ECB", 2),
    ("AES-192-ECB", 2),
    ("AES-256-ECB", 2),
    ("AES-128-XTS", 2),
    ("AES-256-XTS", 2),
];
/// Lengths of keys of all modes, in each direction that counts by itself, with room for those that XTS has not.
const CLASSES: usize = 21;

/// Bytes of a message of whole blocks.
const WHOLE: usize = 4_096;

/// A message of `text`, in two pieces where the mode takes any: of whole blocks without padding, or not so.
fn message(name: &str, provider: &str, encrypts: bool, text: &[u8]) -> Vec<u8> {
    let cipher = DEFAULT.cipher(name, &format!("provider={provider}")).unwrap();
    let context = CipherCtx::new();
    let iv = bytes(2, if name.ends_with("-GCM") { 12 } else { 16 });
    assert!(context.init(Some(&cipher), Some(&bytes(1, cipher.key_bytes())), Some(&iv), Some(encrypts)));
    let is_whole = text.len() == WHOLE;
    context.set_padding(!is_whole);
    let first = if is_whole { 1_008 } else { 1_001 };
    let (one, other) = text.split_at(if name.ends_with("-XTS") { 0 } else { first.min(text.len()) });
    let mut out = if one.is_empty() { Vec::new() } else { context.update(one).unwrap() };
    out.extend(context.update(other).unwrap());
    out.extend(context.last().unwrap());
    if name.ends_with("-GCM") {
        out.extend(context.octets(c"tag", 16).unwrap());
    }
    out
}

/// A message with each length of key, in each direction, is what the default provider makes of it; returns how many a kernel has done, and how many kernels
/// were found wrong.
fn messages() -> (u32, u32) {
    messages_of(5_000)
}

fn messages_of(length: usize) -> (u32, u32) {
    let (_default, evener) = both_providers(OSSL_provider_init);
    let text = bytes(3, length);
    for name in GCM.into_iter().chain(OTHERS.map(|(name, _)| name)) {
        let [ours, theirs] = ["evener", "default"].map(|provider| message(name, provider, true, &text));
        assert!(ours == theirs, "{name}");
        if !GCM.contains(&name) {
            assert!(message(name, "evener", false, &theirs) == text, "{name}, decrypted");
        }
    }
    [c"evener-native", c"evener-wrong-kernels"].map(|key| evener.count(key).unwrap()).into()
}

/// Messages of [`messages`] that kernels do where all of them work.
fn all() -> u32 {
    3 + OTHERS.iter().map(|(_, directions)| directions).sum::<u32>()
}

/// Runs `body` in a program of its own that keeps what it settles in `directory`.
fn in_program_with(name: &str, kernels: &str, directory: &Path, expected: u32) {
    let (directory, text) = (directory.display().to_string(), expected.to_string());
    let variables = [("EVENER_KERNELS", kernels), ("EVENER_STATISTICS_DIR", &directory), (EXPECTED, &text)];
    in_program(name, "", &variables, || {
        let expected: u32 = env::var(EXPECTED).unwrap().parse().unwrap();
        assert_eq!(messages(), (expected, 0));
        // The first of each class are computed again, later ones go straight to the kernel.
        for times in 2..=6 {
            assert_eq!(messages_of(WHOLE), (times * expected, 0));
        }
        assert_eq!(counted(), [6 * u64::from(expected), 0]);
    });
}

/// Requests of this process that kernels did, and that the inner cipher did, as others see them.
fn counted() -> [u64; 2] {
    let places = Directories::only(env::var_os("EVENER_STATISTICS_DIR").unwrap().into());
    let Some(Ok(record)) = of_process(&places, u32::MAX, id()) else { return [0, 0] };
    [Count::Kernel, Count::Direct].map(|way| Row::all().map(|row| record.count(row, way)).sum())
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

/// The file of choices, with `word` for each class where that is given; its words.
fn kept(directory: &Path, word: Option<u32>) -> Vec<u32> {
    let file = file_of_choices(directory);
    if let Some(word) = word {
        // Not cut short: this program may have it mapped.
        let place = fs::OpenOptions::new().write(true).open(&file).unwrap();
        place.write_all_at(&[word; CLASSES].map(u32::to_ne_bytes).concat(), 0).unwrap();
    }
    words_of(&file).into_iter().take(CLASSES).collect()
}

/// Nanoseconds of work that the file has of all classes.
fn told(directory: &Path) -> u32 {
    words_of(&file_of_choices(directory)).into_iter().skip(CLASSES).sum()
}

fn words_of(file: &Path) -> Vec<u32> {
    let bytes = fs::read(file).unwrap();
    bytes.chunks_exact(4).map(|word| u32::from_ne_bytes(word.try_into().unwrap())).collect()
}

fn file_of_choices(directory: &Path) -> PathBuf {
    let mut files = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    files.find(|path| path.to_string_lossy().contains("/kernels.")).expect("a file of choices")
}

#[test]
fn a_kernel_that_is_told_to_work_does_once_it_gave_a_known_answer() {
    let place = tempfile::tempdir().unwrap();
    let directory = &place.path().join("choices");
    if has_kernels() {
        let name = "a_kernel_that_is_told_to_work_does_once_it_gave_a_known_answer";
        in_program_with(name, "on", directory, all());
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
    // Some messages are no work that a comparison would pay for.
    in_program_with(name, "auto", directory, 0);
    if env::var_os(EXPECTED).is_some() {
        return;
    }
    assert_eq!(kept(directory, None), [0; CLASSES], "nothing is settled");
    for (word, expected) in [(2, all()), (1, 0), (77, 0), (0, 0)] {
        kept(directory, Some(word));
        in_program_with(name, "auto", directory, expected);
        assert_eq!(kept(directory, None), [word; CLASSES]);
    }
}

#[test]
fn programs_that_live_shortly_settle_together_what_none_of_them_would_alone() {
    let name = "programs_that_live_shortly_settle_together_what_none_of_them_would_alone";
    let place = tempfile::tempdir().unwrap();
    let directory = place.path().join("choices");
    let text = directory.display().to_string();
    if !has_kernels() {
        return;
    }
    let run = || {
        let variables = [("EVENER_KERNELS", "auto"), ("EVENER_STATISTICS_DIR", &*text), (EXPECTED, "some")];
        in_program(name, "", &variables, || {
            let _providers = both_providers(OSSL_provider_init);
            // One key, and by what is predicted 1.6 ms of work, behind 20 of which the two are compared. Nothing is freed, as programs end.
            let text = bytes(3, 3 << 20);
            let [ours, theirs] = ["evener", "default"].map(|who| started("AES-128-CTR", who, true, true));
            assert!((0..2).all(|_| ours.update(&text) == theirs.update(&text)));
            std::mem::forget(ours);
        });
    };
    if env::var_os(EXPECTED).is_some() {
        return run();
    }
    let is_settled = |_: &u32| {
        run();
        kept(&directory, None) != [0; CLASSES]
    };
    // Whole milliseconds are told, and the next program compares.
    assert_eq!((1..=40).find(is_settled), Some(21));
    assert_eq!(told(&directory), 0, "what was compared counts no more");
}

#[test]
fn where_nothing_can_be_kept_the_inner_cipher_works() {
    let name = "where_nothing_can_be_kept_the_inner_cipher_works";
    if has_kernels() {
        in_program_with(name, "auto", Path::new("/nowhere/at/all"), 0);
    }
}

/// A program that has one context for ever, and changes its key.
#[test]
fn a_context_settles_who_works_at_its_next_key() {
    let name = "a_context_settles_who_works_at_its_next_key";
    let place = tempfile::tempdir().unwrap();
    let directory = &place.path().join("choices");
    if !has_kernels() {
        return;
    }
    let text = directory.display().to_string();
    in_program(name, "", &[("EVENER_KERNELS", "auto"), ("EVENER_STATISTICS_DIR", &text)], || {
        let (_default, _evener) = both_providers(OSSL_provider_init);
        for name in ["AES-128-CTR", "AES-128-GCM"] {
            let cipher = DEFAULT.cipher(name, "provider=evener").unwrap();
            let (context, iv) = (CipherCtx::new(), bytes(2, cipher.iv_bytes()));
            let key = bytes(1, cipher.key_bytes());
            assert!(context.init(Some(&cipher), Some(&key), Some(&iv), Some(true)));
            // By what is predicted, a quarter of a nanosecond a byte, some 25 ms.
            let piece = bytes(3, 1 << 20);
            for _ in 0..100 {
                context.update(&piece).unwrap();
            }
            let [ours, theirs] = ["evener", "default"].map(|provider| {
                let cipher = DEFAULT.cipher(name, &format!("provider={provider}")).unwrap();
                let fresh = CipherCtx::new();
                let context = if provider == "evener" { &context } else { &fresh };
                let cipher = if provider == "evener" { None } else { Some(&cipher) };
                assert!(context.init(cipher, Some(&bytes(4, 16)), Some(&iv), Some(true)));
                context.update(&piece).unwrap()
            });
            assert!(ours == theirs, "{name}");
        }
        let directory = PathBuf::from(env::var_os("EVENER_STATISTICS_DIR").unwrap());
        let settled: Vec<bool> = kept(&directory, None).iter().map(|word| *word != 0).collect();
        let expected: Vec<bool> = (0..CLASSES).map(|class| class == 0 || class == 3).collect();
        assert_eq!(settled, expected);
    });
}

/// A daemon's contexts, each with one key and a nonce for each message, which were opened before another program settled who works.
#[test]
fn a_context_with_one_key_for_ever_goes_by_a_kernel_once_that_is_settled() {
    let name = "a_context_with_one_key_for_ever_goes_by_a_kernel_once_that_is_settled";
    let place = tempfile::tempdir().unwrap();
    let directory = &place.path().join("choices");
    if !has_kernels() {
        return;
    }
    let text = directory.display().to_string();
    in_program(name, "", &[("EVENER_KERNELS", "auto"), ("EVENER_STATISTICS_DIR", &text)], || {
        let (_default, evener) = both_providers(OSSL_provider_init);
        let directory = PathBuf::from(env::var_os("EVENER_STATISTICS_DIR").unwrap());
        let modes = [
            ("AES-256-GCM", true),
            ("AES-128-GCM", false),
            ("AES-128-CTR", true),
            ("AES-192-CBC", false),
            ("AES-256-ECB", true),
            ("AES-128-XTS", false),
        ];
        let pairs = modes.map(|(name, encrypts)| {
            (name, ["evener", "default"].map(|who| started(name, who, encrypts, false)), encrypts)
        });
        // A tag is set of one that decrypts, as each message has it.
        let text = bytes(3, 100_000);
        let next = |(name, pair, encrypts): &(&str, [CipherCtx; 2], bool), seed| {
            let cipher = DEFAULT.cipher(name, "provider=default").unwrap();
            let iv = bytes(seed, cipher.iv_bytes());
            let iv = Some(&iv[..]).filter(|iv| !iv.is_empty());
            let [ours, theirs] = pair.each_ref().map(|context| {
                assert!(context.init(None, None, iv, None));
                let is_gcm = name.ends_with("-GCM");
                let mut out = if is_gcm && !encrypts {
                    vec![context.set_octets(c"tag", &[7; 16]).into()]
                } else {
                    vec![]
                };
                out.extend(context.update(&text).unwrap());
                out.push(context.last().is_some().into());
                out.extend(
                    Some(context)
                        .filter(|_| is_gcm && *encrypts)
                        .and_then(|made| made.octets(c"tag", 16))
                        .unwrap_or_default(),
                );
                out
            });
            assert!(ours == theirs, "{name}, message {seed}");
            evener.count(c"evener-native").unwrap()
        };
        assert_eq!(pairs.each_ref().map(|pair| next(pair, 2)), [0; 6], "nothing is settled");
        kept(&directory, Some(2));
        let mut before = 0;
        for pair in &pairs {
            // 4 MiB are told of, and the rest of 100 such messages is a kernel's; what is counted is shown now and then.
            let count = (0..400).map(|seed| next(pair, seed)).max().unwrap();
            assert!(count >= before + 256, "{}: {before}, {count}", pair.0);
            before = count;
        }
    });
}

/// Padding that is none, a message that ends within a block, a unit that is too short, two keys that are one.
#[test]
fn what_is_refused_is_refused_in_the_words_of_openssl() {
    let name = "what_is_refused_is_refused_in_the_words_of_openssl";
    if !has_kernels() {
        return;
    }
    in_program(name, "", &[("EVENER_KERNELS", "on")], || {
        let (_default, evener) = both_providers(OSSL_provider_init);
        let said = |provider: &str| {
            let context_of = |name: &str, key: &[u8], encrypts| {
                let cipher = DEFAULT.cipher(name, &format!("provider={provider}")).unwrap();
                let context = CipherCtx::new();
                let is_begun = context.init(Some(&cipher), Some(key), Some(&bytes(2, 16)), Some(encrypts));
                (context, is_begun)
            };
            let key = bytes(1, 16);
            let (no_padding, _) = context_of("AES-128-CBC", &key, false);
            assert!(no_padding.update(&bytes(3, 64)).is_some() && no_padding.last().is_none());
            let (partial, _) = context_of("AES-128-ECB", &key, true);
            partial.set_padding(false);
            assert!(partial.update(&bytes(3, 50)).is_some() && partial.last().is_none());
            let (short, _) = context_of("AES-128-XTS", &bytes(4, 32), true);
            assert!(short.update(&bytes(3, 15)).is_none());
            let (_, is_begun) = context_of("AES-128-XTS", &[7; 32], true);
            assert!(!is_begun);
            // A context goes on where a call was refused.
            short.set_padding(true);
            (errors(), short.update(&bytes(3, 40)).unwrap())
        };
        let (ours, theirs) = (said("evener"), said("default"));
        assert_eq!(ours, theirs);
        assert!(!ours.0.is_empty() && evener.count(c"evener-native").unwrap() > 0);
    });
}

/// In pieces, each of which comes out where it lies, before it or in it, also behind what a block has held back: OpenSSL writes there over what it has not read.
#[test]
fn an_answer_that_begins_in_its_input_is_right() {
    let name = "an_answer_that_begins_in_its_input_is_right";
    if !has_kernels() {
        return;
    }
    in_program(name, "", &[("EVENER_KERNELS", "on")], || {
        let (_default, evener) = both_providers(OSSL_provider_init);
        let text = bytes(3, 3_000);
        for (name, encrypts) in [
            ("AES-128-CTR", true),
            ("AES-256-ECB", true),
            ("AES-256-ECB", false),
            ("AES-192-CBC", false),
            ("AES-256-GCM", true),
        ] {
            let key_bytes = DEFAULT.cipher(name, "provider=evener").unwrap().key_bytes();
            let sealed = message(name, "default", true, &text);
            let (input, expected) = if encrypts { (&text, &sealed) } else { (&sealed, &text) };
            for (from, to) in [(0, 0), (0, 1), (0, 16), (0, 40), (9, 0), (40, 0)] {
                let cipher = DEFAULT.cipher(name, "provider=evener").unwrap();
                let (context, iv) = (CipherCtx::new(), bytes(2, cipher.iv_bytes()));
                assert!(context.init(Some(&cipher), Some(&bytes(1, key_bytes)), Some(&iv), Some(encrypts)));
                let mut out = Vec::new();
                for piece in input.chunks(701) {
                    let mut space = vec![0xa5; piece.len() + 40 + 32];
                    space[from..][..piece.len()].copy_from_slice(piece);
                    let (done, written) = context.update_within(&mut space, from, to, piece.len());
                    assert!(done);
                    out.extend_from_slice(&space[to..][..written]);
                }
                out.extend(context.last().unwrap());
                let expected = if name.ends_with("-GCM") { &expected[..text.len()] } else { expected };
                assert!(out == expected, "{name}, {encrypts}, {from} to {to}");
            }
        }
        assert!(evener.count(c"evener-native").unwrap() >= 30);
    });
}

/// What this process shows of kernels that were wrong: their results, and requests that were done again.
fn shown_wrong() -> [u64; 2] {
    let places = Directories::only(env::var_os("EVENER_STATISTICS_DIR").unwrap().into());
    let record = of_process(&places, u32::MAX, id()).unwrap().unwrap();
    let redone = Row::all().map(|row| record.count(row, Count::Redone)).sum();
    [record.wrong_kernels().into(), redone]
}

/// Runs `body` in a program of its own in which kernels are told to work.
fn with_kernels(name: &str, body: impl FnOnce()) {
    let place = tempfile::tempdir().unwrap();
    let directory = place.path().join("counts").display().to_string();
    if has_kernels() {
        in_program(name, "", &[("EVENER_KERNELS", "on"), ("EVENER_STATISTICS_DIR", &directory)], body);
    }
}

#[test]
fn what_a_wrong_kernel_computes_is_computed_again_and_it_is_used_no_more() {
    let name = "what_a_wrong_kernel_computes_is_computed_again_and_it_is_used_no_more";
    with_kernels(name, || {
        let all = all();
        // Known answers are given, and the first results are right.
        assert_eq!(messages(), (all, 0));
        plant_wrong_kernels();
        let (_default, evener) = both_providers(OSSL_provider_init);
        let count = |key| evener.count(key).unwrap();
        messages();
        // CTR is the same both ways.
        let classes = all - 3;
        assert_eq!(shown_wrong(), [u64::from(classes); 2]);
        let by_kernels = count(c"evener-native");
        messages();
        assert_eq!(shown_wrong(), [u64::from(classes); 2]);
        assert_eq!(count(c"evener-native"), by_kernels, "kernels are out of service");
    });
}

/// Nothing but associated data, both ways.
#[test]
fn a_wrong_tag_is_found_out_where_there_is_no_text() {
    with_kernels("a_wrong_tag_is_found_out_where_there_is_no_text", || {
        let (_default, _evener) = both_providers(OSSL_provider_init);
        let begun = |name: &str, provider: &str, encrypts| {
            let cipher = DEFAULT.cipher(name, &format!("provider={provider}")).unwrap();
            let context = CipherCtx::new();
            let key = bytes(1, cipher.key_bytes());
            assert!(context.init(Some(&cipher), Some(&key), Some(&bytes(2, 12)), Some(encrypts)));
            assert!(context.aad(&bytes(3, 100)));
            context
        };
        let tag = |name: &str, provider: &str| {
            let context = begun(name, provider, true);
            context.last().unwrap();
            context.octets(c"tag", 16).unwrap()
        };
        let sealed = ["AES-128-GCM", "AES-256-GCM"].map(|name| {
            assert_eq!(tag(name, "evener"), tag(name, "default"));
            tag(name, "default")
        });
        plant_wrong_kernels();
        assert_eq!(tag("AES-128-GCM", "evener"), sealed[0]);
        let opens = |tag: &[u8]| {
            let context = begun("AES-256-GCM", "evener", false);
            assert!(context.set_octets(c"tag", tag));
            context.last().is_some()
        };
        assert!(opens(&sealed[1]) && !opens(&sealed[0]));
        assert_eq!(shown_wrong(), [2, 2]);
    });
}

/// A context that has its key for ever looks at one message in many, and others with keys of that class hear of it.
#[test]
fn a_kernel_that_goes_wrong_later_is_found_out_and_leaves_contexts_that_have_it() {
    with_kernels("a_kernel_that_goes_wrong_later_is_found_out_and_leaves_contexts_that_have_it", || {
        let (_default, _evener) = both_providers(OSSL_provider_init);
        let begun = |name: &str, provider: &str| {
            let cipher = DEFAULT.cipher(name, &format!("provider={provider}")).unwrap();
            let (context, iv) = (CipherCtx::new(), bytes(2, cipher.iv_bytes()));
            let key = bytes(1, cipher.key_bytes());
            assert!(context.init(Some(&cipher), Some(&key), Some(&iv), Some(true)));
            (context, iv)
        };
        let next = |(context, iv): &(CipherCtx, Vec<u8>)| {
            assert!(context.init(None, None, Some(iv), None));
            context.update(&bytes(3, 16)).unwrap()
        };
        let names = ["AES-128-GCM", "AES-128-CTR", "AES-256-ECB", "AES-256-XTS"];
        // The first of all are right, and looked at.
        let judges = names.map(|name| {
            let judge = next(&begun(name, "default"));
            assert!((0..5).all(|_| next(&begun(name, "evener")) == judge), "{name}");
            judge
        });
        plant_wrong_kernels();
        for (before, (name, judge)) in (0..).zip(names.into_iter().zip(judges)) {
            let [one, other] = [begun(name, "evener"), begun(name, "evener")];
            let wrong = (0..3_000).filter(|_| next(&one) != judge).count();
            let found = shown_wrong()[0];
            assert!((900..1_024).contains(&wrong) && found == before + 1, "{name}: {wrong}, {found}");
            assert!(next(&other) == judge, "{name}");
        }
    });
}

/// The inner cipher goes on within the message.
#[test]
fn a_message_on_its_way_leaves_a_kernel_that_was_found_wrong() {
    with_kernels("a_message_on_its_way_leaves_a_kernel_that_was_found_wrong", || {
        let (_default, _evener) = both_providers(OSSL_provider_init);
        let modes =
            [("AES-128-CTR", true), ("AES-192-CBC", false), ("AES-256-ECB", true), ("AES-256-XTS", true)];
        let begun = |(name, encrypts), who| started(name, who, encrypts, true);
        // The first of all are right, and looked at.
        for mode in modes {
            (0..5).for_each(|_| assert!(begun(mode, "evener").update(&[5; 64]).is_some()));
        }
        plant_wrong_kernels();
        for mode in modes {
            // What comes next: the end, whole blocks, or others.
            let begun = [0, 64, 100].map(|next| {
                let [ours, judge] = ["evener", "default"].map(|who| begun(mode, who));
                let first = [&ours, &judge].map(|context| context.update(&bytes(3, 1_000)).unwrap());
                assert!(first[0] != first[1], "{mode:?}: it is wrong by now");
                (ours, judge, next)
            });
            let other = started(mode.0, "evener", mode.1, true);
            (0..1_100).for_each(|_| assert!(other.update(&[5; 32]).is_some()));
            for (ours, judge, next) in begun {
                let pieces = [&ours, &judge]
                    .map(|context| if next > 0 { context.update(&bytes(4, next)) } else { None });
                assert!(pieces[0] == pieces[1], "{mode:?}, {next} bytes");
                assert!(ours.last() == judge.last(), "{mode:?}, {next} bytes, the end");
            }
        }
        assert_eq!(shown_wrong()[0], 4);
    });
}

/// The tag of nothing, a nonce that a record is to have, and one that it has.
#[test]
fn no_call_that_begins_a_look_at_a_message_is_unwound_into_openssl() {
    with_kernels("no_call_that_begins_a_look_at_a_message_is_unwound_into_openssl", || {
        let (_default, _evener) = both_providers(OSSL_provider_init);
        let records = |encrypts| {
            let context = started("AES-128-GCM", "evener", encrypts, true);
            assert!(context.set_octets(c"tlsivfixed", &[3; 4]));
            context
        };
        let [ends, seals, opens] =
            [started("AES-256-GCM", "evener", true, true), records(true), records(false)];
        plant_unwinding();
        assert!(ends.last().is_none());
        assert!(seals.octets(c"tlsivgen", 8).is_none());
        assert!(!opens.set_octets(c"tlsivinv", &[4; 8]));
        assert!(errors().iter().any(|error| error.contains("internal error")), "{:?}", errors());
    });
}

/// Pieces of which no copy is made, and those of which nothing comes out.
#[test]
fn a_piece_that_is_not_looked_at_leaves_its_turn_to_the_next() {
    with_kernels("a_piece_that_is_not_looked_at_leaves_its_turn_to_the_next", || {
        let (_default, _evener) = both_providers(OSSL_provider_init);
        let cipher = DEFAULT.cipher("AES-128-CTR", "provider=evener").unwrap();
        let long = || {
            let context = CipherCtx::new();
            assert!(context.init(Some(&cipher), Some(&[1; 16]), Some(&[2; 16]), Some(true)));
            context.update(&vec![3; 300_000]).unwrap();
            context
        };
        let contexts: Vec<CipherCtx> = (0..8).map(|_| long()).collect();
        plant_wrong_kernels();
        let key = CipherCtx::new();
        assert!(key.init(Some(&cipher), Some(&[1; 16]), Some(&[2; 16]), Some(true)));
        drop(contexts);
        let next = CipherCtx::new();
        assert!(next.init(Some(&cipher), Some(&[1; 16]), Some(&[2; 16]), Some(true)));
        next.update(&[3; 1_000]).unwrap();
        assert_eq!(shown_wrong()[0], 1);
    });
}

#[test]
fn what_other_ways_leave_is_done_by_kernels_and_counted_so() {
    let name = "what_other_ways_leave_is_done_by_kernels_and_counted_so";
    if !has_kernels() {
        return;
    }
    let ways = [
        vec![("EVENER_COMBINE", "auto")],
        vec![("EVENER_THRESHOLD", "65536")],
        vec![("EVENER_THREADS", "auto"), ("EVENER_COMBINE", "auto"), ("EVENER_THRESHOLD", "65536")],
    ];
    for way in ways {
        let place = tempfile::tempdir().unwrap();
        let directory = place.path().join("counts").display().to_string();
        let usual = [("EVENER_KERNELS", "on"), ("EVENER_STATISTICS_DIR", &*directory), (EXPECTED, "all")];
        in_program(name, "", &[&usual[..], &way].concat(), || {
            assert_eq!(messages(), (all(), 0));
            // CBC is encrypted by no kernel, with three lengths of keys.
            assert_eq!(counted(), [all().into(), 3]);
        });
        if env::var_os(EXPECTED).is_some() {
            return;
        }
    }
}

/// What each provider's context gives, of which the steps are told; both have to give the same.
fn same_of_both(steps: impl Fn(&Cipher) -> Vec<u8>, what: &str) {
    let [ours, theirs] = ["provider=evener", "provider=default"]
        .map(|wanted| steps(&DEFAULT.cipher("AES-256-CBC", wanted).unwrap()));
    assert!(ours == theirs, "{what}");
}

#[test]
fn a_context_of_cbc_is_a_kernels_from_its_first_key_or_iv_on_where_that_is_for_decryption() {
    let name = "a_context_of_cbc_is_a_kernels_from_its_first_key_or_iv_on_where_that_is_for_decryption";
    if !has_kernels() {
        return;
    }
    let variables = [("EVENER_KERNELS", "on"), ("EVENER_COMBINE", "auto")];
    in_program(name, "", &variables, || {
        let (_default, evener) = both_providers(OSSL_provider_init);
        let (text, key, other_key, iv) = (bytes(4, WHOLE), bytes(5, 32), bytes(6, 32), bytes(7, 16));
        let by_kernels = || evener.count(c"evener-native").unwrap();
        let all_of = |context: &CipherCtx| [context.update(&text).unwrap(), context.last().unwrap()].concat();
        let unpadded = |cipher: &Cipher| {
            let context = CipherCtx::new();
            assert!(context.init(Some(cipher), None, None, None));
            context.set_padding(false);
            context
        };
        // Told that it does not pad before it has a key; a copy of it, too.
        let decrypted = |cipher: &Cipher| {
            let context = unpadded(cipher);
            let copy = context.duplicate();
            assert!(context.init(None, Some(&key), Some(&iv), Some(false)));
            assert!(copy.init(None, Some(&other_key), Some(&iv), Some(false)));
            [all_of(&context), all_of(&copy)].concat()
        };
        same_of_both(decrypted, "decryption");
        assert_eq!(by_kernels(), 2);
        // What encrypted first stays where it is, and so does a copy, which goes on from the first IV.
        let both_ways = |cipher: &Cipher| {
            let context = unpadded(cipher);
            assert!(context.init(None, Some(&key), Some(&iv), Some(true)));
            let encrypted = all_of(&context);
            let copy = context.duplicate();
            assert!(copy.init(None, Some(&other_key), None, Some(false)));
            assert!(context.init(None, Some(&key), Some(&iv), Some(false)));
            [encrypted, all_of(&context), all_of(&copy)].concat()
        };
        same_of_both(both_ways, "both ways");
        assert_eq!(by_kernels(), 2);
        // The IV came before the key.
        let iv_first = |cipher: &Cipher| {
            let context = unpadded(cipher);
            assert!(context.init(None, None, Some(&iv), Some(false)));
            assert!(context.init(None, Some(&key), None, Some(false)));
            all_of(&context)
        };
        same_of_both(iv_first, "an IV first");
        assert_eq!(by_kernels(), 3);
        let lengths = |cipher: &Cipher| {
            let context = unpadded(cipher);
            vec![context.length(c"keylen").unwrap(), context.length(c"ivlen").unwrap()]
                .into_iter()
                .flat_map(usize::to_le_bytes)
                .collect()
        };
        same_of_both(lengths, "lengths");
    });
}
