//! Credentials with keys: nkeys that the server's configuration names, and JWTs that an account has
//! signed.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use cofferdam_cluster::bus::BusState;
use cofferdam_cluster::nats::{NatsBus, NatsError, NatsOptions};
use cofferdam_cluster::{Bus, DispatcherOptions, Worker, WorkerOptions};
use cofferdam_tool::Toolset;
use data_encoding::BASE64URL_NOPAD;
use nkeys::KeyPair;
use serde_json::{Value, json};

use super::calls::call;
use super::server::{Gateway, Server, program, timing};
use super::tools::toolset;

/// Returns a JWT about `subject`, signed by `issuer`.
fn jwt(issuer: &KeyPair, subject: &str, mut claims: Value) -> String {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    claims["iat"] = json!(seconds - 60);
    claims["iss"] = json!(issuer.public_key());
    claims["sub"] = json!(subject);
    claims["jti"] = json!("of-a-test");
    claims["nats"]["version"] = json!(2);
    let encode = |value: Value| BASE64URL_NOPAD.encode(value.to_string().as_bytes());
    let text =
        format!("{}.{}", encode(json!({"typ": "JWT", "alg": "ed25519-nkey"})), encode(claims));
    let signature = BASE64URL_NOPAD.encode(&issuer.sign(text.as_bytes()).unwrap());
    format!("{text}.{signature}")
}

/// Returns a file with the JWT of a user, as `nsc` writes it, which expires in `seconds`.
fn creds(account: &KeyPair, user: &KeyPair, seconds: i64) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let expiry = i64::try_from(now).unwrap() + seconds;
    let claims = json!({
        "name": "worker",
        "exp": expiry,
        "nats": {"type": "user", "subs": -1, "data": -1, "payload": -1, "pub": {}, "sub": {}},
    });
    let jwt = jwt(account, &user.public_key(), claims);
    let seed = user.seed().unwrap();
    format!(
        "-----BEGIN NATS USER JWT-----\n{jwt}\n------END NATS USER JWT------\n\n\
         ************************* IMPORTANT *************************\n\
         NKEY Seed printed below can be used to sign and prove identity.\n\
         NKEYs are sensitive and should be treated as secrets.\n\n\
         -----BEGIN USER NKEY SEED-----\n{seed}\n------END USER NKEY SEED------\n\n\
         *************************************************************\n"
    )
}

/// Starts a server that trusts the users of an account, and returns the account's key.
fn server_with_account(folder: &Path) -> Option<(Server, KeyPair)> {
    let (operator, account) = (KeyPair::new_operator(), KeyPair::new_account());
    let claims = json!({"name": "operator", "nats": {"type": "operator"}});
    let of_operator = jwt(&operator, &operator.public_key(), claims);
    let limits = json!({"subs": -1, "data": -1, "payload": -1, "imports": -1, "exports": -1,
                        "wildcards": true, "conn": -1, "leaf": -1});
    let claims = json!({"name": "account", "nats": {"type": "account", "limits": limits}});
    let of_account = jwt(&operator, &account.public_key(), claims);
    let config = format!(
        "operator: \"{of_operator}\"\nresolver: MEMORY\nresolver_preload: {{ {}: \"{of_account}\" \
         }}\n",
        account.public_key()
    );
    let path = folder.join("nats.conf");
    std::fs::write(&path, config).unwrap();
    Some((Server::start(&["-c", path.to_str().unwrap()])?, account))
}

/// Returns options for a server, with a new file that has these credentials.
fn options(server: &Server, folder: &Path, credentials: &str) -> NatsOptions {
    let file: PathBuf = folder.join("credentials");
    std::fs::write(&file, credentials).unwrap();
    NatsOptions { servers: server.url(), credentials_file: Some(file), ..NatsOptions::default() }
}

async fn assert_refused(options: NatsOptions) {
    let error = NatsBus::connect_ambient(options).await.err().expect("there is no connection");
    assert!(matches!(error, NatsError::Refused { .. }), "{error}");
    assert!(error.to_string().contains("refuses the credentials; pass those"), "{error}");
}

/// A worker and a gateway that use the same connection.
pub(crate) struct Pair {
    toolset: Toolset,
    worker: Worker,
}

impl Pair {
    pub(crate) async fn start(options: NatsOptions, folder: &Path) -> Self {
        let bus: Arc<dyn Bus> = Arc::new(NatsBus::connect_ambient(options).await.unwrap());
        let of_worker = WorkerOptions { timing: timing(), ..WorkerOptions::default() };
        let tools = toolset(&folder.join("starts"));
        let worker = Worker::start(Arc::clone(&bus), tools, of_worker).await.unwrap();
        let of_gateway = DispatcherOptions { timing: timing(), ..DispatcherOptions::default() };
        Self { toolset: Gateway::start(bus, of_gateway).await.toolset, worker }
    }

