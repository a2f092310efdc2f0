//! The cipher suites that are offered, each at a port of its own.

use std::str::FromStr;

use openssl::error::ErrorStack;
use openssl::ssl::{SslContextBuilder, SslVersion};
use serde::{Deserialize, Serialize};

/// A version of TLS with a kind of cipher.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Suite {
    /// AES-128-CBC; with Encrypt-then-MAC (RFC 7366) where the client asks for it, as OpenSSL's do.
    #[serde(rename = "tls1.2-cbc")]
    Tls12Cbc,
    /// AES-128-GCM.
    #[serde(rename = "tls1.2-gcm")]
    Tls12Gcm,
    /// AES-128-GCM.
    #[serde(rename = "tls1.3")]
    Tls13,
}

impl Suite {
    /// All, that of paper 003's day first.
    pub const ALL: [Self; 3] = [Self::Tls12Cbc, Self::Tls12Gcm, Self::Tls13];

    /// What reports and options call it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tls12Cbc => "tls1.2-cbc",
            Self::Tls12Gcm => "tls1.2-gcm",
            Self::Tls13 => "tls1.3",
        }
    }

    /// In words.
    #[must_use]
    pub const fn in_words(self) -> &'static str {
        match self {
            Self::Tls12Cbc => "TLS 1.2, AES-128-CBC",
            Self::Tls12Gcm => "TLS 1.2, AES-128-GCM",
            Self::Tls13 => "TLS 1.3, AES-128-GCM",
        }
    }

    /// Its ciphers by OpenSSL's names: those with SHA-1 are for clients that know no others in CBC.
    #[must_use]
    pub const fn ciphers(self) -> &'static str {
        match self {
            Self::Tls12Cbc => {
                "ECDHE-ECDSA-AES128-SHA256:ECDHE-RSA-AES128-SHA256:ECDHE-ECDSA-AES128-SHA:ECDHE-RSA-AES128-SHA"
            }
            Self::Tls12Gcm => "ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256",
            Self::Tls13 => "TLS_AES_128_GCM_SHA256",
        }
    }

    /// Has `context` speak this and nothing else.
    pub(super) fn restrict(self, context: &mut SslContextBuilder) -> Result<(), ErrorStack> {
        let version = if self == Self::Tls13 { SslVersion::TLS1_3 } else { SslVersion::TLS1_2 };
        context.set_min_proto_version(Some(version))?;
        context.set_max_proto_version(Some(version))?;
        if self == Self::Tls13 {
            context.set_ciphersuites(self.ciphers())
        } else {
            context.set_cipher_list(self.ciphers())
        }
    }
}

impl FromStr for Suite {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        let suite = Self::ALL.into_iter().find(|suite| suite.name() == word);
        suite.ok_or_else(|| format!("{word} is none of {}", Self::ALL.map(Self::name).join(", ")))
    }
}
