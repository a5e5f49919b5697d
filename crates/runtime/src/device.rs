//! Devices by their names: `cpu`, `cuda:0`, `hip:1`.

use std::fmt;
use std::str::FromStr;

/// A place where programs run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub enum Device {
    /// The host's processors.
    #[default]
    Cpu,
    /// An NVIDIA GPU, by its number.
    Cuda(u32),
    /// An AMD GPU, by its number.
    Hip(u32),
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Device::Cpu => f.write_str("cpu"),
            Device::Cuda(number) => write!(f, "cuda:{number}"),
            Device::Hip(number) => write!(f, "hip:{number}"),
        }
    }
}

impl FromStr for Device {
    type Err = String;

    /// `cuda` and `hip` alone mean the first of their kind.
    fn from_str(text: &str) -> Result<Self, String> {
        let unknown = || format!("`{text}` is no device; there are cpu, cuda[:N] and hip[:N]");
        let (kind, number) = match text.split_once(':') {
            // `parse` would take a sign.
            Some((kind, number)) if number.bytes().all(|byte| byte.is_ascii_digit()) => {
                (kind, Some(number.parse::<u32>().map_err(|_| unknown())?))
            }
            Some(_) => return Err(unknown()),
            None => (text, None),
        };
        match (kind, number) {
            ("cpu", None) => Ok(Device::Cpu),
            ("cuda", number) => Ok(Device::Cuda(number.unwrap_or(0))),
            ("hip", number) => Ok(Device::Hip(number.unwrap_or(0))),
            _ => Err(unknown()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_back() {
        for device in [Device::Cpu, Device::Cuda(0), Device::Cuda(7), Device::Hip(1)] {
            assert_eq!(device.to_string().parse(), Ok(device));
        }
        assert_eq!("cuda".parse(), Ok(Device::Cuda(0)));
        assert_eq!("hip".parse(), Ok(Device::Hip(0)));
    }

    #[test]
    fn other_words_are_refused() {
        for text in ["", "gpu", "cpu:0", "cuda:", "cuda:x", "cuda:+1", "cuda:99999999999", "CUDA"] {
            assert!(text.parse::<Device>().is_err(), "{text}");
        }
    }
}
