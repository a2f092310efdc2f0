//! Driver for Intel's libipsec-mb: many jobs side by side in the SIMD lanes of one core.
//!
//! A burst enters at [`Multibuffer::run`](evener_core::InlineDriver::run) in `driver/`, which makes passes of it; `ffi/` runs a pass in the
//! library, and everything unsafe stands there. [`Unavailable`] says why a machine is without the library.
#![allow(unsafe_code, reason = "room: libipsec-mb is C; all of it in ffi/")]

mod driver;
mod ffi;
mod unavailable;

pub use crate::driver::Multibuffer;
pub use crate::ffi::{BareLoop, BareSpan};
pub use crate::unavailable::Unavailable;
