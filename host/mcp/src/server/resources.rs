//! Resources: the output of tools under an address, and the contents of other sources.

use async_trait::async_trait;
use cofferdam_tool::output::ResourceBody;
use cofferdam_tool::{Content, Output};
use rmcp::model::{JsonObject, Resource, ResourceContents, ResourceTemplate};

use super::answer::contents;
use super::catalog::CatalogEntry;

/// Tool that is offered as a resource.
#[derive(Debug, Clone)]
pub struct ResourceOffer {
    /// Address. `{name}` in it matches one segment without `/`, which becomes the argument `name`
    /// of the tool.
    pub uri: String,
    /// Name of the tool that provides the contents.
    pub tool: String,
    /// Media type of the contents, if it is the same for all of them.
    pub media_type: Option<String>,
}

/// Resource that can be read.
#[derive(Debug, Clone)]
pub struct ListedResource {
    /// Address.
    pub uri: String,
    /// Display name.
    pub name: String,
    /// Media type of the contents.
    pub media_type: Option<String>,
    /// Size in bytes.
    pub bytes: Option<u64>,
}

/// Source of resources that no tool provides, such as the files of a store.
#[async_trait]
pub trait ResourceSource: Send + Sync {
    /// Returns the name by which a policy allows or withholds the source.
    fn name(&self) -> &str;

    /// Returns the prefix of all addresses of the source.
    fn prefix(&self) -> &str;

    /// Lists the readable resources, at most `count_max` of them.
    async fn list(&self, count_max: usize) -> Vec<ListedResource>;

    /// Returns the media type and contents at an address, or `None` if there is nothing there that
    /// may be read.
    async fn read(&self, uri: &str) -> Option<(Option<String>, ResourceBody)>;
}

impl ResourceOffer {
    /// Returns true if the offer covers many addresses.
    pub(super) fn is_template(&self) -> bool {
        self.uri.contains('{')
    }

    /// Returns the tool's arguments for an address, or `None` if the address does not match the
    /// offer.
    pub(super) fn arguments(&self, uri: &str) -> Option<JsonObject> {
        let mut arguments = JsonObject::new();
        let (mut pattern, mut rest) = (self.uri.as_str(), uri);
        while let Some((before, after)) = pattern.split_once('{') {
            rest = rest.strip_prefix(before)?;
            let (name, after) = after.split_once('}')?;
            let next = after.chars().next().filter(|c| *c != '{');
            let end = rest.find(|c| Some(c) == next || c == '/').unwrap_or(rest.len());
            let (value, remaining) = rest.split_at_checked(end)?;
            if value.is_empty() {
                return None;
            }
            arguments.insert(name.to_owned(), value.into());
            (pattern, rest) = (after, remaining);
        }
        (pattern == rest).then_some(arguments)
    }

    pub(super) fn resource(&self, entry: &CatalogEntry) -> Resource {
        let mut resource = Resource::new(self.uri.clone(), name(entry));
        resource.description = Some(entry.definition.description.clone());
        resource.mime_type.clone_from(&self.media_type);
        resource
    }

    pub(super) fn template(&self, entry: &CatalogEntry) -> ResourceTemplate {
        let mut template = ResourceTemplate::new(self.uri.clone(), name(entry));
        template.description = Some(entry.definition.description.clone());
        template.mime_type.clone_from(&self.media_type);
        template
    }

    /// Converts a tool's output to the contents of an address.
    pub(super) fn contents(&self, uri: &str, output: Output) -> Vec<ResourceContents> {
        let text = |text: String| {
            contents(uri.to_owned(), self.media_type.clone(), ResourceBody::Text(text))
        };
        match output {
            Output::Value(value) => vec![text(Output::Value(value).text())],
            Output::Contents(items) => items
                .into_iter()
                .map(|item| match item {
                    Content::Blob { media_type, data } => {
                        contents(uri.to_owned(), Some(media_type), ResourceBody::Blob(data))
                    }
                    Content::Resource { media_type, body, .. } => {
                        contents(uri.to_owned(), media_type, body)
                    }
                    Content::Link { uri: link, .. } => text(link),
                    Content::Text(item) => text(item),
                    Content::Json(value) => text(Output::Value(value).text()),
                    _ => text(String::new()),
                })
                .collect(),
        }
    }
}

fn name(entry: &CatalogEntry) -> String {
    entry.definition.title.clone().unwrap_or_else(|| entry.definition.name.to_string())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn offer(uri: &str) -> ResourceOffer {
        ResourceOffer { uri: uri.to_owned(), tool: "t".to_owned(), media_type: None }
    }

    #[test]
    fn an_address_gives_the_arguments_of_its_template() {
        let offer = offer("test://template/{id}/data/{part}.txt");
        let arguments = offer.arguments("test://template/123/data/é x.txt").unwrap();
        assert_eq!(serde_json::Value::Object(arguments), json!({"id": "123", "part": "é x"}));
        for other in [
            "test://template/1/2/data/a.txt",
            "test://template//data/a.txt",
            "test://template/1/data/a",
            "",
            "test://template/1/data/a.txt/b",
        ] {
            assert_eq!(offer.arguments(other), None, "{other}");
        }
    }

    #[test]
    fn an_address_without_a_template_is_itself_alone() {
        assert_eq!(offer("a://b").arguments("a://b"), Some(JsonObject::new()));
        assert_eq!(offer("a://b").arguments("a://bc"), None);
        assert_eq!(offer("a://{b").arguments("a://{b"), None);
    }
}
