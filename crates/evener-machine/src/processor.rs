//! What this processor is and can do, as far as encryption cares.

/// The processor's name and the features that the libraries below choose their code by.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Processor {
    /// As the system names it.
    pub model: String,
    /// `x86_64`, `aarch64`.
    pub architecture: &'static str,
    /// Those that are there, under their usual names.
    pub features: Vec<&'static str>,
    /// Those that encryption would gain from and that are not there.
    pub absent_features: Vec<&'static str>,
}

/// Looks at it.
#[must_use]
pub fn this_processor() -> Processor {
    let features = features();
    let named =
        |present: bool| features.iter().filter(move |row| row.1 == present).map(|row| row.0).collect();
    Processor {
        model: model(&std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default()),
        architecture: std::env::consts::ARCH,
        features: named(true),
        absent_features: named(false),
    }
}

/// The first model that `/proc/cpuinfo` names; ARM kernels give numbers only.
fn model(cpuinfo: &str) -> String {
    let value = |field: &str| {
        cpuinfo.lines().filter_map(|line| line.split_once(':')).find(|pair| pair.0.trim() == field)
    };
    if let Some((_, name)) = value("model name").or_else(|| value("Model")) {
        return evener_fd::text::one_line(name);
    }
    match (value("CPU implementer"), value("CPU part")) {
        (Some((_, implementer)), Some((_, part))) => format!("ARM {}:{}", implementer.trim(), part.trim()),
        _ => "unknown".to_owned(),
    }
}

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
macro_rules! detected {
    ($detect:ident: $($name:literal $feature:tt),* $(,)?) => {
        vec![$(($name, std::arch::$detect!($feature))),*]
    };
}

#[cfg(target_arch = "x86_64")]
fn features() -> Vec<(&'static str, bool)> {
    detected!(is_x86_feature_detected:
        "AES-NI" "aes", "PCLMULQDQ" "pclmulqdq", "AVX2" "avx2", "VAES" "vaes", "VPCLMULQDQ" "vpclmulqdq",
        "AVX-512F" "avx512f", "AVX-512BW" "avx512bw", "AVX-512VL" "avx512vl", "AVX-512IFMA" "avx512ifma",
        "GFNI" "gfni", "SHA" "sha",
    )
}

#[cfg(target_arch = "aarch64")]
fn features() -> Vec<(&'static str, bool)> {
    detected!(is_aarch64_feature_detected:
        "AES" "aes", "PMULL" "pmull", "SHA2" "sha2", "SHA3" "sha3", "SVE" "sve", "SVE2" "sve2",
        "SVE2-AES" "sve2-aes",
    )
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn features() -> Vec<(&'static str, bool)> {
    Vec::new()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_model_is_read_from_each_kind_of_cpuinfo() {
        assert_eq!(model("processor\t: 0\nmodel name\t: AMD  EPYC\nmodel\t: 17\n"), "AMD EPYC");
        assert_eq!(model("CPU implementer\t: 0x41\nCPU part\t: 0xd0c\n"), "ARM 0x41:0xd0c");
        assert_eq!(model("Model\t\t: Raspberry Pi 5\nCPU part : 1\n"), "Raspberry Pi 5");
        assert_eq!(model(""), "unknown");
    }

    /// Judged by the kernel's own list of flags.
    #[test]
    #[cfg(target_arch = "x86_64")]
    fn features_agree_with_the_kernels_list() {
        let cpuinfo = std::fs::read_to_string("/proc/cpuinfo").unwrap();
        let flags = cpuinfo.lines().find(|line| line.starts_with("flags")).unwrap();
        let has = |flag: &str| flags.split_whitespace().any(|word| word == flag);
        let is_listed = |name: &str| this_processor().features.contains(&name);
        for (name, flag) in [("AES-NI", "aes"), ("VAES", "vaes"), ("AVX-512F", "avx512f"), ("SHA", "sha_ni")]
        {
            assert_eq!(is_listed(name), has(flag), "{name}");
        }
    }
}
