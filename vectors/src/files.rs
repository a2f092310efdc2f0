//! The files under `data/`, each with its source and the algorithm of its cases.

/// One file of vectors, as text.
pub(crate) struct File {
    pub(crate) source: &'static str,
    pub(crate) name: &'static str,
    pub(crate) algorithm: &'static str,
    pub(crate) text: &'static str,
}

macro_rules! files {
    ($($source:literal $folder:literal { $($algorithm:literal: $($name:literal)*;)* })*) => {
        /// Every file under `data/`.
        pub(crate) const FILES: &[File] = &[$($($(File {
            source: $source,
            name: $name,
            algorithm: $algorithm,
            text: include_str!(concat!("../data/", $folder, "/", $name, ".rsp")),
        }),*),*),*];
    };
}

files! {
    "NIST CAVP" "nist" {
        "AES-128-ECB": "ECBGFSbox128" "ECBKeySbox128" "ECBVarKey128" "ECBVarTxt128" "ECBMMT128";
        "AES-192-ECB": "ECBGFSbox192" "ECBKeySbox192" "ECBVarKey192" "ECBVarTxt192" "ECBMMT192";
        "AES-256-ECB": "ECBGFSbox256" "ECBKeySbox256" "ECBVarKey256" "ECBVarTxt256" "ECBMMT256";
        "AES-128-CBC": "CBCGFSbox128" "CBCKeySbox128" "CBCVarKey128" "CBCVarTxt128" "CBCMMT128";
        "AES-192-CBC": "CBCGFSbox192" "CBCKeySbox192" "CBCVarKey192" "CBCVarTxt192" "CBCMMT192";
        "AES-256-CBC": "CBCGFSbox256" "CBCKeySbox256" "CBCVarKey256" "CBCVarTxt256" "CBCMMT256";
        "AES-128-GCM": "gcmEncryptExtIV128" "gcmDecrypt128";
        "AES-192-GCM": "gcmEncryptExtIV192" "gcmDecrypt192";
        "AES-256-GCM": "gcmEncryptExtIV256" "gcmDecrypt256";
        "AES-128-XTS": "XTSGenAES128";
        "AES-256-XTS": "XTSGenAES256";
        "SHA-1": "SHA1ShortMsg" "SHA1LongMsg";
        "SHA-256": "SHA256ShortMsg" "SHA256LongMsg";
    }
    "NIST SP 800-38A" "nist" {
        "AES-128-CTR": "sp800-38a-aes-128-ctr";
        "AES-192-CTR": "sp800-38a-aes-192-ctr";
        "AES-256-CTR": "sp800-38a-aes-256-ctr";
    }
    "RFC 3686" "rfc" {
        "AES-128-CTR": "rfc3686-aes-128-ctr";
        "AES-192-CTR": "rfc3686-aes-192-ctr";
        "AES-256-CTR": "rfc3686-aes-256-ctr";
    }
    "RFC 8439" "rfc" { "CHACHA20-POLY1305": "rfc8439-chacha20-poly1305"; }
    "OpenSSL" "rfc" { "CHACHA20-POLY1305": "openssl-chacha20-poly1305"; }
    "RFC 1321" "rfc" { "MD5": "rfc1321-md5"; }
    "RFC 2202" "rfc" {
        "HMAC-MD5": "rfc2202-hmac-md5";
        "HMAC-SHA-1": "rfc2202-hmac-sha1";
    }
    "RFC 4231" "rfc" { "HMAC-SHA-256": "rfc4231-hmac-sha256"; }
}
