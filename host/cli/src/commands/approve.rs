//! `cofferdam approve`: accepts the current state of a plugin or a server.

use super::grant::load;
use super::replay;
use crate::args::{ApproveArgs, Global};
use crate::exit::{ConsentError, Exit, UsageError};
use crate::{ask, host, print};
use cofferdam::config::ConfigFile;
use cofferdam::difference::DefinitionDiff;
use cofferdam::granting::Values;
use cofferdam::pins::{PinComparison, Pins, permission_strings};
use cofferdam::{compose, servers};

pub(crate) async fn run(global: &Global, args: ApproveArgs) -> anyhow::Result<Exit> {
    let config = args.config.as_deref().ok_or_else(|| {
        UsageError("name the configuration: cofferdam approve NAME --config FILE".to_owned())
    })?;
    let file = ConfigFile::read_ambient(config)?;
    if file.config.servers.contains_key(&args.plugin) {
        return server(&file, &args).await;
    }
    let plugin = load(global, config, &args.plugin).await?;
    let mut pins = Pins::of_config_ambient(config)?;
    let name = &args.plugin;
    match pins.compare(&plugin) {
        PinComparison::Same => {
            print::note(&format!("`{name}` is what was accepted"));
            return Ok(Exit::Ok);
        }
        PinComparison::New => {
            let digest = &plugin.info().identity.digest;
            print::result(&format!(
                "`{name}` is new: {digest}\nasks for:\n  {}",
                permission_strings(plugin.requested()).join("\n  ")
            ))?;
        }
        PinComparison::Changed(difference) => {
            show(&difference, args.full)?;
            let component = compose::spec_of_config(&file, name, Values::Leave)?.path;
            match replay::of_changed_plugin(global, &file, name, &component).await {
                Ok(Some(summary)) => print::result(&summary)?,
                Ok(None) => {}
                // The difference above is what is to be accepted.
                Err(error) => {
                    print::note(&format!("note: recorded calls were not replayed: {error:#}"));
                }
            }
        }
    }
    check_accepted(&args)?;
    pins.accept(&plugin);
    pins.save()?;
    print::note(&format!("accepted; written to {}", pins.path().display()));
    Ok(Exit::Ok)
}

/// Accepts the current definitions of a server.
async fn server(file: &ConfigFile, args: &ApproveArgs) -> anyhow::Result<Exit> {
    let name = &args.plugin;
    let mut spec = servers::of_name(file, name, Values::Read, &host::operator())?;
    let pins = spec.pins.take();
    // The first connection to a new server stores its pin.
    servers::connect(&spec).await?;
    let Some(pins) = pins else {
        let message =
            format!("`{name}` is not compared with what was accepted: it has `pin = false`");
        return Err(UsageError(message).into());
    };
    let Some(change) = pins.change() else {
        print::note(&format!("`{name}` is what was accepted"));
        return Ok(Exit::Ok);
    };
    show(&change.difference, args.full)?;
    check_accepted(args)?;
    print::note(&format!("accepted; written to {}", pins.accept(&change.statements)?.display()));
    Ok(Exit::Ok)
}

pub(super) fn show(difference: &DefinitionDiff, is_full: bool) -> anyhow::Result<()> {
    if is_full {
        print::result(&difference.full())?;
        return Ok(());
    }
    print::result(&difference.short())?;
    if difference.is_cut() {
        print::note("  --full shows all of it");
    }
    Ok(())
}

fn check_accepted(args: &ApproveArgs) -> Result<(), ConsentError> {
    let question = format!("Accept `{}` like this?", args.plugin);
    if args.yes || (ask::is_possible() && ask::confirm(&question)) {
        return Ok(());
    }
    Err(ConsentError(format!(
        "nothing was accepted{}; pass --yes to accept it without a question",
        ask::why_unanswered()
    )))
}
