//! Programs that are built to be run in a guest, compilers for its processor and test programs, and how a program is written that is started at once.

mod executable;
mod test_program;
mod toolchain;

pub use executable::write_program;
pub use test_program::{TestProgram, build_tests};
pub use toolchain::Toolchain;
