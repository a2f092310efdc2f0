//! What runs when the module is loaded, before OpenSSL asks it anything.

use crate::count;
use crate::engine::Module;

// SAFETY: the section holds addresses of functions of this type, which the loader calls once.
#[unsafe(link_section = ".init_array")]
#[used]
static REGISTER: extern "C" fn() = register;

extern "C" fn register() {
    count::read_folder();
    evener_provider::add_engine(&Module);
}
