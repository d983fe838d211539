//! Commands as tools: a component that exports `wasi:cli/run`, and a manifest that declares its
//! tools.
//!
//! Every language that makes programs for WASI can write such a plugin, and programs that were
//! written for something else become tools without a change. The manifest says how a call's
//! arguments reach the program, as command line or on standard input, and whether its standard
//! output is text or JSON. A call is one run of the program in a fresh instance, within the same
//! grants and limits as any other.
//!
//! * Standard output is the result. It is captured up to the limit of results; more ends the call
//!   as `OutputLimit` while the program writes it.
//! * An exit code other than 0 is a failure with the end of standard error.

mod template;

use std::collections::BTreeMap;

use cofferdam_tool::declaration::Declaration;
use cofferdam_tool::output::parse_json;
use cofferdam_tool::{ErrorType, Outcome, Output, ToolError, ToolFailure};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use wasmtime::component::Component;
use wasmtime_wasi::p2::bindings::{Command, CommandPre};

use self::template::Template;
use crate::LoadError;
use crate::host_api::{CallState, CapturedOutput, CommandStreams};
use crate::manifest::{Manifest, ManifestError, OutputFormat, ToolWords};
use crate::typed::is_protocol;

/// Export of a command, up to its version.
const RUN_EXPORT: &str = "wasi:cli/run@0.2.";
/// Maximum number of arguments on a command line.
const ARGUMENTS_MAX: usize = 4096;
/// Maximum total length of a command line, in bytes.
const ARGUMENTS_BYTES_MAX: usize = 1024 * 1024;
/// Maximum number of characters of standard error in a failure.
const ERROR_CHARS_MAX: usize = 2000;

/// Code of a command, ready to be instantiated.
pub(crate) type CommandCode = CommandPre<CallState>;
/// Instance of a command.
pub(crate) type CommandInstance = Command;
/// Tools of a command, by name.
pub(crate) type CommandTools = BTreeMap<String, CommandTool>;

/// Form in which a command takes the arguments of a tool and returns the result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CommandTool {
    /// Groups of arguments; each is left out if a parameter that it names is absent.
    arguments: Vec<Vec<Template>>,
    input: StandardInput,
    output: OutputFormat,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
enum StandardInput {
    Empty,
    /// All arguments as one JSON object.
    Json,
    Template(Template),
}

/// End of one run.
pub(crate) struct CommandEnd {
    pub(crate) exit_code: i32,
    pub(crate) output: Vec<u8>,
}

/// Returns true if the export is the entry point of a command.
pub(crate) fn is_entry_point(export: &str) -> bool {
    export.starts_with(RUN_EXPORT)
}

/// Returns true if the component is a command and offers nothing else that could be a tool.
pub(crate) fn is_command(component: &Component) -> bool {
    let engine = component.engine();
    let ty = component.component_type();
    let names: Vec<_> = ty.exports(engine).map(|(name, _)| name).collect();
    names.iter().any(|name| is_entry_point(name)) && names.iter().all(|name| is_protocol(name))
}

/// Returns the declarations of a command's tools.
///
/// # Errors
/// If the manifest declares no tools, or a tool without a schema.
pub(crate) fn declarations(manifest: &Manifest) -> Result<Vec<Declaration>, LoadError> {
    let names = manifest.tool_names();
    if names.is_empty() {
        return Err(LoadError::CommandWithoutTools);
    }
    names.into_iter().map(|name| declaration(manifest, name)).collect()
}

fn declaration(manifest: &Manifest, name: &str) -> Result<Declaration, LoadError> {
    let Some((_, stated)) = manifest.command_tool(name) else {
        return Err(LoadError::Manifest(manifest.without_schema(name)));
    };
    let words = manifest.tool(name).unwrap_or(stated);
    let input_schema = stated.schema.as_ref().map(|schema| schema_text(schema.get_ref()));
    Ok(Declaration {
        name: name.to_owned(),
        title: words.title.clone().or_else(|| stated.title.clone()),
        description: words
            .description
            .clone()
            .or_else(|| stated.description.clone())
            .unwrap_or_default(),
        input_schema: input_schema.unwrap_or_default(),
        output_schema: stated.output_schema.as_ref().map(|schema| schema_text(schema.get_ref())),
        annotations: words.annotations(),
        group: words.group.clone().or_else(|| stated.group.clone()),
    })
}

