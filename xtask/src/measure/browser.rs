//! `cargo xtask guest browser-uploads`: paper 003's experiment with a browser in the guest, by counted instructions.
//!
//! Steps: QtWebKit with Python, Qt and their libraries in a guest ([`with_browser`]) -> `evener bench tls --serve` on this machine -> in each
//! round, each way opens the page (`bench/clients/qtwebkit.py`), which uploads every size and posts what it measured -> `evener bench tls
//! --pages` makes the report, kept as `docs/results/guest/browser-uploads-counted.json.gz`; where sizes are named, as
//! `browser-uploads-SIZES-counted.json.gz`.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use evener_testbed::{Awake, Builder, Icount};
use serde_json::{Value, json};

use super::circumstances::{circumstances, load, sleep};
use super::{papers, provider_guest};
use crate::programs::{answer, built_evener};
use crate::tree::root;

const NAME: &str = "browser-uploads-counted";
/// QtWebKit, its libraries and what they unpack to, twice while the guest boots.
const MEMORY_MIB: u32 = 3_072;
/// Debian's; another has no PyQt5.
const PYTHON: &str = "/usr/bin/python3";
const PACKAGES: &str = "/usr/lib/python3/dist-packages/PyQt5";
const PLUGIN: &str = "/usr/lib/x86_64-linux-gnu/qt5/plugins/platforms/libqoffscreen.so";
/// Opened at run time: Qt's TLS.
const LIBSSL: &str = "/usr/lib/x86_64-linux-gnu/libssl.so.3";
/// What the script and the bindings import.
const BINDINGS: [&str; 8] = [
    "QtCore.abi3.so",
    "QtGui.abi3.so",
    "QtNetwork.abi3.so",
    "QtPrintSupport.abi3.so",
    "QtWebKit.abi3.so",
    "QtWebKitWidgets.abi3.so",
    "QtWidgets.abi3.so",
    "__init__.py",
];
/// Packages of Python's own library besides its single files.
const LIBRARY: [&str; 4] = ["encodings", "collections", "importlib", "re"];
/// A font for what is not looked at.
const FONT: &str = "/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf";
const FONTS: &str = "<?xml version=\"1.0\"?><fontconfig><dir>/usr/share/fonts</dir><cachedir>/tmp/fonts</cachedir></fontconfig>\n";

/// Ways by their labels, as `evener bench tls` reads them, with their configuration and a variable over it.
const WAYS: [(&str, &str, &str); 3] = [
    ("qtwebkit:default", "/dev/null", ""),
    ("qtwebkit:evener", "/etc/evener.cnf", ""),
    ("qtwebkit:evener,virtio", "/etc/evener.cnf", "EVENER_MODULES=virtio:0000:00:10.0"),
];

/// Uploads by a browser in a guest whose clock counts instructions: of these sizes in bytes, with commas between, or of paper 003's.
pub(super) fn uploads(rounds: &str, sizes: Option<&str>) -> Result<(), String> {
    if let Some(wrong) = sizes.and_then(|sizes| sizes.split(',').find(|size| size.parse::<u32>().is_err())) {
        return Err(format!("{wrong}: no size in bytes; sizes stand as in {SIZES}"));
    }
    let rounds: usize = rounds.parse().map_err(|_| format!("{rounds}: no number of rounds"))?;
    let (evener, load_before) = (built_evener()?, load());
    let site = Site::start(&evener)?;
    let certificate = fs::read(site.folder.path().join("cert.pem")).map_err(|error| error.to_string())?;
    let builder = with_browser(provider_guest::with_provider()?.host_loopback().memory_mib(MEMORY_MIB))?;
    let builder = builder
        .file("/etc/evener.pem", certificate)
        .file("/etc/browse", script(&site, rounds, sizes.unwrap_or(SIZES)));
    let awake = Awake::hold();
    let text = |error: evener_testbed::Error| error.to_string();
    let mut guest = builder.icount(Icount::NEAR_AM3358).boot().map_err(text)?;
    let is_apart = guest.set_apart().map_err(text)?;
    let outcome = guest.run("sh /etc/browse").map_err(text)?;
    let state = sleep(awake.as_ref()) + papers::apart(is_apart);
    guest.shut_down().map_err(text)?;
    if outcome.status != 0 {
        return Err(format!(
            "the browser in the guest: status {}: {}{}",
            outcome.status, outcome.stdout, outcome.stderr
        ));
    }
    let mut report = Command::new(&evener);
    let kept = site.folder.path().join("report.json");
    report.args(["bench", "tls", "--module", "none", "--pages"]).arg(site.pages()).arg("--json").arg(&kept);
    print!("{}", answer(report)?);
    let report = fs::read(&kept).map_err(|error| error.to_string())?;
    let report: Value = serde_json::from_slice(&report).map_err(|error| error.to_string())?;
    let circumstances = circumstances(&evener, &load_before)? + &state + papers::clock(NAME);
    let words = sizes.map(|sizes| format!(" {sizes}")).unwrap_or_default();
    let command = format!("cargo xtask guest browser-uploads {rounds}{words}");
    let name = sizes.map_or_else(
        || NAME.to_owned(),
        |sizes| NAME.replace("-counted", &format!("-{}-counted", sizes.replace(',', "-"))),
    );
    papers::keep(&name, &json!({ "command": command, "circumstances": circumstances, "report": report }))
}

