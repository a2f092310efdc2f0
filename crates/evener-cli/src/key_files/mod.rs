//! Files with keys: read with a look at who else can read them, from standard input too, and passphrases from a terminal or a file.

mod dialog;
mod keyset_file;
mod passphrase;
mod secret_file;

pub(crate) use dialog::TerminalDialog;
pub(crate) use keyset_file::{KeyProtection, KeysetFile};
pub(crate) use passphrase::{Repeat, first_line_of, from_terminal, prompt_passphrase, secret_text};
pub(crate) use secret_file::{STDIN, read_held, read_public, read_secret, write_secret};
