//! VHLO: the versioned copy of StableHLO that portable artifacts are made of.
//!
//! Everything that an artifact fixes for years is in tables here: the numbers of attributes and types in `codes`, the
//! forms that operations had over time in `forms`, what goes without saying in StableHLO but not in an artifact in
//! `defaults`. Reading brings an operation of any version to today's StableHLO (`upgrade`); writing goes the other way
//! (`lower`).

pub(super) mod codes;
pub(super) mod defaults;
pub(super) mod forms;
pub(super) mod lower;
pub(super) mod upgrade;
