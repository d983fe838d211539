//! Compiles component bytes to machine code, in a process that can be killed.
//!
//! Compilation has no limits of its own: a few KiB of hostile bytes can take minutes of CPU time
//! and gigabytes of memory. So the compiler runs in a child process that limits its own CPU time
//! and memory before it reads the first byte of the component, and that the parent kills when the
//! wall-clock limit passes. The limits grow with the size of the component, because honest compile
//! time does. Before the child processes the component, it gives up all rights except computing and
//! answering (`confine`), where the system supports that; elsewhere the host logs this and relies
//! on the limits.
//!
//! Protocol: the parent writes two little-endian `u64` (CPU seconds, bytes of address space), one
//! byte (1 if the code should count its instructions) and the component to the child's standard
//! input; the child answers with one status byte, one byte (1 if it was confined) and the artifact
//! or a message.

mod confine;

use std::ffi::OsString;
use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, Command};

use crate::config::{Metering, compile_config};
use crate::error::one_line;

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
/// Maximum size of an artifact that is accepted from a child. Code is about 4 times the size of a
/// component.
const ARTIFACT_BYTES_MAX: u64 = 1 << 30;
/// Number of compiler threads. More of them need more address space than the limit leaves.
const THREADS_MAX: &str = "4";

const STATUS_OK: u8 = 0;
const STATUS_REFUSED: u8 = 1;

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
    /// The compiler panicked.
    #[error(
        "makes the compiler fail ({status}); it uses WebAssembly in a way that this version does \
         not know"
    )]
    Crashed {
        /// Exit status of the child.
        status: ExitStatus,
    },
    /// The child cannot be started or communicated with.
    #[error("the compiler process does not work: {0}")]
    Child(std::io::Error),
}

/// Exit code of a Rust program that has panicked.
const PANICKED: i32 = 101;

struct CompileLimits {
    cpu_seconds: u64,
    memory_bytes: u64,
}

impl CompileLimits {
    fn for_size(component_bytes: usize) -> Self {
        let bytes = u64::try_from(component_bytes).unwrap_or(u64::MAX);
        Self {
            cpu_seconds: CPU_SECONDS_BASE + (bytes >> 20).saturating_mul(CPU_SECONDS_PER_MIB),
            memory_bytes: MEMORY_BYTES_BASE
                .saturating_add(bytes.saturating_mul(MEMORY_BYTES_PER_BYTE)),
        }
    }

    fn wall(&self) -> Duration {
        Duration::from_secs(self.cpu_seconds) * WALL_PER_CPU
    }
}

