//! The calls of a cipher that are looked into, as C passed them.

use std::ffi::{c_int, c_uchar, c_void};
use std::ops::Range;
use std::ptr;
use std::slice;

use evener_core::job::Memory;
use evener_ossl_sys::{CipherUpdate, Param};

use crate::ffi::params;
use crate::state::rows::CipherRow;

/// An init. Key, IV and parameters are the caller's for as long as the call lasts.
#[derive(Clone, Copy)]
pub(crate) struct Init<'c> {
    pub(crate) encrypts: bool,
    pub(crate) key: Option<&'c [u8]>,
    pub(crate) iv: Option<&'c [u8]>,
    params: *const Param,
}

impl<'c> Init<'c> {
    /// What C passed: addresses with lengths, null for nothing.
    pub(crate) fn of(
        encrypts: bool,
        key: (*const c_uchar, usize),
        iv: (*const c_uchar, usize),
        params: *const Param,
    ) -> Self {
        Self { encrypts, key: bytes(key), iv: bytes(iv), params }
    }

    /// The same call, with `iv` where that is one.
    pub(crate) fn or_iv<'d>(&self, iv: Option<&'d [u8; 16]>) -> Init<'d>
    where
        'c: 'd,
    {
        Init { iv: iv.map(<[u8; 16]>::as_slice).or(self.iv), ..*self }
    }

    /// The same call, with `key` where that is one and none came.
    pub(crate) fn or_key<'d>(&self, key: Option<&'d [u8]>) -> Init<'d>
    where
        'c: 'd,
    {
        Init { key: self.key.or(key), ..*self }
    }

    /// The same call, to the inner function.
    pub(crate) fn inner(&self, row: &CipherRow, ctx: *mut c_void) -> c_int {
        let init = if self.encrypts { row.inner.encrypt_init } else { row.inner.decrypt_init };
        let pair =
            |bytes: Option<&[u8]>| bytes.map_or((ptr::null(), 0), |bytes| (bytes.as_ptr(), bytes.len()));
        let ((key, key_len), (iv, iv_len)) = (pair(self.key), pair(self.iv));
        // SAFETY: the inner function with its own context; the rest is the caller's.
        unsafe { init(ctx, key, key_len, iv, iv_len, self.params) }
    }

    /// Whether there is any parameter.
    pub(crate) fn has_params(&self) -> bool {
        // SAFETY: the caller's list, which ends or is null.
        !unsafe { params::list(self.params) }.is_empty()
    }

    /// The parameters.
    pub(crate) fn params(&self) -> &'c [Param] {
        // SAFETY: the caller's list, which ends or is null, and is lent for the call.
        unsafe { params::list(self.params) }
    }

    /// Each parameter as it is.
    pub(crate) fn each(&self, look: impl FnMut(&Param)) {
        // SAFETY: the caller's list, which ends or is null.
        unsafe { params::list(self.params) }.iter().for_each(look);
    }

    /// Each parameter: its name, and its value where that is a number.
    pub(crate) fn each_param(&self, mut look: impl FnMut(&[u8], Option<usize>)) {
        // SAFETY: the caller's list, which ends or is null.
        for param in unsafe { params::list(self.params) } {
            look(params::key(param).to_bytes(), params::number(param));
        }
    }
}

fn bytes<'c>((first, len): (*const c_uchar, usize)) -> Option<&'c [u8]> {
    // SAFETY: C passed null or the address of so many bytes, which it lends for the call.
    (!first.is_null()).then(|| unsafe { slice::from_raw_parts(first, len) })
}

/// An update.
pub(crate) struct Update {
    pub(super) out: *mut c_uchar,
    pub(super) written: *mut usize,
    pub(super) space: usize,
    pub(super) input: *const c_uchar,
    pub(super) len: usize,
}

impl Update {
    pub(crate) fn of(
        out: *mut c_uchar,
        written: *mut usize,
        space: usize,
        input: *const c_uchar,
        len: usize,
    ) -> Self {
        Self { out, written, space, input, len }
    }

    /// The same call, to an inner function with its own context.
    pub(crate) fn inner(&self, update: CipherUpdate, ctx: *mut c_void) -> c_int {
        // SAFETY: the inner function with its own context; the rest is the caller's.
        unsafe { update(ctx, self.out, self.written, self.space, self.input, self.len) }
    }

    /// Length of the input in bytes.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Whether there is input, output and a place for its length.
    pub(crate) fn is_whole(&self) -> bool {
        !self.out.is_null() && !self.written.is_null() && !self.input.is_null() && self.len > 0
    }

    /// Whether output replaces input from the first byte on.
    pub(crate) fn is_in_place(&self) -> bool {
        ptr::eq(self.input, self.out)
    }

    /// Whether so many bytes of output fit.
    pub(crate) const fn has_space(&self, output: usize) -> bool {
        output <= self.space
    }

