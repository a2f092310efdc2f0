//! What libipsec-mb's structures look like: facts taken from its public header at each known release.
//!
//! Everything used here has the same offset in every known release; only the length of a job, the numbers of
//! the instruction sets and the length of a GCM key differ. The test below compares with the header that is
//! installed.

use std::ffi::{c_char, c_int, c_uint, c_void};
use std::ptr;

/// A release whose structures are known.
pub(crate) struct Release {
    /// As `imb_get_version` gives it: one byte each for major, minor, patch.
    pub(crate) number: u32,
    /// Length of a job in bytes, which is the stride of an array of jobs.
    pub(crate) job_bytes: usize,
    /// Its numbers of the instruction sets, the widest last.
    pub(crate) sets: &'static [(u32, &'static str)],
}

const SETS_1: &[(u32, &str)] = &[(2, "SSE"), (3, "AVX"), (4, "AVX2"), (5, "AVX-512")];
const SETS_2: &[(u32, &str)] = &[(1, "SSE"), (2, "AVX2"), (3, "AVX-512")];

/// The releases that distributions carry and that were run: Debian 12, Ubuntu 24.04, Debian 13. The patches
/// of 2.0 have one header but for the version.
pub(crate) const RELEASES: &[Release] = &[
    Release { number: 0x01_03_00, job_bytes: 200, sets: SETS_1 },
    Release { number: 0x01_05_00, job_bytes: 240, sets: SETS_1 },
    Release { number: 0x02_00_00, job_bytes: 216, sets: SETS_2 },
    Release { number: 0x02_00_01, job_bytes: 216, sets: SETS_2 },
    Release { number: 0x02_00_02, job_bytes: 216, sets: SETS_2 },
];

/// Bytes of a prepared GCM key in the release that needs most (1024 in 1.3, 1280 since 1.4).
pub(crate) const GCM_KEY_BYTES: usize = 1280;

/// Bytes of the state that GCM keeps inside one call.
pub(crate) const GCM_STATE_BYTES: usize = 88;

/// Bytes of the state that ChaCha20-Poly1305 keeps between calls.
pub(crate) const CHACHA_STATE_BYTES: usize = 192;

/// Most jobs in one call.
pub(crate) const BURST_JOBS_MAX: usize = 128;

/// Longest message of a SIMD lane: the library counts its bytes in 16 bits and leaves two values out.
pub(crate) const LANE_BYTES_MAX: usize = 65_534;

/// `IMB_CIPHER_MODE`.
pub(crate) mod cipher {
    pub(crate) const CBC: u32 = 1;
    pub(crate) const CTR: u32 = 2;
    pub(crate) const NULL: u32 = 3;
    pub(crate) const ECB: u32 = 12;
}

/// `IMB_HASH_ALG`.
pub(crate) mod hash {
    pub(crate) const HMAC_SHA1: u32 = 1;
    pub(crate) const HMAC_SHA256: u32 = 3;
    pub(crate) const HMAC_MD5: u32 = 7;
    pub(crate) const NULL: u32 = 8;
    pub(crate) const SHA1: u32 = 13;
    pub(crate) const SHA256: u32 = 15;
}

/// `IMB_CIPHER_DIRECTION`.
pub(crate) mod direction {
    pub(crate) const ENCRYPT: u32 = 1;
    pub(crate) const DECRYPT: u32 = 2;
}

/// `IMB_CHAIN_ORDER`.
pub(crate) mod order {
    pub(crate) const CIPHER_HASH: u32 = 1;
    pub(crate) const HASH_CIPHER: u32 = 2;
}

/// `IMB_STATUS_COMPLETED`: cipher and hash are both done.
pub(crate) const COMPLETED: u32 = 3;

/// `IMB_FEATURE_AESNI`, `_PCLMULQDQ`, `_SSE4_2`: the least that the library's AES needs.
pub(crate) const FEATURES_NEEDED: [(u64, &str); 3] =
    [(1 << 1, "AES-NI"), (1 << 2, "PCLMULQDQ"), (1 << 4, "SSE4.2")];

