//! Programs that wait for a user, and others that run meanwhile.

use tokio::sync::Notify;

use super::*;

/// Answers when it is notified, as a client that is asked while the program waits.
#[derive(Default)]
struct Notified {
    asked: Notify,
    answered: Notify,
}

#[async_trait]
impl Asker for Notified {
    fn can_ask(&self, kind: QuestionKind) -> bool {
        kind == QuestionKind::Elicitation
    }

    async fn ask(&self, _: Vec<Question>) -> Result<Vec<Value>, AskError> {
        self.asked.notify_one();
        self.answered.notified().await;
        Ok(vec![json!({"action": "accept", "content": {"allow": true}})])
    }
}

fn guarded(more: Functions) -> (Arc<Guarded>, Toolset) {
    let guarded = Guarded::new();
    let mut tools = Toolset::new();
    tools.add(Arc::clone(&guarded) as Arc<dyn ToolSource>).unwrap();
    tools.add(Arc::new(more)).unwrap();
    (guarded, mode(&tools, CodeOptions::default()))
}

fn asking(asker: &Arc<Notified>) -> CallContext {
    let asker: Arc<dyn Asker> = Arc::<Notified>::clone(asker);
    CallContext { session: Some("s".into()), asker: Some(asker), ..CallContext::new("c") }
}

fn store(key: &str, value: i64) -> Value {
    json!(["cofferdam_code_store", {"key": key, "value": value}])
}

#[tokio::test]
async fn an_identical_program_makes_its_own_calls_while_the_first_waits() {
    let (guarded, toolset) = guarded(Functions::new("none"));
    let asker = Arc::new(Notified::default());
    let program: Value = serde_json::from_str(WRITES).unwrap();
    let context = asking(&asker);
    let first = run(&toolset, program.clone(), &context);
    let other = async {
        asker.asked.notified().await;
        assert_eq!(guarded.calls.load(Ordering::Relaxed), 1);
        // No user can be asked for this one.
        let answer = shown(&toolset, program.clone()).await;
        assert_eq!(guarded.calls.load(Ordering::Relaxed), 2, "{answer}");
        asker.answered.notify_one();
    };
    let (first, ()) = tokio::join!(first, other);
    assert!(matches!(first.outcome, Outcome::Ok(_)), "{first:?}");
    assert_eq!((guarded.calls.load(Ordering::Relaxed), first.record.files.len()), (3, 2));
}

#[tokio::test]
async fn values_that_programs_store_at_the_same_time_remain() {
    let (_, toolset) = guarded(Functions::new("none"));
    let asker = Arc::new(Notified::default());
    let context = asking(&asker);
    let write = json!(["write", {"name": "b"}]);
    let load = |key: &str| json!(["cofferdam_code_load", {"key": key}]);
    let first = run(&toolset, json!([store("one", 1), write, load("two")]), &context);
    let other = async {
        asker.asked.notified().await;
        let large = json!("x".repeat(30_000));
        shown(&toolset, large).await;
        shown(&toolset, json!([store("two", 2)])).await;
        asker.answered.notify_one();
    };
    let (first, ()) = tokio::join!(first, other);
    let Outcome::Ok(Output::Value(answer)) = first.outcome else { panic!("{first:?}") };
    assert_eq!(answer["result"], json!([null, "written", null]));
    let answer = shown(&toolset, json!([load("one"), load("two")])).await;
    assert_eq!(answer["result"], json!([1, 2]));
    let answer = shown(&toolset, json!([load("result_1")])).await;
    assert!(answer["note"].as_str().unwrap().contains("load(\"result_2\")"), "{answer}");
}

#[tokio::test]
async fn the_model_learns_that_stored_values_have_no_space_beside_those_of_others() {
    let (_, toolset) = guarded(Functions::new("none"));
    let asker = Arc::new(Notified::default());
    let context = asking(&asker);
    let keys = |prefix: &str| (0..40).map(|index| store(&format!("{prefix}{index}"), 1)).collect();
    let (mut calls, others): (Vec<_>, Vec<_>) = (keys("a"), keys("b"));
    calls.push(json!(["write", {"name": "b"}]));
    let first = run(&toolset, json!(calls), &context);
    let other = async {
        asker.asked.notified().await;
        shown(&toolset, json!(others)).await;
        asker.answered.notify_one();
    };
    let (first, ()) = tokio::join!(first, other);
    let Outcome::Ok(Output::Value(answer)) = first.outcome else { panic!("{first:?}") };
    let note = answer["note"].as_str().unwrap();
    assert!(note.contains("there would be 80 stored values"), "{note}");
}

#[tokio::test]
async fn a_call_is_not_asked_about_if_the_program_is_too_large_to_continue() {
    let large = Declaration::new("large", "Returns much.", r#"{"type":"object"}"#);
    let functions =
        Functions::new("large").with(large, async |_, _| Ok("x".repeat(1 << 20).into()));
    let (guarded, toolset) = guarded(functions.unwrap());
    let mut calls = vec![json!(["large", {}]); 4];
    calls.push(json!(["write", {"name": "b"}]));
    let later: Arc<dyn Asker> = Arc::new(Later::default());
    let context = CallContext { asker: Some(later), ..CallContext::new("c") };
    let completion = run(&toolset, json!(calls), &context);
    let completion = tokio::time::timeout(Duration::from_secs(60), completion).await.unwrap();
    let Outcome::Failure(failure) = completion.outcome else { panic!("{completion:?}") };
    assert_eq!(
        failure.message,
        "the call to 'write' needs a user's approval; the program cannot wait for one, because \
         its results and stored values have more than 4194304 bytes"
    );
    assert_eq!(guarded.calls.load(Ordering::Relaxed), 0);
    // A user who answers while the program waits is asked.
    let asker = Arc::new(Notified::default());
    asker.answered.notify_one();
    let completion = run(&toolset, json!(calls), &asking(&asker)).await;
    assert!(matches!(completion.outcome, Outcome::Ok(_)), "{completion:?}");
}
