//! Servers of other hands, each with one bucket: what speaks as S3 does, as Azure does and as Google does. What lies in it is put and read by `curl`,
//! past the program under test.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{self, Child, Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;
use std::{env, iter, thread};

use evener_testing::Folder;
use evener_testing::programs::{skipped, there_is};
use openssl::hash::MessageDigest;
use openssl::pkey::PKey;
use openssl::sign::Signer;

use super::{Tree, google};

/// Who may use S3's.
pub(crate) const USER: &str = "user";
pub(crate) const SECRET: &str = "secret-of-a-test";

/// Who may use Azure's: every Azurite has this account.
const ACCOUNT: &str = "devstoreaccount1";
const ACCOUNT_KEY: &str =
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

/// Which interface a server is to have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// By versitygw, or where that is not by moto, which Python's packages have.
    S3,
    /// By Azurite.
    Azure,
    /// S3's by versitygw, behind a proxy that makes Google's of it: no emulator of Google's has what is needed (google.rs).
    Google,
    /// By fake-gcs-server, which lists and hands out objects, but takes none by the interface that is used.
    GoogleReadOnly,
}

/// A server that is ended with this.
pub(crate) struct Server {
    pub(crate) kind: Kind,
    child: Child,
    folder: Folder,
    /// Where the program under test is to go.
    pub(crate) port: u16,
    /// Where curl goes.
    own_port: u16,
    /// Moto asks for no password, and takes its time.
    pub(crate) is_moto: bool,
}

impl Server {
    /// Starts one with the bucket `bucket`; nothing, said in print, where there is none.
    pub(crate) fn start(kind: Kind) -> Option<Self> {
        let (name, cure) = match kind {
            Kind::S3 | Kind::Google => (
                "versitygw",
                "GOBIN=$PWD/target/tools/bin go install github.com/versity/versitygw/cmd/versitygw@latest",
            ),
            Kind::Azure => ("azurite-blob", "npm install --prefix target/tools/azurite azurite"),
            Kind::GoogleReadOnly => (
                "fake-gcs-server",
                "GOBIN=$PWD/target/tools/bin go install github.com/fsouza/fake-gcs-server@latest",
            ),
        };
        let by_moto = || moto().filter(|_| kind == Kind::S3);
        let Some(program) = program(name).or_else(by_moto) else {
            skipped(&format!("there is no {name} in PATH or target/tools ({cure})"));
            return None;
        };
        let folder = super::folder();
        let objects = folder.join("objects");
        fs::create_dir(&objects).unwrap();
        let port = free_port();
        let at = format!("127.0.0.1:{port}");
        let is_moto = program.ends_with(MOTO);
        let mut command = Command::new(program);
        match kind {
            Kind::S3 if is_moto => command.args(["-H", "127.0.0.1", "-p", &port.to_string()]),
            Kind::S3 | Kind::Google => {
                command.args(["--access", USER, "--secret", SECRET, "--port", &at, "--quiet", "posix"]);
                command.arg(&objects)
            }
            Kind::Azure => {
                command.args(["--blobPort", &port.to_string(), "--silent", "--disableTelemetry"]);
                command.args(["--skipApiVersionCheck", "--location"]).arg(&objects)
            }
            Kind::GoogleReadOnly => {
                let port = port.to_string();
                command.args(["-scheme", "http", "-host", "127.0.0.1", "-port", &port, "-public-host", &at]);
                command.args(["-backend", "memory"])
            }
        };
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        while TcpStream::connect(&at).is_err() {
            assert!(child.try_wait().unwrap().is_none(), "the server has ended");
            thread::sleep(Duration::from_millis(20));
        }
        let own_port = port;
        let port = if kind == Kind::Google { google::start(port) } else { port };
        let server = Self { kind, child, folder, port, own_port, is_moto };
        server.make_bucket();
        Some(server)
    }

    /// A place in its bucket.
    pub(crate) fn place(&self, name: &str) -> String {
        let scheme = match self.kind {
            Kind::S3 => "s3",
            Kind::Azure => "az",
            Kind::Google | Kind::GoogleReadOnly => "gs",
        };
        format!("{scheme}://bucket/{name}")
    }

