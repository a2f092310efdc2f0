//! OpenSSL's lists of parameters as slices, with the type and the space of each value looked at.

use std::ffi::{CStr, c_int, c_uint};
use std::slice;

use evener_ossl_sys::{
    PARAM_INTEGER, PARAM_OCTET_PTR, PARAM_OCTET_STRING, PARAM_UNSIGNED_INTEGER, PARAM_UTF8_PTR, Param,
};

/// The parameters of a list that ends with a null key.
///
/// # Safety
///
/// `list` is null or such a list, and no other thread uses it meanwhile.
pub(crate) unsafe fn list<'p>(list: *const Param) -> &'p [Param] {
    // SAFETY: the caller's word.
    unsafe { super::up_to(list, |param| param.key.is_null()) }
}

/// As [`list`], to be answered.
///
/// # Safety
///
/// As there.
pub(crate) unsafe fn list_mut<'p>(first: *mut Param) -> &'p mut [Param] {
    // SAFETY: the caller's word.
    let count = unsafe { list(first) }.len();
    if count == 0 {
        return &mut [];
    }
    // SAFETY: `count` entries were just read, and they are lent to us alone.
    unsafe { slice::from_raw_parts_mut(first, count) }
}

/// The name of a parameter that stands before the end of its list.
pub(crate) fn key(param: &Param) -> &CStr {
    // SAFETY: the key is not null, and the core's and programs' keys are text that ends in nul.
    unsafe { CStr::from_ptr(param.key) }
}

/// The value of an integer of any width; `None` for other types and what a length cannot hold.
pub(crate) fn number(param: &Param) -> Option<usize> {
    if !matches!(param.data_type, PARAM_INTEGER | PARAM_UNSIGNED_INTEGER) || param.data.is_null() {
        return None;
    }
    // SAFETY: a parameter that is set has `data_size` bytes at `data`.
    let bytes: &[u8] = unsafe { slice::from_raw_parts(param.data.cast_const().cast(), param.data_size) };
    let push = |value: usize, byte: &u8| Some(value.checked_mul(256)? + usize::from(*byte));
    if cfg!(target_endian = "big") {
        bytes.iter().try_fold(0, push)
    } else {
        bytes.iter().rev().try_fold(0, push)
    }
}

/// Answers with text that outlives the provider's use of it; false where the query is for another type.
pub(crate) fn answer_text(param: &mut Param, text: &CStr) -> bool {
    if param.data_type != PARAM_UTF8_PTR || param.data.is_null() {
        return false;
    }
    // SAFETY: a parameter of this type has space for one address at `data`.
    unsafe { param.data.cast::<*const std::ffi::c_char>().write_unaligned(text.as_ptr()) };
    param.return_size = text.count_bytes();
    true
}

/// Answers with a small number; false where the query is for another type.
pub(crate) fn answer_int(param: &mut Param, value: c_int) -> bool {
    if param.data_type != PARAM_INTEGER || param.data.is_null() || param.data_size != size_of::<c_int>() {
        return false;
    }
    // SAFETY: there is space for an int at `data`.
    unsafe { param.data.cast::<c_int>().write_unaligned(value) };
    param.return_size = size_of::<c_int>();
    true
}

/// Answers with a count; false where the query is for another type.
pub(crate) fn answer_number(param: &mut Param, value: u32) -> bool {
    if param.data_type != PARAM_UNSIGNED_INTEGER
        || param.data.is_null()
        || param.data_size != size_of::<u32>()
    {
        return false;
    }
    // SAFETY: there is space for the number at `data`.
    unsafe { param.data.cast::<u32>().write_unaligned(value) };
    param.return_size = size_of::<u32>();
    true
}

/// The first parameter of this name.
pub(crate) fn find<'p>(params: &'p [Param], name: &CStr) -> Option<&'p Param> {
    params.iter().find(|param| is_text(param.key.cast(), name))
}

/// The first parameter of this name, to be answered.
pub(crate) fn find_mut<'p>(params: &'p mut [Param], name: &CStr) -> Option<&'p mut Param> {
    params.iter_mut().find(|param| is_text(param.key.cast(), name))
}

/// The bytes of a parameter; `None` for other types, and where more than `most` are announced.
pub(crate) fn octets(param: &Param, most: usize) -> Option<&[u8]> {
    let is_there = param.data_type == PARAM_OCTET_STRING && !param.data.is_null() && param.data_size <= most;
    // SAFETY: a parameter that is set has `data_size` bytes at `data`.
    is_there.then(|| unsafe { slice::from_raw_parts(param.data.cast_const().cast(), param.data_size) })
}

/// The room for the bytes that answer a parameter; `None` for other types, and where there are more than `most`.
pub(crate) fn octets_mut(param: &mut Param, most: usize) -> Option<&mut [u8]> {
    let is_there = param.data_type == PARAM_OCTET_STRING && !param.data.is_null() && param.data_size <= most;
    // SAFETY: a parameter that is queried has room for `data_size` bytes at `data`, lent to us alone.
    is_there.then(|| unsafe { slice::from_raw_parts_mut(param.data.cast(), param.data_size) })
}

