//! Members of a tar archive by their headers: written as POSIX has it (pax), read as POSIX and GNU tar write them.
//!
//! The crate `tar` knows the fields of a header; what goes beyond one, and where anything is put, is here and in the files beside it.

use std::ffi::CString;

use tar::{EntryType, Header};

use super::acl;
use crate::error::FormatError;
use crate::output::Xattrs;

/// Headers and contents fill such blocks.
pub(super) const BLOCK_BYTES: usize = 512;
/// The longest name that a header holds.
const NAME_BYTES_MAX: usize = 100;
/// The largest numbers that a header holds in octal digits: of eleven, and of seven.
const LARGE_MAX: u64 = 0o777_7777_7777;
const SMALL_MAX: u64 = 0o777_7777;
/// Attributes that access lists are.
const ACLS: [(&str, &std::ffi::CStr); 2] =
    [("SCHILY.acl.access", c"system.posix_acl_access"), ("SCHILY.acl.default", c"system.posix_acl_default")];
const XATTR: &str = "SCHILY.xattr.";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    File,
    Directory,
    SymbolicLink,
    /// Another name of a member before.
    HardLink,
    /// A device or pipe.
    Special,
}

/// One member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Member {
    pub(super) path: Vec<u8>,
    pub(super) kind: Kind,
    /// Length of the contents that follow.
    pub(super) bytes: u64,
    /// Where a link points.
    pub(super) target: Vec<u8>,
    pub(super) mode: u32,
    pub(super) owner: (u32, u32),
    /// Seconds and nanoseconds.
    pub(super) time: (i64, u32),
    pub(super) xattrs: Xattrs,
}

/// Bytes that fill the last block of so many.
pub(super) fn padding(bytes: u64) -> u64 {
    bytes.next_multiple_of(BLOCK_BYTES as u64) - bytes
}

impl Member {
    /// Appends its header, behind one with what that has no place for.
    pub(super) fn write(&self, to: &mut Vec<u8>) {
        let records = self.records();
        if !records.is_empty() {
            let mut header = Header::new_ustar();
            header.set_entry_type(EntryType::XHeader);
            let name = [
                b"PaxHeaders/".as_slice(),
                self.path.rsplit(|byte| *byte == b'/').next().unwrap_or_default(),
            ];
            put_name(&mut header, &name.concat());
            header.set_mode(0o644);
            finish(&mut header, records.len() as u64, to);
            to.extend_from_slice(&records);
            to.resize(to.len() + usize::try_from(padding(records.len() as u64)).unwrap_or(0), 0);
        }
        let mut header = Header::new_ustar();
        header.set_entry_type(match self.kind {
            Kind::File => EntryType::Regular,
            Kind::Directory => EntryType::Directory,
            Kind::SymbolicLink => EntryType::Symlink,
            Kind::HardLink => EntryType::Link,
            Kind::Special => EntryType::Fifo,
        });
        put_name(&mut header, &self.path);
        header.as_old_mut().linkname[..self.target.len().min(NAME_BYTES_MAX)]
            .copy_from_slice(&self.target[..self.target.len().min(NAME_BYTES_MAX)]);
        header.set_mode(self.mode & 0o7777);
        header.set_uid(u64::from(self.owner.0).min(SMALL_MAX));
        header.set_gid(u64::from(self.owner.1).min(SMALL_MAX));
        header.set_mtime(u64::try_from(self.time.0).unwrap_or(0).min(LARGE_MAX));
        finish(&mut header, self.bytes.min(LARGE_MAX), to);
    }

    /// What its header has no place for.
    fn records(&self) -> Vec<u8> {
        let mut records = Vec::new();
        let mut add = |key: &str, value: &[u8]| record(key, value, &mut records);
        if self.path.len() > NAME_BYTES_MAX {
            add("path", &self.path);
        }
        if self.target.len() > NAME_BYTES_MAX {
            add("linkpath", &self.target);
        }
        if self.bytes > LARGE_MAX {
            add("size", self.bytes.to_string().as_bytes());
        }
        for (key, number) in [("uid", self.owner.0), ("gid", self.owner.1)] {
            if u64::from(number) > SMALL_MAX {
                add(key, number.to_string().as_bytes());
            }
        }
        if self.time.1 > 0 || !(0..=LARGE_MAX.cast_signed_or_max()).contains(&self.time.0) {
            add("mtime", decimal(self.time).as_bytes());
        }
        for (name, value) in &self.xattrs {
            let acl = ACLS.iter().find(|acl| acl.1 == name.as_c_str());
            match acl.and_then(|acl| Some((acl.0, acl::text(value)?))) {
                Some((key, text)) => add(key, text.as_bytes()),
                None => add(&format!("{XATTR}{}", name.to_string_lossy()), value),
            }
        }
        records
    }
}

