//! The rival in Evener's figures: what a C program does that calls libipsec-mb in a loop, and nothing else.

use std::ffi::CStr;
use std::sync::Arc;

use crate::absent::Absent;
use crate::ffi::keys::{AesKeys, KeySize, address};
use crate::ffi::layout::{BURST_JOBS_MAX, LANE_BYTES_MAX};
use crate::ffi::manager::{CHECKED, Manager};
use crate::ffi::pass::{Span, Work};

/// One buffer of whole blocks, to be encrypted by [`BareLoop`].
pub struct BareSpan<'m> {
    iv: [u8; 16],
    memory: Span<'m>,
}

impl<'m> BareSpan<'m> {
    /// A buffer that is replaced by its ciphertext.
    ///
    /// # Panics
    ///
    /// Where it is empty, longer than a SIMD lane takes (65520 bytes) or not whole blocks.
    #[must_use]
    pub fn in_place(iv: [u8; 16], room: &'m mut [u8]) -> Self {
        check(room.len());
        Self { iv, memory: Span::InPlace(room) }
    }

    /// A buffer and room of the same length for its ciphertext.
    ///
    /// # Panics
    ///
    /// As [`BareSpan::in_place`], or where the lengths differ.
    #[must_use]
    pub fn apart(iv: [u8; 16], src: &'m [u8], dst: &'m mut [u8]) -> Self {
        check(src.len());
        assert_eq!(src.len(), dst.len(), "as much room as input");
        Self { iv, memory: Span::Apart(src, dst) }
    }
}

fn check(bytes: usize) {
    assert!(bytes > 0 && bytes % 16 == 0 && bytes <= LANE_BYTES_MAX, "{bytes} bytes in a lane");
}

/// AES-CBC encryption of many buffers in a loop around the library's synchronous burst, without sessions, jobs,
/// padding or slicing: the best that Evener could do. For measuring only.
pub struct BareLoop {
    manager: Manager,
    keys: Arc<AesKeys>,
    size: KeySize,
}

impl BareLoop {
    /// Loads the library, as [`crate::Multibuffer::load`] does, and expands a key of 16, 24 or 32 bytes.
    ///
    /// # Errors
    ///
    /// [`Absent`] with the reason.
    ///
    /// # Panics
    ///
    /// Where the key has another length.
    pub fn load(key: &[u8]) -> Result<Self, Absent> {
        crate::load_first(|name| Self::load_from(name, key))
    }

    fn load_from(name: &CStr, key: &[u8]) -> Result<Self, Absent> {
        let manager = Manager::load(name)?;
        let keys = manager.aes_keys(key);
        Ok(Self { manager, keys, size: KeySize::of(key.len()) })
    }

    /// Encrypts all of them, in bursts of at most 128.
    ///
    /// # Panics
    ///
    /// Where the library refuses what it documents to take.
    pub fn encrypt(&mut self, spans: &mut [BareSpan<'_>]) {
        let burst = self.manager.table.cipher_burst.expect(CHECKED);
        let work = Work::CbcEncrypt(self.size);
        let (cipher, direction, key_bytes) = work.cipher();
        for chunk in spans.chunks_mut(BURST_JOBS_MAX) {
            let count = chunk.len();
            for (place, span) in chunk.iter_mut().enumerate() {
                let (src, dst, bytes) = span.memory.reborrow().addresses();
                let slot = self.manager.lanes.slot(place, work);
                slot.enc_keys = address(&self.keys.encrypt);
                slot.src = src;
                slot.dst = dst;
                slot.cipher_bytes = bytes as u64;
                slot.iv = span.iv.as_ptr();
            }
            let (manager, jobs) = (self.manager.address(), self.manager.lanes.first());
            let count_u32 = u32::try_from(count).expect("at most 128");
            // SAFETY: the slots were filled; each span has borrowed its memory, and its length was checked.
            let completed = unsafe { burst(manager, jobs, count_u32, cipher, direction, key_bytes) };
            assert_eq!(completed as usize, count, "the library takes what its header says");
        }
    }
}
