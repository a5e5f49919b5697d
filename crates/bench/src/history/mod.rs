//! The runs of this machine, kept in SQLite.
