//! Versions of sources that a gateway offers, as its configuration decides.

use std::collections::{BTreeMap, BTreeSet};

use crate::Result;
use crate::config::{ConfigFile, VersionTable};

/// Characters of a version.
const VERSION_CHARS: usize = 32;

/// Offered versions of sources by name. Of other sources, the version that most workers have is
/// offered.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Rollout(BTreeMap<String, PinnedVersion>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct PinnedVersion {
    pin: String,
    canary: Option<Canary>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Canary {
    version: String,
    /// Share of the callers, in percent.
    percent: u8,
}

impl Rollout {
    /// Returns the rollout of a configuration.
    ///
    /// # Errors
    /// Returns an error for a version that is not one, and for a canary without a share.
    pub(crate) fn of_config(file: &ConfigFile) -> Result<Self> {
        let tables = file.config.cluster.versions.iter();
        let pinned = tables.map(|(name, table)| Ok((name.clone(), pinned(file, table)?)));
        pinned.collect::<Result<_>>().map(Self)
    }

    /// Returns the shares of callers, in percent, that are offered something else than the others.
    pub(crate) fn shares(&self) -> BTreeSet<u8> {
        let canaries = self.0.values().filter_map(|pinned| pinned.canary.as_ref());
        canaries.map(|canary| canary.percent).filter(|percent| *percent > 0).collect()
    }

    /// Returns the versions of a source that a caller may be offered, the first one that workers
    /// have; `None` if the number of workers decides. `percentile` is that of the caller, from 0 to
    /// 99.
    pub(super) fn versions(
        &self,
        source: &str,
        percentile: u8,
    ) -> Option<impl Iterator<Item = &str> + Clone> {
        let PinnedVersion { pin, canary } = self.0.get(source)?;
        let canary = canary.iter().filter(move |canary| percentile < canary.percent);
        Some(canary.map(|canary| canary.version.as_str()).chain([pin.as_str()]))
    }

    /// Returns the pinned versions and the canaries, with the names of their sources and of the
    /// keys.
    pub(super) fn named(&self) -> impl Iterator<Item = (&str, &'static str, &str)> {
        self.0.iter().flat_map(|(name, pinned)| {
            let canary = pinned.canary.iter().map(|canary| ("canary", canary.version.as_str()));
            let named = [("pin", pinned.pin.as_str())].into_iter().chain(canary);
            named.map(|(key, version)| (name.as_str(), key, version))
        })
    }
}

fn pinned(file: &ConfigFile, table: &VersionTable) -> Result<PinnedVersion> {
    let version = |version: &toml::Spanned<String>| {
        let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        let text = version.get_ref();
        match text.len() == VERSION_CHARS && text.bytes().all(is_digit) {
            true => Ok(text.clone()),
            false => {
                let message = format!(
                    "expected a version of {VERSION_CHARS} hexadecimal digits, as `cofferdam \
                     fleet` prints it"
                );
                Err(file.error(version.span(), message))
            }
        }
    };
    let canary = match (&table.canary, &table.canary_percent) {
        (Some(canary), Some(percent)) => {
            if *percent.get_ref() > 100 {
                let message = "expected at most 100 percent";
                return Err(file.error(percent.span(), message).into());
            }
            Some(Canary { version: version(canary)?, percent: *percent.get_ref() })
        }
        (Some(canary), None) => {
            let message = "`canary` needs `canary-percent`, the share of the callers";
            return Err(file.error(canary.span(), message).into());
        }
        (None, Some(percent)) => {
            let message = "`canary-percent` needs `canary`, the version for these callers";
            return Err(file.error(percent.span(), message).into());
        }
        (None, None) => None,
    };
    Ok(PinnedVersion { pin: version(&table.pin)?, canary })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    const ONE: &str = "11111111111111111111111111111111";
    const TWO: &str = "22222222222222222222222222222222";

    fn read(text: &str) -> Result<Rollout> {
        Rollout::of_config(&ConfigFile::parse(Path::new("cofferdam.toml"), text).unwrap())
    }

    #[test]
    fn callers_of_the_share_get_the_canary_first() {
        let table = format!("[cluster.versions.text]\npin = \"{ONE}\"\n");
        let pin = read(&table).unwrap();
        let versions = |rollout: &Rollout, percentile| {
            let versions = rollout.versions("text", percentile);
            versions.map(|versions| versions.map(str::to_owned).collect::<Vec<_>>())
        };
        assert_eq!(versions(&pin, 0).unwrap(), [ONE]);
        assert!(pin.versions("csv", 0).is_none() && pin.shares().is_empty());
        let canary = format!("{table}canary = \"{TWO}\"\ncanary-percent = 10\n");
        let canary = read(&canary).unwrap();
        assert_eq!(versions(&canary, 9).unwrap(), [TWO, ONE]);
        assert_eq!(versions(&canary, 10).unwrap(), [ONE]);
        assert_eq!(canary.shares(), BTreeSet::from([10]));
    }

    #[test]
    fn mistakes_have_a_position() {
        let error = |text: &str| read(text).unwrap_err().to_string();
        let table = format!("[cluster.versions.text]\npin = \"{ONE}\"\n");
        for (more, expected) in [
            (format!("canary = \"{TWO}\""), "3:10: `canary` needs `canary-percent`"),
            ("canary-percent = 5".to_owned(), "3:18: `canary-percent` needs `canary`"),
            (
                format!("canary = \"{TWO}\"\ncanary-percent = 101"),
                "4:18: expected at most 100 percent",
            ),
            ("canary = \"x\"\ncanary-percent = 1".to_owned(), "3:10: expected a version of 32"),
        ] {
            let error = error(&format!("{table}{more}\n"));
            assert!(error.starts_with(&format!("cofferdam.toml:{expected}")), "{error}");
        }
    }
}
