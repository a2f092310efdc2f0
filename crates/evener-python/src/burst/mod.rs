//! Bursts: thousands of messages in one call, over memory that Python's objects lend.
//!
//! `objects -> Views (lent) -> a span, IV, tag and associated data for each job -> checked: nothing overlaps -> Engine, without the
//! interpreter's lock -> outputs, tags, an exception for each job that failed`.

mod arguments;
mod engine;
mod queues;
mod session;
mod spans;

use evener::core::Direction;
use pyo3::exceptions::{PyBufferError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};

use self::arguments::{Cut, Many, associated, places, values};
use self::engine::{Done, Work};
use self::spans::Span;
use crate::exceptions;
use crate::ffi::{self, Place, Views};
use crate::process::enter;

pub(crate) use engine::{configure, statistics};
pub(crate) use session::{Session, algorithms};

/// Outputs, tags one behind the other, and what failed by its number.
type Crypted<'py> = (Option<Bound<'py, PyList>>, Option<Bound<'py, PyBytes>>, Bound<'py, PyDict>);

/// Runs a job of `session` over each buffer.
#[pyfunction]
#[pyo3(signature = (session, buffers, ivs, aads, tags, out, in_place, size, ranges))]
#[expect(clippy::too_many_arguments, reason = "they are Python's, by name there")]
pub(crate) fn crypt_many<'py>(
    py: Python<'py>,
    session: &Bound<'py, Session>,
    buffers: &Bound<'py, PyAny>,
    ivs: Option<&Bound<'py, PyAny>>,
    aads: Option<&Bound<'py, PyAny>>,
    tags: Option<&Bound<'py, PyAny>>,
    out: Option<&Bound<'py, PyAny>>,
    in_place: bool,
    size: Option<usize>,
    ranges: Option<Vec<(usize, usize)>>,
) -> PyResult<Crypted<'py>> {
    enter()?;
    let session = session.get();
    let (algorithm, core) = (session.algorithm(), session.core());
    let given = Many::of(buffers, "buffers")?;
    let aads = aads.map(|aads| Many::of(aads, "aads")).transpose()?;
    let out = out.map(|out| Many::of(out, "out")).transpose()?;
    let room = given.len() + aads.as_ref().map_or(0, Many::len) + out.as_ref().map_or(0, Many::len);
    let mut views = Views::with_room(room);
    let cut = Cut::new(size, ranges)?;
    let inputs = places(&given, &cut, &mut views, in_place, "buffers")?;
    let count = inputs.len();
    let space = Space { inputs: &inputs, in_place, out: out.as_ref(), cut: &cut };
    let (spans, outputs) = space.spans(py, core, &mut views)?;
    let is_opened = algorithm.is_aead() && core.direction() == Direction::Decrypt;
    let (iv_bytes, tag_bytes) = (algorithm.iv_bytes(), algorithm.tag_bytes());
    let ivs = expected(values(ivs, (count, iv_bytes), "ivs")?, iv_bytes > 0, "ivs", core)?;
    let tags = expected(values(tags, (count, tag_bytes), "tags")?, is_opened, "tags", core)?;
    if aads.is_some() && !algorithm.is_aead() {
        return Err(PyValueError::new_err(format!("aads: {algorithm} takes none")));
    }
    let aads = associated(aads.as_ref(), count, &mut views)?;
    if !aads.is_empty() && spans::overlap(&spans, &aads) {
        return Err(PyValueError::new_err(
            "aads overlap: a job would write where another has associated data",
        ));
    }
    let mut work = Work { spans, aads, ivs, tags, results: Vec::new() };
    let done = py.detach(|| engine::run(&session.handle, &mut work));
    drop(views);
    done?;
    let failed = PyDict::new(py);
    for (number, result) in work.results.iter().enumerate() {
        if let Err(error) = result {
            failed.set_item(number, exceptions::of_job(number, *error))?;
        }
    }
    let tags = (tag_bytes > 0 && !is_opened).then(|| PyBytes::new(py, &work.tags));
    Ok((outputs.map(|outputs| finished(py, outputs, &work.results)).transpose()?, tags, failed))
}

