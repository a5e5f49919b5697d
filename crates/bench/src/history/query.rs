//! Looking at earlier runs: the list of them, and one metric over time.

use super::{History, HistoryError};
use crate::record::Tags;

/// A run in the list of runs.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Entry {
    /// The run's id.
    pub run_id: String,
    /// When it began.
    pub start_time: String,
    /// The suite, the components or the benchmarks that were asked for.
    pub suite: String,
    /// The suites that the benchmarks are of.
    pub suites: Vec<String>,
    /// The version of `warpt` that made it.
    pub tool_version: String,
    /// The benchmarks that produced metrics.
    pub benchmarks: Vec<String>,
    /// Metrics kept.
    pub metric_count: u32,
}

/// One metric of one run.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct TrendPoint {
    /// The run's id.
    pub run_id: String,
    /// When it began.
    pub start_time: String,
    /// The metric's value.
    pub value: f64,
    /// The metric's unit.
    pub unit: String,
    /// Lower end of its interval.
    pub ci_low: Option<f64>,
    /// Upper end of its interval.
    pub ci_high: Option<f64>,
}

impl History {
    /// The newest runs, newest first.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn list(&self, limit: usize) -> Result<Vec<Entry>, HistoryError> {
        let query = "SELECT id, started, suite, tool_version, count(metrics.run_id),
                            coalesce(group_concat(DISTINCT metrics.benchmark), ''),
                            CASE WHEN json_valid(record) THEN
                                (SELECT group_concat(DISTINCT json_extract(value, '$.spec.id.suite'))
                                 FROM json_each(record, '$.benchmarks'))
                            END
                     FROM runs LEFT JOIN metrics ON metrics.run_id = runs.id
                     GROUP BY runs.id ORDER BY started DESC, id DESC LIMIT ?1";
        self.rows(query, [i64::try_from(limit).unwrap_or(i64::MAX)], |row| {
            let several =
                |text: String| text.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect();
            Ok(Entry {
                run_id: row.get(0)?,
                start_time: row.get(1)?,
                suite: row.get(2)?,
                tool_version: row.get(3)?,
                metric_count: row.get(4)?,
                benchmarks: several(row.get(5)?),
                suites: several(row.get::<_, Option<String>>(6)?.unwrap_or_default()),
            })
        })
    }

    /// The names of the metrics that the history has of a benchmark, each with its tags as text.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn metric_names(&self, benchmark: &str) -> Result<Vec<(String, String)>, HistoryError> {
        let query = "SELECT DISTINCT name, tags FROM metrics WHERE benchmark = ?1 ORDER BY name, tags";
        self.rows(query, [benchmark], |row| Ok((row.get(0)?, row.get(1)?)))
    }

    /// One metric over the newest runs that have it, oldest first. `tags` is the text that [`Self::metric_names`] returned.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn trend(
        &self,
        benchmark: &str,
        (name, tags): (&str, &str),
        limit: usize,
    ) -> Result<Vec<TrendPoint>, HistoryError> {
        let query = "SELECT id, started, value, unit, ci_low, ci_high
                     FROM metrics JOIN runs ON runs.id = metrics.run_id
                     WHERE benchmark = ?1 AND name = ?2 AND tags = ?3
                     ORDER BY started DESC, id DESC LIMIT ?4";
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let mut points = self.rows(query, rusqlite::params![benchmark, name, tags, limit], |row| {
            Ok(TrendPoint {
                run_id: row.get(0)?,
                start_time: row.get(1)?,
                value: row.get(2)?,
                unit: row.get(3)?,
                ci_low: row.get(4)?,
                ci_high: row.get(5)?,
            })
        })?;
        points.reverse();
        Ok(points)
    }
}

/// Tags as one text: `name=value` joined by commas, in the order of the names.
pub(super) fn tags_text(tags: Option<&Tags>) -> String {
    let tags = tags.into_iter().flatten();
    tags.map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(",")
}
