//! CPython's C functions that PyO3 has no safe form of below Python 3.11: the buffer protocol, bytes that are filled after they are made, and
//! the interpreter's number.
//!
//! `Py_buffer` and the two functions over it are part of the stable ABI from 3.11 on. 3.9 and 3.10, which are final, have them under the same
//! names with the same layout (`Include/cpython/object.h` of both), so one module for 3.9 and all that follow may call them.
#![allow(
    unsafe_code,
    reason = "room: calls of the C interface of CPython that PyO3 does not wrap for the stable ABI of 3.9"
)]

use std::ffi::{c_char, c_int, c_void};
use std::ptr;

use pyo3::ffi::{
    Py_ssize_t, PyBytes_AsString, PyBytes_FromStringAndSize, PyInterpreterState_Get,
    PyInterpreterState_GetID, PyObject,
};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// `Py_buffer`.
#[repr(C)]
struct View {
    buf: *mut c_void,
    obj: *mut PyObject,
    len: Py_ssize_t,
    itemsize: Py_ssize_t,
    readonly: c_int,
    ndim: c_int,
    format: *mut c_char,
    shape: *mut Py_ssize_t,
    strides: *mut Py_ssize_t,
    suboffsets: *mut Py_ssize_t,
    internal: *mut c_void,
}

const EMPTY: View = View {
    buf: ptr::null_mut(),
    obj: ptr::null_mut(),
    len: 0,
    itemsize: 0,
    readonly: 0,
    ndim: 0,
    format: ptr::null_mut(),
    shape: ptr::null_mut(),
    strides: ptr::null_mut(),
    suboffsets: ptr::null_mut(),
    internal: ptr::null_mut(),
};

/// One contiguous span of bytes; and one that may be written.
const PYBUF_SIMPLE: c_int = 0;
const PYBUF_WRITABLE: c_int = 1;

unsafe extern "C" {
    fn PyObject_GetBuffer(exporter: *mut PyObject, view: *mut View, flags: c_int) -> c_int;
    fn PyBuffer_Release(view: *mut View);
    fn PyObject_CheckBuffer(object: *mut PyObject) -> c_int;
}

/// Memory of Python objects, lent by the buffer protocol: it neither moves nor goes away while this is there.
pub(crate) struct Views {
    // Never grows: an exporter may have pointers into its view, which must stay where it is.
    views: Vec<View>,
}

/// Where lent memory lies.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub(crate) start: *mut u8,
    pub(crate) len: usize,
}

// SAFETY: it is an address and a length; what may be done there is said where memory is lent.
unsafe impl Send for Place {}
// SAFETY: as above.
unsafe impl Sync for Place {}

// SAFETY: a view is plain data to everybody but its exporter, which is called with the interpreter's lock only ([`Views::lend`], [`Drop`]).
unsafe impl Send for Views {}

impl Views {
    /// Room for `count`.
    pub(crate) fn with_room(count: usize) -> Self {
        Self { views: Vec::with_capacity(count) }
    }

    /// Has `exporter` lend its bytes.
    ///
    /// # Errors
    ///
    /// What the exporter raises: `TypeError` where it is no buffer, `BufferError` where it is not contiguous or may not be written.
    ///
    /// # Panics
    ///
    /// Where there is no room: a fault of Evener's.
    pub(crate) fn lend(&mut self, exporter: &Bound<'_, PyAny>, is_written: bool) -> PyResult<Place> {
        let flags = if is_written { PYBUF_WRITABLE } else { PYBUF_SIMPLE };
        assert!(self.views.len() < self.views.capacity(), "room was made for each");
        let place = self.views.len();
        self.views.push(EMPTY);
        let view = &raw mut self.views[place];
        // SAFETY: the object is alive and the interpreter's lock is held, as `Bound` says; the view is empty and stays where it is.
        if unsafe { PyObject_GetBuffer(exporter.as_ptr(), view, flags) } != 0 {
            self.views.pop();
            return Err(PyErr::fetch(exporter.py()));
        }
        let view = &self.views[place];
        Ok(Place { start: view.buf.cast(), len: usize::try_from(view.len).unwrap_or_default() })
    }
}

impl Views {
    /// Memory to be written. Nothing else may touch it meanwhile, which is its owner's to see to.
    ///
    /// # Errors
    ///
    /// As [`Views::lend`].
    pub(crate) fn lend_space(&mut self, exporter: &Bound<'_, PyAny>) -> PyResult<&mut [u8]> {
        match self.lend(exporter, true)? {
            Place { len: 0, .. } => Ok(&mut []),
            // SAFETY: so many bytes are lent there for as long as `self` is borrowed, and may be written.
            Place { start, len } => Ok(unsafe { std::slice::from_raw_parts_mut(start, len) }),
        }
    }

