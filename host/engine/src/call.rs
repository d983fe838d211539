//! One call from start to end: wait for a permit, instantiate, call, take the result, drop
//! everything.
//!
//! The guest runs in a future that owns everything it needs, so that it can continue on another
//! thread (see [`crate::scheduler`]). The caller's task keeps the deadline, the cancellation and
//! the record.

pub(crate) mod trap;

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use cofferdam_tool::record::MemoryRefusal;
use cofferdam_tool::{
    Arguments, CallContext, CallRecord, Completion, ErrorType, Limits, Outcome, ToolError,
    ToolFailure,
};
use wasmtime::component::{Instance, Val};
use wasmtime::{CallHook, Store, UpdateDeadline};
use wasmtime_wasi::I32Exit;

use self::trap::{CallStage, DeadlinePassed, tool_error};
use crate::command::{CommandCode, CommandEnd, CommandInstance, CommandTool};
use crate::engine::EngineInner;
use crate::engine_pool::{Code, CodeForm, WasmEngine};
use crate::error::{LoadError, one_line};
use crate::guest::{Content, Failure, Served, ServedPre, ToolDefinition, lift};
use crate::host_api::{CallFiles, CallParts, CallState, CommandStreams, PluginContext};
use crate::scheduler::admission::{AdmissionOutcome, CallPermit};
use crate::scheduler::cpu_meter::CpuMeter;
use crate::scheduler::cpu_pool::Job;
use crate::scheduler::deadline::Deadline;
use crate::scheduler::epoch::TickerGuard;
use crate::typed::{self, TypedCode};

/// Number of handles that the component model itself may hold, in addition to the host resources
/// that `Limits` counts: a guest's own resources, and borrows in flight.
const COMPONENT_HANDLES_EXTRA: usize = 1024;

/// Minimum size of an answer that counts against the memory of the process while the host works on
/// it. Shorter answers fit into the memory that every call uses anyway.
const COUNTED_ANSWER_BYTES_MIN: u64 = 64 * 1024;

/// Maximum time that an inner call waits for a permit.
const INNER_WAIT_MAX: Duration = Duration::from_secs(2);

/// Inputs of one call.
pub(crate) struct Invocation<'a> {
    pub(crate) engine: &'a EngineInner,
    pub(crate) parts: CallParts<'a>,
}

/// Answer of a guest. Its bytes in the host count against the memory of the process until it is
/// dropped.
struct GuestOutput<T> {
    value: T,
    _permit: Option<Arc<CallPermit>>,
}

/// Outcome of running the guest.
enum GuestOutcome<T> {
    Returned(T),
    Error(ToolError),
    Cancelled,
}

impl<T> GuestOutcome<T> {
    fn outcome(self, returned: impl FnOnce(T) -> Outcome) -> Outcome {
        match self {
            Self::Returned(value) => returned(value),
            Self::Error(error) => Outcome::Error(error),
            Self::Cancelled => Outcome::Cancelled,
        }
    }
}

/// Reason for the caller to stop a running call.
enum Interrupt {
    /// The caller has abandoned the call.
    GivenUp,
    /// The wall-clock limit has passed. The epoch callback detects this while guest code runs; this
    /// variant covers guests that wait in a host function or in a queue.
    TimeUp,
}

/// Work of a call in its own instance.
trait InstanceWork: Send + 'static {
    /// Typed exports of the instance.
    type Guest: Send + Sync;
    /// Result of the guest.
    type Answer: Send + 'static;

    /// Returns the maximum number of bytes of an answer that the host copies before its length is
    /// known.
    fn copied_bytes_max(_limits: &Limits) -> u64 {
        u64::MAX
    }

    /// Returns the number of bytes that an answer takes in the host.
    fn answer_bytes(_answer: &Self::Answer) -> u64 {
        0
    }

    /// Creates the instance of the call.
    fn instantiate(
        &self,
        store: &mut Store<CallState>,
    ) -> impl Future<Output = wasmtime::Result<Self::Guest>> + Send;

    /// Calls the export.
    fn call(
        self,
        store: &mut Store<CallState>,
        guest: &Self::Guest,
    ) -> impl Future<Output = wasmtime::Result<Self::Answer>> + Send;
}

/// Call of a tool that the component declares.
struct DeclaredCall {
    code: Arc<ServedPre<CallState>>,
    tool: String,
    arguments_json: String,
}

impl InstanceWork for DeclaredCall {
    type Guest = Served;
    type Answer = Result<Vec<Content>, Failure>;