/// Answers with a length, in a number of 32 or 64 bits; false where the query is for another type.
pub(crate) fn answer_length(param: &mut Param, value: usize) -> bool {
    // As OSSL_PARAM_set_size_t, which says so before it looks at anything.
    param.return_size = 0;
    if !matches!(param.data_type, PARAM_INTEGER | PARAM_UNSIGNED_INTEGER) {
        return false;
    }
    if param.data.is_null() {
        // Only how much room it takes is wanted.
        param.return_size = size_of::<usize>();
        return true;
    }
    match (param.data_size, u32::try_from(value)) {
        // SAFETY: there is room for a number of this size at `data`.
        (4, Ok(value)) => unsafe { param.data.cast::<u32>().write_unaligned(value) },
        // SAFETY: as above.
        (8, _) => unsafe { param.data.cast::<u64>().write_unaligned(value as u64) },
        _ => return false,
    }
    param.return_size = param.data_size;
    true
}

/// Answers with a flag, in a number of 32 or 64 bits, as OSSL_PARAM_set_uint; false where the query is for another type.
pub(crate) fn answer_flag(param: &mut Param, is_so: bool) -> bool {
    let is_answered = answer_length(param, is_so.into());
    if is_answered && param.data.is_null() {
        param.return_size = size_of::<c_uint>();
    }
    is_answered
}

/// The names that come more than once.
pub(crate) fn repeated(list: &[Param]) -> impl Iterator<Item = &CStr> {
    let names = |list| <[Param]>::iter(list).map(key);
    (1..list.len())
        .map(move |at| (key(&list[at]), &list[..at]))
        .filter(move |(name, before)| names(before).any(|other| other == *name))
        .map(|(name, _)| name)
}

/// Answers a list that queries one length and nothing else, this one; false for any other list, and nothing is touched.
///
/// # Safety
///
/// As [`list`].
#[inline]
pub(crate) unsafe fn answered_length(list: *mut Param, name: &CStr, value: usize) -> bool {
    // SAFETY: the caller's word.
    let Some(&Param { key, data_type, data, data_size, .. }) = (unsafe { list.as_ref() }) else {
        return false;
    };
    let is_length = data_type == PARAM_UNSIGNED_INTEGER && data_size == size_of::<usize>() && !data.is_null();
    if key.is_null() || !is_length || !is_text(key.cast(), name) {
        return false;
    }
    // SAFETY: what was looked at is not the end of the list, so that one more follows.
    let after = unsafe { list.add(1) };
    // SAFETY: as above.
    if !unsafe { (*after).key }.is_null() {
        return false;
    }
    // SAFETY: there is space for the length at `data`.
    unsafe { data.cast::<usize>().write_unaligned(value) };
    // SAFETY: the caller's word.
    unsafe { (*list).return_size = size_of::<usize>() };
    true
}

/// The number in a list that sets this one of 32 bits and nothing else; `None` for any other list.
///
/// # Safety
///
/// As [`list`].
#[inline]
pub(crate) unsafe fn number_alone(list: *const Param, name: &CStr) -> Option<u32> {
    // SAFETY: the caller's word.
    let &Param { key, data_type, data, data_size, .. } = unsafe { list.as_ref() }?;
    let is_number = data_type == PARAM_UNSIGNED_INTEGER && data_size == size_of::<u32>() && !data.is_null();
    if key.is_null() || !is_number || !is_text(key.cast(), name) {
        return None;
    }
    // SAFETY: what was looked at is not the end of the list, so that one more follows.
    let after = unsafe { list.add(1) };
    // SAFETY: as above.
    let is_alone = unsafe { (*after).key }.is_null();
    // SAFETY: a number of this length lies at `data`.
    is_alone.then(|| unsafe { data.cast::<u32>().read_unaligned() })
}

/// Whether `text`, which ends in nul, is `other`: without a call, for an entry point that is to need no stack.
fn is_text(text: *const u8, other: &CStr) -> bool {
    other.to_bytes_with_nul().iter().enumerate().all(|(at, byte)| {
        // SAFETY: all before were the same and none of them nul, so that this one exists.
        let byte_at = unsafe { text.add(at) };
        // SAFETY: as above.
        *byte == unsafe { byte_at.read() }
    })
}

/// Answers with bytes, copied or by their address, as OpenSSL's ciphers answer for an IV; false where the type or
/// the space does not fit.
pub(crate) fn answer_octets(param: &mut Param, value: &[u8]) -> bool {
    match param.data_type {
        PARAM_OCTET_STRING if !param.data.is_null() && param.data_size >= value.len() => {
            // SAFETY: there is space for the value at `data`, which is the caller's and not ours.
            unsafe { std::ptr::copy_nonoverlapping(value.as_ptr(), param.data.cast(), value.len()) };
        }
        PARAM_OCTET_PTR if !param.data.is_null() => {
            // SAFETY: a parameter of this type has space for one address at `data`.
            unsafe { param.data.cast::<*const u8>().write_unaligned(value.as_ptr()) };
        }
        _ => return false,
    }
    param.return_size = value.len();
    true
}
