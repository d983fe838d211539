//! `cofferdam search`: finds plugins in MCP registries and index files.

use std::collections::BTreeSet;

use cofferdam::config::ConfigFile;
use cofferdam::registry::{ListedServer, PluginSearch, SearchReport, ServerStatus};
use serde_json::json;

use crate::args::SearchArgs;
use crate::exit::Exit;
use crate::{host, print};

pub(crate) async fn run(args: &SearchArgs) -> anyhow::Result<Exit> {
    let config = args.config.as_deref().map(ConfigFile::read_ambient).transpose()?;
    let indexes = args.indexes.clone();
    let search = PluginSearch::new_ambient(config.as_ref(), indexes, &host::operator())?;
    let report = search.run(&args.term, args.all).await?;
    report.notes.iter().for_each(|note| print::note(note));
    let shown: Vec<_> = report.servers.iter().take(args.limit).collect();
    if args.json {
        print::result(&json!(shown).to_string())?;
    } else {
        shown.iter().try_for_each(|server| print::report(&entry(server)))?;
    }
    if let Some(note) = rest(&report, shown.len()) {
        print::note(&note);
    }
    Ok(Exit::Ok)
}

/// Returns a note about the servers that are not shown.
fn rest(report: &SearchReport, shown: usize) -> Option<String> {
    let more = report.servers.len().saturating_sub(shown);
    let others = print::counted(report.others, "other server");
    match (report.servers.len(), report.others) {
        (0, 0) => Some("nothing was found".to_owned()),
        (0, _) => Some(format!("no plugin was found; {others} with --all")),
        _ if more > 0 => Some(format!("{more} more with a higher --limit")),
        _ => None,
    }
}

/// Returns name, version and description of a server, and the reference for `cofferdam add`.
fn entry(server: &ListedServer) -> String {
    let mut first = format!("{}  {}", server.name, server.version);
    if server.component.is_none() {
        first.push_str(&format!("  ({})", kinds(server)));
    }
    if server.status != ServerStatus::Active {
        first.push_str(&format!("  ({})", server.status.as_str()));
    }
    let component = server.component.as_ref().map(ToString::to_string).unwrap_or_default();
    let lines = [&server.description, &component].into_iter().filter(|line| !line.is_empty());
    lines.fold(first, |text, line| format!("{text}\n  {line}"))
}

/// Returns the kinds of a server that is not a plugin, such as `npm, remote`.
fn kinds(server: &ListedServer) -> String {
    let mut kinds: BTreeSet<_> = server.packages.iter().map(|it| it.kind.as_str()).collect();
    if server.is_remote {
        kinds.insert("remote");
    }
    if kinds.is_empty() {
        kinds.insert("no package");
    }
    kinds.into_iter().collect::<Vec<_>>().join(", ")
}
