//! A server that speaks S3, of other hands: versitygw, whose objects are files below a directory, so that they can be read past it.

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use evener_testing::Folder;
use evener_testing::programs::{skipped, there_is};

/// Who may use it.
const USER: &str = "user";
const SECRET: &str = "secret-of-a-test";

/// A server that is ended with this.
pub(crate) struct Server {
    child: Child,
    folder: Folder,
    pub(crate) port: u16,
}

impl Server {
    /// Starts one with the bucket `bucket`; nothing, said in print, where there is none.
    pub(crate) fn start() -> Option<Self> {
        let Some(program) = program() else {
            skipped(
                "there is no S3 server, versitygw, in PATH or target/tools/bin (go install github.com/versity/versitygw/cmd/versitygw@latest)",
            );
            return None;
        };
        let folder = super::folder();
        fs::create_dir(folder.join("objects")).unwrap();
        // Freed at once, so another process may take it: then the server ends, and the test says so.
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut command = Command::new(program);
        command.args([
            "--access",
            USER,
            "--secret",
            SECRET,
            "--port",
            &format!("127.0.0.1:{port}"),
            "--quiet",
            "posix",
        ]);
        command.arg(folder.join("objects")).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().unwrap();
        let mut server = Self { child, folder, port };
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(server.child.try_wait().unwrap().is_none(), "the server has ended");
            thread::sleep(Duration::from_millis(20));
        }
        server.make_bucket();
        Some(server)
    }

    fn make_bucket(&self) {
        assert!(self.curl("").args(["-X", "PUT"]).status().unwrap().success(), "no bucket");
    }

    /// Puts a file into the bucket, as any client would.
    pub(crate) fn put(&self, name: &str, file: &Path) {
        assert!(self.curl(&format!("/{name}")).arg("-T").arg(file).status().unwrap().success(), "{name}");
    }

    /// curl on its way to a name in the bucket.
    fn curl(&self, name: &str) -> Command {
        // As it is signed, for some curls sign what they send.
        let encoded = |byte: u8| match byte {
            b'/' | b'-' | b'.' | b'_' | b'~' => char::from(byte).to_string(),
            byte if byte.is_ascii_alphanumeric() => char::from(byte).to_string(),
            byte => format!("%{byte:02X}"),
        };
        let name: String = name.bytes().map(encoded).collect();
        let url = format!("http://127.0.0.1:{}/bucket{name}", self.port);
        let user = format!("{USER}:{SECRET}");
        let mut curl = Command::new("curl");
        curl.args(["-H", "x-amz-content-sha256: UNSIGNED-PAYLOAD"]);
        curl.args([
            "-sS",
            "--fail",
            "-o",
            "/dev/null",
            "--aws-sigv4",
            "aws:amz:us-east-1:s3",
            "--user",
            &user,
            &url,
        ]);
        curl
    }

    /// Where the files of its bucket lie.
    pub(crate) fn bucket(&self) -> PathBuf {
        self.folder.join("objects/bucket")
    }

    /// The environment of who uses it by `port`, its own or a proxy's.
    pub(crate) fn environment(&self, port: u16) -> Vec<(&'static str, String)> {
        vec![
            ("AWS_ACCESS_KEY_ID", USER.to_owned()),
            ("AWS_SECRET_ACCESS_KEY", SECRET.to_owned()),
            ("AWS_REGION", "us-east-1".to_owned()),
            ("AWS_ENDPOINT_URL", format!("http://127.0.0.1:{port}")),
            ("AWS_ALLOW_HTTP", "true".to_owned()),
        ]
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

fn program() -> Option<PathBuf> {
    let tools = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/tools/bin/versitygw"));
    if tools.is_file() {
        return Some(tools);
    }
    there_is("versitygw").then(|| PathBuf::from("versitygw"))
}
