//! What users write for a host, and the addresses it stands for.

use std::net::{IpAddr, SocketAddr, ToSocketAddrs as _};

use super::NetError;

/// The port where servers listen by default.
pub const DEFAULT_PORT: u16 = 5210;

/// The addresses of a host written as a name or address, with or without a port. There is at least one.
///
/// # Errors
/// If it cannot be understood, or the name is unknown.
pub fn resolve(text: &str) -> Result<Vec<SocketAddr>, NetError> {
    let (host, port) = split(text).ok_or_else(|| NetError::BadHost { text: text.to_owned() })?;
    let unknown = |cause| NetError::UnknownHost { text: text.to_owned(), cause };
    let addresses: Vec<_> = (host, port).to_socket_addrs().map_err(unknown)?.collect();
    if addresses.is_empty() {
        return Err(unknown(std::io::Error::other("it has no address")));
    }
    Ok(addresses)
}

/// The host and the port of what a user wrote.
fn split(text: &str) -> Option<(&str, u16)> {
    // An IPv6 address has colons of its own, so it takes a port only in brackets.
    if text.parse::<IpAddr>().is_ok() {
        return Some((text, DEFAULT_PORT));
    }
    if let Some(rest) = text.strip_prefix('[') {
        let (host, rest) = rest.split_once(']')?;
        let port = match rest {
            "" => DEFAULT_PORT,
            _ => port(rest.strip_prefix(':')?)?,
        };
        return host.contains(':').then_some((host, port));
    }
    let (host, port) = match text.split_once(':') {
        Some((host, text)) => (host, port(text)?),
        None => (text, DEFAULT_PORT),
    };
    let is_name = !host.is_empty() && host.chars().all(|c| c.is_alphanumeric() || "-_.".contains(c));
    is_name.then_some((host, port))
}

fn port(text: &str) -> Option<u16> {
    text.parse().ok().filter(|&port| port != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_with_and_without_a_port() {
        for (text, host, port) in [
            ("10.0.0.2", "10.0.0.2", DEFAULT_PORT),
            ("10.0.0.2:80", "10.0.0.2", 80),
            ("node-7.cluster", "node-7.cluster", DEFAULT_PORT),
            ("node-7:9", "node-7", 9),
            ("::1", "::1", DEFAULT_PORT),
            ("[::1]", "::1", DEFAULT_PORT),
            ("[fe80::1%2]:77", "fe80::1%2", 77),
        ] {
            assert_eq!(split(text), Some((host, port)), "{text}");
        }
    }

    #[test]
    fn nonsense_is_refused() {
        for text in
            ["", ":5", "a:b", "a:0", "a:99999", "[::1", "[::1]x", "[a]:5", "1:2:3x", "http://a", "a b"]
        {
            assert!(matches!(resolve(text), Err(NetError::BadHost { .. })), "{text}");
        }
    }

    #[test]
    fn addresses_resolve_without_a_name_server() {
        assert_eq!(resolve("127.0.0.1:9").unwrap(), ["127.0.0.1:9".parse().unwrap()]);
        assert_eq!(resolve("[::1]:9").unwrap(), ["[::1]:9".parse().unwrap()]);
    }
}