/// Values that a session takes and has, or does not take and has not.
fn expected(
    given: Option<Vec<u8>>,
    is_taken: bool,
    name: &str,
    session: &evener::core::Session,
) -> PyResult<Vec<u8>> {
    let about = || format!("{} to {}", session.algorithm(), session.direction());
    match (given, is_taken) {
        (Some(values), true) => Ok(values),
        (None, false) => Ok(Vec::new()),
        (None, true) => Err(PyValueError::new_err(format!("{name}: {} takes one for each job", about()))),
        (Some(_), false) => Err(PyValueError::new_err(format!("{name}: {} takes none", about()))),
    }
}

/// Where outputs go.
struct Space<'a, 'py> {
    inputs: &'a [Place],
    in_place: bool,
    out: Option<&'a Many<'py>>,
    cut: &'a Cut,
}

/// Bytes that are made for outputs.
type Outputs<'py> = Vec<Bound<'py, PyBytes>>;

impl<'py> Space<'_, 'py> {
    /// Every job's memory, and the bytes that were made for it where none was given.
    fn spans(
        &self,
        py: Python<'py>,
        session: &evener::core::Session,
        views: &mut Views,
    ) -> PyResult<(Vec<Span>, Option<Outputs<'py>>)> {
        let nowhere = Place { start: std::ptr::null_mut(), len: 0 };
        let needed = |input: &Place| session.output_bytes_max(input.len);
        let pair = |(input, output): (&Place, Place)| Span { input: *input, output };
        match (self.in_place, self.out) {
            (true, Some(_)) => Err(PyValueError::new_err("in_place and out exclude each other")),
            _ if !session.algorithm().is_cipher() && (self.in_place || self.out.is_some()) => {
                Err(PyValueError::new_err(format!("{} has tags and no output", session.algorithm())))
            }
            _ if !session.algorithm().is_cipher() => {
                Ok((self.inputs.iter().map(|input| pair((input, nowhere))).collect(), None))
            }
            (true, None) if self.inputs.iter().any(|input| needed(input) > input.len) => {
                Err(PyBufferError::new_err(
                    "buffers: padding makes what is encrypted longer; out= has room for it",
                ))
            }
            (true, None) => {
                checked(self.inputs.iter().copied().map(Span::in_place).collect()).map(|spans| (spans, None))
            }
            (false, Some(out)) => {
                let outputs = places(out, self.cut, views, true, "out")?;
                if outputs.len() != self.inputs.len() {
                    let text = format!("out: {} for {} jobs", outputs.len(), self.inputs.len());
                    return Err(PyValueError::new_err(text));
                }
                let short =
                    self.inputs.iter().zip(&outputs).position(|(input, output)| output.len < needed(input));
                if let Some(number) = short {
                    return Err(PyValueError::new_err(format!(
                        "out[{number}] is shorter than what goes there"
                    )));
                }
                checked(self.inputs.iter().zip(outputs).map(pair).collect()).map(|spans| (spans, None))
            }
            (false, None) => {
                let made = self.inputs.iter().map(|input| ffi::new_bytes(py, needed(input)));
                let (bytes, outputs): (Vec<_>, Vec<_>) =
                    made.collect::<PyResult<Vec<_>>>()?.into_iter().unzip();
                Ok((self.inputs.iter().zip(outputs).map(pair).collect(), Some(bytes)))
            }
        }
    }
}

fn checked(spans: Vec<Span>) -> PyResult<Vec<Span>> {
    match spans::overlap(&spans, &[]) {
        true => {
            Err(PyValueError::new_err("buffers overlap: a job would write where another reads or writes"))
        }
        false => Ok(spans),
    }
}

/// The outputs as a list: of what failed `None`, of what came out shorter than its space so much.
fn finished<'py>(py: Python<'py>, outputs: Outputs<'py>, results: &[Done]) -> PyResult<Bound<'py, PyList>> {
    let finished = outputs.into_iter().zip(results).map(|(bytes, result)| match result {
        Ok(written) if *written == bytes.as_bytes().len() => Some(bytes),
        Ok(written) => Some(PyBytes::new(py, &bytes.as_bytes()[..*written])),
        Err(_) => None,
    });
    PyList::new(py, finished.collect::<Vec<_>>())
}
