//! Functions of `wasi:filesystem/types` and `preopens`.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use cofferdam_files::{
    EntryKind, FileError, FileStore as _, Listing, MadeDirectory, OpenMode, Scope, Stat, StorePath,
};
use wasmtime::component::Resource;
use wasmtime_wasi::p2::bindings::filesystem::preopens;
use wasmtime_wasi::p2::bindings::filesystem::types::{
    self, Advice, DescriptorFlags, DescriptorStat, DescriptorType, DirectoryEntry,
    DirectoryEntryStream, ErrorCode, HostDescriptor, HostDirectoryEntryStream, MetadataHashValue,
    NewTimestamp, OpenFlags, PathFlags,
};
use wasmtime_wasi::p2::{DynInputStream, DynOutputStream, FsError, FsResult};

use super::FilesView;
use super::descriptor::{
    self, Descriptor, DirectoryDescriptor, FileDescriptor, OpenListing, push, push_listing,
    stat_of, type_of,
};
use super::error::to_fs_error;
use super::path::{Target, resolve};
use super::read::{READ_BYTES_MAX, ReadStream};
use super::write::WriteStream;

type Handle = Resource<types::Descriptor>;

/// Memory of a listing entry besides its name, in bytes.
const ENTRY_BYTES: u64 = 64;

impl FilesView<'_> {
    fn get(&self, handle: &Handle) -> FsResult<Descriptor> {
        descriptor::get(self.table, handle)
    }

    /// Returns the directory behind `handle`, and the target of `path` in it.
    fn at(&self, handle: &Handle, path: &str) -> FsResult<(DirectoryDescriptor, Target)> {
        let directory = self.get(handle)?.directory()?;
        let target = resolve(&directory.path, path, directory.overlay.names())?;
        Ok((directory, target))
    }

    /// Fails if the mount is read-only.
    fn changeable(&self, mount: usize) -> FsResult<()> {
        match self.files.mounts().get(mount) {
            Some(mount) if mount.overlay.is_read_only() => Err(ErrorCode::ReadOnly.into()),
            _ => Ok(()),
        }
    }
}

impl DirectoryDescriptor {
    /// Returns the metadata of `target`, which must be a directory if the path requires one.
    async fn stat(&self, target: &Target) -> FsResult<Stat> {
        Ok(self.identity_and_stat(target).await?.1)
    }

    async fn identity_and_stat(&self, target: &Target) -> FsResult<(u64, Stat)> {
        let (identity, stat) =
            self.overlay.identity_and_stat(&target.path).await.map_err(to_fs_error)?;
        if target.must_be_directory && stat.kind == EntryKind::File {
            return Err(ErrorCode::NotDirectory.into());
        }
        Ok((identity, stat))
    }

    fn descend(&self, path: StorePath) -> Descriptor {
        Descriptor::Directory(Self { overlay: self.overlay.clone(), mount: self.mount, path })
    }

    async fn open(
        &self,
        target: Target,
        flags: OpenFlags,
        access: DescriptorFlags,
    ) -> FsResult<Descriptor> {
        let creates = flags.contains(OpenFlags::CREATE);
        let mode = OpenMode {
            writes: access.contains(DescriptorFlags::WRITE),
            creates,
            is_exclusive: flags.contains(OpenFlags::EXCLUSIVE),
            truncates: flags.contains(OpenFlags::TRUNCATE),
        };
        if flags.contains(OpenFlags::DIRECTORY) || (target.must_be_directory && !creates) {
            if creates || mode.is_exclusive || mode.truncates {
                return Err(ErrorCode::Invalid.into());
            }
            if self.stat(&target).await?.kind == EntryKind::File {
                return Err(ErrorCode::NotDirectory.into());
            }
            if mode.writes {
                return Err(ErrorCode::IsDirectory.into());
            }
            return Ok(self.descend(target.path));
        }
        if target.must_be_directory {
            return Err(ErrorCode::IsDirectory.into());
        }
        match self.overlay.open(&target.path, mode).await {
            Ok(file) => Ok(Descriptor::File(FileDescriptor {
                file,
                mount: self.mount,
                // Opening for neither reading nor writing means reading.
                reads: access.contains(DescriptorFlags::READ) || !mode.writes,
                writes: mode.writes,
            })),
            Err(FileError::IsDirectory) if !creates && !mode.writes && !mode.truncates => {
                Ok(self.descend(target.path))
            }
            Err(error) => Err(to_fs_error(error)),
        }
    }

