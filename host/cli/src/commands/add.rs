//! `cofferdam add` and `cofferdam remove`: plugins of a configuration.

mod set;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use cofferdam::artifacts::Origin;
use cofferdam::config::{ComponentLocation, ConfigFile};
use cofferdam::install::{self, NewPlugin};
use cofferdam::registry::{FetchedArtifact, FetchedPlugin, PluginFetcher, StatementSummary};
use cofferdam::signature::signature;
use cofferdam::{json, pins, trust};
use cofferdam_engine::{Engine, Plugin};
use cofferdam_tool::{PluginName, ToolSource as _};
use serde_json::json;

use self::set::SetTarget;
use super::list::first_sentence;
use super::sign;
use crate::args::{AddArgs, Global, RemoveArgs};
use crate::exit::{ConsentError, Exit, UsageError};
use crate::{ask, host, print};

/// Annotations of an artifact that are shown, with their names.
const ANNOTATIONS: [(&str, &str); 4] = [
    ("org.opencontainers.image.version", "version"),
    ("org.opencontainers.image.description", "about"),
    ("org.opencontainers.image.licenses", "license"),
    ("org.opencontainers.image.source", "source"),
];

/// Plugin that the operator decides about.
pub(super) struct Candidate {
    pub(super) plugin: Plugin,
    /// Origin of a plugin that was fetched.
    pub(super) origin: Option<Origin>,
    /// Component file.
    pub(super) path: PathBuf,
    annotations: BTreeMap<String, String>,
    /// Statements of the signer.
    statements: Vec<StatementSummary>,
}

pub(crate) async fn run(global: &Global, args: &AddArgs) -> anyhow::Result<Exit> {
    let config = config_to_edit(args.config.as_deref())?;
    let file = config.exists().then(|| ConfigFile::read_ambient(&config)).transpose()?;
    let engine = host::engine(global)?;
    // Before a download that would be in vain. A set has no name of its own.
    if let Ok(name) = plugin_name(args) {
        let known = file.as_ref().and_then(|file| file.config.plugins.get(name.as_str()));
        if known.is_some_and(|plugin| *plugin.component.get_ref() == args.location) {
            return Err(taken(&config, &name).into());
        }
    }
    let mut must_ask = false;
    let candidate = match &args.location {
        ComponentLocation::File(path) if args.from.is_some() => {
            let path = path.display();
            return Err(UsageError(format!("{path} is a file, which --from cannot contain")).into());
        }
        ComponentLocation::File(path) => {
            Candidate::of_file(&engine, path, plugin_name(args)?).await?
        }
        location => {
            let mut fetcher = fetcher(file.as_ref(), args.allow_unsigned, args.from.as_deref())?;
            fetcher.refresh_advisories().await?;
            let fetched = match fetcher.fetch_any(location).await? {
                FetchedArtifact::Plugin(fetched) => *fetched,
                FetchedArtifact::Set(set) => {
                    let target = SetTarget { args, config: &config, file: file.as_ref() };
                    return set::add(&engine, &fetcher, &set, target).await;
                }
            };
            must_ask = fetcher.must_ask(fetched.origin.signer.as_ref());
            Candidate::of_fetched(&engine, fetched, plugin_name(args)?).await?
        }
    };
    let name = candidate.plugin.identity().name.clone();
    let shown = config.display();
    if file.as_ref().is_some_and(|file| file.config.plugins.contains_key(name.as_str())) {
        return Err(taken(&config, &name).into());
    }
    if !args.json {
        print::report(&candidate.report())?;
    }
    confirm(&format!("Add `{name}` to {shown}, without permissions?"), args.yes, must_ask)?;
    let json = args.json.then(|| candidate.json());
    let Candidate { plugin, origin, .. } = candidate;
    let location = &args.location;
    install::add(&config, vec![NewPlugin { location, plugin: &plugin, origin }])?;
    if let Some(json) = json {
        print::result(&json.to_string())?;
    }
    let asks = !plugin.granted().missing.is_empty();
    print::note(&format!("`{name}` is added to {shown}"));
    if asks {
        print::note(&format!(
            "to grant what it asks for: cofferdam grant {name} --all-asked --config {shown}"
        ));
    }
    Ok(Exit::Ok)
}

pub(crate) fn remove(args: &RemoveArgs) -> anyhow::Result<Exit> {
    let config = named_config("remove", args.config.as_deref())?;
    install::remove(config, &args.plugin)?;
    print::note(&format!("`{}` is removed from {}", args.plugin, config.display()));
    Ok(Exit::Ok)
}

/// Returns the configuration that a command is about.
pub(super) fn named_config<'a>(
    command: &str,
    config: Option<&'a Path>,
) -> Result<&'a Path, UsageError> {
    config.ok_or_else(|| {
        UsageError(format!("name the configuration: cofferdam {command} … --config FILE"))
    })
}

/// Creates a fetcher with the settings of a configuration. Artifacts come from the image layout
/// `copy` if there is one.
pub(super) fn fetcher(
    file: Option<&ConfigFile>,
    allow_unsigned: bool,
    copy: Option<&Path>,
) -> anyhow::Result<PluginFetcher> {
    let mut fetcher = PluginFetcher::new_ambient(file, &host::operator())?;
    if let Some(directory) = copy {
        fetcher = fetcher.from_copy_ambient(directory)?;
    }
    Ok(if allow_unsigned { fetcher.allow_unsigned() } else { fetcher })
}

