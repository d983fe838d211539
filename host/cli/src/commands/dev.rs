//! `cofferdam dev`: a project that is served while it is written.

use super::serve;
use crate::args::{DevArgs, Global};
use crate::exit::Exit;
use crate::print;
use crate::rebuild::{self, Recipe, Sources};

pub(crate) async fn run(global: &Global, args: DevArgs) -> anyhow::Result<Exit> {
    let recipe = Recipe { directory: args.directory, output: None, keep_names: true, is_verbose: false };
    let mut sources = Sources::watch(&recipe.directory)?;
    let built = rebuild::build(&recipe)?;
    let component = built.component.display().to_string();
    print::note(&format!("serving {component}, and building it again when a source changes"));
    let mut serve_args = args.serve;
    serve_args.plugins.plugins.push(component);
    // Loading the new component is the server's part, which follows the file.
    let rebuilding = tokio::spawn(async move {
        while sources.changed().await {
            let recipe = recipe.clone();
            match tokio::task::spawn_blocking(move || rebuild::build(&recipe)).await {
                Ok(Ok(_)) => {}
                Ok(Err(error)) => print::note(&format!("not built, what was there before stays: {error:#}")),
                Err(error) => print::note(&format!("not built: {error}")),
            }
        }
    });
    let served = serve::run(global, serve_args).await;
    rebuilding.abort();
    served
}
