//! Who does ciphers that kernels of ours may do where that is measured: what one process settled is what the next one does, and nonsense settles nothing.

#![allow(unsafe_code, reason = "room: its support calls libcrypto")]
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test, which says what it skips")]

use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

use evener_provider::OSSL_provider_init;

mod support;

use support::ffi::{Cipher, CipherCtx, DEFAULT};
use support::kernels::{
    WHOLE, all, by_default, counted, has_kernels, has_pipelines, messages, messages_of, with_kernels,
};
use support::{both_providers, bytes, in_program, started};

/// Lengths of keys of all modes, in each direction that counts by itself, with room for those that XTS has not.
const CLASSES: usize = 21;

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

/// How many messages a kernel is to do.
const EXPECTED: &str = "MESSAGES_OF_KERNELS";

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
    for (word, expected) in [(2, by_default()), (1, 0), (77, 0), (0, 0)] {
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
    one_key_for_ever(name, &[]);
}

/// And longer messages the other way.
#[test]
fn the_same_context_does_so_where_other_ways_may_come_before_it() {
    let name = "the_same_context_does_so_where_other_ways_may_come_before_it";
    one_key_for_ever(name, &[("EVENER_THRESHOLD", LONG)]);
}

const LONG: &str = "131072";

fn one_key_for_ever(name: &str, ways: &[(&str, &str)]) {
    let place = tempfile::tempdir().unwrap();
    let directory = &place.path().join("choices");
    if !has_kernels() {
        return;
    }
    let text = directory.display().to_string();
    let usual = [("EVENER_KERNELS", "auto"), ("EVENER_STATISTICS_DIR", &*text)];
    in_program(name, "", &[&usual, ways].concat(), || {
        let (_default, evener) = both_providers(OSSL_provider_init);
        let directory = PathBuf::from(env::var_os("EVENER_STATISTICS_DIR").unwrap());
        // Where pipelines alone may come before it, an update is not looked at, however long.
        let is_cbc_seen = !has_pipelines() || env::var_os("EVENER_THRESHOLD").is_some();
        let modes = [
            ("AES-256-GCM", true),
            ("AES-128-GCM", false),
            ("AES-128-CTR", true),
            ("AES-128-XTS", false),
            ("AES-192-CBC", false),
        ];
        let modes = if is_cbc_seen { &modes[..] } else { &modes[..4] };
        let pairs = modes.iter().map(|&(name, encrypts)| {
            (name, ["evener", "default"].map(|who| started(name, who, encrypts, false)), encrypts)
        });
        let pairs: Vec<_> = pairs.collect();
        // A tag is set of one that decrypts, as each message has it.
        let text = bytes(3, 100_000);
        let message = |(name, pair, encrypts): &(&str, [CipherCtx; 2], bool), seed, text: &[u8]| {
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
                out.extend(context.update(text).unwrap());
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
        let next = |pair, seed| message(pair, seed, &text);
        assert!(pairs.iter().all(|pair| next(pair, 2) == 0), "nothing is settled");
        kept(&directory, Some(2));
        let mut before = 0;
        for pair in &pairs {
            // 4 MiB are told of, and the rest of 100 such messages is a kernel's; what is counted is shown now and then.
            let count = (0..400).map(|seed| next(pair, seed)).max().unwrap();
            assert!(count >= before + 256, "{}: {before}, {count}", pair.0);
            before = count;
        }
        // Where other ways may come, they do in the middle of a life as well, and of a message.
        let long = bytes(5, 200_000);
        pairs.iter().for_each(|pair| _ = [message(pair, 7, &long), next(pair, 8)]);
        let routed = evener.count(c"evener-routed").unwrap();
        let is_routable = env::var_os("EVENER_THRESHOLD").is_some();
        assert_eq!(routed > 1, is_routable, "{routed}");
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
            // CBC, with three lengths of keys, is encrypted by no kernel, and decrypted by one from longer first pieces on.
            let done = if has_pipelines() { all() } else { all() - 3 };
            assert_eq!(messages(), (done, 0));
            assert_eq!(counted(), [done.into(), 6]);
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

/// A context that does not pad, without a key.
fn unpadded(cipher: &Cipher) -> CipherCtx {
    let context = CipherCtx::new();
    assert!(context.init(Some(cipher), None, None, None));
    context.set_padding(false);
    context
}

#[test]
fn a_context_of_cbc_is_a_kernels_from_its_first_long_message_on_that_is_decrypted() {
    let name = "a_context_of_cbc_is_a_kernels_from_its_first_long_message_on_that_is_decrypted";
    if !has_kernels() {
        return;
    }
    let variables = [("EVENER_KERNELS", "on"), ("EVENER_COMBINE", "auto")];
    in_program(name, "", &variables, || {
        let (_default, evener) = both_providers(OSSL_provider_init);
        let (text, key, other_key, iv) = (bytes(4, 2 * WHOLE), bytes(5, 32), bytes(6, 32), bytes(7, 16));
        let by_kernels = || evener.count(c"evener-native").unwrap();
        let all_of = |context: &CipherCtx| [context.update(&text).unwrap(), context.last().unwrap()].concat();
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
        assert_eq!(by_kernels(), 4);
        // The IV came before the key.
        let iv_first = |cipher: &Cipher| {
            let context = unpadded(cipher);
            assert!(context.init(None, None, Some(&iv), Some(false)));
            assert!(context.init(None, Some(&key), None, Some(false)));
            all_of(&context)
        };
        same_of_both(iv_first, "an IV first");
        assert_eq!(by_kernels(), 5);
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

/// An inner context that is left has its IV elsewhere.
#[test]
fn where_the_inner_cipher_was_found_quicker_a_long_message_brings_no_other_context() {
    let name = "where_the_inner_cipher_was_found_quicker_a_long_message_brings_no_other_context";
    if !has_kernels() {
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let directory = place.path().join("choices");
    let text = directory.display().to_string();
    for (word, is_left) in [(None, "true"), (Some(1), "false"), (Some(2), "true")] {
        if env::var_os(EXPECTED).is_none() && word.is_some() {
            kept(&directory, word);
        }
        let variables = [
            ("EVENER_KERNELS", "auto"),
            ("EVENER_COMBINE", "auto"),
            ("EVENER_STATISTICS_DIR", &*text),
            (EXPECTED, is_left),
        ];
        in_program(name, "", &variables, || {
            let (_default, _evener) = both_providers(OSSL_provider_init);
            // The first key of any class looks at what is kept.
            messages();
            let cipher = DEFAULT.cipher("AES-256-CBC", "provider=evener").unwrap();
            let context = unpadded(&cipher);
            assert!(context.init(None, Some(&bytes(5, 32)), Some(&bytes(7, 16)), Some(false)));
            let before = context.address(c"iv").unwrap();
            context.update(&bytes(8, 4 * WHOLE)).unwrap();
            let is_left = context.address(c"iv").unwrap() != before;
            assert_eq!(is_left.to_string(), env::var(EXPECTED).unwrap());
        });
        if env::var_os(EXPECTED).is_some() {
            return;
        }
    }
}

/// A context counts messages that are over now and then only: those of before are not taken for the kernel's.
#[test]
fn messages_from_before_a_kernel_had_the_context_are_counted_as_the_inner_ciphers() {
    let name = "messages_from_before_a_kernel_had_the_context_are_counted_as_the_inner_ciphers";
    if !has_kernels() {
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let directory = place.path().join("counts").display().to_string();
    let variables =
        [("EVENER_KERNELS", "on"), ("EVENER_THRESHOLD", "65536"), ("EVENER_STATISTICS_DIR", &*directory)];
    in_program(name, "", &variables, || {
        let (_default, _evener) = both_providers(OSSL_provider_init);
        let cipher = DEFAULT.cipher("AES-256-CBC", "provider=evener").unwrap();
        let context = unpadded(&cipher);
        assert!(context.init(None, Some(&bytes(5, 32)), Some(&bytes(7, 16)), Some(false)));
        for message in 0..20 {
            assert!(context.init(None, None, Some(&bytes(message, 16)), None));
            context.update(&bytes(message, 512)).unwrap();
        }
        assert!(context.init(None, None, Some(&bytes(9, 16)), None));
        context.update(&bytes(8, 4 * WHOLE)).unwrap();
        drop(context);
        assert_eq!(counted(), [1, 20]);
    });
}

/// As [`messages_from_before_a_kernel_had_the_context_are_counted_as_the_inner_ciphers`], of contexts before which other ways come late.
#[test]
fn messages_from_before_other_ways_came_are_counted_as_whose_they_were() {
    let name = "messages_from_before_other_ways_came_are_counted_as_whose_they_were";
    if !has_kernels() {
        return;
    }
    for (kernels, expected) in [("on", [21, 0]), ("auto", [0, 21])] {
        // The program that was started for one of them is none for the other.
        if env::var("EVENER_KERNELS").is_ok_and(|set| set != kernels) {
            continue;
        }
        let place = tempfile::tempdir().unwrap();
        let directory = place.path().join("counts").display().to_string();
        let variables = [
            ("EVENER_KERNELS", kernels),
            ("EVENER_THRESHOLD", "16384"),
            ("EVENER_STATISTICS_DIR", &*directory),
        ];
        in_program(name, "", &variables, || {
            let (_default, evener) = both_providers(OSSL_provider_init);
            let cipher = DEFAULT.cipher("AES-256-CTR", "provider=evener").unwrap();
            let context = unpadded(&cipher);
            assert!(context.init(None, Some(&bytes(5, 32)), Some(&bytes(7, 16)), Some(true)));
            for message in 0..20 {
                assert!(context.init(None, None, Some(&bytes(message, 16)), None));
                context.update(&bytes(message, 512)).unwrap();
            }
            assert!(context.init(None, None, Some(&bytes(9, 16)), None));
            context.update(&bytes(8, 160)).unwrap();
            context.update(&bytes(8, 32_768)).unwrap();
            drop(context);
            assert_eq!(evener.count(c"evener-routed"), Some(1));
            // Of the last message what was not routed.
            assert_eq!(counted(), expected);
        });
    }
}

#[test]
fn what_begins_with_a_short_piece_is_not_a_kernels_and_what_comes_behind_single_calls_is() {
    let name = "what_begins_with_a_short_piece_is_not_a_kernels_and_what_comes_behind_single_calls_is";
    if !has_kernels() {
        return;
    }
    let variables = [("EVENER_KERNELS", "on"), ("EVENER_COMBINE", "auto")];
    in_program(name, "", &variables, || {
        let (_default, evener) = both_providers(OSSL_provider_init);
        let (text, key, iv) = (bytes(4, 2 * WHOLE), bytes(5, 32), bytes(7, 16));
        let all_of = |context: &CipherCtx| [context.update(&text).unwrap(), context.last().unwrap()].concat();
        // Nor is what comes behind that piece.
        let short_first = |cipher: &Cipher| {
            let context = unpadded(cipher);
            assert!(context.init(None, Some(&key), Some(&iv), Some(false)));
            [context.update(&text[..32]).unwrap(), context.update(&text[32..]).unwrap()].concat()
        };
        same_of_both(short_first, "a short piece first");
        // Single calls before it move the chain on, and leave the IV where it was.
        let single_first = |cipher: &Cipher| {
            let context = unpadded(cipher);
            assert!(context.init(None, Some(&key), Some(&iv), Some(false)));
            let mut single = text.repeat(2);
            let (one, other) = single.split_at_mut(32);
            assert!(context.one_shot(one) > 0 && context.one_shot(other) > 0);
            let first = context.octets(c"iv", 16).unwrap();
            assert!(context.init(None, None, None, Some(false)));
            [single, first, all_of(&context)].concat()
        };
        same_of_both(single_first, "a single call first");
        assert_eq!(evener.count(c"evener-native").unwrap(), 2);
    });
}

#[test]
fn a_context_goes_on_with_its_key_where_two_halves_that_are_the_same_are_refused() {
    let name = "a_context_goes_on_with_its_key_where_two_halves_that_are_the_same_are_refused";
    with_kernels(name, || {
        let _both = both_providers(OSSL_provider_init);
        for encrypts in [true, false] {
            let refused_between = |cipher: &Cipher| {
                let context = unpadded(cipher);
                assert!(context.init(None, Some(&bytes(5, 32)), Some(&bytes(7, 16)), Some(encrypts)));
                let first = context.update(&bytes(8, 64)).unwrap();
                let is_taken = context.init(None, Some(&[6; 32]), Some(&bytes(9, 16)), Some(encrypts));
                (first, is_taken, context.update(&bytes(8, 64)))
            };
            let [ours, theirs] = ["evener", "default"].map(|who| {
                refused_between(&DEFAULT.cipher("AES-128-XTS", &format!("provider={who}")).unwrap())
            });
            assert_eq!(ours, theirs, "encrypts {encrypts}");
        }
    });
}
