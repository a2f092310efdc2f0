//! How long a request may take: as long as something of it goes on. One that sends a part may take a time that grows with the part, for of what is on
//! its way the client hears nothing; of an answer each read has a time of its own.

use std::future::Future;
use std::io::ErrorKind;
use std::pin::Pin;
use std::time::Duration;

use futures_util::StreamExt as _;
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpService,
    ReqwestConnector,
};

/// How slow a line may be: the times that follow from it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timeouts {
    /// How long an answer may stand still.
    still: Duration,
    /// Bytes a second that a request sends at least.
    slowest: u64,
}

impl Timeouts {
    /// Assumed, not measured: 30 s, and 32 KiB/s. A part of 8 MiB may take 286 s; dozens of them share a slow line.
    pub(super) const USUAL: Self = Self { still: Duration::from_secs(30), slowest: 32 << 10 };

    fn for_bytes(self, bytes: u64) -> Duration {
        self.still + Duration::from_secs(bytes / self.slowest)
    }
}

/// Bytes that a request may send at once with its answer.
const LITTLE_BYTES: u64 = 64 << 10;
/// More than any part has.
const PART_BYTES_MAX: u64 = 5 << 30;

impl HttpConnector for Timeouts {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        let endless = options.clone().with_timeout_disabled();
        // The time that a read has begins with the request, so it would be over while a large one is sent.
        let little = endless.clone().with_read_timeout(self.still);
        let large = endless.with_timeout(self.for_bytes(PART_BYTES_MAX));
        let [little, large] = [little, large].map(|options| ReqwestConnector::default().connect(&options));
        Ok(HttpClient::new(Requests { timeouts: *self, little: little?, large: large? }))
    }
}

/// Clients for what sends little and for what sends much.
#[derive(Debug)]
struct Requests {
    timeouts: Timeouts,
    little: HttpClient,
    large: HttpClient,
}

impl Requests {
    async fn answer(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let bytes = request.body().content_length() as u64;
        if bytes <= LITTLE_BYTES {
            return self.little.execute(request).await;
        }
        let answer = tokio::time::timeout(self.timeouts.for_bytes(bytes), self.large.execute(request));
        self.whole(answer.await.map_err(|_| late())??).await
    }

    /// An answer with all of its body, of which no piece comes late. It is short, for the request had the bytes; what takes long to be answered
    /// (parts that become an object) gets white space meanwhile.
    async fn whole(&self, answer: HttpResponse) -> Result<HttpResponse, HttpError> {
        let (head, body) = answer.into_parts();
        let (mut pieces, mut whole) = (body.bytes_stream(), Vec::new());
        loop {
            match tokio::time::timeout(self.timeouts.still, pieces.next()).await {
                Ok(Some(piece)) => whole.extend_from_slice(&piece?),
                Ok(None) => return Ok(HttpResponse::from_parts(head, whole.into())),
                Err(_) => return Err(late()),
            }
        }
    }
}

fn late() -> HttpError {
    HttpError::new(HttpErrorKind::Timeout, std::io::Error::from(ErrorKind::TimedOut))
}

impl HttpService for Requests {
    // As the macro `async_trait` writes it.
    fn call<'s, 'f>(
        &'s self,
        request: HttpRequest,
    ) -> Pin<Box<dyn Future<Output = Result<HttpResponse, HttpError>> + Send + 'f>>
    where
        's: 'f,
        Self: 'f,
    {
        Box::pin(self.answer(request))
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Read as _, Write as _};
    use std::net::{TcpListener, TcpStream};
    use std::thread;

    use object_store::aws::AmazonS3Builder;
    use object_store::{ObjectStore, ObjectStoreExt as _, RetryConfig};

    use super::*;
    use crate::store::signing::Libcrypto;

