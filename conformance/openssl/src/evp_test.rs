//! OpenSSL's own `evp_test`, built from the distribution's sources against the library that is installed, or as another
//! OpenSSL's own build made it ([`openssl_build`]).
//!
//! Path: its sources, those of its test library and of the option parser -> `cc` -> a run over the data files ->
//! one [`Stanzas`] per file, from the lines that it prints.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::{env, fs, io, process};

use crate::{Setup, bounded, fetched, openssl_build, openssl_sources};

/// The program, ready to run.
pub struct EvpTest {
    program: PathBuf,
    data: Vec<PathBuf>,
    /// Of the sources, as `3.0.22`.
    pub version: String,
}

/// What the program says at the end of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stanzas {
    /// Name of the data file.
    pub file: String,
    /// Its line, as `Completed 961 tests with 0 errors and 0 skipped`.
    pub result: String,
}

impl Stanzas {
    /// The numbers of the line: tests, errors, skipped.
    #[must_use]
    pub fn counts(&self) -> [u64; 3] {
        let mut numbers = self.result.split_whitespace().filter_map(|word| word.parse().ok());
        [(); 3].map(|()| numbers.next().unwrap_or(0))
    }
}

impl EvpTest {
    /// Builds it unless that was done before; `None` where there are no sources.
    ///
    /// # Panics
    ///
    /// Where it does not build.
    #[must_use]
    pub fn build() -> Option<Self> {
        let (sources, version) = openssl_sources()?;
        let program = match openssl_build() {
            Some(build) => build.join("test/evp_test"),
            None => fetched("openssl")?.join(format!("evp_test-{version}")),
        };
        if !program.exists() {
            let compiler = env::var_os("CC").unwrap_or_else(|| "cc".into());
            compile(&compiler, &sources, &program).expect("OpenSSL's evp_test builds");
        }
        let data = data_files(&sources).expect("the data files lie beside the program");
        Some(Self { program, data, version })
    }

    /// Runs all data files in one process.
    ///
    /// # Panics
    ///
    /// Where the program dies or does not come to the end of a file.
    #[must_use]
    pub fn run(&self, setup: &Setup) -> Vec<Stanzas> {
        let mut command = setup.command(&self.program.to_string_lossy());
        command.arg("-config").arg(setup.path()).args(&self.data);
        let output = bounded(RUN_SECONDS_MAX, &command);
        let stderr = String::from_utf8_lossy(&output.stderr);
        let lines = stderr.lines().filter_map(|line| Some(line.trim_start().strip_prefix("# ")?.trim()));
        let results: Vec<_> = lines.filter(|line| line.starts_with("Completed ")).collect();
        assert_eq!(results.len(), self.data.len(), "with {}: {:?}\n{stderr}", setup.name(), output.status);
        let named = |(path, result): (&PathBuf, &&str)| Stanzas {
            file: file_name(path),
            result: (*result).to_owned(),
        };
        self.data.iter().zip(&results).map(named).collect()
    }
}

impl EvpTest {
    /// Runs the data files of these names by `checker`, a program that takes another with its arguments.
    ///
    /// # Panics
    ///
    /// Where the checker cannot be started, or takes longer than ten minutes.
    #[must_use]
    pub fn run_under(&self, checker: &[&str], setup: &Setup, names: &[&str]) -> Output {
        let mut command = setup.command(checker[0]);
        command.args(&checker[1..]).arg(&self.program).arg("-config").arg(setup.path());
        let named = |path: &&PathBuf| names.contains(&file_name(path).as_str());
        command.args(self.data.iter().filter(named));
        bounded(CHECKED_SECONDS_MAX, &command)
    }
}

/// Valgrind takes 20 to 50 times as long.
const CHECKED_SECONDS_MAX: u32 = 600;

/// On the machine of the figures a run takes 4 s; on an emulated processor 220 s, where others use the host, too.
const RUN_SECONDS_MAX: u32 = if cfg!(target_arch = "x86_64") { 300 } else { 1_500 };

/// As `test/build.info` lists them, without the two that only supply what a test program lacks.
const LIBRARY: [&str; 15] = [
    "basic_output",
    "output",
    "driver",
    "tests",
    "cb",
    "stanza",
    "format_output",
    "load",
    "fake_random",
    "main",
    "testutil_init",
    "options",
    "provider",
    "apps_shims",
    "random",
];

/// Builds the program by `compiler`.
///
/// # Errors
///
/// What the compiler said, or that the file cannot be written.
pub fn compile(compiler: &OsStr, sources: &Path, program: &Path) -> io::Result<()> {
    // Under its name only when it is whole: other tests look for it meanwhile.
    let unfinished = program.with_extension(format!("{}.tmp", process::id()));
    let mut command = Command::new(compiler);
    command.args(["-O1", "-w", "-o"]).arg(&unfinished);
    for folder in ["include", "apps/include", "test", "."] {
        command.arg("-I").arg(sources.join(folder));
    }
    command.arg(sources.join("test/evp_test.c")).arg(sources.join("apps/lib/opt.c"));
    command.args(LIBRARY.map(|name| sources.join(format!("test/testutil/{name}.c"))));
    let built = bounded(RUN_SECONDS_MAX, command.arg("-lcrypto"));
    if !built.status.success() {
        return Err(io::Error::other(String::from_utf8_lossy(&built.stderr).into_owned()));
    }
    fs::rename(unfinished, program)
}

/// Its data files among the sources.
///
/// # Errors
///
/// [`io::Error`] where the folder cannot be read.
pub fn data_files(sources: &Path) -> io::Result<Vec<PathBuf>> {
    let listed = fs::read_dir(sources.join("test/recipes/30-test_evp_data"))?;
    let mut paths: Vec<_> = listed.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "txt"));
    paths.sort();
    Ok(paths)
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}
