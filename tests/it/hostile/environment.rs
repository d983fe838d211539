//! Guests that look around.

use super::{Arena, End, Ended, Launch, attacks};

attacks! {
    /// Variables, arguments and the working directory tell about the host.
    environment: Launch::Named => End::Says("[] [] None"),
    /// A terminal could be drawn on.
    terminals: Launch::Named => End::Says("false false false"),
    /// Paths that every machine has.
    paths_of_the_host: Launch::Named => End::Says("0"),
    /// Everything at once, as another guest sees it.
    looks_around: Launch::Steps(|arena| Box::pin(async move {
        let ended = arena.call("looks_around", "looks_around", "{}").await;
        let Ended::Called(completion) = &ended else { panic!("the guest loads") };
        let seen = completion.outcome.shown().unwrap().text();
        assert!(seen.starts_with("0 0 Err("), "{seen}");
        ended
    })) => End::Succeeds,
    /// Random bytes by the gibibyte.
    a_gibibyte_of_random: Launch::Named => End::Error("Trap.Other"),
    /// Random bytes that can be foreseen.
    random_that_repeats: Launch::Named => End::Says("false"),
    /// The names of other machines.
    names_of_hosts: Launch::Named => End::Error("CapabilityDenied"),
    /// A connection to the host itself.
    connect_to_the_host: Launch::Tool("connects", "connects", "{}") => End::Says("ok"),
    /// A port on the host.
    listen: Launch::Named => End::Says("PermissionDenied"),
    /// A packet that nobody answers.
    send_a_datagram: Launch::Named => End::Says("PermissionDenied"),
    /// The session of somebody else.
    the_call: Launch::Named => End::Says("None false"),
    /// Ending the process instead of the call.
    exit_with_success: Launch::Tool("crash", "exit", r#"{"code":0}"#) => End::Error("GuestExit"),
    /// The same, as a failure.
    exit_with_a_code: Launch::Tool("crash", "exit", r#"{"code":3}"#) => End::Error("GuestExit"),
    /// What the host says about a panic goes to the model.
    a_secret_in_a_panic: Launch::Steps(|arena| Box::pin(keeps_the_secret(arena)))
        => End::Error("Trap.Unreachable"),
}

async fn keeps_the_secret(arena: &mut Arena) -> Ended {
    let ended = arena.call("crash", "panic", r#"{"message":"a secret"}"#).await;
    let Ended::Called(completion) = &ended else { panic!("the guest loads") };
    let shown = completion.outcome.shown().unwrap().text();
    assert!(!shown.contains("secret") && !shown.contains(".rs"), "{shown}");
    ended
}
