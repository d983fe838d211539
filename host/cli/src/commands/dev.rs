//! `cofferdam dev`: serves a project and rebuilds it on changes.

use std::path::Path;
use std::time::Duration;

use anyhow::Context;

use super::serve;
use crate::args::{DevArgs, Global};
use crate::exit::Exit;
use crate::rebuild::{self, Recipe};
use crate::{host, print};
use cofferdam::FirstBuild;
use cofferdam::watch::Sources;

/// Interval of checks for the built component.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

pub(crate) async fn run(global: &Global, args: DevArgs) -> anyhow::Result<Exit> {
    let DevArgs { directory, serve: mut serve_args } = args;
    let component = rebuild::open(&directory)?.component();
    if let Some(folder) = component.parent() {
        // The directory must exist before the first build, because the server watches it.
        let unwritable = || format!("{} cannot be made", folder.display());
        std::fs::create_dir_all(folder).with_context(unwritable)?;
    }
    let mut sources = Sources::watch(&directory, cofferdam_author::is_source, host::operator())?;
    let shown = component.display().to_string();
    print::note(&format!(
        "building {shown}; it is served when it is built, and built again when a source changes"
    ));
    let first_build = FirstBuild::new(component.clone());
    serve_args.plugins.plugins.push(shown);
    let served_build = first_build.clone();
    let recipe =
        Recipe { directory, output: Some(component.clone()), keep_names: true, is_verbose: false };
    // The task only builds. The server loads the component: it waits for the first build and then
    // watches the file.
    let building = tokio::spawn(async move {
        loop {
            let built = build(recipe.clone()).await;
            let what_is_there =
                if first_build.is_built() { "; the previous build stays in use" } else { "" };
            if let Err(error) = &built {
                print::note(&format!("not built{what_is_there}: {error:#}"));
            }
            first_build.end(built.is_ok());
            // A failed build is repeated only when a source has changed.
            let builds_again = tokio::select! {
                is_noticed = sources.changed() => is_noticed,
                () = removal(&component), if built.is_ok() => true,
            };
            if !builds_again {
                return;
            }
        }
    });
    let served = serve::serve(global, serve_args, Some(served_build)).await;
    building.abort();
    served
}

/// Waits until the component is removed.
async fn removal(component: &Path) {
    while component.exists() {
        tokio::time::sleep(CHECK_INTERVAL).await;
    }
}

async fn build(recipe: Recipe) -> anyhow::Result<()> {
    tokio::task::spawn_blocking(move || rebuild::build(&recipe)).await??;
    Ok(())
}
