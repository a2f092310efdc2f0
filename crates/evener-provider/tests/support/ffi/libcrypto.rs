//! How functions of libcrypto are declared where no type tells its pointers apart.

/// Declares functions of the libcrypto that the program is linked with.
macro_rules! libcrypto {
    ($(fn $name:ident($($argument:ty),*) $(-> $result:ty)?;)*) => {
        #[link(name = "crypto")]
        unsafe extern "C" { $(fn $name($(_: $argument),*) $(-> $result)?;)* }
    };
}

/// A pointer to one of its objects.
pub(crate) type Opaque = *mut std::ffi::c_void;