/// A number that may be compared with a signed one.
trait Signed {
    fn cast_signed_or_max(self) -> i64;
}

impl Signed for u64 {
    fn cast_signed_or_max(self) -> i64 {
        i64::try_from(self).unwrap_or(i64::MAX)
    }
}

fn put_name(header: &mut Header, name: &[u8]) {
    let bytes = name.len().min(NAME_BYTES_MAX);
    header.as_old_mut().name[..bytes].copy_from_slice(&name[..bytes]);
}

fn finish(header: &mut Header, bytes: u64, to: &mut Vec<u8>) {
    header.set_size(bytes);
    header.set_cksum();
    to.extend_from_slice(header.as_bytes());
}

/// `LENGTH KEY=VALUE`, and a line's end; the length counts itself.
fn record(key: &str, value: &[u8], to: &mut Vec<u8>) {
    let rest = key.len() + value.len() + 3;
    let mut length = rest;
    while length != rest + length.to_string().len() {
        length = rest + length.to_string().len();
    }
    to.extend_from_slice(format!("{length} {key}=").as_bytes());
    to.extend_from_slice(value);
    to.push(b'\n');
}

/// Seconds since 1970 with their parts.
fn decimal((seconds, nanoseconds): (i64, u32)) -> String {
    match (seconds, nanoseconds) {
        (seconds, 0) => seconds.to_string(),
        (..0, part) => format!("-{}.{:09}", -(seconds + 1), 1_000_000_000 - part),
        (seconds, part) => format!("{seconds}.{part:09}"),
    }
}

fn time_of(text: &str) -> Option<(i64, u32)> {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let seconds: i64 = whole.parse().ok()?;
    let digits: String = part.chars().chain("000000000".chars()).take(9).collect();
    let nanoseconds: u32 = digits.parse().ok()?;
    if whole.starts_with('-') && nanoseconds > 0 {
        return Some((seconds.checked_sub(1)?, 1_000_000_000 - nanoseconds));
    }
    Some((seconds, nanoseconds))
}

/// What stood before a header and counts for it.
#[derive(Default)]
pub(super) struct Before {
    path: Option<Vec<u8>>,
    target: Option<Vec<u8>>,
    bytes: Option<u64>,
    owner: (Option<u32>, Option<u32>),
    time: Option<(i64, u32)>,
    xattrs: Xattrs,
    /// Why the member cannot be taken.
    pub(super) refusal: Option<&'static str>,
}

/// What a header is.
pub(super) enum Read {
    /// The end of the archive, or of its first half.
    Zeros,
    /// A text of so many bytes that counts for the next member.
    Text(Text, u64),
    Member(Member),
}

#[derive(Clone, Copy)]
pub(super) enum Text {
    Records,
    Path,
    Target,
    /// For all members: nothing in it is of use.
    Global,
}

impl Before {
    /// Takes a text in.
    pub(super) fn add(&mut self, kind: Text, text: &[u8]) -> Result<(), FormatError> {
        let name = || Some(text.split(|byte| *byte == 0).next().unwrap_or_default().to_vec());
        match kind {
            Text::Records => self.add_records(text)?,
            Text::Path => self.path = name(),
            Text::Target => self.target = name(),
            Text::Global => {}
        }
        Ok(())
    }

