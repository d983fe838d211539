//! Conversion of call outcomes to MCP results (`MCP-37`).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cofferdam_tool::outcome::ModelView;
use cofferdam_tool::output::ResourceBody;
use cofferdam_tool::{CallRecord, Completion, Content, Output, RefusedCall};
use rmcp::model::{AudioContent, CallToolResult, ContentBlock, Resource, ResourceContents};
use serde_json::Value;

use super::catalog::CatalogEntry;
use super::grants::Grantor;
use super::principal::Principal;
use super::receipt::{self, Receipts};
use super::result_store::{ResultStore, SCHEME};

/// Maximum number of refusals that a result lists.
const REFUSALS_SHOWN_MAX: usize = 5;

/// Converts outcomes to results for one principal.
pub(super) struct ResultBuilder<'a> {
    pub(super) keep: &'a ResultStore,
    pub(super) principal: &'a Principal,
    /// Maximum size of the text content of a result, in bytes.
    pub(super) text_bytes_max: usize,
    pub(super) receipts: Receipts,
    pub(super) grantor: Option<&'a dyn Grantor>,
}

impl ResultBuilder<'_> {
    /// Returns the result of a completed call, or `None` if the caller has abandoned it.
    pub(super) fn completion(
        &self,
        completion: Completion,
        entry: &CatalogEntry,
    ) -> Option<CallToolResult> {
        let Completion { outcome, record } = completion;
        for failure in &record.store_failures {
            tracing::warn!(call_id = %record.call_id, "{failure}");
        }
        let mut result = self.shown(outcome.into_shown()?);
        if result.is_error == Some(true) {
            result.content.extend(self.refusals(&record, &entry.source));
        }
        if record.is_dry_run {
            let meta = result.meta.get_or_insert_default();
            meta.insert(receipt::DRY_RUN.to_owned(), receipt::dry_run(&record));
        }
        if let Some(receipt) = self.receipts.of(&record, entry.policy_digest()) {
            let meta = result.meta.get_or_insert_default();
            meta.insert(receipt::KEY.to_owned(), receipt);
        }
        Some(result)
    }

    /// Lists the permissions that the call was refused, and how to grant them, next to the
    /// resulting error. If it was refused none, the ones that its source asks for and does not have
    /// may be the reason: a store that is not mounted looks like a missing file to a tool.
    fn refusals(&self, record: &CallRecord, source: &str) -> Option<ContentBlock> {
        let mut permissions: Vec<_> =
            record.refused.iter().map(|refusal| refusal.capability.to_string()).collect();
        if permissions.is_empty() {
            let missing = self.grantor.map(|grantor| grantor.not_granted(source));
            permissions = missing.into_iter().flatten().map(|missing| missing.permission).collect();
        }
        let lines: Vec<_> = permissions
            .iter()
            .take(REFUSALS_SHOWN_MAX)
            .map(|permission| {
                let how = self.grantor.and_then(|grantor| grantor.how_to_grant(source, permission));
                format!("Not granted: {permission}. {}", how.unwrap_or_default())
                    .trim_end()
                    .to_owned()
            })
            .collect();
        (!lines.is_empty()).then(|| ContentBlock::text(lines.join("\n")))
    }

    fn shown(&self, shown: ModelView) -> CallToolResult {
        if shown.is_error {
            return CallToolResult::error(vec![ContentBlock::text(shown.output.into_text())]);
        }
        match shown.output {
            // The text content repeats the structured value; clients show or ignore it.
            Output::Value(value @ Value::Object(_)) => {
                let mut result = CallToolResult::success(self.text(value.to_string()));
                result.structured_content = Some(value);
                result
            }
            value @ Output::Value(_) => CallToolResult::success(self.text(value.into_text())),
            Output::Contents(contents) => CallToolResult::success(
                contents.into_iter().flat_map(|content| self.blocks(content)).collect(),
            ),
        }
    }

    fn blocks(&self, content: Content) -> Vec<ContentBlock> {
        match content {
            Content::Text(text) => self.text(text),
            Content::Json(value) => self.text(Output::Value(value).into_text()),
            other => vec![block(other)],
        }
    }

    /// Returns a string as content, or its beginning and a link to all of it.
    fn text(&self, text: String) -> Vec<ContentBlock> {
        if text.len() <= self.text_bytes_max {
            return vec![ContentBlock::text(text)];
        }
        let text = text.as_str();
        let end =
            (0..=self.text_bytes_max).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        let beginning = text.get(..end).unwrap_or_default();
        let Some(uri) = self.keep.put(self.principal.name(), text) else {
            let note = format!("… cut here: the result has {} bytes", text.len());
            return vec![ContentBlock::text(beginning), ContentBlock::text(note)];
        };
        let note = format!(
            "… cut here: the result has {} bytes; all of it can be read as the resource {uri}",
            text.len()
        );
        let mut link = Resource::new(uri, "whole result").with_mime_type("text/plain");
        link.size = u64::try_from(text.len()).ok();
        vec![
            ContentBlock::text(beginning),
            ContentBlock::text(note),
            ContentBlock::resource_link(link),
        ]
    }
}

/// Converts one item without shortening it.
pub(super) fn block(content: Content) -> ContentBlock {
    match content {
        Content::Text(text) => ContentBlock::text(text),
        Content::Json(value) => ContentBlock::text(Output::Value(value).into_text()),
        Content::Blob { media_type, data } => {
            let data = STANDARD.encode(data);
            if media_type.starts_with("image/") {
                ContentBlock::image(data, media_type)
            } else if media_type.starts_with("audio/") {
                ContentBlock::Audio(AudioContent::new(data, media_type))
            } else {
                ContentBlock::resource(
                    ResourceContents::blob(data, format!("{SCHEME}inline"))
                        .with_mime_type(media_type),
                )
            }
        }
        Content::Resource { uri, media_type, body } => {
            ContentBlock::resource(contents(uri, media_type, body))
        }
        Content::Link { uri, name, media_type } => {
            let mut link = Resource::new(uri, name);
            link.mime_type = media_type;
            ContentBlock::resource_link(link)
        }
        _ => ContentBlock::text(""),
    }
}

/// Converts the contents of a resource to their MCP form.
pub(super) fn contents(
    uri: String,
    media_type: Option<String>,
    body: ResourceBody,
) -> ResourceContents {
    match body {
        ResourceBody::Text(text) => {
            ResourceContents::TextResourceContents { uri, mime_type: media_type, text, meta: None }
        }
        ResourceBody::Blob(data) => {
            let blob = STANDARD.encode(data);
            ResourceContents::BlobResourceContents { uri, mime_type: media_type, blob, meta: None }
        }
    }
}

/// Returns the result of a call that was not started. Its message lets the model correct itself.
pub(super) fn refused(refused: &RefusedCall) -> CallToolResult {
    error(match refused {
        RefusedCall::UnknownTool { name, .. } => unknown(name, &[]),
        other => other.to_string(),
    })
}

/// Returns the message for a tool that does not exist, or that this client may not use. It may
/// belong to one of the `missing` sources.
pub(super) fn unknown(name: &str, missing: &[&str]) -> String {
    if missing.is_empty() {
        return format!("Tool {name} not found");
    }
    format!(
        "Tool {name} not found; these sources of tools are not available at the moment: {}",
        missing.join(", ")
    )
}

/// Returns an error result.
pub(super) fn error(text: impl Into<String>) -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text(text)])
}

/// Returns a success result with structured content.
pub(super) fn structured(value: Value) -> CallToolResult {
    let mut result = CallToolResult::success(vec![ContentBlock::text(value.to_string())]);
    result.structured_content = Some(value);
    result
}
