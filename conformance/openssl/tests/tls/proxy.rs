//! A proxy that damages one record from the server.

use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::thread;

/// What happens to a record.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Damage {
    FirstByte,
    MiddleByte,
    LastByte,
    /// The last 16 bytes are missing, and its header says so.
    Shorter,
}

impl Damage {
    pub(crate) const ALL: [Self; 4] = [Self::FirstByte, Self::MiddleByte, Self::LastByte, Self::Shorter];

    fn done_to(self, record: &mut Vec<u8>) {
        let end = record.len();
        match self {
            Self::FirstByte => record[HEADER_BYTES] ^= 1,
            Self::MiddleByte => record[HEADER_BYTES + (end - HEADER_BYTES) / 2] ^= 1,
            Self::LastByte => record[end - 1] ^= 1,
            Self::Shorter => {
                record.truncate(end - 16);
                let bytes = u16::try_from(end - 16 - HEADER_BYTES).unwrap();
                record[3..HEADER_BYTES].copy_from_slice(&bytes.to_be_bytes());
            }
        }
    }
}

/// Type, version, length (RFC 5246, section 6.2).
const HEADER_BYTES: usize = 5;
const APPLICATION_DATA: u8 = 23;
/// What is damaged is longer than a TLS 1.3 handshake's records, which carry the same type.
const LONG_BYTES: usize = 8_000;

/// Starts it for one connection and returns its port.
pub(crate) fn start(server: SocketAddr, damage: Damage) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        let (client, _) = listener.accept().unwrap();
        let server = TcpStream::connect(server).unwrap();
        let (mut request, mut to_server) = (client.try_clone().unwrap(), server.try_clone().unwrap());
        let there = thread::spawn(move || {
            // The client ends the connection as it likes: nothing to report.
            io::copy(&mut request, &mut to_server).unwrap_or_default();
            to_server.shutdown(Shutdown::Write).unwrap_or_default();
        });
        // Ends with the connection, whichever side ends it.
        pass_records(&server, &client, damage).unwrap_or_default();
        client.shutdown(Shutdown::Write).unwrap_or_default();
        there.join().unwrap();
    });
    port
}

/// Passes records on, the second long one damaged.
fn pass_records(mut from: &TcpStream, mut to: &TcpStream, damage: Damage) -> io::Result<()> {
    let mut long_count = 0;
    loop {
        let mut record = vec![0; HEADER_BYTES];
        from.read_exact(&mut record)?;
        let bytes = usize::from(u16::from_be_bytes([record[3], record[4]]));
        record.resize(HEADER_BYTES + bytes, 0);
        from.read_exact(&mut record[HEADER_BYTES..])?;
        if record[0] == APPLICATION_DATA && bytes > LONG_BYTES {
            long_count += 1;
            if long_count == 2 {
                damage.done_to(&mut record);
            }
        }
        to.write_all(&record)?;
    }
}
