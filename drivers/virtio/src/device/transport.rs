//! Virtio over PCI (virtio 1.2, 4.1): where a device's registers are, and what is said through them.

use std::sync::Arc;
use std::time::Duration;

use evener_vfio::{Function, NoRegister, QueueDoorbell, Registers};
use evener_wire::{CONFIG_BYTES, Config};

use super::{refused, soon};
use crate::connection::error::ConnectionError;
use crate::connection::layout::Parts;

/// Vendor and device: virtio, and 0x1040 plus the number of a crypto device (4.1.2, 5).
pub(super) const IDENTITY: [u8; 4] = [0xF4, 0x1A, 0x54, 0x10];

/// States of a device, which add up (2.1).
pub(super) mod state {
    pub(in crate::device) const ACKNOWLEDGE: u8 = 1;
    pub(in crate::device) const DRIVER: u8 = 2;
    pub(in crate::device) const DRIVER_OK: u8 = 4;
    pub(in crate::device) const FEATURES_OK: u8 = 8;
}

/// Places in PCI's configuration space (PCI 3.0, 6.1).
const COMMAND: u64 = 4;
const STATUS: u64 = 6;
const FIRST_CAPABILITY: u64 = 0x34;
/// Bits there.
const MEMORY: u16 = 1 << 1;
const MASTER: u16 = 1 << 2;
const HAS_CAPABILITIES: u16 = 1 << 4;

/// Places in the common configuration (4.1.4.3).
mod at {
    pub(super) const OFFERED_SELECT: usize = 0;
    pub(super) const OFFERED: usize = 4;
    pub(super) const CHOSEN_SELECT: usize = 8;
    pub(super) const CHOSEN: usize = 12;
    pub(super) const CONFIG_VECTOR: usize = 16;
    pub(super) const QUEUE_COUNT: usize = 18;
    pub(super) const STATE: usize = 20;
    pub(super) const GENERATION: usize = 21;
    pub(super) const QUEUE: usize = 22;
    pub(super) const QUEUE_SIZE: usize = 24;
    pub(super) const QUEUE_VECTOR: usize = 26;
    pub(super) const QUEUE_ON: usize = 28;
    pub(super) const QUEUE_BELL: usize = 30;
    pub(super) const QUEUE_PARTS: usize = 32;
}

/// How often the configuration is read anew because it changed. Assumed, not measured: 16 times, because it
/// changes only when a module comes or goes.
const CONFIG_READS_MAX: usize = 16;

const NO_VECTOR: u16 = 0xFFFF;

/// Kinds of capabilities that a virtio device has (4.1.4), and the most there can be in 256 bytes.
const COMMON: u8 = 1;
const NOTIFY: u8 = 2;
const OF_THE_DEVICE: u8 = 4;
const CAPABILITIES_MAX: usize = 48;
const VENDOR_S: u8 = 9;

/// The registers of a device.
#[derive(Debug)]
pub(super) struct Transport {
    common: Window,
    doorbells: Window,
    /// Bytes from one queue's bell to the next one's.
    bell_step: u32,
    device: Window,
}

/// A queue as the device is told of it.
pub(super) struct Queue {
    pub(super) number: u16,
    pub(super) parts: Parts,
    pub(super) vector: u16,
}

/// Some registers that belong together.
#[derive(Clone, Debug)]
struct Window {
    registers: Arc<Registers>,
    at: usize,
}

/// Where a capability says that registers are.
struct Capability {
    kind: u8,
    bar: u8,
    at: u32,
    /// Of kind [`NOTIFY`].
    step: u32,
}

impl From<NoRegister> for ConnectionError {
    fn from(_: NoRegister) -> Self {
        Self::Lacks("registers where it says that they are")
    }
}

