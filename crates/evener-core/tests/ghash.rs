//! The algebra of GHASH against a bit-by-bit product, against `aes-gcm`, and against NIST's examples.

use aes::cipher::{BlockEncrypt as _, KeyInit as _};
use aes_gcm::aead::generic_array::GenericArray;
use aes_gcm::aead::{AeadInPlace as _, consts};
use evener_core::ghash::{self, Block, Element, HashKey, Lengths, join};
use proptest::prelude::*;

/// SP 800-38D, algorithm 1, word for word.
fn naive_product(x: u128, y: u128) -> u128 {
    let (mut z, mut v) = (0, y);
    for bit in (0..128).rev() {
        if x >> bit & 1 == 1 {
            z ^= v;
        }
        v = if v & 1 == 0 { v >> 1 } else { v >> 1 ^ 0xE1 << 120 };
    }
    z
}

/// SP 800-38D, algorithm 2, over whole blocks.
fn naive_hash(key: Block, blocks: &[u128]) -> u128 {
    blocks.iter().fold(0, |sum, block| naive_product(sum ^ block, u128::from_be_bytes(key)))
}

/// `data` as blocks, the last one filled up with zeros.
fn blocks(data: &[u8]) -> Vec<u128> {
    let block = |chunk: &[u8]| {
        let mut block = [0; 16];
        block[..chunk.len()].copy_from_slice(chunk);
        u128::from_be_bytes(block)
    };
    data.chunks(16).map(block).collect()
}

fn element(word: u128) -> Element {
    word.to_be_bytes().into()
}

fn word(element: Element) -> u128 {
    u128::from_be_bytes(element.into())
}

/// The sum of `data` alone.
fn state(key: &HashKey, data: &[u8]) -> Element {
    blocks(data).iter().fold(Element::default(), |sum, block| key.absorb(sum, &block.to_be_bytes()))
}

fn lengths(aad: &[u8], text: &[u8]) -> Lengths {
    Lengths { aad_bytes: aad.len() as u64, text_bytes: text.len() as u64 }
}

/// A word whose bits are mostly of one kind too: long runs of ones are what the integers' holes must hold.
fn words() -> impl Strategy<Value = u128> {
    prop_oneof![
        4 => any::<u128>(),
        1 => (any::<u128>(), any::<u128>(), any::<u128>()).prop_map(|(a, b, c)| a | b | c),
        1 => Just(u128::MAX),
        1 => (0u32..128).prop_map(|bit| 1 << bit),
        1 => (0u32..128).prop_map(|bit| !(1 << bit)),
    ]
}

