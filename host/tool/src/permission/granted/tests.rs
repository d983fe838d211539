//! Tests of the intersection, over all combinations of small sides.

use proptest::prelude::*;

use super::*;
use crate::Limits;
use crate::permission::RequestedLimits;

fn mount(name: &str) -> MountName {
    MountName::new(name).unwrap()
}

fn rules() -> Vec<HttpRule> {
    [
        "https://a.example/",
        "GET https://a.example/v1",
        "https://*.a.example:*/",
        "http://127.0.0.1:8080/",
        "https://*/",
    ]
    .map(|text| text.parse().unwrap())
    .to_vec()
}

fn names() -> Vec<String> {
    ["A", "B", "C"].map(str::to_owned).to_vec()
}

fn some_names() -> impl Strategy<Value = BTreeSet<String>> {
    prop::sample::subsequence(names(), 0..=3).prop_map(|names| names.into_iter().collect())
}

fn some_files() -> impl Strategy<Value = BTreeMap<MountName, FileAccess>> {
    let access = || prop::option::of(prop::sample::select(FileAccess::ALL.to_vec()));
    (access(), access()).prop_map(|(x, y)| {
        [("x", x), ("y", y)]
            .into_iter()
            .filter_map(|(name, access)| Some((mount(name), access?)))
            .collect()
    })
}

prop_compose! {
    fn permissions()(
        files in some_files(),
        files_any in prop::option::of(prop::sample::select(FileAccess::ALL.to_vec())),
        http in prop::sample::subsequence(rules(), 0..=5),
        env in some_names(), config in some_names(), secrets in some_names(),
        clock in prop::sample::select(ClockPrecision::ALL.to_vec()),
        random in any::<bool>(),
        wall in prop::option::of(1_u64..100_000),
    ) -> Permissions {
        let limits = RequestedLimits { wall_ms_max: wall, ..RequestedLimits::default() };
        Permissions { files, files_any, http, env, config, secrets, clock, random, limits, ..Permissions::default() }
    }
}

prop_compose! {
    fn policy()(
        files in some_files(),
        http in prop::sample::subsequence(rules(), 0..=5),
        env in some_names(), config in some_names(), secrets in some_names(),
        clock in prop::sample::select(ClockPrecision::ALL.to_vec()),
        random in any::<bool>(),
        wall in 1_u64..100_000,
    ) -> Policy {
        let limits = Limits { wall_ms_max: wall, ..Limits::default() };
        let http = http.into_iter().map(HttpGrant::from).collect();
        Policy { files, http, env, config, secrets, clock, random, limits, ..Policy::default() }
    }
}

/// Returns whether `narrow` allows nothing that `wide` does not.
fn is_within(narrow: &Policy, wide: &Policy) -> bool {
    let files = narrow.files.iter().all(|(name, access)| {
        wide.files.get(name).is_some_and(|offered| offered.intersect(*access) == Some(*access))
    });
    let http = narrow.http.iter().all(|grant| {
        wide.http.iter().any(|offered| {
            offered.rule.intersect(&grant.rule).as_ref() == Some(&grant.rule)
                && grant.addresses == offered.addresses
                && grant.headers == offered.headers
        })
    });
    files
        && http
        && narrow.env.is_subset(&wide.env)
        && narrow.config.is_subset(&wide.config)
        && narrow.secrets.is_subset(&wide.secrets)
        && narrow.tools.is_subset(&wide.tools)
        && narrow.sockets.is_subset(&wide.sockets)
        && narrow.clock <= wide.clock
        && (wide.random || !narrow.random)
        && narrow.limits.narrowed_by(&wide.limits) == narrow.limits
}

