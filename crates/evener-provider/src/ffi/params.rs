//! OpenSSL's lists of parameters as slices, with the type and the room of each value looked at.

use std::ffi::{CStr, c_int};
use std::slice;

use evener_ossl_sys::{PARAM_INTEGER, PARAM_UTF8_PTR, Param};

/// The parameters of a list that ends with a null key.
///
/// # Safety
///
/// `list` is null or such a list, and nobody else uses it meanwhile.
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

/// Answers with text that outlives the provider's use of it; false where something else was asked for.
pub(crate) fn answer_text(param: &mut Param, text: &CStr) -> bool {
    if param.data_type != PARAM_UTF8_PTR || param.data.is_null() {
        return false;
    }
    // SAFETY: a parameter of this type has room for one address at `data`.
    unsafe { param.data.cast::<*const std::ffi::c_char>().write_unaligned(text.as_ptr()) };
    param.return_size = text.count_bytes();
    true
}

/// Answers with a small number; false where something else was asked for.
pub(crate) fn answer_int(param: &mut Param, value: c_int) -> bool {
    if param.data_type != PARAM_INTEGER || param.data.is_null() || param.data_size != size_of::<c_int>() {
        return false;
    }
    // SAFETY: there is room for an int at `data`.
    unsafe { param.data.cast::<c_int>().write_unaligned(value) };
    param.return_size = size_of::<c_int>();
    true
}
