//! How a user names a module behind the kernel.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use crate::ocf;

/// How a user names it: `afalg:virtio_crypto_aes_cbc`, `devcrypto`, `devcrypto:/dev/NAME`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ModuleName {
    /// A driver of the kernel's crypto API.
    Afalg {
        /// As in `/proc/crypto`.
        driver: String,
    },
    /// A node of OCF.
    Devcrypto {
        /// Its path.
        node: PathBuf,
    },
}

const AFALG: &str = "afalg:";
const DEVCRYPTO: &str = "devcrypto";

/// A name that cannot be one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NameError {
    /// It does not begin as such names do.
    #[error("{0:?} is no module behind the kernel: their names begin with {AFALG:?} or {DEVCRYPTO:?}")]
    NotKernel(String),
    /// Nothing stands behind the colon, or what no name of the kernel contains.
    #[error("{0:?} names no driver; /proc/crypto lists them")]
    NoDriver(String),
    /// What stands behind the colon is no absolute path.
    #[error("{0:?} names no node: devcrypto:/dev/NAME")]
    NoNode(String),
}

impl FromStr for ModuleName {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        if let Some(driver) = text.strip_prefix(AFALG) {
            let is_name = !driver.is_empty() && driver.bytes().all(|byte| byte.is_ascii_graphic());
            let named = is_name.then(|| Self::Afalg { driver: driver.to_owned() });
            return named.ok_or_else(|| NameError::NoDriver(text.to_owned()));
        }
        let node = match text.strip_prefix(DEVCRYPTO).ok_or_else(|| NameError::NotKernel(text.to_owned()))? {
            "" => Some(ocf::NODE),
            rest => rest.strip_prefix(':').filter(|node| node.starts_with('/')),
        };
        let named = node.map(|node| Self::Devcrypto { node: node.into() });
        named.ok_or_else(|| NameError::NoNode(text.to_owned()))
    }
}

impl fmt::Display for ModuleName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Afalg { driver } => write!(f, "{AFALG}{driver}"),
            Self::Devcrypto { node } => write!(f, "{DEVCRYPTO}:{}", node.display()),
        }
    }
}
