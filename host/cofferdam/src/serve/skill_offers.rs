//! Offers skills to MCP clients in addition to their tools: files as resources,
//! `skill://NAME/SKILL.md` and `skill://NAME/path`, and each skill as a prompt, which the user
//! chooses.

use std::sync::Arc;

use async_trait::async_trait;
use cofferdam_mcp::{ListedResource, PromptOffer, ResourceSource};
use cofferdam_skills::{Skill, SkillTools};
use cofferdam_tool::declaration::Declaration;
use cofferdam_tool::output::ResourceBody;
use cofferdam_tool::{
    CallContext, Completion, Outcome, Output, ToolCall, ToolDefinition, ToolError, ToolName,
    ToolSource,
};
use percent_encoding::{percent_decode_str, utf8_percent_encode};

use super::store_resources::ESCAPED;
use crate::error::Context as _;
use crate::media_type::media_type;

/// Prefix of all URIs.
const PREFIX: &str = "skill://";
/// Name of the resource with the main instructions of a skill.
const WHOLE: &str = "SKILL.md";
/// Prefix of tools that produce prompts. Clients never see or call a tool under such a name.
const PROMPT_TOOL: &str = "skill.";

/// Files of skills as resources. Like the files of stores, the client's user reads them, not the
/// model.
pub(super) struct SkillResources(pub(super) Arc<SkillTools>);

#[async_trait]
impl ResourceSource for SkillResources {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn prefix(&self) -> &str {
        PREFIX
    }

    async fn list(&self, count_max: usize) -> Vec<ListedResource> {
        let files = self.0.skills().skills().iter().flat_map(|skill| {
            std::iter::once(WHOLE)
                .chain(skill.resources())
                .map(|resource| listed(skill, resource))
                .collect::<Vec<_>>()
        });
        files.take(count_max).collect()
    }

    async fn read(&self, uri: &str) -> Option<(Option<String>, ResourceBody)> {
        let (skill, resource) = uri.strip_prefix(PREFIX)?.split_once('/')?;
        let resource = percent_decode_str(resource).decode_utf8().ok()?;
        // The name of a skill is not percent-decoded, so each resource has one URI.
        let skill = self.0.skills().skills().iter().find(|known| known.name() == skill)?;
        let text = if resource == WHOLE {
            self.0.loaded(skill.name()).await?
        } else {
            skill.resources().contains(&&*resource).then_some(())?;
            self.0.resource(skill.name(), &resource).await?
        };
        let media_type = media_type(&resource).unwrap_or("text/plain").to_owned();
        Some((Some(media_type), ResourceBody::Text(text)))
    }
}

fn listed(skill: &Skill, resource: &str) -> ListedResource {
    let path = utf8_percent_encode(resource, ESCAPED);
    ListedResource {
        uri: format!("{PREFIX}{}/{path}", skill.name()),
        name: format!("{}/{resource}", skill.name()),
        media_type: media_type(resource).map(str::to_owned),
        bytes: None,
    }
}

/// Tools that produce prompts, because the server makes every prompt from a tool. Each returns the
/// same as `load_skill` for one skill.
pub(super) struct SkillPrompts {
    tools: Arc<SkillTools>,
    definitions: Arc<[Arc<ToolDefinition>]>,
}

impl SkillPrompts {
    /// Creates the prompts of all skills except those whose name `is_taken`. Those get no tool
    /// either, because a tool without a prompt would be listed like any other tool.
    pub(super) fn new(
        tools: &Arc<SkillTools>,
        is_taken: impl Fn(&str) -> bool,
    ) -> crate::Result<Self> {
        let definition = |skill: &Skill| {
            let name = format!("{PROMPT_TOOL}{}", skill.name());
            Declaration::new(name, skill.description(), r#"{"type":"object"}"#)
                .compile()
                .map(Arc::new)
        };
        let skills = tools.skills().skills().iter().filter(|skill| !is_taken(skill.name()));
        let definitions = skills.map(definition).collect::<Result<_, _>>();
        let definitions = definitions.context("the prompts of skills are invalid")?;
        Ok(Self { tools: Arc::clone(tools), definitions })
    }

    /// Returns the prompts, each with the name of its skill.
    pub(super) fn offers(&self) -> Vec<PromptOffer> {
        let offer = |tool: &Arc<ToolDefinition>| {
            let tool = tool.name.as_str();
            let name = tool.strip_prefix(PROMPT_TOOL)?.to_owned();
            Some(PromptOffer { tool: tool.to_owned(), name })
        };
        self.definitions.iter().filter_map(offer).collect()
    }
}

#[async_trait]
impl ToolSource for SkillPrompts {
    /// Returns the name of the skill tools' source, so that callers with access to those may also
    /// use these prompts.
    fn name(&self) -> &str {
        self.tools.name()
    }

    fn definitions(&self) -> Arc<[Arc<ToolDefinition>]> {
        Arc::clone(&self.definitions)
    }

    fn supports_dry_run(&self, _: &ToolName) -> bool {
        true
    }

    async fn invoke(&self, call: ToolCall<'_>, context: &CallContext) -> Completion {
        let skill = call.tool.name.as_str().strip_prefix(PROMPT_TOOL).unwrap_or_default();
        let outcome = tokio::select! {
            biased;
            () = context.cancelled() => Outcome::Cancelled,
            loaded = self.tools.loaded(skill) => match loaded {
                Some(text) => Outcome::Ok(Output::Value(text.into())),
                None => Outcome::Error(ToolError::host("SkillNotFound")),
            },
        };
        let mut completion = Completion::ended(outcome, context);
        completion.record.tool = Some(call.tool.name.clone());
        completion
    }
}