    async fn create_directory(&self, target: &Target) -> FsResult<()> {
        // The store would create missing parents, but a guest's file API does not.
        if let Some((parent, _)) = target.path.split()
            && self.overlay.stat(&parent).await.map_err(to_fs_error)?.kind == EntryKind::File
        {
            return Err(ErrorCode::NotDirectory.into());
        }
        match self.overlay.create_directory(&target.path).await {
            Ok(MadeDirectory::Created) => Ok(()),
            Ok(MadeDirectory::Existed) | Err(FileError::IsFile) => Err(ErrorCode::Exist.into()),
            Err(error) => Err(to_fs_error(error)),
        }
    }

    async fn list(&self) -> FsResult<OpenListing> {
        if self.overlay.stat(&self.path).await.map_err(to_fs_error)?.kind == EntryKind::File {
            return Err(ErrorCode::NotDirectory.into());
        }
        let listing: Listing =
            self.overlay.list(&self.path, Scope::Children).await.map_err(to_fs_error)?;
        if listing.is_truncated {
            // An error is better than a partial listing that the guest takes for complete.
            return Err(ErrorCode::Overflow.into());
        }
        let bytes = |entry: &cofferdam_files::ListingEntry| {
            ENTRY_BYTES.saturating_add(u64::try_from(entry.name.len()).unwrap_or(u64::MAX))
        };
        let charge = self
            .overlay
            .budget()
            .take(listing.entries.iter().map(bytes).sum())
            .map_err(to_fs_error)?;
        Ok(OpenListing { entries: listing.entries.into_iter(), _charge: charge })
    }

    async fn metadata_hash(&self, target: &Target) -> FsResult<MetadataHashValue> {
        let (identity, stat) = self.identity_and_stat(target).await?;
        Ok(hash_of(self.mount, identity, &stat))
    }
}

/// Returns a hash whose lower half identifies the file, which C libraries use as the inode number.
/// The upper half changes with the file.
fn hash_of(mount: usize, identity: u64, stat: &Stat) -> MetadataHashValue {
    let hash = |value: &dyn Fn(&mut DefaultHasher)| {
        let mut hasher = DefaultHasher::new();
        value(&mut hasher);
        hasher.finish()
    };
    MetadataHashValue {
        lower: hash(&|hasher| (mount, identity).hash(hasher)),
        upper: hash(&|hasher| (stat.bytes, stat.modified, stat.version).hash(hasher)),
    }
}

impl preopens::Host for FilesView<'_> {
    fn get_directories(&mut self) -> wasmtime::Result<Vec<(Handle, String)>> {
        let mut directories = Vec::new();
        for (number, mount) in self.files.mounts().iter().enumerate() {
            let overlay = mount.overlay.clone();
            let root = DirectoryDescriptor { overlay, mount: number, path: StorePath::ROOT };
            directories
                .push((push(self.table, Descriptor::Directory(root))?, mount.name.guest_path()));
        }
        Ok(directories)
    }
}

impl types::Host for FilesView<'_> {
    fn convert_error_code(&mut self, error: FsError) -> wasmtime::Result<ErrorCode> {
        error.downcast()
    }

    fn filesystem_error_code(
        &mut self,
        error: Resource<wasmtime::Error>,
    ) -> wasmtime::Result<Option<ErrorCode>> {
        Ok(self.table.get(&error)?.downcast_ref::<ErrorCode>().copied())
    }
}

