//! Makes components of core modules.

use wasi_preview1_component_adapter_provider::{
    WASI_SNAPSHOT_PREVIEW1_ADAPTER_NAME, WASI_SNAPSHOT_PREVIEW1_COMMAND_ADAPTER,
    WASI_SNAPSHOT_PREVIEW1_REACTOR_ADAPTER,
};
use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};

use crate::{BuildError, wit};

/// Makes a component of a core module that a compiler has linked as a reactor for WASI preview 1.
/// Imports and exports of the module have the names that the canonical ABI gives those of the world
/// `plugin`. The component imports what the module imports, not everything in the world.
///
/// # Errors
/// [`BuildError::Component`] if the module does not fit the world.
pub(crate) fn from_core_module(module: &[u8]) -> Result<Vec<u8>, BuildError> {
    let (resolve, world) = wit::world()?;
    let mut module = module.to_vec();
    embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8)
        .map_err(|error| BuildError::Component(format!("{error:#}")))?;
    encode(&module, WASI_SNAPSHOT_PREVIEW1_REACTOR_ADAPTER).map_err(BuildError::Component)
}

/// Makes a component of a core module that is a program for WASI preview 1.
///
/// # Errors
/// The message of the encoder.
pub(crate) fn from_command(module: &[u8]) -> Result<Vec<u8>, String> {
    encode(module, WASI_SNAPSHOT_PREVIEW1_COMMAND_ADAPTER)
}

/// Links a module with an adapter from WASI preview 1.
fn encode(module: &[u8], adapter: &[u8]) -> Result<Vec<u8>, String> {
    ComponentEncoder::default()
        .validate(true)
        .module(module)
        .and_then(|encoder| encoder.adapter(WASI_SNAPSHOT_PREVIEW1_ADAPTER_NAME, adapter))
        .and_then(|mut encoder| encoder.encode())
        .map_err(|error| format!("{error:#}"))
}
