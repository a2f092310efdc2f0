//! Takes requests from the rings of all clients, lets the module do them, and gives them back; on the module's thread.

mod answers;
pub(crate) mod client_span;
pub(crate) mod in_flight;
mod intake;
mod kicks;
mod long_requests;
pub(crate) mod notify;
pub(crate) mod request;
pub(crate) mod run_queue;
mod service_loop;
mod shares;
pub(crate) mod slots;
pub(crate) mod thread_state;
mod time_slice;
