//! A program: which cryptography it runs, and what in it keeps Evener's provider out. It is read, never started.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use serde::Serialize;

use super::Finding;
use super::clients::{Tls, file_behind, tls_of};
use super::elf::Elf;
use crate::terminal::PathDisplay;

/// What a program uses.
#[derive(Serialize)]
pub(super) struct Inspection {
    pub(super) path: String,
    /// In words.
    pub(super) crypto: String,
    /// Whose TLS it has, in words, where its file tells.
    pub(super) tls_library: Option<String>,
    #[serde(skip)]
    source: Crypto,
    #[serde(skip)]
    peculiarities_found: Vec<Peculiarity>,
}

/// Where its cryptography comes from.
enum Crypto {
    /// A shared libcrypto.
    Shared(PathBuf),
    /// A copy of OpenSSL inside the program or a library of its own.
    Inside,
    /// Something that never loads a provider, under its name.
    Foreign(&'static str),
    /// None that is known.
    Unknown,
}

/// Something about the program itself.
enum Peculiarity {
    RaisedRights,
    OwnContext(String),
    OwnProperties(String),
    LowLevel(String),
}

/// Texts that give away what was linked in, and its name.
const MARKS: [(&str, &str); 3] = [("BoringSSL", "BoringSSL"), ("AWS-LC", "AWS-LC"), ("rustls", "rustls")];

/// OpenSSL's own mark, before its directory.
const OPENSSL: &str = "OPENSSLDIR: ";

/// Calls that run AES without EVP, and so without providers (`openssl/aes.h`).
const LOW_LEVEL: [&str; 8] = [
    "AES_encrypt",
    "AES_decrypt",
    "AES_ecb_encrypt",
    "AES_cbc_encrypt",
    "AES_cfb128_encrypt",
    "AES_ofb128_encrypt",
    "AES_ige_encrypt",
    "AES_wrap_key",
];
const OWN_CONTEXT: [&str; 3] =
    ["OSSL_LIB_CTX_new", "OSSL_LIB_CTX_new_from_dispatch", "OSSL_LIB_CTX_new_child"];
const OWN_PROPERTIES: [&str; 2] = ["EVP_set_default_properties", "EVP_default_properties_enable_fips"];

/// Reads the program at `path` and its libraries.
pub(super) fn inspect(path: &Path) -> anyhow::Result<Inspection> {
    let path = fs::canonicalize(path).with_context(|| format!("cannot find {}", PathDisplay(path)))?;
    // A browser's program is a script; what is read is the file behind it.
    let path = file_behind(&path);
    let texts: Vec<&'static str> = MARKS.iter().map(|mark| mark.0).chain([OPENSSL]).collect();
    let program = Elf::read(&path, &texts).with_context(|| format!("cannot read {}", PathDisplay(&path)))?;
    let libraries = program.libraries(&texts);
    let tls = tls_of(&program, &libraries);
    let source = crypto(&program, &libraries, tls.as_ref());
    let peculiarities_found = peculiarities(&path, &program);
    Ok(Inspection {
        path: PathDisplay(&path).to_string(),
        crypto: source.in_words(),
        tls_library: tls.as_ref().map(Tls::in_words),
        source,
        peculiarities_found,
    })
}

fn crypto(program: &Elf, libraries: &[Elf], tls: Option<&Tls>) -> Crypto {
    if let Some(java) = program
        .needed
        .iter()
        .chain(libraries.iter().flat_map(|library| &library.needed))
        .find(|name| name.starts_with("libjvm.so") || name.starts_with("libjli.so"))
    {
        return Crypto::Foreign(if java.starts_with("libjvm") { "Java" } else { "Java's launcher" });
    }
    // A libcrypto that is there for others (SSH, LDAP) serves no TLS.
    if let Some(Tls::Foreign(name)) = tls {
        return Crypto::Foreign(name);
    }
    if tls == Some(&Tls::ByQt) {
        let system =
            super::elf::search_path().map(|folder| folder.join("libcrypto.so.3")).find(|file| file.is_file());
        if let Some(path) = system {
            return Crypto::Shared(path);
        }
    }
    let is_libcrypto = |library: &&Elf| file_name(&library.path).starts_with("libcrypto.so");
    if let Some(shared) = libraries.iter().find(is_libcrypto) {
        // AWS-LC and BoringSSL can be built as a libcrypto.so too.
        let foreign = MARKS.iter().find(|mark| !is_version_3(&shared.path) && shared.texts.contains(&mark.0));
        return foreign.map_or_else(|| Crypto::Shared(shared.path.clone()), |mark| Crypto::Foreign(mark.1));
    }
    let all = || std::iter::once(program).chain(libraries);
    if let Some(mark) = MARKS.iter().find(|mark| all().any(|file| file.texts.contains(&mark.0))) {
        return Crypto::Foreign(mark.1);
    }
    if all().any(|file| file.exports.contains("OSSL_PROVIDER_load") || file.texts.contains(&OPENSSL)) {
        return Crypto::Inside;
    }
    if program.is_go { Crypto::Foreign("Go") } else { Crypto::Unknown }
}

fn peculiarities(path: &Path, program: &Elf) -> Vec<Peculiarity> {
    let first = |names: &[&str]| {
        names.iter().find(|name| program.imports.contains(**name)).map(|name| (*name).to_owned())
    };
    let mut peculiarities_found = Vec::new();
    if has_raised_rights(path) {
        peculiarities_found.push(Peculiarity::RaisedRights);
    }
    peculiarities_found.extend(first(&OWN_CONTEXT).map(Peculiarity::OwnContext));
    peculiarities_found.extend(first(&OWN_PROPERTIES).map(Peculiarity::OwnProperties));
    peculiarities_found.extend(first(&LOW_LEVEL).map(Peculiarity::LowLevel));
    peculiarities_found
}

/// Set-user-id, set-group-id or capabilities: the loader then sets `AT_SECURE`.
fn has_raised_rights(path: &Path) -> bool {
    let mode = fs::metadata(path).map_or(0, |peculiarities_found| peculiarities_found.permissions().mode());
    let mut space = [0_u8; 64];
    mode & 0o6000 != 0 || rustix::fs::getxattr(path, "security.capability", &mut space[..]).is_ok()
}

impl Crypto {
    fn in_words(&self) -> String {
        match self {
            Self::Shared(path) => format!("uses {}", PathDisplay(path)),
            Self::Inside => "has OpenSSL inside it".to_owned(),
            Self::Foreign(name) => format!("uses {name}"),
            Self::Unknown => "uses no OpenSSL that its file tells of".to_owned(),
        }
    }
}

impl Inspection {
    /// Whether its cryptography loads providers at all.
    pub(super) fn may_see_us(&self) -> bool {
        matches!(&self.source, Crypto::Inside) || self.libcrypto_directory().is_some()
    }