/// Asks the operator for consent. With `must_ask`, the answer `is_agreed` of a flag is not enough.
pub(super) fn confirm(question: &str, is_agreed: bool, must_ask: bool) -> Result<(), ConsentError> {
    let is_agreed = is_agreed && !must_ask;
    if is_agreed || (ask::is_possible() && ask::confirm(question)) {
        return Ok(());
    }
    let flag = if must_ask { "--allow-unsigned" } else { "--yes" };
    Err(ConsentError(format!(
        "nothing was changed{}; pass {flag} to accept it without a question",
        ask::why_unanswered()
    )))
}

impl Candidate {
    /// Loads a component file without grants.
    async fn of_file(engine: &Engine, path: &Path, name: PluginName) -> anyhow::Result<Self> {
        let plugin = host::load_without_grants(engine, name, path.to_owned()).await?;
        let (path, annotations) = (path.to_owned(), BTreeMap::new());
        Ok(Self { plugin, origin: None, path, annotations, statements: Vec::new() })
    }

    /// Loads a fetched component without grants.
    pub(super) async fn of_fetched(
        engine: &Engine,
        fetched: FetchedPlugin,
        name: PluginName,
    ) -> anyhow::Result<Self> {
        let plugin = fetched.load(engine, name, &host::operator()).await?;
        let FetchedPlugin { origin, path, annotations, statements, .. } = fetched;
        Ok(Self { plugin, origin: Some(origin), path, annotations, statements })
    }

    /// Returns what the plugin is and what it asks for.
    pub(super) fn report(&self) -> String {
        let info = self.plugin.info();
        // Writing to a string cannot fail.
        let mut text = format!("name       {}\n", info.identity.name);
        if let Some(origin) = &self.origin {
            let _ = writeln!(text, "from       {}", origin.source);
            if let Some(manifest) = &origin.manifest {
                let _ = writeln!(text, "manifest   {manifest}");
            }
            let _ = writeln!(text, "signer     {}", signer(origin));
            for statement in &self.statements {
                let _ = writeln!(text, "states     {}", sign::shown(statement));
            }
        }
        let _ = writeln!(text, "component  {}", info.identity.digest);
        let _ = writeln!(text, "size       {}", print::bytes(info.component_bytes));
        for (key, name) in ANNOTATIONS {
            if let Some(value) = self.annotations.get(key) {
                let value: String = value.chars().take(200).collect();
                let _ = writeln!(text, "{name:<10} {}", value.replace(['\n', '\r'], " "));
            }
        }
        let _ = writeln!(text, "\nIts manifest asks for:");
        let asks = pins::permission_strings(self.plugin.requested());
        if asks.is_empty() {
            let _ = writeln!(text, "  nothing");
        }
        for ask in asks {
            let _ = writeln!(text, "  - {ask}");
        }
        let _ = writeln!(text, "\nTools:");
        for definition in self.plugin.definitions().iter() {
            let _ = writeln!(text, "  {}", signature(definition));
            let _ = writeln!(text, "      {}", first_sentence(&definition.description));
        }
        text.trim_end().to_owned()
    }

    fn json(&self) -> serde_json::Value {
        let definitions = self.plugin.definitions();
        let tools: Vec<_> = definitions.iter().map(|it| json::definition(it)).collect();
        let more = json!({
            "origin": self.origin,
            "annotations": self.annotations,
            "statements": self.statements,
            "asks": pins::permission_strings(self.plugin.requested()),
            "tools": tools,
        });
        json::with(json::info(self.plugin.info()), more)
    }
}

/// Returns the trusted signer of a plugin, for the operator.
pub(super) fn signer(origin: &Origin) -> String {
    let signer = origin.signer.as_ref();
    signer.map_or_else(|| "none that a rule requires".to_owned(), ToString::to_string)
}

/// Returns the error for a name that another plugin of the configuration has.
fn taken(config: &Path, name: &PluginName) -> UsageError {
    let config = config.display();
    UsageError(format!(
        "{config} has a plugin `{name}`; give the new one another name: --name NAME"
    ))
}

fn plugin_name(args: &AddArgs) -> Result<PluginName, UsageError> {
    let named = args.name.clone().or_else(|| args.location.plugin_name()).unwrap_or_default();
    PluginName::new(named.as_str()).map_err(|error| {
        UsageError(format!("`{named}` cannot be the name of a plugin: {error}; pass --name NAME"))
    })
}

/// Returns the configuration to edit: the named one, or a new one in the working directory.
fn config_to_edit(named: Option<&Path>) -> Result<PathBuf, UsageError> {
    match named {
        Some(path) => Ok(path.to_owned()),
        None if Path::new(trust::CONFIG_FILE).exists() => {
            let name = trust::CONFIG_FILE;
            Err(UsageError(format!(
                "{name} is not trusted; run `cofferdam trust`, or name it: --config {name}"
            )))
        }
        None => Ok(PathBuf::from(trust::CONFIG_FILE)),
    }
}
