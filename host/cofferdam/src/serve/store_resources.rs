//! Files of a store as read-only MCP resources: `store://NAME/path`.

use std::sync::Arc;

use async_trait::async_trait;
use cofferdam_files::{
    EntryKind, FileAccessOptions, FileStore, PathPatterns, RestrictedStore, Scope, StorePath,
    StoreSharing,
};
use cofferdam_mcp::{ListedResource, ResourceSource};
use cofferdam_tool::MountName;
use cofferdam_tool::output::ResourceBody;
use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, utf8_percent_encode};

use crate::config::ConfigFile;
use crate::granting::Values;
use crate::media_type::media_type;
use crate::stores::Stores;

/// Maximum size of a file that is read, in bytes.
const FILE_BYTES_MAX: u64 = 4 << 20;
/// Characters to escape in a URI. `/` is not escaped, because it is the separator in URIs and store
/// paths alike.
pub(super) const ESCAPED: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'#')
    .add(b'%')
    .add(b'<')
    .add(b'>')
    .add(b'?')
    .add(b'`')
    .add(b'{')
    .add(b'}');

/// Resources of one store.
pub(super) struct StoreResources {
    name: String,
    prefix: String,
    store: Arc<dyn FileStore>,
}

impl StoreResources {
    pub(super) fn new(name: &str, store: Arc<dyn FileStore>) -> Self {
        Self { name: name.to_owned(), prefix: format!("store://{name}/"), store }
    }

    /// Opens the stores that `serve.stores` of a configuration names.
    pub(super) fn of_config(file: &ConfigFile) -> crate::Result<Vec<Arc<dyn ResourceSource>>> {
        Self::open(file, Values::Read)
    }

    /// Checks the stores that `serve.stores` names, without reading secrets.
    pub(super) fn check(file: &ConfigFile) -> crate::Result<()> {
        Self::open(file, Values::Leave).map(drop)
    }

    fn open(file: &ConfigFile, values: Values) -> crate::Result<Vec<Arc<dyn ResourceSource>>> {
        let stores = Stores::new(file, values);
        let mut sources: Vec<Arc<dyn ResourceSource>> = Vec::new();
        for name in &file.config.serve.stores {
            let mount = MountName::new(name.get_ref().as_str())
                .map_err(|error| file.error(name.span(), error.to_string()))?;
            if stores.sharing(&mount) == StoreSharing::PerSession {
                let message = format!(
                    "the store `{mount}` has a directory for each session and cannot be shown to all"
                );
                return Err(file.error(name.span(), message).into());
            }
            let mut store = stores.get(&mount, name.span())?;
            for hidden in hidden_paths(file, mount.as_str()) {
                store = Arc::new(RestrictedStore::new(store, hidden, PathPatterns::default()));
            }
            sources.push(Arc::new(Self::new(mount.as_str(), store)));
        }
        Ok(sources)
    }
}

/// Returns the paths of a store that file tools hide: those that they hide by default, and those of
/// each table of `[files]` about the store.
fn hidden_paths(file: &ConfigFile, store: &str) -> Vec<PathPatterns> {
    let tables = file
        .config
        .files
        .values()
        .filter(|table| table.store.as_ref().is_some_and(|named| named.get_ref() == store));
    let default = FileAccessOptions::default().hidden;
    std::iter::once(default).chain(tables.filter_map(|table| table.hidden.clone())).collect()
}

#[async_trait]
impl ResourceSource for StoreResources {
    fn name(&self) -> &str {
        &self.name
    }

    fn prefix(&self) -> &str {
        &self.prefix
    }

    async fn list(&self, count_max: usize) -> Vec<ListedResource> {
        // A listing that fails is empty. Reading a file reports the error.
        let Ok(listing) = self.store.list(&StorePath::ROOT, Scope::Recursive).await else {
            return Vec::new();
        };
        let files = listing.entries.into_iter().filter(|entry| entry.kind == EntryKind::File);
        let listed = |name: String| ListedResource {
            uri: format!("{}{}", self.prefix, utf8_percent_encode(&name, ESCAPED)),
            media_type: media_type(&name).map(str::to_owned),
            name,
            bytes: None,
        };
        files.take(count_max).map(|entry| listed(entry.name)).collect()
    }

    async fn read(&self, uri: &str) -> Option<(Option<String>, ResourceBody)> {
        let path = percent_decode_str(uri.strip_prefix(&self.prefix)?).decode_utf8().ok()?;
        let path = StorePath::file(&path).ok()?;
        let bytes = self.store.read(&path, FILE_BYTES_MAX).await.ok()?;
        let media_type = media_type(path.as_str()).map(str::to_owned);
        Some(match String::from_utf8(bytes) {
            Ok(text) => {
                (media_type.or_else(|| Some("text/plain".to_owned())), ResourceBody::Text(text))
            }
            Err(error) => (media_type, ResourceBody::Blob(error.into_bytes())),
        })
    }
}
