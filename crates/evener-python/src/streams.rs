//! Encrypted files as file objects: segments are opened where a program reads, and sealed while it writes.
//!
//! `path, buffer or file object -> Source -> SealedObject` and `SealedWriter -> Sink -> path or file object`. The interpreter's lock is let go of
//! while segments are worked on, and taken again for each call of a file object's.

use std::fs::{File, OpenOptions};
use std::io::{self, IoSliceMut, Write};
use std::ops::{Deref, DerefMut};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use evener::{Caller, DriverFactory as _, Resident, Setup};
use evener_fd::{SystemError, open_named};
use evener_files::FileError;
use evener_files::format::Format;
use evener_files::object::{ReadAt, SealedObject, SealedWriter};
use evener_machine::{Choice, Machine, Silent};
use pyo3::exceptions::{PyBlockingIOError, PyOSError, PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use rustix::fs::{CWD, OFlags, RenameFlags, renameat_with};

use crate::exceptions::{self, Kind};
use crate::ffi::{self, LentText, Views};
use crate::keys::KeyArguments;
use crate::process::enter;

/// The plaintext of an encrypted source, at any place.
#[pyclass(frozen, module = "evener._evener")]
pub(crate) struct Reader {
    opened: OneUser<SealedObject<'static, Box<dyn ReadAt + Send>>>,
    name: Option<PathBuf>,
    size: u64,
}

#[pymethods]
impl Reader {
    #[new]
    fn new(py: Python<'_>, source: &Bound<'_, PyAny>, keys: KeyArguments, segments: usize) -> PyResult<Self> {
        enter()?;
        if segments == 0 || segments > SEGMENTS_MAX {
            return Err(PyValueError::new_err(format!("segments is a number from 1 to {SEGMENTS_MAX}")));
        }
        // A key file may be a pipe, and a passphrase takes its time.
        let opener = py.detach(|| keys.opener())?;
        if matches!(opener, Format::OpensslEnc(_)) {
            return Err(unauthenticated());
        }
        let (source, name) = source_of(source)?;
        let opened =
            py.detach(|| with_caller(|caller| SealedObject::open(&opener, source, segments, caller)))?;
        let opened = opened.map_err(|error| {
            forget_keys();
            exceptions::of_file(name.as_deref(), &error)
        })?;
        let size = opened.text_bytes();
        Ok(Self { opened: OneUser::new(opened), name, size })
    }

    /// Length of the plaintext.
    #[getter]
    const fn size(&self) -> u64 {
        self.size
    }

    /// Bytes of segments that were read from the source.
    #[getter]
    fn bytes_read(&self, py: Python<'_>) -> PyResult<u64> {
        enter()?;
        py.detach(|| Ok(self.opened.lock()?.read_bytes()))
    }

    /// Fills a buffer from a place on; how much there was. A small one is not filled beyond the end of a segment, so that none is opened that
    /// the caller did not ask for.
    fn read_into(&self, py: Python<'_>, place: u64, buffer: &Bound<'_, PyAny>) -> PyResult<usize> {
        enter()?;
        let mut views = Views::with_room(1);
        let space = views.lend_space(buffer)?;
        let read = py.detach(|| {
            let mut opened = self.opened.lock()?;
            let rest = usize::try_from(opened.segment_end(place).saturating_sub(place)).unwrap_or(usize::MAX);
            let len = if space.len() <= AHEAD_BYTES_MAX { space.len().min(rest) } else { space.len() };
            with_caller(|caller| opened.read_at(place, &mut space[..len], caller))
        })?;
        read.map_err(|error| exceptions::of_file(self.name.as_deref(), &error))
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        forget_keys();
    }
}

/// The most that a buffered reader asks for ahead of its user.
const AHEAD_BYTES_MAX: usize = 64 << 10;
/// Segments that a reader keeps open at most.
const SEGMENTS_MAX: usize = 4_096;
/// Segments that a writer collects for a burst.
const BURST_SEGMENTS: usize = 4;

/// What is written, sealed.
#[pyclass(frozen, module = "evener._evener")]
pub(crate) struct Writer {
    /// None once it is finished.
    opened: OneUser<Option<SealedWriter<'static, Sink>>>,
    name: Option<PathBuf>,
}

#[pymethods]
impl Writer {
    #[new]
    fn new(py: Python<'_>, sink: &Bound<'_, PyAny>, keys: KeyArguments, armor: bool) -> PyResult<Self> {
        enter()?;
        let sealer = py.detach(|| keys.sealer())?;
        if matches!(sealer, Format::OpensslEnc(_)) {
            return Err(unauthenticated());
        }
        let (sink, name) = Sink::of(sink)?;
        let opened = py.detach(|| SealedWriter::new(&sealer, armor, BURST_SEGMENTS, sink));
        let opened = opened.map_err(|error| exceptions::of_file(name.as_deref(), &error))?;
        Ok(Self { opened: OneUser::new(Some(opened)), name })
    }

    /// Takes more plaintext; all of it.
    fn write(&self, py: Python<'_>, data: &Bound<'_, PyAny>) -> PyResult<usize> {
        enter()?;
        let mut views = Views::with_room(1);
        let text = views.lend_text(data)?;
        let written = py.detach(|| match &mut *self.opened.lock()? {
            Some(opened) => with_caller(|caller| opened.write(text, caller)).map(Some),
            None => Ok(None),
        })?;
        let written = written.ok_or_else(|| PyValueError::new_err("I/O operation on closed file"))?;
        written.map_err(|error| exceptions::of_file(self.name.as_deref(), &error)).map(|()| text.len())
    }

    /// Seals the last segment; what went to a path is then on the disk.
    fn finish(&self, py: Python<'_>) -> PyResult<()> {
        enter()?;
        let finished = py.detach(|| match self.opened.lock()?.take() {
            Some(opened) => with_caller(|caller| opened.finish(caller).and_then(Sink::settle)),
            None => Ok(Ok(())),
        })?;
        finished.map_err(|error| exceptions::of_file(self.name.as_deref(), &error))
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        forget_keys();
    }
}

// -- one user at a time ------------------------------------------------------------------------------------------

/// What one thread uses at a time; the others wait, without the interpreter's lock. While it is used, code of Python's may run, that of a file
/// object's calls and of signals: what comes back here from there would wait for itself.
struct OneUser<T> {
    value: Mutex<T>,
    /// The thread that has it; 0 for none. Written by that thread.
    user: AtomicUsize,
}

/// What its user has.
struct Using<'a, T> {
    value: MutexGuard<'a, T>,
    user: &'a AtomicUsize,
}

