//! Messages of the kernel's FUSE protocol, as far as CUSE needs it (`linux/fuse.h`, version 7.31). All numbers are in the
//! machine's order.

use crate::wiped::Wiped;
use rustix::io::Errno;

/// Longest message: a page for its head, 32 for data.
pub(crate) const MESSAGE_BYTES_MAX: usize = 4_096 + (128 << 10) + 4_096;

/// Data of one request that the kernel hands over at most, in either direction.
const DATA_BYTES_MAX: u32 = 128 << 10;

const HEAD_BYTES: usize = 40;
const REPLY_HEAD_BYTES: usize = 16;

pub(crate) const OPEN: u32 = 14;
pub(crate) const RELEASE: u32 = 18;
const INTERRUPT: u32 = 36;
pub(crate) const IOCTL: u32 = 39;
const POLL: u32 = 40;
const INIT: u32 = 4_096;

/// `CUSE_UNRESTRICTED_IOCTL`: we say which memory of the client a call is about.
const UNRESTRICTED: u32 = 1;
/// `FUSE_IOCTL_COMPAT`: the client has 32 bits and the kernel 64.
const COMPAT: u32 = 1;
/// `FUSE_IOCTL_RETRY`: the reply says which memory, and the call comes again with it.
const RETRY: u32 = 1 << 2;
/// `FUSE_POLL_SCHEDULE_NOTIFY`: the client sleeps, and wants a notice when that changes.
const SCHEDULE_NOTIFY: u32 = 1;
/// `FUSE_NOTIFY_POLL`: the notice that is sent then.
const NOTIFY_POLL: i32 = 1;

/// A finished request can be fetched: `POLLIN`, `POLLRDNORM`.
pub(crate) const POLL_IN: u32 = 0x41;
/// A request can be submitted: `POLLOUT`, `POLLWRNORM`.
pub(crate) const POLL_OUT: u32 = 0x104;

/// A request of the kernel.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Message<'a> {
    /// Its number, to be repeated in the reply.
    pub(crate) unique: u64,
    pub(crate) request: Request<'a>,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Request<'a> {
    Init,
    Open,
    Release {
        client: u64,
    },
    Ioctl(Ioctl<'a>),
    /// Asks whether the client may go on; with a `sleeper` it sleeps, and is to be woken by that number.
    Poll {
        client: u64,
        sleeper: Option<u64>,
    },
    Interrupt,
    Other,
}

/// A call of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ioctl<'a> {
    pub(crate) client: u64,
    /// The thread that calls; 0 where it has no number in our name space.
    pub(crate) thread: u32,
    pub(crate) number: u32,
    /// The call's argument: an address of the client's.
    pub(crate) argument: u64,
    /// The client's records are laid out for 32 bits.
    pub(crate) is_compat: bool,
    /// The client's memory that was requested, one part behind the other.
    pub(crate) data: &'a [u8],
    /// Space in the client's memory was requested.
    pub(crate) has_space: bool,
}

/// A part of the client's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) address: u64,
    pub(crate) bytes: u64,
}

impl<'a> Message<'a> {
    /// Takes a message apart; `None` where it is not as long as it says.
    pub(crate) fn parse(bytes: &'a [u8]) -> Option<Self> {
        let body = bytes.get(HEAD_BYTES..)?;
        if usize::try_from(u32_at(bytes, 0)?).ok()? != bytes.len() {
            return None;
        }
        let request = match u32_at(bytes, 4)? {
            INIT => Request::Init,
            OPEN => Request::Open,
            RELEASE => Request::Release { client: u64_at(body, 0)? },
            IOCTL => Request::Ioctl(Ioctl::parse(u32_at(bytes, 32)?, body)?),
            POLL => {
                let (client, sleeper) = (u64_at(body, 0)?, u64_at(body, 8)?);
                let sleeps = u32_at(body, 16)? & SCHEDULE_NOTIFY != 0;
                Request::Poll { client, sleeper: sleeps.then_some(sleeper) }
            }
            INTERRUPT => Request::Interrupt,
            _ => Request::Other,
        };
        Some(Self { unique: u64_at(bytes, 8)?, request })
    }
}

impl<'a> Ioctl<'a> {
    /// `struct fuse_ioctl_in` and what follows it.
    fn parse(thread: u32, body: &'a [u8]) -> Option<Self> {
        let data = body.get(32..)?;
        let bytes = usize::try_from(u32_at(body, 24)?).ok()?;
        Some(Self {
            client: u64_at(body, 0)?,
            thread,
            is_compat: u32_at(body, 8)? & COMPAT != 0,
            number: u32_at(body, 12)?,
            argument: u64_at(body, 16)?,
            data: data.get(..bytes)?,
            has_space: u32_at(body, 28)? > 0,
        })
    }
}

/// The answer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    Empty,
    Error(Errno),
    /// A client came and gets this number.
    Opened(u64),
    /// The call is to come again with this memory, and space for that.
    Retry {
        input: Vec<Span>,
        output: Vec<Span>,
    },
    /// A call went well; these bytes go to the requested space, one part behind the other.
    Ioctl(Wiped),
    /// What a client may do: [`POLL_IN`], [`POLL_OUT`].
    Polled(u32),
}

