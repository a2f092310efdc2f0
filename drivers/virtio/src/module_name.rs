//! How a user names a host or a device, and what it may have.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use evener_core::{Algorithm, Direction, Family};
use evener_vfio::{Address, NoAddress};

/// `hosted:PATH`, behind it `,offer=all` or `,offer=AES-128-CTR+AES-256-GCM`, and `,uid=120` or `,uid=120+121`; `virtio:ADDRESS` with an
/// offer behind it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModuleName {
    place: Place,
    offer: Offer,
    trusted: Trusted,
}

/// Whose hosts get keys besides those of root and of the user as whom this program runs: users by their numbers. Names are not taken, for
/// the system's data base of users loads libraries into the program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trusted(Vec<u32>);

impl Trusted {
    /// Whether a host of user `uid` may have keys of user `own`.
    #[must_use]
    pub fn has(&self, uid: u32, own: u32) -> bool {
        uid == own || uid == 0 || self.0.contains(&uid)
    }
}

/// Where a module is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// Behind a host's socket.
    Socket(PathBuf),
    /// On the PCI bus, driven by this process.
    Function(Address),
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
    #[error("{0:?} names no host and no device: such names are hosted:SOCKET and virtio:ADDRESS")]
    NotHosted(String),
    /// Behind the colon stands no place on the PCI bus.
    #[error("{0:?}: {1}")]
    NoFunction(String, NoAddress),
    /// Nothing stands behind the colon.
    #[error("{0:?} names no socket: hosted:SOCKET, or hosted:SOCKET,offer=all")]
    NoSocket(String),
    /// What is offered is no list of algorithms.
    #[error("{0:?} is nothing to offer: all, or algorithms joined by a plus sign")]
    Offer(String),
    /// Who is trusted is no list of users, or is asked of a device.
    #[error("{0:?} names no users: numbers joined by a plus sign, behind hosted:SOCKET")]
    Trusted(String),
}

const HOSTED: &str = "hosted:";
const VIRTIO: &str = "virtio:";
const OFFER: &str = ",offer=";
const TRUSTED: &str = ",uid=";

impl ModuleName {
    /// Where it is.
    #[must_use]
    pub const fn place(&self) -> &Place {
        &self.place
    }

    /// What it is offered.
    #[must_use]
    pub const fn offer(&self) -> &Offer {
        &self.offer
    }

    /// Whose host may stand behind a socket.
    #[must_use]
    pub const fn trusted(&self) -> &Trusted {
        &self.trusted
    }
}

/// What stands behind a place, as far as it was named. A place may have commas of its own.
#[derive(Default)]
struct Behind<'t> {
    offer: Option<&'t str>,
    trusted: Option<&'t str>,
}

impl<'t> Behind<'t> {
    /// Parts a name behind its kind, from its end on; each option at most once.
    fn split(mut rest: &'t str) -> (&'t str, Self) {
        let mut behind = Self::default();
        loop {
            let last = |option| rest.rsplit_once(option).filter(|(_, value)| !value.contains(','));
            if let (Some((place, offer)), None) = (last(OFFER), behind.offer) {
                (rest, behind.offer) = (place, Some(offer));
            } else if let (Some((place, trusted)), None) = (last(TRUSTED), behind.trusted) {
                (rest, behind.trusted) = (place, Some(trusted));
            } else {
                return (rest, behind);
            }
        }
    }
}

impl FromStr for ModuleName {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        if let Some((address, behind)) = text.strip_prefix(VIRTIO).map(Behind::split) {
            let address = address.parse().map_err(|error| NameError::NoFunction(text.to_owned(), error))?;
            if let Some(trusted) = behind.trusted {
                return Err(NameError::Trusted(trusted.to_owned()));
            }
            // No other process has it, and its user knows what it is good for.
            let offer = behind.offer.map_or(Ok(Offer::All), offer_of)?;
            return Ok(Self { place: Place::Function(address), offer, trusted: Trusted::default() });
        }
        let rest = text.strip_prefix(HOSTED).ok_or_else(|| NameError::NotHosted(text.to_owned()))?;
        let (socket, behind) = Behind::split(rest);
        if socket.is_empty() || socket.contains('\0') {
            return Err(NameError::NoSocket(text.to_owned()));
        }
        let offer = behind.offer.map_or(Ok(Offer::Dear), offer_of)?;
        let trusted = behind.trusted.map(trusted_of).transpose()?.unwrap_or_default();
        Ok(Self { place: Place::Socket(socket.into()), offer, trusted })
    }
}

