//! Uses everything that can be granted by name, and returns what it got.

use std::time::{Duration, SystemTime};

use wasip2::random;

wit_bindgen::generate!({ path: "wit/granted", world: "granted", generate_all });

use cofferdam::plugin::secrets;
use wasi::config::store;

struct Granted;

impl Guest for Granted {
    fn env(name: String) -> Option<String> {
        std::env::var(name).ok()
    }

    fn names() -> Vec<String> {
        let variables = std::env::vars().map(|(name, _)| name);
        let keys = store::get_all().unwrap_or_default().into_iter().map(|(key, _)| key);
        variables.chain(keys).collect()
    }

    fn config(key: String) -> Option<String> {
        store::get(&key).ok().flatten()
    }

    fn secret(name: String) -> Option<String> {
        secrets::get(&name).ok()
    }

    fn leak(name: String, way: String) -> Result<String, String> {
        let value =
            secrets::get(&name).unwrap_or_else(|_| std::env::var("TOKEN").unwrap_or_default());
        match way.as_str() {
            "print" => {
                println!("the secret is {value}");
                eprintln!("the secret is {value}");
                Ok("printed".to_owned())
            }
            "panic" => panic!("the secret is {value}"),
            "fail" => Err(value),
            _ => Ok(value),
        }
    }

    fn steps() -> Vec<u64> {
        let start = wasip2::clocks::monotonic_clock::now();
        let mut last = start;
        let mut steps = Vec::new();
        for _ in 0..200_000 {
            let now = wasip2::clocks::monotonic_clock::now();
            if now != last {
                steps.push(now - last);
                last = now;
            }
            if steps.len() >= 20 {
                break;
            }
        }
        steps
    }

    fn date() -> u64 {
        let now =
            SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO);
        u64::try_from(now.as_nanos()).unwrap_or(u64::MAX)
    }

    fn random() -> Vec<u64> {
        vec![random::random::get_random_u64(), random::insecure::get_insecure_random_u64()]
    }
}

export!(Granted);
