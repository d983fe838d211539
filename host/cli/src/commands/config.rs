//! `cofferdam config check`: explains a configuration, or reports its first error.

use cofferdam_mcp::client::{Always, ApprovalMode, ServerEndpoint};
use serde_json::json;

use crate::args::ConfigCheckArgs;
use crate::exit::Exit;
use crate::print;
use cofferdam::compose::PluginSpec;
use cofferdam::config::ConfigFile;
use cofferdam::config_check::{self, CheckedConfig};
use cofferdam::model_specs::ModelSpec;
use cofferdam::servers::ServerSpec;

pub(crate) fn check(args: &ConfigCheckArgs) -> anyhow::Result<Exit> {
    let checked = ConfigFile::read_ambient(&args.file)
        .map_err(cofferdam::Error::from)
        .and_then(|file| config_check::check(&file));
    match checked {
        Ok(CheckedConfig { plugins, servers, models, allowances, notes, .. }) if args.json => {
            let (plugins, servers, models) = (plugins.len(), servers.len(), models.len());
            let summary = json!({
                "ok": true,
                "plugins": plugins,
                "servers": servers,
                "models": models,
                "allows": allowances,
                "notes": notes,
            });
            print::result(&summary.to_string())?;
        }
        Ok(CheckedConfig { plugins, servers, models, skills, allowances, notes }) => {
            for spec in &plugins {
                print::result(&summary(spec))?;
            }
            for server in &servers {
                print::result(&meaning_of_server(server))?;
            }
            if let Some(skills) = &skills {
                print::result(skills)?;
            }
            for (name, model) in &models {
                print::result(&model_summary(name, model))?;
            }
            for line in &allowances {
                print::result(line)?;
            }
            notes.iter().for_each(|note| print::note(&format!("note: {note}")));
            let mut counts = print::counted(plugins.len(), "plugin");
            for (count, word) in [(servers.len(), "server"), (models.len(), "model")] {
                if count > 0 {
                    counts = format!("{counts}, {}", print::counted(count, word));
                }
            }
            print::note(&format!("{} is fine: {counts}", args.file.display()));
        }
        Err(error) if args.json => {
            print::result(&failure(&error).to_string())?;
            return Ok(Exit::Usage);
        }
        Err(error) => return Err(error.into()),
    }
    Ok(Exit::Ok)
}

fn failure(error: &cofferdam::Error) -> serde_json::Value {
    let invalid = match error {
        cofferdam::Error::Config(error) => Some(error),
        _ => None,
    };
    json!({
        "ok": false,
        "message": invalid.map_or_else(|| format!("{error:#}"), |e| e.message.clone()),
        "line": invalid.and_then(|e| e.at).map(|at| at.0),
        "column": invalid.and_then(|e| e.at).map(|at| at.1),
    })
}

fn summary(spec: &PluginSpec) -> String {
    let limits = &spec.options.limits;
    let mut lines = vec![format!("{}  {}", spec.options.name, spec.path.display())];
    for permission in spec.options.grants.policy(limits).permissions() {
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

fn model_summary(name: &str, model: &ModelSpec) -> String {
    let at =
        model.base_url.as_deref().map(|url| format!("\n  is reached at {url}")).unwrap_or_default();
    format!("{name}  {}:{}{at}", model.provider.word(), model.model)
}

fn meaning_of_server(spec: &ServerSpec) -> String {
    let (name, table) = (spec.name(), &spec.table);
    let names = |names: Vec<&str>| names.join(", ");
    let mut lines = match &spec.settings.endpoint {
        ServerEndpoint::Command(command) => {
            let line: Vec<_> =
                std::iter::once(&command.program).chain(&command.arguments).cloned().collect();
            vec![
                format!("{name}  runs {}", line.join(" ")),
                "  runs with all rights of your user, outside of any sandbox".to_owned(),
            ]
        }
        ServerEndpoint::Http(endpoint) => vec![format!("{name}  {}", endpoint.url())],
    };
    if !table.env.is_empty() {
        let env = table.env.keys().map(|name| name.get_ref().as_str()).collect();
        lines.push(format!("  is given the variables {}", names(env)));
    }
    if !table.headers.is_empty() {
        let headers = table.headers.keys().map(|name| name.get_ref().as_str()).collect();
        lines.push(format!("  is sent the headers {}", names(headers)));
    }
    if let Some(oauth) = &table.oauth {
        let who = if oauth.get_ref().machine { "the host" } else { "a person" };
        lines.push(format!("  is sent tokens that {who} gets by logging in"));
    }
    lines.push(match &table.tools {
        None => "  offers all its tools".to_owned(),
        Some(tools) if tools.is_empty() => "  offers no tools".to_owned(),
        Some(tools) => format!("  offers {}", tools.join(", ")),
    });
    lines.push(match &spec.settings.approval {
        ApprovalMode::All(Always::AlwaysRequire) => "  each call has to be approved".to_owned(),
        ApprovalMode::Lists { always_require_approval: always, .. } if !always.is_empty() => {
            format!("  each call of {} has to be approved", always.join(", "))
        }
        _ => "  no call has to be approved".to_owned(),
    });
    if table.ask {
        lines.push("  may ask the caller".to_owned());
    }
    lines.push(format!("  each call has {} ms", table.limits.wall_ms_max));
    lines.join("\n")
}
