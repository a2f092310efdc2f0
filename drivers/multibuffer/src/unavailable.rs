//! Why the multi-buffer library cannot be used here.

/// Why there is no multi-buffer method. A machine without it works; it is slower where many jobs wait.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Unavailable {
    /// The library is made for x86-64 only.
    #[error("libipsec-mb is made for x86-64 processors only")]
    OtherProcessor,
    /// The processor lacks an instruction set that the library's AES needs.
    #[error("this processor lacks {lacking}, which libipsec-mb needs")]
    LacksFeature {
        /// Name of the instruction set.
        lacking: &'static str,
    },
    /// No library of that name can be loaded.
    #[error("libipsec-mb cannot be loaded ({reason})")]
    NotFound {
        /// The error of the system's loader.
        reason: String,
    },
    /// There is a library, but Evener does not know what its structures look like.
    #[error("libipsec-mb {version} is not one of the releases whose structures are known")]
    UnknownVersion {
        /// What the library calls itself.
        version: String,
    },
    /// There is a library of that name that lacks a function which every release has.
    #[error("a library named like libipsec-mb lacks some of its functions")]
    Incomplete,
    /// The library did not start: its own self-test failed, or memory is short.
    #[error("libipsec-mb does not start (error {code})")]
    DoesNotStart {
        /// The library's own error number.
        code: i32,
    },
    /// Memory for the library's state cannot be had.
    #[error("libipsec-mb needs {bytes} bytes of memory that cannot be had")]
    NoMemory {
        /// How much was asked for.
        bytes: usize,
    },
    /// None of the known answers came out right.
    #[error("libipsec-mb {version} gives wrong results on this processor")]
    SelfTest {
        /// What the library calls itself.
        version: String,
    },
    /// The user does not want it.
    #[error("switched off by EVENER_DISABLE")]
    Disabled,
}
