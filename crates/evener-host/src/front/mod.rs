//! Talks to who connects: clients by messages of vhost-user-crypto, administrators by lines of text.

pub(crate) mod admin_command;
pub(crate) mod connection;
pub(crate) mod control;
pub(crate) mod event_loop;
pub(crate) mod listener;
pub(crate) mod messages;
mod path_lock;
pub(crate) mod refusal;
pub(crate) mod socket;
