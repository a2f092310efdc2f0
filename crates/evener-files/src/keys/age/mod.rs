//! Keys of the age format: recipients that a file is for, identities that open it, passphrases, plugins.
//!
//! Text as age and rage take it -> [`Recipients`] (for sealing) or [`Identities`] (for opening). A recipient wraps the file key into
//! stanzas of the [`header`], an identity unwraps it (`file_key.rs`); `native` has age's own kinds, `ssh` SSH keys, `plugin` other programs.

mod bech32;
mod date;
mod facts;
mod file_key;
pub(crate) mod header;
mod hpke;
mod identities;
mod identity_file;
mod native;
mod plugin;
mod recipients;
mod small_file;
mod ssh;
mod stanza;
mod tree_identity;

pub(crate) use file_key::{FileKey, hkdf};
pub use identities::{Identities, NewIdentity, generate_identity};
pub use identity_file::AskPassphrase;
pub use native::WorkFactors;
pub use plugin::Dialog;
pub(crate) use recipients::StanzaMatcher;
pub use recipients::{Recipients, Unusable};
pub(crate) use stanza::Stanza;
pub use tree_identity::{
    TREE_IDENTITY, is_age_file, new_passphrase, new_tree_identity, opened_under, sealed_under, tree_identity,
};
