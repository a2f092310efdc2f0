//! Lists of algorithms as the core wants them: the inner names, our property, a table of functions each.
//!
//! A table of ours is the inner one with some functions replaced. A number that this provider does not know is left
//! out: the function behind it would be called with a context of ours and take it for one of its own.

use std::ffi::{c_int, c_void};
use std::ptr;

use evener_ossl_sys::{Algorithm, Dispatch, Function};

use super::InnerProvider;
use crate::ffi::{SLOTS, first_name, list_of, table_of};

/// What our algorithms are fetched by. The second is for programs that ask with a `provider` of their own, as stunnel does (`provider!=fips`): that
/// takes the place of `?provider=evener` in the default properties, and leaves `?evener.serves=yes`.
const PROPERTIES: &std::ffi::CStr = c"provider=evener,evener.serves=yes";

/// A function without its type, as tables hold it.
macro_rules! erased {
    ($function:expr, $type:ty) => {
        // SAFETY: the core casts it back to the type that belongs to the number it stands under.
        unsafe { std::mem::transmute::<$type, evener_ossl_sys::Function>($function) }
    };
}
pub(crate) use erased;

/// The entry of a function that there is once per slot, with the number it stands under.
macro_rules! entry_at {
    ($slot:ident, $number:ident, $function:ident: $type:ty) => {{
        static FUNCTIONS: [$type; $crate::ffi::SLOTS] = $crate::ffi::by_slot!($function);
        (
            evener_ossl_sys::number::$number,
            $crate::inner_provider::dispatch_table::erased!(FUNCTIONS[$slot], $type),
        )
    }};
}
pub(crate) use entry_at;

/// The algorithms of one operation that we offer: `rows[n]` belongs to `algorithms[n]` and to slot `n`.
pub(crate) struct Offer<R> {
    pub(crate) rows: Box<[R]>,
    algorithms: Box<[Algorithm]>,
    /// What `algorithms` points to.
    _tables: Vec<Box<[Dispatch]>>,
}

/// What is made of one inner algorithm.
pub(crate) struct Wrapped<R> {
    /// What our functions need to know at run time.
    pub(crate) row: R,
    /// Numbers that the operation has, as far as this provider knows.
    pub(crate) known: fn(c_int) -> bool,
    /// Functions that take the inner ones' place where the inner table has the number.
    pub(crate) replaced: Vec<(c_int, Function)>,
    /// Functions that the inner table has not.
    pub(crate) added: Vec<(c_int, Function)>,
}

impl<R> Offer<R> {
    /// Wraps what `wrap` accepts of the inner provider's algorithms whose first names are wanted: by first name, inner functions and slot.
    pub(crate) fn new(
        inner: &InnerProvider,
        (operation, is_wanted): (c_int, fn(&[u8]) -> bool),
        wrap: impl Fn(&str, &[Dispatch], usize) -> Option<Wrapped<R>>,
    ) -> Self {
        let (mut rows, mut algorithms, mut tables) = (Vec::new(), Vec::new(), Vec::new());
        // SAFETY: a provider's list lives as long as the provider, which `inner` holds.
        for algorithm in unsafe { list_of(inner.query(operation)) } {
            let name = first_name(algorithm);
            if !is_wanted(name) {
                continue;
            }
            // SAFETY: as above.
            let functions = unsafe { table_of(algorithm.implementation) };
            let slot = rows.len();
            if slot == SLOTS {
                break;
            }
            let name = std::str::from_utf8(name).unwrap_or_default();
            let Some(wrapped) = wrap(name, functions, slot) else { continue };
            let table = replaced(functions, &wrapped);
            algorithms.push(Algorithm {
                properties: PROPERTIES.as_ptr(),
                implementation: table.as_ptr(),
                ..*algorithm
            });
            tables.push(table);
            rows.push(wrapped.row);
        }
        algorithms.push(Algorithm {
            names: ptr::null(),
            properties: ptr::null(),
            implementation: ptr::null(),
            description: ptr::null(),
        });
        Self { rows: rows.into(), algorithms: algorithms.into(), _tables: tables }
    }

    /// Wraps all algorithms of an operation that have the functions of a row; some are replaced, and none is added.
    pub(crate) fn passed(
        inner: &InnerProvider,
        (operation, known): (c_int, fn(c_int) -> bool),
        row: fn(*mut c_void, &[Dispatch]) -> Option<R>,
        replacements: fn(usize) -> Vec<(c_int, Function)>,
    ) -> Self {
        Self::new(inner, (operation, |_| true), |_, functions, slot| {
            let (row, replaced) = (row(inner.provider_ctx, functions)?, replacements(slot));
            Some(Wrapped { row, known, replaced, added: Vec::new() })
        })
    }

    /// The list for the core; `None` where there is nothing in it.
    pub(crate) fn list(&self) -> Option<*const Algorithm> {
        (self.algorithms.len() > 1).then_some(self.algorithms.as_ptr())
    }
}

/// A table with some functions in the place of others of the same number.
pub(crate) fn swapped<'t>(
    table: impl Iterator<Item = &'t Dispatch>,
    replaced: &[(c_int, Function)],
) -> impl Iterator<Item = Dispatch> {
    table.map(|entry| {
        let replaced = replaced.iter().find(|(number, _)| *number == entry.function_id);
        Dispatch { function: replaced.map(|(_, function)| *function).or(entry.function), ..*entry }
    })
}

fn replaced<R>(inner: &[Dispatch], wrapped: &Wrapped<R>) -> Box<[Dispatch]> {
    let known = inner.iter().filter(|entry| (wrapped.known)(entry.function_id));
    let swapped = swapped(known, &wrapped.replaced);
    let added = wrapped
        .added
        .iter()
        .map(|&(function_id, function)| Dispatch { function_id, function: Some(function) });
    swapped.chain(added).chain([Dispatch::END]).collect()
}
