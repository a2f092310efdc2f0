//! Runtimes: open, close, statistics, costs as text.

use std::ffi::{c_char, c_int};
use std::slice;
use std::sync::Arc;

use evener::core::{Algorithm, Direction};

use super::{answer, give, invalid, name, whole, whole_mut};
use crate::abi::{NO_COST_CACHE, Options, Statistics, THREADS_ALL};
use crate::explain::{Kind, explain};
use crate::runtime::{Request, Runtime};
use crate::{Error, Failure};

#[unsafe(no_mangle)]
unsafe extern "C" fn evener_runtime_open(runtime: *mut *const Runtime, options: *const Options) -> c_int {
    answer(|| {
        if runtime.is_null() {
            return Err(invalid("runtime is NULL"));
        }
        let request = match options.is_null() {
            true => Request::default(),
            // SAFETY: the program gives a whole struct with strings that stay as they are during the call.
            false => unsafe { request(options) }?,
        };
        let opened = Arc::new(Runtime::open(&request)?);
        // SAFETY: the program gives a place for a handle.
        unsafe { give(runtime, Arc::into_raw(opened)) };
        Ok(0)
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn evener_runtime_close(runtime: *const Runtime) -> c_int {
    answer(|| {
        if runtime.is_null() {
            return Ok(0);
        }
        // SAFETY: `open` gave it away, and the program gives it back once.
        let runtime = unsafe { Arc::from_raw(runtime) };
        runtime.close().map(|()| 0)
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn evener_statistics(runtime: *const Runtime, statistics: *mut Statistics) -> c_int {
    answer(|| {
        // SAFETY: the program gives an open runtime.
        let runtime = unsafe { whole(runtime, "runtime") }?;
        if statistics.is_null() || !statistics.is_aligned() {
            return Err(invalid("statistics is no pointer to one"));
        }
        // SAFETY: the program gives a struct whose first word says how much of it there is.
        let size = unsafe { statistics.cast::<usize>().read() };
        if !(size_of::<usize>() + size_of::<u64>()..=SIZE_MAX).contains(&size) {
            return Err(invalid("statistics->size is none that a struct evener_statistics ever had"));
        }
        let length = size.min(size_of::<Statistics>());
        let known = Statistics { size: length, ..crate::statistics(runtime)? };
        let space = statistics.cast::<u8>();
        // SAFETY: so much of both is there, and they are two.
        unsafe { space.copy_from_nonoverlapping((&raw const known).cast(), length) };
        let rest = space.wrapping_add(length);
        // SAFETY: so much of it is left, which may be nothing.
        unsafe { rest.write_bytes(0, size - length) };
        Ok(0)
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn evener_explain(
    runtime: *const Runtime,
    algorithm: *const c_char,
    direction: c_int,
    bytes: usize,
    in_place: c_int,
    text: *mut c_char,
    length: *mut usize,
) -> c_int {
    answer(|| {
        // SAFETY: the program gives an open runtime.
        let runtime = unsafe { whole(runtime, "runtime") }?;
        // SAFETY: the program gives a string.
        let algorithm = algorithm_of(unsafe { name(algorithm, "algorithm") }?)?;
        // SAFETY: the program gives a length that no other thread touches.
        let length = unsafe { whole_mut(length, "length") }?;
        if text.is_null() && *length > 0 {
            return Err(invalid("text is NULL and *length is not 0"));
        }
        let kind = Kind { algorithm, direction: direction_of(direction)?, bytes, in_place: in_place != 0 };
        let known = explain(runtime, kind)?;
        let copied = known.len().min(length.saturating_sub(1));
        if *length > 0 {
            // SAFETY: the program gives so much space, which is not the library's.
            unsafe { text.cast::<u8>().copy_from_nonoverlapping(known.as_ptr(), copied) };
            // SAFETY: there is one byte more than was copied.
            let end = unsafe { text.add(copied) };
            // SAFETY: as above.
            unsafe { end.write(0) };
        }
        *length = known.len();
        Ok(0)
    })
}

/// More bytes than any struct will ever have that begins with its size: who says so has not begun it, and what lies there is not looked at.
const SIZE_MAX: usize = 4_096;

/// # Safety
///
/// A pointer to as much of a whole struct as its first word says; names in it are strings.
unsafe fn request(options: *const Options) -> Result<Request, Failure> {
    if !options.is_aligned() {
        return Err(invalid("options is no pointer to one"));
    }
    // SAFETY: as the caller promised.
    let size = unsafe { options.cast::<usize>().read() };
    let is_one = (size_of::<Options>()..=SIZE_MAX).contains(&size);
    // SAFETY: as the caller promised.
    if !is_one || !unsafe { is_zero_beyond(options, size) } {
        return Err(invalid("options is none that this library knows: it begins as EVENER_OPTIONS_INIT"));
    }
    // SAFETY: it is whole.
    let options = unsafe { options.read() };
    let threads = match options.threads {
        THREADS_ALL => None,
        threads => Some(usize::try_from(threads).map_err(|_| invalid("options->threads is below -1"))?),
    };
    if options.flags & !NO_COST_CACHE != 0 {
        return Err(invalid("options->flags has bits that this library does not know"));
    }
    let policy = match options.policy.is_null() {
        true => None,
        // SAFETY: as the caller promised.
        false => Some(unsafe { name(options.policy, "options->policy") }?.to_owned()),
    };
    // SAFETY: as the caller promised.
    let modules = unsafe { names(options.modules) }?;
    Ok(Request { threads, modules, policy, no_cost_cache: options.flags & NO_COST_CACHE != 0 })
}

/// Whether what a later header adds says nothing.
///
/// # Safety
///
/// There are so many bytes.
unsafe fn is_zero_beyond(options: *const Options, size: usize) -> bool {
    let known = size_of::<Options>();
    // SAFETY: as the caller promised.
    let added = unsafe { slice::from_raw_parts(options.cast::<u8>().wrapping_add(known), size - known) };
    added.iter().all(|byte| *byte == 0)
}

/// # Safety
///
/// Null, or pointers to strings with a null behind them.
unsafe fn names(mut row: *const *const c_char) -> Result<Vec<String>, Failure> {
    let mut names = Vec::new();
    while !row.is_null() {
        // SAFETY: the row goes on until its null was read.
        let text = unsafe { row.read() };
        if text.is_null() {
            break;
        }
        // SAFETY: as the caller promised.
        names.push(unsafe { name(text, "options->modules") }?.to_owned());
        // SAFETY: behind one that is not null there is one more.
        row = unsafe { row.add(1) };
    }
    Ok(names)
}

pub(super) fn algorithm_of(name: &str) -> Result<Algorithm, Failure> {
    name.parse().map_err(|error| Failure::new(Error::Algorithm, error))
}

pub(super) fn direction_of(direction: c_int) -> Result<Direction, Failure> {
    match direction {
        0 => Ok(Direction::Encrypt),
        1 => Ok(Direction::Decrypt),
        _ => Err(invalid("direction is neither EVENER_ENCRYPT nor EVENER_DECRYPT")),
    }
}
