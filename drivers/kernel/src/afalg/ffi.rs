//! System calls of AF_ALG (`linux/if_alg.h`), as far as no library has a safe one that owns what it opens.

use std::ffi::{c_int, c_void};
use std::io;
use std::mem::size_of;
use std::os::fd::{AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd};
use std::ptr;

/// Longest name of an algorithm: `salg_name` with its end.
const NAME_BYTES_MAX: usize = 63;

/// Space for the control messages of one request: operation, associated length, IV of 16 bytes.
const CONTROL_BYTES: usize = 128;

/// A socket of the family; `EAFNOSUPPORT` where the kernel has none.
pub(super) fn socket() -> io::Result<OwnedFd> {
    // SAFETY: no pointer is passed.
    let fd = unsafe { libc::socket(libc::AF_ALG, libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC, 0) };
    owned(fd)
}

/// Binds `socket` to the driver `name` of kind `kind` (`skcipher`, `hash`, `aead`).
pub(super) fn bind(socket: BorrowedFd<'_>, kind: &str, name: &str) -> io::Result<()> {
    // SAFETY: all zero is an address without type and name.
    let mut address: libc::sockaddr_alg = unsafe { std::mem::zeroed() };
    address.salg_family = u16::try_from(libc::AF_ALG).expect("the family's number is 38");
    if name.len() > NAME_BYTES_MAX || kind.len() >= address.salg_type.len() {
        return Err(io::Error::from_raw_os_error(libc::ENAMETOOLONG));
    }
    address.salg_type[..kind.len()].copy_from_slice(kind.as_bytes());
    address.salg_name[..name.len()].copy_from_slice(name.as_bytes());
    let length = socklen(size_of::<libc::sockaddr_alg>());
    // SAFETY: the address lives through the call and is `length` bytes long.
    done(unsafe { libc::bind(socket.as_raw_fd(), (&raw const address).cast(), length) })
}

/// Gives the transform its key. The kernel copies it.
pub(super) fn set_key(socket: BorrowedFd<'_>, key: &[u8]) -> io::Result<()> {
    let (start, length) = (key.as_ptr().cast::<c_void>(), socklen(key.len()));
    // SAFETY: the key lives through the call and is `length` bytes long.
    done(unsafe { libc::setsockopt(socket.as_raw_fd(), libc::SOL_ALG, libc::ALG_SET_KEY, start, length) })
}

/// Sets the length of an AEAD's tag; the kernel takes it from the option's length.
pub(super) fn set_tag_bytes(socket: BorrowedFd<'_>, bytes: usize) -> io::Result<()> {
    let option = libc::ALG_SET_AEAD_AUTHSIZE;
    // SAFETY: the kernel does not read the option's value (crypto/af_alg.c).
    done(unsafe { libc::setsockopt(socket.as_raw_fd(), libc::SOL_ALG, option, ptr::null(), socklen(bytes)) })
}

/// A socket for requests, one at a time, of the transform.
pub(super) fn accept(socket: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    // SAFETY: no address is returned.
    let fd =
        unsafe { libc::accept4(socket.as_raw_fd(), ptr::null_mut(), ptr::null_mut(), libc::SOCK_CLOEXEC) };
    owned(fd)
}

/// What a request says beside its data.
#[derive(Clone, Copy, Debug)]
pub(super) struct Operation<'a> {
    pub(super) encrypts: bool,
    /// Empty where the algorithm has none.
    pub(super) iv: &'a [u8],
    /// AEAD only.
    pub(super) aad_bytes: Option<u32>,
}

/// Hands a request over, or the next part of a message to hash (`order` is none). Returns how many bytes the kernel took: of a request as many as there is space for, and
/// `EAGAIN` where there is none. It would wait for space until an answer is read, which is done once all is sent. A message to hash takes no space, and the module's time.
pub(super) fn send(
    socket: BorrowedFd<'_>,
    order: Option<Operation<'_>>,
    data: &[u8],
    more: bool,
) -> io::Result<usize> {
    let mut control = Control::default();
    if let Some(order) = order {
        control.put(libc::ALG_SET_OP, u32::from(order.encrypts).to_ne_bytes());
        if let Some(bytes) = order.aad_bytes {
            control.put(libc::ALG_SET_AEAD_ASSOCLEN, bytes.to_ne_bytes());
        }
        if !order.iv.is_empty() {
            // struct af_alg_iv: length, bytes; of those behind the length the kernel reads none.
            let mut iv = [0; 20];
            let length = u32::try_from(order.iv.len()).expect("an IV is short");
            iv[..4].copy_from_slice(&length.to_ne_bytes());
            iv[4..4 + order.iv.len()].copy_from_slice(order.iv);
            control.put(libc::ALG_SET_IV, iv);
        }
    }
    // The kernel only reads through this pointer.
    let mut part = libc::iovec { iov_base: data.as_ptr().cast_mut().cast(), iov_len: data.len() };
    // SAFETY: all zero is a message without address, data and control.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    if control.length > 0 {
        message.msg_control = control.bytes.0.as_mut_ptr().cast();
        message.msg_controllen = control_length(control.length);
    }
    let waits = if order.is_some() { libc::MSG_DONTWAIT } else { 0 };
    let flags = libc::MSG_NOSIGNAL | waits | if more { libc::MSG_MORE } else { 0 };
    // SAFETY: the message points to one vector over `data` and to `control`, which live through the call.
    let sent = unsafe { libc::sendmsg(socket.as_raw_fd(), &raw const message, flags) };
    usize::try_from(sent).map_err(|_| io::Error::last_os_error())
}

