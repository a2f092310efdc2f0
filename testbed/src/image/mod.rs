//! What a guest boots: its kernel, its only file system, and the libraries that programs in it need.

pub(crate) mod cpio;
pub(crate) mod initramfs;
pub(crate) mod kernel;
mod libraries;
