//! Work in a client's own memory: where source and destination lie in one element each, a module that is a core reads and writes them there, and nothing
//! is copied.
//!
//! The client may change every byte at any time, also while the cipher reads it. That spoils its own result: the key is its own, no byte is taken for a
//! length or an address, and nothing is decided by what was read (docs/design/host.md). So tags are neither made nor checked here.

use std::sync::Arc;
use std::sync::atomic::AtomicU8;

use evener_core::job::SharedSpan;
use evener_ring::virtqueue::Element;

use crate::service::request::{Reader, Work};
use crate::state::memory::Memory;

/// Source and destination of a request in the memory of its client.
pub(crate) struct ClientSpan {
    span: SharedSpan<'static>,
    memory: Arc<Memory>,
}

impl ClientSpan {
    /// The span of a request of which `reader` stands before the source; none where it has to be copied.
    pub(crate) fn of(
        work: &Work,
        reader: &Reader<'_>,
        writable: &[Element],
        memory: &Arc<Memory>,
    ) -> Option<Self> {
        let algorithm = work.session.algorithm();
        if algorithm.is_aead() && !cfg!(mutant = "host_aead_in_place") {
            return None;
        }
        let from = reader.next_element(work.src_bytes)?;
        let src = memory.lend(&from)?;
        let dst: &[AtomicU8] = match algorithm.is_cipher() {
            true => {
                let first = writable.iter().find(|element| element.len > 0)?;
                let to = Element { len: from.len, ..*first };
                if first.len < to.len || overlap(&from, &to) && !cfg!(mutant = "host_overlap_in_place") {
                    return None;
                }
                memory.lend(&to)?
            }
            false => &[],
        };
        let span = SharedSpan { src, dst };
        // SAFETY: both lie in regions of `memory`, which this value has, and after it the task of the job; the task lets go of it only when
        // the job has come back and was given another span.
        let span = unsafe { std::mem::transmute::<SharedSpan<'_>, SharedSpan<'static>>(span) };
        Some(Self { span, memory: Arc::clone(memory) })
    }

    /// The span, and what must be kept for as long as it is used.
    pub(crate) fn lend(self) -> (SharedSpan<'static>, Arc<Memory>) {
        (self.span, self.memory)
    }
}

/// Whether two elements share bytes without being the same: then what is written first would be read later.
const fn overlap(one: &Element, other: &Element) -> bool {
    let apart = one.address.abs_diff(other.address);
    apart > 0 && apart < one.len as u64
}
