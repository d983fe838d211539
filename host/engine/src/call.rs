//! One invocation, top to bottom: wait for a place, instantiate, call, take the result over, drop everything.

use std::time::Instant;

use cofferdam_tool::{
    Arguments, CallContext, CallRecord, Completion, ErrorType, Limits, Outcome, Phases, ToolError,
};
use tokio::sync::SemaphorePermit;
use wasmtime::component::{Instance, InstancePre};
use wasmtime::{Store, UpdateDeadline};

use crate::Grants;
use crate::compile::one_line;
use crate::engine::{EngineInner, Runtime};
use crate::guest::{Served, ServedPre, ToolDefinition};
use crate::lift;
use crate::load::Code;
use crate::state::CallState;
use crate::trap::{DeadlinePassed, Stage, tool_error};
use crate::typed::TypedCode;

/// Handles that the component model itself may hold, beyond the host resources that `Limits` counts: a guest's own
/// resources, and borrows in flight.
const COMPONENT_HANDLES_EXTRA: usize = 1024;

/// Everything that one call needs.
pub(crate) struct Invocation<'a> {
    pub(crate) engine: &'a EngineInner,
    pub(crate) grants: &'a Grants,
    pub(crate) limits: &'a Limits,
    pub(crate) context: &'a CallContext,
}

/// How running the guest ended.
enum Ended<T> {
    Returned(T),
    Error(ToolError),
    Cancelled,
}

impl<T> Ended<T> {
    fn outcome(self, returned: impl FnOnce(T) -> Outcome) -> Outcome {
        match self {
            Self::Returned(value) => returned(value),
            Self::Error(error) => Outcome::Error(error),
            Self::Cancelled => Outcome::Cancelled,
        }
    }
}

/// Code that a call gets an instance of.
trait Callee {
    /// What the instance offers.
    type Guest: Send;

    /// Creates the one instance of the call.
    fn instantiate(
        &self,
        store: &mut Store<CallState>,
    ) -> impl Future<Output = wasmtime::Result<Self::Guest>> + Send;
}

impl Callee for ServedPre<CallState> {
    type Guest = Served;

    async fn instantiate(&self, store: &mut Store<CallState>) -> wasmtime::Result<Served> {
        self.instantiate_async(store).await
    }
}

impl Callee for InstancePre<CallState> {
    type Guest = Instance;

    async fn instantiate(&self, store: &mut Store<CallState>) -> wasmtime::Result<Instance> {
        self.instantiate_async(store).await
    }
}

