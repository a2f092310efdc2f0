//! What one client may have, and how many clients there may be.

/// What one client may have at most, and how many there may be.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Clients at the same time.
    pub clients_max: usize,
    /// Sessions that are open at the same time, per client. A guest has two per key.
    pub sessions_max: usize,
    /// Requests that the module holds, per client; further ones wait in the client's ring.
    pub in_flight_max: usize,
    /// Bytes of these requests; one request may go beyond.
    pub bytes_in_flight_max: usize,
    /// Bytes of memory that are mapped, per client.
    pub memory_bytes_max: u64,
    /// Bytes of a request.
    pub request_bytes_max: usize,
}

impl Default for Limits {
    /// 64 clients with 4096 sessions, 256 requests of 16 MiB in all, 64 GiB of memory each; requests of 1 MiB. Assumed,
    /// not measured, but that a guest's memory is mapped whole, and that Linux sends no more than 64 KiB at once.
    fn default() -> Self {
        Self {
            clients_max: 64,
            sessions_max: 4096,
            in_flight_max: 256,
            bytes_in_flight_max: 16 << 20,
            memory_bytes_max: 64 << 30,
            request_bytes_max: 1 << 20,
        }
    }
}
