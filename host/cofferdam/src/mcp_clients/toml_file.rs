//! Servers in a TOML file: `[mcp_servers.NAME]`, the format of Codex. Comments and order are
//! preserved.

use toml_edit::{Array, DocumentMut, Item};

use super::ServerEntry;
use crate::config::edit::{set, table};
use crate::error::Context as _;
use crate::{Error, Result};

/// Returns the content of the file with the server added.
pub(super) fn with_entry(text: &str, entry: &ServerEntry) -> Result<String> {
    let mut document = parse(text)?;
    let is_there =
        document.get("mcp_servers").is_some_and(|servers| servers.get(&entry.name).is_some());
    let server = table(document.as_table_mut(), &["mcp_servers", &entry.name])?;
    if is_there {
        entry.check_same_program(server.get("command").and_then(|command| command.as_str()))?;
    }
    let known = server.get("args").and_then(|arguments| arguments.as_array());
    let known: Option<Vec<_>> =
        known.and_then(|words| words.iter().map(|word| word.as_str()).collect());
    // An equal list is not replaced, because it may contain comments.
    let is_known = known.is_some_and(|known| known.iter().eq(entry.arguments.iter()));
    if server.get("command").and_then(|command| command.as_str()) != Some(&entry.command) {
        set(server, "command", entry.command.as_str().into());
    }
    if !is_known {
        set(server, "args", entry.arguments.iter().collect::<Array>().into());
    }
    let server = document.get_mut("mcp_servers").and_then(|servers| servers.get_mut(&entry.name));
    let server = server.context("a table that was made is there")?;
    if let Some(server) = server.as_table_mut() {
        server.set_implicit(false);
    }
    Ok(document.to_string())
}

/// Returns the commands of the servers.
pub(super) fn commands(text: &str) -> Result<Vec<String>> {
    let document = parse(text)?;
    let servers = document.get("mcp_servers").and_then(|servers| servers.as_table_like());
    let servers = servers.into_iter().flat_map(|servers| servers.iter());
    let command = |server: &Item| Some(server.get("command")?.as_str()?.to_owned());
    Ok(servers.filter_map(|(_, server)| command(server)).collect())
}

fn parse(text: &str) -> Result<DocumentMut> {
    text.parse()
        .map_err(|error: toml_edit::TomlError| Error::invalid(format!("it is not TOML: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry() -> ServerEntry {
        let arguments =
            vec!["serve".to_owned(), "--plugin".to_owned(), "t=/t \"1\".wasm".to_owned()];
        ServerEntry { name: "tools".to_owned(), command: "/bin/cofferdam".to_owned(), arguments }
    }

    const NEW: &str = "[mcp_servers.tools]\ncommand = \"/bin/cofferdam\"\nargs = \
        [\"serve\", \"--plugin\", 't=/t \"1\".wasm']\n";

    #[test]
    fn a_server_is_added_and_nothing_else_changes() {
        assert_eq!(with_entry("", &entry()).unwrap(), NEW);
        let before = "# mine\nmodel = \"x\" # the best\n\n[mcp_servers.other]\ncommand = \"npx\"\n";
        let after = with_entry(before, &entry()).unwrap();
        assert!(after.starts_with(before) && after.ends_with(NEW), "{after}");
        assert_eq!(with_entry(&after, &entry()).unwrap(), after);
    }

    #[test]
    fn a_server_that_is_there_keeps_what_a_person_added() {
        let before = "[mcp_servers.tools]\ncommand = \"/old/cofferdam\" # ours\nargs = \
            []\ntool_timeout_sec = 5\n";
        let after = with_entry(before, &entry()).unwrap();
        assert!(
            after.contains("\"/bin/cofferdam\" # ours") && after.contains("tool_timeout_sec = 5"),
            "{after}"
        );
        let other = "[mcp_servers.tools]\ncommand = \"npx\"\n";
        let refused = with_entry(other, &entry()).unwrap_err().to_string();
        assert!(refused.contains("`tools` is another server there (npx)"), "{refused}");
        assert!(matches!(with_entry("a = ", &entry()), Err(Error::Invalid(_))));
    }
}