impl HostDescriptor for FilesView<'_> {
    fn read_via_stream(
        &mut self,
        handle: Handle,
        offset: u64,
    ) -> FsResult<Resource<DynInputStream>> {
        let Descriptor::File(file) = self.get(&handle)? else {
            return Err(ErrorCode::IsDirectory.into());
        };
        let stream: DynInputStream = Box::new(ReadStream::new(file.readable()?, offset));
        Ok(self.table.push(stream)?)
    }

    fn write_via_stream(
        &mut self,
        handle: Handle,
        offset: u64,
    ) -> FsResult<Resource<DynOutputStream>> {
        let file = self.get(&handle)?.file()?.writable()?;
        let stream: DynOutputStream = Box::new(WriteStream::at(file, offset));
        Ok(self.table.push(stream)?)
    }

    fn append_via_stream(&mut self, handle: Handle) -> FsResult<Resource<DynOutputStream>> {
        let file = self.get(&handle)?.file()?.writable()?;
        let stream: DynOutputStream = Box::new(WriteStream::append(file));
        Ok(self.table.push(stream)?)
    }

    async fn advise(&mut self, handle: Handle, _: u64, _: u64, _: Advice) -> FsResult<()> {
        self.get(&handle)?.file()?;
        Ok(())
    }

    /// Does nothing: writes become durable when the call succeeds.
    async fn sync_data(&mut self, handle: Handle) -> FsResult<()> {
        self.get(&handle)?;
        Ok(())
    }

    async fn sync(&mut self, handle: Handle) -> FsResult<()> {
        self.get(&handle)?;
        Ok(())
    }

    async fn get_flags(&mut self, handle: Handle) -> FsResult<DescriptorFlags> {
        Ok(self.get(&handle)?.flags())
    }

    async fn get_type(&mut self, handle: Handle) -> FsResult<DescriptorType> {
        Ok(type_of(match self.get(&handle)? {
            Descriptor::File(_) => EntryKind::File,
            Descriptor::Directory(_) => EntryKind::Directory,
        }))
    }

    async fn set_size(&mut self, handle: Handle, bytes: u64) -> FsResult<()> {
        let file = self.get(&handle)?.file()?.writable()?;
        file.set_bytes(bytes).await.map_err(to_fs_error)
    }

    /// Times are the store's own. Setting them succeeds without any effect, as on other file
    /// systems without times: programs that copy files set the times of the copy, and would fail
    /// after they have made the copy.
    async fn set_times(
        &mut self,
        handle: Handle,
        _: NewTimestamp,
        _: NewTimestamp,
    ) -> FsResult<()> {
        let mount = match self.get(&handle)? {
            Descriptor::File(file) => file.mount,
            Descriptor::Directory(directory) => directory.mount,
        };
        self.changeable(mount)
    }

    async fn set_times_at(
        &mut self,
        handle: Handle,
        _: PathFlags,
        path: String,
        _: NewTimestamp,
        _: NewTimestamp,
    ) -> FsResult<()> {
        let (directory, target) = self.at(&handle, &path)?;
        self.changeable(directory.mount)?;
        directory.stat(&target).await?;
        Ok(())
    }

    async fn read(
        &mut self,
        handle: Handle,
        length: u64,
        offset: u64,
    ) -> FsResult<(Vec<u8>, bool)> {
        let Descriptor::File(file) = self.get(&handle)? else {
            return Err(ErrorCode::IsDirectory.into());
        };
        let content = file
            .readable()?
            .read_at(offset, length.min(READ_BYTES_MAX))
            .await
            .map_err(to_fs_error)?;
        let is_end = content.is_empty() && length > 0;
        Ok((content, is_end))
    }

    async fn write(&mut self, handle: Handle, data: Vec<u8>, offset: u64) -> FsResult<u64> {
        let file = self.get(&handle)?.file()?.writable()?;
        file.write_at(offset, &data).await.map_err(to_fs_error)?;
        Ok(u64::try_from(data.len()).unwrap_or(u64::MAX))
    }

    async fn read_directory(&mut self, handle: Handle) -> FsResult<Resource<DirectoryEntryStream>> {
        let listing = self.get(&handle)?.directory()?.list().await?;
        push_listing(self.table, listing)
    }

    async fn create_directory_at(&mut self, handle: Handle, path: String) -> FsResult<()> {
        let (directory, target) = self.at(&handle, &path)?;
        directory.create_directory(&target).await
    }

    async fn stat(&mut self, handle: Handle) -> FsResult<DescriptorStat> {
        match self.get(&handle)? {
            Descriptor::File(file) => Ok(stat_of(&file.file.stat())),
            Descriptor::Directory(directory) => {
                Ok(stat_of(&directory.overlay.stat(&directory.path).await.map_err(to_fs_error)?))
            }
        }
    }

    async fn stat_at(
        &mut self,
        handle: Handle,
        _: PathFlags,
        path: String,
    ) -> FsResult<DescriptorStat> {
        let (directory, target) = self.at(&handle, &path)?;
        Ok(stat_of(&directory.stat(&target).await?))
    }

    async fn link_at(
        &mut self,
        handle: Handle,
        _: PathFlags,
        _: String,
        _: Handle,
        _: String,
    ) -> FsResult<()> {
        self.get(&handle)?;
        Err(ErrorCode::NotPermitted.into())
    }

    async fn open_at(
        &mut self,
        handle: Handle,
        _: PathFlags,
        path: String,
        flags: OpenFlags,
        access: DescriptorFlags,
    ) -> FsResult<Handle> {
        let (directory, target) = self.at(&handle, &path)?;
        let opened = directory.open(target, flags, access).await?;
        Ok(push(self.table, opened)?)
    }

    /// Fails for every existing path, because there are no links.
    async fn readlink_at(&mut self, handle: Handle, path: String) -> FsResult<String> {
        let (directory, target) = self.at(&handle, &path)?;
        directory.stat(&target).await?;
        Err(ErrorCode::Invalid.into())
    }

    async fn remove_directory_at(&mut self, handle: Handle, path: String) -> FsResult<()> {
        let (directory, target) = self.at(&handle, &path)?;
        directory.overlay.remove_directory(&target.path).await.map_err(to_fs_error)
    }

    async fn rename_at(
        &mut self,
        handle: Handle,
        path: String,
        new_handle: Handle,
        new_path: String,
    ) -> FsResult<()> {
        let (directory, from) = self.at(&handle, &path)?;
        let (new_directory, to) = self.at(&new_handle, &new_path)?;
        if directory.mount != new_directory.mount {
            return Err(ErrorCode::CrossDevice.into());
        }
        let kind = directory.stat(&from).await?.kind;
        if to.must_be_directory && kind == EntryKind::File {
            return Err(ErrorCode::NotDirectory.into());
        }
        directory.overlay.rename(&from.path, &to.path).await.map_err(to_fs_error)
    }

    async fn symlink_at(&mut self, handle: Handle, _: String, _: String) -> FsResult<()> {
        self.get(&handle)?;
        Err(ErrorCode::NotPermitted.into())
    }

    async fn unlink_file_at(&mut self, handle: Handle, path: String) -> FsResult<()> {
        let (directory, target) = self.at(&handle, &path)?;
        if directory.stat(&target).await?.kind == EntryKind::Directory {
            return Err(ErrorCode::IsDirectory.into());
        }
        directory.overlay.delete(&target.path).await.map_err(to_fs_error)
    }

    async fn is_same_object(&mut self, handle: Handle, other: Handle) -> wasmtime::Result<bool> {
        let (one, other) = (self.get(&handle)?, self.get(&other)?);
        let (one, other) = (one.object().await, other.object().await);
        Ok(one.is_some() && one == other)
    }

    async fn metadata_hash(&mut self, handle: Handle) -> FsResult<MetadataHashValue> {
        match self.get(&handle)? {
            Descriptor::File(file) => {
                Ok(hash_of(file.mount, file.file.identity(), &file.file.stat()))
            }
            Descriptor::Directory(directory) => {
                let path = directory.path.clone();
                directory.metadata_hash(&Target { path, must_be_directory: true }).await
            }
        }
    }

    async fn metadata_hash_at(
        &mut self,
        handle: Handle,
        _: PathFlags,
        path: String,
    ) -> FsResult<MetadataHashValue> {
        let (directory, target) = self.at(&handle, &path)?;
        directory.metadata_hash(&target).await
    }

    fn drop(&mut self, handle: Handle) -> wasmtime::Result<()> {
        self.table.delete(Resource::<Descriptor>::new_own(handle.rep()))?;
        Ok(())
    }
}

impl HostDirectoryEntryStream for FilesView<'_> {
    async fn read_directory_entry(
        &mut self,
        stream: Resource<DirectoryEntryStream>,
    ) -> FsResult<Option<DirectoryEntry>> {
        let ours = Resource::<OpenListing>::new_borrow(stream.rep());
        let entry = self.table.get_mut(&ours)?.entries.next();
        Ok(entry.map(|entry| DirectoryEntry { type_: type_of(entry.kind), name: entry.name }))
    }

    fn drop(&mut self, stream: Resource<DirectoryEntryStream>) -> wasmtime::Result<()> {
        self.table.delete(Resource::<OpenListing>::new_own(stream.rep()))?;
        Ok(())
    }
}
