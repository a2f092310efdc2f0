//! The host's wire: the first byte chooses what the others are taken for.

use evener_wire::{
    CONFIG_BYTES, Config, ConfigMessage, CreateSession, DATA_HEADER_BYTES, DataRequest, HEADER_BYTES, Header,
    MemoryTable, RingAddresses, RingDescriptor, RingState, SESSION_BYTES, number,
};

/// Takes the bytes for one of the wire's parts; what is accepted is written and read again.
pub fn host_wire(bytes: &[u8]) {
    let Some((kind, bytes)) = bytes.split_first() else { return };
    match kind % 7 {
        0 => header(bytes),
        1 => table(bytes),
        2 => ring(bytes),
        3 => config(bytes),
        4 => session(bytes),
        _ => request(bytes),
    }
}

fn header(bytes: &[u8]) {
    let Some(Ok(header)) = bytes.first_chunk::<HEADER_BYTES>().map(Header::parse) else { return };
    assert_eq!(Header::parse(&header.to_bytes()), Ok(header));
}

fn table(bytes: &[u8]) {
    let Ok(table) = MemoryTable::parse(bytes) else { return };
    assert_eq!(table.to_bytes().len(), bytes.len());
    assert_eq!(MemoryTable::parse(&table.to_bytes()), Ok(table));
}

fn ring(bytes: &[u8]) {
    if let Ok(addresses) = RingAddresses::parse(bytes) {
        assert_eq!(addresses.to_bytes(), bytes);
    }
    if let Ok(state) = RingState::parse(bytes) {
        assert_eq!(state.to_bytes(), bytes);
    }
    assert_eq!(number(bytes).is_ok(), RingDescriptor::parse(bytes).is_ok());
}

fn config(bytes: &[u8]) {
    if let Ok(config) = Config::parse(bytes) {
        assert_eq!(Config::parse(&config.to_bytes()), Ok(config));
    }
    if let Ok(message) = ConfigMessage::parse(bytes) {
        let part = message.part(&[1; CONFIG_BYTES]);
        assert!(part.is_none_or(|part| part.len() as u64 == u64::from(message.size)));
    }
}

fn session(bytes: &[u8]) {
    let Ok(session) = CreateSession::parse(bytes) else { return };
    let mut payload = [7; SESSION_BYTES];
    session.write(&mut payload).expect("a key that came in its field fits it");
    assert_eq!(CreateSession::parse(&payload), Ok(session));
    CreateSession::answer(&mut payload, 5);
    assert_eq!(CreateSession::answered_id(&payload), Ok(5));
}

fn request(bytes: &[u8]) {
    let Some(Ok(request)) = bytes.first_chunk::<DATA_HEADER_BYTES>().map(DataRequest::parse) else { return };
    assert_eq!(DataRequest::parse(&request.to_bytes()), Ok(request));
    let lengths = request.lengths();
    assert!(lengths.readable >= DATA_HEADER_BYTES as u64 && lengths.writable >= 1);
}
