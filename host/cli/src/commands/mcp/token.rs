//! `cofferdam mcp token`: creates a token and prints its entry for the configuration.

use crate::args::McpTokenArgs;
use crate::exit::Exit;
use crate::print;

pub(super) fn run(args: &McpTokenArgs) -> anyhow::Result<Exit> {
    let token = cofferdam_mcp::new_token()?;
    print::result(&token)?;
    print::note("this is shown once; into the configuration belongs:");
    print::note(&format!(
        "[serve.tokens.{}]\ndigest = \"{}\"",
        args.name,
        cofferdam_mcp::digest(&token)
    ));
    print::note("# sources = [\"PLUGIN\"]   # leaves only these to the caller");
    Ok(Exit::Ok)
}
