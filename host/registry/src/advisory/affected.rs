//! Artifacts that an advisory affects: repositories with versions, and digests.

use std::cmp::Ordering;

use percent_encoding::percent_decode_str;
use semver::Version;
use serde::Deserialize;
use serde_json::Value;

use crate::reference::SCHEME;
use crate::{Digest, Reference};

/// Beginning of a package URL of an artifact in a registry.
const PURL: &str = "pkg:oci/";

/// Repository with its affected versions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct AffectedPackage {
    /// Host and repository.
    pub(super) name: String,
    versions: Vec<String>,
    ranges: Vec<VersionRange>,
}

/// Range of versions.
#[derive(Debug, Clone, PartialEq, Eq)]
struct VersionRange {
    /// Events in the order of their versions. `None` is before every version.
    events: Vec<(Option<Version>, RangeEvent)>,
}

/// Event of a range. Those at one version apply in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum RangeEvent {
    /// The range has ended before this version, in which the problem is fixed.
    Fixed,
    /// The range has ended before this version.
    Limit,
    /// The range begins with this version.
    Introduced,
    /// The range ends with this version.
    LastAffected,
}

/// Element of `affected`.
#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct OsvAffected {
    package: Option<OsvPackage>,
    versions: Option<Vec<String>>,
    ranges: Option<Vec<OsvRange>>,
    database_specific: Option<Value>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct OsvPackage {
    name: Option<String>,
    purl: Option<String>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct OsvRange {
    #[serde(rename = "type")]
    kind: String,
    events: Option<Vec<OsvEvent>>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct OsvEvent {
    introduced: Option<String>,
    fixed: Option<String>,
    last_affected: Option<String>,
    limit: Option<String>,
}

impl OsvAffected {
    /// Returns the digests that the element names.
    pub(super) fn digests(&self) -> impl Iterator<Item = Digest> {
        let versions = self.versions.iter().flatten().filter_map(|version| version.parse().ok());
        versions.chain(digests(self.database_specific.as_ref()))
    }
}

/// Returns the digests of `database_specific.digests`.
pub(super) fn digests(specific: Option<&Value>) -> impl Iterator<Item = Digest> {
    let listed = specific.and_then(|it| it.get("digests")?.as_array());
    listed.into_iter().flatten().filter_map(|digest| digest.as_str()?.parse().ok())
}

impl AffectedPackage {
    /// Returns the package of an element, if it is a repository of a registry.
    pub(super) fn of(affected: &OsvAffected) -> Option<Self> {
        let package = affected.package.as_ref()?;
        let by_purl = || repository_of_purl(package.purl.as_deref()?);
        let name = package.name.as_deref().and_then(repository).or_else(by_purl)?;
        let is_ordered = |range: &&OsvRange| matches!(&*range.kind, "SEMVER" | "ECOSYSTEM");
        let ranges = affected.ranges.iter().flatten().filter(is_ordered);
        Some(Self {
            name,
            versions: affected.versions.clone().unwrap_or_default(),
            ranges: ranges.map(VersionRange::of).collect(),
        })
    }

    /// Returns whether a tag is affected. One that is not a version is affected if it is listed, or
    /// if every version is.
    pub(super) fn affects(&self, tag: Option<&str>) -> bool {
        let is_tag = |version: &String| tag.is_some_and(|tag| without_v(tag) == without_v(version));
        if self.versions.iter().any(is_tag) {
            return true;
        }
        match tag.and_then(version) {
            Some(version) => self.ranges.iter().any(|range| range.contains(&version)),
            None => self.ranges.iter().any(VersionRange::is_everything),
        }
    }

    /// Returns the first version after `tag` that is fixed.
    pub(super) fn fixed_after(&self, tag: Option<&str>) -> Option<&Version> {
        let version = tag.and_then(version)?;
        let ranges = self.ranges.iter().filter(|range| range.contains(&version));
        ranges.filter_map(|range| range.fixed_after(&version)).max()
    }
}

impl VersionRange {
    /// Returns the range of some events. If one has a version that cannot be compared, the range
    /// contains every version.
    fn of(range: &OsvRange) -> Self {
        let from_beginning = (None, RangeEvent::Introduced);
        let events = range.events.iter().flatten().flat_map(OsvEvent::parts);
        let events: Option<Vec<_>> = events.map(|(event, at)| point(event, at)).collect();
        let mut events = events.unwrap_or_default();
        if !events.iter().any(|(_, event)| *event == RangeEvent::Introduced) {
            events.push(from_beginning);
        }
        events.sort();
        Self { events }
    }

    fn contains(&self, version: &Version) -> bool {
        let mut is_affected = false;
        for (at, event) in &self.events {
            let order = at.as_ref().map_or(Ordering::Greater, |at| version.cmp_precedence(at));
            match event {
                RangeEvent::Introduced if order.is_ge() => is_affected = true,
                RangeEvent::Fixed | RangeEvent::Limit if order.is_ge() => is_affected = false,
                RangeEvent::LastAffected if order.is_gt() => is_affected = false,
                _ => {}
            }
        }
        is_affected
    }

    /// Returns whether the range has a beginning before every version, and no end.
    fn is_everything(&self) -> bool {
        let has_end = self.events.iter().any(|(_, event)| *event != RangeEvent::Introduced);
        !has_end && self.events.iter().any(|(at, _)| at.is_none())
    }

    fn fixed_after(&self, version: &Version) -> Option<&Version> {
        let fixed = self.events.iter().filter(|(_, event)| *event == RangeEvent::Fixed);
        let mut versions = fixed.filter_map(|(at, _)| at.as_ref());
        versions.find(|at| version.cmp_precedence(at).is_lt())
    }
}

impl OsvEvent {
    /// Returns the events with their versions. A valid object has one.
    fn parts(&self) -> impl Iterator<Item = (RangeEvent, &str)> {
        let limit = self.limit.as_ref().filter(|limit| *limit != "*");
        let parts = [
            (RangeEvent::Introduced, self.introduced.as_ref()),
            (RangeEvent::Fixed, self.fixed.as_ref()),
            (RangeEvent::LastAffected, self.last_affected.as_ref()),
            (RangeEvent::Limit, limit),
        ];
        parts.into_iter().filter_map(|(event, at)| Some((event, at?.as_str())))
    }
}

/// Returns an event at its version, or `None` if the version cannot be compared.
fn point(event: RangeEvent, at: &str) -> Option<(Option<Version>, RangeEvent)> {
    if event == RangeEvent::Introduced && at == "0" {
        return Some((None, event));
    }
    Some((Some(version(at)?), event))
}

fn version(tag: &str) -> Option<Version> {
    Version::parse(without_v(tag)).ok()
}

/// Returns a version without the `v` that some tags begin with.
fn without_v(tag: &str) -> &str {
    let rest = tag.strip_prefix('v');
    rest.filter(|rest| rest.starts_with(|c: char| c.is_ascii_digit())).unwrap_or(tag)
}

/// Returns host and repository of `HOST/REPOSITORY`, with or without `oci://`.
fn repository(name: &str) -> Option<String> {
    let name = name.strip_prefix(SCHEME).unwrap_or(name);
    let reference: Reference = format!("{SCHEME}{name}").parse().ok()?;
    let has_version = reference.tag().is_some() || reference.digest().is_some();
    (!has_version).then(|| reference.name())
}

/// Returns host and repository of `pkg:oci/NAME?repository_url=HOST/REPOSITORY`.
fn repository_of_purl(purl: &str) -> Option<String> {
    let rest = purl.strip_prefix(PURL)?;
    let (rest, _) = rest.split_once('#').unwrap_or((rest, ""));
    let (_, qualifiers) = rest.split_once('?')?;
    let url = qualifiers.split('&').find_map(|pair| pair.strip_prefix("repository_url="))?;
    repository(&percent_decode_str(url).decode_utf8().ok()?)
}
