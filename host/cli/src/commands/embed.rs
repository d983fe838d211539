//! `cofferdam embed`: embeds a manifest in a component.

use anyhow::Context;
use cofferdam_engine::manifest::{MANIFEST_BYTES_MAX, embed_manifest};
use cofferdam_engine::screen::ScreenLimits;
use cofferdam_files::{read_named_ambient, read_named_text_ambient};

use crate::args::EmbedArgs;
use crate::exit::{Exit, UsageError};
use crate::print;
use cofferdam::config::edit::replace_file;

pub(crate) fn run(args: &EmbedArgs) -> anyhow::Result<Exit> {
    let (component, manifest) = (args.component.display(), args.manifest.display());
    let bytes = read_named_ambient(&args.component, ScreenLimits::default().component_bytes_max);
    let bytes =
        bytes.map_err(|error| UsageError(format!("{component} cannot be read: {error}")))?;
    let text = read_named_text_ambient(&args.manifest, MANIFEST_BYTES_MAX);
    let text = text.map_err(|error| UsageError(format!("{manifest} cannot be read: {error}")))?;
    let with = embed_manifest(&bytes, &text)
        .map_err(|error| UsageError(format!("{component}: {error}")))?;
    let output = args.output.as_ref().unwrap_or(&args.component);
    replace_file(output, &with)
        .with_context(|| format!("{} cannot be written", output.display()))?;
    print::note(&format!(
        "{} holds {manifest} ({})",
        output.display(),
        print::bytes(with.len() as u64)
    ));
    Ok(Exit::Ok)
}
