//! The manifests of `docs/kubernetes`: what they name exists, and their security settings. Their
//! `nats.conf` runs in a test of `cluster`.

use std::process::Command;

use cofferdam_tests::{binary, root};
use serde_json::{Value, json};

/// Returns the objects of a file.
pub(crate) fn objects(file: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(root().join("docs/kubernetes").join(file)).unwrap();
    let objects: Vec<Value> = text
        .split("\n---\n")
        .map(|document| serde_saphyr::from_str(document).unwrap_or_else(|error| panic!("{error}")))
        .collect();
    assert!(objects.iter().all(|object| object["apiVersion"].is_string()), "{file}");
    objects
}

/// Returns the pods of the workloads of a file, by their name.
fn pods(file: &str) -> Vec<(String, Value)> {
    let has_pods = |object: &Value| object["spec"].get("template").is_some();
    let pods = objects(file).into_iter().filter(has_pods).map(|object| {
        let name = object["metadata"]["name"].as_str().unwrap().to_owned();
        assert_eq!(
            object["spec"]["selector"]["matchLabels"],
            object["spec"]["template"]["metadata"]["labels"],
            "{name}"
        );
        (name, object["spec"]["template"]["spec"].clone())
    });
    pods.collect()
}

fn containers(pod: &Value) -> impl Iterator<Item = &Value> {
    let of = |field: &str| pod[field].as_array().into_iter().flatten();
    of("initContainers").chain(of("containers"))
}

fn arguments(container: &Value) -> Vec<&str> {
    container["args"].as_array().unwrap().iter().map(|it| it.as_str().unwrap()).collect()
}

/// Returns the value of a flag.
fn flag<'a>(arguments: &[&'a str], name: &str) -> &'a str {
    let at = arguments.iter().position(|argument| *argument == name).unwrap();
    arguments[at + 1]
}

#[test]
fn flags_of_the_manifests_exist() {
    let mut count = 0;
    for (name, pod) in pods("fleet.yaml") {
        for container in containers(&pod) {
            let arguments = arguments(container);
            let help = Command::new(binary()).args([arguments[0], "--help"]).output().unwrap();
            let help = String::from_utf8(help.stdout).unwrap();
            let words: Vec<_> = help.split([' ', '\n', ',', '[']).collect();
            for argument in arguments.iter().filter(|argument| argument.starts_with("--")) {
                assert!(words.contains(argument), "{name}: {argument}");
                count += 1;
            }
        }
    }
    assert!(count > 12, "only {count} flags found");
}

#[test]
fn pods_have_no_more_rights_than_they_need() {
    let pods: Vec<_> = ["nats.yaml", "fleet.yaml"].into_iter().flat_map(pods).collect();
    assert_eq!(pods.len(), 3);
    for (name, pod) in &pods {
        assert_eq!(pod["securityContext"]["runAsNonRoot"], true, "{name}");
        assert_eq!(pod["automountServiceAccountToken"], false, "{name}");
        for container in containers(pod) {
            let expected = json!({
                "allowPrivilegeEscalation": false,
                "readOnlyRootFilesystem": true,
                "capabilities": {"drop": ["ALL"]},
            });
            assert_eq!(container["securityContext"], expected, "{name}");
            let volumes = pod["volumes"].as_array().unwrap();
            for mount in container["volumeMounts"].as_array().unwrap() {
                let is_there = volumes.iter().any(|volume| volume["name"] == mount["name"]);
                assert!(is_there || mount["name"] == "data", "{name}: {mount}");
            }
        }
    }
    let policies = ["nats.yaml", "fleet.yaml"].into_iter().flat_map(objects);
    let policies: Vec<_> = policies.filter(|object| object["kind"] == "NetworkPolicy").collect();
    let selected: Vec<_> = policies
        .iter()
        .map(|policy| policy["spec"]["podSelector"]["matchLabels"]["app"].as_str().unwrap())
        .collect();
    assert_eq!(selected, ["nats", "cofferdam-gateway", "cofferdam-worker"]);
    // Only monitoring systems connect to a worker, as to the pages of a gateway.
    let [gateway, worker] = [1, 2].map(|index| &policies[index]["spec"]);
    assert_eq!(worker["policyTypes"][0], "Ingress");
    let [rule] = worker["ingress"].as_array().unwrap().as_slice() else { panic!("{worker}") };
    assert_eq!(rule["from"][0]["namespaceSelector"]["matchLabels"].as_object().unwrap().len(), 1);
    assert_eq!(*rule, gateway["ingress"][1]);
}

