//! Guests that explore their environment.

use super::{Arena, End, Ended, Launch, attacks};

attacks! {
    /// Variables, arguments and the working directory reveal facts about the host.
    environment: Launch::Named => End::Says("[] [] None"),
    /// A terminal that the guest could draw on.
    terminals: Launch::Named => End::Says("false false false"),
    /// Paths that exist on every machine.
    paths_of_the_host: Launch::Named => End::Says("0"),
    /// All of these at once, by another guest.
    looks_around: Launch::Steps(|arena| Box::pin(async move {
        let ended = arena.call("looks_around", "looks_around", "{}").await;
        let Ended::Called(completion) = &ended else { panic!("the guest loads") };
        let seen = completion.outcome.shown().unwrap().text();
        assert!(seen.starts_with("0 0 Err("), "{seen}");
        ended
    })) => End::Succeeds,
    /// A gibibyte of random bytes.
    a_gibibyte_of_random: Launch::Named => End::Error("Trap.Other"),
    /// Predictable random bytes.
    random_that_repeats: Launch::Named => End::Says("false"),
    /// The names of other machines.
    names_of_hosts: Launch::Named => End::Error("CapabilityDenied"),
    /// A connection to the host itself.
    connect_to_the_host: Launch::Tool("connects", "connects", "{}") => End::Says("ok"),
    /// A port on the host.
    listen: Launch::Named => End::Says("PermissionDenied"),
    /// A packet to an address without a listener.
    send_a_datagram: Launch::Named => End::Says("PermissionDenied"),
    /// The session of another caller.
    the_call: Launch::Named => End::Says("None false"),
    /// Ending the process instead of the call.
    exit_with_success: Launch::Tool("crash", "exit", r#"{"code":0}"#) => End::Error("GuestExit"),
    /// Ending the process with a failure.
    exit_with_a_code: Launch::Tool("crash", "exit", r#"{"code":3}"#) => End::Error("GuestExit"),
    /// The host's message about a panic goes to the model.
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
