//! A PCI function in user space, by Linux's VFIO: its configuration, its registers, its interrupts, and memory that it may reach.
//!
//! Path: an [`Address`] -> [`Reserved::new`], which finds the function's IOMMU group and takes that -> [`Reserved::take`], which requests the
//! function (`function.rs`) -> [`Function::registers`], mapped (`registers.rs`) -> [`Function::lend`], memory that the function reads and
//! writes through the IOMMU, and nothing else -> [`Function::call_by`], interrupts as events. The system calls stand in `ffi.rs`.
//!
//! The administrator has bound the function to `vfio-pci` and given the group's node to the users that may use it; the system refuses a second
//! process. Sources: Linux `include/uapi/linux/vfio.h`, `Documentation/driver-api/vfio.rst`.
#![allow(unsafe_code, reason = "room: system calls and mapped registers")]
#![cfg(target_os = "linux")]

mod address;
mod ffi;
mod function;
mod registers;

pub use crate::address::{Address, NoAddress};
pub use crate::function::{Function, Refused, Reserved};
pub use crate::registers::{NoRegister, QueueDoorbell, Registers};