impl Compiler {
    /// Compiles `component` to an artifact that an engine of the same build can load.
    pub(crate) async fn compile(
        &self,
        component: &[u8],
        metering: Metering,
    ) -> Result<Vec<u8>, CompileError> {
        match self {
            Self::InProcess => {
                compile_here(component, metering).map_err(|reason| CompileError::Refused { reason })
            }
            Self::Child { program, arguments } => {
                let limits = CompileLimits::for_size(component.len());
                let mut child = start(program, arguments).map_err(CompileError::Child)?;
                let finished = tokio::time::timeout(
                    limits.wall(),
                    converse(&mut child, &limits, metering, component),
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
    limits: &CompileLimits,
    metering: Metering,
    component: &[u8],
) -> Result<Vec<u8>, CompileError> {
    let (Some(mut stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
        return Err(CompileError::Child(std::io::Error::other("the child has no pipes")));
    };
    // The pipe is closed at the end of the block, which tells the child that the component is
    // complete.
    let send = async move {
        stdin.write_all(&limits.cpu_seconds.to_le_bytes()).await?;
        stdin.write_all(&limits.memory_bytes.to_le_bytes()).await?;
        stdin.write_all(&[u8::from(metering == Metering::Instructions)]).await?;
        stdin.write_all(component).await
    };
    let mut answer = Vec::new();
    let mut stdout = stdout.take(ARTIFACT_BYTES_MAX);
    let receive = stdout.read_to_end(&mut answer);
    // A child that dies early breaks the pipe; its exit status is more informative than that error.
    let (_sent, received) = tokio::join!(send, receive);
    received.map_err(CompileError::Child)?;
    let status = child.wait().await.map_err(CompileError::Child)?;
    if !status.success() {
        return Err(death(status, limits));
    }
    read_answer(answer)
}

fn read_answer(mut answer: Vec<u8>) -> Result<Vec<u8>, CompileError> {
    let Some((&[status, is_confined], contents)) = answer.split_first_chunk() else {
        return Err(no_answer());
    };
    if is_confined == 0 {
        tracing::warn!(
            "this system cannot confine the compiler: it had its limits, and the rights of its user"
        );
    }
    match status {
        STATUS_OK => {
            answer.drain(..2);
            Ok(answer)
        }
        STATUS_REFUSED => {
            Err(CompileError::Refused { reason: String::from_utf8_lossy(contents).into_owned() })
        }
        _ => Err(no_answer()),
    }
}

fn no_answer() -> CompileError {
    CompileError::Child(std::io::Error::other("the child gave no answer"))
}

#[cfg(unix)]
fn death(status: ExitStatus, limits: &CompileLimits) -> CompileError {
    use std::os::unix::process::ExitStatusExt;
    let cpu_signals =
        [rustix::process::Signal::XCPU.as_raw(), rustix::process::Signal::KILL.as_raw()];
    match status.signal() {
        Some(signal) if cpu_signals.contains(&signal) => {
            CompileError::TooSlow { cpu_seconds: limits.cpu_seconds }
        }
        _ => crash_or_death(status, limits),
    }
}

#[cfg(not(unix))]
fn death(status: ExitStatus, limits: &CompileLimits) -> CompileError {
    crash_or_death(status, limits)
}

/// Distinguishes a panic, which has its own exit code, from an abort due to a lack of memory.
fn crash_or_death(status: ExitStatus, limits: &CompileLimits) -> CompileError {
    if status.code() == Some(PANICKED) {
        return CompileError::Crashed { status };
    }
    CompileError::Died { memory_mib: limits.memory_bytes >> 20, status }
}

/// Child side of [`Compiler::Child`]: reads the limits and the component from standard input,
/// limits and confines this process, compiles, and writes the answer to standard output. Call it
/// first, before any thread is started: existing threads would not be confined.
///
/// # Errors
/// If standard input or output fails, or if the limits cannot be set; nothing is compiled then.
pub fn compile_child() -> std::io::Result<()> {
    let mut input = std::io::stdin().lock();
    let limits =
        CompileLimits { cpu_seconds: read_u64(&mut input)?, memory_bytes: read_u64(&mut input)? };
    let metering = read_metering(&mut input)?;
    limit_this_process(&limits)?;
    let mut component = Vec::new();
    input.read_to_end(&mut component)?;
    let engine = compiler(metering);
    // From here on the component is processed.
    let is_confined = confine::confine_this_thread().is_ok();
    let (status, answer) = match engine.and_then(|engine| precompile(&engine, &component)) {
        Ok(artifact) => (STATUS_OK, artifact),
        Err(reason) => (STATUS_REFUSED, reason.into_bytes()),
    };
    let mut output = std::io::stdout().lock();
    output.write_all(&[status, u8::from(is_confined)])?;
    output.write_all(&answer)?;
    output.flush()
}

fn read_u64(input: &mut impl Read) -> std::io::Result<u64> {
    let mut bytes = [0; 8];
    input.read_exact(&mut bytes)?;
    Ok(u64::from_le_bytes(bytes))
}

fn read_metering(input: &mut impl Read) -> std::io::Result<Metering> {
    let mut byte = [0];
    input.read_exact(&mut byte)?;
    Ok(if byte == [0] { Metering::Time } else { Metering::Instructions })
}

#[cfg(unix)]
fn limit_this_process(limits: &CompileLimits) -> std::io::Result<()> {
    use rustix::process::{Resource, Rlimit, setrlimit};
    let exactly = |n: u64| Rlimit { current: Some(n), maximum: Some(n) };
    setrlimit(Resource::Cpu, exactly(limits.cpu_seconds))?;
    setrlimit(Resource::As, exactly(limits.memory_bytes))?;
    setrlimit(Resource::Core, exactly(0))?;
    setrlimit(Resource::Fsize, exactly(0))?;
    Ok(())
}

#[cfg(not(unix))]
fn limit_this_process(_limits: &CompileLimits) -> std::io::Result<()> {
    Err(std::io::Error::new(std::io::ErrorKind::Unsupported, "this platform has no process limits"))
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
        let small = CompileLimits::for_size(3000);
        assert_eq!((small.cpu_seconds, small.memory_bytes >> 20), (5, 2048));
        let python = CompileLimits::for_size(18 << 20);
        assert_eq!((python.cpu_seconds, python.memory_bytes >> 20), (59, 3200));
    }

    #[test]
    fn an_answer_without_status_is_no_artifact() {
        assert!(matches!(read_answer(vec![]), Err(CompileError::Child(_))));
        assert!(matches!(read_answer(vec![0]), Err(CompileError::Child(_))));
        assert!(matches!(read_answer(vec![7, 1, 2]), Err(CompileError::Child(_))));
        assert_eq!(read_answer(vec![0, 1, 1, 2]).unwrap(), [1, 2]);
        assert_eq!(read_answer(vec![0, 0]).unwrap(), [0; 0]);
        let refused = read_answer(b"\x01\x01no".to_vec()).unwrap_err();
        assert_eq!(refused.to_string(), "does not compile: no");
    }
}