/// Returns a schema as JSON. It is a table, or JSON in a string.
fn schema_text(schema: &Value) -> String {
    match schema {
        Value::String(text) => text.clone(),
        table => table.to_string(),
    }
}

/// Returns the tools that the manifest describes as those of a command. There are none for other
/// plugins.
///
/// # Errors
/// If a template is malformed or names a parameter that its schema does not declare, if a parameter
/// does not reach the command or is described outside the schema, or if text has a schema.
pub(crate) fn tools(manifest: &Manifest) -> Result<CommandTools, ManifestError> {
    let mut tools = CommandTools::new();
    for name in manifest.tool_names() {
        let Some((text, words)) = manifest.command_tool(name) else { continue };
        manifest.check_parameters_in_schema(name)?;
        let tool = tool(words).map_err(|(offset, message)| text.error_at(offset, &message))?;
        tools.insert(name.to_owned(), tool);
    }
    Ok(tools)
}

/// Returns the tool, or the position and message of an error.
fn tool(words: &ToolWords) -> Result<CommandTool, (usize, String)> {
    let parse = |offset, text: &str| {
        Template::parse(text).map_err(|message| (offset, format!("`{text}`: {message}")))
    };
    let mut arguments = Vec::new();
    for group in words.arguments.iter().flatten() {
        let offset = group.span().start;
        let parsed: Result<Vec<_>, _> =
            group.get_ref().texts().map(|text| parse(offset, text)).collect();
        arguments.push((offset, parsed?));
    }
    let stdin = words.stdin.as_ref().map(|stdin| {
        let offset = stdin.span().start;
        Ok((offset, parse(offset, stdin.get_ref())?))
    });
    let stdin = stdin.transpose()?;
    let takes_json = stdin.is_none() && words.arguments.is_none();
    let words_of_line =
        arguments.iter().flat_map(|(offset, group)| group.iter().map(|one| (*offset, one)));
    let used: Vec<_> =
        words_of_line.chain(stdin.iter().map(|(offset, template)| (*offset, template))).collect();
    if let Some(schema) = &words.schema {
        check_parameters(schema.span().start, schema.get_ref(), &used, takes_json)?;
    }
    let input = match stdin {
        Some((_, template)) => StandardInput::Template(template),
        None if takes_json => StandardInput::Json,
        None => StandardInput::Empty,
    };
    let output = words.output.unwrap_or_default();
    if let (OutputFormat::Text, Some(schema)) = (output, &words.output_schema) {
        let message = "`output-schema` needs `output = \"json\"`: the result is text";
        return Err((schema.span().start, message.to_owned()));
    }
    let arguments = arguments.into_iter().map(|(_, group)| group).collect();
    Ok(CommandTool { arguments, input, output })
}

/// Checks that templates name declared parameters only, and that every parameter is used.
fn check_parameters(
    schema_offset: usize,
    schema: &Value,
    used: &[(usize, &Template)],
    takes_json: bool,
) -> Result<(), (usize, String)> {
    let parsed;
    let schema = match schema {
        Value::String(text) => {
            parsed = serde_json::from_str(text)
                .map_err(|error| (schema_offset, format!("the schema is not JSON: {error}")))?;
            &parsed
        }
        table => table,
    };
    let declared = schema.get("properties").and_then(Value::as_object);
    let is_declared = |name: &str| declared.is_some_and(|declared| declared.contains_key(name));
    for (offset, template) in used {
        if let Some(name) = template.parameters().find(|name| !is_declared(name)) {
            return Err((*offset, format!("`{{{name}}}` is not a parameter of the schema")));
        }
    }
    if takes_json {
        return Ok(());
    }
    let is_used =
        |name: &str| used.iter().any(|(_, template)| template.parameters().any(|of| of == name));
    match declared.into_iter().flatten().find(|(name, _)| !is_used(name)) {
        Some((name, _)) => Err((
            schema_offset,
            format!(
                "the parameter `{name}` does not reach the command: name it in `arguments` or `stdin`"
            ),
        )),
        None => Ok(()),
    }
}

