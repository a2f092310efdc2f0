//! The S-box of AES and its inverse as circuits of 115 gates each, without their constants, which lie in round keys ([`COMPLEMENT`]).
//!
//! Inversion in GF(2^8) by way of GF(2^4) and GF(2^2), of which the linear layers before and behind are all that encryption and decryption differ in: circuit and
//! names of wires of Boyar and Peralta, "A New Combinational Logic Minimization Technique with Applications to Cryptology" (SEA 2010). The linear layers of the
//! inverse were found by their method: those of the S-box behind the inverse of its affine map, and in front of it.

use super::plane::Bits;

/// What the circuits leave out of the S-box: it is added behind this circuit, or before its inverse.
pub(super) const COMPLEMENT: u8 = 0x63;

/// One gate after the other.
macro_rules! gates {
    ($($out:ident = $one:ident $gate:tt $other:ident;)+) => {
        $(let $out = gates!(@ $gate, $one, $other);)+
    };
    (@ ^, $one:ident, $other:ident) => { $one.xor($other) };
    (@ &, $one:ident, $other:ident) => { $one.and($other) };
}

/// The S-box of each byte whose bits lie in these planes, the lowest first.
///
/// # Safety
/// As [`Bits`].
#[inline(always)]
pub(super) unsafe fn substitute<B: Bits>(planes: &mut [B; 8]) {
    let [x7, x6, x5, x4, x3, x2, x1, x0] = *planes;
    gates! {
        y14 = x3 ^ x5; y13 = x0 ^ x6; y9 = x0 ^ x3; y8 = x0 ^ x5; t0 = x1 ^ x2; y1 = t0 ^ x7;
        y4 = y1 ^ x3; y12 = y13 ^ y14; y2 = y1 ^ x0; y5 = y1 ^ x6; y3 = y5 ^ y8; t1 = x4 ^ y12;
        y15 = t1 ^ x5; y20 = t1 ^ x1; y6 = y15 ^ x7; y10 = y15 ^ t0; y11 = y20 ^ y9; y7 = x7 ^ y11;
        y17 = y10 ^ y11; y19 = y10 ^ y8; y16 = t0 ^ y11; y21 = y13 ^ y16; y18 = x0 ^ y16;
    }
    let wires =
        [x7, y1, y2, y3, y4, y5, y6, y7, y8, y9, y10, y11, y12, y13, y14, y15, y16, y17, y18, y19, y20, y21];
    let [z0, z1, z2, z3, z4, z5, z6, z7, z8, z9, z10, z11, z12, z13, z14, z15, z16, z17] = inverted(wires);
    gates! {
        t46 = z15 ^ z16; t47 = z10 ^ z11; t48 = z5 ^ z13; t49 = z9 ^ z10; t50 = z2 ^ z12; t51 = z2 ^ z5;
        t52 = z7 ^ z8; t53 = z0 ^ z3; t54 = z6 ^ z7; t55 = z16 ^ z17; t56 = z12 ^ t48; t57 = t50 ^ t53;
        t58 = z4 ^ t46; t59 = z3 ^ t54; t60 = t46 ^ t57; t61 = z14 ^ t57; t62 = t52 ^ t58; t63 = t49 ^ t58;
        t64 = z4 ^ t59; t65 = t61 ^ t62; t66 = z1 ^ t63; s0 = t59 ^ t63; s6 = t56 ^ t62; s7 = t48 ^ t60;
        t67 = t64 ^ t65; s3 = t53 ^ t66; s4 = t51 ^ t66; s5 = t47 ^ t65; s1 = t64 ^ s3; s2 = t55 ^ t67;
    }
    *planes = [s7, s6, s5, s4, s3, s2, s1, s0];
}

/// The inverse S-box, likewise.
///
/// # Safety
/// As [`Bits`].
#[inline(always)]
pub(super) unsafe fn substitute_back<B: Bits>(planes: &mut [B; 8]) {
    let [x7, x6, x5, x4, x3, x2, x1, x0] = *planes;
    gates! {
        y5 = x1 ^ x3; y19 = x4 ^ x7; y8 = x0 ^ x1; y9 = x3 ^ x4; y10 = y19 ^ y8; y1 = x3 ^ y19;
        y13 = x6 ^ y1; y2 = y5 ^ y13; y4 = y9 ^ y2; y7 = x2 ^ y4; y3 = x0 ^ x3; y14 = y8 ^ y9;
        y18 = x2 ^ y9; y12 = y13 ^ y14; y21 = x6 ^ y7; y6 = x0 ^ y5; y16 = y1 ^ y7; a0 = x0 ^ x5;
        y0 = x2 ^ a0; y11 = y4 ^ a0; y20 = y9 ^ y11; y15 = y6 ^ y0; y17 = y10 ^ y11;
    }
    let wires =
        [y0, y1, y2, y3, y4, y5, y6, y7, y8, y9, y10, y11, y12, y13, y14, y15, y16, y17, y18, y19, y20, y21];
    let [z0, z1, z2, z3, z4, z5, z6, z7, z8, z9, z10, z11, z12, z13, z14, z15, z16, z17] = inverted(wires);
    gates! {
        b0 = z6 ^ z15; b1 = z12 ^ b0; b2 = z16 ^ b1; b3 = z13 ^ b2; b4 = z8 ^ b3; b5 = z3 ^ b4;
        s0 = z5 ^ b5; b7 = z4 ^ b5; b8 = z1 ^ b7; b9 = z2 ^ z10; b10 = z11 ^ b9; b11 = z0 ^ b4;
        s3 = z2 ^ b11; b13 = z7 ^ z8; s6 = b7 ^ b13; b15 = s0 ^ b11; s5 = b8 ^ b15; b17 = z14 ^ b8;
        b18 = z9 ^ z17; b19 = z15 ^ b18; s7 = z11 ^ b19; b21 = b10 ^ b17; s2 = z13 ^ b21; b23 = z16 ^ b10;
        b24 = z17 ^ s6; b25 = b15 ^ b23; s4 = b24 ^ b25; b27 = b2 ^ s7; b28 = b21 ^ b27; s1 = z6 ^ b28;
    }
    *planes = [s7, s6, s5, s4, s3, s2, s1, s0];
}

