//! A ClientHello as it lies on the wire, as far as it says whether the client knows Encrypt-then-MAC (RFC 7366).

/// Number of the extension.
const ENCRYPT_THEN_MAC: u16 = 22;

/// Bytes of it that are looked at: larger than what clients send.
pub(super) const BYTES_MAX: usize = 8_192;

/// Whether the client offers it; `None` where these bytes are no whole ClientHello.
pub(super) fn offers_encrypt_then_mac(record: &[u8]) -> Option<bool> {
    let mut rest = record;
    // A record of the handshake, and in it a ClientHello with version and random.
    let head = take(&mut rest, 5)?;
    let hello = take(&mut rest, 4)?;
    if head[0] != 22 || hello[0] != 1 {
        return None;
    }
    take(&mut rest, 34)?;
    let session = usize::from(take(&mut rest, 1)?[0]);
    take(&mut rest, session)?;
    let ciphers = length(&mut rest)?;
    take(&mut rest, ciphers)?;
    let compressions = usize::from(take(&mut rest, 1)?[0]);
    take(&mut rest, compressions)?;
    let all = length(&mut rest)?;
    let mut extensions = take(&mut rest, all)?;
    while !extensions.is_empty() {
        let kind = length(&mut extensions)?;
        if kind == usize::from(ENCRYPT_THEN_MAC) {
            return Some(true);
        }
        let bytes = length(&mut extensions)?;
        take(&mut extensions, bytes)?;
    }
    Some(false)
}

fn take<'b>(rest: &mut &'b [u8], bytes: usize) -> Option<&'b [u8]> {
    let (taken, left) = rest.split_at_checked(bytes)?;
    *rest = left;
    Some(taken)
}

/// A number of two bytes.
fn length(rest: &mut &[u8]) -> Option<usize> {
    let bytes = take(rest, 2)?;
    Some(usize::from(u16::from_be_bytes([bytes[0], bytes[1]])))
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::{TcpListener, TcpStream};

    use openssl::ssl::{Ssl, SslContext, SslMethod, SslOptions, SslStream};

    use super::*;

    /// What OpenSSL's own client sends first.
    fn hello_of_openssl(options: SslOptions) -> Vec<u8> {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let mut builder = SslContext::builder(SslMethod::tls_client()).unwrap();
        builder.set_options(options);
        let ssl = Ssl::new(&builder.build()).unwrap();
        let client = std::thread::spawn(move || {
            let mut stream = SslStream::new(ssl, stream).unwrap();
            stream.connect().unwrap_err();
        });
        let (mut server, _) = listener.accept().unwrap();
        let mut bytes = [0; BYTES_MAX];
        let length = server.read(&mut bytes).unwrap();
        server.write_all(b"no TLS").unwrap();
        drop(server);
        client.join().unwrap();
        bytes[..length].to_vec()
    }

    #[test]
    fn openssl_offers_it_unless_it_is_told_not_to() {
        assert_eq!(offers_encrypt_then_mac(&hello_of_openssl(SslOptions::empty())), Some(true));
        // SSL_OP_NO_ENCRYPT_THEN_MAC of openssl/ssl.h, bit 19.
        let without = SslOptions::from_bits_retain(1 << 19);
        assert_eq!(offers_encrypt_then_mac(&hello_of_openssl(without)), Some(false));
    }

    #[test]
    fn what_is_cut_off_or_no_hello_says_nothing() {
        let hello = hello_of_openssl(SslOptions::empty());
        assert!((0..60).all(|bytes| offers_encrypt_then_mac(&hello[..bytes]).is_none()));
        assert_eq!(offers_encrypt_then_mac(b"GET / HTTP/1.1\r\n\r\n"), None);
    }
}
