//! Known answers, which a driver's library or module is asked before it is used.
//!
//! Sources: SP 800-38A, appendix F (ECB, CBC, CTR); the GCM specification of McGrew and Viega, cases 4, 10 and
//! 16; NIST CAVP, XTSGenAES128 and XTSGenAES256, first cases; RFC 8439, 2.8.2 (ChaCha20-Poly1305); FIPS 180-4 (SHA of
//! "abc"); RFC 1321 (MD5 of "abc"); RFC 2202 and RFC 4231, case 2 (HMAC).

use std::fmt::{self, Write as _};

use crate::driver::QueuedDriver;
use crate::job::algorithm::{Algorithm, Direction, Family, Hash};
use crate::job::session::{Padding, Session};
use crate::job::{Job, Outcome};
use crate::units::Nanos;

/// A known answer, in hexadecimal digits.
#[derive(Clone, Copy, Debug)]
pub struct Known {
    /// Whose answer.
    pub algorithm: Algorithm,
    /// Key; empty for hashes.
    pub key: &'static str,
    /// IV, nonce, counter or tweak.
    pub iv: &'static str,
    /// Associated data.
    pub aad: &'static str,
    /// The text in clear, or the message.
    pub text: &'static str,
    /// The text encrypted, without the tag.
    pub sealed: &'static str,
    /// Tag or digest.
    pub tag: &'static str,
}

/// A known answer that did not come: which, and the first bytes of what did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wrong {
    /// The example's algorithm.
    pub algorithm: Algorithm,
    /// Encryption or decryption.
    pub direction: Direction,
    /// Where the example was published.
    pub source: &'static str,
    /// Length of its key.
    pub key_bytes: usize,
    /// Bytes before the first wrong one, of the text, or of tag or digest where the text is right.
    pub right_bytes: usize,
    /// Bytes from there on as published, in hexadecimal digits.
    pub expected: String,
    /// As they came; or why none did.
    pub got: String,
}

/// Bytes of a wrong answer that are shown.
const SHOWN_BYTES: usize = 8;

impl Wrong {
    fn at(
        known: &Known,
        direction: Direction,
        expected: &[u8],
        got: Result<&[u8], &dyn fmt::Display>,
    ) -> Self {
        let bytes = got.unwrap_or_default();
        let right_bytes = expected.iter().zip(bytes).take_while(|(one, other)| one == other).count();
        let digits = |bytes: &[u8]| {
            let shown = bytes[right_bytes..].iter().take(SHOWN_BYTES);
            shown.fold(String::new(), |mut digits, byte| {
                write!(digits, "{byte:02x}").expect("a String takes everything");
                digits
            })
        };
        let got = got.map_or_else(
            |reason| format!("nothing ({reason})"),
            |got| if got.len() > right_bytes { digits(got) } else { "nothing".to_owned() },
        );
        Self {
            algorithm: known.algorithm,
            direction,
            source: known.source(),
            key_bytes: known.key.len() / 2,
            right_bytes,
            expected: digits(expected),
            got,
        }
    }
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { algorithm, direction, source, key_bytes, right_bytes, expected, got } = self;
        write!(f, "{algorithm} {direction} of the example in {source}")?;
        if *key_bytes > 0 {
            write!(f, " with a key of {key_bytes} bytes")?;
        }
        write!(f, " came out wrong: expected {expected} at byte {right_bytes}, got {got}")
    }
}

