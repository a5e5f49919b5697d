//! The default names of files that commands write.

use std::path::PathBuf;

use jiff::Zoned;

/// The default name of an exported file: `warpt_<what>_<TIMESTAMP>_<RANDOM>.json`.
#[must_use]
pub fn default_file_name(what: &str) -> PathBuf {
    let timestamp = Zoned::now().strftime("%Y%m%d_%H%M%S");
    let random: String = std::iter::repeat_with(fastrand::alphanumeric).take(6).collect();
    PathBuf::from(format!("warpt_{what}_{timestamp}_{}.json", random.to_lowercase()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn default_names_carry_their_subject_and_differ() {
        let (a, b) = (default_file_name("list"), default_file_name("list"));
        assert_ne!(a, b);
        let name = a.to_str().unwrap();
        assert!(name.starts_with("warpt_list_2") && name.ends_with(".json"), "{name}");
    }
}
