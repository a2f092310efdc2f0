//! Constants of FIPS 180-4: the first bits of the fractional parts of roots of primes (4.2.2, 4.2.3, 5.3), and those of SHA-1 (4.2.1, 5.3.1).
//!
//! `tests` computes the roots anew.

/// Of SHA-224 and SHA-256, by rounds: cube roots of the first 64 primes.
#[cfg(any(hash_kernels, test))]
pub(super) const K256: [u32; 64] = [
    0x428a_2f98,
    0x7137_4491,
    0xb5c0_fbcf,
    0xe9b5_dba5,
    0x3956_c25b,
    0x59f1_11f1,
    0x923f_82a4,
    0xab1c_5ed5,
    0xd807_aa98,
    0x1283_5b01,
    0x2431_85be,
    0x550c_7dc3,
    0x72be_5d74,
    0x80de_b1fe,
    0x9bdc_06a7,
    0xc19b_f174,
    0xe49b_69c1,
    0xefbe_4786,
    0x0fc1_9dc6,
    0x240c_a1cc,
    0x2de9_2c6f,
    0x4a74_84aa,
    0x5cb0_a9dc,
    0x76f9_88da,
    0x983e_5152,
    0xa831_c66d,
    0xb003_27c8,
    0xbf59_7fc7,
    0xc6e0_0bf3,
    0xd5a7_9147,
    0x06ca_6351,
    0x1429_2967,
    0x27b7_0a85,
    0x2e1b_2138,
    0x4d2c_6dfc,
    0x5338_0d13,
    0x650a_7354,
    0x766a_0abb,
    0x81c2_c92e,
    0x9272_2c85,
    0xa2bf_e8a1,
    0xa81a_664b,
    0xc24b_8b70,
    0xc76c_51a3,
    0xd192_e819,
    0xd699_0624,
    0xf40e_3585,
    0x106a_a070,
    0x19a4_c116,
    0x1e37_6c08,
    0x2748_774c,
    0x34b0_bcb5,
    0x391c_0cb3,
    0x4ed8_aa4a,
    0x5b9c_ca4f,
    0x682e_6ff3,
    0x748f_82ee,
    0x78a5_636f,
    0x84c8_7814,
    0x8cc7_0208,
    0x90be_fffa,
    0xa450_6ceb,
    0xbef9_a3f7,
    0xc671_78f2,
];

/// Of SHA-384 and SHA-512, by rounds: cube roots of the first 80 primes.
#[cfg(any(hash_kernels, test))]
pub(super) const K512: [u64; 80] = [
    0x428a_2f98_d728_ae22,
    0x7137_4491_23ef_65cd,
    0xb5c0_fbcf_ec4d_3b2f,
    0xe9b5_dba5_8189_dbbc,
    0x3956_c25b_f348_b538,
    0x59f1_11f1_b605_d019,
    0x923f_82a4_af19_4f9b,
    0xab1c_5ed5_da6d_8118,
    0xd807_aa98_a303_0242,
    0x1283_5b01_4570_6fbe,
    0x2431_85be_4ee4_b28c,
    0x550c_7dc3_d5ff_b4e2,
    0x72be_5d74_f27b_896f,
    0x80de_b1fe_3b16_96b1,
    0x9bdc_06a7_25c7_1235,
    0xc19b_f174_cf69_2694,
    0xe49b_69c1_9ef1_4ad2,
    0xefbe_4786_384f_25e3,
    0x0fc1_9dc6_8b8c_d5b5,
    0x240c_a1cc_77ac_9c65,
    0x2de9_2c6f_592b_0275,
    0x4a74_84aa_6ea6_e483,
    0x5cb0_a9dc_bd41_fbd4,
    0x76f9_88da_8311_53b5,
    0x983e_5152_ee66_dfab,
    0xa831_c66d_2db4_3210,
    0xb003_27c8_98fb_213f,
    0xbf59_7fc7_beef_0ee4,
    0xc6e0_0bf3_3da8_8fc2,
    0xd5a7_9147_930a_a725,
    0x06ca_6351_e003_826f,
    0x1429_2967_0a0e_6e70,
    0x27b7_0a85_46d2_2ffc,
    0x2e1b_2138_5c26_c926,
    0x4d2c_6dfc_5ac4_2aed,
    0x5338_0d13_9d95_b3df,
    0x650a_7354_8baf_63de,
    0x766a_0abb_3c77_b2a8,
    0x81c2_c92e_47ed_aee6,
    0x9272_2c85_1482_353b,
    0xa2bf_e8a1_4cf1_0364,
    0xa81a_664b_bc42_3001,
    0xc24b_8b70_d0f8_9791,
    0xc76c_51a3_0654_be30,
    0xd192_e819_d6ef_5218,
    0xd699_0624_5565_a910,
    0xf40e_3585_5771_202a,
    0x106a_a070_32bb_d1b8,
    0x19a4_c116_b8d2_d0c8,
    0x1e37_6c08_5141_ab53,
    0x2748_774c_df8e_eb99,
    0x34b0_bcb5_e19b_48a8,
    0x391c_0cb3_c5c9_5a63,
    0x4ed8_aa4a_e341_8acb,
    0x5b9c_ca4f_7763_e373,
    0x682e_6ff3_d6b2_b8a3,
    0x748f_82ee_5def_b2fc,
    0x78a5_636f_4317_2f60,
    0x84c8_7814_a1f0_ab72,
    0x8cc7_0208_1a64_39ec,
    0x90be_fffa_2363_1e28,
    0xa450_6ceb_de82_bde9,
    0xbef9_a3f7_b2c6_7915,
    0xc671_78f2_e372_532b,
    0xca27_3ece_ea26_619c,
    0xd186_b8c7_21c0_c207,
    0xeada_7dd6_cde0_eb1e,
    0xf57d_4f7f_ee6e_d178,
    0x06f0_67aa_7217_6fba,
    0x0a63_7dc5_a2c8_98a6,
    0x113f_9804_bef9_0dae,
    0x1b71_0b35_131c_471b,
    0x28db_77f5_2304_7d84,
    0x32ca_ab7b_40c7_2493,
    0x3c9e_be0a_15c9_bebc,
    0x431d_67c4_9c10_0d4c,
    0x4cc5_d4be_cb3e_42b6,
    0x597f_299c_fc65_7e2a,
    0x5fcb_6fab_3ad6_faec,
    0x6c44_198c_4a47_5817,
];