impl Known {
    /// Whether `run`, which may bring them back in any order, gives the answer to all of `count` jobs that ask alike.
    pub fn is_right(
        &self,
        direction: Direction,
        count: usize,
        run: impl for<'m> FnOnce(&mut Vec<Box<Job<'m>>>),
    ) -> bool {
        self.check(direction, count, run).is_ok()
    }

    /// As [`Known::is_right`], and says what came instead.
    ///
    /// # Errors
    ///
    /// The first wrong answer.
    pub fn check(
        &self,
        direction: Direction,
        count: usize,
        run: impl for<'m> FnOnce(&mut Vec<Box<Job<'m>>>),
    ) -> Result<(), Wrong> {
        let Ok(session) = Session::new(self.algorithm, direction, Padding::None, &bytes(self.key)) else {
            return Err(Wrong::at(self, direction, &[], Err(&"no such session")));
        };
        let (iv, aad, tag) = (bytes(self.iv), bytes(self.aad), bytes(self.tag));
        let (input, output) = match direction {
            Direction::Encrypt => (bytes(self.text), bytes(self.sealed)),
            Direction::Decrypt => (bytes(self.sealed), bytes(self.text)),
        };
        let mut rooms = vec![input.clone(); count];
        let mut burst: Vec<Box<Job<'_>>> = rooms.iter_mut().map(|room| Job::in_place(room)).collect();
        for job in &mut burst {
            job.arm(&session, &iv, input.len());
            job.set_aad(&aad);
            if direction == Direction::Decrypt {
                job.set_tag(&tag);
            }
        }
        run(&mut burst);
        if burst.len() != count {
            return Err(Wrong::at(self, direction, &output, Err(&"jobs are missing")));
        }
        burst.iter().try_for_each(|job| {
            let wrong = |expected, got| Err(Wrong::at(self, direction, expected, got));
            match job.outcome() {
                Outcome::Failed(error) => wrong(&output, Err(&error)),
                Outcome::Pending => wrong(&output, Err(&"not worked on")),
                Outcome::Done { .. } if job.output() != output => wrong(&output, Ok(job.output())),
                Outcome::Done { .. } if job.tag() != tag => wrong(&tag, Ok(job.tag())),
                Outcome::Done { .. } => Ok(()),
            }
        })
    }

    /// Where it was published.
    #[must_use]
    pub const fn source(&self) -> &'static str {
        match self.algorithm.family() {
            Family::Ecb | Family::Cbc | Family::Ctr => "SP 800-38A, appendix F",
            Family::Gcm => "the GCM specification of McGrew and Viega",
            Family::Xts => "NIST CAVP, XTSGenAES",
            Family::ChaCha20Poly1305 => "RFC 8439, 2.8.2",
            Family::Digest(Hash::Md5) => "RFC 1321",
            Family::Digest(_) => "FIPS 180-4",
            Family::Hmac(Hash::Sha256) => "RFC 4231, case 2",
            Family::Hmac(_) => "RFC 2202, case 2",
        }
    }

    /// The directions that the algorithm has.
    pub fn directions(&self) -> impl Iterator<Item = Direction> + use<> {
        let is_cipher = self.algorithm.is_cipher();
        let both = [Direction::Encrypt, Direction::Decrypt].into_iter();
        both.filter(move |&direction| is_cipher || direction == Direction::Encrypt)
    }
}

/// Runs `jobs` on a module until all are back or it `is_late`; whether all came. Those that did not come back as lost, or as
/// they were where the module takes none.
pub fn ask<'m>(
    driver: &mut (impl QueuedDriver<'m> + ?Sized),
    jobs: &mut Vec<Box<Job<'m>>>,
    is_late: impl Fn() -> bool,
) -> bool {
    let mut waiting = std::mem::take(jobs);
    let count = waiting.len();
    while jobs.len() < count && !is_late() {
        while let Some(job) = waiting.pop() {
            if let Err((job, _)) = driver.submit(job) {
                waiting.push(job);
                break;
            }
        }
        if driver.in_flight() == 0 {
            break;
        }
        driver.poll(jobs, Nanos::from_millis(10));
    }
    let all_came = jobs.len() == count;
    if driver.in_flight() > 0 {
        driver.abandon(jobs);
    }
    jobs.append(&mut waiting);
    all_came
}

/// The bytes that the digits stand for.
fn bytes(digits: &str) -> Vec<u8> {
    let digit = |digit: u8| char::from(digit).to_digit(16).and_then(|value| u8::try_from(value).ok());
    let pair = |pair: &[u8]| Some(digit(pair[0])? << 4 | digit(pair[1])?);
    digits
        .as_bytes()
        .chunks_exact(2)
        .map(|two| pair(two).expect("the table has hexadecimal digits"))
        .collect()
}

const KEY_128: &str = "2b7e151628aed2a6abf7158809cf4f3c";
const KEY_192: &str = "8e73b0f7da0e6452c810f32b809079e562f8ead2522c6b7b";
const KEY_256: &str = "603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4";
const IV: &str = "000102030405060708090a0b0c0d0e0f";
const COUNTER: &str = "f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff";
const BLOCKS: &str = "6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e5130c81c46a35ce411e5fbc119\
                      1a0a52eff69f2445df4f9b17ad2b417be66c3710";