impl Transport {
    /// Finds the registers of a device, and lets it reach memory that is lent to it.
    pub(super) fn find(function: &Function) -> Result<Self, ConnectionError> {
        let command = read_u16(function, COMMAND)? | MEMORY | MASTER;
        function
            .write_configuration(COMMAND, &command.to_le_bytes())
            .map_err(refused("its command register"))?;
        let all = capabilities(function)?;
        let mut mapped: Vec<(u8, Arc<Registers>)> = Vec::new();
        let mut window = |kind| -> Result<(Window, u32), ConnectionError> {
            let one = all.iter().find(|one| one.kind == kind).ok_or(ConnectionError::Lacks("registers"))?;
            let known = mapped.iter().find(|(bar, _)| *bar == one.bar).map(|(_, known)| Arc::clone(known));
            let registers = match known {
                Some(known) => known,
                None => Arc::new(function.registers(one.bar.into()).map_err(refused("its registers"))?),
            };
            mapped.push((one.bar, Arc::clone(&registers)));
            Ok((Window { registers, at: usize::try_from(one.at).map_err(|_| NoRegister)? }, one.step))
        };
        let (doorbells, bell_step) = window(NOTIFY)?;
        Ok(Self { common: window(COMMON)?.0, doorbells, bell_step, device: window(OF_THE_DEVICE)?.0 })
    }

    /// Has the device forget everything, and reach memory no more (2.4).
    pub(super) fn reset(&self, timeout: Duration) -> Result<(), ConnectionError> {
        self.common.write_u8(at::STATE, 0)?;
        let is_reset = soon(timeout, || Ok(self.common.read_u8(at::STATE)? == 0))?;
        if is_reset { Ok(()) } else { Err(ConnectionError::Silent) }
    }

    pub(super) fn add_state(&self, bits: u8) -> Result<(), ConnectionError> {
        let state = self.common.read_u8(at::STATE)?;
        Ok(self.common.write_u8(at::STATE, state | bits)?)
    }

    /// Features that the device offers.
    pub(super) fn offered(&self) -> Result<u64, ConnectionError> {
        let mut halves = [0; 2];
        for (half, number) in halves.iter_mut().zip(0..) {
            self.common.write_u32(at::OFFERED_SELECT, number)?;
            *half = self.common.read_u32(at::OFFERED)?;
        }
        Ok(u64::from(halves[1]) << 32 | u64::from(halves[0]))
    }

    /// Chooses among them.
    pub(super) fn choose(&self, chosen: u64) -> Result<(), ConnectionError> {
        for number in 0..2 {
            let half = u32::try_from(chosen >> (number * 32) & 0xFFFF_FFFF).expect("32 bits");
            self.common.write_u32(at::CHOSEN_SELECT, number)?;
            self.common.write_u32(at::CHOSEN, half)?;
        }
        self.add_state(state::FEATURES_OK)?;
        match self.common.read_u8(at::STATE)? & state::FEATURES_OK {
            0 => Err(ConnectionError::Lacks("the features that it offers")),
            _ => Ok(()),
        }
    }

    /// What the device says of itself, read while it did not change.
    pub(super) fn config(&self) -> Result<Config, ConnectionError> {
        for _ in 0..CONFIG_READS_MAX {
            let before = self.common.read_u8(at::GENERATION)?;
            let mut bytes = [0; CONFIG_BYTES];
            for (word, place) in bytes.chunks_exact_mut(4).zip((0..).step_by(4)) {
                word.copy_from_slice(&self.device.read_u32(place)?.to_le_bytes());
            }
            if self.common.read_u8(at::GENERATION)? == before {
                return Ok(Config::parse(&bytes)?);
            }
        }
        Err(ConnectionError::Lacks("a configuration that stays while it is read"))
    }

