//! What a page posts (`docs/reference/schemas/tls-page.schema.json`), and curl's measurements in the same form.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Direction;
use super::suite::Suite;

/// Name and version of the layout.
pub(super) const PAGE_SCHEMA: &str = "evener-tls-page/1";

/// One session of a client.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Page {
    /// [`PAGE_SCHEMA`].
    pub schema: String,
    /// Who measured.
    #[serde(flatten)]
    pub client: PageClient,
    /// What it was to measure.
    #[serde(flatten)]
    pub asked: Asked,
    /// By the page's clock.
    pub measured_in_ms: Option<f64>,
    /// In the order in which they were made.
    pub measurements: Vec<Measurement>,
}

/// Who measured.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PageClient {
    /// Name of the session.
    pub session: String,
    /// What the client calls itself.
    pub agent: String,
    /// `CLIENT:PROVIDERS`, where a program started it.
    pub label: Option<String>,
}

/// What a client was to measure.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Asked {
    /// By which suite.
    pub suite: Suite,
    /// Turns of each.
    pub rounds: usize,
    /// Bytes.
    pub sizes: Vec<u64>,
}

/// One upload or download over a connection of its own.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Transfer {
    /// Its name.
    pub id: String,
    /// From 1.
    pub round: usize,
    /// Which way.
    pub direction: Direction,
    /// Of the body.
    pub bytes: u64,
    /// The server's providers: `default` or `evener`.
    pub end: String,
}

/// What a transfer took.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Measurement {
    /// Of which transfer.
    #[serde(flatten)]
    pub transfer: Transfer,
    /// From the request to the end of the answer, by the client's clock, connection and handshake included.
    pub ms: f64,
    /// Core time of the client, where it is known; in a guest of the test bed that of the whole guest.
    pub client_core_ms: Option<f64>,
    /// By Resource Timing, Navigation Timing or curl; old browsers have no such figures.
    pub phases: Option<Phases>,
    /// Navigation Timing of the page that answered a form, milliseconds since it began.
    pub navigation: Option<Value>,
    /// What the server saw.
    pub server: Option<Seen>,
}

/// Where the time went, by the client.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Phases {
    /// TCP.
    pub connect_ms: f64,
    /// The handshake.
    pub tls_ms: Option<f64>,
    /// From the request's first byte to the answer's.
    pub request_ms: f64,
    /// From there to the last.
    pub response_ms: f64,
}

/// Where the time went, by the server.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Seen {
    /// From the connection to the end of the handshake.
    pub tls_ms: f64,
    /// From there to the first byte of the answer: the head and the body came.
    pub request_ms: f64,
    /// From there to the last byte that the system took.
    pub response_ms: f64,
    /// Core time of the server's process, in all that time.
    pub core_ms: f64,
    /// What both ends agreed on.
    #[serde(flatten)]
    pub agreed: Agreed,
}

/// What both ends of a connection agreed on.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Agreed {
    /// As OpenSSL names it.
    pub cipher: String,
    /// Whether a record's MAC is that of the ciphertext (RFC 7366); in CBC only.
    pub encrypt_then_mac: bool,
}

impl Page {
    /// Reads what was posted.
    ///
    /// # Errors
    ///
    /// A sentence where it is something else.
    pub fn read(value: Value) -> Result<Self, String> {
        let page: Self = serde_json::from_value(value)
            .map_err(|error| format!("what was posted is no result of the page: {error}"))?;
        if page.schema == PAGE_SCHEMA {
            return Ok(page);
        }
        Err(format!("what was posted is {}, and this command reads {PAGE_SCHEMA}", page.schema))
    }
}
