//! Memory modules from all sources.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

/// A memory module.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct MemoryModule {
    /// Its place as the board's maker calls it.
    pub locator: Option<String>,
    /// Its channel, with the socket where the maker names it.
    pub channel: Option<String>,
    /// Its capacity.
    pub size_bytes: Option<u64>,
    /// Its type, such as `DDR5`.
    pub kind: Option<String>,
    /// The transfers a second it is set to.
    pub speed_mts: Option<u32>,
    /// The transfers a second it is made for.
    pub max_speed_mts: Option<u32>,
    /// Its ranks.
    pub ranks: Option<u32>,
    /// Who made it.
    pub manufacturer: Option<String>,
    /// Its maker's name for it.
    pub part_number: Option<String>,
}

/// What one source says of the modules.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Layout {
    pub(super) modules: Vec<MemoryModule>,
    pub(super) slots: Option<u32>,
    pub(super) ecc: Option<bool>,
}

/// The value that all have; `None` if they differ or one is not known.
pub(super) fn common<'a>(mut values: impl Iterator<Item = Option<&'a str>>) -> Option<&'a str> {
    let first = values.next()??;
    values.all(|value| value == Some(first)).then_some(first)
}

/// How many channels hold a module; `None` unless every module's channel is known.
pub(super) fn channels(modules: &[MemoryModule]) -> Option<u32> {
    let channels: Option<BTreeSet<_>> = modules.iter().map(|module| module.channel.as_deref()).collect();
    channels.and_then(|channels| u32::try_from(channels.len()).ok()).filter(|&count| count > 0)
}

/// The channel in a board maker's name of a place.
///
/// There is no field for it, and the names follow no standard. Known are those that say `channel` (`P0 CHANNEL A`,
/// `Node0_Channel1_Dimm0`) and those that put the channel's letter behind `DIMM` (`CPU1_DIMM_B2`, `P1-DIMMC1`). The
/// rest, such as Dell's `A1` where the letter is the socket, is not guessed at.
pub(super) fn channel_of(bank: Option<&str>, device: Option<&str>) -> Option<String> {
    let names = [bank, device].map(|name| name.unwrap_or_default().to_uppercase());
    names.iter().find_map(|name| after(name, "CHANNEL", alphanumerics)).or_else(|| {
        after(&names[1], "DIMM", |rest| rest.get(..1).filter(|c| c.bytes().all(|b| b.is_ascii_uppercase())))
    })
}

fn after(name: &str, word: &str, label: impl Fn(&str) -> Option<&str>) -> Option<String> {
    let (before, rest) = name.split_once(word)?;
    let label = label(rest.trim_start_matches([' ', '_', '-', ':']))?;
    let before = before.trim_matches([' ', '_', '-', ':', '/']);
    Some(if before.is_empty() { label.to_owned() } else { format!("{before} {label}") })
}

fn alphanumerics(text: &str) -> Option<&str> {
    let end = text.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(text.len());
    (1..=2).contains(&end).then(|| &text[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn makers_names_of_channels() {
        let channel = |bank: &str, device: &str| channel_of(Some(bank), Some(device));
        assert_eq!(channel("P0 CHANNEL A", "DIMM 0").as_deref(), Some("P0 A"));
        assert_eq!(channel("BANK 0", "Controller0-ChannelA-DIMM0").as_deref(), Some("CONTROLLER0 A"));
        assert_eq!(channel("P1_Node1_Channel3_Dimm0", "x").as_deref(), Some("P1_NODE1 3"));
        assert_eq!(channel("BANK 0", "CPU1_DIMM_B2").as_deref(), Some("CPU1 B"));
        assert_eq!(channel("Not Specified", "A1"), None);
        assert_eq!(channel("", "DIMM 0"), None);
        assert_eq!(channel("CHANNEL", "DIMMé"), None);
    }

    #[test]
    fn one_unknown_channel_makes_the_count_unknown() {
        let module = |channel: Option<&str>| MemoryModule {
            channel: channel.map(str::to_owned),
            ..Default::default()
        };
        assert_eq!(channels(&[module(Some("A")), module(Some("B")), module(Some("A"))]), Some(2));
        assert_eq!(channels(&[module(Some("A")), module(None)]), None);
        assert_eq!(channels(&[]), None);
    }
}
