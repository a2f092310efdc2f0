//! Where a function is: domain, bus, device, function, as Linux and `lspci -D` write it.

use std::fmt;
use std::str::FromStr;

/// A PCI function's address, as `0000:00:10.0`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Address {
    domain: u32,
    bus: u8,
    device: u8,
    function: u8,
}

/// What is no address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no PCI address: one is 0000:00:10.0, domain, bus, device and function in hexadecimal digits")]
pub struct NoAddress;

impl FromStr for Address {
    type Err = NoAddress;

    /// The domain may be left out where it is 0, as `lspci` does.
    fn from_str(text: &str) -> Result<Self, NoAddress> {
        let (front, function) = text.rsplit_once('.').ok_or(NoAddress)?;
        let (front, device) = front.rsplit_once(':').ok_or(NoAddress)?;
        let (domain, bus) = front.rsplit_once(':').unwrap_or(("0", front));
        let digits = |text: &str, most: u32| {
            let is_hex = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_hexdigit());
            let number = u32::from_str_radix(text, 16).ok().filter(|number| is_hex && *number <= most);
            number.ok_or(NoAddress)
        };
        let byte = |text: &str, most: u8| digits(text, most.into()).map(|number| number.to_le_bytes()[0]);
        Ok(Self {
            domain: digits(domain, u32::MAX)?,
            bus: byte(bus, 0xFF)?,
            device: byte(device, 0x1F)?,
            function: byte(function, 7)?,
        })
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { domain, bus, device, function } = self;
        write!(f, "{domain:04x}:{bus:02x}:{device:02x}.{function}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_written_as_the_system_writes_it() {
        for (text, shown) in [
            ("0000:00:10.0", "0000:00:10.0"),
            ("00:1f.7", "0000:00:1f.7"),
            ("10000:e2:00.1", "10000:e2:00.1"),
            ("0000:AB:05.0", "0000:ab:05.0"),
        ] {
            assert_eq!(text.parse::<Address>().map(|address| address.to_string()).as_deref(), Ok(shown));
        }
    }

    #[test]
    fn what_leads_elsewhere_than_to_a_function_is_none() {
        for text in
            ["", "00", "00:10", "00:20.0", "00:10.8", "100:10.0", "+0:10.0", "0000:00:10.0/..", "../00:10.0"]
        {
            assert_eq!(text.parse::<Address>(), Err(NoAddress), "{text}");
        }
    }
}
