//! Hosts and ports that users write.

use std::fmt;
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::str::FromStr;

/// A name or an address, and a port.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    host: String,
    port: u16,
}

impl FromStr for Place {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || "expected HOST:PORT, such as localhost:9188, 0.0.0.0:9188 or [::1]:9188".to_owned();
        let (host, port) = text.rsplit_once(':').ok_or_else(wrong)?;
        let inside = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        let host = match inside {
            Some(address) => address,
            // An IPv6 address without brackets has no port that one could tell.
            None if host.is_empty() || host.contains([':', '[', ']', '/']) => return Err(wrong()),
            None => host,
        };
        Ok(Self { host: host.to_owned(), port: port.parse().map_err(|_| wrong())? })
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, port } = self;
        if host.contains(':') { write!(f, "[{host}]:{port}") } else { write!(f, "{host}:{port}") }
    }
}

impl Place {
    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// The same host with another port.
    pub(crate) fn with_port(&self, port: u16) -> Self {
        Self { host: self.host.clone(), port }
    }

    /// The addresses that it stands for.
    pub(crate) fn addresses(&self) -> std::io::Result<Vec<SocketAddr>> {
        Ok((self.host.as_str(), self.port).to_socket_addrs()?.collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_names_or_addresses_with_a_port() {
        for (text, host, shown) in [
            ("localhost:9100", "localhost", "localhost:9100"),
            ("127.0.0.1:9100", "127.0.0.1", "127.0.0.1:9100"),
            ("[::1]:9100", "::1", "[::1]:9100"),
        ] {
            let place: Place = text.parse().unwrap();
            assert_eq!((place.host.as_str(), place.port, place.to_string().as_str()), (host, 9100, shown));
        }
        for wrong in
            ["", "localhost", "9100", ":9100", "localhost:", "localhost:70000", "::1:9100", "http://x:1"]
        {
            assert!(wrong.parse::<Place>().is_err(), "{wrong}");
        }
    }
}
