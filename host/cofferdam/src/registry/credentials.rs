//! Credentials of the operator: those of the configuration, or else those of Docker and Podman.

use std::collections::BTreeMap;
use std::path::PathBuf;

use async_trait::async_trait;
use cofferdam_files::read_named_ambient;
use cofferdam_registry::{CREDENTIALS_BYTES_MAX, CredentialSource, Credentials, from_docker_file};
use cofferdam_tool::permission::SecretText;

use crate::Result;
use crate::config::ConfigFile;

/// Credentials of one operator.
pub(super) struct LoginSource {
    /// User names and passwords of the configuration, by registry.
    logins: BTreeMap<String, (String, SecretText)>,
    /// Files with credentials, in order of precedence.
    files: Vec<PathBuf>,
}

impl LoginSource {
    /// Reads the secrets of the configuration, and finds the files of Docker and Podman.
    pub(super) fn new(config: Option<&ConfigFile>) -> Result<Self> {
        let mut logins = BTreeMap::new();
        let mut named = None;
        if let Some(file) = config {
            let table = &file.config.registry;
            named = table.credentials.as_deref().map(|path| file.resolve(path));
            for (registry, login) in &table.logins {
                let Some(source) = file.config.secrets.get(&login.password) else {
                    let message = format!(
                        "[registry.logins.\"{registry}\"] names the secret `{}`, which this file \
                         does not have",
                        login.password
                    );
                    return Err(file.error_in_table("[registry.logins", message).into());
                };
                let password = file.read_secret(&login.password, source)?;
                logins.insert(registry.clone(), (login.username.clone(), password));
            }
        }
        let files = named.map_or_else(user_files, |path| vec![path]);
        Ok(Self { logins, files })
    }
}

#[async_trait]
impl CredentialSource for LoginSource {
    async fn credentials(
        &self,
        registry: &str,
    ) -> std::result::Result<Option<Credentials>, String> {
        if let Some((username, password)) = self.logins.get(registry) {
            let (username, password) = (username.clone(), password.clone());
            return Ok(Some(Credentials::Password { username, password }));
        }
        for path in &self.files {
            let content = match read_named_ambient(path, CREDENTIALS_BYTES_MAX) {
                Ok(content) => content,
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
                Err(error) => return Err(format!("{}: {error}", path.display())),
            };
            let registry = registry.to_owned();
            // A helper may ask the operator to unlock a keyring.
            let read = tokio::task::spawn_blocking(move || from_docker_file(&content, &registry));
            let found = read.await.map_err(|error| error.to_string())?;
            if let Some(found) = found.map_err(|error| format!("{}: {error}", path.display()))? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }
}

/// Returns the files in which Docker and Podman store the user's credentials.
fn user_files() -> Vec<PathBuf> {
    let variable = |name: &str| std::env::var_os(name).map(PathBuf::from);
    let home = variable("HOME").or_else(|| variable("USERPROFILE"));
    let docker =
        variable("DOCKER_CONFIG").or_else(|| home.as_ref().map(|home| home.join(".docker")));
    let docker = docker.map(|directory| directory.join("config.json"));
    let podman = variable("REGISTRY_AUTH_FILE")
        .or_else(|| Some(variable("XDG_RUNTIME_DIR")?.join("containers").join("auth.json")));
    let podman_home = home.map(|home| home.join(".config/containers/auth.json"));
    [docker, podman, podman_home].into_iter().flatten().collect()
}