    /// Where its libcrypto lies, if that has providers and this command can load it too.
    pub(super) fn libcrypto_directory(&self) -> Option<&Path> {
        match &self.source {
            Crypto::Shared(path) if is_version_3(path) => path.parent(),
            _ => None,
        }
    }
}

/// One finding for each thing that is in the way.
pub(super) fn findings(inspection: &Inspection) -> Vec<Finding> {
    let path = &inspection.path;
    let mut found: Vec<Finding> = match &inspection.source {
        Crypto::Shared(library) if is_version_3(library) => vec![],
        Crypto::Shared(library) => {
            let fact = format!("{} is not libcrypto.so.3, which this command can ask", PathDisplay(library));
            vec![Finding::new(
                "other-libcrypto",
                fact,
                "version 1.1 has no providers; ask a newer one by its own command openssl",
            )]
        }
        Crypto::Inside => vec![],
        Crypto::Foreign(name) => {
            let fact =
                format!("{path} does its cryptography by {name}, which never loads an OpenSSL provider");
            vec![Finding::new(
                "never-sees-us",
                fact,
                "a build of it that uses the system's OpenSSL, if there is one",
            )]
        }
        Crypto::Unknown => {
            let fact = format!("{path} names no libcrypto and holds none that could be recognised");
            vec![Finding::new(
                "no-openssl",
                fact,
                "if it loads OpenSSL later, look at /proc/PID/maps while it runs",
            )]
        }
    };
    found.extend(
        inspection.peculiarities_found.iter().map(|peculiarities_found| peculiarities_found.finding(path)),
    );
    found
}

impl Peculiarity {
    fn finding(&self, path: &str) -> Finding {
        let (trap, fact, cure) = match self {
            Self::RaisedRights => (
                "at-secure",
                "gets more rights than its user (AT_SECURE), so it ignores OPENSSL_CONF".to_owned(),
                "only the system's own openssl.cnf reaches it",
            ),
            Self::OwnContext(call) => (
                "own-context",
                format!("calls {call}: such a library context reads no configuration by itself"),
                "none from outside, unless it loads a configuration into that context",
            ),
            Self::OwnProperties(call) => (
                "own-properties",
                format!("calls {call}, which may replace `?provider=evener`"),
                "look for an option of the program that leaves the properties alone",
            ),
            Self::LowLevel(call) => (
                "low-level",
                format!("calls {call}, which no provider ever sees"),
                "none from outside: only calls of EVP reach providers",
            ),
        };
        let is_certain = matches!(self, Self::RaisedRights);
        Finding { trap, certain: is_certain, fact: format!("{path} {fact}"), cure: cure.to_owned() }
    }
}

fn is_version_3(library: &Path) -> bool {
    file_name(library).starts_with("libcrypto.so.3")
}

fn file_name(path: &Path) -> &str {
    path.file_name().and_then(|name| name.to_str()).unwrap_or_default()
}