/// Returns a policy that offers everything requested.
fn as_policy(asked: &Permissions, offered: &Policy) -> Policy {
    let mut files = asked.files.clone();
    if let Some(any) = asked.files_any {
        for name in offered.files.keys() {
            files.entry(name.clone()).or_insert(any);
        }
    }
    Policy {
        files,
        env: asked.env.clone(),
        config: asked.config.clone(),
        secrets: asked.secrets.clone(),
        clock: asked.clock,
        random: asked.random,
        limits: asked.limits.applied_to(&offered.limits),
        // Addresses and headers come from the offer; rules are compared separately.
        http: Vec::new(),
        ..Policy::default()
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn a_plugin_asks_for_what_it_misses(asked in permissions(), offered in policy()) {
        let asked = RequestedPermissions::Stated(Box::new(asked));
        for missing in asked.granted_of(&offered).missing {
            prop_assert!(asked.asks_for(&missing.permission), "{}", missing.permission);
        }
    }

    #[test]
    fn a_grant_is_within_what_is_offered_and_within_what_is_asked(asked in permissions(), offered in policy()) {
        let granted = RequestedPermissions::Stated(Box::new(asked.clone())).granted_of(&offered).policy;
        prop_assert!(is_within(&granted, &offered), "{:#?}", granted);
        let without_http = Policy { http: Vec::new(), ..granted.clone() };
        prop_assert!(is_within(&without_http, &as_policy(&asked, &offered)), "{:#?}", granted);
        let is_asked = |rule: &HttpRule| asked.http.iter().any(|wanted| wanted.intersect(rule).as_ref() == Some(rule));
        prop_assert!(granted.http.iter().all(|grant| is_asked(&grant.rule)));
    }

    #[test]
    fn offering_what_is_missing_leaves_nothing_missing(asked in permissions(), mut offered in policy()) {
        let asked = RequestedPermissions::Stated(Box::new(asked));
        for missing in asked.granted_of(&offered).missing {
            match missing.permission {
                Permission::Files(Some(name), access) => { offered.files.insert(name, access); }
                Permission::Files(None, access) => { offered.files.insert(mount("z"), access); }
                Permission::Http(rule) => offered.http.push(rule.into()),
                Permission::Env(name) => { offered.env.insert(name); }
                Permission::Config(key) => { offered.config.insert(key); }
                Permission::Secret(name) => { offered.secrets.insert(name); }
                Permission::Clock(precision) => offered.clock = precision,
                Permission::Random => offered.random = true,
                Permission::Limit(key, value) => {
                    prop_assert_eq!(key, "wall-ms-max");
                    offered.limits.wall_ms_max = value;
                }
                Permission::Socket(_) | Permission::Tool(_) | Permission::Ask(_) => prop_assert!(false, "not asked"),
            }
        }
        prop_assert_eq!(asked.granted_of(&offered).missing, vec![]);
    }
}

#[test]
fn a_plugin_without_a_manifest_takes_what_is_offered() {
    let offered = Policy { env: BTreeSet::from(["LANG".to_owned()]), ..Policy::default() };
    assert_eq!(
        RequestedPermissions::Unstated.granted_of(&offered),
        GrantedPermissions { policy: offered, missing: vec![] }
    );
}

#[test]
fn a_manifest_that_asks_for_nothing_gets_nothing() {
    let offered = Policy {
        files: BTreeMap::from([(mount("x"), FileAccess::ReadWrite)]),
        env: BTreeSet::from(["LANG".to_owned()]),
        clock: ClockPrecision::Precise,
        ..Policy::default()
    };
    let granted = RequestedPermissions::Stated(Box::default()).granted_of(&offered);
    assert_eq!(granted, GrantedPermissions::default());
}

#[test]
fn an_address_that_is_not_public_has_to_be_offered_as_one() {
    let asked = Permissions {
        http: vec!["http://127.0.0.1:*/".parse().unwrap()],
        ..Permissions::default()
    };
    let asked = RequestedPermissions::Stated(Box::new(asked));
    let wide: HttpRule = "http://*:*/".parse().unwrap();
    let granted = asked.granted_of(&Policy { http: vec![wide.into()], ..Policy::default() });
    assert_eq!(granted.policy.http[0].addresses, [], "asking for an address does not offer it");
    let narrow: HttpRule = "http://127.0.0.1:8080/".parse().unwrap();
    let granted = asked.granted_of(&Policy { http: vec![narrow.into()], ..Policy::default() });
    assert_eq!(granted.policy.http[0].addresses.len(), 1);
}

#[test]
fn a_permission_is_read_as_it_is_written() {
    for text in [
        "files:notes=read-only",
        "files:*=create-only",
        "http:GET https://a.example/v1",
        "socket:tcp a.example:1",
        "env:LANG",
        "config:units",
        "secret:github",
        "clock:precise",
        "random",
        "tool:word_count",
        "ask:form",
        "ask:sample",
        "ask:roots",
        "limit:wall-ms-max=5",
    ] {
        let permission: Permission = text.parse().unwrap();
        assert_eq!(permission.to_string(), text);
        assert!(!permission.in_plain_words().is_empty());
    }
    for text in [
        "",
        "ask:",
        "ask:forms",
        "files",
        "files:notes",
        "files:no/tes=read-only",
        "files:notes=rw",
        "env:",
        "env:A=B",
        "secret:a b",
        "clock:fine",
        "random:x",
        "limit:x",
        "http:x",
        "nothing:x",
    ] {
        assert!(text.parse::<Permission>().is_err(), "{text}");
    }
}

#[test]
fn a_plugin_without_a_manifest_asks_for_everything_and_others_for_what_they_name() {
    let asked = Permissions {
        files: BTreeMap::from([(mount("notes"), FileAccess::ReadOnly)]),
        http: vec!["GET https://a.example/v1".parse().unwrap()],
        ..Permissions::default()
    };
    let asked = RequestedPermissions::Stated(Box::new(asked));
    for (permission, is_asked) in [
        ("files:notes=read-only", true),
        ("files:notes=read-write", false),
        ("files:other=read-only", false),
        ("http:GET https://a.example/v1/b", true),
        ("http:POST https://a.example/v1", false),
        ("env:LANG", false),
        ("limit:wall-ms-max=5", true),
    ] {
        let permission: Permission = permission.parse().unwrap();
        assert_eq!(asked.asks_for(&permission), is_asked, "{permission}");
        assert!(RequestedPermissions::Unstated.asks_for(&permission), "{permission}");
    }
}