    /// The environment of who uses it by `port`, its own or a proxy's.
    pub(crate) fn environment(&self, port: u16) -> Vec<(&'static str, String)> {
        let url = format!("http://127.0.0.1:{port}");
        match self.kind {
            Kind::S3 => vec![
                ("AWS_ACCESS_KEY_ID", USER.to_owned()),
                ("AWS_SECRET_ACCESS_KEY", SECRET.to_owned()),
                ("AWS_REGION", "us-east-1".to_owned()),
                ("AWS_ENDPOINT_URL", url),
                ("AWS_ALLOW_HTTP", "true".to_owned()),
            ],
            // As an account in Azure is named, not as the client's own setting for emulators does, which lists otherwise.
            Kind::Azure => vec![
                ("AZURE_STORAGE_ACCOUNT_NAME", ACCOUNT.to_owned()),
                ("AZURE_STORAGE_ACCOUNT_KEY", ACCOUNT_KEY.to_owned()),
                ("AZURE_STORAGE_ENDPOINT", format!("{url}/{ACCOUNT}")),
                ("AZURE_ALLOW_HTTP", "true".to_owned()),
            ],
            // The account of a machine, whose tokens a server on the machine hands out.
            Kind::Google => vec![
                ("GCE_METADATA_HOST", format!("127.0.0.1:{}", self.port)),
                ("GOOGLE_BASE_URL", url),
                ("GOOGLE_ALLOW_HTTP", "true".to_owned()),
            ],
            Kind::GoogleReadOnly => vec![
                ("GOOGLE_SERVICE_ACCOUNT_KEY", google::NO_ACCOUNT.to_owned()),
                ("GOOGLE_BASE_URL", url),
                ("GOOGLE_ALLOW_HTTP", "true".to_owned()),
            ],
        }
    }

    /// The same, of someone who is not who they say.
    pub(crate) fn environment_of_a_stranger(&self) -> Vec<(&'static str, String)> {
        let mut environment = self.environment(self.port);
        match self.kind {
            Kind::S3 => environment.push(("AWS_SECRET_ACCESS_KEY", "wrong".to_owned())),
            Kind::Azure => environment.push(("AZURE_STORAGE_ACCOUNT_KEY", "d3Jvbmc=".to_owned())),
            Kind::Google | Kind::GoogleReadOnly => {
                environment.push(("GOOGLE_SERVICE_ACCOUNT_KEY", google::NO_ACCOUNT.to_owned()));
            }
        }
        environment
    }

    fn make_bucket(&self) {
        let query = if self.kind == Kind::Azure { "restype=container" } else { "" };
        let method = if self.kind == Kind::GoogleReadOnly { "POST" } else { "PUT" };
        let body = r#"{"name":"bucket"}"#;
        let json = format!("header = \"content-type: application/json\"\ndata = {body:?}\n");
        let (url, more) = match self.kind {
            Kind::GoogleReadOnly => {
                (format!("http://127.0.0.1:{}/storage/v1/b", self.own_port), json.as_str())
            }
            _ => (self.url("", query), ""),
        };
        self.curl(&format!("request = {method}\n{more}url = {url:?}\n"));
    }

    /// Puts objects below a place in the bucket, as any client would.
    pub(crate) fn put(&self, place: &str, tree: &Tree) {
        let local = self.folder.join("local");
        super::write(tree, &local);
        let transfer = |name: &String| {
            let to = format!("{place}/{name}");
            let url = match self.kind {
                Kind::GoogleReadOnly => format!(
                    "http://127.0.0.1:{}/upload/storage/v1/b/bucket/o?uploadType=media&name={}",
                    self.own_port,
                    encoded(&to).replace('/', "%2F")
                ),
                _ => self.url(&format!("/{to}"), ""),
            };
            format!("upload-file = {:?}\nurl = {url:?}\n", local.join(name))
        };
        let method = if self.kind == Kind::GoogleReadOnly { "request = POST\n" } else { "" };
        self.curl(&(method.to_owned() + &tree.keys().map(transfer).collect::<String>()));
        fs::remove_dir_all(local).unwrap();
    }

    /// Takes an object away.
    pub(crate) fn remove(&self, name: &str) {
        let url = self.url(&format!("/{name}"), "");
        self.curl(&format!("request = DELETE\nurl = {url:?}\n"));
    }

    /// Ends an upload by parts, if it is there, as a rule of a bucket does.
    pub(crate) fn end_upload(&self, name: &str, upload: &str) {
        let url = self.url(&format!("/{name}"), &format!("uploadId={}", encoded(upload)));
        self.curl_with(&[], &format!("request = DELETE\nurl = {url:?}\n"));
    }

    /// Puts an object without bytes whose name ends in a slash.
    pub(crate) fn put_marker(&self, place: &str) {
        let url = self.url(&format!("/{place}"), "");
        self.curl(&format!("request = PUT\nheader = \"content-length: 0\"\nurl = {url:?}\n"));
    }

    /// What lies below a place in the bucket.
    pub(crate) fn read(&self, place: &str) -> Tree {
        let local = self.folder.join("read");
        let transfer = |name: &String| {
            let url = self.url(&format!("/{place}/{name}"), "");
            format!("output = {:?}\nurl = {url:?}\n", local.join(name))
        };
        let names = self.states(place);
        if names.is_empty() {
            return Tree::new();
        }
        self.curl(&("create-dirs\n".to_owned() + &names.keys().map(transfer).collect::<String>()));
        let tree = super::read(&local);
        fs::remove_dir_all(local).ok();
        tree
    }

