//! The functions of `include/evener.h`. Each looks at its pointers, does one call of the library, and turns what comes into a number;
//! a panic ends here.
//!
//! A handle is an `Arc` or a box that was given away by `open` and is taken back by `close`. What a program must not do with it (use it after
//! `close`, a queue from two threads at once) is said in the header.

mod queue;
mod runtime;
mod session;
mod words;

use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};

use evener_ring::hold_cancellation;

use crate::{Error, Failure};

thread_local! {
    /// What was wrong in the last call of this thread that failed.
    static LAST: RefCell<CString> = RefCell::default();
}

/// Does a call: its answer, or the number of what was wrong, whose text is kept. Cancellation of the thread is held back meanwhile: it would unwind frames of Rust,
/// which ends the process.
fn answer(call: impl FnOnce() -> Result<i32, Failure>) -> i32 {
    let _held = hold_cancellation();
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(Ok(answer)) => answer,
        Ok(Err(failure)) => fail(failure),
        Err(_) => fail(Error::Panic.into()),
    }
}

fn fail(failure: Failure) -> i32 {
    let error = failure.error as i32;
    // A text with a NUL in it is a name that the program gave; a thread that ends has no text any more.
    let text = CString::new(failure.text.replace('\0', " ")).unwrap_or_default();
    LAST.try_with(|last| *last.borrow_mut() = text).ok();
    error
}

/// A count as C has it.
fn count(count: usize) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}

fn invalid(text: &str) -> Failure {
    Failure::new(Error::Invalid, text)
}

/// # Safety
///
/// Null, or a string with a NUL at its end that no thread changes during the call.
unsafe fn name<'a>(text: *const c_char, what: &str) -> Result<&'a str, Failure> {
    if text.is_null() {
        return Err(invalid(&format!("{what} is NULL")));
    }
    // SAFETY: as the caller promised.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_str().map_err(|_| invalid(&format!("{what} is not a name")))
}

/// # Safety
///
/// Null, or a pointer to a `T` that is whole and that no one else changes for as long as the reference lives.
unsafe fn whole<'a, T>(pointer: *const T, what: &str) -> Result<&'a T, Failure> {
    if pointer.is_null() || !pointer.is_aligned() {
        return Err(invalid(&format!("{what} is no pointer to one")));
    }
    // SAFETY: as the caller promised.
    Ok(unsafe { &*pointer })
}

/// # Safety
///
/// Null, or a pointer to a `T` that no one else touches for as long as the reference lives.
unsafe fn whole_mut<'a, T>(pointer: *mut T, what: &str) -> Result<&'a mut T, Failure> {
    if pointer.is_null() || !pointer.is_aligned() {
        return Err(invalid(&format!("{what} is no pointer to one")));
    }
    // SAFETY: as the caller promised.
    Ok(unsafe { &mut *pointer })
}

/// Gives a handle to the program.
///
/// # Safety
///
/// The place may be written.
unsafe fn give<T>(place: *mut *const T, handle: *const T) {
    // SAFETY: as the caller promised.
    unsafe { place.write(handle) };
}
