//! The runs of this machine, kept in SQLite.
//!
//! The whole record is kept as JSON beside a few columns to search by. SQLite's journal makes every save whole or not
//! at all, so a program that is killed leaves the runs before it and the last checkpoint of its own.

mod query;
mod schema;

pub use query::{Entry, TrendPoint};

use std::path::{Path, PathBuf};

use rusqlite::{Connection, OpenFlags, OptionalExtension as _, TransactionBehavior, params};

use crate::record::{BenchmarkSuiteRun, RecordError, read_str};

/// Why the history could not be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HistoryError {
    /// There is no place for it.
    #[error("no place for the history: neither XDG_DATA_HOME nor HOME is set; set one, or use --no-history")]
    NoPlace,
    /// The folder or the file cannot be used.
    #[error("history {}: {reason}", path.display())]
    Unusable {
        /// The file.
        path: PathBuf,
        /// What the system or SQLite said.
        reason: String,
    },
    /// A newer program wrote it.
    #[error(
        "history {}: written in version {found}, this program reads up to {}; use a newer warpt, \
         or another history by XDG_DATA_HOME; nothing was changed", path.display(), schema::VERSION
    )]
    TooNew {
        /// The file.
        path: PathBuf,
        /// The version it has.
        found: u32,
    },
    /// No run fits the name.
    #[error("the history has no run `{id}`; `warpt benchmark history` lists them")]
    NoSuchRun {
        /// What the user wrote.
        id: String,
    },
    /// Several runs fit the name.
    #[error("several runs begin with `{id}`: {}", matches.join(", "))]
    Ambiguous {
        /// What the user wrote.
        id: String,
        /// Some of the runs.
        matches: Vec<String>,
    },
    /// A run in the history cannot be read.
    #[error(transparent)]
    Record(#[from] RecordError),
}

/// An open history.
#[derive(Debug)]
pub struct History {
    connection: Connection,
    path: PathBuf,
}

impl History {
    /// Where the history is by default: `warpt/history.sqlite` under the XDG data directory.
    ///
    /// # Errors
    /// If the environment names no data directory.
    pub fn default_path() -> Result<PathBuf, HistoryError> {
        let absolute = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let data = absolute("XDG_DATA_HOME").or_else(|| Some(absolute("HOME")?.join(".local/share")));
        Ok(data.ok_or(HistoryError::NoPlace)?.join("warpt/history.sqlite"))
    }

    /// Opens the history at its default place, making it if there is none.
    ///
    /// # Errors
    /// If it cannot be made, read or written, or a newer program wrote it.
    pub fn open_default() -> Result<Self, HistoryError> {
        Self::open(&Self::default_path()?)
    }

