//! Resources, templates and prompts of a server, for callers that pass them through.
//!
//! They are rebuilt from the server's lists: only known fields, within limits and without secrets.

use std::collections::{BTreeMap, BTreeSet};

use cofferdam_tool::redact::Redactor;
use rmcp::model::{Prompt, PromptArgument, Resource, ResourceTemplate};
use serde_json::{Map, Value};

use super::PromptListed;
use super::limits::{
    ADDRESS_BYTES_MAX, DESCRIPTION_BYTES_MAX, LISTING_BYTES_MAX, RESOURCES_MAX, TITLE_BYTES_MAX,
    cut,
};
use super::listing::{ListingError, pages};
use super::remote::Remote;

/// Items that a server lists in addition to its tools.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RemoteItems {
    /// Resources.
    pub resources: Vec<Resource>,
    /// Resource templates.
    pub templates: Vec<ResourceTemplate>,
    /// Prompts.
    pub prompts: Vec<Prompt>,
}

impl RemoteItems {
    /// Fetches resources and templates.
    pub(crate) async fn fetch(
        remote: &dyn Remote,
        redactor: Option<&Redactor>,
        left_out: &mut Vec<String>,
    ) -> Result<Self, ListingError> {
        let mut room = LISTING_BYTES_MAX;
        let resources =
            pages(remote, "resources/list", "resources", RESOURCES_MAX, &mut room, left_out)
                .await?;
        let (method, member) = ("resources/templates/list", "resourceTemplates");
        // Not every server with resources supports templates.
        let templates = pages(remote, method, member, RESOURCES_MAX, &mut room, left_out)
            .await
            .unwrap_or_default();
        let clean = |value: Value| match redactor {
            Some(redactor) => redactor.value(value),
            None => value,
        };
        Ok(Self {
            resources: resources
                .into_iter()
                .map(clean)
                .filter_map(|value| resource(&value))
                .collect(),
            templates: templates
                .into_iter()
                .map(clean)
                .filter_map(|value| template(&value))
                .collect(),
            prompts: Vec::new(),
        })
    }
}

impl RemoteItems {
    /// Returns the titles and descriptions of resources and templates by address, for those that
    /// have any.
    pub(crate) fn words(&self) -> BTreeMap<String, Value> {
        let resources =
            self.resources.iter().map(|item| (&item.uri, &item.title, &item.description));
        let templates =
            self.templates.iter().map(|item| (&item.uri_template, &item.title, &item.description));
        let words = resources.chain(templates).filter_map(|(address, title, description)| {
            let title = title.iter().map(|text| ("title", text));
            let words: Map<_, _> = title
                .chain(description.iter().map(|text| ("description", text)))
                .map(|(name, text)| (name.to_owned(), text.as_str().into()))
                .collect();
            (!words.is_empty()).then(|| (address.clone(), Value::Object(words)))
        });
        words.collect()
    }

    /// Removes the titles and descriptions of the items at these addresses.
    pub(crate) fn leave_words_out(&mut self, addresses: &BTreeSet<String>) {
        for item in self.resources.iter_mut().filter(|item| addresses.contains(&item.uri)) {
            (item.title, item.description) = (None, None);
        }
        for item in self.templates.iter_mut().filter(|item| addresses.contains(&item.uri_template))
        {
            (item.title, item.description) = (None, None);
        }
    }
}

fn text(value: &Value, name: &str, bytes_max: usize) -> Option<String> {
    value.get(name).and_then(Value::as_str).map(|text| cut(text, bytes_max).to_owned())
}

/// Returns an address, unless it is too long or has no scheme.
fn address(value: &Value, name: &str) -> Option<String> {
    let address = value.get(name).and_then(Value::as_str)?;
    let is_fit = address.len() <= ADDRESS_BYTES_MAX && address.contains(':');
    is_fit.then(|| address.to_owned())
}

fn resource(value: &Value) -> Option<Resource> {
    let uri = address(value, "uri")?;
    let name = text(value, "name", TITLE_BYTES_MAX).unwrap_or_else(|| uri.clone());
    let mut resource = Resource::new(uri, name);
    resource.title = text(value, "title", TITLE_BYTES_MAX);
    resource.description = text(value, "description", DESCRIPTION_BYTES_MAX);
    resource.mime_type = text(value, "mimeType", TITLE_BYTES_MAX);
    resource.size = value.get("size").and_then(Value::as_u64);
    Some(resource)
}

fn template(value: &Value) -> Option<ResourceTemplate> {
    let uri = address(value, "uriTemplate")?;
    let name = text(value, "name", TITLE_BYTES_MAX).unwrap_or_else(|| uri.clone());
    let mut template = ResourceTemplate::new(uri, name);
    template.title = text(value, "title", TITLE_BYTES_MAX);
    template.description = text(value, "description", DESCRIPTION_BYTES_MAX);
    template.mime_type = text(value, "mimeType", TITLE_BYTES_MAX);
    Some(template)
}

/// Converts a listed prompt to the form in which it is passed through. Its secrets have already
/// been removed.
pub(crate) fn prompt(listed: &PromptListed) -> Prompt {
    let arguments = listed.arguments.iter().flatten().map(|argument| {
        let mut passed = PromptArgument::new(argument.name.as_str());
        passed.description =
            argument.description.as_deref().map(|text| cut(text, DESCRIPTION_BYTES_MAX).to_owned());
        passed.required = argument.required;
        passed
    });
    let arguments: Vec<_> = arguments.collect();
    let description = listed.description.as_deref().map(|text| cut(text, DESCRIPTION_BYTES_MAX));
    let mut prompt = Prompt::new(
        listed.name.as_str(),
        description,
        (!arguments.is_empty()).then_some(arguments),
    );
    prompt.title = listed.title.as_deref().map(|title| cut(title, TITLE_BYTES_MAX).to_owned());
    prompt
}
