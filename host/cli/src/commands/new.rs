//! `cofferdam new`: creates a plugin project.

use cofferdam_author::{CreateError, create};

use crate::args::NewArgs;
use crate::exit::{Exit, UsageError};
use crate::print;

pub(crate) fn run(args: &NewArgs) -> anyhow::Result<Exit> {
    let created = create(&args.path, args.lang).map_err(|error| match error {
        CreateError::Name(_) | CreateError::NameOfSdk(_) | CreateError::Exists(_) => {
            UsageError(error.to_string()).into()
        }
        error => anyhow::Error::from(error),
    })?;
    let directory = created.directory.display();
    let mut text = format!("{directory}: a plugin in {}", args.lang);
    for file in &created.files {
        text.push_str("\n  ");
        text.push_str(file);
    }
    print::result(&text)?;
    let mut commands = vec![format!("cd {directory}")];
    commands.extend(args.lang.setup_commands().iter().map(|command| (*command).to_owned()));
    commands.extend([
        "cofferdam build".to_owned(),
        "cofferdam test".to_owned(),
        format!("cofferdam call greet '{{\"name\":\"Ada\"}}' --plugin dist/{}.wasm", name(args)),
    ]);
    print::note(&format!("\nNext:\n  {}", commands.join("\n  ")));
    Ok(Exit::Ok)
}

fn name(args: &NewArgs) -> std::borrow::Cow<'_, str> {
    args.path.file_name().unwrap_or_default().to_string_lossy()
}
