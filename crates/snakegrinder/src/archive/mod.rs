//! The `.pt2` archive: a zip with the graph as JSON and each weight as it lies in memory.
//!
//! No member is unpickled. Weights and constants that PyTorch pickled (tensor subclasses, custom objects) are refused by
//! name; the sample inputs are pickled and not read at all.

mod payload;
mod zip;

use std::collections::BTreeMap;
use std::path::Path;

pub(crate) use payload::Payload;
use serde::de::DeserializeOwned;
use warpforge_tensor::Blob;
use warpforge_tensor::io::map_file;

use self::zip::{Directory, Member};
use crate::Error;
use crate::graph::schema::ExportedProgram;

/// The major version of the export schema that is read.
pub const SCHEMA_MAJOR: i64 = 8;

/// The version of the archive layout that is read.
const ARCHIVE_VERSION: &str = "0";

/// An exported program: the graph, and its weights where they lie in the file.
#[derive(Debug)]
pub struct Archive {
    pub(crate) program: ExportedProgram,
    pub(crate) weights: BTreeMap<String, Payload>,
    pub(crate) constants: BTreeMap<String, Payload>,
    container: Container,
}

impl Archive {
    /// Opens an archive and reads its graph. Weights stay where they are.
    ///
    /// # Errors
    ///
    /// When the file cannot be mapped, is not an archive of `torch.export.save`, or is of a version not known here.
    pub fn open(path: &Path) -> Result<Self, Error> {
        Self::from_blob(map_file(path)?)
    }

    /// Reads an archive that is in memory.
    ///
    /// # Errors
    ///
    /// As [`Archive::open`].
    pub fn from_blob(file: Blob) -> Result<Self, Error> {
        let container = Container::read(file)?;
        let model = container.model_name()?;
        let program = read_program(&container, &format!("models/{model}.json"))?;
        let weights = payload::read(&container, &model, &payload::WEIGHTS)?;
        let constants = payload::read(&container, &model, &payload::CONSTANTS)?;
        Ok(Self { program, weights, constants, container })
    }

    /// The version of PyTorch that wrote the archive.
    pub fn torch_version(&self) -> &str {
        &self.program.torch_version
    }

    /// Whether there is a member of this name.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.container.member(name).is_some()
    }

    /// A member that is JSON.
    pub(crate) fn json<T: DeserializeOwned>(&self, name: &str) -> Result<T, Error> {
        self.container.json(name)
    }

    /// Holds every member against its checksum, the weights included: reads the whole file.
    ///
    /// # Errors
    ///
    /// When a member's bytes are not those that were written.
    pub fn verify_checksums(&self) -> Result<(), Error> {
        self.container
            .directory
            .members()
            .iter()
            .try_for_each(|member| self.container.checked(member).map(drop))
    }
}

/// Reads the schema version first, so that a graph of a newer schema is refused by its version and not by the first
/// field that is new.
fn read_program(container: &Container, entry: &str) -> Result<ExportedProgram, Error> {
    #[derive(serde::Deserialize)]
    struct Head {
        schema_version: crate::graph::schema::SchemaVersion,
    }
    let head: Head = container.json(entry)?;
    let found = head.schema_version;
    if found.major != SCHEMA_MAJOR {
        return Err(Error::Version {
            what: "export schema",
            found: format!("{}.{}", found.major, found.minor),
            supported: format!("{SCHEMA_MAJOR}.x (torch 2.11 and later)"),
        });
    }
    container.json(entry)
}

/// The members of the archive below its root folder.
#[derive(Debug)]
pub(crate) struct Container {
    file: Blob,
    directory: Directory,
    root: String,
}

impl Container {
    fn read(file: Blob) -> Result<Self, Error> {
        let directory = Directory::read(&file)?;
        let root = common_root(&directory)?;
        let container = Self { file, directory, root };
        let format = container.text("archive_format", "it was not written by `torch.export.save`")?;
        if format != "pt2" {
            return Err(
                container.wrong("archive_format", &format!("`{}` where `pt2` must be", short(format)))
            );
        }
        let version = container.text("archive_version", "it was not written by `torch.export.save`")?;
        if version != ARCHIVE_VERSION {
            return Err(Error::Version {
                what: "archive version",
                found: short(version),
                supported: ARCHIVE_VERSION.to_owned(),
            });
        }
        if container.member("byteorder").is_some() {
            let order = container.text("byteorder", "")?;
            if order != "little" {
                return Err(
                    container.wrong("byteorder", &format!("byte order `{}` is not read", short(order)))
                );
            }
        }
        Ok(container)
    }