    /// The first `len` bytes of the output, which hold input where that is in place.
    pub(crate) fn space<'c>(&self, len: usize) -> &'c mut [u8] {
        assert!(len <= self.space, "within what C lent");
        // SAFETY: within the output, which is ours for the call.
        unsafe { slice::from_raw_parts_mut(self.out, len) }
    }

    /// Whether it is associated data.
    pub(crate) fn is_aad(&self) -> bool {
        self.out.is_null() && !self.input.is_null()
    }

    /// Whether `output` bytes fit, and input from `from` on, which goes to output from `to` on, is either worked on in
    /// its place or nowhere near the output. For all else OpenSSL's order of reading and writing decides.
    pub(crate) fn can_work(&self, from: usize, to: usize, output: usize) -> bool {
        let (input, out) = (self.input.addr(), self.out.addr());
        let apart = input + self.len <= out || out + output <= input;
        output <= self.space && (apart || input + from == out + to)
    }

    /// Input from `from` on and output from `to` on, `len` bytes each, as block work. [`Update::can_work`] was true.
    pub(crate) fn memory<'c>(&self, from: usize, to: usize, len: usize) -> Memory<'c> {
        assert!(from + len <= self.len && to + len <= self.space, "within what C lent");
        // SAFETY: within the input.
        let input = unsafe { self.input.add(from) };
        // SAFETY: within the output.
        let out = unsafe { self.out.add(to) };
        // SAFETY: within the output, which is ours for the call.
        let dst = unsafe { slice::from_raw_parts_mut(out, len) };
        if ptr::eq(input, out) {
            return Memory::InPlace { space: dst, input_bytes: len };
        }
        // SAFETY: within the input, and apart from the output.
        Memory::Apart { src: unsafe { slice::from_raw_parts(input, len) }, dst }
    }

    /// The addresses of input, output and the length of both, where there is room for as much.
    pub(crate) fn both(&self) -> Option<(*const u8, *mut u8, usize)> {
        (!self.input.is_null() && !self.out.is_null() && self.has_space(self.len))
            .then_some((self.input, self.out, self.len))
    }

    /// The addresses of input and output.
    pub(crate) fn places(&self) -> Option<(*const u8, *mut u8)> {
        (!self.out.is_null()).then_some((self.input, self.out))
    }

    /// The input, where there is any.
    pub(crate) fn input<'c>(&self) -> &'c [u8] {
        bytes((self.input, self.len)).unwrap_or_default()
    }

    /// Whether there is no input, which OpenSSL takes for the end.
    pub(crate) fn is_end(&self) -> bool {
        self.input.is_null()
    }

    /// Copies input from `from` on; input and `to` never overlap.
    pub(crate) fn copy_input(&self, from: usize, to: &mut [u8]) {
        assert!(from + to.len() <= self.len, "within what C lent");
        if to.is_empty() {
            // The input may be null.
            return;
        }
        // SAFETY: within the input.
        let input = unsafe { self.input.add(from) };
        // SAFETY: as above; `to` is memory of our own.
        unsafe { ptr::copy_nonoverlapping(input, to.as_mut_ptr(), to.len()) };
    }

    /// Writes output from `to` on.
    pub(crate) fn put_output(&self, to: usize, bytes: &[u8]) {
        assert!(to + bytes.len() <= self.space, "within what C lent");
        // SAFETY: within the output.
        let out = unsafe { self.out.add(to) };
        // SAFETY: as above; `bytes` is memory of our own.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), out, bytes.len()) };
    }

    /// Output from `at` on is input from there on, xor `key_stream`, at most a block.
    pub(crate) fn xor(&self, at: usize, key_stream: &[u8]) {
        let mut block = [0; evener_core::BLOCK_BYTES];
        let part = &mut block[..key_stream.len()];
        self.copy_input(at, part);
        part.iter_mut().zip(key_stream).for_each(|(byte, key)| *byte ^= key);
        self.put_output(at, part);
    }

    /// Tells C how much was written, and that all is well.
    pub(crate) fn done(&self, written: usize) -> c_int {
        // SAFETY: C's space for one number.
        unsafe { self.written.write(written) };
        1
    }

    /// Whether there is output of so many bytes.
    pub(crate) fn can_put(&self, output: usize) -> bool {
        !self.out.is_null() && self.has_space(output)
    }

    /// Whether there is the input that is announced, and space for `output` bytes.
    pub(crate) fn can_pipe(&self, output: usize) -> bool {
        (self.len == 0 || !self.input.is_null()) && (output == 0 || self.can_put(output))
    }

    /// The addresses of the input.
    pub(crate) fn input_range(&self) -> Range<usize> {
        self.input.addr()..self.input.addr() + self.len
    }

    /// The addresses of so many bytes of output.
    pub(crate) fn output_range(&self, output: usize) -> Range<usize> {
        self.out.addr()..self.out.addr() + output
    }
}
