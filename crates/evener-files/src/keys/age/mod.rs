//! Keys of the age format: recipients that a file is for, identities that open it, passphrases.
//!
//! Text as age and rage take it -> [`Recipients`] (for sealing) or [`Identities`] (for opening). Plugins are not
//! called.

mod date;
mod facts;
mod identities;
mod identity_file;
mod passphrase;
mod recipients;

pub use identities::{Identities, NewIdentity, generate_identity};
pub use identity_file::AskPassphrase;
pub use passphrase::WorkFactors;
pub use recipients::Recipients;
pub(crate) use recipients::StanzaMatcher;
