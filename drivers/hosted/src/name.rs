//! How a user names a host, and what he lets it have.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use evener_core::{Algorithm, Direction, Family};

/// `hosted:PATH` or `hosted:PATH,offer=all` or `hosted:PATH,offer=AES-128-CTR+AES-256-GCM`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModuleName {
    socket: PathBuf,
    offer: Offer,
}

/// What is offered to a host, beyond what it says that it does.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Offer {
    /// What costs a core more than two copies do: CBC encryption, hashes and MACs. Two copies cost 0.2 ns a byte and AES-128-CTR
    /// 0.1 on a processor with AES instructions.
    #[default]
    Dear,
    /// Everything.
    All,
    /// What is dear, and these in both directions.
    AlsoThese(Vec<Algorithm>),
}

impl Offer {
    /// Whether this may go to a host.
    #[must_use]
    pub fn has(&self, algorithm: Algorithm, direction: Direction) -> bool {
        let is_dear = match algorithm.family() {
            Family::Cbc => direction == Direction::Encrypt,
            Family::Digest(_) | Family::Hmac(_) => true,
            Family::Ecb | Family::Ctr | Family::Gcm | Family::Xts | Family::ChaCha20Poly1305 => false,
        };
        match self {
            Self::Dear => is_dear,
            Self::All => true,
            Self::AlsoThese(these) => is_dear || these.contains(&algorithm),
        }
    }
}

/// A name that cannot be one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NameError {
    /// It does not begin as such names do.
    #[error("{0:?} names no host: such names are hosted:SOCKET")]
    NotHosted(String),
    /// Nothing stands behind the colon.
    #[error("{0:?} names no socket: hosted:SOCKET, or hosted:SOCKET,offer=all")]
    NoSocket(String),
    /// What is offered is no list of algorithms.
    #[error("{0:?} is nothing to offer a host: all, or algorithms joined by a plus sign")]
    Offer(String),
}

const KIND: &str = "hosted:";
const OFFER: &str = ",offer=";

impl ModuleName {
    /// The host's socket.
    #[must_use]
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// What it is offered.
    #[must_use]
    pub const fn offer(&self) -> &Offer {
        &self.offer
    }
}

impl FromStr for ModuleName {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        let rest = text.strip_prefix(KIND).ok_or_else(|| NameError::NotHosted(text.to_owned()))?;
        let (socket, offer) =
            rest.rsplit_once(OFFER).map_or((rest, None), |(path, offer)| (path, Some(offer)));
        if socket.is_empty() || socket.contains('\0') {
            return Err(NameError::NoSocket(text.to_owned()));
        }
        Ok(Self { socket: socket.into(), offer: offer.map_or(Ok(Offer::Dear), offer_of)? })
    }
}

fn offer_of(text: &str) -> Result<Offer, NameError> {
    if text == "all" {
        return Ok(Offer::All);
    }
    let these: Result<_, _> = text.split('+').map(Algorithm::from_str).collect();
    these.map(Offer::AlsoThese).map_err(|_| NameError::Offer(text.to_owned()))
}

impl fmt::Display for ModuleName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{KIND}{}", self.socket.display())?;
        match &self.offer {
            Offer::Dear => Ok(()),
            Offer::All => write!(f, "{OFFER}all"),
            Offer::AlsoThese(these) => {
                let names: Vec<&str> = these.iter().map(|algorithm| algorithm.name()).collect();
                write!(f, "{OFFER}{}", names.join("+"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_a_socket_and_what_is_offered_beyond_the_dear() {
        for text in
            ["hosted:/run/evener.sock", "hosted:a,b,offer=all", "hosted:s,offer=AES-128-CTR+AES-256-GCM"]
        {
            let name: ModuleName = text.parse().unwrap();
            assert_eq!(name.to_string(), text);
        }
        let name: ModuleName = "hosted:a,b,offer=aes-128-ctr".parse().unwrap();
        assert_eq!(name.socket(), Path::new("a,b"));
        assert_eq!(name.offer(), &Offer::AlsoThese(vec![Algorithm::Aes128Ctr]));
        assert!(matches!("emulated:x".parse::<ModuleName>(), Err(NameError::NotHosted(_))));
        assert!(matches!("hosted:,offer=all".parse::<ModuleName>(), Err(NameError::NoSocket(_))));
        assert!(matches!("hosted:x,offer=".parse::<ModuleName>(), Err(NameError::Offer(_))));
    }

    #[test]
    fn only_what_is_dear_is_offered_unless_more_is_asked_for() {
        use Direction::{Decrypt, Encrypt};
        let dear = Offer::default();
        assert!(dear.has(Algorithm::Aes256Cbc, Encrypt) && !dear.has(Algorithm::Aes256Cbc, Decrypt));
        assert!(dear.has(Algorithm::Sha256, Encrypt) && dear.has(Algorithm::HmacSha1, Encrypt));
        assert!(!dear.has(Algorithm::Aes128Ctr, Encrypt) && !dear.has(Algorithm::Aes128Gcm, Encrypt));
        let more = Offer::AlsoThese(vec![Algorithm::Aes128Ctr]);
        assert!(more.has(Algorithm::Aes128Ctr, Decrypt) && more.has(Algorithm::Md5, Encrypt));
        assert!(!more.has(Algorithm::Aes256Ctr, Encrypt) && Offer::All.has(Algorithm::Aes256Ctr, Decrypt));
    }
}
