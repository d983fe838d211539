//! `cofferdam wrap`: makes a plugin of a program for WASI.

use std::path::{Path, PathBuf};

use cofferdam::Error;
use cofferdam::compose::{self, ComponentReport};
use cofferdam_author::CommandTool;
use cofferdam_engine::LoadError;
use cofferdam_engine::manifest::{EmbedError, ManifestError, embed_manifest};
use cofferdam_tool::declaration::review;
use serde_json::json;

use super::embed::{read_component, read_manifest};
use crate::args::{Global, WrapArgs};
use crate::exit::{Exit, UsageError};
use crate::{host, print, rebuild};

/// Directory of the plugin, as of one that `cofferdam build` makes.
const DIRECTORY: &str = "dist";

pub(crate) async fn run(global: &Global, args: &WrapArgs) -> anyhow::Result<Exit> {
    let shown = args.program.display();
    let unusable = |error: &dyn std::fmt::Display| UsageError(format!("{shown}: {error}"));
    let program = read_component(&args.program)?;
    let manifest = manifest(args)?;
    let component = cofferdam_author::wrap(&program).map_err(|error| unusable(&error))?;
    let component = embed_manifest(&component, &manifest).map_err(|error| match error {
        EmbedError::Manifest(error) => invalid_manifest(args, &error),
        error => unusable(&error),
    })?;
    let output = output(args)?;
    let engine = host::engine(global)?;
    // Checked before it is written, so that a plugin that was there before stays if this one fails.
    let examined =
        compose::examine_bytes(&engine, &output, component.clone(), &host::operator()).await;
    let ComponentReport { info, declarations, .. } = match examined {
        Err(Error::Plugin(error)) => match error.cause() {
            LoadError::Manifest(error) => return Err(invalid_manifest(args, error).into()),
            _ => return Err(Error::Plugin(error).into()),
        },
        examined => examined?,
    };
    let review = review(&declarations);
    if let Some(refusal) = review.refusals.first() {
        return Err(unusable(refusal).into());
    }
    rebuild::write_component(&output, &component)?;
    let tools: Vec<_> = declarations.iter().map(|tool| tool.name.as_str()).collect();
    if args.json {
        let line = json!({
            "component": output,
            "bytes": info.component_bytes,
            "digest": info.identity.digest,
            "tools": tools,
        });
        print::result(&line.to_string())?;
    } else {
        let size = print::bytes(info.component_bytes);
        let tools = format!("{}: {}", print::counted(tools.len(), "tool"), tools.join(", "));
        print::result(&format!("{}  {size}\n{tools}", output.display()))?;
    }
    Ok(Exit::Ok)
}

/// Returns the manifest that was named, or one for the tool that the flags describe.
fn manifest(args: &WrapArgs) -> anyhow::Result<String> {
    if let Some(path) = &args.manifest {
        return Ok(read_manifest(path)?);
    }
    let schema = args.schema.clone().unwrap_or_default();
    let schema = match schema.strip_prefix('@') {
        Some(path) => read_manifest(Path::new(path))?,
        None => schema,
    };
    let has_line = !args.arguments.is_empty();
    let tool = CommandTool {
        name: args.name.clone().unwrap_or_default(),
        description: args.description.clone().unwrap_or_default(),
        schema,
        arguments: has_line.then(|| args.arguments.clone()),
        stdin: args.stdin.clone(),
        prints_json: args.json_output,
    };
    Ok(tool.manifest())
}

/// Returns an error for a manifest that breaks a rule, as an error of what the user has written.
fn invalid_manifest(args: &WrapArgs, error: &ManifestError) -> UsageError {
    UsageError(match &args.manifest {
        Some(path) => format!("{}:{error}", path.display()),
        None => format!("the flags describe no tool: {}", error.message),
    })
}

/// Returns the file to write.
fn output(args: &WrapArgs) -> Result<PathBuf, UsageError> {
    if let Some(output) = &args.output {
        return Ok(output.clone());
    }
    let name = args.program.file_name().unwrap_or_default();
    let output = Path::new(DIRECTORY).join(name);
    if output == args.program {
        let message = "the program is where the plugin would be written; say where with --output";
        return Err(UsageError(message.to_owned()));
    }
    Ok(output)
}
