//! Whether calls that may be combined are told to who decides about it.

use super::bytes;
use super::ffi::{CipherCtx, DEFAULT, Provider};

/// Encrypts so many bytes again and again, until calls were told whose ends were told, too; false where that does not come.
pub fn has_told(evener: &Provider, len: usize) -> bool {
    let [(cipher, context), (judge, judged)] = ["evener", "default"].map(|provider| {
        (DEFAULT.cipher("AES-128-CBC", &format!("provider={provider}")).unwrap(), CipherCtx::new())
    });
    let (key, iv, data) = (bytes(1, 16), bytes(2, 16), bytes(3, len));
    assert!(context.init(Some(&cipher), Some(&key), Some(&iv), Some(true)));
    assert!(judged.init(Some(&judge), Some(&key), Some(&iv), Some(true)));
    // An epoch is 20 ms, some thousand of these.
    (0..200_000).any(|_| {
        assert!(context.update(&data) == judged.update(&data));
        evener.count(c"evener-timed").unwrap() > 0
    })
}
