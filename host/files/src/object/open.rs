//! Opens a bucket of a service.
//!
//! The address and the options contain everything that is needed. The environment, credential files
//! and the metadata service of a cloud are never consulted: without a key, requests are not signed.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use object_store::list::PaginatedListStore;
use object_store::{BackoffConfig, ObjectStore, RetryConfig};
use url::Url;

use super::http::Connector;
use super::keys::Keys;
use super::requests::Bucket;
use super::service::Service;
use crate::{BucketStore, Quota};

/// Maximum number of retries after the first attempt.
const RETRIES_MAX: usize = 3;
/// Time after which no further attempt begins.
const RETRY_TIMEOUT: Duration = Duration::from_secs(60);

/// Options of a bucket store. Its `Debug` output contains no secret.
#[derive(Clone)]
pub struct BucketOptions {
    /// Refuses every change (`FILE-20`).
    pub is_read_only: bool,
    /// Limits of the store. Existing contents of the bucket below the prefix count too.
    pub quota: Quota,
    /// S3: the region; `us-east-1` by default.
    pub region: Option<String>,
    /// Address of a service other than that of Amazon, Google or Microsoft. Plain HTTP is used if,
    /// and only if, it starts with `http://`.
    pub endpoint: Option<String>,
    /// S3: true if the bucket's name is the first part of the host name, as some services require,
    /// instead of the first part of the path.
    pub is_virtual_hosted: bool,
    /// S3: ID of the access key. Azure: name of the account, which is always required.
    pub access_key_id: Option<String>,
    /// S3: secret of the access key. Azure: key of the account. Google: JSON of a service account
    /// key. Without it requests are not signed.
    pub secret_key: Option<String>,
    /// S3: session token of a temporary key.
    pub session_token: Option<String>,
    /// Maximum time to establish a connection.
    pub connect_timeout: Duration,
    /// Maximum time for a request and its response, which includes the transfer of a file.
    pub request_timeout: Duration,
}

impl Default for BucketOptions {
    fn default() -> Self {
        Self {
            is_read_only: false,
            quota: Quota::default(),
            region: None,
            endpoint: None,
            is_virtual_hosted: false,
            access_key_id: None,
            secret_key: None,
            session_token: None,
            connect_timeout: Duration::from_secs(10),
            request_timeout: Duration::from_secs(30),
        }
    }
}

impl fmt::Debug for BucketOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BucketOptions")
            .field("is_read_only", &self.is_read_only)
            .field("quota", &self.quota)
            .field("region", &self.region)
            .field("endpoint", &self.endpoint)
            .field("has_secret_key", &self.secret_key.is_some())
            .finish_non_exhaustive()
    }
}

