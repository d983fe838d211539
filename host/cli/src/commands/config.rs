//! `cofferdam config check`: says what a configuration means, or where it is wrong.

use cofferdam_engine::Grants;
use cofferdam_tool::Permission;
use serde_json::json;

use crate::args::ConfigCheckArgs;
use crate::compose::{self, PluginSpec};
use crate::config::{ConfigError, ConfigFile};
use crate::exit::Exit;
use crate::offer::Values;
use crate::print;

pub(crate) fn check(args: &ConfigCheckArgs) -> anyhow::Result<Exit> {
    let checked = ConfigFile::read_ambient(&args.file)
        .map_err(anyhow::Error::from)
        .and_then(|file| compose::specs_of_config(&file, Values::Leave));
    match checked {
        Ok(specs) if args.json => print::result(&json!({"ok": true, "plugins": specs.len()}).to_string())?,
        Ok(specs) => {
            for spec in &specs {
                print::result(&meaning(spec))?;
            }
            let plugins = print::counted(specs.len(), "plugin");
            print::note(&format!("{} is fine: {plugins}", args.file.display()));
        }
        Err(error) if args.json => {
            print::result(&failure(&error).to_string())?;
            return Ok(Exit::Usage);
        }
        Err(error) => return Err(error),
    }
    Ok(Exit::Ok)
}

fn failure(error: &anyhow::Error) -> serde_json::Value {
    let place = error.downcast_ref::<ConfigError>();
    json!({
        "ok": false,
        "message": place.map_or_else(|| format!("{error:#}"), |e| e.message.clone()),
        "line": place.and_then(|e| e.at).map(|at| at.0),
        "column": place.and_then(|e| e.at).map(|at| at.1),
    })
}

fn meaning(spec: &PluginSpec) -> String {
    let limits = &spec.options.limits;
    let mut lines = vec![format!("{}  {}", spec.options.name, spec.path.display())];
    for permission in offered(&spec.options.grants) {
        lines.push(format!("  may {}", permission.in_plain_words()));
    }
    if spec.options.grants.mounts.is_empty() {
        lines.push("  is given no files".to_owned());
    }
    lines.push(format!(
        "  each call has {} ms and {} of memory",
        limits.wall_ms_max,
        print::bytes(limits.memory_bytes_max)
    ));
    lines.join("\n")
}

/// What is offered beyond what every plugin has, one by one.
fn offered(grants: &Grants) -> Vec<Permission> {
    let files = grants.mounts.iter().map(|mount| Permission::Files(Some(mount.name.clone()), mount.access));
    files
        .chain(grants.http.iter().map(|grant| Permission::Http(grant.rule.clone())))
        .chain(grants.sockets.iter().cloned().map(Permission::Socket))
        .chain(grants.env.keys().cloned().map(Permission::Env))
        .chain(grants.config.keys().cloned().map(Permission::Config))
        .chain(grants.readable_secrets.iter().cloned().map(Permission::Secret))
        .chain(grants.tools.iter().cloned().map(Permission::Tool))
        .chain(grants.ask.iter().copied().map(Permission::Ask))
        .collect()
}
