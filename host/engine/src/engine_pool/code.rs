//! Compiled code in one engine, ready to be instantiated.

use std::sync::Arc;

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