    /// Sets a queue up, and returns what is rung when there is something new in it.
    pub(super) fn start_queue(&self, queue: &Queue) -> Result<QueueDoorbell, ConnectionError> {
        let Queue { number, parts, vector } = queue;
        if *number >= self.common.read_u16(at::QUEUE_COUNT)? {
            return Err(ConnectionError::Lacks("a queue that it has by its configuration"));
        }
        self.common.write_u16(at::CONFIG_VECTOR, NO_VECTOR)?;
        self.common.write_u16(at::QUEUE, *number)?;
        if self.common.read_u16(at::QUEUE_SIZE)? < parts.size {
            return Err(ConnectionError::Lacks("a queue that is long enough"));
        }
        self.common.write_u16(at::QUEUE_SIZE, parts.size)?;
        self.common.write_u16(at::QUEUE_VECTOR, *vector)?;
        if self.common.read_u16(at::QUEUE_VECTOR)? != *vector {
            return Err(ConnectionError::Lacks("an interrupt for each queue"));
        }
        for (place, register) in parts.addresses().into_iter().zip((at::QUEUE_PARTS..).step_by(8)) {
            let half = |shift: u32| u32::try_from(place >> shift & 0xFFFF_FFFF).expect("32 bits");
            self.common.write_u32(register, half(0))?;
            self.common.write_u32(register + 4, half(32))?;
        }
        let offset = u32::from(self.common.read_u16(at::QUEUE_BELL)?).checked_mul(self.bell_step);
        let offset = offset.and_then(|offset| usize::try_from(offset).ok()).ok_or(NoRegister)?;
        let doorbell =
            self.doorbells.registers.doorbell(self.doorbells.at.checked_add(offset).ok_or(NoRegister)?)?;
        self.common.write_u16(at::QUEUE_ON, 1)?;
        Ok(doorbell)
    }
}

macro_rules! in_window {
    ($($access:ident($($word:ident: $kind:ty)?) -> $result:ty;)*) => {$(
        fn $access(&self, at: usize $(, $word: $kind)?) -> Result<$result, NoRegister> {
            self.registers.$access(self.at.checked_add(at).ok_or(NoRegister)? $(, $word)?)
        }
    )*};
}

impl Window {
    in_window! {
        read_u8() -> u8;
        read_u16() -> u16;
        read_u32() -> u32;
        write_u8(word: u8) -> ();
        write_u16(word: u16) -> ();
        write_u32(word: u32) -> ();
    }
}

/// Takes a device's right to reach memory.
pub(super) fn silence(function: &Function) -> Result<(), ConnectionError> {
    // Its registers stay: they are mapped.
    let command = read_u16(function, COMMAND)? & !MASTER;
    function.write_configuration(COMMAND, &command.to_le_bytes()).map_err(refused("its command register"))
}

/// What a device's capabilities of virtio say (4.1.4).
fn capabilities(function: &Function) -> Result<Vec<Capability>, ConnectionError> {
    let read =
        |at: u64, into: &mut [u8]| function.read_configuration(at, into).map_err(refused("its capabilities"));
    if read_u16(function, STATUS)? & HAS_CAPABILITIES == 0 {
        return Err(ConnectionError::Lacks("capabilities"));
    }
    let mut next = [0];
    read(FIRST_CAPABILITY, &mut next)?;
    let mut all = Vec::new();
    // A list that leads in a circle ends all the same.
    for _ in 0..CAPABILITIES_MAX {
        let at = u64::from(next[0] & 0xFC);
        if at == 0 {
            break;
        }
        let mut bytes = [0; 16];
        read(at, &mut bytes)?;
        if bytes[0] == VENDOR_S {
            let mut step = [0; 4];
            if bytes[3] == NOTIFY {
                read(at + 16, &mut step)?;
            }
            let offset = [bytes[8], bytes[9], bytes[10], bytes[11]];
            let at = u32::from_le_bytes(offset);
            all.push(Capability { kind: bytes[3], bar: bytes[4], at, step: u32::from_le_bytes(step) });
        }
        next = [bytes[1]];
    }
    // Others may be looked at and are not for drivers (4.1.4).
    all.retain(|one| one.bar <= 5);
    Ok(all)
}

fn read_u16(function: &Function, at: u64) -> Result<u16, ConnectionError> {
    let mut bytes = [0; 2];
    function.read_configuration(at, &mut bytes).map_err(refused("its configuration"))?;
    Ok(u16::from_le_bytes(bytes))
}
