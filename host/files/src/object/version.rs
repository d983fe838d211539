//! Which state of an object it is.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use object_store::ObjectMeta;

use crate::{Stat, Version};

/// Buckets know no directories, so that one that is created anew cannot be told from the one that
/// was there.
pub(super) const DIRECTORY: Stat = Stat::directory(Version(1));

/// The state of an object that was written with the text `write`.
///
/// The entity tag alone is not enough: on S3 it is the same for the same content. The time is there
/// for those who write without such a text; a service tells it in seconds.
pub(super) fn version_of(meta: &ObjectMeta, write: Option<&str>) -> Version {
    let mut hasher = DefaultHasher::new();
    (&meta.e_tag, &meta.version, meta.last_modified, write).hash(&mut hasher);
    Version(hasher.finish())
}
