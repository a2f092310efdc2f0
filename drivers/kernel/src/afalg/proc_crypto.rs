//! What the kernel says of its algorithms: `/proc/crypto`, one paragraph each.

use evener_core::{Algorithm, Family, Hash};

/// One implementation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct CryptoEntry {
    /// What it does: `cbc(aes)`.
    pub(super) name: String,
    /// Whose it is: `virtio_crypto_aes_cbc`.
    pub(super) driver: String,
    /// `skcipher`, `ahash`, `shash`, `aead` and others.
    kind: String,
    is_async: bool,
    is_internal: bool,
    /// Lengths of keys in bytes, where they are listed.
    key_bytes: Option<(usize, usize)>,
}

/// All of them, in the kernel's order.
pub(super) fn parse(text: &str) -> Vec<CryptoEntry> {
    text.split("\n\n").map(paragraph).filter(|entry| !entry.driver.is_empty()).collect()
}

/// The one of a driver, by a look at no other: a kernel lists a hundred.
pub(super) fn find(text: &str, driver: &str) -> Option<CryptoEntry> {
    let around = |(at, _): (usize, &str)| {
        let start = text[..at].rfind("\n\n").map_or(0, |end| end + 2);
        let end = text[at..].find("\n\n").map_or(text.len(), |end| at + end);
        paragraph(&text[start..end])
    };
    // The name may stand in others' templates.
    text.match_indices(driver).map(around).find(|entry| entry.driver == driver)
}

fn paragraph(text: &str) -> CryptoEntry {
    let mut entry = CryptoEntry::default();
    let (mut least, mut most) = (None, None);
    for (key, value) in text.lines().filter_map(|line| line.split_once(':')) {
        let value = value.trim();
        match key.trim() {
            "name" => value.clone_into(&mut entry.name),
            "driver" => value.clone_into(&mut entry.driver),
            "type" => value.clone_into(&mut entry.kind),
            "async" => entry.is_async = value == "yes",
            "internal" => entry.is_internal = value == "yes",
            "min keysize" => least = value.parse().ok(),
            "max keysize" => most = value.parse().ok(),
            _ => {}
        }
    }
    entry.key_bytes = least.zip(most);
    entry
}

impl CryptoEntry {
    /// How AF_ALG calls its kind; none where it has no door for it.
    pub(super) fn door(&self) -> Option<&'static str> {
        match self.kind.as_str() {
            "skcipher" => Some("skcipher"),
            "ahash" | "shash" => Some("hash"),
            "aead" => Some("aead"),
            _ => None,
        }
    }

    /// What of Evener's algorithms it does.
    pub(super) fn algorithms(&self) -> Vec<Algorithm> {
        let fits = |algorithm: &Algorithm| {
            let Some((least, most)) = self.key_bytes else { return true };
            algorithm.key_bytes().is_none_or(|bytes| (least..=most).contains(&bytes))
        };
        let named = |algorithm: &&Algorithm| kernel_name(**algorithm) == self.name;
        Algorithm::ALL.iter().filter(named).copied().filter(fits).collect()
    }

    /// Whether a device of its own stands behind it, as far as the kernel shows: it answers later, and it is not one of
    /// the implementations that use instructions of the cores.
    pub(super) fn is_hardware(&self) -> bool {
        self.is_async && !self.is_internal && !self.is_software()
    }

    fn is_software(&self) -> bool {
        let is_wrapped = SOFTWARE_WRAPPERS.iter().any(|wrapper| self.driver.starts_with(wrapper));
        let mut words = self.driver.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        is_wrapped || words.any(|word| SOFTWARE_WORDS.contains(&word))
    }
}

/// Templates that hand software to another thread, and the mark of what is only for use inside the kernel.
const SOFTWARE_WRAPPERS: &[&str] = &["cryptd(", "pcrypt(", "p8_", "__"];

/// Words in the names of implementations for cores, asynchronous ones included (they are wrapped so that they can wait for
/// the vector unit). From the kernel's crypto and arch/*/crypto.
const SOFTWARE_WORDS: &[&str] = &[
    "generic", "lib", "aesni", "ni", "vaes", "avx", "avx2", "avx512", "ssse3", "sse2", "x86_64", "asm", "ce",
    "neon", "neonbs", "arm", "arm64", "p8", "p10", "ppc", "s390", "sparc64", "octeon", "simd", "riscv64",
];

/// The kernel's name of an algorithm.
pub(super) const fn kernel_name(algorithm: Algorithm) -> &'static str {
    match algorithm.family() {
        Family::Ecb => "ecb(aes)",
        Family::Cbc => "cbc(aes)",
        Family::Ctr => "ctr(aes)",
        Family::Gcm => "gcm(aes)",
        Family::Xts => "xts(aes)",
        Family::ChaCha20Poly1305 => "rfc7539(chacha20,poly1305)",
        Family::Digest(Hash::Sha1) => "sha1",
        Family::Digest(Hash::Sha256) => "sha256",
        Family::Digest(Hash::Md5) => "md5",
        Family::Hmac(Hash::Sha1) => "hmac(sha1)",
        Family::Hmac(Hash::Sha256) => "hmac(sha256)",
        Family::Hmac(Hash::Md5) => "hmac(md5)",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Cut from a guest with QEMU's virtio-crypto device and Linux 6.1.
    const SEEN: &str = "\
name         : cbc(aes)
driver       : virtio_crypto_aes_cbc
module       : virtio_crypto
priority     : 150
refcnt       : 1
selftest     : passed
internal     : no
type         : skcipher
async        : yes
blocksize    : 16
min keysize  : 16
max keysize  : 32
ivsize       : 16

name         : cbc(aes)
driver       : cryptd(cbc(aes-generic))
module       : cryptd
internal     : no
type         : skcipher
async        : yes
min keysize  : 16
max keysize  : 32

name         : cbc(aes)
driver       : cbc-aes-aesni
module       : aesni_intel
internal     : no
type         : skcipher
async        : yes
min keysize  : 16
max keysize  : 32

name         : xts(aes)
driver       : vendor-xts
internal     : no
type         : skcipher
async        : yes
min keysize  : 32
max keysize  : 32

name         : sha256
driver       : sha256-generic
internal     : no
type         : shash
";

    #[test]
    fn a_driver_is_found_by_its_whole_name_wherever_it_stands() {
        for entry in parse(SEEN) {
            assert_eq!(find(SEEN, &entry.driver), Some(entry));
        }
        for other in ["virtio_crypto", "cbc(aes-generic)", "cbc(aes)", "xts", "generic", "aesni_intel"] {
            assert_eq!(find(SEEN, other), None, "{other}");
        }
    }

    #[test]
    fn only_what_works_beside_the_cores_counts_as_hardware() {
        let entry = parse(SEEN);
        let hardware: Vec<&str> =
            entry.iter().filter(|it| it.is_hardware()).map(|it| it.driver.as_str()).collect();
        assert_eq!(hardware, ["virtio_crypto_aes_cbc", "vendor-xts"]);
    }

    #[test]
    fn a_driver_does_the_algorithms_whose_keys_it_takes() {
        let entry = parse(SEEN);
        assert_eq!(entry[0].algorithms(), [Algorithm::Aes128Cbc, Algorithm::Aes192Cbc, Algorithm::Aes256Cbc]);
        assert_eq!(entry[3].algorithms(), [Algorithm::Aes128Xts]);
        assert_eq!((entry[4].door(), entry[4].algorithms()), (Some("hash"), vec![Algorithm::Sha256]));
    }
}