    fn copied_bytes_max(limits: &Limits) -> u64 {
        lift::copied_bytes_max(limits.output_bytes_max)
    }

    fn answer_bytes(answer: &Self::Answer) -> u64 {
        lift::answer_bytes(answer)
    }

    async fn instantiate(&self, store: &mut Store<CallState>) -> wasmtime::Result<Served> {
        self.code.instantiate_async(store).await
    }

    async fn call(
        self,
        store: &mut Store<CallState>,
        guest: &Served,
    ) -> wasmtime::Result<Self::Answer> {
        guest.cofferdam_plugin_tools().call_call_tool(store, &self.tool, &self.arguments_json).await
    }
}

/// Request for the tools that the component declares.
struct ListTools {
    code: Arc<ServedPre<CallState>>,
}

impl InstanceWork for ListTools {
    type Guest = Served;
    type Answer = Vec<ToolDefinition>;

    async fn instantiate(&self, store: &mut Store<CallState>) -> wasmtime::Result<Served> {
        self.code.instantiate_async(store).await
    }

    async fn call(
        self,
        store: &mut Store<CallState>,
        guest: &Served,
    ) -> wasmtime::Result<Self::Answer> {
        guest.cofferdam_plugin_tools().call_list_tools(store).await
    }
}

/// Call of a plain function.
struct TypedCall {
    code: Arc<TypedCode>,
    tool: String,
    parameters: Vec<Val>,
}

impl InstanceWork for TypedCall {
    type Guest = Instance;
    type Answer = Option<Val>;

    fn copied_bytes_max(limits: &Limits) -> u64 {
        typed::copied_bytes_max(limits.output_bytes_max)
    }

    fn answer_bytes(answer: &Self::Answer) -> u64 {
        answer.as_ref().map_or(0, typed::value_bytes)
    }

    async fn instantiate(&self, store: &mut Store<CallState>) -> wasmtime::Result<Instance> {
        self.code.instance_pre().instantiate_async(store).await
    }

    async fn call(
        self,
        store: &mut Store<CallState>,
        guest: &Instance,
    ) -> wasmtime::Result<Self::Answer> {
        let function = self.code.function(&self.tool);
        let function = function
            .ok_or_else(|| wasmtime::Error::msg("the tool of the call is not in the code"))?;
        function.call(store, guest, &self.parameters).await
    }
}

/// Run of a command.
struct CommandRun {
    code: Arc<CommandCode>,
    streams: Arc<CommandStreams>,
}

impl InstanceWork for CommandRun {
    type Guest = CommandInstance;
    type Answer = CommandEnd;

    fn answer_bytes(answer: &Self::Answer) -> u64 {
        u64::try_from(answer.output.len()).unwrap_or(u64::MAX)
    }

    async fn instantiate(&self, store: &mut Store<CallState>) -> wasmtime::Result<CommandInstance> {
        store.data_mut().set_command(Arc::clone(&self.streams));
        self.code.instantiate_async(store).await
    }

    async fn call(
        self,
        store: &mut Store<CallState>,
        guest: &CommandInstance,
    ) -> wasmtime::Result<Self::Answer> {
        let exit_code = match guest.wasi_cli_run().call_run(&mut *store).await {
            Ok(ended) => i32::from(ended.is_err()),
            Err(error) => error.downcast_ref::<I32Exit>().map(|exit| exit.0).ok_or(error)?,
        };
        Ok(CommandEnd { exit_code, output: store.data().take_command_output() })
    }
}

/// Resources of a running call. The field order matters: the permit must be released after the
/// store has left the pool.
struct Sandbox {
    store: Store<CallState>,
    _ticking: TickerGuard,
    _permit: Arc<CallPermit>,
}

/// Sandbox after the call.
struct UsedSandbox<T> {
    sandbox: Sandbox,
    instantiate: Duration,
    /// Result of the call; `None` if it was stopped.
    result: Option<Result<T, (CallStage, wasmtime::Error)>>,
}

