//! The test bed: a weak CPU with an asynchronous crypto module, on every machine that has QEMU.
//!
//! The way: [`up`] fetches packages and proves a first guest -> [`Guest::builder`] says which module, programs and
//! settings a guest has -> [`Guest::run`] runs commands in it and gives status, output, files and the kernel's log ->
//! [`Guest::qmp`] looks at the module from outside. `docs/testbed.md` tells what such a guest is good for and what not.
//!
//! ```no_run
//! use evener_testbed::Guest;
//!
//! let mut guest = Guest::builder().program("target/release/evener").boot()?;
//! let outcome = guest.run("evener devices")?;
//! println!("{} {}", outcome.status, outcome.stdout);
//! # Ok::<(), evener_testbed::Error>(())
//! ```
#![forbid(unsafe_code)]

mod apt;
mod awake;
mod cpio;
mod error;
mod guest;
mod initramfs;
mod kernel;
mod libraries;
mod log;
mod place;
mod profile;
mod qemu;
mod qmp;
mod test_program;
mod toolchain;
mod tools;
mod up;

pub use awake::Awake;
pub use error::Error;
pub use guest::{Builder, Guest, Icount, Lent, Module, Outcome, USER_SPACE_MODULE};
pub use log::KernelLog;
pub use place::root;
pub use profile::Profile;
pub use qemu::lost;
pub use qmp::{ModuleCounts, Qmp, Throttle};
pub use test_program::{TestProgram, build_tests};
pub use toolchain::Toolchain;
pub use up::{Ready, Step, check, down, up};
