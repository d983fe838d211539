//! Admission of a server's tools, and their local names (`MCP-11`, `MCP-12`).

use std::collections::BTreeSet;

use crate::client::prefixed_name;

/// Operator's rules for the tools of one server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Admission {
    /// Remote names of the allowed tools, as the server writes them; `None` admits all.
    pub allowed_tools: Option<Vec<String>>,
    /// Prefix of the local names.
    pub prefix: Option<String>,
}

/// Tool that is admitted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdmittedTool {
    /// Name of the tool on the server.
    pub remote: String,
    /// Name of the tool in this host.
    pub local: String,
}

/// Error for two tools that would get the same name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("Duplicate tool name '{0}'. Tool names must be unique.")]
pub struct DuplicateName(pub String);

impl Admission {
    /// Returns the admitted tools among those of a server, in the server's order.
    ///
    /// # Errors
    /// The first name that two of them would share.
    pub fn admit<'a>(
        &self,
        remote_names: impl IntoIterator<Item = &'a str>,
    ) -> Result<Vec<AdmittedTool>, DuplicateName> {
        let is_allowed = |name: &str| {
            self.allowed_tools
                .as_ref()
                .is_none_or(|allowed| allowed.iter().any(|allowed| allowed == name))
        };
        let (mut admitted, mut taken) = (Vec::new(), BTreeSet::new());
        for remote in remote_names.into_iter().filter(|name| is_allowed(name)) {
            let local = prefixed_name(remote, self.prefix.as_deref());
            if !taken.insert(local.clone()) {
                return Err(DuplicateName(local));
            }
            admitted.push(AdmittedTool { remote: remote.to_owned(), local });
        }
        Ok(admitted)
    }

    /// Returns the allowed names that the server does not have, for the log.
    #[must_use]
    pub fn missing(&self, remote_names: &[&str]) -> Vec<&str> {
        let allowed = self.allowed_tools.iter().flatten().map(String::as_str);
        allowed.filter(|name| !remote_names.contains(name)).collect()
    }
}
