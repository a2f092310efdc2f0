//! Google's interface, made of S3's, which it was made after: headers have other names, who asks shows a token, and an object's number of generation
//! stands for its presence.
//!
//! It judges what the client sends by Google's names against what S3's interface does, and nothing of Google's own server: emulators of others
//! do not page listings, know no conditions on this interface and no uploads in parts.

use std::io::{self, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::thread;

use super::faults::{Head, pass_answer};
use super::server::{SECRET, USER, encoded, hmac};

/// A service account whose client asks for no token and has none.
pub(crate) const NO_ACCOUNT: &str =
    r#"{"disable_oauth":true,"client_email":"","private_key":"","private_key_id":""}"#;

const TOKEN: &str = "token-of-a-test";

/// Starts it before the server at `port`; returns its own port.
pub(crate) fn start(port: u16) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let own = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for client in listener.incoming().map_while(Result::ok) {
            thread::spawn(move || serve(&client, port).ok());
        }
    });
    own
}

fn serve(client: &TcpStream, port: u16) -> io::Result<()> {
    let server = TcpStream::connect(("127.0.0.1", port))?;
    let (mut requests, mut answers) = (BufReader::new(client), BufReader::new(&server));
    let (mut to_client, mut to_server) = (client, &server);
    while let Some(head) = Head::read(&mut requests)? {
        if head.starts_with(b"GET /computeMetadata/") {
            let token = format!(r#"{{"access_token":"{TOKEN}","expires_in":3600,"token_type":"Bearer"}}"#);
            answer(to_client, "200 OK", &token)?;
        } else if head.value("authorization") == Some(format!("Bearer {TOKEN}")) {
            to_server.write_all(signed(&head.renamed(&TO_S3)).as_bytes())?;
            io::copy(&mut (&mut requests).take(head.length()), &mut to_server)?;
            let Some(answer) = Head::read(&mut answers)? else { return Ok(()) };
            pass_answer(&head, &answer.renamed(&TO_GOOGLE), &mut answers, &mut to_client)?;
        } else {
            io::copy(&mut (&mut requests).take(head.length()), &mut io::sink())?;
            let error = "<Error><Code>AuthenticationRequired</Code></Error>";
            answer(to_client, "401 Unauthorized", if head.starts_with(b"HEAD ") { "" } else { error })?;
        }
    }
    Ok(())
}

fn answer(mut to: &TcpStream, status: &str, body: &str) -> io::Result<()> {
    write!(to, "HTTP/1.1 {status}\r\ncontent-length: {}\r\n\r\n{body}", body.len())
}

/// A request of the server's user, signed by version 4 of AWS's signatures: docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-header-based-auth.html.
fn signed(head: &Head) -> String {
    const SCOPE: [&str; 3] = ["us-east-1", "s3", "aws4_request"];
    let text = String::from_utf8_lossy(&head.text);
    let mut lines: Vec<&str> = text.lines().filter(|line| !line.is_empty()).collect();
    let words: Vec<&str> = lines.remove(0).split(' ').collect();
    let (path, query) = words[1].split_once('?').unwrap_or((words[1], ""));
    let path = encoded(&decoded(path));
    let value = |value: &str| encoded(&decoded(value)).replace('/', "%2F");
    let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    let mut pairs: Vec<String> =
        pairs.map(|(name, text)| format!("{}={}", value(name), value(text))).collect();
    pairs.sort();
    let query = pairs.join("&");
    let date = Command::new("date").args(["-u", "+%Y%m%dT%H%M%SZ"]).output().unwrap().stdout;
    let date = String::from_utf8(date).unwrap().trim().to_owned();
    let [sum, date_line] =
        ["x-amz-content-sha256: UNSIGNED-PAYLOAD".to_owned(), format!("x-amz-date: {date}")];
    lines.extend([sum.as_str(), date_line.as_str()]);
    let own = |line: &&&str| line.starts_with("x-amz-") || line.starts_with("host:");
    let mut headers: Vec<(&str, &str)> =
        lines.iter().filter(own).filter_map(|line| line.split_once(": ")).collect();
    headers.sort_unstable();
    let names = headers.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(";");
    let headers: String = headers.iter().map(|(name, value)| format!("{name}:{value}\n")).collect();
    let request = format!("{}\n{path}\n{query}\n{headers}\n{names}\nUNSIGNED-PAYLOAD", words[0]);
    let scope = format!("{}/{}", &date[..8], SCOPE.join("/"));
    let sum = hex(&openssl::sha::sha256(request.as_bytes()));
    let secret = format!("AWS4{SECRET}").into_bytes();
    let key = [&date[..8]].iter().chain(&SCOPE).fold(secret, |key, part| hmac(&key, part));
    let signature = hex(&hmac(&key, &format!("AWS4-HMAC-SHA256\n{date}\n{scope}\n{sum}")));
    let authorization = format!(
        "authorization: AWS4-HMAC-SHA256 Credential={USER}/{scope}, SignedHeaders={names}, Signature={signature}"
    );
    lines.retain(|line| !line.starts_with("authorization:"));
    format!("{} {path}?{query} HTTP/1.1\r\n{}\r\n{authorization}\r\n\r\n", words[0], lines.join("\r\n"))
}

fn decoded(text: &str) -> String {
    let mut parts = text.split('%');
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        bytes.push(u8::from_str_radix(&part[..2], 16).unwrap());
        bytes.extend_from_slice(&part.as_bytes()[2..]);
    }
    String::from_utf8(bytes).unwrap()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Beginnings of lines, and what they become.
const TO_S3: [(&str, &str); 2] =
    [("x-goog-if-generation-match: 0", "if-none-match: *"), ("x-goog-meta-", "x-amz-meta-")];
const TO_GOOGLE: [(&str, &str); 1] = [("x-amz-meta-", "x-goog-meta-")];
