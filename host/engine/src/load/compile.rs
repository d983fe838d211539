//! Compiles component bytes to machine code, in a process that can be killed.
//!
//! Compilation has no limits of its own: a few KiB of hostile bytes can take minutes of CPU time
//! and gigabytes of memory. So the compiler runs in a child process that limits its own CPU time
//! and memory before it reads the first byte of the component, and that the parent kills when the
//! wall-clock limit passes. The limits grow with the size of the component, because honest compile
//! time does. Without its limits, nothing is compiled. Before the child processes the component, it
//! gives up all rights except computing and answering (`sys/confine.rs`). Not every system has such
//! confinement: the child compares what it has reached with the level that the host requires, and
//! names it in its answer.
//!
//! Protocol: the parent applies its part of the limits, then writes two little-endian `u64` (CPU
//! seconds, bytes of memory), one byte (1 if the code should count its instructions), one byte (the
//! required level of confinement) and the component to the child's standard input; the child
//! answers with one status byte, one byte (the level of confinement) and the artifact or a message.

use std::ffi::OsString;
use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, Command};

use crate::config::{Metering, compile_config};
use crate::error::one_line;
use crate::sys::confine::{Confinement, confine_this_process};
use crate::sys::limits::{ParentLimits, ProcessLimits, ended_by_cpu_limit, limit_this_process};

/// CPU time for any component, in seconds. Small bombs get no more than that.
const CPU_SECONDS_BASE: u64 = 5;
/// CPU time for each MiB. A 12 MB JavaScript component takes 10 s, an 18 MB Python one 8 s.
const CPU_SECONDS_PER_MIB: u64 = 3;
/// Address space for any component.
const MEMORY_BYTES_BASE: u64 = 2 << 30;
/// Address space for each byte of the component. A 12 MB component takes 318 MB.
const MEMORY_BYTES_PER_BYTE: u64 = 64;
/// Wall-clock time for each second of CPU time: the machine may be busy.
const WALL_PER_CPU: u32 = 6;
/// Maximum size of an answer that is accepted from a child, in bytes. Code is about 4 times the
/// size of a component. Less in unit tests.
const ANSWER_BYTES_MAX: u64 = if cfg!(test) { 4 << 20 } else { 1 << 30 };
/// Number of compiler threads. More of them need more address space than the limit leaves.
const THREADS_MAX: &str = "4";

const STATUS_OK: u8 = 0;
const STATUS_REFUSED: u8 = 1;
const STATUS_UNLIMITED: u8 = 2;
const STATUS_UNCONFINED: u8 = 3;

/// Compiler of untrusted bytes to machine code.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Compiler {
    /// A child process with limits. `program` is started with `arguments` and an empty environment,
    /// and must call [`compile_child`]; `cofferdam::init` of the facade does so for the first
    /// argument `cofferdam-compile-child`.
    Child {
        /// Program to start.
        program: PathBuf,
        /// Arguments of the program.
        arguments: Vec<OsString>,
    },
    /// In this process and without any limit: for components that you have built yourself.
    InProcess,
}

/// Error of compiling a component.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CompileError {
    /// The compiler rejects the component.
    #[error("does not compile: {reason}")]
    Refused {
        /// Message of the compiler, in one line.
        reason: String,
    },
    /// The CPU time or the wall-clock time was exceeded.
    #[error(
        "takes more than {cpu_seconds} s of CPU time to compile; a component of its size may not"
    )]
    TooSlow {
        /// Limit of the CPU time.
        cpu_seconds: u64,
    },
    /// The child died, most likely because it ran out of memory.
    #[error("cannot be compiled within {memory_mib} MiB of memory ({status})")]
    Died {
        /// Limit of the memory.
        memory_mib: u64,
        /// Exit status of the child.
        status: ExitStatus,
    },
    /// The code of the component is too large.
    #[error("compiles to more than {mib_max} MiB of code, the most that is accepted")]
    TooLarge {
        /// Maximum size of the code.
        mib_max: u64,
    },
    /// The compiler panicked.
    #[error(
        "makes the compiler fail ({status}); it uses WebAssembly in a way that this version does \
         not know"
    )]
    Crashed {
        /// Exit status of the child.
        status: ExitStatus,
    },
    /// The system refuses the limits of the child. Nothing was compiled.
    #[error("is not compiled, because the compiler process cannot have its limits: {reason}")]
    Unlimited {
        /// Message of the system, in one line.
        reason: String,
    },
    /// The system confines the child less than [`EngineConfig::confinement_min`] requires. Nothing
    /// was compiled.
    ///
    /// [`EngineConfig::confinement_min`]: crate::EngineConfig::confinement_min
    #[error(
        "is not compiled, because the compiler process would be {} and must be {}",
        in_words(*level),
        in_words(*required)
    )]
    Unconfined {
        /// Level that the system has reached.
        level: Confinement,
        /// Level that is required.
        required: Confinement,
    },
    /// The child cannot be started or communicated with.
    #[error("the compiler process does not work: {0}")]
    Child(std::io::Error),
}

