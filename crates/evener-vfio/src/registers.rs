//! Registers of a function, mapped. Each access is one load or store of the width that it names, in the program's order.

use std::process;
use std::ptr::NonNull;
use std::sync::Arc;

use crate::ffi;

/// One base address register's memory, unmapped when this is dropped. A forked child does not get it.
#[derive(Debug)]
pub struct Registers {
    first: NonNull<u8>,
    bytes: usize,
    /// The process that has it.
    process: u32,
}

/// A place that is not wholly inside, or not aligned to its width.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoRegister;

/// A register of 16 bits that is only written, found once.
#[derive(Debug)]
pub struct QueueDoorbell {
    registers: Arc<Registers>,
    place: NonNull<u16>,
}

macro_rules! access {
    ($($read:ident, $write:ident: $word:ty;)*) => {$(
        #[doc = concat!("Reads a register of type `", stringify!($word), "`, little-endian.")]
        ///
        /// # Errors
        ///
        /// [`NoRegister`] where none can be there.
        pub fn $read(&self, at: usize) -> Result<$word, NoRegister> {
            let place = self.place::<$word>(at)?;
            // SAFETY: inside the mapping and aligned; registers change by themselves, which a volatile read allows for.
            Ok(<$word>::from_le(unsafe { place.read_volatile() }))
        }

        #[doc = concat!("Writes a register of type `", stringify!($word), "`, little-endian.")]
        ///
        /// # Errors
        ///
        /// [`NoRegister`] where none can be there.
        pub fn $write(&self, at: usize, word: $word) -> Result<(), NoRegister> {
            let place = self.place::<$word>(at)?;
            // SAFETY: inside the mapping and aligned; what the function does then can reach memory that was lent to it only.
            unsafe { place.write_volatile(word.to_le()) };
            Ok(())
        }
    )*};
}

impl Registers {
    pub(crate) fn new(first: NonNull<u8>, bytes: usize) -> Self {
        Self { first, bytes, process: process::id() }
    }

    access! {
        read_u8, write_u8: u8;
        read_u16, write_u16: u16;
        read_u32, write_u32: u32;
    }

    /// Finds the register that lies so far behind the first.
    ///
    /// # Errors
    ///
    /// [`NoRegister`] where none can be there.
    pub fn doorbell(self: &Arc<Self>, at: usize) -> Result<QueueDoorbell, NoRegister> {
        Ok(QueueDoorbell { place: self.place(at)?, registers: Arc::clone(self) })
    }

    fn place<T>(&self, at: usize) -> Result<NonNull<T>, NoRegister> {
        let is_inside = at.checked_add(size_of::<T>()).is_some_and(|end| end <= self.bytes);
        if !is_inside || at % align_of::<T>() != 0 {
            return Err(NoRegister);
        }
        // SAFETY: the offset is inside the mapping, which begins on a page.
        Ok(unsafe { self.first.add(at) }.cast())
    }
}

impl QueueDoorbell {
    /// Writes the register: what was written to memory before is seen by the function then.
    pub fn ring(&self, word: u16) {
        debug_assert_eq!(self.registers.process, process::id(), "a child has no registers");
        // SAFETY: inside the mapping, which `registers` keeps, and aligned.
        unsafe { self.place.write_volatile(word.to_le()) };
    }
}

impl Drop for Registers {
    fn drop(&mut self) {
        // In a forked child something else may lie there by now.
        if process::id() == self.process {
            ffi::unmap(self.first, self.bytes);
        }
    }
}

// SAFETY: the mapping belongs to the process, not to the thread that made it.
unsafe impl Send for Registers {}
// SAFETY: each access is one load or store, as from several cores at once.
unsafe impl Sync for Registers {}
// SAFETY: as of the registers, which it keeps.
unsafe impl Send for QueueDoorbell {}
// SAFETY: as of the registers, which it keeps.
unsafe impl Sync for QueueDoorbell {}

#[cfg(test)]
mod tests {
    use super::*;

    /// Memory in place of registers, which is never unmapped: it is a test's.
    fn registers(memory: &mut [u64; 2]) -> std::mem::ManuallyDrop<Arc<Registers>> {
        std::mem::ManuallyDrop::new(Arc::new(Registers::new(NonNull::from(memory).cast(), 16)))
    }

    #[test]
    fn a_register_is_inside_and_on_a_border_of_its_width() {
        let mut memory = [0_u64; 2];
        let registers = registers(&mut memory);
        registers.write_u32(12, 0x0403_0201).unwrap();
        assert_eq!((registers.read_u8(15), registers.read_u16(12)), (Ok(4), Ok(0x0201)));
        registers.doorbell(14).unwrap().ring(0x0605);
        assert_eq!(registers.read_u32(12), Ok(0x0605_0201));
        assert_eq!(registers.read_u8(16), Err(NoRegister));
        assert_eq!(registers.read_u32(14), Err(NoRegister));
        assert_eq!(registers.write_u16(1, 0), Err(NoRegister));
        assert!(registers.doorbell(usize::MAX).is_err());
    }
}
