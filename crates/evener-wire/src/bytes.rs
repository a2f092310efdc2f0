//! Fixed-size fields in byte strings. Offsets are constants of the layouts, so a range that does not fit is a bug here.

/// The bytes at `offset`.
pub(crate) fn at<const N: usize>(bytes: &[u8], offset: usize) -> [u8; N] {
    bytes[offset..offset + N].try_into().expect("the range has N bytes")
}

/// In the machine's order, as in messages.
pub(crate) fn u32_at(bytes: &[u8], offset: usize) -> u32 {
    u32::from_ne_bytes(at(bytes, offset))
}

/// In the machine's order, as in messages.
pub(crate) fn u64_at(bytes: &[u8], offset: usize) -> u64 {
    u64::from_ne_bytes(at(bytes, offset))
}

/// Little-endian, as in rings.
pub(crate) fn le32_at(bytes: &[u8], offset: usize) -> u32 {
    u32::from_le_bytes(at(bytes, offset))
}

/// Little-endian, as in rings.
pub(crate) fn le64_at(bytes: &[u8], offset: usize) -> u64 {
    u64::from_le_bytes(at(bytes, offset))
}

/// Puts a field at its place.
pub(crate) fn put<const N: usize>(bytes: &mut [u8], offset: usize, field: [u8; N]) {
    bytes[offset..offset + N].copy_from_slice(&field);
}

/// Puts fields at their places, each in the order of bytes that `$order` names.
macro_rules! put_all {
    ($bytes:ident, $order:ident, $($offset:literal: $field:expr),*) => {
        $($crate::bytes::put(&mut $bytes, $offset, $field.$order());)*
    };
}
pub(crate) use put_all;
