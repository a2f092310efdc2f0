//! A tree as people have them: few files hold most of the bytes, and most files are small.

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::path::Path;

/// Bytes of a file, and how many of a thousand bytes of the tree are in such files.
const SIZES: [(u64, u64); 5] = [(u64::MAX, 400), (2 << 20, 330), (256 << 10, 230), (16 << 10, 39), (700, 1)];

/// The most that lies about at a time, as a multiple of the sample: itself, what each of five programs made of it, one that is being made, and one to spare.
pub(super) const COPIES_MAX: u64 = 8;

/// What a sample holds.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Made {
    pub(super) files: u64,
    pub(super) bytes: u64,
}

/// Makes a folder for each size, with files of `bytes` together; none is empty, for `age -d` makes no file of nothing.
pub(super) fn make(root: &Path, bytes: u64) -> io::Result<Made> {
    let mut noise = Vec::new();
    File::open("/dev/urandom")?.take(1 << 20).read_to_end(&mut noise)?;
    fs::create_dir(root)?;
    let mut made = Made { files: 0, bytes: 0 };
    for (most, share) in SIZES {
        let together = bytes / 1_000 * share;
        let each = most.min(together);
        let folder = root.join(format!("{each}-bytes"));
        fs::create_dir_all(&folder)?;
        for number in 0..together.checked_div(each).unwrap_or(0) {
            // Each file starts elsewhere in the noise, so that one taken for another would be noticed.
            noise.rotate_left(16);
            write_repeated(&folder.join(format!("file-{number:03}")), &noise, each)?;
            made.files += 1;
            made.bytes += each;
        }
    }
    Ok(made)
}

fn write_repeated(path: &Path, noise: &[u8], bytes: u64) -> io::Result<()> {
    let mut file = File::create_new(path)?;
    let mut left = bytes;
    while left > 0 {
        let part = usize::try_from(left).map_or(noise.len(), |left| left.min(noise.len()));
        file.write_all(&noise[..part])?;
        left -= part as u64;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn a_sample_holds_what_it_says_in_files_of_many_sizes_and_no_two_are_alike() {
        let root = std::env::temp_dir().join(format!("evener-sample-{}", std::process::id()));
        let made = make(&root, 8 << 20).unwrap();
        let (mut contents, mut sizes) = (BTreeSet::new(), BTreeSet::new());
        for folder in fs::read_dir(&root).unwrap() {
            for file in fs::read_dir(folder.unwrap().path()).unwrap() {
                let content = fs::read(file.unwrap().path()).unwrap();
                sizes.insert(content.len());
                contents.insert(content);
            }
        }
        fs::remove_dir_all(&root).unwrap();
        let bytes: usize = contents.iter().map(Vec::len).sum();
        assert_eq!(made, Made { files: contents.len() as u64, bytes: bytes as u64 });
        assert_eq!(sizes.len(), SIZES.len());
        assert!((7 << 20..=8 << 20).contains(&bytes), "{bytes}");
    }
}