/// Error returned by [`BucketStore::open`]. The message is for the operator who configured the
/// bucket and contains no secret.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenBucketError {
    /// The string is not the address of a bucket.
    #[error("`{url}` is not a bucket: expected `s3://<bucket>/<prefix>`, `gs://…` or `az://…`")]
    Address {
        /// The given address.
        url: String,
    },
    /// The service is supported, but not by this build.
    #[error("`{scheme}://` needs a build of cofferdam with the feature `{feature}`")]
    NotBuilt {
        /// Scheme of the address.
        scheme: &'static str,
        /// Cargo feature to enable.
        feature: &'static str,
    },
    /// The prefix has an empty segment, or one of `.` or `..`.
    #[error("no key starts with this prefix")]
    Prefix(#[from] object_store::path::Error),
    /// The endpoint is not the address of a web server.
    #[error("the endpoint `{endpoint}` is not an address that starts with `https://` or `http://`")]
    Endpoint {
        /// The given endpoint.
        endpoint: String,
    },
    /// The options are invalid or contradict each other.
    #[error("the options of the bucket do not fit")]
    Options(#[from] object_store::Error),
}

/// Client of a service, as returned by its builder.
struct ServiceClient {
    objects: Arc<dyn ObjectStore>,
    pages: Arc<dyn PaginatedListStore>,
}

impl ServiceClient {
    #[cfg(any(feature = "s3", feature = "gcs", feature = "azure"))]
    fn new<T: ObjectStore + PaginatedListStore>(service: T) -> Self {
        let service = Arc::new(service);
        Self { objects: Arc::clone(&service) as Arc<dyn ObjectStore>, pages: service }
    }
}

impl BucketStore {
    /// Opens a store over `s3://<bucket>/<prefix>`, `gs://<bucket>/<prefix>` or
    /// `az://<container>/<prefix>`; the prefix is optional. Sends no request.
    ///
    /// # Errors
    /// If the address or the options are invalid.
    pub fn open(url: &str, options: &BucketOptions) -> Result<Self, OpenBucketError> {
        let address = || OpenBucketError::Address { url: url.to_owned() };
        let (scheme, rest) = url.split_once("://").ok_or_else(address)?;
        let (name, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
        {
            return Err(address());
        }
        let keys = Keys::below(prefix)?;
        let endpoint = options.endpoint.as_deref().map(checked_endpoint).transpose()?;
        let host = endpoint.as_ref().map_or_else(|| usual_host(scheme, options), host);
        let service = Arc::new(Service::new(format!("{scheme}://{name}"), host));
        let ServiceClient { objects, pages } = match scheme {
            "s3" => s3(name, options, endpoint, &service)?,
            "gs" => gcs(name, options, endpoint, &service)?,
            "az" => azure(name, options, endpoint, &service)?,
            _ => return Err(address()),
        };
        let BucketOptions { quota, is_read_only, .. } = *options;
        Ok(Self::from_bucket(Bucket {
            objects,
            pages: Some(pages),
            keys,
            service,
            quota,
            is_read_only,
        }))
    }
}

/// Returns the host of an endpoint, with its port unless that is the default.
fn host(endpoint: &Url) -> String {
    let host = endpoint.host_str().unwrap_or_default();
    endpoint.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}

/// Returns the default host of a service.
fn usual_host(scheme: &str, options: &BucketOptions) -> String {
    match scheme {
        "gs" => "storage.googleapis.com".to_owned(),
        "az" => format!(
            "{}.blob.core.windows.net",
            options.access_key_id.as_deref().unwrap_or_default()
        ),
        _ => format!("s3.{}.amazonaws.com", options.region.as_deref().unwrap_or("us-east-1")),
    }
}

fn checked_endpoint(endpoint: &str) -> Result<Url, OpenBucketError> {
    let refused = || OpenBucketError::Endpoint { endpoint: endpoint.to_owned() };
    let url = Url::parse(endpoint).map_err(|_| refused())?;
    let is_web = matches!(url.scheme(), "https" | "http") && url.has_host();
    // Credentials belong in the options, which no message displays.
    let is_plain = url.username().is_empty() && url.password().is_none() && url.query().is_none();
    if is_web && is_plain { Ok(url) } else { Err(refused()) }
}

#[cfg(any(feature = "s3", feature = "gcs", feature = "azure"))]
fn connector(options: &BucketOptions, endpoint: Option<&Url>, service: &Arc<Service>) -> Connector {
    Connector {
        service: Arc::clone(service),
        connect_timeout: options.connect_timeout,
        request_timeout: options.request_timeout,
        allows_http: endpoint.is_some_and(|url| url.scheme() == "http"),
    }
}

#[cfg(any(feature = "s3", feature = "gcs", feature = "azure"))]
fn retries() -> RetryConfig {
    RetryConfig {
        backoff: BackoffConfig::default(),
        max_retries: RETRIES_MAX,
        retry_timeout: RETRY_TIMEOUT,
    }
}

#[cfg(feature = "s3")]
fn s3(
    bucket: &str,
    options: &BucketOptions,
    endpoint: Option<Url>,
    service: &Arc<Service>,
) -> Result<ServiceClient, OpenBucketError> {
    let mut builder = object_store::aws::AmazonS3Builder::new()
        .with_bucket_name(bucket)
        .with_region(options.region.as_deref().unwrap_or("us-east-1"))
        .with_virtual_hosted_style_request(options.is_virtual_hosted)
        .with_retry(retries())
        .with_http_connector(connector(options, endpoint.as_ref(), service));
    if let Some(mut url) = endpoint {
        if options.is_virtual_hosted {
            let host = format!("{bucket}.{}", url.host_str().unwrap_or_default());
            url.set_host(Some(&host))
                .map_err(|_| OpenBucketError::Endpoint { endpoint: url.to_string() })?;
        }
        builder = builder.with_endpoint(url.as_str().trim_end_matches('/'));
    }
    // The builder refuses a key ID without a secret, and the reverse.
    let is_signed = options.secret_key.is_some() || options.access_key_id.is_some();
    builder = builder.with_skip_signature(!is_signed);
    if let Some(id) = &options.access_key_id {
        builder = builder.with_access_key_id(id);
    }
    if let Some(secret) = &options.secret_key {
        builder = builder.with_secret_access_key(secret);
    }
    if let Some(token) = &options.session_token {
        builder = builder.with_token(token);
    }
    Ok(ServiceClient::new(builder.build()?))
}

#[cfg(feature = "gcs")]
fn gcs(
    bucket: &str,
    options: &BucketOptions,
    endpoint: Option<Url>,
    service: &Arc<Service>,
) -> Result<ServiceClient, OpenBucketError> {
    use object_store::StaticCredentialProvider;
    use object_store::gcp::{GcpCredential, GoogleCloudStorageBuilder};
    let mut builder = GoogleCloudStorageBuilder::new()
        .with_bucket_name(bucket)
        .with_retry(retries())
        .with_http_connector(connector(options, endpoint.as_ref(), service));
    if let Some(url) = &endpoint {
        builder = builder.with_base_url(url.as_str().trim_end_matches('/'));
    }
    builder = match &options.secret_key {
        Some(key) => builder.with_service_account_key(key),
        // Without any credential the builder would look for a file in the home directory.
        None => builder
            .with_credentials(Arc::new(StaticCredentialProvider::new(GcpCredential {
                bearer: String::new(),
            })))
            .with_skip_signature(true),
    };
    Ok(ServiceClient::new(builder.build()?))
}

#[cfg(feature = "azure")]
fn azure(
    container: &str,
    options: &BucketOptions,
    endpoint: Option<Url>,
    service: &Arc<Service>,
) -> Result<ServiceClient, OpenBucketError> {
    use object_store::azure::MicrosoftAzureBuilder;
    let mut builder = MicrosoftAzureBuilder::new()
        .with_container_name(container)
        .with_retry(retries())
        .with_skip_signature(options.secret_key.is_none())
        .with_http_connector(connector(options, endpoint.as_ref(), service));
    if let Some(url) = &endpoint {
        builder = builder.with_endpoint(url.as_str().trim_end_matches('/').to_owned());
    }
    if let Some(account) = &options.access_key_id {
        builder = builder.with_account(account);
    }
    if let Some(key) = &options.secret_key {
        builder = builder.with_access_key(key);
    }
    Ok(ServiceClient::new(builder.build()?))
}

#[cfg(not(feature = "s3"))]
fn s3(
    _: &str,
    _: &BucketOptions,
    _: Option<Url>,
    _: &Arc<Service>,
) -> Result<ServiceClient, OpenBucketError> {
    Err(OpenBucketError::NotBuilt { scheme: "s3", feature: "s3" })
}

#[cfg(not(feature = "gcs"))]
fn gcs(
    _: &str,
    _: &BucketOptions,
    _: Option<Url>,
    _: &Arc<Service>,
) -> Result<ServiceClient, OpenBucketError> {
    Err(OpenBucketError::NotBuilt { scheme: "gs", feature: "gcs" })
}

#[cfg(not(feature = "azure"))]
fn azure(
    _: &str,
    _: &BucketOptions,
    _: Option<Url>,
    _: &Arc<Service>,
) -> Result<ServiceClient, OpenBucketError> {
    Err(OpenBucketError::NotBuilt { scheme: "az", feature: "azure" })
}

#[cfg(test)]
mod tests {
    use std::error::Error as _;
    use std::net::TcpListener;

    use super::*;
    use crate::{FileStore as _, StorePath};

    fn refused(url: &str, options: &BucketOptions) -> String {
        BucketStore::open(url, options).unwrap_err().to_string()
    }

    #[test]
    fn addresses_that_are_none_are_refused() {
        let options = BucketOptions::default();
        for url in [
            "bucket",
            "s3://",
            "s3:///x",
            "https://host/bucket",
            "s3://a b/x",
            "s3://user:key@bucket/x",
        ] {
            assert!(refused(url, &options).contains("is not a bucket"), "{url}");
        }
        assert_eq!(refused("s3://bucket/a/../b", &options), "no key starts with this prefix");
        for endpoint in ["ftp://host", "host:9000", "https://key:secret@host", "http://"] {
            let options =
                BucketOptions { endpoint: Some(endpoint.to_owned()), ..BucketOptions::default() };
            assert!(refused("s3://bucket", &options).starts_with("the endpoint "), "{endpoint}");
        }
        for url in ["s3://bucket", "s3://bucket/", "s3://bucket/team/x/"] {
            assert!(BucketStore::open(url, &options).is_ok(), "{url}");
        }
    }

    #[test]
    fn every_service_can_be_opened_or_says_what_it_needs() {
        let options =
            BucketOptions { access_key_id: Some("account".to_owned()), ..BucketOptions::default() };
        let anonymous = BucketOptions { access_key_id: None, ..options.clone() };
        let services = [
            ("s3", cfg!(feature = "s3"), &anonymous),
            ("gs", cfg!(feature = "gcs"), &anonymous),
            ("az", cfg!(feature = "azure"), &options),
        ];
        for (scheme, is_built, options) in services {
            match BucketStore::open(&format!("{scheme}://bucket/x"), options) {
                Ok(_) => assert!(is_built, "{scheme}"),
                Err(error) => {
                    assert!(!is_built, "{scheme}: {error:?}");
                    let expected =
                        format!("`{scheme}://` needs a build of cofferdam with the feature ");
                    assert!(error.to_string().starts_with(&expected), "{error}");
                }
            }
        }
    }

    #[test]
    fn neither_options_nor_store_show_a_secret() {
        let options = BucketOptions {
            access_key_id: Some("AKIA-id".to_owned()),
            secret_key: Some("very-secret".to_owned()),
            session_token: Some("token-secret".to_owned()),
            ..BucketOptions::default()
        };
        let store = BucketStore::open("s3://bucket/hidden", &options).unwrap();
        let shown = format!("{options:?} {store:?}");
        assert!(!shown.contains("-secret") && !shown.contains("hidden"), "{shown}");
    }

    #[test]
    fn defaults_are_pinned() {
        let BucketOptions { connect_timeout, request_timeout, .. } = BucketOptions::default();
        assert_eq!((connect_timeout.as_secs(), request_timeout.as_secs()), (10, 30));
        assert_eq!((RETRIES_MAX, RETRY_TIMEOUT.as_secs()), (3, 60));
    }

    /// Returns a store at a server that accepts connections and never answers, or, with `None`, at
    /// a port on which no server listens.
    fn store_at(listener: Option<&TcpListener>) -> BucketStore {
        let unused = || TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let address = listener.map_or_else(unused, |listener| listener.local_addr().unwrap());
        let options = BucketOptions {
            endpoint: Some(format!("http://{address}")),
            request_timeout: Duration::from_millis(100),
            ..BucketOptions::default()
        };
        BucketStore::open("s3://bucket/hidden", &options).unwrap()
    }

    #[tokio::test]
    async fn a_server_that_says_nothing_is_given_up() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let error =
            store_at(Some(&listener)).stat(&StorePath::file("a").unwrap()).await.unwrap_err();
        assert_eq!(error.to_string(), "the file store failed: its service did not answer in time.");
        let mut causes = String::new();
        let mut cause = error.source();
        while let Some(error) = cause {
            causes.push_str(&error.to_string());
            cause = error.source();
        }
        assert!(causes.contains("hidden"), "logs have the whole story: {causes}");
    }

    #[tokio::test]
    async fn a_server_that_is_not_there_is_not_connected() {
        let error = store_at(None).stat(&StorePath::file("a").unwrap()).await.unwrap_err();
        assert_eq!(error.to_string(), "the file store failed: its service cannot be reached.");
    }

    #[tokio::test]
    async fn without_an_endpoint_of_that_kind_no_plain_http_is_spoken() {
        use object_store::client::HttpConnector as _;
        let client = Connector {
            connect_timeout: Duration::from_secs(1),
            request_timeout: Duration::from_secs(1),
            allows_http: false,
            service: Arc::default(),
        };
        let client = client.connect(&object_store::ClientOptions::new()).unwrap();
        let request =
            object_store::client::HttpRequest::new(object_store::client::HttpRequestBody::empty());
        let (mut head, body) = request.into_parts();
        head.uri = "http://127.0.0.1:9/".parse().unwrap();
        let refused =
            client.execute(object_store::client::HttpRequest::from_parts(head, body)).await;
        assert!(
            refused
                .is_err_and(|error| error.kind() == object_store::client::HttpErrorKind::Connect)
        );
    }
}
