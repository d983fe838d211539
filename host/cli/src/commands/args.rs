//! `cofferdam args`: decodes arguments or prints a schema in a dialect, without a call.

use std::path::Path;
use std::sync::Arc;

use cofferdam_tool::schema::Dialect;
use cofferdam_tool::{Arguments, DecodeOptions, InputSchema, InvalidArguments};
use serde_json::json;

use cofferdam::text::refusal;

use crate::args::{ArgsArgs, Global};
use crate::exit::{Exit, UsageError};
use crate::host;
use crate::{arguments, print};
use cofferdam::Purpose;
use cofferdam::json;

/// Maximum size of a schema file in bytes. The limit of the schema compiler is lower, and its error
/// explains it.
const SCHEMA_BYTES_MAX: u64 = 1024 * 1024;

pub(crate) async fn run(global: &Global, args: ArgsArgs) -> anyhow::Result<Exit> {
    let (tool, schema) = match (&args.schema, &args.tool) {
        (Some(path), _) => schema_of_file(path)?,
        (None, Some(tool)) => (tool.clone(), schema_of_tool(global, &args, tool).await?),
        (None, None) => {
            return Err(UsageError("pass --schema FILE or --tool NAME".to_owned()).into());
        }
    };
    if let Some(dialect) = args.dialect {
        return show_dialect(&args, &schema, dialect);
    }
    let text = arguments::read(&args.arguments)?;
    let options = DecodeOptions { strict: args.strict, ..DecodeOptions::default() };
    match schema.decode(&tool, text.as_deref(), &options) {
        Ok(arguments) => show(&args, &arguments),
        Err(invalid) => show_problems(&args, &invalid),
    }
}

/// Reads the schema in a file. Returns it with the name of the file, which stands for the tool's.
fn schema_of_file(path: &Path) -> anyhow::Result<(String, Arc<InputSchema>)> {
    let unreadable =
        |error| UsageError(format!("the schema in {} cannot be read: {error}", path.display()));
    let text =
        cofferdam_files::read_named_text_ambient(path, SCHEMA_BYTES_MAX).map_err(unreadable)?;
    let name =
        cofferdam::plugin_name(path).map_err(|error| UsageError(error.to_string()))?.to_string();
    let schema = InputSchema::compile_or_explain(&name, &text).map_err(|refusals| {
        let refusals: Vec<_> = refusals.iter().map(ToString::to_string).collect();
        UsageError(refusals.join("\n"))
    })?;
    Ok((name, Arc::new(schema)))
}

async fn schema_of_tool(
    global: &Global,
    args: &ArgsArgs,
    tool: &str,
) -> anyhow::Result<Arc<InputSchema>> {
    let tools = host::load(global, &args.plugins, Purpose::List).await?;
    let definition =
        tools.toolset().definition(tool).map_err(|refused| UsageError(refusal(&refused)))?;
    Ok(Arc::clone(&definition.input))
}

fn show(args: &ArgsArgs, arguments: &Arguments) -> anyhow::Result<Exit> {
    if args.json {
        let report =
            json!({"ok": true, "arguments": arguments.value(), "dropped": arguments.dropped()});
        print::result(&report.to_string())?;
    } else {
        print::result(&arguments.to_json())?;
        if !arguments.dropped().is_empty() {
            print::note(&format!("not declared and dropped: {}", arguments.dropped().join(", ")));
        }
    }
    Ok(Exit::Ok)
}

fn show_problems(args: &ArgsArgs, invalid: &InvalidArguments) -> anyhow::Result<Exit> {
    if args.json {
        print::result(&json!({"ok": false, "problems": json::problems(invalid)}).to_string())?;
    } else {
        for problem in invalid.problems() {
            print::note(&format!("{}: {}", problem.code, problem.message));
        }
    }
    Ok(Exit::Usage)
}

fn show_dialect(args: &ArgsArgs, schema: &InputSchema, dialect: Dialect) -> anyhow::Result<Exit> {
    let shown = schema.in_dialect(dialect);
    if args.json {
        let losses: Vec<_> = shown
            .losses
            .iter()
            .map(|loss| json!({"pointer": loss.pointer, "what": loss.what}))
            .collect();
        let report = json!({
            "dialect": dialect.name(),
            "strict": shown.strict,
            "losses": losses,
            "schema": shown.schema,
        });
        print::result(&report.to_string())?;
        return Ok(Exit::Ok);
    }
    print::result(&serde_json::to_string_pretty(&shown.schema)?)?;
    for loss in &shown.losses {
        print::note(&loss.to_string());
    }
    Ok(Exit::Ok)
}
