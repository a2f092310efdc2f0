//! `cargo xtask demo`: Evener at work on a sample tree, beside other programs, and two pictures.
//!
//! Steps: build -> sample -> key -> encrypt -> decrypt -> compare -> the same work beside cp and OpenSSL ->
//! pictures of this machine's methods and of the papers' experiment. All of it lands in `demo/`.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use crate::programs::{built_evener, first_line_of, run};
use crate::tree::root;

/// Files and bytes of each: some hundred megabytes of mixed sizes.
const SAMPLE: [(usize, usize); 6] =
    [(2, 64 << 20), (16, 4 << 20), (200, 256 << 10), (1_500, 16 << 10), (1_000, 700), (1, 0)];

/// What the demo makes and makes anew the next time.
const SAMPLE_FOLDER: &str = "sample";
const ENCRYPTED: &str = "encrypted";
const DECRYPTED: &str = "decrypted";
const KEY: &str = "key.json";

pub(crate) fn run_demo() -> ExitCode {
    match demo() {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            eprintln!("demo: {reason}");
            ExitCode::FAILURE
        }
    }
}

fn demo() -> Result<(), String> {
    step("Building evener");
    let evener = built_evener()?;
    let stage = Stage { evener, folder: root().join("demo") };
    stage.clear().map_err(|error| format!("{}: {error}", stage.folder.display()))?;
    stage.there_and_back()?;
    stage.beside_others()?;
    stage.pictures()?;
    step("Done: all of this lies in demo/, which may be removed");
    Ok(())
}

fn step(what: &str) {
    println!("\n== {what}");
}

/// The command and the folder it works in.
struct Stage {
    evener: PathBuf,
    folder: PathBuf,
}

impl Stage {
    fn clear(&self) -> io::Result<()> {
        fs::create_dir_all(&self.folder)?;
        for name in [SAMPLE_FOLDER, ENCRYPTED, DECRYPTED] {
            if self.folder.join(name).exists() {
                fs::remove_dir_all(self.folder.join(name))?;
            }
        }
        let key = self.folder.join(KEY);
        if key.exists() { fs::remove_file(key) } else { Ok(()) }
    }

    /// The command with `words`, in the folder.
    fn evener(&self, words: &str) -> Result<(), String> {
        println!("$ evener {words}");
        self.run(&self.evener, &words.split_whitespace().collect::<Vec<_>>())
    }

    fn run(&self, program: impl AsRef<OsStr>, arguments: &[&str]) -> Result<(), String> {
        let mut command = Command::new(program);
        command.args(arguments).current_dir(&self.folder);
        run(command)
    }

    fn there_and_back(&self) -> Result<(), String> {
        step("A sample tree, encrypted, decrypted and compared");
        let sample = self.folder.join(SAMPLE_FOLDER);
        let made = make_sample(&sample, &SAMPLE).map_err(|error| format!("{}: {error}", sample.display()))?;
        println!("{} files, {} MB, in demo/{SAMPLE_FOLDER}", made.files, made.bytes / 1_000_000);
        self.evener(&format!("keygen {KEY}"))?;
        self.evener(&format!("encrypt --key {KEY} -o {ENCRYPTED} {SAMPLE_FOLDER}"))?;
        self.evener(&format!("decrypt --key {KEY} -o {DECRYPTED} {ENCRYPTED}"))?;
        println!("$ diff -r {SAMPLE_FOLDER} {DECRYPTED}");
        self.run("diff", &["-r", SAMPLE_FOLDER, DECRYPTED])?;
        println!("every byte is the same");
        fs::remove_dir_all(self.folder.join(DECRYPTED)).map_err(|error| error.to_string())
    }

    fn beside_others(&self) -> Result<(), String> {
        step("The same kind of work beside cp, openssl and age, in turns");
        let memory = Path::new("/dev/shm");
        let folder = if memory.is_dir() { "/dev/shm" } else { "." };
        self.evener(&format!(
            "bench files --dir {folder} --size 128M --files 400 --file-size 16K --runs 3 --json files.json"
        ))
    }

    fn pictures(&self) -> Result<(), String> {
        step("Methods of this processor: AES-128-CBC in memory");
        self.evener("bench crypt --algorithm AES-128-CBC --runs 5 --json methods.json --svg methods.svg")?;
        step(
            "The papers' experiment with an EMULATED module and processor: no figure here is a speed of Evener",
        );
        self.evener(
            "bench crypt --algorithm AES-128-CBC --module emulated:am3358 --cpu-cost emulated:am3358 --workers 1 \
             --policies cpu_only,module_only,round_robin,polling,shared_queue,adaptive --count 400 --runs 3 \
             --json emulated.json --svg emulated.svg",
        )?;
        for picture in ["methods", "emulated"] {
            self.to_png(picture)?;
        }
        Ok(())
    }

    fn to_png(&self, picture: &str) -> Result<(), String> {
        if first_line_of("rsvg-convert", &["--version"]) == "unknown" {
            println!("demo/{picture}.svg (no PNG: rsvg-convert of the package librsvg2-bin is not there)");
            return Ok(());
        }
        let [svg, png] = ["svg", "png"].map(|kind| format!("{picture}.{kind}"));
        self.run("rsvg-convert", &[&svg, "-o", &png])?;
        println!("demo/{svg}, demo/{png}");
        Ok(())
    }
}

/// What a sample holds.
#[derive(Debug, PartialEq, Eq)]
struct Made {
    files: usize,
    bytes: usize,
}

/// Makes a folder for each row of `sizes`, with so many files of so many bytes.
fn make_sample(root: &Path, sizes: &[(usize, usize)]) -> io::Result<Made> {
    let mut noise = Vec::new();
    File::open("/dev/urandom")?.take(1 << 20).read_to_end(&mut noise)?;
    let mut made = Made { files: 0, bytes: 0 };
    for &(count, bytes) in sizes {
        let folder = root.join(format!("{bytes}-bytes"));
        fs::create_dir_all(&folder)?;
        for number in 0..count {
            // Each file starts elsewhere in the noise, so that one taken for another would be noticed.
            noise.rotate_left(16);
            write_repeated(&folder.join(format!("file-{number:04}")), &noise, bytes)?;
        }
        made.files += count;
        made.bytes += count * bytes;
    }
    Ok(made)
}

fn write_repeated(path: &Path, noise: &[u8], bytes: usize) -> io::Result<()> {
    let mut file = File::create_new(path)?;
    let mut left = bytes;
    while left > 0 {
        let part = left.min(noise.len());
        file.write_all(&noise[..part])?;
        left -= part;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sample_has_some_hundred_megabytes_of_mixed_sizes() {
        let bytes: usize = SAMPLE.iter().map(|(count, bytes)| count * bytes).sum();
        assert!((200_000_000..500_000_000).contains(&bytes), "{bytes}");
    }

    #[test]
    fn a_sample_holds_what_it_says_and_no_two_files_are_alike() {
        let root = std::env::temp_dir().join(format!("evener-xtask-{}", std::process::id()));
        let made = make_sample(&root, &[(2, 3 << 20), (3, 700), (1, 0)]).unwrap();
        let mut contents = std::collections::BTreeSet::new();
        for folder in fs::read_dir(&root).unwrap() {
            for file in fs::read_dir(folder.unwrap().path()).unwrap() {
                contents.insert(fs::read(file.unwrap().path()).unwrap());
            }
        }
        fs::remove_dir_all(&root).unwrap();
        let bytes = contents.iter().map(Vec::len).sum();
        assert_eq!(made, Made { files: contents.len(), bytes });
        assert_eq!(made.files, 6);
    }
}
