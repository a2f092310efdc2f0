//! Names and texts, which need neither runtime nor queue.

use std::ffi::{CStr, CString, c_char, c_int, c_uint};
use std::ptr;
use std::sync::OnceLock;

use evener::core::Algorithm;

use super::LAST;
use crate::Error;
use crate::error::{OK, PENDING};

#[unsafe(no_mangle)]
extern "C" fn evener_algorithm(index: c_uint) -> *const c_char {
    static NAMES: OnceLock<Vec<CString>> = OnceLock::new();
    let names = NAMES.get_or_init(|| {
        Algorithm::ALL.iter().filter_map(|algorithm| CString::new(algorithm.name()).ok()).collect()
    });
    let name = usize::try_from(index).ok().and_then(|index| names.get(index));
    name.map_or(ptr::null(), |name| name.as_ptr())
}

#[unsafe(no_mangle)]
extern "C" fn evener_strerror(error: c_int) -> *const c_char {
    let found = Error::ALL.into_iter().find(|other| *other as i32 == error);
    let text = match (error, found) {
        (_, Some(error)) => error.meaning(),
        (OK, None) => "no error\0",
        (PENDING, None) => "under way\0",
        (_, None) => "a number that is none of Evener's\0",
    };
    text.as_ptr().cast()
}

#[unsafe(no_mangle)]
extern "C" fn evener_error_text() -> *const c_char {
    const NONE: &CStr = c"";
    LAST.try_with(|last| last.borrow().as_ptr()).unwrap_or(NONE.as_ptr())
}

#[unsafe(no_mangle)]
const extern "C" fn evener_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}
