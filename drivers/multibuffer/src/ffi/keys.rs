//! Keys as the library wants them, wiped when they are dropped.

use std::ffi::c_void;

use zeroize::{Zeroize, ZeroizeOnDrop};

use crate::ffi::layout::GCM_KEY_BYTES;

/// Length of an AES key; the order is that of the library's tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeySize {
    Bits128,
    Bits192,
    Bits256,
}

impl KeySize {
    /// The size of a key of `bytes`.
    ///
    /// # Panics
    ///
    /// Where AES has no such key: sessions are checked when they are made.
    pub(crate) fn of(bytes: usize) -> Self {
        match bytes {
            16 => Self::Bits128,
            24 => Self::Bits192,
            32 => Self::Bits256,
            other => unreachable!("AES has no key of {other} bytes"),
        }
    }

    pub(crate) const fn bytes(self) -> u32 {
        match self {
            Self::Bits128 => 16,
            Self::Bits192 => 24,
            Self::Bits256 => 32,
        }
    }

    pub(crate) const fn index(self) -> usize {
        self as usize
    }
}

/// Space for the round keys of AES-256: the key and fourteen more.
const ROUND_KEYS_BYTES: usize = 15 * 16;

/// Round keys of AES for both directions. Aligned as the library's loads demand.
#[repr(C, align(64))]
#[derive(Zeroize, ZeroizeOnDrop)]
pub(crate) struct AesKeys {
    pub(super) encrypt: [u8; ROUND_KEYS_BYTES],
    _gap: [u8; 16],
    pub(super) decrypt: [u8; ROUND_KEYS_BYTES],
}

impl AesKeys {
    pub(super) const fn empty() -> Self {
        Self { encrypt: [0; ROUND_KEYS_BYTES], _gap: [0; 16], decrypt: [0; ROUND_KEYS_BYTES] }
    }
}

/// Round keys and powers of the hash key of GCM.
#[repr(C, align(64))]
#[derive(Zeroize, ZeroizeOnDrop)]
pub(crate) struct GcmKeys {
    pub(super) prepared: [u8; GCM_KEY_BYTES],
    #[zeroize(skip)]
    pub(super) size: KeySize,
}

impl GcmKeys {
    pub(super) const fn empty(size: KeySize) -> Self {
        Self { prepared: [0; GCM_KEY_BYTES], size }
    }
}

/// States of an HMAC's inner and outer hash after their first block.
#[repr(C, align(64))]
#[derive(Zeroize, ZeroizeOnDrop)]
pub(crate) struct HmacKeys {
    pub(super) inner: [u8; 64],
    pub(super) outer: [u8; 64],
}

impl HmacKeys {
    pub(super) const fn empty() -> Self {
        Self { inner: [0; 64], outer: [0; 64] }
    }
}

/// The address of a table, as C takes it.
pub(super) const fn address(bytes: &[u8]) -> *const c_void {
    bytes.as_ptr().cast()
}

/// The address of a table to be filled, as C takes it.
pub(super) const fn address_mut(bytes: &mut [u8]) -> *mut c_void {
    bytes.as_mut_ptr().cast()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use evener_core::Hash;

    use super::*;
    use crate::ffi::Manager;
    use crate::ffi::load_first;

    const KEY: [u8; 16] = [0xA5; 16];

    fn manager() -> Option<Manager> {
        let loaded = load_first(Manager::load);
        loaded.inspect_err(|unavailable| println!("skipped: {unavailable}")).ok()
    }

    /// What is left of keys when they are dropped.
    fn left_of<K: Zeroize + ZeroizeOnDrop>(keys: Arc<K>, bytes: fn(&K) -> Vec<u8>) -> Vec<u8> {
        let mut keys = Arc::into_inner(keys).unwrap();
        assert!(bytes(&keys).iter().any(|&byte| byte != 0), "there is a key to wipe");
        keys.zeroize();
        bytes(&keys)
    }

    #[test]
    fn nothing_is_left_of_keys_that_are_dropped() {
        let Some(manager) = manager() else { return };
        let aes = left_of(manager.aes_keys(&KEY), |keys| [keys.encrypt, keys.decrypt].concat());
        let gcm = left_of(manager.gcm_keys(&KEY), |keys| keys.prepared.to_vec());
        let hmac = left_of(manager.hmac_keys(Hash::Sha256, &[1; 64], &[2; 64]), |keys| {
            [keys.inner, keys.outer].concat()
        });
        assert!([aes, gcm, hmac].concat().iter().all(|&byte| byte == 0));
    }
}
