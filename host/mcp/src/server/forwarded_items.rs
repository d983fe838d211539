//! Resources, templates and prompts of remote servers, passed through to clients.
//!
//! Each keeps its address or name if that is free. If another source uses it already, the name of
//! its server is prepended: `docs+file:///a` and `docs_summary`.

use std::collections::BTreeSet;
use std::sync::Arc;

use cofferdam_tool::CallContext;
use rmcp::ErrorData;
use rmcp::model::{
    GetPromptResult, JsonObject, Prompt, ReadResourceResult, Resource, ResourceTemplate,
};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::principal::Principal;
use super::prompts::PromptOffer;
use super::resources::{ResourceOffer, ResourceSource};
use crate::client::{CallError, RemoteItems, RemoteServer, prefixed_name};

/// Item of a remote server, under the name that clients know it by.
pub(super) struct NamedItem<T> {
    server: Arc<RemoteServer>,
    /// Name or address on the remote server.
    remote: String,
    item: T,
}

/// Resources, templates and prompts that remote servers list in addition to their tools.
#[derive(Default)]
pub(super) struct ForwardedItems {
    resources: Vec<NamedItem<Resource>>,
    templates: Vec<NamedItem<ResourceTemplate>>,
    prompts: Vec<NamedItem<Prompt>>,
}

impl<T: Clone> NamedItem<T> {
    fn is_for(&self, principal: &Principal) -> bool {
        principal.may_use(cofferdam_tool::ToolSource::name(self.server.as_ref()))
    }
}

fn of<'a, T: Clone>(
    all: &'a [NamedItem<T>],
    principal: &'a Principal,
) -> impl Iterator<Item = T> + 'a {
    all.iter().filter(|named| named.is_for(principal)).map(|named| named.item.clone())
}

impl ForwardedItems {
    /// Collects the items that `servers` list. Names and addresses of the other arguments are
    /// already taken.
    pub(super) fn new(
        servers: &[Arc<RemoteServer>],
        prompts: &[PromptOffer],
        resources: &[ResourceOffer],
        sources: &[Arc<dyn ResourceSource>],
    ) -> Self {
        let mut prompts: BTreeSet<_> = prompts.iter().map(|prompt| prompt.name.clone()).collect();
        let mut addresses: BTreeSet<_> =
            resources.iter().map(|resource| resource.uri.clone()).collect();
        let is_taken = |uri: &str| sources.iter().any(|source| uri.starts_with(source.prefix()));
        let mut all = Self::default();
        for server in servers {
            let name = cofferdam_tool::ToolSource::name(server.as_ref()).to_owned();
            let RemoteItems { resources, templates, prompts: listed } =
                server.remote_items().as_ref().clone();
            let free = |taken: &mut BTreeSet<String>, own: &str, other: String| {
                let names = [own.to_owned(), other];
                names.into_iter().find(|name| !is_taken(name) && taken.insert(name.clone()))
            };
            for mut item in resources {
                let remote = item.uri.clone();
                let Some(uri) = free(&mut addresses, &remote, format!("{name}+{remote}")) else {
                    continue;
                };
                item.uri = uri;
                all.resources.push(NamedItem { server: Arc::clone(server), remote, item });
            }
            for mut item in templates {
                let remote = item.uri_template.clone();
                let Some(uri) = free(&mut addresses, &remote, format!("{name}+{remote}")) else {
                    continue;
                };
                item.uri_template = uri;
                all.templates.push(NamedItem { server: Arc::clone(server), remote, item });
            }
            for mut item in listed {
                let remote = item.name.clone();
                let other = prefixed_name(&remote, Some(&name));
                let Some(free) = free(&mut prompts, &remote, other) else { continue };
                item.name = free;
                all.prompts.push(NamedItem { server: Arc::clone(server), remote, item });
            }
        }
        all
    }

