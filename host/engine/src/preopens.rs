//! `wasi:filesystem` over directories of the host, for as long as mounts are the runtime's own preopens.
//!
//! The runtime confines paths to a preopened directory. It does not keep a guest from planting links, which something
//! else may follow later, nor from opening a pipe, which would take a thread of the host for ever. So three functions are
//! put in front of it: links cannot be created (`FILE-18`), and before a path is opened its kind is looked up.
//!
//! Looking and opening are two steps here: someone outside of the sandbox who swaps a file for a pipe in between can
//! still hold a thread. The guest itself cannot, because no function lets it make a pipe.

use wasmtime::StoreContextMut;
use wasmtime::component::{Linker, Resource};
use wasmtime_wasi::filesystem::{Descriptor, WasiFilesystemView};
use wasmtime_wasi::p2::FsError;
use wasmtime_wasi::p2::bindings::filesystem::types::{
    DescriptorFlags, DescriptorType, ErrorCode, HostDescriptor, OpenFlags, PathFlags,
};

use crate::state::CallState;

/// The interface as the runtime names it; a guest's own patch version of 0.2 is matched with it by the linker.
const TYPES: &str = "wasi:filesystem/types@0.2.12";

type NewLink = (Resource<Descriptor>, PathFlags, String, Resource<Descriptor>, String);
type Open = (Resource<Descriptor>, PathFlags, String, OpenFlags, DescriptorFlags);

/// Puts our functions in front of the runtime's.
pub(crate) fn guard(linker: &mut Linker<CallState>) -> wasmtime::Result<()> {
    linker.allow_shadowing(true);
    let mut types = linker.instance(TYPES)?;
    types.func_wrap("[method]descriptor.symlink-at", |_, _: (Resource<Descriptor>, String, String)| {
        Ok((Err::<(), _>(ErrorCode::NotPermitted),))
    })?;
    types.func_wrap("[method]descriptor.link-at", |_, _: NewLink| {
        Ok((Err::<(), _>(ErrorCode::NotPermitted),))
    })?;
    types.func_wrap_async("[method]descriptor.open-at", |store, request: Open| {
        Box::new(async move { Ok((open(store, request).await?,)) })
    })?;
    linker.allow_shadowing(false);
    Ok(())
}

/// Opens regular files and directories. Anything else is refused before it is touched.
async fn open(
    mut store: StoreContextMut<'_, CallState>,
    (directory, path_flags, path, open_flags, flags): Open,
) -> wasmtime::Result<Result<Resource<Descriptor>, ErrorCode>> {
    let mut files = store.data_mut().filesystem();
    let looked_at = Resource::new_borrow(directory.rep());
    match files.stat_at(looked_at, path_flags, path.clone()).await {
        Ok(stat) if !matches!(stat.type_, DescriptorType::RegularFile | DescriptorType::Directory) => {
            // Also a link that is not to be followed: opening it would fail in any case.
            return Ok(Err(ErrorCode::NotPermitted));
        }
        // What cannot be looked at is either not there yet or refused below for a better reason.
        Ok(_) | Err(_) => {}
    }
    settle(files.open_at(directory, path_flags, path, open_flags, flags).await)
}

/// Separates what the guest is told from what ends the call.
fn settle<T>(result: Result<T, FsError>) -> wasmtime::Result<Result<T, ErrorCode>> {
    match result {
        Ok(value) => Ok(Ok(value)),
        Err(error) => error.downcast().map(Err),
    }
}
