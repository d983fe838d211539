//! A tool of the running host, with a form for a call.

use std::sync::Arc;

use cofferdam_tool::{ToolDefinition, ToolSource, Toolset};
use maud::{Markup, html};

use super::{form, layout};
use crate::assets::{FORM, SAVED};
use crate::error::PageError;
use crate::form::FormField;
use crate::query::{self, PageQuery};
use crate::text;

/// Maximum number of tools that are listed.
const TOOLS_MAX: usize = 1000;

/// Returns the page of the tool that the query names. `token` proves that a call comes from it.
pub(super) fn page(tools: &Toolset, query: &PageQuery, token: &str) -> Result<Markup, PageError> {
    let definition = tools.definition(query.value("name")).map_err(|_| PageError::NotFound)?;
    let source = tools.source(definition.name.as_str());
    let has_dry_run = source.is_some_and(|source| source.supports_dry_run(&definition.name));
    let name = definition.name.as_str();
    let calls = query::address("/", [("tool", name)]);
    Ok(layout::page(
        name,
        "/tools",
        &[&FORM, &SAVED],
        html! {
            h1 { (text::line(name)) }
            p { (text::line(&definition.description)) }
            p {
                @if let Some(source) = source { "From " (text::line(source.name())) ". " }
                (claims(definition))
                a href=(calls) { "Recorded calls" }
            }
            form #try data-tool=(name) data-token=(token) novalidate {
                div.columns {
                    section aria-labelledby="arguments" {
                        h2 #arguments { "Arguments" }
                        (form::field(&FormField::of(definition.input.published())))
                    }
                    section aria-labelledby="json" {
                        h2 #json { "As JSON" }
                        textarea #editor rows="12" spellcheck="false" aria-labelledby="json" {}
                        p.problem #editor-problem role="alert" hidden {}
                    }
                }
                p {
                    @if has_dry_run { button type="submit" data-dry-run { "Dry run" } " " }
                    button type="submit" { "Call" }
                }
                @if has_dry_run { p.aside { "A dry run shows the changes of files and makes none." } }
                @else { p.aside { "This tool has no dry run: a call may have effects." } }
            }
            (saved(source, name))
            section #result aria-labelledby="result-title" aria-live="polite" hidden {
                h2 #result-title { "Result" }
                p { strong #result-outcome {} " " span #result-took {} " " a #result-page hidden { "Everything recorded" } }
                ul #result-notes {}
                pre #result-text tabindex="0" {}
                pre #result-diff tabindex="0" hidden {}
                p #result-command hidden { "As command: " code {} }
            }
            details {
                summary { "Schema" }
                (text::block(&serde_json::to_string_pretty(definition.input.published()).unwrap_or_default(), "Schema"))
            }
        },
    ))
}

/// Returns the inputs that a script keeps in the browser, under the component and the tool.
fn saved(source: Option<&Arc<dyn ToolSource>>, tool: &str) -> Markup {
    let identity = source.and_then(|source| source.plugin_identity());
    let digest = identity.map(|identity| &*identity.digest);
    let source = digest.or(source.map(|source| source.name())).unwrap_or_default();
    html! {
        section #saved aria-labelledby="saved-title" data-source=(source) data-tool=(tool) hidden {
            h2 #saved-title { "Saved inputs" }
            form #save novalidate {
                label { "Name " input #save-name maxlength="80" autocomplete="off"; }
                " " button type="submit" { "Save the input" }
            }
            ul #saved-list {}
            p #saved-state role="status" {}
        }
    }
}

/// Returns the list of tools that can be called.
pub(super) fn list(tools: &Toolset) -> Markup {
    let more = tools.tools().len().saturating_sub(TOOLS_MAX);
    let rows = html! {
        @for (definition, source) in tools.tools().take(TOOLS_MAX) {
            tr {
                th scope="row" {
                    a href=(query::address("/tool", [("name", definition.name.as_str())])) {
                        (text::line(definition.name.as_str()))
                    }
                }
                td { (text::line(source.name())) }
                td { (text::line(definition.description.lines().next().unwrap_or_default())) }
            }
        }
    };
    html! {
        h2 { "On offer" }
        (layout::table("Tools on offer", &["Tool", "From", "Description"], rows))
        @if more > 0 { p { (more) " more" } }
    }
}

/// Returns the claims of the author about the effects of a call.
fn claims(definition: &ToolDefinition) -> Markup {
    let annotations = &definition.annotations;
    let claims = [
        (annotations.read_only, "changes nothing"),
        (annotations.destructive, "may destroy something"),
        (annotations.open_world, "interacts with the outside"),
    ];
    let claims: Vec<_> = claims.iter().filter(|(claim, _)| *claim == Some(true)).collect();
    html! {
        @if !claims.is_empty() {
            "Its author says: "
            @for (index, (_, claim)) in claims.iter().enumerate() {
                @if index > 0 { ", " }
                (claim)
            }
            ". "
        }
    }
}
