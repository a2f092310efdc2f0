//! age's own kinds of recipients and identities, a file per kind.

mod exchange;
mod hybrid;
mod passphrase;
mod tagged;
mod x25519;

pub(super) use exchange::{PublicKey, exchange, public_of};
pub(super) use hybrid::{HybridIdentity, HybridRecipient};
pub(super) use passphrase::Passphrase;
pub use passphrase::WorkFactors;
pub(super) use tagged::{TagPqRecipient, TagRecipient};
pub(super) use x25519::{X25519Identity, X25519Recipient};
