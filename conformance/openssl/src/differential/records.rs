//! Records as libssl runs them: sealed, then opened, at times damaged on the way.

use super::context_pair::ContextPair;
use super::{Libraries, SeededRandom};

/// On the wire: SSL 3, TLS 1.0 to 1.2, DTLS 1.0 and 1.2.
const VERSIONS: [u16; 6] = [0x0303, 0x0303, 0x0302, 0x0301, 0x0300, 0xFEFD];
/// None (Encrypt-then-MAC), SHA-1, SHA-256, SHA-384.
const MAC_BYTES: [usize; 5] = [0, 0, 20, 32, 48];
const BLOCK_BYTES: usize = 16;
/// RFC 5246, section 6.2.1.
const PLAIN_BYTES_MAX: usize = 1 << 14;

/// Records of CBC: explicit IV, text, MAC; the cipher adds and takes off padding.
pub(super) fn cbc(libraries: Libraries, random: &mut SeededRandom, title: String) -> u64 {
    let name = random.one_of(&["AES-128-CBC", "AES-256-CBC"]);
    let version = VERSIONS[random.place(VERSIONS.len())];
    let mac_bytes = MAC_BYTES[random.place(MAC_BYTES.len())];
    let (key, iv) = (random.octets(), random.octets());
    let sealing = ContextPair::begin(
        libraries,
        format!("{title}: {version:#06x}, MAC of {mac_bytes}"),
        name,
        &key,
        &iv,
        true,
    );
    let opening = ContextPair::begin(
        libraries,
        format!("{title}: {version:#06x}, MAC of {mac_bytes}"),
        name,
        &key,
        &iv,
        false,
    );
    let (Some(mut sealing), Some(mut opening)) = (sealing, opening) else { return 0 };
    for pair in [&mut sealing, &mut opening] {
        pair.both("records", |context| context.set_tls(version, mac_bytes));
    }
    let records = 1 + random.below(12);
    for _ in 0..records {
        // libssl does not: for CBC this call knows nothing of records.
        let by_cipher = random.once_in(8);
        let text_bytes = random.length(1).min(PLAIN_BYTES_MAX);
        let record = random.bytes(BLOCK_BYTES + mac_bytes + text_bytes);
        let (_, mut sealed) = sealing.record(&record, by_cipher);
        let damaged = random.once_in(4) && !sealed.is_empty();
        if damaged {
            damage(&mut sealed, random);
        }
        opening.record(&sealed, by_cipher);
        // Where the padding is wrong, the MAC is drawn by lot, so that time does not show which of the two it was.
        if mac_bytes > 0 && !damaged && !by_cipher {
            opening.both("its MAC", |context| context.tls_mac(mac_bytes));
        }
    }
    2 * records
}

/// Flips a bit, cuts the record short, or takes its end away.
fn damage(sealed: &mut Vec<u8>, random: &mut SeededRandom) {
    match random.below(4) {
        0 => sealed.truncate(random.place(sealed.len())),
        1 => sealed.truncate(sealed.len() / 2 / BLOCK_BYTES * BLOCK_BYTES),
        _ => {
            let place = random.place(sealed.len());
            sealed[place] ^= 1 << random.below(8);
        }
    }
}

/// Records of GCM in TLS 1.2: 8 bytes of nonce, text, tag.
pub(super) fn gcm(libraries: Libraries, random: &mut SeededRandom, title: String) -> u64 {
    let name = random.one_of(&["AES-128-GCM", "AES-256-GCM"]);
    let (key, iv) = (random.octets(), random.octets());
    let sealing = ContextPair::begin(libraries, title.clone(), name, &key, &iv, true);
    let opening = ContextPair::begin(libraries, title, name, &key, &iv, false);
    let (Some(mut sealing), Some(mut opening)) = (sealing, opening) else { return 0 };
    for pair in [&mut sealing, &mut opening] {
        pair.both("iv of records", |context| context.set_tls_iv(&iv));
    }
    let records = 1 + random.below(12);
    for _ in 0..records {
        let text_bytes = random.length(1).min(PLAIN_BYTES_MAX);
        let mut aad = random.octets();
        let mut name_length = |bytes: usize| {
            let bytes = u16::try_from(bytes).expect("a record is no longer");
            aad[11..13].copy_from_slice(&bytes.to_be_bytes());
            aad
        };
        let record = random.bytes(NONCE_BYTES + text_bytes + TAG_BYTES);
        let stated = name_length(NONCE_BYTES + text_bytes);
        sealing.both("associated data", |context| context.set_tls_aad(&stated));
        let (_, mut sealed) = sealing.record(&record, true);
        if random.once_in(4) && !sealed.is_empty() {
            damage(&mut sealed, random);
        }
        let stated = name_length(sealed.len());
        opening.both("associated data", |context| context.set_tls_aad(&stated));
        opening.record(&sealed, true);
    }
    2 * records
}

const NONCE_BYTES: usize = 8;
const TAG_BYTES: usize = 16;