/// `IMB_FEATURE_VAES`: AES on whole vectors.
pub(crate) const FEATURE_VAES: u64 = 1 << 12;

/// The start of `IMB_JOB`, up to what is used. What follows differs between releases and stays zero.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct ImbJob {
    pub(crate) enc_keys: *const c_void,
    pub(crate) dec_keys: *const c_void,
    pub(crate) key_bytes: u64,
    pub(crate) src: *const u8,
    pub(crate) dst: *mut u8,
    pub(crate) cipher_offset: u64,
    pub(crate) cipher_bytes: u64,
    pub(crate) hash_offset: u64,
    pub(crate) hash_bytes: u64,
    pub(crate) iv: *const u8,
    pub(crate) iv_bytes: u64,
    pub(crate) tag: *mut u8,
    pub(crate) tag_bytes: u64,
    /// First two words of the union `u`: states of the inner and outer hash (HMAC).
    pub(crate) inner: *const c_void,
    pub(crate) outer: *const c_void,
    pub(crate) union_rest: u64,
    pub(crate) status: u32,
    pub(crate) cipher_mode: u32,
    pub(crate) cipher_direction: u32,
    pub(crate) hash_algorithm: u32,
    pub(crate) chain_order: u32,
}

impl ImbJob {
    /// All zero.
    pub(crate) const EMPTY: Self = Self {
        enc_keys: ptr::null(),
        dec_keys: ptr::null(),
        key_bytes: 0,
        src: ptr::null(),
        dst: ptr::null_mut(),
        cipher_offset: 0,
        cipher_bytes: 0,
        hash_offset: 0,
        hash_bytes: 0,
        iv: ptr::null(),
        iv_bytes: 0,
        tag: ptr::null_mut(),
        tag_bytes: 0,
        inner: ptr::null(),
        outer: ptr::null(),
        union_rest: 0,
        status: 0,
        cipher_mode: 0,
        cipher_direction: 0,
        hash_algorithm: 0,
        chain_order: 0,
    };
}

pub(crate) type KeyExpansion = unsafe extern "C" fn(*const c_void, *mut c_void, *mut c_void);
pub(crate) type OneBlock = unsafe extern "C" fn(*const c_void, *mut c_void);
pub(crate) type GcmPrepare = unsafe extern "C" fn(*const c_void, *mut c_void);
/// Key, state, output, input, its length, IV, associated data, its length, tag, its length.
pub(crate) type GcmRun = unsafe extern "C" fn(
    *const c_void,
    *mut c_void,
    *mut u8,
    *const u8,
    u64,
    *const u8,
    *const u8,
    u64,
    *mut u8,
    u64,
);
/// Key, state, IV, associated data, its length.
pub(crate) type ChachaStart =
    unsafe extern "C" fn(*const c_void, *mut c_void, *const c_void, *const c_void, u64);
/// Key, state, output, input, its length.
pub(crate) type ChachaUpdate =
    unsafe extern "C" fn(*const c_void, *mut c_void, *mut c_void, *const c_void, u64);
/// State, tag, its length.
pub(crate) type ChachaEnd = unsafe extern "C" fn(*mut c_void, *mut c_void, u64);
pub(crate) type NextJob = unsafe extern "C" fn(*mut ImbManager) -> *mut ImbJob;
/// Manager, jobs, their count, cipher, direction, key length; returns how many were completed.
pub(crate) type CipherBurst = unsafe extern "C" fn(*mut ImbManager, *mut ImbJob, u32, u32, u32, u32) -> u32;
/// Manager, jobs, their count, hash; returns how many were completed.
pub(crate) type HashBurst = unsafe extern "C" fn(*mut ImbManager, *mut ImbJob, u32, u32) -> u32;

