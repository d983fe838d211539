//! `cofferdam approve`: accepts a plugin as it is now.

use super::grant::load;
use crate::args::{ApproveArgs, Global};
use crate::exit::{ConsentError, Exit};
use crate::pins::{Compared, Pins, asks};
use crate::{ask, print};

pub(crate) async fn run(global: &Global, args: ApproveArgs) -> anyhow::Result<Exit> {
    let plugin = load(global, &args.config, &args.plugin).await?;
    let mut pins = Pins::of_config_ambient(&args.config)?;
    let name = &args.plugin;
    match pins.compare(&plugin) {
        Compared::Same => {
            print::note(&format!("`{name}` is what was accepted"));
            return Ok(Exit::Ok);
        }
        Compared::New => {
            let digest = &plugin.info().identity.digest;
            print::result(&format!(
                "`{name}` is new: {digest}\nasks for:\n  {}",
                asks(plugin.asked()).join("\n  ")
            ))?;
        }
        Compared::Changed(difference) if args.full => print::result(&difference.full())?,
        Compared::Changed(difference) => {
            print::result(&difference.short())?;
            if difference.is_cut() {
                print::note("  --full shows all of it");
            }
        }
    }
    let is_accepted = args.yes || (ask::is_possible() && ask::yes(&format!("Accept `{name}` like this?")));
    if !is_accepted {
        return Err(ConsentError(format!(
            "nothing was accepted{}; pass --yes to accept it without a question",
            ask::why_unanswered()
        ))
        .into());
    }
    pins.accept(&plugin);
    pins.save()?;
    print::note(&format!("accepted; written to {}", pins.path().display()));
    Ok(Exit::Ok)
}