fn in_words(level: Confinement) -> &'static str {
    match level {
        Confinement::None => "unconfined",
        Confinement::Partial => "confined in part",
        Confinement::Full => "fully confined",
    }
}

/// Result of compiling.
#[derive(Debug)]
pub(crate) struct Artifact {
    /// Code for an engine of the same build.
    pub(crate) code: Vec<u8>,
    /// Confinement of the child; `None` if this process compiled.
    pub(crate) confinement: Option<Confinement>,
}

/// Settings of one compilation.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CompileSettings {
    /// Metering of the code.
    pub(crate) metering: Metering,
    /// Confinement that a child must have.
    pub(crate) confinement_min: Confinement,
}

/// Exit code of a Rust program that has panicked.
const PANICKED: i32 = 101;

fn limits_for(component_bytes: usize) -> ProcessLimits {
    let bytes = u64::try_from(component_bytes).unwrap_or(u64::MAX);
    ProcessLimits {
        cpu_seconds: CPU_SECONDS_BASE + (bytes >> 20).saturating_mul(CPU_SECONDS_PER_MIB),
        memory_bytes: MEMORY_BYTES_BASE.saturating_add(bytes.saturating_mul(MEMORY_BYTES_PER_BYTE)),
    }
}

fn wall(limits: &ProcessLimits) -> Duration {
    Duration::from_secs(limits.cpu_seconds) * WALL_PER_CPU
}

impl Compiler {
    /// Compiles `component` to an artifact that an engine of the same build can load.
    pub(crate) async fn compile(
        &self,
        component: &Arc<[u8]>,
        settings: CompileSettings,
    ) -> Result<Artifact, CompileError> {
        match self {
            Self::InProcess => {
                let component = Arc::clone(component);
                let compile = move || compile_here(&component, settings.metering);
                let compiled = tokio::task::spawn_blocking(compile).await;
                let code = compiled.map_err(|error| CompileError::Child(error.into()))?;
                let code = code.map_err(|reason| CompileError::Refused { reason })?;
                Ok(Artifact { code, confinement: None })
            }
            Self::Child { program, arguments } => {
                let limits = limits_for(component.len());
                let mut child = start(program, arguments).map_err(CompileError::Child)?;
                let finished = tokio::time::timeout(
                    wall(&limits),
                    converse(&mut child, &limits, settings, component),
                )
                .await;
                match finished {
                    Ok(answer) => answer,
                    // Dropping the child kills it.
                    Err(_) => Err(CompileError::TooSlow { cpu_seconds: limits.cpu_seconds }),
                }
            }
        }
    }
}

fn start(program: &PathBuf, arguments: &[OsString]) -> std::io::Result<Child> {
    Command::new(program)
        .args(arguments)
        .env_clear()
        .env("RAYON_NUM_THREADS", THREADS_MAX)
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
}