    fn add_records(&mut self, mut rest: &[u8]) -> Result<(), FormatError> {
        while !rest.is_empty() {
            let space = rest.iter().position(|byte| *byte == b' ').ok_or_else(damaged)?;
            let length = std::str::from_utf8(&rest[..space]).ok().and_then(|text| text.parse::<usize>().ok());
            let length =
                length.filter(|length| (space + 3..=rest.len()).contains(length)).ok_or_else(damaged)?;
            let (record, behind) = rest.split_at(length);
            let record = record[space + 1..].strip_suffix(b"\n").ok_or_else(damaged)?;
            let sign = record.iter().position(|byte| *byte == b'=').ok_or_else(damaged)?;
            self.add_record(&String::from_utf8_lossy(&record[..sign]), &record[sign + 1..])?;
            rest = behind;
        }
        Ok(())
    }

    fn add_record(&mut self, key: &str, value: &[u8]) -> Result<(), FormatError> {
        let text = || std::str::from_utf8(value).map_err(|_| damaged());
        let number = || text()?.parse::<u64>().map_err(|_| damaged());
        match key {
            "path" => self.path = Some(value.to_vec()),
            "linkpath" => self.target = Some(value.to_vec()),
            "size" => self.bytes = Some(number()?),
            "uid" => self.owner.0 = u32::try_from(number()?).ok(),
            "gid" => self.owner.1 = u32::try_from(number()?).ok(),
            "mtime" => self.time = Some(time_of(text()?).ok_or_else(damaged)?),
            key if key.starts_with("GNU.sparse.") => self.refusal = Some("members with holes (tar -S)"),
            key => {
                if let Some((_, name)) = ACLS.iter().find(|acl| acl.0 == key) {
                    match acl::attribute(text()?) {
                        Some(list) => self.xattrs.push(((*name).to_owned(), list)),
                        None => self.refusal = Some("access lists by names of users (tar --numeric-owner)"),
                    }
                } else if let Some(name) = key.strip_prefix(XATTR) {
                    let name = CString::new(name).map_err(|_| damaged())?;
                    self.xattrs.push((name, value.to_vec()));
                }
            }
        }
        Ok(())
    }

    /// Reads the header that this stood before.
    pub(super) fn read(&mut self, block: &[u8; BLOCK_BYTES]) -> Result<Read, FormatError> {
        if block.iter().all(|byte| *byte == 0) {
            return Ok(Read::Zeros);
        }
        let header = Header::from_byte_slice(block);
        if header.cksum().ok() != Some(sum(block)) {
            return Err(damaged());
        }
        let size = match self.bytes {
            Some(bytes) => bytes,
            None => header.entry_size().map_err(|_| damaged())?,
        };
        let kind = match block[TYPE_AT] {
            b'x' => return Ok(Read::Text(Text::Records, header.entry_size().map_err(|_| damaged())?)),
            b'g' => return Ok(Read::Text(Text::Global, header.entry_size().map_err(|_| damaged())?)),
            b'L' => return Ok(Read::Text(Text::Path, header.entry_size().map_err(|_| damaged())?)),
            b'K' => return Ok(Read::Text(Text::Target, header.entry_size().map_err(|_| damaged())?)),
            b'S' => {
                return Err(FormatError::Unsupported("an archive whose members have holes (tar -S)".into()));
            }
            b'1' => Kind::HardLink,
            b'2' => Kind::SymbolicLink,
            b'5' => Kind::Directory,
            b'3' | b'4' | b'6' => Kind::Special,
            _ => Kind::File,
        };
        let before = std::mem::take(self);
        let path = before.path.unwrap_or_else(|| header.path_bytes().into_owned());
        // So old archives write directories.
        let kind = if kind == Kind::File && path.ends_with(b"/") { Kind::Directory } else { kind };
        let has_contents = matches!(kind, Kind::File | Kind::HardLink);
        let id = |read: std::io::Result<u64>| {
            read.ok().and_then(|id| u32::try_from(id).ok()).unwrap_or(u32::MAX - 1)
        };
        let seconds = seconds_of(header);
        self.refusal = before.refusal;
        Ok(Read::Member(Member {
            path,
            kind,
            bytes: if has_contents { size } else { 0 },
            target: before.target.unwrap_or_else(|| {
                header.link_name_bytes().map(std::borrow::Cow::into_owned).unwrap_or_default()
            }),
            mode: header.mode().map_err(|_| damaged())?,
            owner: (
                before.owner.0.unwrap_or_else(|| id(header.uid())),
                before.owner.1.unwrap_or_else(|| id(header.gid())),
            ),
            time: before.time.unwrap_or((seconds, 0)),
            xattrs: before.xattrs,
        }))
    }
}