    /// Reads the head of a request; how many bytes follow it.
    fn head(request: &mut impl BufRead) -> Option<usize> {
        let mut length = 0;
        loop {
            let mut line = String::new();
            if request.read_line(&mut line).unwrap() == 0 {
                return None;
            }
            let lower = line.to_ascii_lowercase();
            if let Some(bytes) = lower.strip_prefix("content-length:") {
                length = bytes.trim().parse().unwrap();
            }
            if line == "\r\n" {
                return Some(length);
            }
        }
    }

    /// Reads a request as a slow line does, and answers in two halves.
    fn serve(mut client: &TcpStream, pause: Duration) {
        let mut request = BufReader::new(client);
        let Some(mut length) = head(&mut request) else { return };
        let mut piece = vec![0; 1 << 20];
        while length > 0 {
            thread::sleep(pause);
            let now = length.min(piece.len());
            request.read_exact(&mut piece[..now]).unwrap();
            length -= now;
        }
        let head = "HTTP/1.1 200 OK\r\netag: \"1\"\r\nlast-modified: Mon, 30 Nov 2026 12:00:00 GMT\r\n";
        write!(client, "{head}content-length: 4\r\n\r\nab").unwrap();
        thread::sleep(pause);
        client.write_all(b"cd").ok();
    }

    /// Reads a request at once, and answers with less than it says.
    fn serve_half(mut client: &TcpStream) {
        let mut request = BufReader::new(client);
        let Some(length) = head(&mut request) else { return };
        request.read_exact(&mut vec![0; length]).unwrap();
        client.write_all(b"HTTP/1.1 503 Slow Down\r\ncontent-length: 100\r\n\r\nhalf").unwrap();
        thread::sleep(Duration::from_secs(60));
    }

    fn store(pause: Duration) -> impl ObjectStore {
        store_of(move |client| serve(client, pause))
    }

    fn store_of(serve: impl Fn(&TcpStream) + Clone + Send + 'static) -> impl ObjectStore {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        thread::spawn(move || {
            for client in listener.incoming() {
                let (client, serve) = (client.unwrap(), serve.clone());
                thread::spawn(move || serve(&client));
            }
        });
        let store = AmazonS3Builder::new().with_bucket_name("b").with_region("r").with_allow_http(true);
        let store = store.with_endpoint(format!("http://127.0.0.1:{port}")).with_access_key_id("user");
        let store =
            store.with_secret_access_key("a secret").with_crypto_provider(std::sync::Arc::new(Libcrypto));
        let retry = RetryConfig { max_retries: 0, ..RetryConfig::default() };
        let timeouts = Timeouts { still: Duration::from_secs(2), slowest: 1 << 20 };
        store.with_retry(retry).with_http_connector(timeouts).build().unwrap()
    }

    #[test]
    fn a_large_part_over_a_slow_line_gets_through_and_what_stands_still_is_given_up() {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let path = object_store::path::Path::from("object");
        let (slow, still) = (store(Duration::from_millis(800)), store(Duration::from_secs(30)));
        let part = || vec![7; 3 << 20].into();
        // Longer than an answer may stand still, and no slower than it may be.
        let puts = async { tokio::join!(slow.put(&path, part()), still.put(&path, part())) };
        let (put, given_up) = runtime.block_on(puts);
        assert!(put.is_ok() && given_up.is_err(), "{put:?} {given_up:?}");
        let read = async |store: &dyn ObjectStore| store.get(&path).await?.bytes().await;
        let (read, given_up) = runtime.block_on(async { tokio::join!(read(&slow), read(&still)) });
        assert_eq!(read.unwrap(), "abcd");
        given_up.unwrap_err();
    }

    #[test]
    fn an_answer_to_a_large_part_that_stands_still_in_its_middle_is_given_up() {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let path = object_store::path::Path::from("object");
        // Long after it is to be given up, and long before the server goes on.
        let store = store_of(serve_half);
        let put = store.put(&path, vec![7; 200 << 10].into());
        let put = runtime.block_on(async { tokio::time::timeout(Duration::from_secs(30), put).await });
        put.expect("it was given up").unwrap_err();
    }
}
