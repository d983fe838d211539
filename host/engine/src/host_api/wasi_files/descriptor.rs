//! Descriptors of a guest: open files, directories, and partially read listings.

use std::time::{SystemTime, UNIX_EPOCH};
use std::vec;

use cofferdam_files::{
    Charge, EntryKind, FileStore as _, ListingEntry, Overlay, OverlayFile, Stat, StorePath,
};
use wasmtime::component::{Resource, ResourceTable};
use wasmtime_wasi::p2::bindings::clocks::wall_clock::Datetime;
use wasmtime_wasi::p2::bindings::filesystem::types::{
    self, DescriptorFlags, DescriptorStat, DescriptorType, DirectoryEntryStream, ErrorCode,
};
use wasmtime_wasi::p2::{FsError, FsResult};

/// Object behind a descriptor of a guest.
#[derive(Clone)]
pub(super) enum Descriptor {
    File(FileDescriptor),
    Directory(DirectoryDescriptor),
}

#[derive(Clone)]
pub(super) struct FileDescriptor {
    pub(super) file: OverlayFile,
    /// Index of its mount.
    pub(super) mount: usize,
    pub(super) reads: bool,
    pub(super) writes: bool,
}

#[derive(Clone)]
pub(super) struct DirectoryDescriptor {
    pub(super) overlay: Overlay,
    pub(super) mount: usize,
    /// Path of the directory. Existing descriptors do not follow a directory that is moved.
    pub(super) path: StorePath,
}

/// Remaining entries of a listing.
pub(super) struct OpenListing {
    pub(super) entries: vec::IntoIter<ListingEntry>,
    /// Memory of the listing, which counts as memory of the call.
    pub(super) _charge: Charge,
}

impl Descriptor {
    pub(super) fn flags(&self) -> DescriptorFlags {
        match self {
            Self::File(file) => {
                flag(file.reads, DescriptorFlags::READ) | flag(file.writes, DescriptorFlags::WRITE)
            }
            Self::Directory(directory) => {
                let changes = !directory.overlay.is_read_only();
                DescriptorFlags::READ | flag(changes, DescriptorFlags::MUTATE_DIRECTORY)
            }
        }
    }

    /// Returns an identity among files and directories; `None` for a directory that no longer
    /// exists.
    pub(super) async fn object(self) -> Option<(usize, u64)> {
        match self {
            Self::File(file) => Some((file.mount, file.file.identity())),
            Self::Directory(directory) => {
                let identity = directory.overlay.identity(&directory.path).await.ok()?;
                Some((directory.mount, identity))
            }
        }
    }

    /// Returns the file, for operations that do not apply to directories.
    pub(super) fn file(self) -> Result<FileDescriptor, ErrorCode> {
        match self {
            Self::File(file) => Ok(file),
            Self::Directory(_) => Err(ErrorCode::BadDescriptor),
        }
    }

    pub(super) fn directory(self) -> Result<DirectoryDescriptor, ErrorCode> {
        match self {
            Self::Directory(directory) => Ok(directory),
            Self::File(_) => Err(ErrorCode::NotDirectory),
        }
    }
}

impl FileDescriptor {
    pub(super) fn readable(self) -> Result<OverlayFile, ErrorCode> {
        if self.reads { Ok(self.file) } else { Err(ErrorCode::BadDescriptor) }
    }

    pub(super) fn writable(self) -> Result<OverlayFile, ErrorCode> {
        if self.writes { Ok(self.file) } else { Err(ErrorCode::BadDescriptor) }
    }
}

fn flag(is_set: bool, flag: DescriptorFlags) -> DescriptorFlags {
    if is_set { flag } else { DescriptorFlags::empty() }
}

/// Returns the descriptor behind `handle`. A handle of another type is an error of the guest and
/// ends the call.
pub(super) fn get(
    table: &ResourceTable,
    handle: &Resource<types::Descriptor>,
) -> FsResult<Descriptor> {
    let ours = Resource::<Descriptor>::new_borrow(handle.rep());
    Ok(table.get(&ours).map_err(FsError::trap)?.clone())
}

pub(super) fn push(
    table: &mut ResourceTable,
    descriptor: Descriptor,
) -> Result<Resource<types::Descriptor>, wasmtime::component::ResourceTableError> {
    Ok(Resource::new_own(table.push(descriptor)?.rep()))
}

pub(super) fn push_listing(
    table: &mut ResourceTable,
    listing: OpenListing,
) -> FsResult<Resource<DirectoryEntryStream>> {
    Ok(Resource::new_own(table.push(listing)?.rep()))
}

pub(super) fn stat_of(stat: &Stat) -> DescriptorStat {
    let modified = stat.modified.and_then(datetime);
    DescriptorStat {
        type_: type_of(stat.kind),
        link_count: 1,
        size: stat.bytes,
        data_access_timestamp: modified,
        data_modification_timestamp: modified,
        status_change_timestamp: modified,
    }
}

pub(super) fn type_of(kind: EntryKind) -> DescriptorType {
    match kind {
        EntryKind::File => DescriptorType::RegularFile,
        EntryKind::Directory => DescriptorType::Directory,
    }
}

/// Converts a time. Times before 1970 are omitted, because the type cannot represent them.
fn datetime(time: SystemTime) -> Option<Datetime> {
    let since = time.duration_since(UNIX_EPOCH).ok()?;
    Some(Datetime { seconds: since.as_secs(), nanoseconds: since.subsec_nanos() })
}
