//! What Python gives for a burst: many buffers or pieces of one, and for each job an IV, a tag, associated data.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

use crate::ffi::{self, Place, Views};

/// Several objects, or pieces of one.
pub(super) enum Many<'py> {
    List(Bound<'py, PyList>),
    One(Bound<'py, PyAny>),
}

impl<'py> Many<'py> {
    /// One buffer, or whatever can be gone through.
    pub(super) fn of(given: &Bound<'py, PyAny>, name: &str) -> PyResult<Self> {
        if ffi::is_buffer(given) {
            return Ok(Self::One(given.clone()));
        }
        if let Ok(list) = given.cast::<PyList>() {
            return Ok(Self::List(list.clone()));
        }
        if let Ok(tuple) = given.cast::<PyTuple>() {
            return Ok(Self::List(tuple.to_list()));
        }
        let items = given.try_iter().map_err(|_| {
            PyTypeError::new_err(format!(
                "{name}: neither a buffer (bytes, bytearray, numpy array) nor a sequence of them"
            ))
        })?;
        PyList::new(given.py(), items.collect::<PyResult<Vec<_>>>()?).map(Self::List)
    }

    /// How many objects it is.
    pub(super) fn len(&self) -> usize {
        match self {
            Self::List(list) => list.len(),
            Self::One(_) => 1,
        }
    }
}

/// How one buffer is cut.
pub(super) enum Cut {
    /// Not at all.
    Whole,
    /// Into pieces of equal length.
    Pieces(usize),
    /// Into these, from and to.
    Ranges(Vec<(usize, usize)>),
}

impl Cut {
    pub(super) fn new(size: Option<usize>, ranges: Option<Vec<(usize, usize)>>) -> PyResult<Self> {
        match (size, ranges) {
            (Some(_), Some(_)) => Err(PyValueError::new_err("size and ranges exclude each other")),
            (Some(0), None) => Err(PyValueError::new_err("size is 0")),
            (Some(size), None) => Ok(Self::Pieces(size)),
            (None, Some(ranges)) => Ok(Self::Ranges(ranges)),
            (None, None) => Ok(Self::Whole),
        }
    }

    /// The pieces of a buffer at `place`.
    fn pieces(&self, place: Place, name: &str) -> PyResult<Vec<Place>> {
        match self {
            Self::Whole => Ok(vec![place]),
            Self::Pieces(size) if place.len % size != 0 => Err(PyValueError::new_err(format!(
                "{name}: its {} bytes are no multiple of size, {size}",
                place.len
            ))),
            Self::Pieces(size) => {
                (0..place.len / size).map(|piece| part(place, piece * size, *size, name)).collect()
            }
            Self::Ranges(ranges) => ranges
                .iter()
                .map(|&(start, end)| match end.checked_sub(start) {
                    Some(len) => part(place, start, len, name),
                    None => {
                        Err(PyValueError::new_err(format!("ranges: {start} to {end} ends before it begins")))
                    }
                })
                .collect(),
        }
    }
}

fn part(place: Place, start: usize, len: usize, name: &str) -> PyResult<Place> {
    match start.checked_add(len) {
        Some(end) if end <= place.len => Ok(Place { start: place.start.wrapping_add(start), len }),
        _ => Err(PyValueError::new_err(format!("{name}: a range ends behind its {} bytes", place.len))),
    }
}

/// Where the spans of all jobs lie.
pub(super) fn places(
    given: &Many<'_>,
    cut: &Cut,
    views: &mut Views,
    is_written: bool,
    name: &str,
) -> PyResult<Vec<Place>> {
    match given {
        Many::One(buffer) => cut.pieces(views.lend(buffer, is_written)?, name),
        Many::List(_) if !matches!(cut, Cut::Whole) => {
            Err(PyValueError::new_err("size and ranges cut one buffer; of several each is a job"))
        }
        Many::List(list) => list
            .iter()
            .enumerate()
            .map(|(number, buffer)| {
                views.lend(&buffer, is_written).map_err(|error| at(&buffer, name, number, error))
            })
            .collect(),
    }
}

/// Says which of several it was, where the exporter says only what is wrong.
fn at(buffer: &Bound<'_, PyAny>, name: &str, number: usize, error: PyErr) -> PyErr {
    let py = buffer.py();
    let text = format!("{name}[{number}]: {}", error.value(py));
    PyErr::from_type(error.get_type(py), text)
}

/// A value of equal length for each of `count` jobs, one behind the other, from one buffer or from as many.
pub(super) fn values(
    given: Option<&Bound<'_, PyAny>>,
    (count, each): (usize, usize),
    name: &str,
) -> PyResult<Option<Vec<u8>>> {
    let Some(given) = given else { return Ok(None) };
    let total = count.checked_mul(each).ok_or_else(|| PyValueError::new_err(format!("{name}: too many")))?;
    let mut all = vec![0; total];
    match Many::of(given, name)? {
        Many::One(buffer) => {
            let copied = ffi::copy_bytes(&buffer, &mut all)?;
            if copied != total {
                return Err(PyValueError::new_err(format!(
                    "{name}: {copied} bytes, where {count} jobs take {each} each"
                )));
            }
        }
        Many::List(list) => {
            if list.len() != count {
                return Err(PyValueError::new_err(format!("{name}: {} for {count} jobs", list.len())));
            }
            for ((number, value), space) in list.iter().enumerate().zip(all.chunks_exact_mut(each.max(1))) {
                let copied =
                    ffi::copy_bytes(&value, space).map_err(|error| at(&value, name, number, error))?;
                if copied != each {
                    return Err(PyValueError::new_err(format!(
                        "{name}[{number}]: {copied} bytes and not {each}"
                    )));
                }
            }
        }
    }
    Ok(Some(all))
}

/// Associated data of each job: the same for all, or one each.
pub(super) fn associated(given: Option<&Many<'_>>, count: usize, views: &mut Views) -> PyResult<Vec<Place>> {
    match given {
        None => Ok(Vec::new()),
        Some(Many::One(buffer)) => Ok(vec![views.lend(buffer, false)?; count]),
        Some(Many::List(list)) if list.len() != count => {
            Err(PyValueError::new_err(format!("aads: {} for {count} jobs", list.len())))
        }
        Some(given) => places(given, &Cut::Whole, views, false, "aads"),
    }
}