impl Invocation<'_> {
    /// Calls `tool` with arguments that are already decoded.
    pub(crate) async fn call_tool(&self, code: &Code, tool: &str, arguments: &Arguments) -> Completion {
        let mut record = CallRecord::default();
        let outcome = match code {
            Code::Declared(code) => self.call_declared(&mut record, code, tool, &arguments.to_json()).await,
            Code::Typed(code) => self.call_typed(&mut record, code, tool, arguments).await,
        };
        record.call_id.clone_from(&self.context.call_id);
        record.session.clone_from(&self.context.session);
        record.attempts = 1;
        record.set_outcome(&outcome);
        Completion { outcome, record }
    }

    async fn call_declared(
        &self,
        record: &mut CallRecord,
        code: &ServedPre<CallState>,
        tool: &str,
        arguments_json: &str,
    ) -> Outcome {
        let ended = self.in_sandbox(record, code, async |store, guest| {
            guest.cofferdam_plugin_tools().call_call_tool(store, tool, arguments_json).await
        });
        ended.await.outcome(|answer| lift::outcome(answer, self.limits.output_bytes_max))
    }

    async fn call_typed(
        &self,
        record: &mut CallRecord,
        code: &TypedCode,
        tool: &str,
        arguments: &Arguments,
    ) -> Outcome {
        let Some(function) = code.function(tool) else {
            let error = ToolError::new(ErrorType::PluginUnavailable);
            return Outcome::Error(error.with_detail("the component has no function for this tool"));
        };
        let parameters = match function.lower(arguments) {
            Ok(parameters) => parameters,
            Err(error) => return Outcome::Error(error),
        };
        let ended = self.in_sandbox(record, code.instance_pre(), async |store, instance| {
            function.call(store, instance, &parameters).await
        });
        ended.await.outcome(|result| function.outcome(result, self.limits.output_bytes_max))
    }

    /// Asks the component for its definitions.
    pub(crate) async fn list_tools(
        &self,
        code: &ServedPre<CallState>,
    ) -> Result<Vec<ToolDefinition>, ToolError> {
        let mut record = CallRecord::default();
        let ended = self.in_sandbox(&mut record, code, async |store, guest| {
            guest.cofferdam_plugin_tools().call_list_tools(store).await
        });
        match ended.await {
            Ended::Returned(definitions) => Ok(definitions),
            Ended::Error(error) => Err(error),
            Ended::Cancelled => Err(ToolError::new(ErrorType::Timeout)),
        }
    }

    /// Runs `export` in an instance of its own and writes into `record` what that took. The instance is gone when this
    /// returns, whatever happened (`RES-19`).
    async fn in_sandbox<C: Callee, T>(
        &self,
        record: &mut CallRecord,
        code: &C,
        export: impl AsyncFnOnce(&mut Store<CallState>, &C::Guest) -> wasmtime::Result<T>,
    ) -> Ended<T> {
        let arrived = Instant::now();
        // Declared first and so dropped last: the place is free only when the store has left the pool.
        let _place = match self.wait_for_place().await {
            Ended::Returned(place) => place,
            Ended::Error(error) => return Ended::Error(error),
            Ended::Cancelled => return Ended::Cancelled,
        };
        let started = Instant::now();
        record.phases.wait = started - arrived;
        let ends_at = started + self.limits.wall();
        let runtime = match self.engine.runtime(self.limits) {
            Ok(runtime) => runtime,
            Err(error) => return Ended::Error(unavailable(error.to_string())),
        };
        let mut store = match self.store(runtime, ends_at) {
            Ok(store) => store,
            Err(error) => return Ended::Error(unavailable(one_line(&error))),
        };
        let _ticking = runtime.ticker.keep_ticking();
        let guest_run = run(code, &mut store, &mut record.phases, export);
        let ended = tokio::select! {
            biased;
            () = self.context.given_up() => Ended::Cancelled,
            ended = tokio::time::timeout_at(ends_at.into(), guest_run) => match ended {
                Ok(Ok(value)) => Ended::Returned(value),
                Ok(Err((stage, error))) => Ended::Error(tool_error(&error, stage, &store.data().limiter)),
                // The guest is blocked in a host function: epochs only reach it when it is back.
                Err(_elapsed) => Ended::Error(ToolError::new(ErrorType::Timeout)),
            },
        };
        record.phases.run = started.elapsed().saturating_sub(record.phases.instantiate);
        record.instructions =
            self.limits.fuel_max.and_then(|max| Some(max.saturating_sub(store.get_fuel().ok()?)));
        let state = store.into_data();
        record.memory_peak_bytes = state.limiter.bytes_peak();
        record.stdout_tail = state.stdout.text();
        record.stderr_tail = state.stderr.text();
        record.refused = state.refused;
        state.network.report(record);
        ended
    }

    async fn wait_for_place(&self) -> Ended<SemaphorePermit<'_>> {
        if let Ok(place) = self.engine.places.try_acquire() {
            return Ended::Returned(place);
        }
        tokio::select! {
            biased;
            () = self.context.given_up() => Ended::Cancelled,
            waited = tokio::time::timeout(self.limits.wall(), self.engine.places.acquire()) => match waited {
                Ok(Ok(place)) => Ended::Returned(place),
                _ => Ended::Error(
                    ToolError::new(ErrorType::PluginUnavailable)
                        .with_detail("all places for concurrent calls stayed taken"),
                ),
            },
        }
    }

    fn store(&self, runtime: &Runtime, ends_at: Instant) -> wasmtime::Result<Store<CallState>> {
        let state = CallState::new(self.grants, &self.engine.client, self.limits, self.context, ends_at)?;
        let mut store = Store::new(&runtime.wasmtime, state);
        store.limiter(|state| &mut state.limiter);
        store.set_hostcall_fuel(usize::try_from(self.limits.hostcall_bytes_max).unwrap_or(usize::MAX));
        let handles = usize::try_from(self.limits.handles_max).unwrap_or(usize::MAX);
        store.set_max_component_handles(handles.saturating_add(COMPONENT_HANDLES_EXTRA));
        if let Some(fuel_max) = self.limits.fuel_max {
            store.set_fuel(fuel_max)?;
        }
        store.set_epoch_deadline(1);
        store.epoch_deadline_callback(move |_| {
            if Instant::now() >= ends_at {
                Err(wasmtime::Error::new(DeadlinePassed))
            } else {
                // Yielding lets a cancellation and other tasks of this thread have their turn.
                Ok(UpdateDeadline::Yield(1))
            }
        });
        Ok(store)
    }
}

async fn run<C: Callee, T>(
    code: &C,
    store: &mut Store<CallState>,
    phases: &mut Phases,
    export: impl AsyncFnOnce(&mut Store<CallState>, &C::Guest) -> wasmtime::Result<T>,
) -> Result<T, (Stage, wasmtime::Error)> {
    let started = Instant::now();
    let guest = code.instantiate(&mut *store).await;
    phases.instantiate = started.elapsed();
    let guest = guest.map_err(|error| (Stage::Instantiate, error))?;
    export(store, &guest).await.map_err(|error| (Stage::Run, error))
}

fn unavailable(reason: String) -> ToolError {
    ToolError::new(ErrorType::PluginUnavailable).with_detail(reason)
}