/// Opens the page by each way, one after the other, another first in each round.
fn script(site: &Site, rounds: usize, sizes: &str) -> String {
    let mut script =
        "export QT_QPA_PLATFORM=offscreen HOME=/tmp XDG_RUNTIME_DIR=/tmp PYTHONDONTWRITEBYTECODE=1\n\
                      export PYTHONPATH=/usr/lib/python3/dist-packages\nmkdir -p /tmp\n"
            .to_owned();
    for round in 0..=rounds {
        for turn in 0..WAYS.len() {
            let (label, configuration, variable) = WAYS[(round + turn) % WAYS.len()];
            // The round before the first brings everything into memory.
            let (label, sizes) = if round == 0 { ("warm:default", "70") } else { (label, sizes) };
            let url = format!(
                "{}/?auto=1&suite=tls1.2-cbc&session=round{round}way{turn}&label={label}&rounds=1&sizes={sizes}\
                 &directions=form,up&ends=default",
                site.url
            );
            script += &format!(
                "OPENSSL_CONF={configuration} {variable} python3 -S /etc/qtwebkit.py '{url}' /etc/evener.pem --machine || exit 1\n"
            );
        }
    }
    script
}

const SIZES: &str = "70,57654,2359350,3240054,6350454,14288454,15046694,18207342,18948662";

/// Adds QtWebKit, Python and what both need.
fn with_browser(builder: Builder) -> Result<Builder, String> {
    let read = |path: &Path| fs::read(path).map_err(|error| format!("{}: {error}", path.display()));
    let script = read(&root().join("bench/clients/qtwebkit.py"))?;
    let mut builder = builder.program(PYTHON).file("/etc/qtwebkit.py", script).library(LIBSSL);
    builder = builder.file("/etc/fonts/fonts.conf", FONTS);
    let font = PathBuf::from(FONT);
    if font.exists() {
        builder = builder.file(FONT, read(&font)?);
    }
    let sip = list(Path::new(PACKAGES))?.into_iter().find(|path| name(path).starts_with("sip.cpython"));
    let sip = sip.ok_or("python3-pyqt5.qtwebkit is not installed")?;
    let bindings = BINDINGS.iter().map(|name| Path::new(PACKAGES).join(name)).chain([sip, PLUGIN.into()]);
    for path in bindings {
        let bytes = read(&path).map_err(|_| "python3-pyqt5.qtwebkit is not installed")?;
        if path.extension().is_some_and(|kind| kind == "so") {
            builder = builder.library(&path);
        }
        builder = builder.file(&path.display().to_string(), bytes);
    }
    let mut python = Command::new(PYTHON);
    python.args(["-c", "import sysconfig; print(sysconfig.get_path('stdlib'))"]);
    let library = PathBuf::from(answer(python)?.trim());
    let folders = LIBRARY.iter().map(|name| library.join(name)).chain([library.clone()]);
    for path in folders.map(|folder| list(&folder)).collect::<Result<Vec<_>, _>>()?.into_iter().flatten() {
        if path.extension().is_some_and(|kind| kind == "py") {
            builder = builder.file(&path.display().to_string(), read(&path)?);
        }
    }
    Ok(builder)
}

fn list(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let entries = fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    Ok(entries.filter_map(|entry| Some(entry.ok()?.path())).filter(|path| path.is_file()).collect())
}

fn name(path: &Path) -> &str {
    path.file_name().and_then(|name| name.to_str()).unwrap_or_default()
}

/// `evener bench tls --serve` on the loopback, until this value goes.
struct Site {
    process: Child,
    folder: tempfile::TempDir,
    /// As the guest reaches it.
    url: String,
}

impl Site {
    fn start(evener: &Path) -> Result<Self, String> {
        let text = |error: std::io::Error| error.to_string();
        let folder = tempfile::tempdir().map_err(text)?;
        let words = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=localhost \
                     -addext subjectAltName=IP:10.0.2.2 -keyout key.pem -out cert.pem";
        let mut made = Command::new("openssl");
        made.args(words.split_whitespace()).current_dir(folder.path()).stderr(Stdio::null());
        if !made.status().is_ok_and(|status| status.success()) {
            return Err("openssl makes no certificate".to_owned());
        }
        let mut command = Command::new(evener);
        command.args([
            "bench",
            "tls",
            "--serve",
            "--module",
            "none",
            "--suites",
            "tls1.2-cbc",
            "--json",
            "pages",
        ]);
        command.args(["--certificate", "cert.pem", "--key", "key.pem"]).current_dir(folder.path());
        let mut process = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().map_err(text)?;
        let mut lines = BufReader::new(process.stdout.take().ok_or("no output")?).lines();
        let url = lines.next().and_then(Result::ok).ok_or("evener bench tls --serve prints no address")?;
        // What it says later is of no interest, but it must not wait for a reader.
        std::thread::spawn(move || lines.for_each(drop));
        Ok(Self { process, folder, url: url.replace("127.0.0.1", "10.0.2.2") })
    }

    fn pages(&self) -> PathBuf {
        self.folder.path().join("pages")
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        // It may be gone already.
        self.process.kill().unwrap_or_default();
        drop(self.process.wait());
    }
}
