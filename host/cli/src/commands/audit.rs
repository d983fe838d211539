//! `cofferdam audit`: compares the locked plugins of a configuration with security advisories.

use cofferdam::advisories::{self, AuditReport, PluginAdvisory};
use cofferdam::config::ConfigFile;
use serde_json::json;

use super::add::{fetcher, named_config};
use crate::args::AuditArgs;
use crate::exit::Exit;
use crate::print;

pub(crate) async fn run(args: &AuditArgs) -> anyhow::Result<Exit> {
    let file = ConfigFile::read_ambient(named_config("audit", args.config.as_deref())?)?;
    if !args.offline {
        fetcher(Some(&file), false, None)?.download_advisories().await?;
    }
    let AuditReport { findings, unlocked } = advisories::audit(&file)?;
    for name in &unlocked {
        print::note(&format!("note: `{name}` is not in the lock file, and is not compared"));
    }
    let (ignored, counted): (Vec<_>, Vec<_>) = findings.iter().partition(|it| it.is_ignored);
    if args.json {
        print::result(&json!(findings).to_string())?;
    } else {
        counted.iter().try_for_each(|finding| print::report(&report(finding)))?;
        ignored.iter().for_each(|finding| {
            print::note(&format!("note: {} of `{}` is ignored", finding.id, finding.plugin));
        });
    }
    if findings.is_empty() {
        print::note("no plugin is affected by an advisory");
    }
    Ok(if counted.is_empty() { Exit::Ok } else { Exit::Plugin })
}

/// Returns an advisory with its heading.
fn report(finding: &PluginAdvisory) -> String {
    let PluginAdvisory { plugin, version, id, summary, severity, fixed, reference, .. } = finding;
    let version = version.as_ref().map(|version| format!(" {version}")).unwrap_or_default();
    let lines = [
        ("", Some(summary).filter(|summary| !summary.is_empty())),
        ("severity: ", severity.as_ref()),
        ("fixed in: ", fixed.as_ref()),
        ("see: ", reference.as_ref()),
    ];
    let lines = lines.iter().filter_map(|(name, value)| Some(format!("\n  {name}{}", (*value)?)));
    std::iter::once(format!("{plugin}{version}: {id}")).chain(lines).collect()
}