impl Invocation<'_> {
    /// Calls `tool` with arguments that are already decoded. A tool of a command needs its
    /// description, `command`.
    pub(crate) async fn call_tool(
        &self,
        code: &Code,
        command: Option<&CommandTool>,
        tool: &str,
        arguments: &Arguments,
    ) -> Completion {
        let mut record = Box::<CallRecord>::default();
        let wasm_engine = &code.wasm_engine;
        let outcome = match &code.entry {
            CodeForm::Declared(code) => {
                self.call_declared(&mut record, wasm_engine, code, tool, arguments.to_json()).await
            }
            CodeForm::Command(code) => {
                self.run_command(&mut record, wasm_engine, code, command, tool, arguments).await
            }
            CodeForm::Typed(code) => {
                self.call_typed(&mut record, wasm_engine, code, tool, arguments).await
            }
        };
        record.call_id.clone_from(&self.parts.context.call_id);
        record.session.clone_from(&self.parts.context.session);
        record.attempts = 1;
        record.set_outcome(&outcome);
        Completion { outcome, record }
    }

    async fn call_declared(
        &self,
        record: &mut CallRecord,
        wasm_engine: &WasmEngine,
        code: &Arc<ServedPre<CallState>>,
        tool: &str,
        arguments_json: String,
    ) -> Outcome {
        let work = DeclaredCall { code: Arc::clone(code), tool: tool.to_owned(), arguments_json };
        let ended = self.in_sandbox(record, wasm_engine, tool, work).await;
        ended.outcome(|answer| lift::outcome(answer.value, self.parts.limits.output_bytes_max))
    }

    async fn run_command(
        &self,
        record: &mut CallRecord,
        wasm_engine: &WasmEngine,
        code: &Arc<CommandCode>,
        command: Option<&CommandTool>,
        tool: &str,
        arguments: &Arguments,
    ) -> Outcome {
        let Some(command) = command else {
            let error = ToolError::new(ErrorType::PluginUnavailable);
            return Outcome::Error(error.with_detail("the manifest does not declare this tool"));
        };
        let streams = command.streams(tool, arguments.value(), self.parts.limits.output_bytes_max);
        let streams = match streams {
            Ok(streams) => Arc::new(streams),
            Err(message) => return Outcome::Failure(ToolFailure::new(message)),
        };
        let work = CommandRun { code: Arc::clone(code), streams };
        let ended = self.in_sandbox(record, wasm_engine, tool, work).await;
        ended.outcome(|end| command.outcome(end.value, &record.stderr_tail))
    }

    async fn call_typed(
        &self,
        record: &mut CallRecord,
        wasm_engine: &WasmEngine,
        code: &Arc<TypedCode>,
        tool: &str,
        arguments: &Arguments,
    ) -> Outcome {
        let Some(function) = code.function(tool) else {
            let error = ToolError::new(ErrorType::PluginUnavailable);
            return Outcome::Error(
                error.with_detail("the component has no function for this tool"),
            );
        };
        let parameters = match function.lower(arguments) {
            Ok(parameters) => parameters,
            Err(error) => return Outcome::Error(error),
        };
        let work = TypedCall { code: Arc::clone(code), tool: tool.to_owned(), parameters };
        let ended = self.in_sandbox(record, wasm_engine, tool, work).await;
        ended.outcome(|answer| function.outcome(answer.value, self.parts.limits.output_bytes_max))
    }

    /// Does `work` of `tool` in its own instance and records the resources that it used. The
    /// instance is dropped before this returns, whatever the outcome (`RES-19`).
    async fn in_sandbox<W: InstanceWork>(
        &self,
        record: &mut CallRecord,
        wasm_engine: &WasmEngine,
        tool: &str,
        work: W,
    ) -> GuestOutcome<GuestOutput<W::Answer>> {
        let (permit, started) = match self.wait_for_permit(record).await {
            GuestOutcome::Returned((permit, started)) => (Arc::new(permit), started),
            GuestOutcome::Error(error) => return GuestOutcome::Error(error),
            GuestOutcome::Cancelled => return GuestOutcome::Cancelled,
        };
        let deadline = Arc::new(Deadline::start(started, self.parts.limits.wall()));
        let meter = Arc::new(CpuMeter::default());
        let answer_bytes_max = W::copied_bytes_max(self.parts.limits);
        let store = match self.store(
            wasm_engine,
            &deadline,
            Arc::clone(&permit),
            Arc::clone(&meter),
            answer_bytes_max,
        ) {
            Ok(store) => store,
            Err(error) => return GuestOutcome::Error(unavailable(one_line(&error))),
        };
        let _ticking = wasm_engine.ticker.keep_ticking();
        let sandbox = Sandbox { store, _ticking, _permit: Arc::clone(&permit) };
        let job: Job<_> = Box::pin(run(work, sandbox, Arc::clone(&meter)));
        let interrupt = async {
            tokio::select! {
                biased;
                () = self.parts.context.cancelled() => Interrupt::GivenUp,
                () = deadline.passed() => Interrupt::TimeUp,
            }
        };
        let starts_in_pool = self.parts.plugin.computes(tool);
        let (used, interrupt) = self
            .engine
            .cpu_pool
            .run(self.parts.plugin.name(), job, &meter, starts_in_pool, interrupt)
            .await;
        self.parts.plugin.set_computes(tool, meter.prefers_cpu_pool());

        let UsedSandbox { sandbox, instantiate, result } = used;
        record.cpu = meter.used();
        record.phases.instantiate = instantiate;
        record.phases.asking = deadline.paused_total();
        record.phases.run = started.elapsed().saturating_sub(instantiate + record.phases.asking);
        let Sandbox { store, _ticking, _permit } = sandbox;
        record.instructions = self
            .parts
            .limits
            .fuel_max
            .and_then(|max| Some(max.saturating_sub(store.get_fuel().ok()?)));
        let state = store.into_data();
        record.memory_peak_bytes = state.limiter.bytes_peak();
        record.memory_refused_by = state.limiter.refused();
        (record.stdout_tail, record.stderr_tail) = state.printed();
        record.refused = state.refused;
        record.questions = state.client.question_count();
        if let Some(recorder) = &state.recorder
            && state.network.has_used_sockets()
        {
            recorder.add_gap("the guest used sockets");
        }
        state.toolbox.end(record).await;
        state.network.report(record);
        match (result, interrupt) {
            (Some(Ok(value)), _) => counted::<W>(value, permit, record),
            (Some(Err((stage, error))), _) => {
                GuestOutcome::Error(tool_error(&error, stage, &state.limiter))
            }
            (None, Some(Interrupt::TimeUp)) => {
                GuestOutcome::Error(ToolError::new(ErrorType::Timeout))
            }
            (None, _) => GuestOutcome::Cancelled,
        }
    }

    /// Returns the maximum time to wait for a permit. It is short for an inner call, because the
    /// calls that hold all permits may be waiting for it.
    fn wait_max(&self) -> Duration {
        let wall = self.parts.limits.wall();
        if self.parts.context.outer.is_some() { wall.min(INNER_WAIT_MAX) } else { wall }
    }

    /// Returns a permit and the time from which the call has it, and records how long it waited.
    async fn wait_for_permit(
        &self,
        record: &mut CallRecord,
    ) -> GuestOutcome<(CallPermit, Instant)> {
        let arrived = Instant::now();
        let waiter = match self.engine.admission.admit(self.parts.plugin.name()) {
            Ok(AdmissionOutcome::Now(permit)) => return GuestOutcome::Returned((permit, arrived)),
            Ok(AdmissionOutcome::Queued(waiter)) => waiter,
            Err(full) => return GuestOutcome::Error(unavailable(full.to_string())),
        };
        tokio::select! {
            biased;
            () = self.parts.context.cancelled() => GuestOutcome::Cancelled,
            waited = tokio::time::timeout(self.wait_max(), waiter) => match waited {
                Ok(permit) => {
                    let started = Instant::now();
                    record.phases.wait = started - arrived;
                    GuestOutcome::Returned((permit, started))
                }
                Err(_elapsed) => {
                    GuestOutcome::Error(unavailable("timed out waiting: the maximum number of concurrent \
                        calls is running".to_owned()))
                }
            },
        }
    }

    fn store(
        &self,
        wasm_engine: &WasmEngine,
        deadline: &Arc<Deadline>,
        permit: Arc<CallPermit>,
        meter: Arc<CpuMeter>,
        answer_bytes_max: u64,
    ) -> wasmtime::Result<Store<CallState>> {
        let state = CallState::new(self.parts, Arc::clone(deadline), permit);
        let mut store = Store::new(&wasm_engine.wasmtime, state);
        store.limiter(|state| &mut state.limiter);
        limit_copies(&mut store, self.parts.limits.hostcall_bytes_max, answer_bytes_max);
        let handles = usize::try_from(self.parts.limits.handles_max).unwrap_or(usize::MAX);
        store.set_max_component_handles(handles.saturating_add(COMPONENT_HANDLES_EXTRA));
        if let Some(fuel_max) = self.parts.limits.fuel_max {
            store.set_fuel(fuel_max)?;
        }
        store.set_epoch_deadline(1);
        let cpu_ms_max = self.parts.limits.cpu_ms_max;
        let deadline = Arc::clone(deadline);
        store.epoch_deadline_callback(move |_| {
            if deadline.remaining().is_zero() {
                return Err(wasmtime::Error::new(DeadlinePassed));
            }
            meter.check(cpu_ms_max)?;
            // Yielding lets other tasks of this thread run, such as a cancellation, and lets the
            // call move to the CPU pool.
            Ok(UpdateDeadline::Yield(1))
        });
        Ok(store)
    }
}

