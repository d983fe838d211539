//! `cofferdam mcp login` and `logout`: get and delete the tokens for a remote server.

use cofferdam_mcp::client::{HttpEndpoint, ServerEndpoint};
use cofferdam_tool::ToolSource as _;

use crate::args::McpServerArgs;
use crate::exit::Exit;
use crate::{host, print};
use cofferdam::config::ConfigFile;
use cofferdam::granting::Values;
use cofferdam::servers::{self, ServerSpec};

pub(super) async fn login(args: &McpServerArgs) -> anyhow::Result<Exit> {
    let (spec, _) = server(args, Values::Read)?;
    let server = servers::connect(&spec).await?;
    let tools = print::counted(server.definitions().len(), "tool");
    print::note(&format!("the server `{}` takes the login; it offers {tools}", args.server));
    Ok(Exit::Ok)
}

pub(super) fn logout(args: &McpServerArgs) -> anyhow::Result<Exit> {
    let (_, endpoint) = server(args, Values::Leave)?;
    endpoint.forget_credentials()?;
    print::note(&format!(
        "the tokens for `{}` are deleted here; the authorization server is not informed",
        args.server
    ));
    Ok(Exit::Ok)
}

/// Returns a server that supports logging in.
fn server(args: &McpServerArgs, values: Values) -> anyhow::Result<(ServerSpec, HttpEndpoint)> {
    let file = ConfigFile::read_ambient(&args.config)?;
    let Some(table) = file.config.servers.get(&args.server) else {
        return Err(servers::unknown(&file, &args.server).into());
    };
    if table.oauth.is_none() {
        let header = format!("[servers.{}", args.server);
        let message =
            format!("cannot log in to `{0}`: there is no [servers.{0}.oauth]", args.server);
        return Err(file.error_in_table(&header, message).into());
    }
    let spec = servers::of_name(&file, &args.server, values, &host::login_operator())?;
    match spec.settings.endpoint.clone() {
        ServerEndpoint::Http(endpoint) => Ok((spec, endpoint)),
        ServerEndpoint::Command(_) => Err(servers::unknown(&file, &args.server).into()),
    }
}
