//! Which ciphers are offered, and what is known of each: its inner functions, and from which length on another way is open.

use std::ffi::{c_int, c_void};

use evener_core::counts::Kind;
use evener_core::{Algorithm, Family};
use evener_ossl_sys::{Dispatch, Function, number};

use super::native::{blocks, front, gcm};
use super::{cipher, passthrough, pipelines};
use crate::cipher::combining;
use crate::inner_provider::InnerProvider;
use crate::inner_provider::dispatch_table::{Offer, Wrapped, swapped};
use crate::state::ProvCtx;
use crate::state::rows::{Beneath, CipherFunctions, CipherRow, Native, Thresholds};

/// The ciphers that we offer.
pub(crate) fn offer(inner: &InnerProvider, prov: &ProvCtx) -> Offer<CipherRow> {
    Offer::new(inner, (number::OP_CIPHER, offered), |name, functions, slot| {
        let row = row(prov, inner.provider_ctx, name, functions)?;
        let is_cbc = row.algorithm.is_some_and(|algorithm| algorithm.family() == Family::Cbc);
        let added = if is_cbc && prov.offers_pipelines() { pipelines::added() } else { Vec::new() };
        // A context of our own is for what has to be known about messages.
        let is_passed = !row.is_tracked() && added.is_empty();
        let (row, replaced) = match row.native {
            // Kernels split for themselves.
            Some(native) if !row.has_other_ways() && added.is_empty() => {
                (row, kernel_functions(&native, slot).0)
            }
            // What asks for messages besides stands before the kernel: for CBC and GCM from the first call on, else once it is asked.
            Some(native) => {
                let row = before_kernel(prov, row, functions, (kernel_functions(&native, slot), slot))?;
                let is_early = matches!(native.family, Family::Cbc | Family::Gcm);
                (row, if is_early { cipher::replacements(slot) } else { front::replacements(slot) })
            }
            None if is_passed => (row, passthrough::replacements(slot)),
            None => (row, cipher::replacements(slot)),
        };
        Some(Wrapped { row, known, replaced, added })
    })
}

/// A kernel's entry points, and what tells whether a context of theirs is the kernel's.
type KernelFunctions = (Vec<(c_int, Function)>, fn(*mut c_void) -> bool);

fn kernel_functions(native: &Native, slot: usize) -> KernelFunctions {
    match native.family {
        Family::Gcm => (gcm::replacements(slot), gcm::is_by_kernel),
        _ => (blocks::replacements(slot), blocks::is_by_kernel),
    }
}

/// The row of a cipher whose other ways have the kernel's entry points for the inner cipher, and those the row of the inner cipher itself.
fn before_kernel(
    prov: &ProvCtx,
    mut row: CipherRow,
    functions: &[Dispatch],
    ((kernel, is_by_kernel), slot): (KernelFunctions, usize),
) -> Option<CipherRow> {
    let table: Vec<Dispatch> = swapped(functions.iter(), &kernel).collect();
    let (prov_ptr, algorithm, kind) = (row.prov, row.algorithm, row.kind);
    let thresholds = std::mem::replace(&mut row.thresholds, Thresholds::NEVER);
    row.is_beneath = true;
    let ways = |provider, functions: &[Dispatch]| {
        Some(CipherRow {
            prov: prov_ptr,
            provider,
            algorithm,
            kind,
            thresholds,
            native: None,
            inner: CipherFunctions::of(functions)?,
            beneath: None,
            before_decryption: None,
            kernels_slot: None,
            is_beneath: false,
        })
    };
    // No kernel encrypts CBC.
    let before_decryption = match algorithm.map(Algorithm::family) {
        Some(Family::Cbc) => {
            Some(Box::new(CipherRow { kernels_slot: Some(slot), ..ways(row.provider, functions)? }))
        }
        _ => None,
    };
    // Their `newctx` is the core's, with the core's argument.
    let provider = std::ptr::from_ref(prov).cast_mut().cast();
    let beneath = Some(Beneath { row: Box::new(row), is_by_kernel });
    Some(CipherRow { beneath, before_decryption, ..ways(provider, &table)? })
}

