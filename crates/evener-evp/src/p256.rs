//! The curve P-256: points in both forms, and what a sender makes with a fresh key.

use zeroize::Zeroizing;

use crate::Refused;
use crate::ffi::key;

/// Length of a point with both coordinates: `04`, x, y.
pub const POINT_BYTES: usize = 65;

/// A point with both coordinates from either form.
///
/// # Errors
///
/// [`Refused`] where it is no point of the curve.
pub fn uncompressed(point: &[u8]) -> Result<[u8; POINT_BYTES], Refused> {
    key::p256_point(&key::p256_public(point)?)
}

/// The form with one coordinate: the other's parity and x.
#[must_use]
pub fn compressed(point: &[u8; POINT_BYTES]) -> [u8; 33] {
    let mut short = [0; 33];
    short[0] = 2 + (point[64] & 1);
    short[1..].copy_from_slice(&point[1..33]);
    short
}

/// A fresh key's point, and the secret (x) that it shares with the owner of `peer`.
///
/// # Errors
///
/// [`Refused`] where `peer` is no point of the curve.
pub fn share_with(peer: &[u8]) -> Result<([u8; POINT_BYTES], Zeroizing<[u8; 32]>), Refused> {
    let (peer, own) = (key::p256_public(peer)?, key::p256_generate()?);
    Ok((key::p256_point(&own)?, key::p256_secret(&own, &peer)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_of_a_point_are_one_point_and_others_are_none() {
        let (point, _) = share_with(&GENERATOR).unwrap();
        assert_eq!(uncompressed(&compressed(&point)).unwrap(), point);
        assert_eq!(uncompressed(&point).unwrap(), point);
        let mut other = point;
        other[64] ^= 1;
        assert_eq!(uncompressed(&other), Err(Refused));
        assert_eq!(uncompressed(&[2; 12]), Err(Refused));
    }

    /// The generator of P-256, compressed (SEC 2, 2.4.2).
    const GENERATOR: [u8; 33] = [
        0x03, 0x6B, 0x17, 0xD1, 0xF2, 0xE1, 0x2C, 0x42, 0x47, 0xF8, 0xBC, 0xE6, 0xE5, 0x63, 0xA4, 0x40, 0xF2,
        0x77, 0x03, 0x7D, 0x81, 0x2D, 0xEB, 0x33, 0xA0, 0xF4, 0xA1, 0x39, 0x45, 0xD8, 0x98, 0xC2, 0x96,
    ];

    #[test]
    fn the_secret_shared_with_the_generator_is_the_senders_own_point() {
        // x of k * G is the x coordinate of the sender's own point.
        let (point, secret) = share_with(&GENERATOR).unwrap();
        assert_eq!(*secret, point[1..33]);
    }
}
