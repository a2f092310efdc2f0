//! Segmentation, judged by a writer that hands out plaintext byte by byte.

use super::*;

/// The definition, byte by byte: hands out plaintext to segments as a writer would, and counts.
fn cut_by_hand(cut: &Cut, plain_bytes: u64) -> Vec<Segment> {
    let mut segments = Vec::new();
    let (mut plain, mut cipher) = (0, cut.header_bytes);
    loop {
        let index = segments.len() as u64;
        let space = if index == 0 { cut.first_plain_bytes } else { cut.plain_bytes };
        let mut taken = 0;
        while taken < space && plain + taken < plain_bytes {
            taken += 1;
        }
        let done = plain + taken == plain_bytes;
        let (last, grown) = match cut.growth {
            Growth::Tag { .. } => (done, taken + 16),
            Growth::None => (done, taken),
            Growth::Padding if taken == space => (false, taken),
            Growth::Padding => (true, (taken / 16 + 1) * 16),
        };
        segments.push(Segment { index, last, plain: plain..plain + taken, cipher: cipher..cipher + grown });
        (plain, cipher) = (plain + taken, cipher + grown);
        if last {
            return segments;
        }
    }
}

fn cuts() -> Vec<Cut> {
    let tag = |empty_last_is_read| Growth::Tag { empty_last_is_read };
    let mut cuts = vec![
        Cut::new(24, 1, 25, tag(true)),
        Cut::new(40, 7, 47, tag(true)),
        Cut::new(0, 5, 5, tag(false)),
        Cut::new(200, 64, 64, tag(false)),
        Cut::new(16, 32, 32, Growth::Padding),
        Cut::new(16, 16, 16, Growth::Padding),
        Cut::new(16, 32, 32, Growth::None),
    ];
    cuts.extend((1..40).map(|space| Cut::new(space % 7, space / 2 + 1, space, tag(space % 2 == 0))));
    cuts
}

fn segments(layout: &Layout) -> Vec<Segment> {
    (0..layout.segment_count()).map(|index| layout.segment(index)).collect()
}

#[test]
fn a_plaintext_is_cut_as_a_writer_would_that_goes_byte_by_byte() {
    for cut in cuts() {
        for plain_bytes in 0..300 {
            let by_hand = cut_by_hand(&cut, plain_bytes);
            let layout = cut.of_plain(plain_bytes).unwrap();
            assert_eq!(segments(&layout), by_hand, "{cut:?} {plain_bytes}");
            assert_eq!(layout.cipher_bytes(), by_hand.last().unwrap().cipher.end);
            assert!(by_hand.iter().all(|s| s.cipher.end - s.cipher.start <= cut.slot_bytes()));
        }
    }
}

#[test]
fn a_ciphertext_is_cut_as_it_was_written_and_other_lengths_are_refused() {
    for cut in cuts() {
        for cipher_bytes in 0..400 {
            let written = (0..400).rev().find(|&plain_bytes| {
                cut_by_hand(&cut, plain_bytes).last().unwrap().cipher.end == cipher_bytes
            });
            match (cut.of_cipher(cipher_bytes), written) {
                (Ok(layout), Some(plain_bytes)) => {
                    assert_eq!(segments(&layout), cut_by_hand(&cut, plain_bytes), "{cut:?} {cipher_bytes}");
                }
                (Ok(layout), None) => {
                    let last = segments(&layout).pop().unwrap();
                    assert_eq!(cut.growth, Growth::Tag { empty_last_is_read: true }, "{cut:?}");
                    assert!(last.index > 0 && last.plain.is_empty(), "{cut:?} {cipher_bytes}");
                }
                (Err(error), written) => assert_eq!(written, None, "{cut:?} {cipher_bytes} {error}"),
            }
        }
    }
}

#[test]
fn the_longest_plaintext_of_a_padded_ciphertext_fills_all_but_one_byte() {
    let cut = Cut::new(16, 32, 32, Growth::Padding);
    let layout = cut.of_cipher(16 + 64).unwrap();
    assert_eq!((layout.plain_bytes(), layout.plain_bytes_is_exact()), (63, false));
}

#[test]
fn lengths_near_the_end_of_64_bits_are_refused_or_exact() {
    for cut in cuts() {
        for distance in 0..300 {
            let bytes = u64::MAX - distance;
            let body_bytes = match cut.growth {
                Growth::Padding => u128::from(bytes) / 16 * 16 + 16,
                Growth::None => bytes.into(),
                // Some tags for so many bytes go beyond in any case.
                Growth::Tag { .. } => 1 << 64,
            };
            let fits = u64::try_from(body_bytes + u128::from(cut.header_bytes)).ok();
            let cipher_bytes = cut.of_plain(bytes).map(|layout| layout.cipher_bytes());
            assert_eq!(cipher_bytes.ok(), fits);
            if let Ok(layout) = cut.of_cipher(bytes) {
                let last = layout.segment(layout.segment_count() - 1);
                assert_eq!(last.cipher.end, bytes);
                assert!(last.cipher.end - last.cipher.start <= cut.slot_bytes(), "{cut:?} {last:?}");
            }
        }
    }
}

#[test]
fn every_byte_is_found_in_the_segment_that_holds_it() {
    for cut in cuts() {
        for plain_bytes in [0, 1, 64, 65, 299] {
            let layout = cut.of_plain(plain_bytes).unwrap();
            for place in 0..plain_bytes {
                assert!(layout.segment(layout.index_of(place)).plain.contains(&place), "{cut:?} {place}");
            }
            assert_eq!(layout.index_of(plain_bytes + 1000), layout.segment_count() - 1);
        }
    }
}

#[test]
fn a_format_that_counts_to_four_refuses_a_fifth_segment() {
    let cut = Cut::new(8, 10, 20, Growth::Tag { empty_last_is_read: true }).with_segment_count_max(4);
    assert_eq!(cut.of_plain(70).unwrap().segment_count(), 4);
    assert_eq!(cut.of_plain(71), Err(FormatError::TooLong { bytes: 71 }));
    let cipher_bytes = cut.of_plain(70).unwrap().cipher_bytes();
    assert_eq!(cut.of_cipher(cipher_bytes + 16), Err(FormatError::TooLong { bytes: cipher_bytes + 16 }));
}