/// Asks a component for the definitions of its tools.
pub(crate) async fn list_tools(
    engine: &EngineInner,
    plugin: &Arc<PluginContext>,
    wasm_engine: &WasmEngine,
    code: &Arc<ServedPre<CallState>>,
    limits: &Limits,
) -> Result<Vec<ToolDefinition>, LoadError> {
    let context = &CallContext::default();
    let files = &CallFiles::new(&plugin.grants, context, None, None);
    let parts = CallParts { plugin, files, toolset: None, limits, context, recorder: None };
    let call = Invocation { engine, parts };
    let work = ListTools { code: Arc::clone(code) };
    let mut record = CallRecord::default();
    let error = match call.in_sandbox(&mut record, wasm_engine, "", work).await {
        GuestOutcome::Returned(definitions) => return Ok(definitions.value),
        GuestOutcome::Error(error) => error,
        GuestOutcome::Cancelled => ToolError::new(ErrorType::Timeout),
    };
    Err(LoadError::Describe { error, printed: record.stderr_tail })
}

/// Counts an answer against the memory of the process.
fn counted<W: InstanceWork>(
    value: W::Answer,
    permit: Arc<CallPermit>,
    record: &mut CallRecord,
) -> GuestOutcome<GuestOutput<W::Answer>> {
    let bytes = W::answer_bytes(&value);
    if bytes < COUNTED_ANSWER_BYTES_MIN {
        return GuestOutcome::Returned(GuestOutput { value, _permit: None });
    }
    if permit.reserve(bytes) {
        return GuestOutcome::Returned(GuestOutput { value, _permit: Some(permit) });
    }
    record.memory_refused_by = Some(MemoryRefusal::Process);
    let detail = format!("the process has no memory left for an answer of {bytes} bytes");
    GuestOutcome::Error(ToolError::new(ErrorType::MemoryLimit).with_detail(detail))
}