    /// Opens a history, making it if there is none.
    ///
    /// # Errors
    /// If it cannot be made, read or written, or a newer program wrote it.
    pub fn open(path: &Path) -> Result<Self, HistoryError> {
        let unusable = |reason: String| HistoryError::Unusable { path: path.to_owned(), reason };
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)
                .map_err(|error| unusable(format!("cannot make {}: {error}", folder.display())))?;
        }
        let connection = Connection::open(path).map_err(|error| unusable(error.to_string()))?;
        Self::prepared(connection, path)
    }

    fn prepared(mut connection: Connection, path: &Path) -> Result<Self, HistoryError> {
        match schema::prepare(&mut connection) {
            Ok(found) if found > schema::VERSION => {
                Err(HistoryError::TooNew { path: path.to_owned(), found })
            }
            Ok(_) => Ok(Self { connection, path: path.to_owned() }),
            Err(error) => Err(HistoryError::Unusable { path: path.to_owned(), reason: error.to_string() }),
        }
    }

    /// Opens the history at its default place for reading. Where there is none, it is empty and none is made.
    ///
    /// # Errors
    /// If it cannot be read, or a newer program wrote it.
    pub fn read_default() -> Result<Self, HistoryError> {
        Self::read(&Self::default_path()?)
    }

    /// Opens a history for reading. Where there is none, it is empty and none is made.
    ///
    /// # Errors
    /// If it cannot be read, or a newer program wrote it.
    pub fn read(path: &Path) -> Result<Self, HistoryError> {
        let unusable = |error: rusqlite::Error| HistoryError::Unusable {
            path: path.to_owned(),
            reason: error.to_string(),
        };
        // Not read-only: what a killed program left half-way has to be rolled back.
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = if path.exists() {
            Connection::open_with_flags(path, flags)
        } else {
            Connection::open_in_memory()
        };
        Self::prepared(connection.map_err(unusable)?, path)
    }

    /// Keeps a run; one of the same id is replaced, so a run can be kept again as it grows.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn save(&mut self, run: &BenchmarkSuiteRun) -> Result<(), HistoryError> {
        let record = serde_json::to_string(run).map_err(|error| self.unusable(&error))?;
        let result = save(&mut self.connection, run, &record);
        result.map_err(|error| self.unusable(&error))
    }

    /// The run of an id, of the unambiguous beginning of one, or of `latest`, `latest~1`, `latest~2`, …
    ///
    /// # Errors
    /// If none or several fit, or the run cannot be read.
    pub fn load(&self, id: &str) -> Result<BenchmarkSuiteRun, HistoryError> {
        let id = self.resolve(id)?;
        let text: String = self
            .connection
            .query_row("SELECT record FROM runs WHERE id = ?1", [&id], |row| row.get(0))
            .map_err(|error| self.unusable(&error))?;
        Ok(read_str(&text, &format!("history run {id}"))?)
    }

    fn resolve(&self, id: &str) -> Result<String, HistoryError> {
        let none = || HistoryError::NoSuchRun { id: id.to_owned() };
        if let Some(back) = id.strip_prefix("latest") {
            let back: u32 = match back.strip_prefix('~') {
                Some(count) => count.parse().map_err(|_| none())?,
                None if back.is_empty() => 0,
                None => return Err(none()),
            };
            let query = "SELECT id FROM runs ORDER BY started DESC, id DESC LIMIT 1 OFFSET ?1";
            let found = self.connection.query_row(query, [back], |row| row.get(0)).optional();
            return found.map_err(|error| self.unusable(&error))?.ok_or_else(none);
        }
        let query = "SELECT id FROM runs WHERE substr(id, 1, length(?1)) = ?1 ORDER BY id LIMIT 5";
        let mut matches: Vec<String> = self.rows(query, [id], |row| row.get(0))?;
        match matches.len() {
            0 => Err(none()),
            1 => Ok(matches.remove(0)),
            _ if matches[0] == id => Ok(matches.remove(0)),
            _ => Err(HistoryError::Ambiguous { id: id.to_owned(), matches }),
        }
    }

    fn rows<T>(
        &self,
        query: &str,
        params: impl rusqlite::Params,
        row: impl FnMut(&rusqlite::Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>, HistoryError> {
        let result = self.connection.prepare(query).and_then(|mut statement| {
            let rows = statement.query_map(params, row)?;
            rows.collect()
        });
        result.map_err(|error| self.unusable(&error))
    }

    fn unusable(&self, reason: &dyn std::fmt::Display) -> HistoryError {
        HistoryError::Unusable { path: self.path.clone(), reason: reason.to_string() }
    }
}

fn save(connection: &mut Connection, run: &BenchmarkSuiteRun, record: &str) -> rusqlite::Result<()> {
    let started =
        run.benchmarks.iter().map(|result| result.start_time).min().unwrap_or_else(jiff::Timestamp::now);
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    transaction.execute(
        "INSERT OR REPLACE INTO runs (id, started, suite, tool_version, record) VALUES (?1, ?2, ?3, ?4, ?5)",
        params![run.run_id, schema::sortable(started), run.suite, run.tool_version, record],
    )?;
    transaction.execute("DELETE FROM metrics WHERE run_id = ?1", [&run.run_id])?;
    let mut insert = transaction.prepare(
        "INSERT INTO metrics (run_id, benchmark, name, tags, value, unit, ci_low, ci_high)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
    )?;
    for result in &run.benchmarks {
        for metric in &result.metrics {
            let interval = metric.statistics.as_ref().and_then(|statistics| statistics.spread.interval());
            insert.execute(params![
                run.run_id,
                result.spec.id.name,
                metric.name,
                query::tags_text(metric.tags.as_ref()),
                metric.value,
                metric.unit,
                interval.map(|interval| interval.low),
                interval.map(|interval| interval.high),
            ])?;
        }
    }
    drop(insert);
    transaction.commit()
}

#[cfg(test)]
mod tests;
