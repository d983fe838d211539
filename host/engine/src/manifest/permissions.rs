//! `[permissions]`: permissions that a manifest asks for.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::str::FromStr;

use cofferdam_tool::permission::{ClockPrecision, Permissions};
use cofferdam_tool::{FileAccess, MountName, Permission, ToolName};
use serde::Deserialize;
use toml::Spanned;

/// Unchecked table.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub(super) struct PermissionsTable {
    files: BTreeMap<Spanned<String>, FileAccess>,
    http: Vec<Spanned<String>>,
    sockets: Vec<Spanned<String>>,
    env: Vec<Spanned<String>>,
    config: Vec<Spanned<String>>,
    secrets: Vec<Spanned<String>>,
    clock: ClockPrecision,
    random: Option<bool>,
    tools: Vec<Spanned<String>>,
    ask: Vec<Spanned<String>>,
}

/// Position and message of an error.
type PositionedMessage = (usize, String);

impl PermissionsTable {
    /// Parses all entries.
    pub(super) fn read(self) -> Result<Permissions, PositionedMessage> {
        let mut permissions = Permissions {
            http: all(&self.http)?,
            sockets: all(&self.sockets)?.into_iter().collect(),
            ask: all(&self.ask)?.into_iter().collect(),
            clock: self.clock,
            random: self.random.unwrap_or(true),
            ..Permissions::default()
        };
        for (name, access) in self.files {
            if name.get_ref() == "*" {
                permissions.files_any = Some(access);
            } else {
                let mount =
                    MountName::new(name.get_ref().as_str()).map_err(|e| positioned(&name, e))?;
                permissions.files.insert(mount, access);
            }
        }
        permissions.env = names(&self.env, "env")?;
        permissions.config = names(&self.config, "config")?;
        permissions.secrets = names(&self.secrets, "secret")?;
        for name in &self.tools {
            let tool = ToolName::new(name.get_ref().as_str()).map_err(|e| positioned(name, e))?;
            permissions.tools.insert(tool);
        }
        Ok(permissions)
    }
}

fn positioned<T: Display>(value: &Spanned<String>, reason: T) -> PositionedMessage {
    (value.span().start, format!("`{}` {reason}", value.get_ref()))
}

fn all<T: FromStr<Err: Display>>(texts: &[Spanned<String>]) -> Result<Vec<T>, PositionedMessage> {
    texts
        .iter()
        .map(|text| text.get_ref().parse().map_err(|error| positioned(text, error)))
        .collect()
}

/// Checks names by the rules of one kind of permission.
fn names(texts: &[Spanned<String>], kind: &str) -> Result<BTreeSet<String>, PositionedMessage> {
    let mut names = BTreeSet::new();
    for text in texts {
        match format!("{kind}:{}", text.get_ref()).parse() {
            Ok(Permission::Env(name) | Permission::Config(name) | Permission::Secret(name)) => {
                names.insert(name);
            }
            Ok(_) => {}
            Err(error) => return Err((text.span().start, error.to_string())),
        }
    }
    Ok(names)
}
