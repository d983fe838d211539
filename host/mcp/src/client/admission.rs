//! Which tools of a server are admitted, and under which names (`MCP-11`, `MCP-12`).

use std::collections::BTreeSet;

use crate::client::prefixed_name;

/// What a person says about the tools of one server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Admission {
    /// Remote names, as the server writes them; `None` admits all.
    pub allowed_tools: Option<Vec<String>>,
    /// Stands before the names here.
    pub prefix: Option<String>,
}

/// A tool that is admitted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Admitted {
    /// What the server calls it.
    pub remote: String,
    /// What it is called here.
    pub local: String,
}

/// Two tools would have one name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("Duplicate tool name '{0}'. Tool names must be unique.")]
pub struct DuplicateName(pub String);

impl Admission {
    /// The admitted ones of the tools that a server has, in its order.
    ///
    /// # Errors
    /// The first name that two of them would have.
    pub fn admit<'a>(
        &self,
        remote_names: impl IntoIterator<Item = &'a str>,
    ) -> Result<Vec<Admitted>, DuplicateName> {
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
            admitted.push(Admitted { remote: remote.to_owned(), local });
        }
        Ok(admitted)
    }

    /// The allowed names that the server does not have, for the log.
    #[must_use]
    pub fn missing(&self, remote_names: &[&str]) -> Vec<&str> {
        let allowed = self.allowed_tools.iter().flatten().map(String::as_str);
        allowed.filter(|name| !remote_names.contains(name)).collect()
    }
}
