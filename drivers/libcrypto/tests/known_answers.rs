//! One published answer per algorithm, in place and apart, in both directions.
#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests, where both mean a failed test")]

use evener_core::{Algorithm, Direction, InlineDriver as _, Job, Outcome, Padding, Session};
use evener_driver_libcrypto::Libcrypto;

struct KnownAnswer {
    algorithm: Algorithm,
    key: &'static str,
    iv: &'static str,
    aad: &'static str,
    plain: &'static str,
    cipher: &'static str,
    tag: &'static str,
}

#[test]
fn every_algorithm_gives_its_published_answer() {
    let mut driver = Libcrypto::new().unwrap();
    for (answer, &algorithm) in KNOWN_ANSWERS.iter().zip(Algorithm::ALL) {
        assert_eq!(answer.algorithm, algorithm, "one row per algorithm, in the order of the table");
        for direction in [Direction::Encrypt, Direction::Decrypt] {
            if driver.supports(algorithm, direction) {
                check(&mut driver, answer, direction);
            } else {
                assert!(direction == Direction::Decrypt && !algorithm.is_cipher(), "{algorithm} is missing");
            }
        }
    }
}

fn check(driver: &mut Libcrypto, answer: &KnownAnswer, direction: Direction) {
    let [key, iv, aad, plain, cipher, tag] =
        [answer.key, answer.iv, answer.aad, answer.plain, answer.cipher, answer.tag].map(bytes);
    let (src, expected) = match direction {
        Direction::Encrypt => (plain, cipher),
        Direction::Decrypt => (cipher, plain),
    };
    let session = Session::new(answer.algorithm, direction, Padding::None, &key).unwrap();
    let (mut dst, mut space) = (vec![0; expected.len()], src.clone());
    let mut burst = [Job::apart(&src, &mut dst), Job::in_place(&mut space)];
    for job in &mut burst {
        job.arm(&session, &iv, src.len());
        job.set_aad(&aad);
        if direction == Direction::Decrypt {
            job.set_tag(&tag);
        }
    }
    driver.run(&mut burst);
    for job in &burst {
        assert_eq!(job.outcome(), Outcome::Done { written: expected.len() }, "{session:?}");
        assert_eq!(job.output(), expected, "{session:?}");
        assert_eq!(job.tag(), tag, "{session:?}");
    }
}

fn bytes(hex: &str) -> Vec<u8> {
    let digits = |at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
    (0..hex.len()).step_by(2).map(digits).collect()
}

