//! `[secrets]`: sources of secrets.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::error::Context as _;
use cofferdam_engine::sys::permissions;
use cofferdam_tool::permission::SecretText;
use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use crate::Error;

/// Maximum size of a file with a secret, in bytes.
pub const SECRET_FILE_BYTES_MAX: u64 = 64 * 1024;

/// Source of a secret. The value itself is never in the configuration.
#[derive(Debug, Clone)]
pub enum SecretSource {
    /// An environment variable of the host.
    Env(String),
    /// A file, relative to the configuration. A line feed at its end is not part of the secret.
    File(PathBuf),
    /// An entry of the operating system's keyring: `service/user`.
    Keyring(String),
}

/// Form of a source in a configuration.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", expecting = "a table")]
enum SourceTable {
    Env(String),
    File(PathBuf),
    Keyring(String),
}

/// Reads the source of a secret. An error does not repeat a value that was written instead.
struct SourceVisitor;

impl<'de> Visitor<'de> for SourceVisitor {
    type Value = SecretSource;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a table such as { env = \"NAME\" }")
    }

    fn visit_str<E: serde::de::Error>(self, _value: &str) -> Result<SecretSource, E> {
        Err(E::custom(
            "expected the source of a secret, such as { env = \"NAME\" }, found a string; a secret \
             itself must not be in this file",
        ))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<SecretSource, A::Error> {
        Ok(match SourceTable::deserialize(MapAccessDeserializer::new(map))? {
            SourceTable::Env(name) => SecretSource::Env(name),
            SourceTable::File(path) => SecretSource::File(path),
            SourceTable::Keyring(entry) => SecretSource::Keyring(entry),
        })
    }
}

impl<'de> Deserialize<'de> for SecretSource {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(SourceVisitor)
    }
}

impl SecretSource {
    /// Reads the secret. `resolve` makes a path of the configuration absolute.
    ///
    /// An error names only the source, never the value.
    pub(crate) fn read_ambient(
        &self,
        resolve: impl Fn(&Path) -> PathBuf,
    ) -> crate::Result<SecretText> {
        match self {
            Self::Env(name) => match std::env::var(name) {
                Ok(value) if !value.is_empty() => Ok(SecretText::new(value)),
                Ok(_) => Err(Error::invalid(format!("the environment variable {name} is empty"))),
                Err(std::env::VarError::NotPresent) => {
                    Err(Error::invalid(format!("the environment variable {name} is not set")))
                }
                Err(_) => {
                    Err(Error::invalid(format!("the environment variable {name} is not UTF-8")))
                }
            },
            Self::File(path) => of_file(&resolve(path)),
            Self::Keyring(entry) => of_keyring(entry),
        }
    }
}

fn of_file(path: &Path) -> crate::Result<SecretText> {
    let shown = path.display();
    let unreadable = || format!("the file {shown} cannot be read");
    let metadata = std::fs::metadata(path).with_context(unreadable).map_err(Error::into_invalid)?;
    if !metadata.is_file() || metadata.len() > SECRET_FILE_BYTES_MAX {
        return Err(Error::invalid(format!(
            "{shown} is not a regular file of at most {SECRET_FILE_BYTES_MAX} bytes"
        )));
    }
    check_owner_only(path)?;
    let text = cofferdam_files::read_named_text_ambient(path, SECRET_FILE_BYTES_MAX);
    let text = text.with_context(unreadable).map_err(Error::into_invalid)?;
    let text = text.strip_suffix('\n').unwrap_or(&text);
    Ok(SecretText::new(text.strip_suffix('\r').unwrap_or(text)))
}

/// Returns an error if other users have access to the file of a secret.
fn check_owner_only(path: &Path) -> crate::Result<()> {
    let shown = path.display();
    let opened = cofferdam_files::open_named_ambient(path);
    let is_private = opened.and_then(|file| permissions::is_private(&file));
    if is_private.with_context(|| format!("the file {shown} cannot be read"))? {
        return Ok(());
    }
    let remedy = if cfg!(windows) {
        format!("icacls \"{shown}\" /inheritance:r /grant:r \"%USERNAME%:F\"")
    } else {
        format!("chmod 600 {shown}")
    };
    Err(Error::invalid(format!("other users can read {shown}; run: {remedy}")))
}

fn of_keyring(entry: &str) -> crate::Result<SecretText> {
    let Some((service, user)) = entry.split_once('/') else {
        return Err(Error::invalid("write a keyring entry as \"service/user\""));
    };
    let (service, user) = (service.to_owned(), user.to_owned());
    // Runs on a separate thread: a keyring that is reached over a bus may start an async runtime,
    // which is not possible inside another one.
    let read = std::thread::spawn(move || keyring::v1::Entry::new(&service, &user)?.get_password());
    match read.join() {
        Ok(Ok(value)) => Ok(SecretText::new(value)),
        Ok(Err(keyring::v1::Error::NoEntry)) => {
            Err(Error::invalid(format!("the keyring has no entry {entry}")))
        }
        // Error messages of keyrings name services and buses, not values.
        Ok(Err(error)) => match keyring::v1::Entry::store_status() {
            Err(status) => Err(Error::failed(format!(
                "the keyring of this system cannot be reached: {status}"
            ))),
            Ok(()) => Err(error).context("the keyring cannot be read"),
        },
        Err(_) => Err(Error::failed("the keyring cannot be read")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(source: &str, folder: &Path) -> Result<String, String> {
        let source: SecretSource = toml::from_str::<toml::Table>(&format!("s = {source}")).unwrap()
            ["s"]
            .clone()
            .try_into()
            .unwrap();
        let secret = source.read_ambient(|path| folder.join(path));
        secret.map(|secret| secret.expose().to_owned()).map_err(|error| format!("{error:#}"))
    }

    #[test]
    fn a_value_that_is_written_as_its_source_is_not_repeated() {
        let parsed = toml::from_str::<std::collections::BTreeMap<String, SecretSource>>;
        let error = parsed("s = \"ghp_canary0123\"").unwrap_err().message().to_owned();
        assert!(error.contains("{ env = \"NAME\" }") && !error.contains("canary"), "{error}");
        for invalid in ["s = 5", "s = {}", "s = { value = \"x\" }", "s = { env = 1 }"] {
            assert!(parsed(invalid).is_err(), "{invalid}");
        }
        assert!(parsed("s = { env = \"NAME\" }").is_ok());
    }

    #[cfg(unix)]
    #[test]
    fn a_file_is_private_or_refused() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        std::fs::write(&path, "hunter22\n").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
        assert!(read("{ file = \"key\" }", folder.path()).unwrap_err().contains("chmod 600"));
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        assert_eq!(read("{ file = \"key\" }", folder.path()).unwrap(), "hunter22");
        assert!(read("{ file = \"none\" }", folder.path()).unwrap_err().contains("cannot be read"));
    }

    #[test]
    fn an_environment_variable_is_read() {
        let folder = Path::new("");
        assert!(
            read("{ env = \"COFFERDAM_TEST_UNSET\" }", folder).unwrap_err().contains("is not set")
        );
        assert_eq!(read("{ env = \"PATH\" }", folder).unwrap(), std::env::var("PATH").unwrap());
        assert!(read("{ keyring = \"no-user\" }", folder).unwrap_err().contains("service/user"));
    }
}
