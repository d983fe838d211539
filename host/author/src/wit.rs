//! The plugin interface in WIT, with the parts of WASI that SDKs use, for toolchains that read it.

use std::collections::BTreeSet;
use std::fmt::{Display, Write};
use std::fs;
use std::path::{Path, PathBuf};

use wit_parser::{Resolve, SourceMap, WorldId};

use crate::{BuildError, packed};

/// File of the package that contains the world. Every other file contains one interface.
const WORLD: &str = "world.wit";

/// Interface that a plugin can import through its SDK.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ImportedInterface {
    Call,
    Client,
    Errors,
    Files,
    /// Requests over HTTP: the only interface of WASI here.
    Http,
    Secrets,
    ToolCalls,
    Toolbox,
}

impl ImportedInterface {
    pub(crate) const ALL: [Self; 8] = [
        Self::Call,
        Self::Client,
        Self::Errors,
        Self::Files,
        Self::Http,
        Self::Secrets,
        Self::ToolCalls,
        Self::Toolbox,
    ];

    /// Returns the name of the interface in the SDKs.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Call => "call",
            Self::Client => "client",
            Self::Errors => "errors",
            Self::Files => "files",
            Self::Http => "http",
            Self::Secrets => "secrets",
            Self::ToolCalls => "tool-calls",
            Self::Toolbox => "toolbox",
        }
    }

    /// Returns the name by which the world of a plugin imports the interface.
    const fn import(self) -> &'static str {
        match self {
            Self::Http => "wasi:http/outgoing-handler@0.2.12",
            // In the package of the world, an interface is imported by its own name.
            other => other.name(),
        }
    }
}

/// Writes the package into `wit` below `directory`, with a world `plugin` that imports only `uses`.
/// Some toolchains import everything in a world, and users read the imports of a component as its
/// capabilities.
pub(crate) fn write(
    directory: &Path,
    uses: &BTreeSet<ImportedInterface>,
) -> Result<PathBuf, BuildError> {
    let folder = directory.join("wit");
    fs::create_dir_all(&folder).map_err(|error| BuildError::write(&folder, error))?;
    let world = world_text(uses.iter().copied());
    for (name, text) in interfaces() {
        write_changed(&folder.join(name), text)?;
    }
    write_changed(&folder.join(WORLD), world.as_bytes())?;
    if uses.contains(&ImportedInterface::Http) {
        let dependencies = folder.join("deps");
        fs::create_dir_all(&dependencies)
            .map_err(|error| BuildError::write(&dependencies, error))?;
        for (name, text) in packed::WASI {
            write_changed(&dependencies.join(name), text)?;
        }
    }
    Ok(folder)
}

/// Parses the world of all plugins.
pub(crate) fn world() -> Result<(Resolve, WorldId), BuildError> {
    let failed =
        |error: &dyn Display| BuildError::Component(format!("the plugin interface: {error}"));
    let parse = |files: &[(&str, &[u8])]| {
        let mut sources = SourceMap::new();
        for (name, text) in files {
            sources.push_str(name, std::str::from_utf8(text).map_err(|error| failed(&error))?);
        }
        sources.parse().map_err(|(_, error)| failed(&error))
    };
    let text = world_text(ImportedInterface::ALL);
    let mut files: Vec<_> = interfaces().collect();
    files.push((WORLD, text.as_bytes()));
    let dependencies = packed::WASI
        .iter()
        .map(|file| parse(std::slice::from_ref(file)))
        .collect::<Result<_, _>>()?;
    let mut resolve = Resolve::default();
    let package =
        resolve.push_groups(parse(&files)?, dependencies).map_err(|error| failed(&error))?;
    let world = resolve.select_world(&[package], Some("plugin")).map_err(|error| failed(&error))?;
    Ok((resolve, world))
}

/// Returns the files of the package with one interface each.
fn interfaces() -> impl Iterator<Item = (&'static str, &'static [u8])> {
    packed::WIT.iter().copied().filter(|(name, _)| name.ends_with(".wit") && *name != WORLD)
}

/// Returns the file with a world `plugin` that imports only `uses`.
fn world_text(uses: impl IntoIterator<Item = ImportedInterface>) -> String {
    let mut world = "package cofferdam:plugin@0.1.0;\n\nworld plugin {\n".to_owned();
    for interface in uses {
        // Writing to a String cannot fail.
        let _ = writeln!(world, "  import {};", interface.import());
    }
    world.push_str("  export tools;\n}\n");
    world
}

/// Writes a file unless it is unchanged, because toolchains compare modification times.
fn write_changed(file: &Path, text: &[u8]) -> Result<(), BuildError> {
    if fs::read(file).is_ok_and(|there| there == text) {
        return Ok(());
    }
    fs::write(file, text).map_err(|error| BuildError::write(file, error))
}
