//! The rounds of AES over planes, without shifting rows.
//!
//! What ShiftRows would have moved is left where it is, and the next round takes it from there: after `i` rounds row `r` lies `i r` columns off, which MixColumns
//! minds by turning columns as well as rows, and round keys by having been moved likewise. After four rounds all is in place, so that only 10 and 14 rounds end with
//! a turn by half: Adomnicai and Peyrin, "Fixslicing AES-like Ciphers" (TCHES 2021).

use super::plane::Plane;
use super::sbox::{substitute, substitute_back};

/// Encrypts the blocks of these planes by `last` rounds.
///
/// # Safety
/// As [`Plane`]; there are eight planes of each of `last` + 1 round keys.
#[inline(always)]
pub(super) unsafe fn encrypt<P: Plane>(planes: &mut [P; 8], keys: *const P, last: usize) {
    add(planes, keys);
    for round in 1..=last {
        substitute(planes);
        if round < last {
            match round % 4 {
                0 => mix::<P, 0>(planes),
                1 => mix::<P, 1>(planes),
                2 => mix::<P, 2>(planes),
                _ => mix::<P, 3>(planes),
            }
        }
        add(planes, keys.add(8 * round));
    }
    if last % 4 != 0 {
        turn_by_half(planes);
    }
}

/// Decrypts them, by the same keys.
///
/// # Safety
/// As [`encrypt`].
#[inline(always)]
pub(super) unsafe fn decrypt<P: Plane>(planes: &mut [P; 8], keys: *const P, last: usize) {
    if last % 4 != 0 {
        turn_by_half(planes);
    }
    for round in (1..=last).rev() {
        add(planes, keys.add(8 * round));
        if round < last {
            match round % 4 {
                0 => mix_back::<P, 0>(planes),
                1 => mix_back::<P, 1>(planes),
                2 => mix_back::<P, 2>(planes),
                _ => mix_back::<P, 3>(planes),
            }
        }
        substitute_back(planes);
    }
    add(planes, keys);
}

#[inline(always)]
unsafe fn add<P: Plane>(planes: &mut [P; 8], keys: *const P) {
    for (bit, plane) in planes.iter_mut().enumerate() {
        *plane = plane.xor(*keys.add(bit));
    }
}

/// Twice ShiftRows.
#[inline(always)]
unsafe fn turn_by_half<P: Plane>(planes: &mut [P; 8]) {
    for plane in planes {
        let moved = plane.turned::<0, 2>().xor(*plane).and(P::odd_rows());
        *plane = plane.xor(moved);
    }
}

/// The next byte of the same column, after `ROUND` rounds.
#[inline(always)]
unsafe fn next<P: Plane, const ROUND: usize>(plane: P) -> P {
    match ROUND {
        0 => plane.turned::<1, 0>(),
        1 => plane.turned::<1, 1>(),
        2 => plane.turned::<1, 2>(),
        _ => plane.turned::<1, 3>(),
    }
}

/// The one behind the next.
#[inline(always)]
unsafe fn second<P: Plane, const ROUND: usize>(plane: P) -> P {
    if ROUND % 2 == 0 { plane.turned::<2, 0>() } else { plane.turned::<2, 2>() }
}

/// MixColumns of each byte `a`: twice `t` = `a` + next, next, and that `t` which is two further.
#[inline(always)]
unsafe fn mix<P: Plane, const ROUND: usize>(planes: &mut [P; 8]) {
    let a = *planes;
    let mut n = a;
    let mut t = a;
    for bit in 0..8 {
        n[bit] = next::<P, ROUND>(a[bit]);
        t[bit] = a[bit].xor(n[bit]);
    }
    for bit in 0..8 {
        planes[bit] = n[bit].xor(second::<P, ROUND>(t[bit])).xor(t[(bit + 7) % 8]);
    }
    // x^8 is x^4 + x^3 + x + 1, of which the 1 has come round.
    for bit in [1, 3, 4] {
        planes[bit] = planes[bit].xor(t[7]);
    }
}

/// The inverse of MixColumns: it, of each byte `a` and four times `u` = `a` + the second.
#[inline(always)]
unsafe fn mix_back<P: Plane, const ROUND: usize>(planes: &mut [P; 8]) {
    let mut u = *planes;
    for plane in &mut u {
        *plane = plane.xor(second::<P, ROUND>(*plane));
    }
    for bit in 0..8 {
        planes[bit] = planes[bit].xor(u[(bit + 6) % 8]);
    }
    // As x^8 has come round in part, and x^9, which is x^5 + x^4 + x^2 + x.
    for (bit, extra) in [(1, u[6]), (3, u[6]), (4, u[6]), (2, u[7]), (4, u[7]), (5, u[7])] {
        planes[bit] = planes[bit].xor(extra);
    }
    mix::<P, ROUND>(planes);
}
