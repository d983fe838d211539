//! The plugin interface in WIT, for toolchains that read it.

use std::collections::BTreeSet;
use std::fmt::{Display, Write};
use std::fs;
use std::path::{Path, PathBuf};

use wit_parser::{Resolve, SourceMap, WorldId};

use crate::{BuildError, packed};

/// File of the package that contains the world. Every other file contains one interface.
const WORLD: &str = "world.wit";

/// Interface of the package that a plugin can import.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ImportedInterface {
    Call,
    Client,
    Files,
    Secrets,
    Toolbox,
}

impl ImportedInterface {
    pub(crate) const ALL: [Self; 5] =
        [Self::Call, Self::Client, Self::Files, Self::Secrets, Self::Toolbox];

    /// Returns the name of the interface in WIT and in the SDKs.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Call => "call",
            Self::Client => "client",
            Self::Files => "files",
            Self::Secrets => "secrets",
            Self::Toolbox => "toolbox",
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
    let mut world = "package cofferdam:plugin@0.1.0;\n\nworld plugin {\n".to_owned();
    for interface in uses {
        // Writing to a String cannot fail.
        let _ = writeln!(world, "  import {};", interface.name());
    }
    world.push_str("  export tools;\n}\n");
    for (name, text) in packed::WIT.iter().filter(|(name, _)| name.ends_with(".wit")) {
        let text = if *name == WORLD { world.as_bytes() } else { text };
        let file = folder.join(name);
        // An unchanged file is not written, because toolchains compare modification times.
        if fs::read(&file).is_ok_and(|there| there == text) {
            continue;
        }
        fs::write(&file, text).map_err(|error| BuildError::write(&file, error))?;
    }
    Ok(folder)
}

/// Parses the world of all plugins.
pub(crate) fn world() -> Result<(Resolve, WorldId), BuildError> {
    let failed =
        |error: &dyn Display| BuildError::Component(format!("the plugin interface: {error}"));
    let mut files = SourceMap::new();
    for (name, text) in packed::WIT.iter().filter(|(name, _)| name.ends_with(".wit")) {
        files.push_str(name, std::str::from_utf8(text).map_err(|error| failed(&error))?);
    }
    let group = files.parse().map_err(|(_, error)| failed(&error))?;
    let mut resolve = Resolve::default();
    let package = resolve.push_group(group).map_err(|error| failed(&error))?;
    let world = resolve.select_world(&[package], Some("plugin")).map_err(|error| failed(&error))?;
    Ok((resolve, world))
}