/// The start of `IMB_MGR`: a table of functions for this processor. Jobs and lanes follow, and are not ours.
/// Fields without use here have some function type: they hold space only.
#[repr(C)]
pub(crate) struct ImbManager {
    pub(crate) flags: u64,
    pub(crate) features: u64,
    reserved: [u64; 5],
    pub(crate) used_set: u32,
    pub(crate) errno: c_int,
    pub(crate) next_job: Option<NextJob>,
    pub(crate) submit_job: Option<NextJob>,
    submit_job_unchecked: Option<NextJob>,
    completed_job: Option<NextJob>,
    pub(crate) flush_job: Option<NextJob>,
    queue_size: Option<NextJob>,
    /// For keys of 128, 192 and 256 bits.
    pub(crate) expand_key: [Option<KeyExpansion>; 3],
    cmac_and_des: [Option<OneBlock>; 3],
    pub(crate) sha1_one_block: Option<OneBlock>,
    sha224_one_block: Option<OneBlock>,
    pub(crate) sha256_one_block: Option<OneBlock>,
    sha384_and_sha512_one_block: [Option<OneBlock>; 2],
    pub(crate) md5_one_block: Option<OneBlock>,
    whole_hashes_and_cfb: [Option<OneBlock>; 6],
    pub(crate) gcm_encrypt: [Option<GcmRun>; 3],
    pub(crate) gcm_decrypt: [Option<GcmRun>; 3],
    gcm_in_steps: [Option<GcmRun>; 18],
    pub(crate) gcm_prepare: [Option<GcmPrepare>; 3],
    zuc_to_crc: [Option<OneBlock>; 56],
    pub(crate) chacha_start: Option<ChachaStart>,
    pub(crate) chacha_encrypt: Option<ChachaUpdate>,
    pub(crate) chacha_decrypt: Option<ChachaUpdate>,
    pub(crate) chacha_end: Option<ChachaEnd>,
    asynchronous_bursts: [Option<OneBlock>; 4],
    pub(crate) cipher_burst: Option<CipherBurst>,
    cipher_burst_unchecked: Option<CipherBurst>,
    pub(crate) hash_burst: Option<HashBurst>,
}

/// Functions of the library that are found by name.
#[derive(Clone, Copy)]
pub(crate) struct Symbols {
    pub(crate) version: unsafe extern "C" fn() -> c_uint,
    pub(crate) version_text: unsafe extern "C" fn() -> *const c_char,
    pub(crate) feature_flags: unsafe extern "C" fn() -> u64,
    pub(crate) manager_bytes: unsafe extern "C" fn() -> usize,
    pub(crate) place_manager: unsafe extern "C" fn(*mut c_void, u64, c_uint) -> *mut ImbManager,
    pub(crate) init_auto: unsafe extern "C" fn(*mut ImbManager, *mut c_uint),
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::mem::offset_of;
    use std::path::Path;
    use std::process::Command;

    use super::*;