    /// Calls a tool until a call succeeds.
    pub(crate) async fn has_answer(&self) {
        let mut attempts = 0;
        while call(&self.toolset, "echo", json!({}), "1").await.word() != "ok" {
            attempts += 1;
            assert!(attempts < 50, "no call succeeds");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
}

#[tokio::test]
async fn a_seed_is_the_key_of_a_user_that_the_server_knows() {
    if program().is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let user = KeyPair::new_user();
    let config = folder.join("nats.conf");
    let users = format!("authorization {{ users = [ {{ nkey: {} }} ] }}\n", user.public_key());
    std::fs::write(&config, users).unwrap();
    let server = Server::start(&["-c", config.to_str().unwrap()]).unwrap();
    let credentials = |key: &KeyPair| options(&server, folder, &(key.seed().unwrap() + "\n"));
    assert_refused(credentials(&KeyPair::new_user())).await;
    let pair = Pair::start(credentials(&user), folder).await;
    pair.has_answer().await;
    // The next connection has another nonce.
    let _server = server.restart(Duration::from_millis(100)).await;
    pair.has_answer().await;
}

/// The permissions of the page are all that a worker with a key needs.
#[tokio::test]
async fn the_key_of_the_page_suffices() {
    if program().is_none() {
        return;
    }
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/cluster.md");
    let page = std::fs::read_to_string(page).unwrap();
    let (_, section) = page.split_once("\n## Credentials\n").unwrap();
    let (_, block) = section.split_once("authorization {").unwrap();
    let (block, _) = block.split_once("```").unwrap();
    let (_, of_page) = block.split_once("nkey: ").unwrap();
    let (of_page, _) = of_page.split_once(',').unwrap();
    let (of_worker, of_gateway) = (KeyPair::new_user(), KeyPair::new_user());
    let gateway = format!("users = [ {{ nkey: {} }}", of_gateway.public_key());
    let block = block.replace(of_page, &of_worker.public_key()).replacen("users = [", &gateway, 1);
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("nats.conf");
    std::fs::write(&config, format!("authorization {{{block}")).unwrap();
    let server = Server::start(&["-c", config.to_str().unwrap()]).unwrap();
    let bus = |key: &KeyPair| {
        let options = options(&server, folder.path(), &key.seed().unwrap());
        async { Arc::new(NatsBus::connect_ambient(options).await.unwrap()) as Arc<dyn Bus> }
    };
    let worker_bus = bus(&of_worker).await;
    let tools = toolset(&folder.path().join("starts"));
    let options = WorkerOptions::default();
    let worker = Worker::start(worker_bus, tools, options).await.unwrap();
    let gateway = bus(&of_gateway).await;
    let gateway = Gateway::start(gateway, DispatcherOptions::default()).await;
    assert_eq!(call(&gateway.toolset, "echo", json!({}), "1").await.word(), "ok");
    assert_eq!(worker.monitor().status().bus, BusState::Connected);
}

#[tokio::test]
async fn a_creds_file_is_of_a_user_that_the_account_has_signed() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let Some((server, account)) = server_with_account(folder) else { return };
    let (user, other) = (KeyPair::new_user(), KeyPair::new_user());
    let valid = creds(&account, &user, 3600);
    let with_another_seed = valid.replace(&user.seed().unwrap(), &other.seed().unwrap());
    for refused in [
        creds(&account, &user, -5),
        creds(&KeyPair::new_account(), &user, 3600),
        with_another_seed,
        user.seed().unwrap(),
        "user:password".to_owned(),
    ] {
        assert_refused(options(&server, folder, &refused)).await;
    }
    let pair = Pair::start(options(&server, folder, &valid), folder).await;
    pair.has_answer().await;
    let _server = server.restart(Duration::from_millis(100)).await;
    pair.has_answer().await;
}

#[tokio::test]
async fn a_file_is_read_again_for_each_connection() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let Some((server, account)) = server_with_account(folder) else { return };
    let user = KeyPair::new_user();
    // The server ends the connection when it expires.
    let file = options(&server, folder, &creds(&account, &user, 3));
    let pair = Pair::start(file.clone(), folder).await;
    pair.has_answer().await;
    let path = file.credentials_file.unwrap();
    std::fs::remove_file(&path).unwrap();
    let expired = || pair.worker.monitor().status().bus == BusState::Disconnected;
    super::calls::wait_until("the end of the connection", expired).await;
    std::fs::write(&path, creds(&account, &user, 3600)).unwrap();
    pair.has_answer().await;
}

#[tokio::test]
async fn an_invalid_file_is_one_line_without_the_secret() {
    let folder = tempfile::tempdir().unwrap();
    let user = KeyPair::new_user();
    let mut damaged = user.seed().unwrap();
    // The first characters, by which a seed is recognized, stay as they are.
    damaged.replace_range(30..31, "1");
    let file = folder.path().join("credentials");
    std::fs::write(&file, &damaged).unwrap();
    let options = NatsOptions {
        servers: "nats://127.0.0.1:1".to_owned(),
        credentials_file: Some(file.clone()),
        ..NatsOptions::default()
    };
    let message = NatsBus::connect_ambient(options).await.err().unwrap().to_string();
    assert_eq!(
        message,
        format!(
            "cannot read {}: the nkey seed is damaged: expected 58 characters that end with their \
             checksum, found 58 characters; copy it again",
            file.display()
        )
    );
}