impl<T> OneUser<T> {
    const fn new(value: T) -> Self {
        Self { value: Mutex::new(value), user: AtomicUsize::new(0) }
    }

    /// Waits for it.
    ///
    /// # Errors
    ///
    /// `RuntimeError` where this thread has it already.
    fn lock(&self) -> PyResult<Using<'_, T>> {
        // Relaxed: a thread reads its own number only where it wrote it itself.
        if self.user.load(Ordering::Relaxed) == this_thread() {
            return Err(PyRuntimeError::new_err(
                "reentrant call: the file is in use by this thread, which calls it again from a file object's own \
                 method or from a signal handler",
            ));
        }
        let value = locked(&self.value);
        self.user.store(this_thread(), Ordering::Relaxed);
        Ok(Using { value, user: &self.user })
    }
}

impl<T> Drop for Using<'_, T> {
    fn drop(&mut self) {
        self.user.store(0, Ordering::Relaxed);
    }
}

impl<T> Deref for Using<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T> DerefMut for Using<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.value
    }
}

/// A number that no other living thread has, and not 0.
fn this_thread() -> usize {
    thread_local!(static PLACE: u8 = const { 0 });
    PLACE.with(|place| std::ptr::from_ref(place).addr())
}

// -- where bytes come from, and where they go --------------------------------------------------------------------

