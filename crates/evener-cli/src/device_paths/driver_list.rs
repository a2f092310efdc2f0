//! The kernel's own list of algorithms.

use evener_driver_kernel::{Listed, listed};

use super::system_root::SystemRoot;

/// Drivers with a device that do something for us, and how many others there are.
pub(super) struct DriverList {
    pub(super) hardware: Vec<Listed>,
    pub(super) software_count: usize,
    pub(super) is_readable: bool,
}

impl DriverList {
    pub(super) fn read(root: &SystemRoot) -> Self {
        let text = root.text("/proc/crypto");
        let all = text.as_deref().map(listed).unwrap_or_default();
        let (hardware, software): (Vec<_>, Vec<_>) = all.into_iter().partition(|it| it.is_hardware);
        Self { hardware, software_count: software.len(), is_readable: text.is_some() }
    }
}