impl CommandTool {
    /// Returns the command line and streams of a call of the tool `name`, for an output of at most
    /// `output_bytes_max`.
    ///
    /// # Errors
    /// A message for the model about arguments that no command line can have.
    pub(crate) fn streams(
        &self,
        name: &str,
        arguments: &Map<String, Value>,
        output_bytes_max: u64,
    ) -> Result<CommandStreams, String> {
        let mut line = vec![name.to_owned()];
        for group in &self.arguments {
            let expanded: Option<Vec<_>> =
                group.iter().map(|one| one.arguments(arguments)).collect();
            line.extend(expanded.into_iter().flatten().flatten());
        }
        check_line(&line)?;
        let stdin = match &self.input {
            StandardInput::Empty => String::new(),
            StandardInput::Json => serde_json::to_string(arguments).unwrap_or_default(),
            StandardInput::Template(template) => template.text(arguments).unwrap_or_default(),
        };
        let output = CapturedOutput::new(output_bytes_max);
        Ok(CommandStreams { arguments: line, stdin: stdin.into(), output })
    }

    /// Returns the outcome of a run. `errors` is what the command has printed to standard error.
    pub(crate) fn outcome(&self, end: CommandEnd, errors: &str) -> Outcome {
        let CommandEnd { exit_code, output } = end;
        if exit_code != 0 {
            return Outcome::Failure(failure(exit_code, errors, &output));
        }
        self.output(output).map_or_else(Outcome::Error, |value| Outcome::Ok(Output::Value(value)))
    }

    fn output(&self, bytes: Vec<u8>) -> Result<Value, ToolError> {
        let invalid = |detail: String| ToolError::new(ErrorType::InvalidResult).with_detail(detail);
        let mut text = String::from_utf8(bytes)
            .map_err(|error| invalid(format!("the output of the command is not UTF-8: {error}")))?;
        match self.output {
            OutputFormat::Text => {
                // The line feed that ends the last line of every program's output.
                if text.ends_with('\n') {
                    text.pop();
                }
                Ok(Value::String(text))
            }
            OutputFormat::Json => parse_json(&text).map_err(|error| {
                invalid(format!("the output of the command is not JSON: {error}"))
            }),
        }
    }
}

/// Rejects a command line that is too long or cannot be passed to a C program.
fn check_line(line: &[String]) -> Result<(), String> {
    let bytes: usize = line.iter().map(String::len).sum();
    if line.len() > ARGUMENTS_MAX || bytes > ARGUMENTS_BYTES_MAX {
        return Err(format!(
            "the arguments make a command line of {} words and {bytes} bytes; the limits are \
             {ARGUMENTS_MAX} and {ARGUMENTS_BYTES_MAX}",
            line.len()
        ));
    }
    if line.iter().any(|word| word.contains('\0')) {
        return Err("an argument contains a NUL character, which this tool cannot take".to_owned());
    }
    Ok(())
}

/// Returns the failure of a command with the end of what it printed, preferably to standard error.
fn failure(exit_code: i32, errors: &str, output: &[u8]) -> ToolFailure {
    let output = String::from_utf8_lossy(output);
    let printed = if errors.trim().is_empty() { output.trim() } else { errors.trim() };
    let skipped = printed.chars().count().saturating_sub(ERROR_CHARS_MAX);
    let shown: String = printed.chars().skip(skipped).collect();
    let cut = if skipped > 0 { "… " } else { "" };
    let said = if shown.is_empty() { String::new() } else { format!(": {cut}{shown}") };
    ToolFailure::new(format!("the command ended with exit code {exit_code}{said}"))
}

#[cfg(test)]
mod tests;
