//! Pages, one module each.

mod approvals;
mod call;
mod calls;
mod chart;
mod events;
pub(crate) mod failure;
mod form;
mod grants;
mod graph;
mod health;
mod layout;
pub(crate) mod login;
mod payload;
mod plugins;
mod sessions;
mod tool;
mod tools;
mod window;
mod workflows;

use cofferdam_record::Log;
use http::{Response, StatusCode};
use maud::Markup;

use crate::answer::{self, PageBody};
use crate::error::PageError;
use crate::inspector::InspectorState;
use crate::login::Browser;
use crate::query::PageQuery;

/// Answers a request for a page.
pub(crate) fn page(
    state: &InspectorState,
    browser: &Browser,
    path: &str,
    query: &PageQuery,
) -> Result<Response<PageBody>, PageError> {
    let ok = |markup: Markup| answer::page(StatusCode::OK, markup);
    let workbench = state.options.workbench.as_ref();
    match path {
        "/tool" => {
            let offer = workbench.ok_or(PageError::NotFound)?.tools();
            return tool::page(&offer, query, &browser.page_token).map(ok);
        }
        "/tools" => {
            let offer = workbench.map(|workbench| workbench.tools());
            return tools::page(state.source.log()?, offer.as_ref(), query).map(ok);
        }
        "/approvals" => return Ok(ok(approvals::list(state.prompts.as_ref()))),
        "/approval" => {
            let feed = state.prompts.as_ref().ok_or(PageError::NotFound)?;
            return approvals::prompt(feed, query, &browser.page_token).map(ok);
        }
        "/grants" => return grants::page(state).map(ok),
        "/workflows" => return Ok(ok(workflows::page(state))),
        "/workflow" => return workflows::run(state, query).map(ok),
        _ => {}
    }
    let Some(log) = state.source.log()? else {
        let is_page = layout::PAGES.iter().any(|(page, _)| *page == path);
        return if is_page { Ok(ok(failure::no_log())) } else { Err(PageError::NotFound) };
    };
    match path {
        "/" => calls::page(log, query).map(ok),
        "/plugins" => plugins::page(log, query).map(ok),
        "/sessions" => sessions::page(log, query).map(ok),
        "/session" => sessions::session(log, query).map(ok),
        "/events" => events::page(log, query).map(ok),
        "/health" => health::page(state, log).map(ok),
        _ => of_call(state, browser, log, path),
    }
}

/// Answers a request below `/call/`.
fn of_call(
    state: &InspectorState,
    browser: &Browser,
    log: &Log,
    path: &str,
) -> Result<Response<PageBody>, PageError> {
    let rest = path.strip_prefix("/call/").ok_or(PageError::NotFound)?;
    let (id, rest) = rest.split_once('/').unwrap_or((rest, ""));
    let is_id = (1..=64).contains(&id.len())
        && id.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
    if !is_id {
        return Err(PageError::NotFound);
    }
    let call = log.find(id).map_err(PageError::Call)?;
    match rest {
        "" => Ok(answer::page(StatusCode::OK, call::page(state, log, &call, &browser.page_token)?)),
        kind => payload::download(log, &call, kind),
    }
}