    pub(super) fn resources<'a>(
        &'a self,
        principal: &'a Principal,
    ) -> impl Iterator<Item = Resource> + 'a {
        of(&self.resources, principal)
    }

    pub(super) fn templates<'a>(
        &'a self,
        principal: &'a Principal,
    ) -> impl Iterator<Item = ResourceTemplate> + 'a {
        of(&self.templates, principal)
    }

    pub(super) fn prompts<'a>(
        &'a self,
        principal: &'a Principal,
    ) -> impl Iterator<Item = Prompt> + 'a {
        of(&self.prompts, principal)
    }

    pub(super) fn has_prompts(&self) -> bool {
        !self.prompts.is_empty()
    }

    /// Reads the resource at an address. Returns `None` if no server has it.
    pub(super) async fn read(
        &self,
        uri: &str,
        principal: &Principal,
        call: &CallContext,
    ) -> Option<Result<ReadResourceResult, ErrorData>> {
        let (server, remote) = self.owner(uri, principal)?;
        let read = server.read_resource(&remote, call).await;
        let result =
            read.map_err(|error| failed(server, &error)).and_then(|result| parsed(server, result));
        Some(result.map(|mut result: ReadResourceResult| {
            result.meta = None;
            result
        }))
    }

    /// Gets a prompt. Returns `None` if no server has it.
    pub(super) async fn prompt(
        &self,
        name: &str,
        arguments: JsonObject,
        principal: &Principal,
        call: &CallContext,
    ) -> Option<Result<GetPromptResult, ErrorData>> {
        let mut prompts = self.prompts.iter().filter(|named| named.is_for(principal));
        let NamedItem { server, remote, .. } = prompts.find(|named| named.item.name == name)?;
        let result = server.get_prompt(remote, arguments, call).await;
        let result = result
            .map_err(|error| failed(server, &error))
            .and_then(|result| parsed(server, result));
        Some(result.map(|mut result: GetPromptResult| {
            result.meta = None;
            result
        }))
    }

    /// Returns the server that owns an address, and the address as that server knows it.
    fn owner(&self, uri: &str, principal: &Principal) -> Option<(&Arc<RemoteServer>, String)> {
        let mut resources = self.resources.iter().filter(|named| named.is_for(principal));
        if let Some(named) = resources.find(|named| named.item.uri == uri) {
            return Some((&named.server, named.remote.clone()));
        }
        let mut templates = self.templates.iter().filter(|named| named.is_for(principal));
        templates.find_map(|named| {
            let template = &named.item.uri_template;
            let (before, _) = template.split_once('{').unwrap_or((template, ""));
            // A template without a scheme would claim the addresses of every server.
            let is_own = before.contains(':') && uri.starts_with(before);
            let added = template.len().saturating_sub(named.remote.len());
            is_own.then(|| Some((&named.server, uri.get(added..)?.to_owned())))?
        })
    }

    /// Returns the items that clients see, for comparison.
    pub(super) fn seen(&self) -> (Vec<&Resource>, Vec<&ResourceTemplate>, Vec<&Prompt>) {
        (
            self.resources.iter().map(|named| &named.item).collect(),
            self.templates.iter().map(|named| &named.item).collect(),
            self.prompts.iter().map(|named| &named.item).collect(),
        )
    }
}

fn failed(server: &RemoteServer, error: &CallError) -> ErrorData {
    let name = cofferdam_tool::ToolSource::name(server);
    match error {
        CallError::Protocol { message, .. } => {
            ErrorData::internal_error(format!("the server `{name}` answers: {message}"), None)
        }
        other => ErrorData::internal_error(format!("the server `{name}`: {other}"), None),
    }
}

fn parsed<T: DeserializeOwned>(server: &RemoteServer, result: Value) -> Result<T, ErrorData> {
    serde_json::from_value(result).map_err(|_| {
        let name = cofferdam_tool::ToolSource::name(server);
        ErrorData::internal_error(format!("the answer of the server `{name}` is malformed"), None)
    })
}
