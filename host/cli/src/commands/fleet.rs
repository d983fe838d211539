//! `cofferdam fleet`: lists the versions of plugins that workers have.

use cofferdam::cluster::{self, FleetVersion};
use serde_json::json;

use crate::args::FleetArgs;
use crate::exit::Exit;
use crate::print;

pub(crate) async fn run(args: &FleetArgs) -> anyhow::Result<Exit> {
    let versions = cluster::fleet(&args.access.options(&args.cluster)).await?;
    if args.json {
        print::result(&json!(versions).to_string())?;
        return Ok(Exit::Ok);
    }
    for of_source in versions.chunk_by(|one, next| one.source == next.source) {
        let source = of_source.iter().take(1).map(|version| version.source.clone());
        let lines: Vec<_> = source.chain(of_source.iter().map(line)).collect();
        print::report(&lines.join("\n"))?;
    }
    Ok(Exit::Ok)
}

fn line(version: &FleetVersion) -> String {
    let FleetVersion { version, workers, digest, tools, .. } = version;
    let workers = print::counted(*workers, "worker");
    let tools = print::counted(tools.len(), "tool");
    let digest = digest.as_ref().map(|digest| format!("  {digest}")).unwrap_or_default();
    format!("  {version}  {workers}, {tools}{digest}")
}
