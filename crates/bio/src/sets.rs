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
    /// The licence that the package is under.
    pub licence: &'static str,
    /// The SHA-256 of the file.
    pub sha256: &'static str,
}

/// Every data set.
pub const SETS: &[DataSet] = &[
    DataSet {
        name: "chr20",
        package: "vt-examples",
        file: "usr/share/doc/vt/examples/ref/20.fa.gz",
        what: "human chromosome 20, 63,025,520 bases",
        licence: "MIT",
        sha256: "83c80b3fb23822ff0a66f26306e46f5db3c83d48fcff68bcddc353a3d8ef581b",
    },
    DataSet {
        name: "ecoli",
        package: "ragout-examples",
        file: "usr/share/doc/ragout/examples/E.Coli/references/MG1655-K12.fasta.gz",
        what: "Escherichia coli K-12 MG1655, 4,639,675 bases",
        licence: "BSD-3-Clause",
        sha256: "ae952b2873ef8badc956925a61c5b536d4e40322b4e8b15dde3d8eda7ce3c879",
    },
    DataSet {
        name: "lambda",
        package: "bowtie2-examples",
        file: "usr/share/doc/bowtie2/examples/reference/lambda_virus.fa.gz",
        what: "bacteriophage lambda, 48,502 bases",
        licence: "GPL-3.0-or-later",
        sha256: "08fe207fcb4bbe47e80cc7469e68d1f1d8d497a836fe1c09f5a9734d2e4cd9e0",
    },
    DataSet {
        name: "plasmid",
        package: "python-biopython-doc",
        file: "usr/share/doc/python-biopython-doc/Tests/GenBank/NC_005816.fna.gz",
        what: "plasmid pPCP1 of Yersinia pestis, 9,609 bases, circular",
        licence: "Biopython License Agreement",
        sha256: "0d930392ba976a8fe2c8ed01cfd148e0755e2bdcf9472be02138cd524e3672b7",
    },
    DataSet {
        name: "proteins",
        package: "mmseqs2-examples",
        file: "usr/share/doc/mmseqs2/example-data/DB.fasta.gz",
        what: "20,000 proteins",
        licence: "GPL-3.0",
        sha256: "92a65aa435f5d3e0f33eb47d87910fe7fc6033a28bf4ed1367094377d791d567",
    },
    DataSet {
        name: "protein-queries",
        package: "mmseqs2-examples",
        file: "usr/share/doc/mmseqs2/example-data/QUERY.fasta.gz",
        what: "500 protein queries",
        licence: "GPL-3.0",
        sha256: "a754e5ba84348d8c3a98c11c468c8c63a3a7a8d3557ac0be42f439d01d78334d",
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

/// The data set that a file is of, by where it lies.
#[must_use]
pub fn of_file(path: &Path) -> Option<&'static DataSet> {
    SETS.iter().find(|set| path.ends_with(set.file))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_data_sets_are_known() {
        for set in SETS {
            assert_eq!(of_file(&folder().join(set.package).join(set.file)), Some(set));
            assert_eq!((set.sha256.len(), set.licence.is_empty()), (64, false), "{}", set.name);
        }
        assert_eq!(of_file(Path::new("20.fa.gz")), None);
    }

    #[test]
    fn what_is_not_there_is_named() {
        let error = locate("no-such-set").unwrap_err();
        assert!(error.contains("no-such-set"), "{error}");
    }
}
