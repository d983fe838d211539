//! Versions of objects.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use object_store::ObjectMeta;

use crate::{Stat, Version};

/// Buckets have no directories, so one that was deleted and created again cannot be distinguished
/// from the previous one.
pub(super) const DIRECTORY: Stat = Stat::directory(Version(1));

/// Computes the version of an object that was written with the string `write`.
///
/// The entity tag is not enough: on S3 it is the same for the same content. The time distinguishes
/// writes by other programs, which have no such string; services report it in seconds.
pub(super) fn version_of(meta: &ObjectMeta, write: Option<&str>) -> Version {
    let mut hasher = DefaultHasher::new();
    (&meta.e_tag, &meta.version, meta.last_modified, write).hash(&mut hasher);
    Version(hasher.finish())
}