/// A source of Python's, and its path where it has one.
fn source_of(given: &Bound<'_, PyAny>) -> PyResult<(Box<dyn ReadAt + Send>, Option<PathBuf>)> {
    if let Ok(path) = given.extract::<PathBuf>() {
        let opened = given.py().detach(|| {
            let file = open_named(&path, OFlags::RDONLY | OFlags::CLOEXEC).map(File::from)?;
            let bytes = file.metadata()?.len();
            Ok(FileSource { file, bytes })
        });
        let source = opened.map_err(|error: io::Error| refused(&path, &error))?;
        return Ok((Box::new(source), Some(path)));
    }
    if ffi::is_buffer(given) {
        return Ok((Box::new(BufferSource(LentText::of(given)?)), None));
    }
    if !(given.hasattr("read")? && given.hasattr("seek")?) {
        return Err(PyTypeError::new_err(
            "a path, a buffer, or a binary file object with read and seek is needed",
        ));
    }
    let bytes = given.call_method1("seek", (0, 2))?.extract()?;
    Ok((Box::new(ObjectSource { file: given.clone().unbind(), bytes }), None))
}

struct FileSource {
    file: File,
    bytes: u64,
}

impl ReadAt for FileSource {
    fn byte_count(&self) -> u64 {
        self.bytes
    }

    fn read_exact_at(&self, parts: &mut [IoSliceMut<'_>], place: u64) -> io::Result<()> {
        each_part(parts, place, |part, place| self.file.read_exact_at(part, place))
    }
}

/// A buffer.
struct BufferSource(LentText);

impl ReadAt for BufferSource {
    fn byte_count(&self) -> u64 {
        self.0.bytes().byte_count()
    }

    fn read_exact_at(&self, parts: &mut [IoSliceMut<'_>], place: u64) -> io::Result<()> {
        self.0.bytes().read_exact_at(parts, place)
    }
}

/// A file object.
struct ObjectSource {
    file: Py<PyAny>,
    bytes: u64,
}

impl ReadAt for ObjectSource {
    fn byte_count(&self) -> u64 {
        self.bytes
    }