    /// Every offset that is relied on, under the header's names.
    const OFFSETS: &[(&str, usize)] = &[
        ("IMB_JOB, enc_keys", offset_of!(ImbJob, enc_keys)),
        ("IMB_JOB, dec_keys", offset_of!(ImbJob, dec_keys)),
        ("IMB_JOB, key_len_in_bytes", offset_of!(ImbJob, key_bytes)),
        ("IMB_JOB, src", offset_of!(ImbJob, src)),
        ("IMB_JOB, dst", offset_of!(ImbJob, dst)),
        ("IMB_JOB, cipher_start_src_offset_in_bytes", offset_of!(ImbJob, cipher_offset)),
        ("IMB_JOB, msg_len_to_cipher_in_bytes", offset_of!(ImbJob, cipher_bytes)),
        ("IMB_JOB, hash_start_src_offset_in_bytes", offset_of!(ImbJob, hash_offset)),
        ("IMB_JOB, msg_len_to_hash_in_bytes", offset_of!(ImbJob, hash_bytes)),
        ("IMB_JOB, iv", offset_of!(ImbJob, iv)),
        ("IMB_JOB, iv_len_in_bytes", offset_of!(ImbJob, iv_bytes)),
        ("IMB_JOB, auth_tag_output", offset_of!(ImbJob, tag)),
        ("IMB_JOB, auth_tag_output_len_in_bytes", offset_of!(ImbJob, tag_bytes)),
        ("IMB_JOB, u.HMAC._hashed_auth_key_xor_ipad", offset_of!(ImbJob, inner)),
        ("IMB_JOB, u.HMAC._hashed_auth_key_xor_opad", offset_of!(ImbJob, outer)),
        ("IMB_JOB, status", offset_of!(ImbJob, status)),
        ("IMB_JOB, cipher_mode", offset_of!(ImbJob, cipher_mode)),
        ("IMB_JOB, cipher_direction", offset_of!(ImbJob, cipher_direction)),
        ("IMB_JOB, hash_alg", offset_of!(ImbJob, hash_algorithm)),
        ("IMB_JOB, chain_order", offset_of!(ImbJob, chain_order)),
        ("IMB_MGR, features", offset_of!(ImbManager, features)),
        ("IMB_MGR, used_arch", offset_of!(ImbManager, used_set)),
        ("IMB_MGR, imb_errno", offset_of!(ImbManager, errno)),
        ("IMB_MGR, get_next_job", offset_of!(ImbManager, next_job)),
        ("IMB_MGR, submit_job", offset_of!(ImbManager, submit_job)),
        ("IMB_MGR, flush_job", offset_of!(ImbManager, flush_job)),
        ("IMB_MGR, keyexp_128", offset_of!(ImbManager, expand_key)),
        ("IMB_MGR, keyexp_192", offset_of!(ImbManager, expand_key) + 8),
        ("IMB_MGR, keyexp_256", offset_of!(ImbManager, expand_key) + 16),
        ("IMB_MGR, sha1_one_block", offset_of!(ImbManager, sha1_one_block)),
        ("IMB_MGR, sha256_one_block", offset_of!(ImbManager, sha256_one_block)),
        ("IMB_MGR, md5_one_block", offset_of!(ImbManager, md5_one_block)),
        ("IMB_MGR, gcm128_enc", offset_of!(ImbManager, gcm_encrypt)),
        ("IMB_MGR, gcm256_enc", offset_of!(ImbManager, gcm_encrypt) + 16),
        ("IMB_MGR, gcm128_dec", offset_of!(ImbManager, gcm_decrypt)),
        ("IMB_MGR, gcm256_dec", offset_of!(ImbManager, gcm_decrypt) + 16),
        ("IMB_MGR, gcm128_pre", offset_of!(ImbManager, gcm_prepare)),
        ("IMB_MGR, gcm256_pre", offset_of!(ImbManager, gcm_prepare) + 16),
        ("IMB_MGR, chacha20_poly1305_init", offset_of!(ImbManager, chacha_start)),
        ("IMB_MGR, chacha20_poly1305_enc_update", offset_of!(ImbManager, chacha_encrypt)),
        ("IMB_MGR, chacha20_poly1305_dec_update", offset_of!(ImbManager, chacha_decrypt)),
        ("IMB_MGR, chacha20_poly1305_finalize", offset_of!(ImbManager, chacha_end)),
        ("IMB_MGR, submit_cipher_burst", offset_of!(ImbManager, cipher_burst)),
        ("IMB_MGR, submit_hash_burst", offset_of!(ImbManager, hash_burst)),
    ];

    /// Lengths that are relied on.
    const LENGTHS: &[(&str, usize)] = &[
        ("IMB_MAX_BURST_SIZE", BURST_JOBS_MAX),
        ("sizeof(struct gcm_context_data)", GCM_STATE_BYTES),
        ("sizeof(struct chacha20_poly1305_context_data)", CHACHA_STATE_BYTES),
    ];

    /// Numbers that are relied on.
    const NUMBERS: &[(&str, u32)] = &[
        ("IMB_CIPHER_CBC", cipher::CBC),
        ("IMB_CIPHER_CNTR", cipher::CTR),
        ("IMB_CIPHER_NULL", cipher::NULL),
        ("IMB_CIPHER_ECB", cipher::ECB),
        ("IMB_AUTH_HMAC_SHA_1", hash::HMAC_SHA1),
        ("IMB_AUTH_HMAC_SHA_256", hash::HMAC_SHA256),
        ("IMB_AUTH_MD5", hash::HMAC_MD5),
        ("IMB_AUTH_NULL", hash::NULL),
        ("IMB_AUTH_SHA_1", hash::SHA1),
        ("IMB_AUTH_SHA_256", hash::SHA256),
        ("IMB_DIR_ENCRYPT", direction::ENCRYPT),
        ("IMB_DIR_DECRYPT", direction::DECRYPT),
        ("IMB_ORDER_CIPHER_HASH", order::CIPHER_HASH),
        ("IMB_ORDER_HASH_CIPHER", order::HASH_CIPHER),
        ("IMB_STATUS_COMPLETED", COMPLETED),
    ];