const GCM_NONCE: &str = "cafebabefacedbaddecaf888";
const GCM_AAD: &str = "feedfacedeadbeeffeedfacedeadbeefabaddad2";
const GCM_TEXT: &str = "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a721c3c0c95956809532fcf0e24\
                        49a6b525b16aedf5aa0de657ba637b39";
const ABC: &str = "616263";
const JEFE: &str = "4a656665";
/// "what do ya want for nothing?"
const QUESTION: &str = "7768617420646f2079612077616e7420666f72206e6f7468696e673f";

/// One per algorithm.
pub const KNOWN: &[Known] = &[
    Known {
        algorithm: Algorithm::Aes128Ecb,
        key: KEY_128,
        iv: "",
        aad: "",
        text: BLOCKS,
        sealed: "3ad77bb40d7a3660a89ecaf32466ef97f5d3d58503b9699de785895a96fdbaaf43b1cd7f598ece23881b00e3\
                  ed0306887b0c785e27e8ad3f8223207104725dd4",
        tag: "",
    },
    Known {
        algorithm: Algorithm::Aes192Ecb,
        key: KEY_192,
        iv: "",
        aad: "",
        text: BLOCKS,
        sealed: "bd334f1d6e45f25ff712a214571fa5cc974104846d0ad3ad7734ecb3ecee4eefef7afd2270e2e60adce0ba2f\
                  ace6444e9a4b41ba738d6c72fb16691603c18e0e",
        tag: "",
    },
    Known {
        algorithm: Algorithm::Aes256Ecb,
        key: KEY_256,
        iv: "",
        aad: "",
        text: BLOCKS,
        sealed: "f3eed1bdb5d2a03c064b5a7e3db181f8591ccb10d410ed26dc5ba74a31362870b6ed21b99ca6f4f9f153e7b1\
                  beafed1d23304b7a39f9f3ff067d8d8f9e24ecc7",
        tag: "",
    },
    Known {
        algorithm: Algorithm::Aes128Cbc,
        key: KEY_128,
        iv: IV,
        aad: "",
        text: BLOCKS,
        sealed: "7649abac8119b246cee98e9b12e9197d5086cb9b507219ee95db113a917678b273bed6b8e3c1743b7116e69e\
                  222295163ff1caa1681fac09120eca307586e1a7",
        tag: "",
    },
    Known {
        algorithm: Algorithm::Aes192Cbc,
        key: KEY_192,
        iv: IV,
        aad: "",
        text: BLOCKS,
        sealed: "4f021db243bc633d7178183a9fa071e8b4d9ada9ad7dedf4e5e738763f69145a571b242012fb7ae07fa9baac\
                  3df102e008b0e27988598881d920a9e64f5615cd",
        tag: "",
    },
    Known {
        algorithm: Algorithm::Aes256Cbc,
        key: KEY_256,
        iv: IV,
        aad: "",
        text: BLOCKS,
        sealed: "f58c4c04d6e5f1ba779eabfb5f7bfbd69cfc4e967edb808d679f777bc6702c7d39f23369a9d9bacfa530e263\
                  04231461b2eb05e2c39be9fcda6c19078c6a9d1b",
        tag: "",
    },
    Known {
        algorithm: Algorithm::Aes128Ctr,
        key: KEY_128,
        iv: COUNTER,
        aad: "",
        text: BLOCKS,
        sealed: "874d6191b620e3261bef6864990db6ce9806f66b7970fdff8617187bb9fffdff5ae4df3edbd5d35e5b4f0902\
                  0db03eab1e031dda2fbe03d1792170a0f3009cee",
        tag: "",
    },
    Known {
        algorithm: Algorithm::Aes192Ctr,
        key: KEY_192,
        iv: COUNTER,
        aad: "",
        text: BLOCKS,
        sealed: "1abc932417521ca24f2b0459fe7e6e0b090339ec0aa6faefd5ccc2c6f4ce8e941e36b26bd1ebc670d1bd1d66\
                  5620abf74f78a7f6d29809585a97daec58c6b050",
        tag: "",
    },
    Known {
        algorithm: Algorithm::Aes256Ctr,
        key: KEY_256,
        iv: COUNTER,
        aad: "",
        text: BLOCKS,
        sealed: "601ec313775789a5b7a7f504bbf3d228f443e3ca4d62b59aca84e990cacaf5c52b0930daa23de94ce87017ba\
                  2d84988ddfc9c58db67aada613c2dd08457941a6",
        tag: "",
    },
    Known {
        algorithm: Algorithm::Aes128Gcm,
        key: "feffe9928665731c6d6a8f9467308308",
        iv: GCM_NONCE,
        aad: GCM_AAD,
        text: GCM_TEXT,
        sealed: "42831ec2217774244b7221b784d0d49ce3aa212f2c02a4e035c17e2329aca12e21d514b25466931c7d8f6a5a\
                  ac84aa051ba30b396a0aac973d58e091",
        tag: "5bc94fbc3221a5db94fae95ae7121a47",
    },
    Known {
        algorithm: Algorithm::Aes192Gcm,
        key: "feffe9928665731c6d6a8f9467308308feffe9928665731c",
        iv: GCM_NONCE,
        aad: GCM_AAD,
        text: GCM_TEXT,
        sealed: "3980ca0b3c00e841eb06fac4872a2757859e1ceaa6efd984628593b40ca1e19c7d773d00c144c525ac619d18\
                  c84a3f4718e2448b2fe324d9ccda2710",
        tag: "2519498e80f1478f37ba55bd6d27618c",
    },
    Known {
        algorithm: Algorithm::Aes256Gcm,
        key: "feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308",
        iv: GCM_NONCE,
        aad: GCM_AAD,
        text: GCM_TEXT,
        sealed: "522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa8cb08e48590dbb3da7b08b10\
                  56828838c5f61e6393ba7a0abcc9f662",
        tag: "76fc6ece0f4e1768cddf8853bb2d551b",
    },
    Known {
        algorithm: Algorithm::Aes128Xts,
        key: "a1b90cba3f06ac353b2c343876081762090923026e91771815f29dab01932f2f",
        iv: "4faef7117cda59c66e4b92013e768ad5",
        aad: "",
        text: "ebabce95b14d3c8d6fb350390790311c",
        sealed: "778ae8b43cb98d5a825081d5be471c63",
        tag: "",
    },
    Known {
        algorithm: Algorithm::Aes256Xts,
        key: "1ea661c58d943a0e4801e42f4b0947149e7f9f8e3e68d0c7505210bd311a0e7cd6e13ffdf2418d8d1911c004\
              cda58da3d619b7e2b9141e58318eea392cf41b08",
        iv: "adf8d92627464ad2f0428e84a9f87564",
        aad: "",
        text: "2eedea52cd8215e1acc647e810bbc3642e87287f8d2e57e36c0a24fbc12a202e",
        sealed: "cbaad0e2f6cea3f50b37f934d46a9b130b9d54f07e34f36af793e86f73c6d7db",
        tag: "",
    },
    Known {
        algorithm: Algorithm::ChaCha20Poly1305,
        key: "808182838485868788898a8b8c8d8e8f909192939495969798999a9b9c9d9e9f",
        iv: "070000004041424344454647",
        aad: "50515253c0c1c2c3c4c5c6c7",
        text: "4c616469657320616e642047656e746c656d656e206f662074686520636c617373206f66202739393a204966\
                204920636f756c64206f6666657220796f75206f6e6c79206f6e652074697020666f72207468652066757475\
                72652c2073756e73637265656e20776f756c642062652069742e",
        sealed: "d31a8d34648e60db7b86afbc53ef7ec2a4aded51296e08fea9e2b5a736ee62d63dbea45e8ca9671282fafb69\
                  da92728b1a71de0a9e060b2905d6a5b67ecd3b3692ddbd7f2d778b8c9803aee328091b58fab324e4fad67594\
                  5585808b4831d7bc3ff4def08e4b7a9de576d26586cec64b6116",
        tag: "1ae10b594f09e26a7e902ecbd0600691",
    },
    Known {
        algorithm: Algorithm::Sha1,
        key: "",
        iv: "",
        aad: "",
        text: ABC,
        sealed: "",
        tag: "a9993e364706816aba3e25717850c26c9cd0d89d",
    },
    Known {
        algorithm: Algorithm::Sha256,
        key: "",
        iv: "",
        aad: "",
        text: ABC,
        sealed: "",
        tag: "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
    },
    Known {
        algorithm: Algorithm::Md5,
        key: "",
        iv: "",
        aad: "",
        text: ABC,
        sealed: "",
        tag: "900150983cd24fb0d6963f7d28e17f72",
    },
    Known {
        algorithm: Algorithm::HmacSha1,
        key: JEFE,
        iv: "",
        aad: "",
        text: QUESTION,
        sealed: "",
        tag: "effcdf6ae5eb2fa2d27416d5f184df9c259a7c79",
    },
    Known {
        algorithm: Algorithm::HmacSha256,
        key: JEFE,
        iv: "",
        aad: "",
        text: QUESTION,
        sealed: "",
        tag: "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
    },
    Known {
        algorithm: Algorithm::HmacMd5,
        key: JEFE,
        iv: "",
        aad: "",
        text: QUESTION,
        sealed: "",
        tag: "750c783e6ab0b503eaa86e310a5db738",
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    /// The vectors' crate has the same examples from the published files.
    #[test]
    fn every_algorithm_has_one_example_and_it_is_a_published_one_where_those_are_kept() {
        for &algorithm in Algorithm::ALL {
            let mut known = KNOWN.iter().filter(|known| known.algorithm == algorithm);
            let one = known.next().unwrap_or_else(|| panic!("{algorithm}"));
            assert!(known.next().is_none(), "{algorithm}");
            let same =
                |case: &evener_vectors::Case| case.key == bytes(one.key) && case.plaintext == bytes(one.text);
            if let Some(case) = evener_vectors::by_algorithm(algorithm.name()).find(same) {
                let ours = (bytes(one.iv), bytes(one.aad), bytes(one.sealed), bytes(one.tag));
                assert_eq!(ours, (case.iv, case.aad, case.ciphertext, case.tag), "{algorithm}");
            }
        }
    }

    #[test]
    fn an_answer_that_is_missing_or_wrong_is_noticed() {
        let known = &KNOWN[0];
        assert!(!known.is_right(Direction::Encrypt, 2, |jobs| jobs.clear()));
        assert!(!known.is_right(Direction::Encrypt, 2, |jobs| jobs.iter_mut().for_each(|job| {
            let written = job.input_bytes();
            job.done(written);
        })));
    }

    /// Does what `wrong` makes of the right answers.
    fn said(known: &Known, direction: Direction, wrong: fn(&mut Job<'_>)) -> String {
        let answer = known.check(direction, 2, |jobs| {
            for job in jobs {
                let done = bytes(if direction == Direction::Encrypt { known.sealed } else { known.text });
                job.publish(&done, &bytes(known.tag));
                wrong(job);
            }
        });
        answer.map_or_else(|wrong| wrong.to_string(), |()| "right".to_owned())
    }

    #[test]
    fn a_wrong_answer_is_told_with_its_example_and_the_first_bytes() {
        let of = |algorithm| KNOWN.iter().find(|known| known.algorithm == algorithm).unwrap();
        let (cbc, md5) = (of(Algorithm::Aes128Cbc), of(Algorithm::Md5));
        assert_eq!(said(cbc, Direction::Decrypt, |_| ()), "right");
        let flipped: fn(&mut Job<'_>) = |job| {
            job.room_mut()[17] ^= 1;
            job.done(64);
        };
        assert_eq!(
            said(cbc, Direction::Encrypt, flipped),
            "AES-128-CBC encrypt of the example in SP 800-38A, appendix F with a key of 16 bytes came out wrong: \
             expected 86cb9b507219ee95 at byte 17, got 87cb9b507219ee95"
        );
        assert_eq!(
            said(md5, Direction::Encrypt, |job| job.publish(&[], &[0; 16])),
            "MD5 encrypt of the example in RFC 1321 came out wrong: expected 900150983cd24fb0 at byte 0, got \
             0000000000000000"
        );
        let failed = said(cbc, Direction::Encrypt, |job| job.fail(crate::JobError::ModuleFull));
        assert!(failed.ends_with(&format!("got nothing ({})", crate::JobError::ModuleFull)), "{failed}");
    }
}
