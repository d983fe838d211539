//! Bundles: a program and plugins in one file (`.mcpb`) that clients install.
//!
//! Bundles are reproducible: the same inputs produce the same bytes. A bundle contains no secrets
//! and no directories; the client asks the user who installs it for them.

mod archive;
mod contents;
mod manifest;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use cofferdam_engine::Engine;
use cofferdam_tool::ToolSource;

use self::contents::BundleContents;
use super::serve_command::check;
use crate::compose::{self, HostPlan, ToolsetParts};
use crate::config::edit::replace_file;
use crate::error::Context as _;
use crate::toolsets::KnownTools;
use crate::{Operator, Result, Selection, loading, servers};

/// Description of a bundle.
#[derive(Debug, Clone)]
pub struct BundleOptions {
    /// Executable that the client starts.
    pub program: PathBuf,
    /// Name of the server.
    pub name: String,
    /// Version.
    pub version: String,
    /// Description in one sentence; by default the names of the tools.
    pub description: Option<String>,
    /// Author; by default the name of the bundle.
    pub author: Option<String>,
    /// Additional flags for `serve`.
    pub flags: Vec<String>,
}

/// A bundle in memory.
pub struct Bundle {
    bytes: Vec<u8>,
    tools: usize,
}

impl Bundle {
    /// Platform of bundles that this program packs, in the terms of the format.
    pub const PLATFORM: &'static str = manifest::PLATFORM;

    /// Packs the program and the plugins of the selection. Loads the plugins to check that they
    /// work.
    ///
    /// # Errors
    /// Returns an error if the selection depends on this machine, a plugin does not load, or a file
    /// cannot be read.
    pub async fn pack(
        engine: &Engine,
        selection: &Selection,
        options: &BundleOptions,
        operator: &Operator,
    ) -> Result<Self> {
        let mut contents = match &selection.config {
            Some(config) => BundleContents::of_config(config, selection)?,
            None => BundleContents::of_files(selection)?,
        };
        let HostPlan { config, specs, files, .. } = check(selection)?;
        let config = config.as_ref();
        let (mut plugins, mut parts) = (Vec::new(), ToolsetParts::default());
        for spec in specs {
            let (path, options) = (spec.path.clone(), spec.options.clone());
            let plugin = Arc::new(loading::load_file(engine, path, options, operator).await?);
            parts.plugins.push(spec.source(&plugin));
            plugins.push(plugin);
        }
        parts.others.extend(files.map(|tools| tools as Arc<dyn ToolSource>));
        contents.pin(&plugins)?;
        let toolset = compose::toolset(parts, operator)?;
        let known = KnownTools {
            config,
            toolset: &toolset,
            is_complete: !config.is_some_and(servers::are_named),
        };
        let toolset = known.restrict(selection)?;
        let tools: Vec<_> = toolset.definitions().cloned().collect();
        let program = &options.program;
        let program = std::fs::read(program)
            .with_context(|| format!("{} cannot be read", program.display()))?;
        let manifest = manifest::manifest(options, &contents, &tools)?;
        let bytes = archive::zip(&manifest, &program, &contents.files).map_err(|error| {
            crate::Error::failed(format!("the bundle cannot be packed: {error}"))
        })?;
        Ok(Self { bytes, tools: tools.len() })
    }

    /// Writes the bundle atomically.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written.
    pub fn write(&self, path: &Path) -> Result<()> {
        replace_file(path, &self.bytes)
            .with_context(|| format!("{} cannot be written", path.display()))
    }

    /// Returns the number of tools in the bundle.
    #[must_use]
    pub fn tools(&self) -> usize {
        self.tools
    }

    /// Returns the size of the bundle in bytes.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.bytes.len() as u64
    }
}
