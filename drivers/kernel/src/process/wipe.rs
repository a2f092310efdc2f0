//! Wiping of buffers, fast where `evener-ring` is there.

#[cfg(target_os = "linux")]
pub(crate) use evener_ring::wipe;

#[cfg(not(target_os = "linux"))]
pub(crate) fn wipe(bytes: &mut [u8]) {
    zeroize::Zeroize::zeroize(bytes);
}