#[rustfmt::skip]
const KNOWN_ANSWERS: &[KnownAnswer] = &[
    // SP 800-38A, F.1
    KnownAnswer { algorithm: Algorithm::Aes128Ecb, key: "2b7e151628aed2a6abf7158809cf4f3c", iv: "", aad: "", plain: "6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e51", cipher: "3ad77bb40d7a3660a89ecaf32466ef97f5d3d58503b9699de785895a96fdbaaf", tag: "" },
    // SP 800-38A, F.1
    KnownAnswer { algorithm: Algorithm::Aes192Ecb, key: "8e73b0f7da0e6452c810f32b809079e562f8ead2522c6b7b", iv: "", aad: "", plain: "6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e51", cipher: "bd334f1d6e45f25ff712a214571fa5cc974104846d0ad3ad7734ecb3ecee4eef", tag: "" },
    // SP 800-38A, F.1
    KnownAnswer { algorithm: Algorithm::Aes256Ecb, key: "603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4", iv: "", aad: "", plain: "6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e51", cipher: "f3eed1bdb5d2a03c064b5a7e3db181f8591ccb10d410ed26dc5ba74a31362870", tag: "" },
    // SP 800-38A, F.2
    KnownAnswer { algorithm: Algorithm::Aes128Cbc, key: "2b7e151628aed2a6abf7158809cf4f3c", iv: "000102030405060708090a0b0c0d0e0f", aad: "", plain: "6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e51", cipher: "7649abac8119b246cee98e9b12e9197d5086cb9b507219ee95db113a917678b2", tag: "" },
    // SP 800-38A, F.2
    KnownAnswer { algorithm: Algorithm::Aes192Cbc, key: "8e73b0f7da0e6452c810f32b809079e562f8ead2522c6b7b", iv: "000102030405060708090a0b0c0d0e0f", aad: "", plain: "6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e51", cipher: "4f021db243bc633d7178183a9fa071e8b4d9ada9ad7dedf4e5e738763f69145a", tag: "" },
    // SP 800-38A, F.2
    KnownAnswer { algorithm: Algorithm::Aes256Cbc, key: "603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4", iv: "000102030405060708090a0b0c0d0e0f", aad: "", plain: "6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e51", cipher: "f58c4c04d6e5f1ba779eabfb5f7bfbd69cfc4e967edb808d679f777bc6702c7d", tag: "" },
    // SP 800-38A, F.5
    KnownAnswer { algorithm: Algorithm::Aes128Ctr, key: "2b7e151628aed2a6abf7158809cf4f3c", iv: "f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff", aad: "", plain: "6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e51", cipher: "874d6191b620e3261bef6864990db6ce9806f66b7970fdff8617187bb9fffdff", tag: "" },
    // SP 800-38A, F.5
    KnownAnswer { algorithm: Algorithm::Aes192Ctr, key: "8e73b0f7da0e6452c810f32b809079e562f8ead2522c6b7b", iv: "f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff", aad: "", plain: "6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e51", cipher: "1abc932417521ca24f2b0459fe7e6e0b090339ec0aa6faefd5ccc2c6f4ce8e94", tag: "" },
    // SP 800-38A, F.5
    KnownAnswer { algorithm: Algorithm::Aes256Ctr, key: "603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4", iv: "f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff", aad: "", plain: "6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e51", cipher: "601ec313775789a5b7a7f504bbf3d228f443e3ca4d62b59aca84e990cacaf5c5", tag: "" },
    // CAVP gcmEncryptExtIV128: 408-bit text, 160-bit AAD, count 0
    KnownAnswer { algorithm: Algorithm::Aes128Gcm, key: "fe47fcce5fc32665d2ae399e4eec72ba", iv: "5adb9609dbaeb58cbd6e7275", aad: "88319d6e1d3ffa5f987199166c8a9b56c2aeba5a", plain: "7c0e88c88899a779228465074797cd4c2e1498d259b54390b85e3eef1c02df60e743f1b840382c4bccaf3bafb4ca8429bea063", cipher: "98f4826f05a265e6dd2be82db241c0fbbbf9ffb1c173aa83964b7cf5393043736365253ddbc5db8778371495da76d269e5db3e", tag: "291ef1982e4defedaa2249f898556b47" },
    // CAVP gcmEncryptExtIV192: 408-bit text, 160-bit AAD, count 0
    KnownAnswer { algorithm: Algorithm::Aes192Gcm, key: "9900227ae0fccbb0d35ecf954629c969f36e539399f32ebe", iv: "1398992bfbd63149c14ba2a2", aad: "788b6885feff23fc27bf9c462877b642ba1aa68d", plain: "9d4227eed28b9738f21541c4755a923a43ba20d6f3d6a6b7e31e56f1502f5e93ed4c00511c6a7daeb0281ab947e91756638154", cipher: "7b6ee7dd98eda9b20edb414711d9710de402b01950a6712e5809f608f7c0aa0fba4098f145fea6886d7baf51fcd182c8febf49", tag: "f22c7c21f5ece2de684821092194f26c" },
    // CAVP gcmEncryptExtIV256: 408-bit text, 160-bit AAD, count 0
    KnownAnswer { algorithm: Algorithm::Aes256Gcm, key: "24501ad384e473963d476edcfe08205237acfd49b5b8f33857f8114e863fec7f", iv: "9ff18563b978ec281b3f2794", aad: "adb5ec720ccf9898500028bf34afccbcaca126ef", plain: "27f348f9cdc0c5bd5e66b1ccb63ad920ff2219d14e8d631b3872265cf117ee86757accb158bd9abb3868fdc0d0b074b5f01b2c", cipher: "eb7cb754c824e8d96f7c6d9b76c7d26fb874ffbf1d65c6f64a698d839b0b06145dae82057ad55994cf59ad7f67c0fa5e85fab8", tag: "bc95c532fecc594c36d1550286a7a3f0" },
    // CAVP XTSGenAES128, count 1
    KnownAnswer { algorithm: Algorithm::Aes128Xts, key: "a1b90cba3f06ac353b2c343876081762090923026e91771815f29dab01932f2f", iv: "4faef7117cda59c66e4b92013e768ad5", aad: "", plain: "ebabce95b14d3c8d6fb350390790311c", cipher: "778ae8b43cb98d5a825081d5be471c63", tag: "" },
    // CAVP XTSGenAES256, count 1
    KnownAnswer { algorithm: Algorithm::Aes256Xts, key: "1ea661c58d943a0e4801e42f4b0947149e7f9f8e3e68d0c7505210bd311a0e7cd6e13ffdf2418d8d1911c004cda58da3d619b7e2b9141e58318eea392cf41b08", iv: "adf8d92627464ad2f0428e84a9f87564", aad: "", plain: "2eedea52cd8215e1acc647e810bbc3642e87287f8d2e57e36c0a24fbc12a202e", cipher: "cbaad0e2f6cea3f50b37f934d46a9b130b9d54f07e34f36af793e86f73c6d7db", tag: "" },
    // RFC 8439, 2.8.2
    KnownAnswer { algorithm: Algorithm::ChaCha20Poly1305, key: "808182838485868788898a8b8c8d8e8f909192939495969798999a9b9c9d9e9f", iv: "070000004041424344454647", aad: "50515253c0c1c2c3c4c5c6c7", plain: "4c616469657320616e642047656e746c656d656e206f662074686520636c617373206f66202739393a204966204920636f756c64206f6666657220796f75206f6e6c79206f6e652074697020666f7220746865206675747572652c2073756e73637265656e20776f756c642062652069742e", cipher: "d31a8d34648e60db7b86afbc53ef7ec2a4aded51296e08fea9e2b5a736ee62d63dbea45e8ca9671282fafb69da92728b1a71de0a9e060b2905d6a5b67ecd3b3692ddbd7f2d778b8c9803aee328091b58fab324e4fad675945585808b4831d7bc3ff4def08e4b7a9de576d26586cec64b6116", tag: "1ae10b594f09e26a7e902ecbd0600691" },
    // FIPS 180-4 examples: abc
    KnownAnswer { algorithm: Algorithm::Sha1, key: "", iv: "", aad: "", plain: "616263", cipher: "", tag: "a9993e364706816aba3e25717850c26c9cd0d89d" },
    // FIPS 180-4 examples: abc
    KnownAnswer { algorithm: Algorithm::Sha256, key: "", iv: "", aad: "", plain: "616263", cipher: "", tag: "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" },
    // RFC 1321, A.5: abc
    KnownAnswer { algorithm: Algorithm::Md5, key: "", iv: "", aad: "", plain: "616263", cipher: "", tag: "900150983cd24fb0d6963f7d28e17f72" },
    // RFC 2202, 3, case 2
    KnownAnswer { algorithm: Algorithm::HmacSha1, key: "4a656665", iv: "", aad: "", plain: "7768617420646f2079612077616e7420666f72206e6f7468696e673f", cipher: "", tag: "effcdf6ae5eb2fa2d27416d5f184df9c259a7c79" },
    // RFC 4231, 4.3
    KnownAnswer { algorithm: Algorithm::HmacSha256, key: "4a656665", iv: "", aad: "", plain: "7768617420646f2079612077616e7420666f72206e6f7468696e673f", cipher: "", tag: "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843" },
    // RFC 2202, 2, case 2
    KnownAnswer { algorithm: Algorithm::HmacMd5, key: "4a656665", iv: "", aad: "", plain: "7768617420646f2079612077616e7420666f72206e6f7468696e673f", cipher: "", tag: "750c783e6ab0b503eaa86e310a5db738" },
];
