//! The inside of a crate: its files, which of them use which, and where that leads in a circle.
//!
//! Path: the texts of a crate -> modules with what they define and hand on (`modules.rs`) -> arrows from file to file, each name followed
//! to the file that defines it (`arrows.rs`) -> circles (`circles.rs`), and rooms (`rooms.rs`).

mod arrows;
mod circles;
mod modules;
mod rooms;

pub(crate) use arrows::{Arrow, arrows};
pub(crate) use circles::circles;
pub(crate) use modules::Crate;
pub(crate) use rooms::{Room, room_of};
