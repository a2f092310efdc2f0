//! What the command says of itself and of the machine, and what it starts: reports, pages of documents, hosts, providers.

#[path = "../common/mod.rs"]
mod common;

mod demo;
mod doctor;
mod documents;
mod dumps;
mod explain;
mod help;
mod host;
mod hosted;
mod install;
mod objects;
mod provider;
mod reports;
mod status;
mod top;
mod waiting;