async fn converse(
    child: &mut Child,
    limits: &ProcessLimits,
    settings: CompileSettings,
    component: &[u8],
) -> Result<Artifact, CompileError> {
    let applied = ParentLimits::apply(child, limits);
    let applied = applied.map_err(|error| CompileError::Unlimited { reason: error.to_string() })?;
    let (Some(mut stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
        return Err(CompileError::Child(std::io::Error::other("the child has no pipes")));
    };
    // The pipe is closed at the end of the block, which tells the child that the component is
    // complete.
    let send = async move {
        stdin.write_all(&limits.cpu_seconds.to_le_bytes()).await?;
        stdin.write_all(&limits.memory_bytes.to_le_bytes()).await?;
        let is_metered = u8::from(settings.metering == Metering::Instructions);
        stdin.write_all(&[is_metered, settings.confinement_min.to_byte()]).await?;
        stdin.write_all(component).await
    };
    let mut answer = Vec::new();
    let mut stdout = stdout.take(ANSWER_BYTES_MAX.saturating_add(1));
    let receive = stdout.read_to_end(&mut answer);
    // A child that dies early breaks the pipe; its exit status is more informative than that error.
    let exchange = async { tokio::join!(send, receive) };
    let received = tokio::select! {
        (_sent, received) = exchange => received,
        () = applied.exceeded() => {
            let status = kill(child).await?;
            return Err(CompileError::Died { memory_mib: limits.memory_bytes >> 20, status });
        }
    };
    let received = u64::try_from(received.map_err(CompileError::Child)?).unwrap_or(u64::MAX);
    if received > ANSWER_BYTES_MAX {
        // The child still writes, and would wait for a reader.
        kill(child).await?;
        return Err(CompileError::TooLarge { mib_max: ANSWER_BYTES_MAX >> 20 });
    }
    let status = child.wait().await.map_err(CompileError::Child)?;
    if !status.success() {
        return Err(death(status, limits));
    }
    read_answer(answer, settings.confinement_min)
}

/// Kills a child that exceeds a limit.
async fn kill(child: &mut Child) -> Result<ExitStatus, CompileError> {
    child.start_kill().map_err(CompileError::Child)?;
    child.wait().await.map_err(CompileError::Child)
}

fn read_answer(mut answer: Vec<u8>, required: Confinement) -> Result<Artifact, CompileError> {
    let Some((&[status, level], contents)) = answer.split_first_chunk() else {
        return Err(no_answer());
    };
    let level = Confinement::from_byte(level);
    let message = || String::from_utf8_lossy(contents).into_owned();
    match status {
        STATUS_OK => {
            answer.drain(..2);
            Ok(Artifact { code: answer, confinement: Some(level) })
        }
        STATUS_REFUSED => Err(CompileError::Refused { reason: message() }),
        STATUS_UNLIMITED => Err(CompileError::Unlimited { reason: message() }),
        STATUS_UNCONFINED => Err(CompileError::Unconfined { level, required }),
        _ => Err(no_answer()),
    }
}

fn no_answer() -> CompileError {
    CompileError::Child(std::io::Error::other("the child gave no answer"))
}

fn death(status: ExitStatus, limits: &ProcessLimits) -> CompileError {
    if ended_by_cpu_limit(status) {
        return CompileError::TooSlow { cpu_seconds: limits.cpu_seconds };
    }
    crash_or_death(status, limits)
}

/// Distinguishes a panic, which has its own exit code, from an abort due to a lack of memory.
fn crash_or_death(status: ExitStatus, limits: &ProcessLimits) -> CompileError {
    if status.code() == Some(PANICKED) {
        return CompileError::Crashed { status };
    }
    CompileError::Died { memory_mib: limits.memory_bytes >> 20, status }
}

/// Child side of [`Compiler::Child`]: reads the limits and the component from standard input,
/// limits and confines this process with all its threads, compiles, and writes the answer to
/// standard output. Call it first: other threads must not do anything.
///
/// # Errors
/// If standard input or output fails.
pub fn compile_child() -> std::io::Result<()> {
    let mut input = std::io::stdin().lock();
    let limits =
        ProcessLimits { cpu_seconds: read_u64(&mut input)?, memory_bytes: read_u64(&mut input)? };
    let settings = read_settings(&mut input)?;
    if let Err(error) = limit_this_process(&limits) {
        return answer(STATUS_UNLIMITED, Confinement::None, error.to_string().as_bytes());
    }
    let mut component = Vec::new();
    input.read_to_end(&mut component)?;
    let engine = compiler(settings.metering);
    // From here on the component is processed.
    let level = confine_this_process();
    if level < settings.confinement_min {
        return answer(STATUS_UNCONFINED, level, &[]);
    }
    match engine.and_then(|engine| precompile(&engine, &component)) {
        Ok(artifact) => answer(STATUS_OK, level, &artifact),
        Err(reason) => answer(STATUS_REFUSED, level, reason.as_bytes()),
    }
}

fn answer(status: u8, level: Confinement, contents: &[u8]) -> std::io::Result<()> {
    let mut output = std::io::stdout().lock();
    output.write_all(&[status, level.to_byte()])?;
    output.write_all(contents)?;
    output.flush()
}

fn read_u64(input: &mut impl Read) -> std::io::Result<u64> {
    let mut bytes = [0; 8];
    input.read_exact(&mut bytes)?;
    Ok(u64::from_le_bytes(bytes))
}

fn read_settings(input: &mut impl Read) -> std::io::Result<CompileSettings> {
    let mut bytes = [0; 2];
    input.read_exact(&mut bytes)?;
    let [is_metered, level] = bytes;
    let metering = if is_metered == 0 { Metering::Time } else { Metering::Instructions };
    Ok(CompileSettings { metering, confinement_min: Confinement::from_byte(level) })
}

fn compile_here(component: &[u8], metering: Metering) -> Result<Vec<u8>, String> {
    precompile(&compiler(metering)?, component)
}

fn compiler(metering: Metering) -> Result<wasmtime::Engine, String> {
    wasmtime::Engine::new(&compile_config(metering)).map_err(|error| one_line(&error))
}

fn precompile(engine: &wasmtime::Engine, component: &[u8]) -> Result<Vec<u8>, String> {
    engine.precompile_component(component).map_err(|error| one_line(&error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_grow_with_the_component() {
        let small = limits_for(3000);
        assert_eq!((small.cpu_seconds, small.memory_bytes >> 20), (5, 2048));
        let python = limits_for(18 << 20);
        assert_eq!((python.cpu_seconds, python.memory_bytes >> 20), (59, 3200));
    }

    const SETTINGS: CompileSettings =
        CompileSettings { metering: Metering::Time, confinement_min: Confinement::None };

    #[cfg(unix)]
    #[tokio::test]
    async fn a_child_that_answers_without_end_is_killed() {
        let arguments = ["-c", "exec yes"].map(OsString::from).into();
        let compiler = Compiler::Child { program: "/bin/sh".into(), arguments };
        let component = Arc::from([]);
        let compiling = compiler.compile(&component, SETTINGS);
        let ended = tokio::time::timeout(Duration::from_secs(20), compiling).await;
        let error = ended.expect("it ends before the limit of time").unwrap_err();
        assert_eq!(
            error.to_string(),
            "compiles to more than 4 MiB of code, the most that is accepted"
        );
    }

    /// The test occupies the only thread for work that blocks.
    #[test]
    fn compiling_in_this_process_leaves_the_threads_that_serve_calls() {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.max_blocking_threads(1).build().unwrap();
        runtime.block_on(async {
            let (release, occupied) = std::sync::mpsc::channel::<()>();
            let occupant = tokio::task::spawn_blocking(move || occupied.recv());
            let component: Arc<[u8]> = wat::parse_str("(component (core module))").unwrap().into();
            let mut compiling = Box::pin(Compiler::InProcess.compile(&component, SETTINGS));
            assert!(futures_util::poll!(&mut compiling).is_pending());
            drop(release);
            assert!(!compiling.await.unwrap().code.is_empty());
            assert!(occupant.await.unwrap().is_err());
        });
    }

    fn read(bytes: &[u8]) -> Result<Artifact, CompileError> {
        read_answer(bytes.to_vec(), Confinement::Full)
    }

    #[test]
    fn an_answer_without_status_is_no_artifact() {
        assert!(matches!(read(&[]), Err(CompileError::Child(_))));
        assert!(matches!(read(&[0]), Err(CompileError::Child(_))));
        assert!(matches!(read(&[7, 1, 2]), Err(CompileError::Child(_))));
        let artifact = read(&[0, 1, 1, 2]).unwrap();
        assert_eq!((artifact.code, artifact.confinement), (vec![1, 2], Some(Confinement::Full)));
        let artifact = read(&[0, 0]).unwrap();
        assert_eq!((artifact.code, artifact.confinement), (vec![], Some(Confinement::None)));
        assert_eq!(read(b"\x01\x01no").unwrap_err().to_string(), "does not compile: no");
    }

    #[test]
    fn a_child_without_limits_or_confinement_says_so() {
        assert_eq!(
            read(b"\x02\x00no").unwrap_err().to_string(),
            "is not compiled, because the compiler process cannot have its limits: no"
        );
        assert_eq!(
            read(&[3, 2]).unwrap_err().to_string(),
            "is not compiled, because the compiler process would be confined in part and must be \
             fully confined"
        );
        assert!(
            Confinement::None < Confinement::Partial && Confinement::Partial < Confinement::Full
        );
        for level in [Confinement::None, Confinement::Partial, Confinement::Full] {
            assert_eq!(Confinement::from_byte(level.to_byte()), level);
        }
    }
}
