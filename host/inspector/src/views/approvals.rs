//! Prompts of running calls: approvals, and forms of tools.

use std::sync::Arc;

use cofferdam_record::UtcTime;
use cofferdam_tool::prompt::{OperatorPrompt, PromptKind, PromptText, WaitingPrompt};
use cofferdam_tool::{Annotations, InputSchema};
use maud::{Markup, html};
use serde_json::Value;

use super::{form, layout};
use crate::assets::{Asset, FORM};
use crate::error::PageError;
use crate::form::FormField;
use crate::prompts::{PromptFeed, PromptRow};
use crate::query::PageQuery;
use crate::text;

/// Maximum bytes of arguments that are shown with line breaks, which make them longer.
const PRETTY_BYTES_MAX: usize = text::PAYLOAD_BYTES_MAX;
/// Maximum characters of a reason for a denial.
const REASON_CHARS_MAX: u32 = 1000;

/// Returns the list of prompts that wait. A script keeps it current.
pub(super) fn list(feed: Option<&PromptFeed>) -> Markup {
    let main = match feed {
        None => html! {
            h1 { "Approvals" }
            p {
                "No host runs with this inspector. " code { "serve" } ", " code { "chat" } " and "
                code { "workflow run" } " show their approvals here with " code { "--inspector" }
                ", and let you answer them with " code { "--inspector=approve" } "."
            }
        },
        Some(feed) => waiting(feed),
    };
    layout::page("Approvals", "/approvals", &[], main)
}

fn waiting(feed: &PromptFeed) -> Markup {
    let rows: Vec<_> =
        feed.prompts.waiting().iter().map(|waiting| PromptRow::new(waiting)).collect();
    let cells = html! {
        @for row in &rows {
            tr data-id=(row.id) {
                td { time datetime=(row.at) { (row.at) } }
                td { a href=(address(&row.id)) { (row.kind) } }
                td { bdi { (row.tool) } }
                td { bdi { (row.source) } }
                td { bdi { (row.caller) } }
            }
        }
    };
    html! {
        h1 { "Approvals" }
        @if !feed.prompts.accepts_answers() { (only_shown()) }
        div #waiting hidden[rows.is_empty()] {
            (layout::table("Waiting", &["Since", "Kind", "Tool", "From", "Caller"], cells))
        }
        p #nothing-waiting hidden[!rows.is_empty()] { "Nothing waits for you." }
    }
}

/// Returns the page of the prompt that the query names. `token` proves that an answer comes from
/// it.
pub(super) fn prompt(
    feed: &PromptFeed,
    query: &PageQuery,
    token: &str,
) -> Result<Markup, PageError> {
    let id = query.value("id");
    if let Some(waiting) = feed.prompts.waiting().iter().find(|waiting| waiting.id == id) {
        return Ok(open(feed, waiting, token));
    }
    let ended = feed.prompts.ended().into_iter().find(|ended| ended.id == id);
    let ended = ended.ok_or(PageError::NotFound)?;
    let main = html! {
        h1 { "Approval" }
        p { "This was " (ended.end) "." }
        p { a href="/approvals" { "All approvals" } }
    };
    Ok(layout::page("Approval", "/approvals", &[], main))
}

fn open(feed: &PromptFeed, waiting: &Arc<WaitingPrompt>, token: &str) -> Markup {
    let prompt = &waiting.prompt;
    let schema = match &prompt.kind {
        PromptKind::Approval => None,
        PromptKind::Form(schema) => Some(schema),
    };
    let has_form = feed.prompts.accepts_answers()
        && !prompt.can_only_be_refused()
        && schema.is_some_and(is_usable);
    let scripts: &[&Asset] = if has_form { &[&FORM] } else { &[] };
    layout::page(
        if schema.is_some() { "Question" } else { "Approval" },
        "/approvals",
        scripts,
        html! {
            h1 {
                @if schema.is_some() { "Question of " } @else { "Allow a call of " }
                @if prompt.tool.is_empty() { "a tool" } @else { (text::line(&prompt.tool)) }
                @if schema.is_none() { "?" }
            }
            (facts(waiting))
            @if schema.is_some() {
                h2 { "Question" }
                (text::block(prompt.message.as_str(), "Question"))
                @if prompt.message.is_cut() { p.problem { "The question is longer than can be shown, so it can only be refused here." } }
            }
            @if !prompt.arguments.as_str().is_empty() {
                h2 { "Arguments" }
                (text::block(&readable(&prompt.arguments), "Arguments"))
            }
            @if prompt.arguments.is_cut() {
                p.problem {
                    "The arguments are longer than can be shown. "
                    @if schema.is_none() { "Such a call can be denied here, but not approved." }
                }
            }
            div #prompt data-id=(waiting.id) data-token=(token) {
                @if !feed.prompts.accepts_answers() { (only_shown()) }
                @else if let Some(schema) = schema { (form_answers(schema, has_form)) }
                @else { (approval_answers(prompt)) }
                p #answer-state role="status" {}
                p { a href="/approvals" { "All approvals" } }
            }
        },
    )
}

