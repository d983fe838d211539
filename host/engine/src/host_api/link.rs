//! Connects a component's imports with the host, once per component.
//!
//! Every import that is available without a grant is linked for all plugins; the state of the call
//! decides what it can access. A withheld import is linked to a refusal, so that a plugin which
//! only mentions it still runs: interpreters import the network whether a script uses it or not.
//!
//! A refused function returns its own error value for that (such as `access-denied`) where its type
//! has one, and the guest continues (`RES-10`). Where there is no such value, using it ends the
//! call as `CapabilityDenied`.

use wasmtime::component::types::{ComponentFunc, ComponentItem, Type};
use wasmtime::component::{Component, Linker, LinkerInstance, ResourceType, Val};
use wasmtime_wasi::p2::add_to_linker_proxy_interfaces_async;
use wasmtime_wasi::p2::bindings::{cli, filesystem, random};
use wasmtime_wasi_http::p2::bindings::http;
use wasmtime_wasi_http::{WasiHttp, WasiHttpView};

use super::CallState;
use super::imports::{self, Capability, ImportCondition};
use super::network;
use super::wasi_files::WasiFiles;
use crate::guest::cofferdam::plugin::{call, client, errors, files, secrets, tool_calls, toolbox};

/// Names of error cases that mean a denied permission and nothing else, in `wasi:sockets` and
/// `wasi:http`.
const DENIALS: [&str; 2] = ["access-denied", "HTTP-request-denied"];

/// Host type for a resource type that never has values.
enum NoSuchResource {}

/// Returns a linker with everything that needs no grant.
pub(crate) fn offered(engine: &wasmtime::Engine) -> wasmtime::Result<Linker<CallState>> {
    use wasmtime_wasi::WasiView;
    use wasmtime_wasi::cli::{WasiCli, WasiCliView};
    use wasmtime_wasi::random::WasiRandom;

    let mut linker = Linker::new(engine);
    let l = &mut linker;
    // io, clocks, random, stdin, stdout, stderr. Added per interface and not as the whole of WASI,
    // which would include sockets.
    add_to_linker_proxy_interfaces_async(l)?;
    random::insecure::add_to_linker::<CallState, WasiRandom>(l, |s| s.ctx().ctx.random())?;
    random::insecure_seed::add_to_linker::<CallState, WasiRandom>(l, |s| s.ctx().ctx.random())?;
    cli::environment::add_to_linker::<CallState, WasiCli>(l, CallState::cli)?;
    cli::exit::add_to_linker::<CallState, WasiCli>(l, CallState::cli)?;
    cli::terminal_input::add_to_linker::<CallState, WasiCli>(l, CallState::cli)?;
    cli::terminal_output::add_to_linker::<CallState, WasiCli>(l, CallState::cli)?;
    cli::terminal_stdin::add_to_linker::<CallState, WasiCli>(l, CallState::cli)?;
    cli::terminal_stdout::add_to_linker::<CallState, WasiCli>(l, CallState::cli)?;
    cli::terminal_stderr::add_to_linker::<CallState, WasiCli>(l, CallState::cli)?;
    filesystem::types::add_to_linker::<CallState, WasiFiles>(l, CallState::files)?;
    filesystem::preopens::add_to_linker::<CallState, WasiFiles>(l, CallState::files)?;
    call::add_to_linker::<CallState, wasmtime::component::HasSelf<_>>(l, |state| state)?;
    client::add_to_linker::<CallState, wasmtime::component::HasSelf<_>>(l, |state| state)?;
    errors::add_to_linker::<CallState, wasmtime::component::HasSelf<_>>(l, |state| state)?;
    files::add_to_linker::<CallState, wasmtime::component::HasSelf<_>>(l, |state| state)?;
    tool_calls::add_to_linker::<CallState, wasmtime::component::HasSelf<_>>(l, |state| state)?;
    toolbox::add_to_linker::<CallState, wasmtime::component::HasSelf<_>>(l, |state| state)?;
    secrets::add_to_linker::<CallState, wasmtime::component::HasSelf<_>>(l, |state| state)?;
    wasmtime_wasi_config::add_to_linker(l, |state| state.config())?;
    http::types::add_to_linker::<CallState, WasiHttp>(
        l,
        &http::types::LinkOptions::default(),
        WasiHttpView::http,
    )?;
    http::outgoing_handler::add_to_linker::<CallState, WasiHttp>(l, WasiHttpView::http)?;
    network::explain_body_errors(l)?;
    Ok(linker)
}

/// Returns `offered` with a refusal for every withheld import of `component`. Sockets are withheld
/// unless the plugin was granted a connection: a linked refusal is recorded when it is used, and
/// costs nothing otherwise.
pub(crate) fn with_refusals(
    offered: &Linker<CallState>,
    component: &Component,
    has_sockets: bool,
) -> wasmtime::Result<Linker<CallState>> {
    let mut linker = offered.clone();
    if has_sockets {
        network::link_sockets(&mut linker)?;
    }
    let engine = component.engine();
    let mut known_resources = Vec::new();
    for (import, item) in component.component_type().imports(engine) {
        let ComponentItem::ComponentInstance(interface) = item.ty else { continue };
        let withheld = match imports::look_up(import) {
            Some((_, ImportCondition::IfGranted)) if has_sockets => None,
            Some((capability, ImportCondition::IfGranted)) => Some(capability),
            _ => None,
        };
        for (name, export) in interface.exports(engine) {
            if let ComponentItem::Resource(resource) = export.ty {
                // An earlier import defines this resource; here it is only used.
                if known_resources.contains(&resource) {
                    continue;
                }
                known_resources.push(resource);
            }
            if let Some(capability) = withheld {
                refuse(&mut linker.instance(import)?, capability, import, name, &export.ty)?;
            }
        }
    }
    Ok(linker)
}

fn refuse(
    instance: &mut LinkerInstance<'_, CallState>,
    capability: Capability,
    import: &str,
    name: &str,
    item: &ComponentItem,
) -> wasmtime::Result<()> {
    match item {
        ComponentItem::ComponentFunc(function) => {
            let used = format!("{import}#{name}");
            let denial = denial_of(function);
            instance.func_new(name, move |mut store, _, _, results| {
                let denied = store.data_mut().refuse(capability, &used);
                match (&denial, results) {
                    (Some(denial), [result]) => {
                        *result = Val::Result(Err(Some(Box::new(denial.clone()))));
                        Ok(())
                    }
                    _ => Err(wasmtime::Error::new(denied)),
                }
            })
        }
        ComponentItem::Resource(_) => {
            instance.resource(name, ResourceType::host::<NoSuchResource>(), |_, _| Ok(()))
        }
        _ => Ok(()),
    }
}

/// Returns the error value with which `function` can report a denied permission, if it has one.
fn denial_of(function: &ComponentFunc) -> Option<Val> {
    let Some(Type::Result(result)) = function.results().next() else { return None };
    let denial = |name: &str| DENIALS.contains(&name);
    match result.err()? {
        Type::Enum(cases) => {
            cases.names().find(|name| denial(name)).map(|name| Val::Enum(name.to_owned()))
        }
        Type::Variant(cases) => {
            let mut plain = cases.cases().filter(|case| case.ty.is_none());
            plain
                .find(|case| denial(case.name))
                .map(|case| Val::Variant(case.name.to_owned(), None))
        }
        _ => None,
    }
}