/// Modes of AES that may go another way, after `AES-128-` and its siblings. All others come from the default provider: each algorithm
/// costs a program's start some 30,000 instructions of libcrypto's, which walks through all names for it.
const MODES: &[&str] = &["ECB", "CBC", "CTR", "GCM", "XTS"];

/// Modes whose messages can be cut into block work. GCM cannot: its tag needs powers of H.
const RAW: &[Family] = &[Family::Ecb, Family::Cbc, Family::Ctr, Family::Xts];

fn offered(name: &[u8]) -> bool {
    let rest = name.strip_prefix(b"AES-").and_then(|rest| rest.split_at_checked(4));
    rest.is_some_and(|(key, mode)| {
        matches!(key, b"128-" | b"192-" | b"256-") && MODES.iter().any(|offered| offered.as_bytes() == mode)
    })
}

/// Numbers that [`cipher`] has a function for, and 9, which takes no context. Pipelines (15 to 18) are our own.
fn known(number: c_int) -> bool {
    (number::CIPHER_NEWCTX..=number::CIPHER_SETTABLE_CTX_PARAMS).contains(&number)
        || matches!(number, number::CIPHER_ENCRYPT_SKEY_INIT | number::CIPHER_DECRYPT_SKEY_INIT)
}

fn row(prov: &ProvCtx, provider: *mut c_void, name: &str, functions: &[Dispatch]) -> Option<CipherRow> {
    let algorithm = name.parse().ok().filter(|algorithm: &Algorithm| RAW.contains(&algorithm.family()));
    Some(CipherRow {
        prov,
        provider,
        algorithm,
        kind: Kind::named(name),
        // Where no other way exists, or none is wanted, every update is the inner function's.
        thresholds: Thresholds {
            combined_from: combining::thresh(prov, algorithm),
            block_from: algorithm.map_or(usize::MAX, |_| prov.ways().raw_from),
            split_from: algorithm.map_or(usize::MAX, |_| prov.settings.split_from()),
            gcm_from: if name.ends_with("-GCM") { prov.settings.split_from() } else { usize::MAX },
        },
        native: native(prov, name),
        inner: CipherFunctions::of(functions)?,
        beneath: None,
        before_decryption: None,
        kernels_slot: None,
        is_beneath: false,
    })
}

/// The kernel of a cipher that ours may do; of any other none.
/// The kernel of a cipher. ECB's only where it is told: those who call it ask for one block with a new key (InnoDB does so for each page), in
/// caches that are full of other things, where ours takes a tenth more (measured: 1390 and 1500 cycles).
fn native(prov: &ProvCtx, name: &str) -> Option<Native> {
    let (level, is_told) = prov.settings.kernel()?;
    let (family, key_bytes) = match name {
        "AES-128-GCM" => (Family::Gcm, 16),
        "AES-192-GCM" => (Family::Gcm, 24),
        "AES-256-GCM" => (Family::Gcm, 32),
        "AES-128-CTR" => (Family::Ctr, 16),
        "AES-192-CTR" => (Family::Ctr, 24),
        "AES-256-CTR" => (Family::Ctr, 32),
        "AES-128-CBC" => (Family::Cbc, 16),
        "AES-192-CBC" => (Family::Cbc, 24),
        "AES-256-CBC" => (Family::Cbc, 32),
        "AES-128-ECB" if is_told => (Family::Ecb, 16),
        "AES-192-ECB" if is_told => (Family::Ecb, 24),
        "AES-256-ECB" if is_told => (Family::Ecb, 32),
        "AES-128-XTS" => (Family::Xts, 32),
        "AES-256-XTS" => (Family::Xts, 64),
        _ => return None,
    };
    Some(Native { level, family, key_bytes, is_told })
}
