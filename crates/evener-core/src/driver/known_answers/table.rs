//! One known answer per algorithm.
//!
//! Sources: SP 800-38A, appendix F (ECB, CBC, CTR); the GCM specification of McGrew and Viega, cases 4, 10 and
//! 16; NIST CAVP, XTSGenAES128 and XTSGenAES256, first cases; RFC 8439, 2.8.2 (ChaCha20-Poly1305); FIPS 180-4 (SHA of
//! "abc"); RFC 1321 (MD5 of "abc"); RFC 2202 and RFC 4231, case 2 (HMAC).

use super::Known;
use crate::job::algorithm::Algorithm;

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