    /// The name of the one model in the archive.
    fn model_name(&self) -> Result<String, Error> {
        let names: Vec<&str> = self
            .names()
            .filter_map(|name| name.strip_prefix("models/")?.strip_suffix(".json"))
            .filter(|name| !name.contains('/'))
            .collect();
        match names.as_slice() {
            [] => Err(Error::MissingEntry {
                entry: "models/model.json".to_owned(),
                hint: "it holds no exported program".to_owned(),
            }),
            [one] => Ok((*one).to_owned()),
            several if several.contains(&"model") => Ok("model".to_owned()),
            several => Err(Error::Graph(format!(
                "the archive holds several models ({}) and none is called `model`",
                several.join(", ")
            ))),
        }
    }

    fn names(&self) -> impl Iterator<Item = &str> {
        self.directory.members().iter().filter_map(|member| member.name.strip_prefix(&self.root))
    }

    pub(crate) fn member(&self, name: &str) -> Option<&Member> {
        self.directory.get(&format!("{}{name}", self.root))
    }

    fn required(&self, name: &str, hint: &str) -> Result<&Member, Error> {
        self.member(name).ok_or_else(|| Error::MissingEntry { entry: name.to_owned(), hint: hint.to_owned() })
    }

    /// The bytes of a member in place, not held against their checksum.
    pub(crate) fn blob(&self, member: &Member) -> Result<Blob, Error> {
        let bytes = self.file.slice(member.data.clone());
        bytes.ok_or_else(|| Error::Entry { entry: member.name.clone(), what: "outside the file".to_owned() })
    }

    /// The bytes of a member, held against their checksum.
    fn checked(&self, member: &Member) -> Result<Blob, Error> {
        let bytes = self.blob(member)?;
        let found = crc32fast::hash(&bytes);
        if found == member.crc {
            return Ok(bytes);
        }
        Err(Error::Entry {
            entry: member.name.clone(),
            what: format!("its checksum is {found:08x}, not {:08x}: the bytes were changed", member.crc),
        })
    }

    fn text(&self, name: &str, hint: &str) -> Result<&str, Error> {
        let member = self.required(name, hint)?;
        self.checked(member)?;
        let bytes = self.file.get(member.data.clone()).unwrap_or_default();
        let text = std::str::from_utf8(bytes).map_err(|_| self.wrong(name, "not UTF-8"))?;
        Ok(text.trim())
    }

    pub(crate) fn json<T: DeserializeOwned>(&self, name: &str) -> Result<T, Error> {
        let member = self.required(name, "the archive is incomplete")?;
        let bytes = self.checked(member)?;
        serde_json::from_slice(&bytes).map_err(|error| Error::Json {
            entry: member.name.clone(),
            line: error.line(),
            column: error.column(),
            what: without_position(&error.to_string()),
        })
    }

    fn wrong(&self, name: &str, what: &str) -> Error {
        Error::Entry { entry: format!("{}{name}", self.root), what: what.to_owned() }
    }
}

/// The folder that all members are in, with its `/`.
fn common_root(directory: &Directory) -> Result<String, Error> {
    let mut roots =
        directory.members().iter().map(|member| member.name.split_once('/').map(|(root, _)| root));
    let first = roots.next().flatten().ok_or_else(|| Error::Zip {
        what: "no folder with an exported program in it".to_owned(),
        offset: 0,
    })?;
    let stray = directory
        .members()
        .iter()
        .find(|member| member.name.split_once('/').is_none_or(|(root, _)| root != first));
    match stray {
        None => Ok(format!("{first}/")),
        Some(member) => Err(Error::Entry {
            entry: member.name.clone(),
            what: format!("outside the archive's folder `{first}/`"),
        }),
    }
}

/// The beginning of a text from the file, fit for a message.
fn short(text: &str) -> String {
    text.chars().take(40).flat_map(char::escape_default).collect()
}

fn without_position(message: &str) -> String {
    message.split(" at line ").next().unwrap_or(message).to_owned()
}
