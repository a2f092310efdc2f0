//! Published vectors, Wycheproof's among them, through EVP: whole and in pieces, in place and apart.

use std::ffi::CString;

use evener_conformance_openssl::ffi::{Cipher, Context, Digest, Library, Octets, SPARE_BYTES, hmac};
use evener_conformance_openssl::{Setup, print_line};
use evener_vectors::Case;

/// How a text goes through: the longest piece, and whether the output takes the input's place.
#[derive(Clone, Copy, Debug)]
struct Chunking {
    piece_bytes: usize,
    in_place: bool,
}

const CHUNKINGS: [Chunking; 4] = [
    Chunking { piece_bytes: usize::MAX, in_place: false },
    Chunking { piece_bytes: usize::MAX, in_place: true },
    Chunking { piece_bytes: 7, in_place: false },
    Chunking { piece_bytes: 32, in_place: true },
];

fn octets(bytes: &[u8]) -> Octets {
    let mut made = [0; 128];
    made[..bytes.len()].copy_from_slice(bytes);
    made
}

/// One direction of a case: what comes out and, where it encrypts, the tag. `None` where libcrypto refuses.
fn run(cipher: &Cipher, case: &Case, encrypts: bool, chunking: Chunking) -> Option<(Vec<u8>, Vec<u8>)> {
    let done = |code: i32| (code == 1).then_some(());
    let mut context = Context::new();
    done(context.init(Some(cipher), Some(&octets(&case.key)), Some(&octets(&case.iv)), Some(encrypts)))?;
    done(context.set_padding(case.padded))?;
    let tag_bytes = u8::try_from(case.tag.len()).expect("tags are short");
    if tag_bytes > 0 && !encrypts {
        done(context.set_tag(&octets(&case.tag), tag_bytes))?;
    }
    for piece in case.aad.chunks(chunking.piece_bytes) {
        done(context.update(&mut piece.to_vec(), 0..piece.len(), None).code)?;
    }
    let input = if encrypts { &case.plaintext } else { &case.ciphertext };
    // XTS takes a text as a whole.
    let piece_bytes = if case.algorithm.ends_with("XTS") { usize::MAX } else { chunking.piece_bytes };
    // A block held back for its padding would come out over what is still to be read.
    let in_place = chunking.in_place && (!case.padded || piece_bytes == usize::MAX);
    let mut output = Vec::new();
    for piece in input.chunks(piece_bytes) {
        let to = if in_place { 0 } else { piece.len() };
        let mut space = piece.to_vec();
        space.resize(to + piece.len() + SPARE_BYTES, 0);
        let answer = context.update(&mut space, 0..piece.len(), Some(to));
        done(answer.code)?;
        output.extend_from_slice(&space[to..][..usize::try_from(answer.bytes).ok()?]);
    }
    let mut space = [0; SPARE_BYTES];
    let answer = context.finish(&mut space, 0);
    done(answer.code)?;
    output.extend_from_slice(&space[..usize::try_from(answer.bytes).ok()?]);
    let tag = if tag_bytes > 0 && encrypts { context.tag(tag_bytes) } else { (1, [0; 128]) };
    done(tag.0)?;
    Some((output, tag.1[..if encrypts { case.tag.len() } else { 0 }].to_vec()))
}

/// Whether a cipher's case comes out as published, in both directions and all manners.
fn cipher_holds(cipher: &Cipher, case: &Case) -> bool {
    CHUNKINGS.into_iter().all(|chunking| {
        let opened = run(cipher, case, false, chunking);
        if !case.valid {
            return opened.is_none();
        }
        let sealed = run(cipher, case, true, chunking);
        sealed == Some((case.ciphertext.clone(), case.tag.clone()))
            && opened == Some((case.plaintext.clone(), Vec::new()))
    })
}

/// Whether a hash's or HMAC's case comes out as published.
fn message_holds(library: &'static Library, case: &Case) -> bool {
    let tag = match case.algorithm.strip_prefix("HMAC-") {
        Some(hash) => {
            let hash = CString::new(hash).expect("a name of the table");
            hmac(library, &hash, &case.key, &case.plaintext)
        }
        None => Digest::fetch(library, case.algorithm).map(|mut digest| {
            case.plaintext.chunks(7).for_each(|piece| assert_eq!(digest.update(piece), 1));
            digest.so_far().1
        }),
    };
    (tag.as_ref() == Some(&case.tag)) == case.valid
}

/// Runs all cases; returns how many there are and how many of them Evener served itself.
fn all_hold(library: &'static Library) -> (usize, usize) {
    let (mut cases, mut served) = (0, 0);
    let mut fetched: Option<(&str, Option<Cipher>)> = None;
    for case in evener_vectors::all() {
        if fetched.as_ref().is_none_or(|(name, _)| *name != case.algorithm) {
            fetched = Some((case.algorithm, Cipher::fetch(library, case.algorithm)));
        }
        let cipher = fetched.as_ref().and_then(|(_, cipher)| cipher.as_ref());
        let holds =
            cipher.map_or_else(|| message_holds(library, &case), |cipher| cipher_holds(cipher, &case));
        assert!(holds, "{} {}: {}", case.source, case.id, case.algorithm);
        cases += 1;
        served += usize::from(cipher.is_some_and(|cipher| cipher.provider() == "evener"));
    }
    (cases, served)
}

#[test]
fn every_published_case_comes_out_with_evener_as_without() {
    let evener = Setup::evener("");
    let [plain, evener] =
        [&Setup::plain(), &evener].map(|setup| all_hold(Library::load(&setup.path()).expect("it loads")));
    print_line(&format!("{} cases, {} of them ciphers that Evener served", evener.0, evener.1));
    assert_eq!(evener.0, plain.0);
    assert!(evener.1 > 3_000, "{evener:?}");
    assert_eq!(plain.1, 0);
}

/// By kernels of ours, at each width of registers that this processor has: AES-GCM, XTS, and decryption of CBC.
#[test]
fn every_published_case_comes_out_of_kernels() {
    for kernels in ["kernels = 128", "kernels = 256", "kernels = on"] {
        let setup = Setup::evener(kernels);
        let library = Library::load(&setup.path()).expect("it loads");
        let (_, served) = all_hold(library);
        let cipher = Cipher::fetch(library, "AES-128-GCM").expect("it has one");
        let by_kernels = cipher.counted(c"evener-native");
        print_line(&format!("{kernels}: {served} cases of ciphers, {by_kernels} messages by kernels"));
        if by_kernels == 0 {
            print_line("skipped: no kernels for this processor, or by this compiler");
        } else {
            assert!(by_kernels > 3_000, "{by_kernels}");
        }
    }
}
