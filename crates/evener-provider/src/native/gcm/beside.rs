//! A message that is computed again by an inner context beside it (`shadow.rs`), or in its place where the kernel is out of service. What that says of a call that it
//! refuses is taken off the error queue: who refuses the message's call says it (`refusal.rs`).

use super::shadow::Shadow;
use super::{GcmContext, TAG_BYTES};
use crate::ffi::reserve;
use crate::inner_cipher::call::Update;
use crate::native::{Refused, kernel_check, prov};

impl GcmContext {
    /// The same, with an inner context beside it.
    #[cold]
    pub(super) fn work_beside(&mut self, call: &Update) -> Result<usize, Refused> {
        let core = &prov(self.row()).core;
        let Some(shadow) = &mut self.shadow else { return Err(Refused) };
        if shadow.leads() {
            let take = || if call.is_aad() { shadow.aad(call.input()) } else { shadow.text(call) };
            let is_taken = core.quietly(take);
            if is_taken && !call.is_aad() {
                kernel_check::count_direct(self.row(), self.encrypts, call.len());
            }
            return is_taken.then(|| call.len()).ok_or(Refused);
        }
        if call.is_aad() {
            let is_beside = core.quietly(|| shadow.aad(call.input()));
            self.shadow = self.shadow.take().filter(|_| is_beside);
            return self.work_alone(call);
        }
        let Some(text) = core.quietly(|| call.both().and_then(|_| shadow.checked(call))) else {
            self.shadow = None;
            return self.work_alone(call);
        };
        let bytes = self.work_alone(call)?;
        if !text.settle(call) {
            self.take_kernel_out(bytes);
        }
        Ok(bytes)
    }

    /// The kernel made something else of a message than the inner cipher, whose it is from here on.
    pub(super) fn take_kernel_out(&mut self, bytes: usize) {
        kernel_check::found_wrong(self.row(), self.class);
        kernel_check::count_redone(self.row(), self.encrypts, bytes);
        self.shadow.iter_mut().for_each(Shadow::lead);
    }

    /// The inner context beside the message goes in the message's new direction. Without one that had its place the message is gone.
    pub(super) fn turn_shadow(&mut self) {
        let Some(shadow) = self.shadow.take() else { return };
        if shadow.turn(self.encrypts) {
            self.shadow = Some(shadow);
        } else if shadow.leads() {
            self.message = None;
        }
    }

    /// Begins an inner context beside a message whose turn it is, and one in its place where the kernel is out of service; ends that of the message before.
    #[cold]
    pub(super) fn begin_beside(&mut self) {
        self.shadow = None;
        let is_wrong = kernel_check::is_out_of_service(self.class);
        let is_due = self.turn.has_come() && !reserve::is_short();
        if !is_due && !is_wrong {
            return;
        }
        kernel_check::unwind_where_planted();
        self.turn.begin_anew();
        let key = self.key_copy.get(..self.key_bytes).unwrap_or_default();
        let nonce = self.nonce_bytes.get(..self.nonce_len).unwrap_or_default();
        self.shadow = Shadow::new(self.row(), self.encrypts, key, nonce);
        match &mut self.shadow {
            Some(shadow) if is_wrong => shadow.lead(),
            // No other does it.
            None if is_wrong => self.message = None,
            _ => {}
        }
    }

    /// The same, with an inner context beside it, which is asked last and answers.
    #[cold]
    pub(super) fn close_beside(
        &mut self,
        expected: Option<(&[u8; TAG_BYTES], usize)>,
    ) -> Result<Option<[u8; TAG_BYTES]>, Refused> {
        let shadow = self.shadow.take().ok_or(Refused)?;
        let right = prov(self.row()).core.quietly(|| match expected {
            None => shadow.tag().map(|tag| Ok(Some(tag))),
            Some((given, bytes)) => {
                let is_right = given.get(..bytes).and_then(|tag| shadow.has_tag(tag));
                is_right.map(|is_right| if is_right { Ok(None) } else { Err(Refused) })
            }
        });
        if shadow.leads() {
            // The kernel has not seen all of it.
            self.message = None;
            return right.unwrap_or(Err(Refused));
        }
        let by_kernel = self.close(expected);
        // An inner context that cannot say is no witness.
        let Some(right) = right else { return by_kernel };
        if by_kernel != right {
            self.take_kernel_out(0);
        }
        right
    }
}