    /// Memory to be read, which its owner does not change meanwhile.
    ///
    /// # Errors
    ///
    /// As [`Views::lend`].
    pub(crate) fn lend_text(&mut self, exporter: &Bound<'_, PyAny>) -> PyResult<&[u8]> {
        match self.lend(exporter, false)? {
            Place { len: 0, .. } => Ok(&[]),
            // SAFETY: so many bytes are lent there for as long as `self` is borrowed.
            Place { start, len } => Ok(unsafe { std::slice::from_raw_parts(start, len) }),
        }
    }
}

/// A lender of one view, and where its memory lies.
pub(crate) struct LentText {
    _views: Views,
    place: Place,
}

// SAFETY: the place is memory that the views have lent for as long as both are there; a pointer says nothing of threads by itself.
unsafe impl Send for LentText {}

impl LentText {
    /// Has `exporter` lend its bytes, to be read.
    ///
    /// # Errors
    ///
    /// As [`Views::lend`].
    pub(crate) fn of(exporter: &Bound<'_, PyAny>) -> PyResult<Self> {
        let mut views = Views::with_room(1);
        let place = views.lend(exporter, false)?;
        Ok(Self { _views: views, place })
    }

    /// The bytes, which their owner does not change meanwhile.
    pub(crate) fn bytes(&self) -> &[u8] {
        match self.place {
            Place { len: 0, .. } => &[],
            // SAFETY: so many bytes are lent there for as long as `self` is there.
            Place { start, len } => unsafe { std::slice::from_raw_parts(start, len) },
        }
    }
}

impl Drop for Views {
    fn drop(&mut self) {
        Python::attach(|_| {
            for view in &mut self.views {
                // SAFETY: it was filled by PyObject_GetBuffer, is released once, and the interpreter's lock is held.
                unsafe { PyBuffer_Release(view) };
            }
        });
    }
}

/// Whether an object has the buffer protocol.
pub(crate) fn is_buffer(object: &Bound<'_, PyAny>) -> bool {
    // SAFETY: the object is alive and the interpreter's lock is held, as `Bound` says.
    unsafe { PyObject_CheckBuffer(object.as_ptr()) == 1 }
}

/// Copies the bytes of a buffer to the start of `to` where they fit; how many it has.
///
/// # Errors
///
/// As [`Views::lend`].
pub(crate) fn copy_bytes(exporter: &Bound<'_, PyAny>, to: &mut [u8]) -> PyResult<usize> {
    let mut view = EMPTY;
    // SAFETY: the object is alive and the interpreter's lock is held, as `Bound` says; the view stays where it is until it is released.
    if unsafe { PyObject_GetBuffer(exporter.as_ptr(), &raw mut view, PYBUF_SIMPLE) } != 0 {
        return Err(PyErr::fetch(exporter.py()));
    }
    let len = usize::try_from(view.len).unwrap_or_default();
    if len <= to.len() && len > 0 {
        // SAFETY: so many bytes are lent there, there is space for them, and the interpreter's memory is not ours.
        unsafe { ptr::copy_nonoverlapping(view.buf.cast::<u8>(), to.as_mut_ptr(), len) };
    }
    // SAFETY: it was filled by PyObject_GetBuffer and is released once.
    unsafe { PyBuffer_Release(&raw mut view) };
    Ok(len)
}

/// Bytes that no other thread has yet, and where they are to be filled. Their content is whatever was there: all of it is to be written before
/// Python sees them.
///
/// # Errors
///
/// `MemoryError`.
pub(crate) fn new_bytes(py: Python<'_>, len: usize) -> PyResult<(Bound<'_, PyBytes>, Place)> {
    let size =
        Py_ssize_t::try_from(len).map_err(|_| pyo3::exceptions::PyOverflowError::new_err("too long"))?;
    // SAFETY: a null pointer asks for bytes without content, and the interpreter's lock is held.
    let made = unsafe { PyBytes_FromStringAndSize(ptr::null(), size) };
    // SAFETY: it is a new reference, or null with an exception set.
    let made = unsafe { Bound::from_owned_ptr_or_err(py, made) }?;
    // SAFETY: it is a bytes object, and CPython lets its only owner write into it.
    let start = unsafe { PyBytes_AsString(made.as_ptr()) };
    Ok((made.cast_into::<PyBytes>()?, Place { start: start.cast(), len }))
}

/// The number of the interpreter that runs: 0 is the main one.
pub(crate) fn interpreter(_: Python<'_>) -> i64 {
    // SAFETY: a thread that holds an interpreter's lock has an interpreter.
    let this = unsafe { PyInterpreterState_Get() };
    // SAFETY: it is the running interpreter.
    unsafe { PyInterpreterState_GetID(this) }
}
