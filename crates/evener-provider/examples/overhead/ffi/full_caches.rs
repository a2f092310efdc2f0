//! Caches that are full of other things, as in a large program between two of its calls.

use std::ptr;

/// Bytes of data and of instructions between two calls: more than a core's nearest caches have of either.
const BYTES: usize = 256 << 10;

/// What is run and written through.
pub(crate) struct OtherThings {
    code: *const u8,
    data: Vec<u8>,
}

impl OtherThings {
    /// Some; `None` where the system has no memory for instructions, or where it is of another kind than x86-64.
    pub(crate) fn new() -> Option<Self> {
        // Of eight bytes each, and one that returns.
        const NOTHING: [u8; 8] = [0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0];
        const RETURN: u8 = 0xc3;
        if !cfg!(target_arch = "x86_64") {
            return None;
        }
        let (access, kind) =
            (libc::PROT_READ | libc::PROT_WRITE | libc::PROT_EXEC, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: new memory.
        let code = unsafe { libc::mmap(ptr::null_mut(), BYTES + 8, access, kind, -1, 0) };
        if code == libc::MAP_FAILED {
            return None;
        }
        // SAFETY: just mapped, as long as this, and written by nothing else.
        let text = unsafe { std::slice::from_raw_parts_mut(code.cast::<u8>(), BYTES + 8) };
        text[..BYTES].chunks_exact_mut(8).for_each(|space| space.copy_from_slice(&NOTHING));
        text[BYTES] = RETURN;
        Some(Self { code: code.cast_const().cast(), data: vec![0; BYTES] })
    }

    /// Fills the caches with them.
    pub(crate) fn go_through(&mut self) {
        self.data.iter_mut().step_by(64).for_each(|byte| *byte = byte.wrapping_add(1));
        std::hint::black_box(&mut self.data);
        // SAFETY: what stands there takes nothing, does nothing and returns.
        let run: extern "C" fn() = unsafe { std::mem::transmute(self.code) };
        run();
    }
}