    /// Bits that are relied on.
    const BITS: &[(&str, u64)] = &[
        ("IMB_FEATURE_AESNI", FEATURES_NEEDED[0].0),
        ("IMB_FEATURE_PCLMULQDQ", FEATURES_NEEDED[1].0),
        ("IMB_FEATURE_SSE4_2", FEATURES_NEEDED[2].0),
        ("IMB_FEATURE_VAES", FEATURE_VAES),
    ];

    /// What differs between releases.
    const OF_RELEASE: [&str; 4] =
        ["IMB_VERSION_NUM", "sizeof(IMB_JOB)", "IMB_ARCH_AVX512", "sizeof(struct gcm_key_data)"];

    /// Everything that is relied on in all releases, as C expressions with their values here.
    fn facts() -> Vec<(String, u64)> {
        let offsets = OFFSETS.iter().map(|&(field, bytes)| (format!("offsetof({field})"), bytes as u64));
        let lengths = LENGTHS.iter().map(|&(name, bytes)| (name.to_owned(), bytes as u64));
        let numbers = NUMBERS.iter().map(|&(name, number)| (name.to_owned(), u64::from(number)));
        let bits = BITS.iter().map(|&(name, bits)| (name.to_owned(), bits));
        offsets.chain(lengths).chain(numbers).chain(bits).collect()
    }

    /// What a C program prints for these expressions.
    fn values_in_c(expressions: &[&str]) -> Vec<u64> {
        let print = |what: &&str| format!("printf(\"%llu\\n\", (unsigned long long)({what}));\n");
        let body: String = expressions.iter().map(print).collect();
        let includes = "#include <stddef.h>\n#include <stdio.h>\n#include <intel-ipsec-mb.h>\n";
        let place = std::env::temp_dir().join(format!("evener-multibuffer-probe-{}", std::process::id()));
        fs::create_dir_all(&place).unwrap();
        let (source, program) = (place.join("probe.c"), place.join("probe"));
        fs::write(&source, format!("{includes}int main(void) {{\n{body}}}\n")).unwrap();
        let compiler =
            Command::new("cc").arg("-DLINUX").arg(&source).arg("-o").arg(&program).output().unwrap();
        assert!(compiler.status.success(), "{}", String::from_utf8_lossy(&compiler.stderr));
        let printed = Command::new(&program).output().unwrap().stdout;
        fs::remove_dir_all(&place).unwrap();
        String::from_utf8(printed).unwrap().lines().map(|line| line.parse().unwrap()).collect()
    }

    #[test]
    fn every_offset_is_that_of_the_installed_header() {
        if !Path::new("/usr/include/intel-ipsec-mb.h").exists() {
            println!("skipped: no intel-ipsec-mb.h (package libipsec-mb-dev)");
            return;
        }
        let facts = facts();
        let expressions = facts.iter().map(|(expression, _)| expression.as_str());
        let values = values_in_c(&expressions.chain(OF_RELEASE).collect::<Vec<_>>());
        for ((expression, ours), theirs) in facts.iter().zip(&values) {
            assert_eq!(ours, theirs, "{expression}");
        }
        let [number, job_bytes, avx512, gcm_key] = values[facts.len()..] else { panic!("{values:?}") };
        let Some(release) = RELEASES.iter().find(|release| u64::from(release.number) == number) else {
            println!("skipped: the header is of release {number:x}, which is not known");
            return;
        };
        assert_eq!(release.job_bytes as u64, job_bytes);
        assert_eq!(release.sets.last().map(|set| u64::from(set.0)), Some(avx512));
        assert!(gcm_key <= GCM_KEY_BYTES as u64, "{gcm_key}");
    }
}