    fn read_exact_at(&self, parts: &mut [IoSliceMut<'_>], place: u64) -> io::Result<()> {
        let wanted: usize = parts.iter().map(|part| part.len()).sum();
        Python::attach(|py| {
            let file = self.file.bind(py);
            file.call_method1("seek", (place,))?;
            let mut rest = parts.iter_mut();
            let mut part = rest.next();
            let (mut filled, mut left) = (0, wanted);
            while left > 0 {
                let got = file.call_method1("read", (left,))?.cast_into::<PyBytes>()?;
                let mut bytes = got.as_bytes();
                if bytes.is_empty() || bytes.len() > left {
                    return Ok(false);
                }
                left -= bytes.len();
                while let (Some(space), false) = (&mut part, bytes.is_empty()) {
                    let now = bytes.len().min(space.len() - filled);
                    space[filled..filled + now].copy_from_slice(&bytes[..now]);
                    bytes = &bytes[now..];
                    filled += now;
                    if filled == space.len() {
                        (part, filled) = (rest.next(), 0);
                    }
                }
            }
            Ok(true)
        })
        .map_err(|error: PyErr| io::Error::other(error))
        .and_then(|all| if all { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) })
    }
}

fn each_part(
    parts: &mut [IoSliceMut<'_>],
    mut place: u64,
    mut fill: impl FnMut(&mut [u8], u64) -> io::Result<()>,
) -> io::Result<()> {
    for part in parts {
        fill(part, place)?;
        place += part.len() as u64;
    }
    Ok(())
}

/// Where sealed bytes go.
enum Sink {
    /// A file that was not there.
    File(File),
    /// A file object.
    Object(Py<PyAny>),
}

impl Sink {
    fn of(given: &Bound<'_, PyAny>) -> PyResult<(Self, Option<PathBuf>)> {
        if let Ok(path) = given.extract::<PathBuf>() {
            let file = OpenOptions::new().write(true).create_new(true).open(&path);
            return Ok((Self::File(file.map_err(|error| refused(&path, &error))?), Some(path)));
        }
        if !given.hasattr("write")? {
            return Err(PyTypeError::new_err("a path, or a binary file object with write is needed"));
        }
        Ok((Self::Object(given.clone().unbind()), None))
    }

    fn settle(self) -> Result<(), FileError> {
        match self {
            Self::File(file) => {
                file.sync_all().map_err(|error| FileError::Io(SystemError::of("write the output")(error)))
            }
            Self::Object(_) => Ok(()),
        }
    }
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::File(file) => file.write(bytes),
            Self::Object(object) => Python::attach(|py| {
                let written = object.bind(py).call_method1("write", (PyBytes::new(py, bytes),))?;
                match written.is_none() {
                    // What Python writes as it is says so where it would have to wait.
                    true if object.bind(py).is_instance(&py.import("io")?.getattr("RawIOBase")?)? => {
                        Err(PyBlockingIOError::new_err("the file object takes nothing now"))
                    }
                    // Some say nothing where they took all.
                    true => Ok(bytes.len()),
                    false => written.extract::<usize>(),
                }
            })
            .map_err(|error: PyErr| io::Error::other(error))
            .map(|written| written.min(bytes.len())),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// What `openssl enc` writes shows no damage: no byte of it may be given before all of it was looked at, and then it says nothing.
fn unauthenticated() -> PyErr {
    Kind::Unsupported.exception(
        "the openssl format is not authenticated, and no file object has it: use decrypt and encrypt",
    )
}

/// Gives a file another name, which nothing has: what Python has no function for.
#[pyfunction]
pub(crate) fn rename_new(draft: PathBuf, name: PathBuf) -> PyResult<()> {
    renameat_with(CWD, &draft, CWD, &name, RenameFlags::NOREPLACE).map_err(|errno| {
        PyOSError::new_err((errno.raw_os_error(), "cannot give it its name", name.into_os_string()))
    })
}

fn refused(path: &Path, error: &io::Error) -> PyErr {
    match error.raw_os_error() {
        Some(number) => PyOSError::new_err((number, "cannot open it", path.as_os_str().to_owned())),
        None => PyOSError::new_err(error.to_string()),
    }
}

// -- who runs the jobs -------------------------------------------------------------------------------------------

/// A run without threads of its own: who reads or writes runs the jobs.
fn run() -> PyResult<&'static (Machine, Resident)> {
    static RUN: OnceLock<(Machine, Resident)> = OnceLock::new();
    static STARTING: Mutex<()> = Mutex::new(());
    let _starting = locked(&STARTING);
    if let Some(run) = RUN.get() {
        return Ok(run);
    }
    let operations = [];
    let machine = Machine::only_for(&operations, &Choice::default(), false, &Silent);
    let machine = machine.map_err(|error| exceptions::of_machine(&error))?;
    let setup = Setup { callers: 1, homes: CALLERS_MAX, ..Setup::default() };
    let resident = Resident::start(setup).map_err(|error| PyRuntimeError::new_err(error.to_string()))?;
    Ok(RUN.get_or_init(|| (machine, resident)))
}

/// Threads that read or write at the same time at most.
const CALLERS_MAX: usize = 1_024;

/// Ways in, each with drivers that keep what they made of the keys of the files that they worked on.
struct Idle {
    callers: Vec<Caller<'static, 'static>>,
    /// How often keys were forgotten.
    forgotten: u64,
}

static IDLE: Mutex<Idle> = Mutex::new(Idle { callers: Vec::new(), forgotten: 0 });

/// Runs `work` with a way in for this thread.
fn with_caller<R>(work: impl FnOnce(&mut Caller<'static, 'static>) -> R) -> PyResult<R> {
    let (idle, forgotten) = {
        let mut idle = locked(&IDLE);
        (idle.callers.pop(), idle.forgotten)
    };
    let mut caller = match idle {
        Some(caller) => caller,
        None => {
            let (machine, resident) = run()?;
            let made = resident.caller(machine.core_drivers());
            made.ok_or_else(|| {
                PyRuntimeError::new_err("too many threads read and write encrypted files at the same time")
            })?
        }
    };
    let result = work(&mut caller);
    let mut idle = locked(&IDLE);
    // One that may have worked on a file that was closed meanwhile is dropped, and its keys with it.
    if idle.forgotten == forgotten {
        idle.callers.push(caller);
    }
    Ok(result)
}

/// A file is closed: drops the ways in that may have worked on it, whose drivers wipe its keys. Files that are read or written next get new ones.
fn forget_keys() {
    // In a child of a fork the lock may be the parent's.
    if enter().is_ok() {
        let callers = {
            let mut idle = locked(&IDLE);
            idle.forgotten += 1;
            std::mem::take(&mut idle.callers)
        };
        drop(callers);
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
