//! The test bed: a weak CPU with an asynchronous crypto module, on every machine that has QEMU.
//!
//! Steps: [`up`] fetches packages and proves a first guest -> [`Guest::builder`] says which module, programs and
//! settings a guest has -> [`Guest::run`] runs commands in it and gives status, output, files and the kernel's log ->
//! [`Guest::qmp`] looks at the module from outside. `docs/design/testbed.md` says what such a guest is good for and what not.
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

mod error;
mod guest;
mod image;
mod no_idle_states;
mod packages;
mod page;
mod paths;
mod profile;
mod programs;
mod qemu;
mod readiness;
mod setup;

pub use error::Error;
pub use guest::{
    Builder, Guest, Icount, KernelLog, Module, ModuleCounts, Outcome, Qmp, SharedGuest, Throttle,
    USER_SPACE_MODULE,
};
pub use no_idle_states::Awake;
pub use page::Block;
pub use paths::root;
pub use profile::Profile;
pub use programs::{TestProgram, Toolchain, build_tests, write_program};
pub use qemu::lost;
pub use readiness::{Ready, check};
pub use setup::{Step, down, package, up};