/// What both have in common: the inverse in the field, from what is linear in a byte to what its inverse is linear in.
#[inline(always)]
unsafe fn inverted<B: Bits>(wires: [B; 22]) -> [B; 18] {
    let [y0, y1, y2, y3, y4, y5, y6, y7, y8, y9, y10, y11, y12, y13, y14, y15, y16, y17, y18, y19, y20, y21] =
        wires;
    gates! {
        t2 = y12 & y15; t3 = y3 & y6; t4 = t3 ^ t2; t5 = y4 & y0; t6 = t5 ^ t2; t7 = y13 & y16;
        t8 = y5 & y1; t9 = t8 ^ t7; t10 = y2 & y7; t11 = t10 ^ t7; t12 = y9 & y11; t13 = y14 & y17;
        t14 = t13 ^ t12; t15 = y8 & y10; t16 = t15 ^ t12; t17 = t4 ^ t14; t18 = t6 ^ t16; t19 = t9 ^ t14;
        t20 = t11 ^ t16; t21 = t17 ^ y20; t22 = t18 ^ y19; t23 = t19 ^ y21; t24 = t20 ^ y18;
        t25 = t21 ^ t22; t26 = t21 & t23; t27 = t24 ^ t26; t28 = t25 & t27; t29 = t28 ^ t22;
        t30 = t23 ^ t24; t31 = t22 ^ t26; t32 = t31 & t30; t33 = t32 ^ t24; t34 = t23 ^ t33;
        t35 = t27 ^ t33; t36 = t24 & t35; t37 = t36 ^ t34; t38 = t27 ^ t36; t39 = t29 & t38;
        t40 = t25 ^ t39; t41 = t40 ^ t37; t42 = t29 ^ t33; t43 = t29 ^ t40; t44 = t33 ^ t37;
        t45 = t42 ^ t41;
        z0 = t44 & y15; z1 = t37 & y6; z2 = t33 & y0; z3 = t43 & y16; z4 = t40 & y1; z5 = t29 & y7;
        z6 = t42 & y11; z7 = t45 & y17; z8 = t41 & y10; z9 = t44 & y12; z10 = t37 & y3; z11 = t33 & y4;
        z12 = t43 & y13; z13 = t40 & y5; z14 = t29 & y2; z15 = t42 & y9; z16 = t45 & y14; z17 = t41 & y8;
    }
    [z0, z1, z2, z3, z4, z5, z6, z7, z8, z9, z10, z11, z12, z13, z14, z15, z16, z17]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Planes of 256 bytes in lots of 64.
    fn planes(bytes: [u8; 64]) -> [u64; 8] {
        std::array::from_fn(|bit| {
            bytes.iter().rev().fold(0, |plane, byte| plane << 1 | u64::from(byte >> bit & 1))
        })
    }

    fn bytes(planes: [u64; 8]) -> [u8; 64] {
        std::array::from_fn(|at| {
            planes.iter().rev().fold(0, |byte, plane| byte << 1 | u8::try_from(plane >> at & 1).unwrap())
        })
    }

    /// FIPS 197, 5.1.1: the inverse in GF(2^8), and an affine map.
    fn defined(byte: u8) -> u8 {
        let product = |one: u8, other: u8| {
            (0..8).rev().fold(0_u8, |sum, bit| {
                let doubled = (sum << 1) ^ ((sum >> 7) * 0x1b);
                doubled ^ ((other >> bit & 1) * one)
            })
        };
        let inverse = (0..=255).find(|other| product(byte, *other) == 1).unwrap_or(0);
        (0..5).fold(0x63, |sum, turn| sum ^ inverse.rotate_left(turn))
    }

    #[test]
    fn the_circuits_are_the_s_box_and_its_inverse() {
        for lot in 0..4_u8 {
            let all: [u8; 64] = std::array::from_fn(|at| lot * 64 + u8::try_from(at).unwrap());
            let mut sliced = planes(all);
            // SAFETY: words need nothing.
            unsafe { substitute(&mut sliced) };
            let found = bytes(sliced).map(|byte| byte ^ COMPLEMENT);
            assert_eq!(found, all.map(defined));
            let mut sliced = planes(found.map(|byte| byte ^ COMPLEMENT));
            // SAFETY: as above.
            unsafe { substitute_back(&mut sliced) };
            assert_eq!(bytes(sliced), all);
        }
    }
}
