//! Credentials for registries.

use async_trait::async_trait;
use cofferdam_tool::permission::SecretText;
use docker_credential::{CredentialRetrievalError, DockerCredential};

/// Maximum size of a file of credentials in bytes.
pub const CREDENTIALS_BYTES_MAX: u64 = 1024 * 1024;
/// Key of Docker's registry in files of credentials.
const DOCKER_HUB_KEY: &str = "https://index.docker.io/v1/";

/// Credentials for one registry.
#[derive(Debug, Clone)]
pub enum Credentials {
    /// User name and password, or a token instead of the password.
    Password {
        /// User name.
        username: String,
        /// Password.
        password: SecretText,
    },
    /// Token that is exchanged for a token of a request.
    IdentityToken(SecretText),
}

/// Source of credentials.
#[async_trait]
pub trait CredentialSource: Send + Sync {
    /// Returns the credentials for a registry, or `None` for anonymous requests.
    ///
    /// # Errors
    /// Returns a message for the operator if credentials exist but cannot be read. It contains no
    /// secret.
    async fn credentials(&self, registry: &str) -> Result<Option<Credentials>, String>;
}

/// Reads the credentials of a registry from the content of a file of Docker or Podman
/// (`config.json`, `auth.json`). Runs the helper program that the file names, and blocks until it
/// ends.
///
/// # Errors
/// Returns a message for the operator if the file is invalid, or the helper fails.
pub fn from_docker_file(content: &[u8], registry: &str) -> Result<Option<Credentials>, String> {
    let key = if registry == "docker.io" { DOCKER_HUB_KEY } else { registry };
    match docker_credential::get_credential_from_reader(content, key) {
        Ok(DockerCredential::UsernamePassword(username, password)) => {
            Ok(Some(Credentials::Password { username, password: SecretText::new(password) }))
        }
        Ok(DockerCredential::IdentityToken(token)) => {
            Ok(Some(Credentials::IdentityToken(SecretText::new(token))))
        }
        Err(CredentialRetrievalError::NoCredentialConfigured) => Ok(None),
        // What a helper prints may contain a secret.
        Err(CredentialRetrievalError::HelperFailure { helper, .. }) => {
            Err(format!("the helper docker-credential-{helper} has failed for {registry}"))
        }
        Err(error) => Err(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn password(content: &str, registry: &str) -> Option<String> {
        match from_docker_file(content.as_bytes(), registry).unwrap()? {
            Credentials::Password { username, password } => {
                Some(format!("{username}:{}", password.expose()))
            }
            Credentials::IdentityToken(token) => Some(format!("token {}", token.expose())),
        }
    }

    #[test]
    fn files_of_docker_have_credentials_by_registry() {
        // `u:p` and `hub:p`.
        let file = r#"{"auths": {
            "ghcr.io": {"auth": "dTpw"},
            "https://index.docker.io/v1/": {"auth": "aHViOnA="},
            "corp.example:5000": {"identitytoken": "t"}
        }}"#;
        assert_eq!(password(file, "ghcr.io").as_deref(), Some("u:p"));
        assert_eq!(password(file, "docker.io").as_deref(), Some("hub:p"));
        assert_eq!(password(file, "corp.example:5000").as_deref(), Some("token t"));
        assert_eq!(password(file, "corp.example"), None);
        assert_eq!(password("{}", "ghcr.io"), None);
    }

    #[test]
    fn errors_contain_no_secret() {
        let file = r#"{"auths": {"ghcr.io": {"auth": "c2VjcmV0"}}}"#;
        let error = from_docker_file(file.as_bytes(), "ghcr.io").unwrap_err();
        assert!(!error.contains("secret") && !error.contains("c2VjcmV0"), "{error}");
        from_docker_file(b"not JSON", "ghcr.io").unwrap_err();
    }
}
