//! `cofferdam publish`: pushes a component or a set of plugins to a registry.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::PathBuf;

use cofferdam::config::ConfigFile;
use cofferdam::listing::PluginListing;
use cofferdam::registry::{
    GithubWorkflow, PluginFetcher, PluginSet, ProvenanceFacts, Publication, SigningRequest,
    find_readme_ambient, read_readme_ambient, source_commit_ambient,
};
use cofferdam::{Digest, json};
use cofferdam_engine::Component;
use serde_json::{Value, json};

use super::sign::signing_request;
use crate::args::{Global, PublishArgs};
use crate::exit::{Exit, UsageError};
use crate::{host, print};

pub(crate) async fn run(global: &Global, args: &PublishArgs) -> anyhow::Result<Exit> {
    let reference = &args.reference;
    let Some(tag) = reference.tag().filter(|_| reference.digest().is_none()) else {
        return Err(UsageError(format!(
            "name a tag and no digest, such as {}:1.0.0",
            reference.name()
        ))
        .into());
    };
    let config = args.config.as_deref().map(ConfigFile::read_ambient).transpose()?;
    let signing = args.key.as_deref().map(|key| signing_request(key, &args.attest));
    let signing = signing.transpose()?;
    let fetcher = PluginFetcher::new_ambient(config.as_ref(), &host::operator())?;
    let is_set = args.component.extension().is_some_and(|extension| extension == "toml");
    let published = match is_set {
        true => publish_set(args, tag, &fetcher, signing).await?,
        false => publish_plugin(global, args, tag, &fetcher, signing).await?,
    };
    let (manifest, more) = published;
    let pinned = reference.with_digest(manifest);
    if args.json {
        let report = json!({"reference": pinned, "manifest": manifest});
        print::result(&json::with(report, more).to_string())?;
    } else {
        print::result(&pinned.to_string())?;
    }
    Ok(Exit::Ok)
}

/// Publishes a component. Returns the digest of its manifest, and members of the report.
async fn publish_plugin(
    global: &Global,
    args: &PublishArgs,
    tag: &str,
    fetcher: &PluginFetcher,
    signing: Option<SigningRequest>,
) -> anyhow::Result<(Digest, Value)> {
    let name =
        cofferdam::plugin_name(&args.component).map_err(|error| UsageError(error.to_string()))?;
    let engine = host::engine(global)?;
    // A component that is not a plugin of this host is not published.
    host::load_without_grants(&engine, name.clone(), args.component.clone()).await?;
    let bytes = super::embed::read_component(&args.component)?;
    let screened = engine.screened(&Component::from_bytes(bytes.clone()), &name).await?;
    let listing = args.listing();
    let listing = listing.map(|options| PluginListing::new_ambient(&args.reference, options));
    let listing = listing.transpose()?;
    let mut annotations = annotations(args, name.as_str(), tag);
    annotations.extend(listing.as_ref().map(PluginListing::annotation));
    let readme = readme(args);
    let mut publication = Publication {
        component: bytes,
        exports: screened.exports,
        imports: screened.info.imports,
        annotations,
        readme: readme.as_deref().map(read_readme_ambient).transpose()?,
        signing,
    };
    if args.key.is_some() && !args.no_statements {
        publication.add_statements(&provenance_facts(args))?;
    }
    let statements = publication.statement_types();
    let manifest = fetcher.publish(&args.reference, publication).await?;
    if let Some(readme) = readme {
        print::note(&format!("{} is published as its README", readme.display()));
    }
    if !statements.is_empty() {
        print::note(&format!("signed statements: {}", statements.join(", ")));
    }
    if let Some(listing) = &listing {
        let path = listing.write(manifest)?;
        print::note(&format!("{} is written", path.display()));
        listing.notes().iter().for_each(|note| print::note(&format!("note: {note}")));
    }
    let component = &screened.info.identity.digest;
    Ok((manifest, json!({"component": component, "statements": statements})))
}

/// Publishes the plugins of a configuration as a set.
async fn publish_set(
    args: &PublishArgs,
    tag: &str,
    fetcher: &PluginFetcher,
    signing: Option<SigningRequest>,
) -> anyhow::Result<(Digest, Value)> {
    if args.listing.server_name.is_some() || args.readme.is_some() {
        let message = "a set of plugins has no listing and no README: publish it without \
                       --server-name and --readme";
        return Err(UsageError(message.to_owned()).into());
    }
    let set = PluginSet::of_config_ambient(&ConfigFile::read_ambient(&args.component)?)?;
    let name = args.component.file_stem().and_then(OsStr::to_str).unwrap_or_default();
    let annotations = annotations(args, name, tag);
    let manifest = fetcher.publish_set(&args.reference, &set, annotations, signing).await?;
    let plugins = print::counted(set.size(), "plugin");
    print::note(&format!("the set has {plugins}; nothing else of the configuration is in it"));
    Ok((manifest, json!({"plugins": set.size()})))
}

fn annotations(args: &PublishArgs, title: &str, tag: &str) -> BTreeMap<String, String> {
    let annotation = |key: &str, value: Option<&str>| {
        value.map(|value| (format!("org.opencontainers.image.{key}"), value.to_owned()))
    };
    [
        annotation("title", Some(title)),
        annotation("version", Some(tag)),
        annotation("description", args.description.as_deref()),
        annotation("licenses", args.license.as_deref()),
        annotation("source", args.source.as_deref()),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Returns the README to publish.
fn readme(args: &PublishArgs) -> Option<PathBuf> {
    if args.no_readme {
        return None;
    }
    args.readme.clone().or_else(|| find_readme_ambient(&args.component))
}

/// Returns where the sources of the component are, and what publishes it.
fn provenance_facts(args: &PublishArgs) -> ProvenanceFacts {
    ProvenanceFacts {
        repository: args.source.clone(),
        commit: source_commit_ambient(&args.component),
        workflow: github_workflow(),
    }
}

/// Returns the workflow of GitHub Actions that this program runs in.
fn github_workflow() -> Option<GithubWorkflow> {
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    variable("GITHUB_ACTIONS").filter(|value| value == "true")?;
    Some(GithubWorkflow {
        server: variable("GITHUB_SERVER_URL")?,
        repository: variable("GITHUB_REPOSITORY")?,
        workflow: variable("GITHUB_WORKFLOW_REF")?,
        git_ref: variable("GITHUB_REF"),
        runner: variable("RUNNER_ENVIRONMENT"),
    })
}
