//! Talks to who connects: clients by messages of vhost-user-crypto, administrators by lines of text.

pub(crate) mod admin_command;
pub(crate) mod connection;
pub(crate) mod control;
pub(crate) mod listener;
pub(crate) mod socket;