proptest! {
    #[test]
    fn a_product_is_the_standards(x in words(), y in words()) {
        prop_assert_eq!(word(element(x) * element(y)), naive_product(x, y));
    }

    #[test]
    fn a_power_is_repeated_multiplication(x in words(), exponent in 0u64..40) {
        let repeated = (0..exponent).fold(word(Element::ONE), |power, _| naive_product(power, x));
        prop_assert_eq!(word(element(x).pow(exponent)), repeated);
    }

    #[test]
    fn powers_add_their_exponents(x in words(), a in any::<u32>(), b in any::<u32>()) {
        let (a, b) = (u64::from(a), u64::from(b));
        prop_assert_eq!(word(element(x).pow(a) * element(x).pow(b)), word(element(x).pow(a + b)));
    }

    #[test]
    fn a_solved_iv_hashes_to_the_wanted_counter_block(key in 1u128.., counter in any::<u128>()) {
        let key = key.to_be_bytes();
        let iv = HashKey::new(&key).unwrap().iv_starting_at(&counter.to_be_bytes());
        prop_assert_eq!(naive_hash(key, &[u128::from_be_bytes(iv), 128]), counter);
    }

    #[test]
    fn a_solved_block_of_associated_data_leads_to_the_wanted_sum(key in 1u128.., sum in any::<u128>()) {
        let key = key.to_be_bytes();
        let aad = HashKey::new(&key).unwrap().aad_leading_to(element(sum));
        prop_assert_eq!(naive_hash(key, &[u128::from_be_bytes(aad)]), sum);
    }

    #[test]
    fn parts_join_to_the_hash_of_the_whole(
        key in 1u128..,
        parts in prop::collection::vec(0usize..5, 0..6),
        tail in prop::collection::vec(any::<u8>(), 0..40),
        seed in any::<u8>(),
    ) {
        let key_block = key.to_be_bytes();
        let key = HashKey::new(&key_block).unwrap();
        let whole: Vec<u8> = (0..parts.iter().sum::<usize>() * 16)
            .map(|at| seed.wrapping_mul(31).wrapping_add((at * 7).to_le_bytes()[0]))
            .chain(tail.iter().copied())
            .collect();
        let (mut rest, mut sum) = (whole.as_slice(), Element::default());
        for len in parts.iter().map(|blocks| blocks * 16).chain([tail.len()]) {
            let (part, after) = rest.split_at(len);
            // As a part's own tag would give it, without its mask.
            let own = key.state_of(&key.digest(state(&key, part), lengths(&[], part)), lengths(&[], part));
            sum = join(sum, own, key.power(len.div_ceil(16) as u64));
            rest = after;
        }
        let mut hashed = blocks(&whole);
        hashed.push(whole.len() as u128 * 8);
        prop_assert_eq!(u128::from_be_bytes(key.digest(sum, lengths(&[], &whole))), naive_hash(key_block, &hashed));
    }

    #[test]
    fn a_counter_wraps_in_its_word_only(prefix in any::<[u8; 12]>(), count in any::<u32>(), blocks in any::<u64>()) {
        let block = |count: u32| -> Block {
            let mut block = [0; 16];
            block[..12].copy_from_slice(&prefix);
            block[12..].copy_from_slice(&count.to_be_bytes());
            block
        };
        let expected = (u128::from(count) + u128::from(blocks)) % (1 << 32);
        let expected = block(u32::try_from(expected).unwrap());
        prop_assert_eq!(ghash::counter_after(&block(count), blocks), expected);
    }

    /// What the provider does with OpenSSL's contexts, with `aes-gcm` in their place.
    #[test]
    fn a_message_entered_in_the_middle_has_the_text_and_the_tag_of_the_whole(
        key in any::<[u8; 16]>(),
        nonce in any::<[u8; 12]>(),
        aad in prop::collection::vec(any::<u8>(), 0..40),
        text in prop::collection::vec(any::<u8>(), 0..200),
        cut_blocks in 0usize..12,
    ) {
        let cut = (cut_blocks * 16).min(text.len() / 16 * 16);
        let mut whole = text.clone();
        let gcm = aes_gcm::Aes128Gcm::new(&key.into());
        let tag = gcm.encrypt_in_place_detached(&nonce.into(), &aad, &mut whole).unwrap();

        let cipher = aes::Aes128::new(&key.into());
        let hash_key = HashKey::new(&encrypt(&cipher, [0; 16])).unwrap();
        let mut counter = [0; 16];
        counter[..12].copy_from_slice(&nonce);
        counter[15] = 1;
        // The front, by itself, and the sum in which it leaves the whole.
        let mut front = text[..cut].to_vec();
        let front_tag = gcm.encrypt_in_place_detached(&nonce.into(), &aad, &mut front).unwrap();
        let masked = xor(front_tag.into(), encrypt(&cipher, counter));
        let sum = hash_key.state_of(&masked, lengths(&aad, &front));
        // The back, in a context that begins where the front ended: counter by the IV, sum by associated data.
        let begin = ghash::counter_after(&counter, cut_blocks.min(text.len() / 16) as u64);
        let (iv, leading) = (hash_key.iv_starting_at(&begin), hash_key.aad_leading_to(sum));
        let mut back = text[cut..].to_vec();
        let wide = aes_gcm::AesGcm::<aes::Aes128, consts::U16>::new(&key.into());
        let back_tag = wide.encrypt_in_place_detached(&iv.into(), &leading, &mut back).unwrap();
        let masked = xor(back_tag.into(), encrypt(&cipher, begin));
        let sum = hash_key.state_of(&masked, lengths(&leading, &back));
        let joined = xor(hash_key.digest(sum, lengths(&aad, &text)), encrypt(&cipher, counter));

        prop_assert_eq!([front, back].concat(), whole);
        prop_assert_eq!(joined, Block::from(tag));
    }
}

fn encrypt(cipher: &aes::Aes128, block: Block) -> Block {
    let mut block = GenericArray::from(block);
    cipher.encrypt_block(&mut block);
    block.into()
}

fn xor(a: Block, b: Block) -> Block {
    (u128::from_be_bytes(a) ^ u128::from_be_bytes(b)).to_be_bytes()
}

#[test]
fn a_hash_key_of_zero_is_refused() {
    assert!(HashKey::new(&[0; 16]).is_none());
}

#[test]
fn nists_examples_have_our_tags() {
    let mut count = 0;
    for case in evener_vectors::by_algorithm("AES-128-GCM").filter(|case| case.valid) {
        let key: [u8; 16] = case.key.as_slice().try_into().unwrap();
        let cipher = aes::Aes128::new(&key.into());
        let hash_key = HashKey::new(&encrypt(&cipher, [0; 16])).unwrap();
        let mut counter = [0; 16];
        counter[..12].copy_from_slice(&case.iv);
        counter[15] = 1;
        let text = state(&hash_key, &case.ciphertext);
        let power = hash_key.power(case.ciphertext.len().div_ceil(16) as u64);
        let sum = join(state(&hash_key, &case.aad), text, power);
        let digest = hash_key.digest(sum, lengths(&case.aad, &case.ciphertext));
        assert_eq!(xor(digest, encrypt(&cipher, counter)).as_slice(), case.tag, "{}", case.id);
        count += 1;
    }
    assert!(count > 100, "only {count} examples");
}
