//! Segments that no process has and no anchor names: whatever took the anchor away, a logout or a restart of a service, left the segment.
//!
//! Who is about to make a segment: [`remove_replaced`] (what its own anchor named last), [`remove_orphans`] (the system's list -> those of this user, of our length, that
//! no process has attached -> the header is whole -> the anchor whose path it has is gone, or names another).
//!
//! No process loses what it uses. Who makes a segment has it attached before the header is whole, and until the anchor names it. Who has read an anchor and attaches the segment
//! while it is taken for an orphan either comes too late, and makes one, or keeps it: what is removed goes with the last that has it attached.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Read as _;
use std::os::fd::AsFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::atomic::Ordering::Acquire;

use evener_fd::{Unusable, open_private};
use evener_ring::{Segment, Words as _};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::process::geteuid;

use super::anchor_text::{HEADER, Named, named, read};
use crate::layout::{Header, MAGIC, PATH_BYTES, Shape, VERSION};

/// Removes the segment that an anchor named, of whichever layout, where no process has it.
pub(super) fn remove_replaced(text: &Named) {
    let Ok(segment) = Segment::attach_whole(text.segment, geteuid().as_raw()) else { return };
    if words(&segment, Header::Magic) == [MAGIC] && words(&segment, Header::Number) == text.number {
        _ = segment.remove_unshared();
    }
}

/// Removes the segments of this user and shape whose anchors name them no longer.
pub(super) fn remove_orphans(shape: Shape) {
    let mut list = String::new();
    // Where the system does not list them, they stay.
    if File::open("/proc/sysvipc/shm")
        .is_ok_and(|file| file.take(LIST_BYTES).read_to_string(&mut list).is_ok())
    {
        unattached(&list, shape).take(ORPHANS_MAX).for_each(|number| remove_orphan(number, shape));
    }
}

/// Those in a list (proc_sysvipc(5)) that may be ours and that no process has attached.
fn unattached(list: &str, shape: Shape) -> impl Iterator<Item = i32> {
    let (uid, bytes) = (u64::from(geteuid().as_raw()), shape.word_count() as u64 * 4);
    list.lines().filter_map(move |line| {
        let columns: Vec<&str> = line.split_ascii_whitespace().collect();
        let number = |at: usize| columns.get(at)?.parse::<u64>().ok();
        // Length, attachments, owner, maker.
        let is_ours = [3, 6, 7, 9].map(number) == [bytes, 0, uid, uid].map(Some);
        columns.get(1)?.parse().ok().filter(|_| is_ours)
    })
}

fn remove_orphan(number: i32, shape: Shape) {
    let Ok(segment) = Segment::attach(number, shape.word_count(), geteuid().as_raw()) else { return };
    let is_whole =
        words(&segment, Header::Magic) == [MAGIC, VERSION] && words(&segment, Header::Shape) == shape.words();
    let named = Named { number: words(&segment, Header::Number), segment: number };
    let path = path(&segment);
    if is_whole && path.is_some_and(|path| is_orphan(Path::new(OsStr::from_bytes(&path)), &named)) {
        _ = segment.remove_unshared();
    }
}

/// So many words of the header.
fn words<const N: usize>(segment: &Segment, first: Header) -> [u32; N] {
    std::array::from_fn(|step| {
        segment.words().get(first as usize + step).map_or(0, |word| word.load(Acquire))
    })
}

/// The path of the anchor; none where it did not fit, or an older release made the segment.
fn path(segment: &Segment) -> Option<Vec<u8>> {
    let words: [u32; PATH_BYTES / 4] = words(segment, Header::Path);
    let bytes = words.into_iter().flat_map(u32::to_ne_bytes).take_while(|byte| *byte != 0);
    Some(bytes.collect::<Vec<u8>>()).filter(|path| path.starts_with(b"/"))
}

/// An anchor's path as the header has it: all zeros where there is no space for it.
pub(super) fn path_words(path: &Path) -> [u32; PATH_BYTES / 4] {
    let path = Some(path.as_os_str().as_bytes()).filter(|path| path.len() <= PATH_BYTES);
    let mut bytes = path.unwrap_or_default().iter().copied().chain(std::iter::repeat(0));
    std::array::from_fn(|_| u32::from_ne_bytes(std::array::from_fn(|_| bytes.next().unwrap_or_default())))
}

/// Whether the anchor at `path` is gone or names another segment. Where that cannot be told, it is not.
fn is_orphan(path: &Path, segment: &Named) -> bool {
    let (Some(directory), Some(name)) = (path.parent(), path.file_name()) else { return false };
    let directory = match open_private(directory, geteuid().as_raw()) {
        Ok(directory) => directory,
        Err(why) => return why == Unusable::Missing,
    };
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    match rustix::fs::openat(&directory, name, flags, Mode::empty()) {
        Ok(file) => read(file.as_fd()).is_ok_and(|text| named(&text).is_none_or(|named| named != *segment)),
        Err(error) => error == Errno::NOENT,
    }
}

/// Of the system's list: a line has some 150, and there are 4096 segments at most, where the limit was not raised.
const LIST_BYTES: u64 = 1 << 20;

/// Segments that one process looks at. Assumed, not measured: 256, because each takes some microseconds.
const ORPHANS_MAX: usize = 256;

const _: () = assert!(HEADER <= Header::Used as usize, "the path is no part of what the anchor says too");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_the_systems_list_those_are_looked_at_that_may_be_ours_and_that_nobody_has() {
        let (uid, bytes) = (geteuid().as_raw(), Shape::USUAL.word_count() * 4);
        let line = |number: i32, bytes: usize, attached: u32, owner: u32, maker: u32| {
            format!("         0 {number}   600 {bytes} 77 78 {attached} {owner} 0 {maker} 0 1 1 1 0 0\n")
        };
        let list = [
            "       key      shmid perms                  size  cpid  lpid nattch   uid   gid  cuid  cgid\n"
                .to_owned(),
            line(1, bytes, 0, uid, uid),
            line(2, bytes, 1, uid, uid),
            line(3, bytes - 4, 0, uid, uid),
            line(4, bytes, 0, uid + 1, uid),
            line(5, bytes, 0, uid, uid + 1),
            line(491_544, bytes, 0, uid, uid),
            "1 2 3".to_owned(),
        ];
        assert_eq!(unattached(&list.concat(), Shape::USUAL).collect::<Vec<_>>(), [1, 491_544]);
    }

    #[test]
    fn a_path_is_kept_whole_or_not_at_all() {
        let text = |path: &str| path_words(Path::new(path)).map(u32::to_ne_bytes).concat();
        let fits = format!("/{}", "a".repeat(PATH_BYTES - 1));
        assert_eq!(text(&fits), fits.as_bytes());
        assert_eq!(text(&(fits + "a")), [0; PATH_BYTES]);
        assert_eq!(text("/run/x")[..8], *b"/run/x\0\0");
    }
}
