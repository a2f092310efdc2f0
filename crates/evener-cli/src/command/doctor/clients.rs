//! The usual browsers and clients: whose TLS each has, and whether Evener's provider can serve it.
//!
//! What a client is started by is often a script, and what does its TLS a library that is loaded later; [`USUAL`] says which file to read.

use std::path::{Path, PathBuf};

use serde::Serialize;

use super::elf::{Elf, search_path};
use crate::input_file::is_elf;
use crate::terminal::PathDisplay;

/// A client that is installed.
#[derive(Serialize)]
pub(super) struct UsualClient {
    name: &'static str,
    /// The file that has its TLS.
    file: String,
    /// In words.
    tls_library: String,
    /// Whether it would load Evener's provider.
    can_serve: bool,
}

/// Who does a program's TLS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Tls {
    /// A shared libssl of OpenSSL 3 and later, which loads providers.
    OpenSsl(PathBuf),
    /// The same, which Qt opens when it is first needed.
    ByQt,
    /// Something that never loads a provider.
    Foreign(&'static str),
}

/// A client, by the names of its programs, and the files that have its TLS, the first that is there.
struct Usual {
    name: &'static str,
    programs: &'static [&'static str],
    /// Names of libraries, and whole paths.
    files: &'static [&'static str],
}

const USUAL: [Usual; 11] = [
    Usual { name: "curl", programs: &["curl"], files: &["/usr/bin/curl"] },
    Usual { name: "wget", programs: &["wget"], files: &["/usr/bin/wget"] },
    Usual {
        name: "git, over https",
        programs: &["git"],
        files: &["/usr/lib/git-core/git-remote-http", "/usr/libexec/git-core/git-remote-http"],
    },
    Usual { name: "w3m", programs: &["w3m"], files: &["/usr/bin/w3m"] },
    Usual { name: "lynx", programs: &["lynx"], files: &["/usr/bin/lynx"] },
    Usual {
        name: "NetSurf",
        programs: &["netsurf", "netsurf-gtk"],
        files: &["/usr/bin/netsurf-gtk", "/usr/bin/netsurf-gtk3", "/usr/bin/netsurf-gtk2"],
    },
    Usual { name: "QtWebKit", programs: &[], files: &["libQt5WebKit.so.5"] },
    Usual {
        name: "QtWebEngine (Falkon, qutebrowser)",
        programs: &["falkon", "qutebrowser"],
        files: &["libQt6WebEngineCore.so.6", "libQt5WebEngineCore.so.5"],
    },
    Usual {
        name: "WebKitGTK (Epiphany)",
        programs: &["epiphany", "epiphany-browser"],
        files: &["libwebkitgtk-6.0.so.4", "libwebkit2gtk-4.1.so.0", "libwebkit2gtk-4.0.so.37"],
    },
    Usual {
        name: "Chromium",
        programs: &["chromium", "chromium-browser", "google-chrome"],
        files: &[
            "/usr/lib/chromium/chromium",
            "/usr/lib64/chromium-browser/chromium-browser",
            "/opt/google/chrome/chrome",
        ],
    },
    Usual {
        name: "Firefox",
        programs: &["firefox", "firefox-esr"],
        files: &[
            "/usr/lib/firefox-esr/libxul.so",
            "/usr/lib/firefox/libxul.so",
            "/usr/lib64/firefox/libxul.so",
        ],
    },
];

/// Libraries by the beginnings of their names, and who does the TLS of a program that needs one.
const LIBRARIES: [(&str, &str); 7] = [
    ("libgnutls.so", "GnuTLS"),
    ("libwebkit2gtk-", GLIB_NETWORKING),
    ("libwebkitgtk-", GLIB_NETWORKING),
    ("libsoup-", GLIB_NETWORKING),
    ("libQt5WebEngineCore.so", "BoringSSL, inside QtWebEngine"),
    ("libQt6WebEngineCore.so", "BoringSSL, inside QtWebEngine"),
    ("libnss3.so", "NSS"),
];

/// A build of it for OpenSSL exists (`-Dopenssl=enabled`), which distributions leave out.
const GLIB_NETWORKING: &str = "glib-networking, which distributions build for GnuTLS";

/// Text that gives BoringSSL away.
const BORING: &str = "BoringSSL";

/// Those that are installed.
pub(super) fn installed() -> Vec<UsualClient> {
    USUAL.iter().filter_map(installed_one).collect()
}

/// The file that has the TLS of the program at `path`, where that is a usual client; else `path`.
pub(super) fn file_behind(path: &Path) -> PathBuf {
    let stem = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let usual = USUAL.iter().find(|usual| usual.programs.contains(&stem));
    usual.and_then(Usual::file).filter(|_| !is_elf(path) || stem == "git").unwrap_or_else(|| path.to_owned())
}

/// Who does the TLS of `file`: the nearest of its libraries decides, for further ones serve others (LDAP, SSH).
pub(super) fn tls_of(file: &Elf, libraries: &[Elf]) -> Option<Tls> {
    let names = std::iter::once(file).chain(libraries);
    for one in names {
        let name = one.path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if std::ptr::eq(one, file) && one.texts.contains(&BORING) && !file.is_linked_to_openssl() {
            return Some(Tls::Foreign("BoringSSL"));
        }
        if name.starts_with("libssl.so.") {
            let is_old = name.starts_with("libssl.so.1");
            let old = Tls::Foreign("OpenSSL 1, which knows no providers");
            return Some(if is_old { old } else { Tls::OpenSsl(one.path.clone()) });
        }
        if name.starts_with("libQt5WebKit.so") || name.starts_with("libQt5Network.so") {
            return Some(Tls::ByQt);
        }
        if let Some((_, foreign)) = LIBRARIES.iter().find(|row| name.starts_with(row.0)) {
            return Some(Tls::Foreign(foreign));
        }
    }
    None
}

fn installed_one(usual: &Usual) -> Option<UsualClient> {
    let file = usual.file()?;
    let elf = Elf::read(&file, &[BORING]).ok()?;
    let tls = tls_of(&elf, &elf.libraries(&[]))?;
    Some(UsualClient {
        name: usual.name,
        file: PathDisplay(&file).to_string(),
        tls_library: tls.in_words(),
        can_serve: tls.can_be_served(),
    })
}

impl Usual {
    fn file(&self) -> Option<PathBuf> {
        let places = |file: &&'static str| -> Vec<PathBuf> {
            if file.starts_with('/') {
                return vec![PathBuf::from(file)];
            }
            search_path().map(|folder| folder.join(file)).collect()
        };
        self.files.iter().flat_map(places).find(|path| path.is_file())
    }
}

impl Tls {
    pub(super) fn in_words(&self) -> String {
        match self {
            Self::OpenSsl(path) => format!("OpenSSL, {}", PathDisplay(path)),
            Self::ByQt => "OpenSSL, the system's libssl, which Qt opens when it is first needed".to_owned(),
            Self::Foreign(name) => (*name).to_owned(),
        }
    }

    pub(super) fn can_be_served(&self) -> bool {
        !matches!(self, Self::Foreign(_))
    }
}

impl UsualClient {
    pub(super) fn line(&self) -> String {
        let verdict = if self.can_serve { "Evener can serve it" } else { "Evener cannot serve it" };
        format!("{}: TLS by {}: {verdict} ({})", self.name, self.tls_library, self.file)
    }
}
