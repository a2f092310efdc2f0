//! Overwriting memory of one's own, so that the compiler does not leave it out.

/// Overwrites `bytes` with zeros, whether or not anyone reads them again, as fast as memory is filled. The crate `zeroize` makes a
/// store of each byte: it is for keys, this is for data.
pub fn wipe(bytes: &mut [u8]) {
    // SAFETY: the slice is ours for so many bytes, and zero is a byte.
    unsafe { libc::explicit_bzero(bytes.as_mut_ptr().cast(), bytes.len()) };
}

#[cfg(test)]
mod tests {
    #[test]
    fn what_is_wiped_is_zero_and_what_lies_beside_it_stays() {
        let mut bytes = [0xA5; 100];
        super::wipe(&mut bytes[1..99]);
        assert_eq!(bytes[1..99], [0; 98]);
        assert_eq!((bytes[0], bytes[99]), (0xA5, 0xA5));
    }
}
