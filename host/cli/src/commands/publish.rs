//! `cofferdam publish`: pushes a component to a registry.

use std::collections::BTreeMap;

use cofferdam::config::ConfigFile;
use cofferdam::registry::PluginFetcher;
use cofferdam_engine::Component;
use serde_json::json;

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
    let name =
        cofferdam::plugin_name(&args.component).map_err(|error| UsageError(error.to_string()))?;
    let engine = host::engine(global)?;
    // A component that is not a plugin of this host is not published.
    host::load_without_grants(&engine, name.clone(), args.component.clone()).await?;
    let bytes = super::embed::read_component(&args.component)?;
    let screened = engine.screened(&Component::from_bytes(bytes.clone()), &name).await?;
    let annotation = |key: &str, value: Option<&str>| {
        value.map(|value| (format!("org.opencontainers.image.{key}"), value.to_owned()))
    };
    let annotations: BTreeMap<_, _> = [
        annotation("title", Some(name.as_str())),
        annotation("version", Some(tag)),
        annotation("description", args.description.as_deref()),
        annotation("licenses", args.license.as_deref()),
        annotation("source", args.source.as_deref()),
    ]
    .into_iter()
    .flatten()
    .collect();
    let signing = args.key.as_deref().map(|key| signing_request(key, &args.attest));
    let signing = signing.transpose()?;
    let fetcher = PluginFetcher::new_ambient(config.as_ref(), &host::operator())?;
    let (exports, imports) = (&screened.exports, &screened.info.imports);
    let published = fetcher.publish(reference, bytes, exports, imports, &annotations, signing);
    let manifest = published.await?;
    let pinned = reference.with_digest(manifest);
    if args.json {
        let component = &screened.info.identity.digest;
        let report = json!({"reference": pinned, "manifest": manifest, "component": component});
        print::result(&report.to_string())?;
    } else {
        print::result(&pinned.to_string())?;
    }
    Ok(Exit::Ok)
}