/// The time of a header; before 1970 GNU's tar writes it as a number of two's complement.
fn seconds_of(header: &Header) -> i64 {
    match header.as_old().mtime {
        [0xFF, .., a, b, c, d, e, f, g, h] => i64::from_be_bytes([a, b, c, d, e, f, g, h]),
        _ => header.mtime().ok().and_then(|seconds| i64::try_from(seconds).ok()).unwrap_or(0),
    }
}

/// Where a header has its kind.
const TYPE_AT: usize = 156;

/// The sum of a header's bytes, with blanks where the sum itself stands.
fn sum(block: &[u8; BLOCK_BYTES]) -> u32 {
    let byte = |(at, byte): (usize, &u8)| if (148..156).contains(&at) { 32 } else { u32::from(*byte) };
    block.iter().enumerate().map(byte).sum()
}

fn damaged() -> FormatError {
    FormatError::Header { format: "tar", fact: "a header in it is none" }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn back(member: &Member) -> Member {
        let mut written = Vec::new();
        member.write(&mut written);
        let (mut before, mut rest) = (Before::default(), written.as_slice());
        loop {
            let (block, behind) = rest.split_first_chunk::<BLOCK_BYTES>().unwrap();
            match before.read(block).unwrap() {
                Read::Member(member) => return member,
                Read::Text(kind, bytes) => {
                    let (text, padded) = behind.split_at(usize::try_from(bytes).unwrap());
                    before.add(kind, text).unwrap();
                    rest = &padded[usize::try_from(padding(bytes)).unwrap()..];
                }
                Read::Zeros => unreachable!("nothing was written"),
            }
        }
    }

    #[test]
    fn a_member_comes_back_as_it_was_written_whatever_its_header_has_no_place_for() {
        let plain = Member {
            path: b"a/b".to_vec(),
            kind: Kind::File,
            bytes: 77,
            target: Vec::new(),
            mode: 0o4755,
            owner: (1, 2),
            time: (1_000_000_000, 0),
            xattrs: Vec::new(),
        };
        let long = vec![b'x'; 5_000];
        let members = [
            plain.clone(),
            Member { path: long.clone(), target: long, kind: Kind::SymbolicLink, bytes: 0, ..plain.clone() },
            Member { bytes: 1 << 40, owner: (u32::MAX - 2, 1 << 30), ..plain.clone() },
            Member { time: (-5, 250_000_000), ..plain.clone() },
            Member { time: (1 << 40, 1), ..plain.clone() },
            Member {
                xattrs: vec![(c"user.a=b".to_owned(), b"\n=\0 12 path=evil\n".to_vec())],
                ..plain.clone()
            },
            Member { path: vec![0xff; 99], kind: Kind::Directory, bytes: 0, ..plain },
        ];
        for member in members {
            let expected = match &member.xattrs[..] {
                // The sign that ends a key is no part of one, so such a name is cut there.
                [_] => Member {
                    xattrs: vec![(c"user.a".to_owned(), b"b=\n=\0 12 path=evil\n".to_vec())],
                    ..member.clone()
                },
                _ => member.clone(),
            };
            assert_eq!(back(&member), expected);
        }
    }

    #[test]
    fn a_damaged_header_or_text_is_an_error_and_no_panic() {
        let member = Member {
            path: vec![b'p'; 300],
            kind: Kind::File,
            bytes: 1,
            target: Vec::new(),
            mode: 0,
            owner: (0, 0),
            time: (1, 5),
            xattrs: Vec::new(),
        };
        let mut written = Vec::new();
        member.write(&mut written);
        for at in 0..BLOCK_BYTES {
            let mut block: [u8; BLOCK_BYTES] = *written.first_chunk().unwrap();
            block[at] ^= 1;
            assert!(Before::default().read(&block).is_err(), "{at}");
        }
        for text in
            ["5", "9 a=b\n", "3 \n", "6 ab\n\n", "99999999999999999999 a=b\n", "12 mtime=x.y\n", "9 size=a\n"]
        {
            assert!(Before::default().add(Text::Records, text.as_bytes()).is_err(), "{text:?}");
        }
    }
}