/// Control messages as the kernel reads them (`cmsghdr`, then data, each on a border of a word).
#[derive(Default)]
struct Control {
    bytes: Aligned,
    length: usize,
}

/// Bytes that begin where a `cmsghdr` may.
#[repr(C, align(16))]
struct Aligned([u8; CONTROL_BYTES]);

impl Default for Aligned {
    fn default() -> Self {
        Self([0; CONTROL_BYTES])
    }
}

impl Control {
    #[inline]
    fn put<const BYTES: usize>(&mut self, what: c_int, data: [u8; BYTES]) {
        let word = size_of::<usize>();
        let head = size_of::<libc::cmsghdr>().next_multiple_of(word);
        let length = head + BYTES;
        let space = &mut self.bytes.0[self.length..][..length];
        // A length of the header's width, then level and type, as in `struct cmsghdr`.
        space[..word].copy_from_slice(&length.to_ne_bytes());
        space[head - 8..head - 4].copy_from_slice(&libc::SOL_ALG.to_ne_bytes());
        space[head - 4..head].copy_from_slice(&what.to_ne_bytes());
        space[head..].copy_from_slice(&data);
        self.length += length.next_multiple_of(word);
    }
}

fn owned(fd: c_int) -> io::Result<OwnedFd> {
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just opened it for us alone.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

fn done(answer: c_int) -> io::Result<()> {
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// The C libraries differ in this field's type.
fn control_length<T: TryFrom<usize>>(bytes: usize) -> T {
    T::try_from(bytes).ok().expect("control messages are short")
}

fn socklen(bytes: usize) -> libc::socklen_t {
    libc::socklen_t::try_from(bytes).expect("options and addresses are short")
}

/// Puts another file at a descriptor's number, as a program does that takes any number for free.
#[cfg(test)]
pub(crate) fn put_over(number: c_int, foreign: BorrowedFd<'_>) {
    // SAFETY: takes numbers. Any owner of the number may lose it: owners check before they use or close it.
    assert_eq!(unsafe { libc::dup2(foreign.as_raw_fd(), number) }, number);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// libc's own macros judge: what they walk over is what was put in.
    #[test]
    fn control_messages_lie_where_the_system_looks_for_them() {
        let mut control = Control::default();
        let (operation, iv, length) = ([1, 0, 0, 0], [7; 20], [9; 4]);
        control.put(libc::ALG_SET_OP, operation);
        control.put(libc::ALG_SET_IV, iv);
        control.put(libc::ALG_SET_AEAD_ASSOCLEN, length);
        let put: [(c_int, &[u8]); 3] =
            [(libc::ALG_SET_OP, &operation), (libc::ALG_SET_IV, &iv), (libc::ALG_SET_AEAD_ASSOCLEN, &length)];
        // SAFETY: all zero is a message without address, data and control.
        let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
        message.msg_control = control.bytes.0.as_mut_ptr().cast();
        message.msg_controllen = control_length(control.length);
        // SAFETY: the message has the control bytes above.
        let mut head = unsafe { libc::CMSG_FIRSTHDR(&raw const message) };
        for (what, data) in put {
            assert!(!head.is_null());
            // SAFETY: it points to a header within the control bytes.
            let seen = unsafe { head.read_unaligned() };
            assert_eq!((seen.cmsg_level, seen.cmsg_type), (libc::SOL_ALG, what));
            // SAFETY: computes a length only.
            let length = unsafe { libc::CMSG_LEN(u32::try_from(data.len()).unwrap()) };
            assert_eq!(seen.cmsg_len as u64, u64::from(length));
            // SAFETY: the header's data follows it within the control bytes.
            let start = unsafe { libc::CMSG_DATA(head) };
            // SAFETY: its length was just compared.
            assert_eq!(unsafe { std::slice::from_raw_parts(start, data.len()) }, data);
            // SAFETY: both point into the control bytes.
            head = unsafe { libc::CMSG_NXTHDR(&raw const message, head) };
        }
        assert!(head.is_null());
    }
}
