//! Message ids and the header in front of each message.

use crate::WireError;
use crate::bytes::{put_all, u32_at};

/// Bytes of a header: request, flags, payload size.
pub const HEADER_BYTES: usize = 12;

/// Longest payload that either side accepts, in bytes: more than a session's 1072.
pub const PAYLOAD_BYTES_MAX: u32 = 2048;

/// Feature bits of a ring (messages 1 and 2).
pub mod features {
    /// Descriptors may lie in a table apart (virtio 1.2, 2.7.5.3).
    pub const INDIRECT: u64 = 1 << 28;
    /// Notifications are suppressed by index (virtio 1.2, 2.7.7).
    pub const EVENT_IDX: u64 = 1 << 29;
    /// Protocol features can be negotiated (vhost-user only).
    pub const PROTOCOL: u64 = 1 << 30;
    /// Rings are little-endian, as from virtio 1.0.
    pub const VERSION_1: u64 = 1 << 32;
    /// Addresses are translated as the platform does it for devices: by its IOMMU (devices only; virtio 1.2, 6).
    pub const ACCESS_PLATFORM: u64 = 1 << 33;
}

/// Feature bits of the protocol (messages 15 and 16).
pub mod protocol_features {
    /// Messages 26 and 27.
    pub const CRYPTO_SESSION: u64 = 1 << 7;
    /// Messages 24 and 25.
    pub const CONFIG: u64 = 1 << 9;

    /// Evener's own: the host serves as many clients as it may, of all users or of this one, and says here how many these are. A front end that knows
    /// nothing of it sees a back end without sessions, for it leaves alone what bits it does not know.
    #[must_use]
    pub fn full(clients: u32, is_of_user: bool) -> u64 {
        let whose = if is_of_user { OF_USER } else { 0 };
        FULL | whose | u64::from(clients.min(CLIENTS_MAX)) << CLIENTS_AT
    }

    /// The clients of a host that takes no more, and whether these are the same user's; none where it takes this one.
    #[must_use]
    pub fn clients_of_full(word: u64) -> Option<(u32, bool)> {
        let clients = word >> CLIENTS_AT & u64::from(CLIENTS_MAX);
        let clients = u32::try_from(clients).unwrap_or(CLIENTS_MAX);
        (word & FULL != 0).then_some((clients, word & OF_USER != 0))
    }

    const FULL: u64 = 1 << 63;
    const OF_USER: u64 = 1 << 62;
    const CLIENTS_AT: u32 = 40;
    const CLIENTS_MAX: u32 = (1 << 22) - 1;
}

macro_rules! messages {
    ($($name:ident = $number:literal $doc:literal;)*) => {
        /// The messages that this wire knows; all go from the client to the host.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Message { $(#[doc = $doc] $name = $number),* }

        impl Message {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$name),*];
        }
    };
}

messages! {
    GetFeatures = 1 "Asks for the ring features; answered by a number.";
    SetFeatures = 2 "Chooses among them.";
    SetOwner = 3 "Begins a connection.";
    ResetOwner = 4 "Deprecated; does nothing.";
    SetMemTable = 5 "The client's memory, one descriptor per region.";
    SetRingNum = 8 "Entries of a ring.";
    SetRingAddr = 9 "Where a ring lies, in user addresses.";
    SetRingBase = 10 "The next entry that the host is to look at.";
    GetRingBase = 11 "Stops a ring; answered by the next entry.";
    SetRingKick = 12 "Descriptor by which the client calls the host; starts the ring.";
    SetRingCall = 13 "Descriptor by which the host calls the client.";
    SetRingErr = 14 "Descriptor for errors; not used.";
    GetProtocolFeatures = 15 "Asks for the protocol's features; answered by a number.";
    SetProtocolFeatures = 16 "Chooses among them.";
    GetQueueNum = 17 "Most rings per connection; answered by a number.";
    SetRingEnable = 18 "Lets a ring be served, or not.";
    GetConfig = 24 "Part of the configuration; answered by the same with contents.";
    CreateSession = 26 "Opens a session; answered by the same payload with its id, negative where refused.";
    CloseSession = 27 "Closes a session; no answer.";
}

impl Message {
    /// The message of this number.
    ///
    /// # Errors
    ///
    /// [`WireError::UnknownMessage`].
    pub fn from_number(number: u32) -> Result<Self, WireError> {
        let found = Self::ALL.iter().find(|message| **message as u32 == number);
        found.copied().ok_or(WireError::UnknownMessage(number))
    }
}

