//! Copies of keys that leave nothing in vector registers.

/// Copies `key` to the start of `space`, by general registers that are overwritten at once.
///
/// What `memcpy` leaves in vector registers goes onto the stack with the next call that the dynamic linker looks up: it saves them all
/// (glibc, `_dl_runtime_resolve_xsavec`), and it is not cleared there.
///
/// # Panics
///
/// Where `space` is shorter.
pub(crate) fn copy_key(space: &mut [u8], key: &[u8]) {
    let space = &mut space[..key.len()];
    #[cfg(target_arch = "x86_64")]
    // SAFETY: both are as long as the count says, and one of them is borrowed for writing, so they do not overlap. The direction flag
    // is clear by the C ABI.
    unsafe {
        std::arch::asm!(
            "rep movsb",
            inout("rcx") key.len() => _,
            inout("rsi") key.as_ptr() => _,
            inout("rdi") space.as_mut_ptr() => _,
            options(nostack, preserves_flags),
        );
    }
    #[cfg(not(target_arch = "x86_64"))]
    space.copy_from_slice(key);
}

#[cfg(test)]
mod tests {
    use super::copy_key;

    #[test]
    fn a_copy_is_the_key_and_what_lies_behind_it_stays() {
        for len in [0, 1, 16, 24, 32, 64] {
            let key: Vec<u8> = (1..=len).collect();
            let mut space = [0xA5; 72];
            copy_key(&mut space, &key);
            assert_eq!(space[..usize::from(len)], key);
            assert!(space[usize::from(len)..].iter().all(|byte| *byte == 0xA5));
        }
    }
}
