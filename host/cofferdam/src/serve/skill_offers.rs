//! Skills for MCP clients beside their tools: files as resources, `skill://NAME/SKILL.md` and
//! `skill://NAME/path`, and each skill as a prompt, which the operator chooses.

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

use super::store_resources::{ESCAPED, media_type};
use crate::error::Context as _;

/// Prefix of all addresses.
const PREFIX: &str = "skill://";
/// The resource that a skill as a whole is.
const WHOLE: &str = "SKILL.md";
/// Prefix of the names of tools that make prompts. No client sees or calls it under that name.
const PROMPT_TOOL: &str = "skill.";

/// The files of skills. Who reads them is the client's own person, as with the files of stores.
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
        // An address is written in one way alone.
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

/// A tool for each of some skills that gives what `load_skill` gives: the server makes prompts of
/// tools.
pub(super) struct SkillPrompts {
    tools: Arc<SkillTools>,
    definitions: Arc<[Arc<ToolDefinition>]>,
}

impl SkillPrompts {
    /// Prompts of all skills but those whose name `is_taken`: for them there is no tool either, for
    /// one that makes no prompt is a tool like any other.
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

    /// The prompts, each under the name of its skill.
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
    /// Callers that may use the tools of skills may use these.
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
            () = context.given_up() => Outcome::Cancelled,
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
