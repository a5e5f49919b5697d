//! The real data sets, by the Debian package that has each. `cargo xtask data` fetches them.

use std::path::{Path, PathBuf};

/// A data set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DataSet {
    /// Its name, as `--param data=NAME` takes it.
    pub name: &'static str,
    /// The Debian package.
    pub package: &'static str,
    /// The file within the package.
    pub file: &'static str,
    /// What it is.
    pub what: &'static str,
}

/// Every data set.
pub const SETS: &[DataSet] = &[
    DataSet {
        name: "chr20",
        package: "vt-examples",
        file: "usr/share/doc/vt/examples/ref/20.fa.gz",
        what: "human chromosome 20, 63,025,520 bases",
    },
    DataSet {
        name: "ecoli",
        package: "ragout-examples",
        file: "usr/share/doc/ragout/examples/E.Coli/references/MG1655-K12.fasta.gz",
        what: "Escherichia coli K-12 MG1655, 4,639,675 bases",
    },
    DataSet {
        name: "lambda",
        package: "bowtie2-examples",
        file: "usr/share/doc/bowtie2/examples/reference/lambda_virus.fa.gz",
        what: "bacteriophage lambda, 48,502 bases",
    },
    DataSet {
        name: "proteins",
        package: "mmseqs2-examples",
        file: "usr/share/doc/mmseqs2/example-data/DB.fasta.gz",
        what: "20,000 proteins",
    },
    DataSet {
        name: "protein-queries",
        package: "mmseqs2-examples",
        file: "usr/share/doc/mmseqs2/example-data/QUERY.fasta.gz",
        what: "500 protein queries",
    },
];

/// The folder that data sets are unpacked to: `WARPFORGE_DATA`, or `target/data` below the working directory.
#[must_use]
pub fn folder() -> PathBuf {
    std::env::var_os("WARPFORGE_DATA").map_or_else(|| PathBuf::from("target/data"), PathBuf::from)
}

/// The file that a `data` parameter means: a data set's name, or a path.
///
/// # Errors
/// Where it would be and how to get it, if it is not there.
pub fn locate(data: &str) -> Result<PathBuf, String> {
    if let Some(set) = SETS.iter().find(|set| set.name == data) {
        let places = [folder().join(set.package).join(set.file), Path::new("/").join(set.file)];
        return places.iter().find(|path| path.is_file()).cloned().ok_or_else(|| {
            format!(
                "data set `{data}` is not at {}; `cargo xtask data {data}` fetches it from the Debian package {}, or \
                 set WARPFORGE_DATA to where it is",
                places[0].display(),
                set.package
            )
        });
    }
    let path = PathBuf::from(data);
    if path.is_file() {
        return Ok(path);
    }
    let names: Vec<&str> = SETS.iter().map(|set| set.name).collect();
    Err(format!("`{data}` is neither a file nor one of the data sets: {}", names.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_there_is_named() {
        let error = locate("no-such-set").unwrap_err();
        assert!(error.contains("no-such-set"), "{error}");
    }
}
