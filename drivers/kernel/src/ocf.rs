//! OCF's interface, `/dev/crypto`: numbers and records, for both sides of it.
//!
//! Linux: cryptodev-linux, `crypto/cryptodev.h`; FreeBSD: `opencrypto/cryptodev.h`. Records are alike on both, numbers are
//! not. Addresses stand in records as numbers, so that records are plain data on either side.

use std::mem::{offset_of, size_of};

use evener_core::{Algorithm, Family, Hash};

/// The node, unless a user says otherwise.
pub const NODE: &str = "/dev/crypto";

/// `COP_ENCRYPT`, `COP_DECRYPT`.
pub const ENCRYPT: u16 = 0;
/// See [`ENCRYPT`].
pub const DECRYPT: u16 = 1;
/// `COP_FLAG_WRITE_IV`: the IV of the next request is written over that of this one.
pub const WRITE_IV: u16 = 1 << 2;
/// `SIOP_FLAG_KERNEL_DRIVER_ONLY`: what programs cannot do themselves, so a device.
pub const IS_DEVICE: u32 = 1;

/// A record of plain numbers as C lays it out.
macro_rules! record {
    ($(#[$about:meta])* $name:ident { $($(#[$what:meta])* $field:ident: $kind:ty,)* }) => {
        $(#[$about])*
        #[repr(C)]
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct $name { $($(#[$what])* pub $field: $kind,)* }

        impl $name {
            /// Its length in bytes.
            pub const BYTES: usize = size_of::<Self>();

            /// Reads one from the start of `bytes`; `None` where they are too few.
            #[must_use]
            pub fn read(bytes: &[u8]) -> Option<Self> {
                bytes.get(..Self::BYTES)?;
                Some(Self { $($field: {
                    let start = offset_of!(Self, $field);
                    <$kind>::from_ne_bytes(bytes[start..start + size_of::<$kind>()].try_into().ok()?)
                },)* })
            }

            /// As it lies in memory, gaps filled with zeros.
            #[must_use]
            pub fn bytes(&self) -> Vec<u8> {
                let mut bytes = vec![0; Self::BYTES];
                $({
                    let start = offset_of!(Self, $field);
                    bytes[start..start + size_of::<$kind>()].copy_from_slice(&self.$field.to_ne_bytes());
                })*
                bytes
            }
        }
    };
}

record! {
    /// `struct session_op`: makes a session.
    SessionOp {
        /// Number of a cipher, or 0.
        cipher: u32,
        /// Number of a hash or MAC, or 0.
        mac: u32,
        /// Length of the cipher's key.
        key_bytes: u32,
        /// Its address.
        key: usize,
        /// Length of the MAC's key.
        mac_key_bytes: u32,
        /// Its address.
        mac_key: usize,
        /// The session, as answered.
        session: u32,
    }
}

record! {
    /// `struct crypt_op`: a request.
    CryptOp {
        /// The session.
        session: u32,
        /// [`ENCRYPT`] or [`DECRYPT`].
        op: u16,
        /// [`WRITE_IV`] and others.
        flags: u16,
        /// Length of the data.
        len: u32,
        /// Address of the data.
        src: usize,
        /// Address of the space for output.
        dst: usize,
        /// Address of the space for a digest.
        mac: usize,
        /// Address of the IV, or 0.
        iv: usize,
    }
}

/// `struct session_info_op` of cryptodev-linux: session, names of cipher, its driver, hash, its driver, mask, flags.
pub const SESSION_INFO_BYTES: usize = 268;
/// Where the driver's name of the cipher stands in it, where that of the hash, where the flags.
pub const SESSION_INFO_PLACES: [usize; 3] = [68, 196, 264];
/// Length of each name with its end.
pub const NAME_BYTES: usize = 64;

/// The calls that Evener makes and serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// `CIOCGSESSION`.
    OpenSession,
    /// `CIOCFSESSION`.
    CloseSession,
    /// `CIOCCRYPT`.
    Crypt,
    /// `CIOCGSESSINFO`, Linux only.
    SessionInfo,
    /// `CIOCASYNCCRYPT`, Linux only, and there in few builds: leaves a request and returns.
    Leave,
    /// `CIOCASYNCFETCH`, likewise: brings the oldest that is finished.
    Fetch,
}

impl Call {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::OpenSession, Self::CloseSession, Self::Crypt, Self::SessionInfo, Self::Leave, Self::Fetch];

    /// The number behind the letter `c`.
    const fn place(self) -> u8 {
        match (self, cfg!(target_os = "freebsd")) {
            (Self::OpenSession, false) => 102,
            (Self::CloseSession, false) => 103,
            (Self::Crypt, false) => 104,
            (Self::SessionInfo, _) => 107,
            (Self::Leave, _) => 110,
            (Self::Fetch, _) => 111,
            (Self::OpenSession, true) => 101,
            (Self::CloseSession, true) => 102,
            (Self::Crypt, true) => 103,
        }
    }

    /// The number of the call for `ioctl`.
    #[must_use]
    pub const fn number(self) -> rustix::ioctl::Opcode {
        use rustix::ioctl::opcode::{read, read_write, write};
        match self {
            Self::OpenSession => read_write::<SessionOp>(b'c', self.place()),
            Self::CloseSession => write::<u32>(b'c', self.place()),
            Self::Crypt => read_write::<CryptOp>(b'c', self.place()),
            Self::SessionInfo => read_write::<[u32; SESSION_INFO_BYTES / 4]>(b'c', self.place()),
            Self::Leave => write::<CryptOp>(b'c', self.place()),
            Self::Fetch => read::<CryptOp>(b'c', self.place()),
        }
    }
}

/// OCF's number of an algorithm; `None` where it has none on this system.
#[must_use]
pub const fn number_of(algorithm: Algorithm) -> Option<u32> {
    let is_freebsd = cfg!(target_os = "freebsd");
    Some(match algorithm.family() {
        Family::Cbc => 11,
        Family::Xts => 22,
        Family::Ctr if is_freebsd => 23,
        Family::Ctr => 21,
        Family::Ecb if is_freebsd => return None,
        Family::Ecb => 23,
        Family::Hmac(Hash::Md5) if is_freebsd => return None,
        Family::Hmac(Hash::Md5) => 6,
        Family::Hmac(Hash::Sha1) => 7,
        Family::Hmac(Hash::Sha256) => 18,
        Family::Digest(Hash::Md5) if is_freebsd => return None,
        Family::Digest(Hash::Md5) => 13,
        Family::Digest(Hash::Sha1) => 14,
        Family::Digest(Hash::Sha256) if is_freebsd => 35,
        Family::Digest(Hash::Sha256) => 104,
        // AEADs have calls of their own, which no driver of ours makes yet.
        Family::Gcm | Family::ChaCha20Poly1305 => return None,
    })
}

#[cfg(test)]
#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
mod tests {
    use super::*;

    /// Against what a C compiler makes of cryptodev-linux's header on 64 bits: sizes 48, 48 and 268.
    #[test]
    fn numbers_of_calls_are_those_of_the_header() {
        let numbers = Call::ALL.map(Call::number);
        let [leave, fetch] = [0x4030_636E, 0x8030_636F];
        assert_eq!(
            numbers.map(u64::from),
            [0xC030_6366, 0x4004_6367, 0xC030_6368, 0xC10C_636B, leave, fetch]
        );
    }

    #[test]
    fn records_lie_as_c_lays_them_out_and_come_back() {
        assert_eq!((SessionOp::BYTES, CryptOp::BYTES), (48, 48));
        assert_eq!(
            [offset_of!(SessionOp, key), offset_of!(SessionOp, mac_key), offset_of!(SessionOp, session)],
            [16, 32, 40]
        );
        assert_eq!(
            [offset_of!(CryptOp, len), offset_of!(CryptOp, src), offset_of!(CryptOp, iv)],
            [8, 16, 40]
        );
        let op = CryptOp { session: 1, op: 1, flags: 4, len: 9, src: 0x10, dst: 0x20, mac: 0, iv: 0x30 };
        assert_eq!(CryptOp::read(&op.bytes()), Some(op));
        assert_eq!(CryptOp::read(&op.bytes()[1..]), None);
    }
}
