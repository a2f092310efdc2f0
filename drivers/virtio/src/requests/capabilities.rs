//! What a host or device does for us, and the connection to it.

use std::collections::BTreeSet;

use evener_core::known::KNOWN;
use evener_core::{Algorithm, Direction};

use crate::connection::Connection;
use crate::connection::error::ConnectionError;
use crate::connection::wire_mapping::Shape;
use crate::module_name::{ModuleName, Place};
use crate::requests::connector::connect;

/// What a module does for us.
#[derive(Debug)]
pub(crate) struct Capabilities {
    name: ModuleName,
    table: BTreeSet<(usize, Direction)>,
    request_bytes_max: usize,
}

impl Capabilities {
    /// Of a module that is not there.
    pub(crate) const fn nothing(name: ModuleName) -> Self {
        Self { name, table: BTreeSet::new(), request_bytes_max: 0 }
    }

    pub(crate) fn new(name: ModuleName, connection: &Connection) -> Self {
        let both = [Direction::Encrypt, Direction::Decrypt];
        let all = KNOWN.iter().flat_map(|known| both.map(|direction| (known.algorithm, direction)));
        let is_possible = |&(algorithm, direction): &(Algorithm, Direction)| {
            (algorithm.is_cipher() || direction == Direction::Encrypt)
                && name.offer().has(algorithm, direction)
                && Shape { algorithm, direction }.is_in(connection.config())
        };
        // One after the other: to collect them sorts them in 4 KiB of a stack that may have 16.
        let mut table = BTreeSet::new();
        table.extend(all.filter(is_possible).map(|(algorithm, direction)| (algorithm.index(), direction)));
        let told = connection.config().map_or(0, |config| config.request_bytes_max);
        // 0: the host sets no limit.
        let told = usize::try_from(told).ok().filter(|&most| most > 0);
        Self { name, table, request_bytes_max: told.unwrap_or(usize::MAX) }
    }

    /// Leaves out what the other side opens no session for: QEMU's own device (10.0) names hashes that it does not do.
    pub(crate) fn probe_each(&mut self, connection: &mut Connection) -> Result<(), ConnectionError> {
        let mut asked = Ok(());
        self.table.retain(|&(index, direction)| {
            let shape = Shape { algorithm: Algorithm::ALL[index], direction };
            connection.can_open(shape).unwrap_or_else(|error| {
                asked = Err(error);
                false
            })
        });
        asked
    }

    pub(crate) const fn name(&self) -> &ModuleName {
        &self.name
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    pub(crate) fn has(&self, algorithm: Algorithm, direction: Direction) -> bool {
        self.table.contains(&(algorithm.index(), direction))
    }

    pub(crate) const fn request_bytes_max(&self) -> usize {
        self.request_bytes_max
    }

    /// A connection besides those that are there; none where it does not come about, or where there can be one only.
    pub(crate) fn another_connection(&self) -> Option<Connection> {
        match self.name.place() {
            Place::Socket(_) => connect(&self.name).ok(),
            Place::Function(_) => None,
        }
    }
}