fn facts(waiting: &WaitingPrompt) -> Markup {
    let prompt = &waiting.prompt;
    let claims = claims(&prompt.annotations);
    html! {
        dl {
            dt { "Since" } dd { (layout::time(UtcTime::from(waiting.since))) }
            @if prompt.kind == PromptKind::Approval {
                dt { "Reason" }
                dd { @for reason in prompt.message.as_str().lines() { div { (text::line(reason)) } } }
            }
            dt { "Effects" }
            dd {
                @if claims.is_empty() { "Its author says nothing about its effects." }
                @else { "Its author says: " (claims.join(", ")) "." }
            }
            @if !prompt.source.is_empty() { dt { "From" } dd { (text::line(&prompt.source)) } }
            dt { "Caller" } dd { (text::line(&prompt.caller)) }
            @if let Some(session) = &prompt.session { dt { "Session" } dd { (text::line(session)) } }
        }
    }
}

/// Returns the claims of a tool's author that matter for a decision.
fn claims(annotations: &Annotations) -> Vec<&'static str> {
    let claims = [
        (annotations.destructive, "may destroy something"),
        (annotations.open_world, "interacts with the outside"),
        (annotations.read_only, "changes nothing"),
        (annotations.idempotent, "a repeated call has no further effect"),
    ];
    let claims = claims.into_iter().filter(|(claim, _)| *claim == Some(true));
    claims.map(|(_, words)| words).collect()
}

/// Returns the buttons of an approval. They are outside of a form, so that Enter in the field does
/// not press one.
fn approval_answers(prompt: &OperatorPrompt) -> Markup {
    html! {
        div.answers {
            @if !prompt.arguments.is_cut() {
                button type="button" data-answer="approve" disabled { "Approve this call" }
            }
            label {
                "Reason for the model"
                input #reason maxlength=(REASON_CHARS_MAX) autocomplete="off";
            }
            button type="button" data-answer="deny" disabled { "Deny" }
        }
    }
}

/// Returns whether the schema of a question can be decoded.
fn is_usable(schema: &Value) -> bool {
    InputSchema::compile("form", &schema.to_string()).is_ok()
}

/// Returns the form of a question. One that cannot be shown can only be refused.
fn form_answers(schema: &Value, is_usable: bool) -> Markup {
    let refuse = html! {
        button type="button" data-answer="decline" disabled { "Decline" }
        button type="button" data-answer="cancel" disabled { "Close without an answer" }
    };
    if !is_usable {
        return html! {
            p.problem { "The form of this question cannot be shown." }
            div.answers { (refuse) }
        };
    }
    html! {
        form #try novalidate {
            div.columns {
                section aria-labelledby="values" {
                    h2 #values { "Answer" }
                    (form::field(&FormField::of(schema)))
                }
                section aria-labelledby="json" {
                    h2 #json { "As JSON" }
                    textarea #editor rows="8" spellcheck="false" aria-labelledby="json" {}
                    p.problem #editor-problem role="alert" hidden {}
                }
            }
            div.answers {
                button type="submit" data-answer="send" disabled { "Send" }
                (refuse)
            }
        }
    }
}

fn only_shown() -> Markup {
    html! {
        p {
            "Approvals can only be seen here. To answer them, start the host with "
            code { "--inspector=approve" } "."
        }
    }
}

fn address(id: &str) -> String {
    format!("/approval?id={id}")
}

/// Returns arguments with line breaks, unless they become longer than can be shown.
fn readable(arguments: &PromptText) -> String {
    let text = arguments.as_str();
    let pretty = serde_json::from_str::<Value>(text).ok();
    let pretty = pretty.and_then(|value| serde_json::to_string_pretty(&value).ok());
    match pretty.filter(|pretty| pretty.len() <= PRETTY_BYTES_MAX) {
        Some(pretty) => pretty,
        None => text.to_owned(),
    }
}