#[test]
fn pods_are_ready_when_their_pages_say_so() {
    let port_of = |address: &str| address.rsplit(':').next().unwrap().parse::<u64>().unwrap();
    for (name, pod) in pods("fleet.yaml") {
        let container = &pod["containers"][0];
        let port = port_of(flag(&arguments(container), "--monitoring"));
        let probe = &container["readinessProbe"]["httpGet"];
        assert_eq!(probe["path"], "/healthz", "{name}");
        let ports = container["ports"].as_array().unwrap();
        let of_probe = ports.iter().find(|it| it["name"] == probe["port"]).unwrap();
        assert_eq!(of_probe["containerPort"], port, "{name}");
        let workloads = objects("fleet.yaml").into_iter();
        let mut workloads = workloads.filter(|it| it["kind"] == "Deployment");
        let workload = workloads.find(|object| object["metadata"]["name"] == *name).unwrap();
        let annotations = &workload["spec"]["template"]["metadata"]["annotations"];
        assert_eq!(annotations["prometheus.io/port"], port.to_string(), "{name}");
        let policies = objects("fleet.yaml").into_iter();
        let mut policies = policies.filter(|it| it["kind"] == "NetworkPolicy");
        let policy = policies.find(|object| object["metadata"]["name"] == *name).unwrap();
        let rules = policy["spec"]["ingress"].as_array().unwrap();
        assert!(rules.iter().any(|rule| rule["ports"][0]["port"] == port), "{name}");
        // A worker that drains is not healthy, and must not be killed for that.
        assert!(container.get("livenessProbe").is_none(), "{name}");
    }
}

#[test]
fn a_worker_has_time_to_end_its_calls() {
    let pods = pods("fleet.yaml");
    let (_, worker) = pods.iter().find(|(name, _)| name == "cofferdam-worker").unwrap();
    let container = &worker["containers"][0];
    let wait: u64 = flag(&arguments(container), "--drain-wait").parse().unwrap();
    assert!(worker["terminationGracePeriodSeconds"].as_u64().unwrap() > wait);
}

#[test]
fn workers_are_scaled_by_a_metric_that_exists() {
    let [scaled] = <[Value; 1]>::try_from(objects("keda.yaml")).unwrap();
    let trigger = &scaled["spec"]["triggers"][0]["metadata"];
    let query = trigger["query"].as_str().unwrap();
    let (metric, label) = query.split_once('{').unwrap();
    let metric = metric.strip_prefix("sum(").unwrap();
    // Workers have this metric too, for the same calls.
    let label = label.strip_suffix("})").unwrap().split_once('=').unwrap();
    let gateway = objects("fleet.yaml").remove(0);
    let labels = &gateway["spec"]["template"]["metadata"]["labels"];
    assert_eq!(labels[label.0], label.1.trim_matches('"'));
    let metrics = root().join("host/record/src/metrics/text.rs");
    assert!(std::fs::read_to_string(metrics).unwrap().contains(&format!("\"{metric}\"")));
    let (target, pods) = (&scaled["spec"]["scaleTargetRef"]["name"], pods("fleet.yaml"));
    let (_, worker) = pods.iter().find(|(name, _)| target == name).unwrap();
    let calls: u32 = flag(&arguments(&worker["containers"][0]), "--calls").parse().unwrap();
    assert!(trigger["threshold"].as_str().unwrap().parse::<u32>().unwrap() < calls);
}
