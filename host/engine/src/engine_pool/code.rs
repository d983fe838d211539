//! Compiled code in one engine, ready to be instantiated.

use std::io;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use wasmtime::component::Component as WasmComponent;

use super::WasmEngine;
use crate::LoadError;
use crate::command::{self, CommandCode};
use crate::error::one_line;
use crate::guest::{ServedPre, TOOLS_EXPORT};
use crate::host_api::{CallState, link};
use crate::typed::TypedCode;

/// Code that is linked with the host and ready to be instantiated.
#[derive(Clone)]
pub(crate) struct Code {
    /// Engine that the code was loaded into.
    pub(crate) wasm_engine: Arc<WasmEngine>,
    pub(crate) entry: CodeForm,
}

/// Times that the image of a component's memory is attempted before the component is given up.
const IMAGE_ATTEMPTS: u32 = 8;

/// Pause before the image of a component's memory is attempted again.
const IMAGE_PAUSE: Duration = Duration::from_millis(50);

/// Form in which code provides its tools.
#[derive(Clone)]
pub(crate) enum CodeForm {
    /// The component declares its tools.
    Declared(Arc<ServedPre<CallState>>),
    /// The component is a command, whose manifest declares its tools.
    Command(Arc<CommandCode>),
    /// The component's functions are its tools.
    Typed(Arc<TypedCode>),
}

impl Code {
    /// Creates code from an artifact that this installation has compiled. An artifact of any other
    /// origin could contain arbitrary machine code: callers must pass output of this installation's
    /// compiler, received over a pipe from a child process or from the cache, which has verified
    /// its MAC.
    #[expect(unsafe_code, reason = "loading machine code cannot be checked by the compiler")]
    pub(crate) fn from_trusted(
        wasm_engine: &Arc<WasmEngine>,
        artifact: &[u8],
        has_sockets: bool,
    ) -> Result<Self, LoadError> {
        let interface = |error: wasmtime::Error| LoadError::Interface { reason: one_line(&error) };
        // SAFETY: the callers pass output of this installation's compiler.
        let component = unsafe { WasmComponent::deserialize(&wasm_engine.wasmtime, artifact) }
            .map_err(interface)?;
        repeat_while_busy(|| component.initialize_copy_on_write_image()).map_err(interface)?;
        let linker =
            link::with_refusals(&wasm_engine.linker, &component, has_sockets).map_err(interface)?;
        let instance_pre = linker.instantiate_pre(&component).map_err(interface)?;
        let entry = if component.get_export_index(None, TOOLS_EXPORT).is_some() {
            CodeForm::Declared(Arc::new(ServedPre::new(instance_pre).map_err(interface)?))
        } else if command::is_command(&component) {
            CodeForm::Command(Arc::new(CommandCode::new(instance_pre).map_err(interface)?))
        } else {
            CodeForm::Typed(Arc::new(TypedCode::new(&component, instance_pre)?))
        };
        Ok(Self { wasm_engine: Arc::clone(wasm_engine), entry })
    }

    /// Returns a copy of the code for another engine of the same pool. Copies all of it, and blocks
    /// for about a millisecond.
    pub(crate) fn copied_into(
        &self,
        wasm_engine: &Arc<WasmEngine>,
        has_sockets: bool,
    ) -> Result<Self, LoadError> {
        let component = match &self.entry {
            CodeForm::Declared(code) => code.instance_pre().component(),
            CodeForm::Command(code) => code.instance_pre().component(),
            CodeForm::Typed(code) => code.instance_pre().component(),
        };
        let artifact = component.serialize();
        let artifact =
            artifact.map_err(|error| LoadError::Interface { reason: one_line(&error) })?;
        Self::from_trusted(wasm_engine, &artifact, has_sockets)
    }
}

/// Repeats `make_image` while the kernel answers that a resource is busy. wasmtime seals the file
/// that holds the initial memory of a component, and Linux refuses that (`EBUSY`) as long as it
/// happens to be moving one of the file's pages, which it does when memory is scarce.
fn repeat_while_busy(mut make_image: impl FnMut() -> wasmtime::Result<()>) -> wasmtime::Result<()> {
    for _ in 1..IMAGE_ATTEMPTS {
        match make_image() {
            Err(error) if is_busy(&error) => thread::sleep(IMAGE_PAUSE),
            result => return result,
        }
    }
    make_image()
}

/// Returns whether the operating system has refused something because it is in use.
fn is_busy(error: &wasmtime::Error) -> bool {
    let mut causes = error.chain().filter_map(|cause| cause.downcast_ref::<io::Error>());
    causes.any(|cause| cause.kind() == io::ErrorKind::ResourceBusy)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Error of sealing, as wasmtime returns it: the operating system's error is its source.
    #[derive(Debug, thiserror::Error)]
    #[error("cannot add seals")]
    struct SealError(#[source] io::Error);

    fn seal_error(code: i32) -> wasmtime::Error {
        SealError(io::Error::from_raw_os_error(code)).into()
    }

    #[cfg(unix)]
    #[test]
    fn a_busy_image_is_attempted_again_and_other_errors_are_not() {
        let mut attempts = 0;
        let result = repeat_while_busy(|| {
            attempts += 1;
            if attempts < 3 { Err(seal_error(libc::EBUSY)) } else { Ok(()) }
        });
        assert!(result.is_ok());
        assert_eq!(attempts, 3);

        let mut attempts = 0;
        let result = repeat_while_busy(|| {
            attempts += 1;
            Err(seal_error(libc::EMFILE))
        });
        assert!(!is_busy(&result.unwrap_err()));
        assert_eq!(attempts, 1);
    }

    #[cfg(unix)]
    #[test]
    fn an_image_that_stays_busy_is_given_up() {
        let mut attempts = 0;
        let result = repeat_while_busy(|| {
            attempts += 1;
            Err(seal_error(libc::EBUSY))
        });
        assert!(is_busy(&result.unwrap_err()));
        assert_eq!(attempts, IMAGE_ATTEMPTS);
    }
}