    /// What a listing tells of each object below a place, its entity tag and its time among it, which a change would change.
    pub(crate) fn states(&self, place: &str) -> BTreeMap<String, String> {
        let (query, entry, name) = match self.kind {
            Kind::Azure => ("restype=container&comp=list", "Blob", "Name"),
            _ => ("list-type=2", "Contents", "Key"),
        };
        let output = self.folder.join("listing");
        let url = self.url("", &format!("{query}&prefix={place}%2F"));
        self.curl(&format!("output = {output:?}\nurl = {url:?}\n"));
        let text = fs::read_to_string(output).unwrap();
        let begin = format!("<{entry}>");
        let entries = text.split(begin.as_str()).skip(1);
        let named = |entry: &str| {
            let (_, after) = entry.split_once(&format!("<{name}>")).unwrap();
            let whole = after.split('<').next().unwrap();
            (whole.strip_prefix(&format!("{place}/")).unwrap().to_owned(), entry.to_owned())
        };
        entries.map(named).collect()
    }

    /// The address of a name in the bucket, which begins with a slash, or of the bucket.
    fn url(&self, name: &str, query: &str) -> String {
        let (port, name) = (self.own_port, encoded(name));
        match self.kind {
            Kind::Azure => format!("http://127.0.0.1:{port}/{ACCOUNT}/bucket{name}?{query}&{}", signature()),
            _ => format!("http://127.0.0.1:{port}/bucket{name}?{query}"),
        }
    }

    /// Transfers, as curl's configuration has them.
    fn curl(&self, transfers: &str) {
        self.curl_with(&["--fail"], transfers);
    }

    fn curl_with(&self, options: &[&str], transfers: &str) {
        let mut curl = Command::new("curl");
        curl.args(["-sS", "-K", "-"]).args(options);
        match self.kind {
            Kind::S3 | Kind::Google => {
                // Not all curls sign what they send.
                curl.args(["-H", "x-amz-content-sha256: UNSIGNED-PAYLOAD"]);
                curl.args(["--aws-sigv4", "aws:amz:us-east-1:s3", "--user", &format!("{USER}:{SECRET}")])
            }
            Kind::Azure => curl.args(["-H", "x-ms-blob-type: BlockBlob", "-H", "x-ms-version: 2021-06-08"]),
            Kind::GoogleReadOnly => &mut curl,
        };
        let mut curl = curl.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        curl.stdin.take().unwrap().write_all(transfers.as_bytes()).unwrap();
        assert!(curl.wait().unwrap().success(), "{transfers}");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// A port at which no process listens. Another process may take it: then the server ends, and the test says so. It is none of those that connections get,
/// for one that is tried for long connects to itself.
fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let first = u16::try_from(process::id() % 10_000).unwrap();
    let mut ports = iter::repeat_with(|| 20_000 + (first + NEXT.fetch_add(1, Ordering::Relaxed)) % 10_000);
    ports.find(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok()).unwrap()
}

/// A name as it stands in an address, and as it is signed.
pub(crate) fn encoded(name: &str) -> String {
    let encoded = |byte: u8| match byte {
        b'/' | b'-' | b'.' | b'_' | b'~' => char::from(byte).to_string(),
        byte if byte.is_ascii_alphanumeric() => char::from(byte).to_string(),
        byte => format!("%{byte:02X}"),
    };
    name.bytes().map(encoded).collect()
}

/// A shared access signature for curl, which cannot sign for Azure: learn.microsoft.com/rest/api/storageservices/create-account-sas.
fn signature() -> String {
    let (rights, services, kinds, end, version) = ("rwlc", "b", "sco", "2099-01-01T00:00:00Z", "2021-06-08");
    let text = format!("{ACCOUNT}\n{rights}\n{services}\n{kinds}\n\n{end}\n\n\n{version}\n\n");
    let key = openssl::base64::decode_block(ACCOUNT_KEY).unwrap();
    let signature = encoded(&openssl::base64::encode_block(&hmac(&key, &text))).replace('/', "%2F");
    format!("sp={rights}&ss={services}&srt={kinds}&se={end}&sv={version}&sig={signature}")
}

pub(crate) fn hmac(key: &[u8], text: &str) -> Vec<u8> {
    let key = PKey::hmac(key).unwrap();
    Signer::new(MessageDigest::sha256(), &key).unwrap().sign_oneshot_to_vec(text.as_bytes()).unwrap()
}

/// Moto's server of S3's interface.
const MOTO: &str = "moto_server";

/// That server, where it is beside the Python of the tests.
fn moto() -> Option<PathBuf> {
    let beside = PathBuf::from(env::var_os("EVENER_TINK_PYTHON")?).with_file_name(MOTO);
    beside.is_file().then_some(beside)
}

fn program(name: &str) -> Option<PathBuf> {
    let tools = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/tools");
    let places = [tools.join("bin").join(name), tools.join("azurite/node_modules/.bin").join(name)];
    let installed = places.into_iter().find(|place| place.is_file());
    installed.or_else(|| there_is(name).then(|| PathBuf::from(name)))
}
