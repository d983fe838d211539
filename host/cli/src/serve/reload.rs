//! Follows changes of plugins and configuration, and publishes what they make of the offer.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use cofferdam_engine::Engine;
use cofferdam_mcp::Server;
use notify::{RecommendedWatcher, RecursiveMode, Watcher};
use tokio::sync::mpsc;

use super::Offering;
use crate::args::ServeArgs;
use crate::print;

/// How long to wait after a change for what belongs to it: a component is often written in several steps.
const QUIET: Duration = Duration::from_millis(150);

/// Reloads what changes, until the process ends. A plugin or a configuration that cannot be loaded leaves everything as it is,
/// and a note on standard error says why.
pub(crate) async fn follow(
    server: Server,
    engine: Engine,
    args: ServeArgs,
    mut offering: Offering,
) -> anyhow::Result<()> {
    let (send, mut changes) = mpsc::unbounded_channel();
    let mut watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
        if let Ok(event) = event
            && !event.kind.is_access()
        {
            for path in event.paths {
                let _ = send.send(path);
            }
        }
    })
    .context("changes of plugins are not noticed")?;
    let mut watched = BTreeSet::new();
    watch(&mut watcher, &mut watched, &offering, &args);
    while let Some(first) = changes.recv().await {
        let mut paths = BTreeSet::from([first]);
        while let Ok(Some(path)) = tokio::time::timeout(QUIET, changes.recv()).await {
            paths.insert(path);
        }
        let config = args.plugins.config.as_deref().map(absolute);
        let is_config = config.is_some_and(|config| paths.contains(&config));
        let components: Vec<PathBuf> = offering
            .components()
            .flat_map(|path| [path.clone(), path.with_extension("toml")])
            .filter(|path| paths.contains(&absolute(path)))
            .collect();
        let reloaded = if is_config {
            change_all(&server, &engine, &args, &mut offering).await
        } else if components.is_empty() {
            continue;
        } else {
            change_some(&server, &engine, &args, &mut offering, &components).await
        };
        match reloaded {
            Ok(what) => print::note(&format!("reloaded: {what}")),
            Err(error) => print::note(&format!("not reloaded, what was there before stays: {error:#}")),
        }
        watch(&mut watcher, &mut watched, &offering, &args);
    }
    Ok(())
}

async fn change_all(
    server: &Server,
    engine: &Engine,
    args: &ServeArgs,
    offering: &mut Offering,
) -> anyhow::Result<String> {
    let new = Offering::load(engine, args, offering.files()).await?;
    server.publish(new.offer(args)?);
    *offering = new;
    Ok("the configuration".to_owned())
}

async fn change_some(
    server: &Server,
    engine: &Engine,
    args: &ServeArgs,
    offering: &mut Offering,
    paths: &[PathBuf],
) -> anyhow::Result<String> {
    let mut names = BTreeSet::new();
    for path in paths {
        offering.reload(engine, path).await?;
        names.extend(offering.plugin_of(path).map(str::to_owned));
    }
    server.publish(offering.offer(args)?);
    Ok(names.into_iter().collect::<Vec<_>>().join(", "))
}

/// Watches the directories of all files: a file that is replaced is another one, and its directory stays.
fn watch(
    watcher: &mut RecommendedWatcher,
    watched: &mut BTreeSet<PathBuf>,
    offering: &Offering,
    args: &ServeArgs,
) {
    let files = offering.components().chain(args.plugins.config.as_ref());
    let directories: BTreeSet<PathBuf> =
        files.filter_map(|path| Some(absolute(path).parent()?.to_owned())).collect();
    for directory in directories {
        if !watched.contains(&directory) {
            match watcher.watch(&directory, RecursiveMode::NonRecursive) {
                Ok(()) => {
                    watched.insert(directory);
                }
                Err(error) => {
                    print::note(&format!("changes in {} are not noticed: {error}", directory.display()));
                }
            }
        }
    }
}

fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}
