//! Why a machine cannot be used as it was asked for.

use evener_driver_kernel as kernel;
use evener_driver_libcrypto::LibcryptoError;
use evener_driver_virtio as hosted;

/// Why a machine cannot be used as it was asked for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MachineError {
    /// Without libcrypto nothing can be done.
    #[error("libcrypto: {0}")]
    Libcrypto(LibcryptoError),
    /// A host's module, or a device's, that was named.
    #[error(transparent)]
    Hosted(#[from] hosted::OpenError),
    /// A module behind the kernel that was named.
    #[error(transparent)]
    Kernel(#[from] kernel::OpenError),
}