impl Reply {
    /// The message of it, which may hold text in clear.
    pub(crate) fn bytes(&self, unique: u64) -> Wiped {
        let mut body = Wiped::default();
        let mut error = 0_i32;
        match self {
            Self::Empty => {}
            Self::Error(errno) => error = -errno.raw_os_error(),
            Self::Opened(client) => {
                body.extend(client.to_ne_bytes());
                body.extend([0; 8]);
            }
            Self::Retry { input, output } => {
                let count = |spans: &[Span]| u32::try_from(spans.len()).unwrap_or(u32::MAX);
                [0, RETRY, count(input), count(output)]
                    .iter()
                    .for_each(|word| body.extend(word.to_ne_bytes()));
                for span in input.iter().chain(output) {
                    body.extend(span.address.to_ne_bytes());
                    body.extend(span.bytes.to_ne_bytes());
                }
            }
            Self::Ioctl(data) => {
                // At once: what grows leaves a copy behind.
                body.reserve_exact(16 + data.len());
                body.extend([0; 16]);
                body.extend_from_slice(data);
            }
            Self::Polled(events) => {
                body.extend(events.to_ne_bytes());
                body.extend([0; 4]);
            }
        }
        framed(unique, error, &body)
    }
}

/// The answer to the first message: which node it is to be.
pub(crate) fn init_reply(unique: u64, name: &str) -> Wiped {
    // struct cuse_init_out: version, unused, flags, most that is read and written, number of the device (0: any), spare.
    let words = [7, 31, 0, UNRESTRICTED, DATA_BYTES_MAX, DATA_BYTES_MAX, 0, 0];
    let mut body: Vec<u8> = words.iter().flat_map(|word: &u32| word.to_ne_bytes()).collect();
    body.extend([0; 40]);
    body.extend(format!("DEVNAME={name}\0").bytes());
    framed(unique, 0, &body)
}

/// Wakes a client that sleeps in `poll`: a notification, which answers no message.
pub(crate) fn wake(sleeper: u64) -> Wiped {
    framed(0, NOTIFY_POLL, &sleeper.to_ne_bytes())
}

fn framed(unique: u64, error: i32, body: &[u8]) -> Wiped {
    let length = u32::try_from(REPLY_HEAD_BYTES + body.len()).expect("replies are short");
    let mut bytes = Wiped::with_capacity(REPLY_HEAD_BYTES + body.len());
    bytes.extend(length.to_ne_bytes());
    bytes.extend(error.to_ne_bytes());
    bytes.extend(unique.to_ne_bytes());
    bytes.extend_from_slice(body);
    bytes
}

fn u32_at(bytes: &[u8], place: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(place..place + 4)?.try_into().ok()?))
}

fn u64_at(bytes: &[u8], place: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(bytes.get(place..place + 8)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An ioctl as Linux 6.1 sends it: head, then client 5, flags, number, argument, lengths, three bytes.
    fn ioctl() -> Vec<u8> {
        let mut bytes = Vec::new();
        bytes.extend(75_u32.to_ne_bytes());
        bytes.extend(IOCTL.to_ne_bytes());
        bytes.extend(9_u64.to_ne_bytes());
        bytes.extend([0; 16]);
        [77_u32, 0].iter().for_each(|word| bytes.extend(word.to_ne_bytes()));
        bytes.extend(5_u64.to_ne_bytes());
        [2_u32, 0xC030_6368].iter().for_each(|word| bytes.extend(word.to_ne_bytes()));
        bytes.extend(0x7FFF_0000_u64.to_ne_bytes());
        [3_u32, 8].iter().for_each(|word| bytes.extend(word.to_ne_bytes()));
        bytes.extend([1, 2, 3]);
        bytes
    }

    #[test]
    fn a_call_is_taken_apart_and_what_is_cut_off_is_no_message() {
        let bytes = ioctl();
        let Some(Message { unique: 9, request: Request::Ioctl(ioctl) }) = Message::parse(&bytes) else {
            unreachable!("it is an ioctl with number 9")
        };
        assert_eq!((ioctl.client, ioctl.number, ioctl.argument), (5, 0xC030_6368, 0x7FFF_0000));
        assert_eq!(ioctl.thread, 77);
        assert_eq!((ioctl.data, ioctl.is_compat, ioctl.has_space), (&[1, 2, 3][..], false, true));
        assert!((0..bytes.len()).all(|cut| Message::parse(&bytes[..cut]).is_none()));
    }

    /// As Linux 6.1 sends it: head, then client 5, sleeper 6, flags, events.
    #[test]
    fn a_client_that_sleeps_gives_a_number_by_which_to_wake_it() {
        for (flags, sleeper) in [(0, None), (SCHEDULE_NOTIFY, Some(6))] {
            let mut bytes = Vec::new();
            [64_u32, POLL].iter().for_each(|word| bytes.extend(word.to_ne_bytes()));
            bytes.extend(9_u64.to_ne_bytes());
            bytes.extend([0; 24]);
            [5_u64, 6].iter().for_each(|word| bytes.extend(word.to_ne_bytes()));
            [flags, POLL_IN].iter().for_each(|word| bytes.extend(word.to_ne_bytes()));
            let request = Request::Poll { client: 5, sleeper };
            assert_eq!(Message::parse(&bytes), Some(Message { unique: 9, request }));
            assert_eq!(Message::parse(&bytes[..63]), None);
        }
        assert_eq!(wake(6)[..16], [24, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn a_call_that_says_more_than_it_brings_is_no_message() {
        let mut bytes = ioctl();
        bytes[64] = bytes[64].wrapping_add(1);
        assert_eq!(Message::parse(&bytes), None);
    }
}