fn trusted_of(text: &str) -> Result<Trusted, NameError> {
    let users: Result<_, _> = text.split('+').map(u32::from_str).collect();
    users.map(Trusted).map_err(|_| NameError::Trusted(text.to_owned()))
}

fn offer_of(text: &str) -> Result<Offer, NameError> {
    if text == "all" {
        return Ok(Offer::All);
    }
    let these: Result<_, _> = text.split('+').map(Algorithm::from_str).collect();
    these.map(Offer::AlsoThese).map_err(|_| NameError::Offer(text.to_owned()))
}

impl ModuleName {
    /// Returns whether it is a host's, and not a device that this process drives.
    #[must_use]
    pub const fn is_host(&self) -> bool {
        matches!(self.place, Place::Socket(_))
    }

    /// How processes that share it call it, whatever each of them offers to it: by the socket's one path. A device has one process, and no such
    /// name.
    #[must_use]
    pub fn shared_name(&self) -> Option<String> {
        match &self.place {
            Place::Socket(socket) => {
                let path = socket.canonicalize().unwrap_or_else(|_| socket.clone());
                Some(format!("{HOSTED}{}", path.display()))
            }
            Place::Function(_) => None,
        }
    }
}

impl fmt::Display for ModuleName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Place::Socket(socket) => write!(f, "{HOSTED}{}", socket.display())?,
            Place::Function(address) => write!(f, "{VIRTIO}{address}")?,
        }
        match (&self.offer, &self.place) {
            (Offer::Dear, _) | (Offer::All, Place::Function(_)) => {}
            (Offer::All, _) => write!(f, "{OFFER}all")?,
            (Offer::AlsoThese(these), _) => {
                let names: Vec<&str> = these.iter().map(|algorithm| algorithm.name()).collect();
                write!(f, "{OFFER}{}", names.join("+"))?;
            }
        }
        if self.trusted == Trusted::default() {
            return Ok(());
        }
        let users: Vec<String> = self.trusted.0.iter().map(u32::to_string).collect();
        write!(f, "{TRUSTED}{}", users.join("+"))
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
        assert_eq!(name.place(), &Place::Socket("a,b".into()));
        assert_eq!(name.offer(), &Offer::AlsoThese(vec![Algorithm::Aes128Ctr]));
        let name: ModuleName = "virtio:00:10.0".parse().unwrap();
        assert_eq!((name.to_string().as_str(), name.offer()), ("virtio:0000:00:10.0", &Offer::All));
        assert!(matches!("virtio:/dev/vfio/3".parse::<ModuleName>(), Err(NameError::NoFunction(..))));
        assert!(matches!("emulated:x".parse::<ModuleName>(), Err(NameError::NotHosted(_))));
        assert!(matches!("hosted:,offer=all".parse::<ModuleName>(), Err(NameError::NoSocket(_))));
        assert!(matches!("hosted:x,offer=".parse::<ModuleName>(), Err(NameError::Offer(_))));
    }

    #[test]
    fn a_host_s_user_is_its_client_s_or_root_or_one_that_the_name_names() {
        let trusted = |text: &str| text.parse::<ModuleName>().map(|name| name.trusted().clone());
        let usual = trusted("hosted:/run/h").unwrap();
        assert!(usual.has(1000, 1000) && usual.has(0, 1000));
        assert!(!usual.has(65534, 1000) && !usual.has(1000, 0), "not even root's keys go to anybody");
        for text in ["hosted:/run/a,b,offer=all,uid=120+121", "hosted:/run/a,b,uid=120+121,offer=all"] {
            let name: ModuleName = text.parse().unwrap();
            assert_eq!((name.place(), name.offer()), (&Place::Socket("/run/a,b".into()), &Offer::All));
            assert!(
                [120, 121].iter().all(|&uid| name.trusted().has(uid, 1000)) && !name.trusted().has(122, 1000)
            );
            assert_eq!(name.to_string(), "hosted:/run/a,b,offer=all,uid=120+121");
        }
        for wrong in ["hosted:h,uid=", "hosted:h,uid=evener", "hosted:h,uid=-1", "virtio:00:10.0,uid=0"] {
            assert!(matches!(trusted(wrong), Err(NameError::Trusted(_))), "{wrong}");
        }
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
