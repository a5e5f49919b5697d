//! Licences that do not allow every use.

use super::Plan;
use crate::Error;

/// Whether a licence is for non-commercial use only, by its name: `CC BY-NC 4.0`, `research only`.
#[must_use]
pub fn is_non_commercial(licence: &str) -> bool {
    let lower = licence.to_ascii_lowercase();
    let words: Vec<&str> = lower.split(|c: char| !c.is_ascii_alphanumeric()).collect();
    words.contains(&"nc")
        || words.contains(&"noncommercial")
        || words.windows(2).any(|pair| matches!(pair, ["non", "commercial"] | ["research", "only"]))
}

impl Plan {
    /// Refuses licences that do not allow every use, unless they are named.
    ///
    /// # Errors
    ///
    /// The first that is not.
    pub fn check_licences(&self, accepted: &[String]) -> Result<(), Error> {
        for (what, licence) in [("the model", &self.model.licence), ("the data", &self.data.licence)] {
            if is_non_commercial(licence) && !accepted.contains(licence) {
                return Err(Error::Licence { what, licence: licence.clone() });
            }
        }
        Ok(())
    }
}
