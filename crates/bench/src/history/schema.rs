//! The tables, and their version.

use rusqlite::{Connection, TransactionBehavior};

/// The version of the tables, kept in SQLite's `user_version`.
pub(super) const VERSION: u32 = 1;

const TABLES: &str = "
    CREATE TABLE runs (
        id TEXT PRIMARY KEY,
        started TEXT NOT NULL,
        suite TEXT NOT NULL,
        tool_version TEXT NOT NULL,
        record TEXT NOT NULL
    ) STRICT;
    CREATE TABLE metrics (
        run_id TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
        benchmark TEXT NOT NULL,
        name TEXT NOT NULL,
        tags TEXT NOT NULL,
        value REAL NOT NULL,
        unit TEXT NOT NULL,
        ci_low REAL,
        ci_high REAL
    ) STRICT;
    CREATE INDEX runs_by_start ON runs (started);
    CREATE INDEX metrics_by_name ON metrics (benchmark, name, tags);
    PRAGMA user_version = 1;
";

/// Makes the tables if the file is new, and returns the version that the file has. A file of a newer version is left
/// as it is.
pub(super) fn prepare(connection: &mut Connection) -> rusqlite::Result<u32> {
    connection.busy_timeout(std::time::Duration::from_secs(10))?;
    let version = |connection: &Connection| connection.query_row("PRAGMA user_version", [], |row| row.get(0));
    let found: u32 = version(connection)?;
    if found > VERSION {
        return Ok(found);
    }
    // The rollback journal, SQLite's default, and not a write-ahead log: switching to that one fails at once if another
    // process has the file open, and here nobody waits for speed.
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "foreign_keys", true)?;
    if found == 0 {
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        // Another process may have made the tables since.
        if version(&transaction)? == 0 {
            transaction.execute_batch(TABLES)?;
        }
        transaction.commit()?;
    }
    Ok(VERSION)
}

/// A time as text that sorts by time.
pub(super) fn sortable(time: jiff::Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%S%.9fZ").to_string()
}
