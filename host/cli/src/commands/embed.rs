//! `cofferdam embed`: embeds a manifest in a component.

use std::path::Path;

use cofferdam_engine::manifest::{MANIFEST_BYTES_MAX, embed_manifest};
use cofferdam_engine::screen::ScreenLimits;
use cofferdam_files::{read_named_ambient, read_named_text_ambient};

use crate::args::EmbedArgs;
use crate::exit::{Exit, UsageError};
use crate::print;
use cofferdam::config::edit::replace_file;

pub(crate) fn run(args: &EmbedArgs) -> anyhow::Result<Exit> {
    let (component, manifest) = (args.component.display(), args.manifest.display());
    let bytes = read_component(&args.component)?;
    let text = read_manifest(&args.manifest)?;
    let with = embed_manifest(&bytes, &text)
        .map_err(|error| UsageError(format!("{component}: {error}")))?;
    let output = args.output.as_ref().unwrap_or(&args.component);
    replace_file(output, &with)
        .map_err(|error| UsageError(format!("{} cannot be written: {error}", output.display())))?;
    print::note(&format!(
        "{} holds {manifest} ({})",
        output.display(),
        print::bytes(with.len() as u64)
    ));
    Ok(Exit::Ok)
}

/// Reads a component or module, up to the size that the engine accepts.
pub(super) fn read_component(path: &Path) -> Result<Vec<u8>, UsageError> {
    read_named_ambient(path, ScreenLimits::default().component_bytes_max)
        .map_err(|error| UsageError(format!("{} cannot be read: {error}", path.display())))
}

/// Reads a manifest, or a part of one.
pub(super) fn read_manifest(path: &Path) -> Result<String, UsageError> {
    read_named_text_ambient(path, MANIFEST_BYTES_MAX)
        .map_err(|error| UsageError(format!("{} cannot be read: {error}", path.display())))
}