/// What stands in front of each message. Low two bits of the flags: version 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The request.
    pub message: Message,
    /// Whether this is the host's answer.
    pub is_reply: bool,
    /// Bytes that follow.
    pub payload_bytes: u32,
}

impl Header {
    /// The header of a request with so many bytes of payload.
    #[must_use]
    pub const fn request(message: Message, payload_bytes: u32) -> Self {
        Self { message, is_reply: false, payload_bytes }
    }

    /// The header of an answer with so many bytes of payload.
    #[must_use]
    pub const fn reply(message: Message, payload_bytes: u32) -> Self {
        Self { message, is_reply: true, payload_bytes }
    }

    /// Reads a header. The bit that asks for an acknowledgement is ignored: it was never offered.
    ///
    /// # Errors
    ///
    /// Another version, a payload longer than [`PAYLOAD_BYTES_MAX`], an unknown message.
    pub fn parse(bytes: &[u8; HEADER_BYTES]) -> Result<Self, WireError> {
        let (number, flags, payload_bytes) = (u32_at(bytes, 0), u32_at(bytes, 4), u32_at(bytes, 8));
        if flags & VERSION_MASK != VERSION {
            return Err(WireError::Version(flags));
        }
        if payload_bytes > PAYLOAD_BYTES_MAX {
            return Err(WireError::Oversized(payload_bytes));
        }
        Ok(Self { message: Message::from_number(number)?, is_reply: flags & REPLY != 0, payload_bytes })
    }

    /// The header as bytes.
    #[must_use]
    pub fn to_bytes(self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        put_all!(
            bytes, to_ne_bytes,
            0: self.message as u32, 4: VERSION | if self.is_reply { REPLY } else { 0 },
            8: self.payload_bytes
        );
        bytes
    }
}

const VERSION: u32 = 1;
const VERSION_MASK: u32 = 3;
const REPLY: u32 = 4;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_endian = "little")]
    fn a_header_is_three_numbers_in_the_machines_order() {
        let create = [26, 0, 0, 0, 1, 0, 0, 0, 0x30, 4, 0, 0];
        let header = Header::request(Message::CreateSession, 1072);
        assert_eq!(Header::parse(&create), Ok(header));
        assert_eq!(header.to_bytes(), create);
        let reply = [1, 0, 0, 0, 5, 0, 0, 0, 8, 0, 0, 0];
        assert_eq!(Header::parse(&reply), Ok(Header::reply(Message::GetFeatures, 8)));
        assert_eq!(Header::reply(Message::GetFeatures, 8).to_bytes(), reply);
    }

    #[test]
    fn a_host_that_is_full_says_by_how_many_clients_and_offers_no_sessions() {
        use super::protocol_features::{CONFIG, CRYPTO_SESSION, clients_of_full, full};
        for (clients, is_of_user) in [(0, false), (1, true), (1_024, false), (4_194_303, true)] {
            assert_eq!(clients_of_full(full(clients, is_of_user)), Some((clients, is_of_user)));
            assert_eq!(full(clients, is_of_user) & 0xFF_FFFF_FFFF, 0, "bits that others give a meaning");
        }
        assert_eq!(clients_of_full(full(u32::MAX, false)), Some((4_194_303, false)));
        assert_eq!(clients_of_full(CRYPTO_SESSION | CONFIG), None);
    }

    #[test]
    fn what_is_no_header_is_refused_by_name() {
        let header = |number: u32, flags: u32, size: u32| {
            let mut bytes = [0; HEADER_BYTES];
            put_all!(bytes, to_ne_bytes, 0: number, 4: flags, 8: size);
            Header::parse(&bytes)
        };
        assert_eq!(header(1, 2, 0), Err(WireError::Version(2)));
        assert_eq!(header(1, 1, 2049), Err(WireError::Oversized(2049)));
        assert_eq!(header(0, 1, 0), Err(WireError::UnknownMessage(0)));
        assert_eq!(header(6, 1, 0), Err(WireError::UnknownMessage(6)));
        // The bit that asks for an acknowledgement does not matter.
        assert_eq!(header(5, 9, 8), Ok(Header::request(Message::SetMemTable, 8)));
    }
}
