//! Programs that are built to be run in a guest: compilers for its processor, and test programs.

mod test_program;
mod toolchain;

pub use test_program::{TestProgram, build_tests};
pub use toolchain::Toolchain;
