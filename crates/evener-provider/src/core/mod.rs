//! OpenSSL's core as this provider has it: a handle, those of its functions that are used, and its error queue.

pub(crate) mod errors;

use std::ffi::{CStr, c_char};
use std::ptr;

use evener_ossl_sys::{
    CoreGetParams, CoreHandle, Dispatch, Function, PARAM_UNMODIFIED, PARAM_UTF8_PTR, Param, ProviderCount,
    ProviderDeregisterChildCb, ProviderGet0Dispatch, ProviderGet0ProviderCtx, ProviderName,
    ProviderRegisterChildCb, number,
};

use crate::ffi::table_of;
use errors::{Errors, Marks};

/// The core that loaded this provider into one of its library contexts.
pub(crate) struct Core {
    pub(crate) handle: *const CoreHandle,
    get_params: Option<CoreGetParams>,
    errors: Option<Errors>,
    marks: Option<Marks>,
    pub(crate) children: Option<Children>,
    /// Some function of libcrypto, by whose address its file is found.
    pub(crate) landmark: Option<Function>,
}

/// The function with a number, as the type that the number stands for; `None` where the table lacks it.
macro_rules! find {
    ($table:expr, $number:ident: $type:ty) => {
        $table.iter().find(|entry| entry.function_id == number::$number).and_then(|entry| entry.function).map(
            // SAFETY: the number says that the function has this type (tests/header.rs of evener-ossl-sys).
            |function| unsafe { std::mem::transmute::<evener_ossl_sys::Function, $type>(function) },
        )
    };
}
pub(crate) use find;

/// Functions of a C table, as `NUMBER field: type`: writes the struct, and `of`, which reads a table; `None` where that lacks one.
/// `optional` are those that a table may lack.
macro_rules! functions {
    (
        $(#[$doc:meta])* $seen:vis struct $name:ident { $($number:ident $field:ident: $type:ident),* $(,)? }
        $(optional { $($may_number:ident $may_field:ident: $may_type:ident),+ $(,)? })?
    ) => {
        $(#[$doc])*
        #[derive(Clone, Copy)]
        $seen struct $name {
            $($seen $field: $type,)*
            $($($seen $may_field: Option<$may_type>,)+)?
        }

        impl $name {
            $seen fn of(table: &[evener_ossl_sys::Dispatch]) -> Option<Self> {
                Some(Self {
                    $($field: $crate::core::find!(table, $number: $type)?,)*
                    $($($may_field: $crate::core::find!(table, $may_number: $may_type),)+)?
                })
            }
        }
    };
}
pub(crate) use functions;

functions! {
    /// What a provider may learn of its siblings.
    pub(crate) struct Children {
        PROVIDER_REGISTER_CHILD_CB register: ProviderRegisterChildCb,
        PROVIDER_DEREGISTER_CHILD_CB deregister: ProviderDeregisterChildCb,
        PROVIDER_NAME name: ProviderName,
        PROVIDER_GET0_PROVIDER_CTX provider_ctx: ProviderGet0ProviderCtx,
        PROVIDER_GET0_DISPATCH dispatch: ProviderGet0Dispatch,
        PROVIDER_UP_REF up_ref: ProviderCount,
        PROVIDER_FREE free: ProviderCount,
    }
}

impl Core {
    /// Reads what the core handed over.
    ///
    /// # Safety
    ///
    /// `table` is the core's table of functions for `handle`, as `OSSL_provider_init` got both.
    pub(crate) unsafe fn read(handle: *const CoreHandle, table: *const Dispatch) -> Self {
        // SAFETY: the caller's word.
        let table = unsafe { table_of(table) };
        Self {
            handle,
            get_params: find!(table, CORE_GET_PARAMS: CoreGetParams),
            errors: Errors::of(table),
            marks: Marks::of(table),
            children: Children::of(table),
            landmark: table.first().and_then(|entry| entry.function),
        }
    }

    /// The value of `key` in this provider's section of the configuration.
    pub(crate) fn setting(&self, key: &CStr) -> Option<&CStr> {
        Some(self.settings(&[key]).pop()?.1)
    }

    /// What this provider's section of the configuration says for those of `names` that it has, in their order. One question: the core's
    /// answer takes it as long as it takes to look for each key of the section in the list.
    pub(crate) fn settings<'n>(&self, names: &[&'n CStr]) -> Vec<(&'n CStr, &CStr)> {
        let mut values: Vec<*const c_char> = vec![ptr::null(); names.len()];
        // In one piece: each program that starts comes here.
        let mut params = Vec::with_capacity(names.len() + 1);
        params.extend(names.iter().zip(&mut values).map(|(name, value)| Param {
            key: name.as_ptr(),
            data_type: PARAM_UTF8_PTR,
            data: ptr::from_mut(value).cast(),
            data_size: 0,
            return_size: PARAM_UNMODIFIED,
        }));
        params.push(Param::END);
        let answered = self.get_params.is_some_and(|get_params| {
            // SAFETY: the handle is ours, and the list is ended and asks for addresses with space for one each.
            unsafe { get_params(self.handle, params.as_mut_ptr()) == 1 }
        });
        let value = |(param, value): (&Param, *const c_char)| {
            let is_there = answered && param.return_size != PARAM_UNMODIFIED && !value.is_null();
            // SAFETY: the core answered with text of its own, which lives as long as the provider.
            is_there.then(|| unsafe { CStr::from_ptr(value) })
        };
        let said = names.iter().zip(params.iter().zip(values).map(value));
        said.filter_map(|(name, value)| Some((*name, value?))).collect()
    }
}