/// Sets the limits for the bytes that one host function copies from the guest, and for those of the
/// answer. The engine has a single limit for both, so it is changed when the guest returns: from
/// then on, only the answer is copied. The guest is also entered to allocate the values that a host
/// function returns, which does not count as a return.
fn limit_copies(store: &mut Store<CallState>, host_function_bytes_max: u64, answer_bytes_max: u64) {
    let bytes = |max: u64| usize::try_from(max).unwrap_or(usize::MAX);
    let host_function = bytes(host_function_bytes_max);
    let answer = bytes(answer_bytes_max).min(host_function);
    store.set_hostcall_fuel(host_function);
    let mut depth = 0_usize;
    store.call_hook(move |mut context, transition| {
        match transition {
            CallHook::CallingWasm => {
                if depth == 0 {
                    context.set_hostcall_fuel(host_function);
                }
                depth += 1;
            }
            CallHook::ReturningFromWasm => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    context.set_hostcall_fuel(answer);
                }
            }
            CallHook::CallingHost | CallHook::ReturningFromHost => {}
        }
        Ok(())
    });
}

/// Does `work` in `sandbox` until it ends or is stopped by `meter`, which takes effect at the next
/// poll.
async fn run<W: InstanceWork>(
    work: W,
    mut sandbox: Sandbox,
    meter: Arc<CpuMeter>,
) -> UsedSandbox<W::Answer> {
    let mut instantiate = Duration::ZERO;
    let result = {
        let mut guest = pin!(run_guest(work, &mut sandbox.store, &mut instantiate));
        poll_fn(|cx| {
            if meter.is_stopped() {
                return Poll::Ready(None);
            }
            meter.measure(|| guest.as_mut().poll(cx)).map(Some)
        })
        .await
    };
    UsedSandbox { sandbox, instantiate, result }
}

async fn run_guest<W: InstanceWork>(
    work: W,
    store: &mut Store<CallState>,
    instantiate: &mut Duration,
) -> Result<W::Answer, (CallStage, wasmtime::Error)> {
    let started = Instant::now();
    let guest = work.instantiate(store).await;
    *instantiate = started.elapsed();
    let guest = guest.map_err(|error| (CallStage::Instantiate, error))?;
    work.call(store, &guest).await.map_err(|error| (CallStage::Run, error))
}

fn unavailable(reason: String) -> ToolError {
    ToolError::new(ErrorType::PluginUnavailable).with_detail(reason)
}
