//! `cofferdam publish`: pushes a component or a set of plugins to a registry.

use std::collections::BTreeMap;
use std::ffi::OsStr;

use cofferdam::config::ConfigFile;
use cofferdam::listing::PluginListing;
use cofferdam::registry::{PluginFetcher, PluginSet, SigningRequest};
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
    let (exports, imports) = (&screened.exports, &screened.info.imports);
    let published =
        fetcher.publish(&args.reference, bytes, exports, imports, &annotations, signing);
    let manifest = published.await?;
    if let Some(listing) = &listing {
        let path = listing.write(manifest)?;
        print::note(&format!("{} is written", path.display()));
        listing.notes().iter().for_each(|note| print::note(&format!("note: {note}")));
    }
    Ok((manifest, json!({"component": screened.info.identity.digest})))
}

/// Publishes the plugins of a configuration as a set.
async fn publish_set(
    args: &PublishArgs,
    tag: &str,
    fetcher: &PluginFetcher,
    signing: Option<SigningRequest>,
) -> anyhow::Result<(Digest, Value)> {
    if args.listing.server_name.is_some() {
        let message = "a set of plugins cannot be listed as a server: publish it without \
                       --server-name";
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
