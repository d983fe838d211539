//! `cofferdam embed`: puts a manifest into a component.

use anyhow::Context;
use cofferdam_engine::embed_manifest;

use crate::args::EmbedArgs;
use crate::exit::{Exit, UsageError};
use crate::policy_file::replace_file;
use crate::print;

pub(crate) fn run(args: &EmbedArgs) -> anyhow::Result<Exit> {
    let (component, manifest) = (args.component.display(), args.manifest.display());
    let bytes = std::fs::read(&args.component).with_context(|| format!("{component} cannot be read"))?;
    let text =
        std::fs::read_to_string(&args.manifest).with_context(|| format!("{manifest} cannot be read"))?;
    let with = embed_manifest(&bytes, &text).map_err(|error| UsageError(format!("{component}: {error}")))?;
    let output = args.output.as_ref().unwrap_or(&args.component);
    replace_file(output, &with).with_context(|| format!("{} cannot be written", output.display()))?;
    print::note(&format!("{} holds {manifest} ({})", output.display(), print::bytes(with.len() as u64)));
    Ok(Exit::Ok)
}