/// Of SHA-1, by twenties of rounds.
#[cfg(hash_kernels)]
pub(super) const K1: [u32; 4] = [0x5a82_7999, 0x6ed9_eba1, 0x8f1b_bcdc, 0xca62_c1d6];

/// First state of SHA-1; the words behind it are of no use.
pub(super) const SHA_1: [u64; 8] = [
    0x0000_0000_6745_2301,
    0x0000_0000_efcd_ab89,
    0x0000_0000_98ba_dcfe,
    0x0000_0000_1032_5476,
    0x0000_0000_c3d2_e1f0,
    0x0000_0000_0000_0000,
    0x0000_0000_0000_0000,
    0x0000_0000_0000_0000,
];

/// First state of SHA-256: square roots of the first 8 primes.
pub(super) const SHA_256: [u64; 8] = [
    0x0000_0000_6a09_e667,
    0x0000_0000_bb67_ae85,
    0x0000_0000_3c6e_f372,
    0x0000_0000_a54f_f53a,
    0x0000_0000_510e_527f,
    0x0000_0000_9b05_688c,
    0x0000_0000_1f83_d9ab,
    0x0000_0000_5be0_cd19,
];

/// First state of SHA-224: the second 32 bits of those of SHA-384.
pub(super) const SHA_224: [u64; 8] = [
    0x0000_0000_c105_9ed8,
    0x0000_0000_367c_d507,
    0x0000_0000_3070_dd17,
    0x0000_0000_f70e_5939,
    0x0000_0000_ffc0_0b31,
    0x0000_0000_6858_1511,
    0x0000_0000_64f9_8fa7,
    0x0000_0000_befa_4fa4,
];

/// First state of SHA-384: square roots of the ninth to sixteenth prime.
pub(super) const SHA_384: [u64; 8] = [
    0xcbbb_9d5d_c105_9ed8,
    0x629a_292a_367c_d507,
    0x9159_015a_3070_dd17,
    0x152f_ecd8_f70e_5939,
    0x6733_2667_ffc0_0b31,
    0x8eb4_4a87_6858_1511,
    0xdb0c_2e0d_64f9_8fa7,
    0x47b5_481d_befa_4fa4,
];

/// First state of SHA-512: square roots of the first 8 primes.
pub(super) const SHA_512: [u64; 8] = [
    0x6a09_e667_f3bc_c908,
    0xbb67_ae85_84ca_a73b,
    0x3c6e_f372_fe94_f82b,
    0xa54f_f53a_5f1d_36f1,
    0x510e_527f_ade6_82d1,
    0x9b05_688c_2b3e_6c1f,
    0x1f83_d9ab_fb41_bd6b,
    0x5be0_cd19_137e_2179,
];

#[cfg(test)]
mod tests {
    use super::*;

    /// Bits behind the point of a root of a prime: as many as a word of 64 bits has. By bisection on whole numbers.
    fn fraction(prime: u128, degree: u32) -> u64 {
        let is_below = |root: u64, whole: u128| power_is_below(whole << 64 | u128::from(root), degree, prime);
        let whole = (1..).take_while(|root: &u128| root.pow(degree) <= prime).last().expect("1 is below");
        let mut found = 0;
        for bit in (0..64).rev() {
            let tried = found | 1 << bit;
            if is_below(tried, whole) {
                found = tried;
            }
        }
        found
    }

    /// Whether a number in units of 2^-64, to a power, is at most a prime.
    fn power_is_below(number: u128, degree: u32, prime: u128) -> bool {
        let digits = [number & u128::from(u32::MAX), number >> 32 & u128::from(u32::MAX), number >> 64];
        let mut product = vec![1_u128];
        for _ in 0..degree {
            let mut next = vec![0_u128; product.len() + 3];
            for (at, digit) in product.iter().enumerate() {
                for (by, other) in digits.iter().enumerate() {
                    next[at + by] += digit * other;
                }
            }
            for at in 0..next.len() - 1 {
                next[at + 1] += next[at] >> 32;
                next[at] &= u128::from(u32::MAX);
            }
            product = next;
        }
        let whole: u128 =
            product.iter().skip(2 * degree as usize).rev().fold(0, |sum, digit| sum << 32 | digit);
        whole < prime
    }

    fn primes() -> impl Iterator<Item = u128> {
        (2..).filter(|number| (2..*number).all(|divisor| number % divisor != 0))
    }

    #[test]
    fn constants_are_roots_of_primes() {
        for (at, prime) in primes().take(80).enumerate() {
            let cube = fraction(prime, 3);
            assert_eq!(K512[at], cube, "{prime}");
            if let Some(constant) = K256.get(at) {
                assert_eq!(u64::from(*constant), cube >> 32, "{prime}");
            }
            let square = fraction(prime, 2);
            match at {
                0..8 => assert_eq!((SHA_512[at], SHA_256[at]), (square, square >> 32), "{prime}"),
                8..16 => {
                    assert_eq!((SHA_384[at - 8], SHA_224[at - 8]), (square, square & 0xffff_ffff), "{prime}");
                }
                _ => {}
            }
        }
    }
}
