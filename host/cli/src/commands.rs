//! Commands, one module each.

mod add;
mod approve;
mod args;
mod audit;
mod build;
mod cache;
mod call;
pub(crate) mod chat;
mod check;
mod config;
mod config_init;
mod demo;
mod dev;
mod doctor;
mod embed;
mod eval;
mod fetch;
mod fleet;
mod generate;
mod grant;
mod inspect;
mod labels;
mod list;
mod lock;
mod log;
mod mcp;
mod new;
mod pipe;
mod play;
mod publish;
mod replay;
mod search;
mod serve;
mod sign;
mod skills;
mod test;
pub(crate) mod trust;
mod update;
mod worker;
mod workflow;
mod wrap;

pub(crate) use self::replay::not_recorded;
use tokio_util::sync::CancellationToken;

use crate::args::{Cli, Command, ConfigCommand, WorkflowCommand};
use crate::exit::Exit;
use crate::signals;

/// Runs the command that was typed.
pub(crate) async fn run(mut cli: Cli) -> anyhow::Result<Exit> {
    choose_recording(&mut cli.command);
    let global = &cli.global;
    match cli.command {
        Command::Call(args) => call::run(global, args).await,
        Command::List(args) => list::run(global, args).await,
        Command::Inspect(args) => inspect::run(global, args).await,
        Command::Check(args) => check::run(global, args).await,
        Command::Args(args) => args::run(global, args).await,
        Command::Play(args) => play::run(global, args).await,
        Command::Chat(args) => Box::pin(chat::run(global, &args)).await,
        Command::Eval(args) => eval::run(global, &args).await,
        Command::Workflow(command) => workflow::run(global, command).await,
        Command::Serve(args) => serve::run(global, *args).await,
        Command::Worker(args) => worker::run(global, *args).await,
        Command::Fleet(args) => fleet::run(&args).await,
        Command::Pipe(args) => pipe::run(global, &args).await,
        Command::Search(args) => search::run(&args).await,
        Command::Add(args) => add::run(global, &args).await,
        Command::Remove(args) => add::remove(&args),
        Command::Fetch(args) => fetch::run(global, &args).await,
        Command::Update(args) => Box::pin(update::run(global, &args)).await,
        Command::Audit(args) => audit::run(&args).await,
        Command::Export(args) => fetch::export(&args),
        Command::Import(args) => fetch::import(&args).await,
        Command::Publish(args) => publish::run(global, &args).await,
        Command::Keys(command) => sign::keys(&command),
        Command::Sign(args) => sign::sign(&args).await,
        Command::Verify(args) => sign::verify(&args).await,
        Command::Grant(args) => grant::grant(global, args).await,
        Command::Revoke(args) => grant::revoke(global, args).await,
        Command::Approve(args) => approve::run(global, args).await,
        Command::New(args) => new::run(&args),
        Command::Build(args) => build::run(global, args).await,
        Command::Test(args) => test::run(global, args).await,
        Command::Dev(args) => dev::run(global, *args).await,
        Command::Embed(args) => embed::run(&args),
        Command::Wrap(args) => wrap::run(global, &args).await,
        Command::Skills(command) => skills::run(global, command).await,
        Command::Demo => demo::run(global).await,
        Command::Doctor(args) => Box::pin(doctor::run(global, args)).await,
        Command::Config(ConfigCommand::Init(args)) => config_init::run(global, &args).await,
        Command::Config(ConfigCommand::Check(args)) => config::check(&args),
        Command::Trust(args) => trust::run(&args),
        Command::Log(args) => log::run(&args).await,
        Command::Replay(args) => Box::pin(replay::run(global, &args)).await,
        Command::Cache(command) => cache::run(global, &command),
        Command::Completions(args) => generate::completions(&args),
        Command::Man(args) => generate::man(&args),
        Command::Mcp(command) => mcp::run(global, command).await,
    }
}

/// Sets for each command that calls tools, by its flags, whether the calls are recorded.
fn choose_recording(command: &mut Command) {
    let (plugins, mode, recording) = match command {
        Command::Call(args) => (&mut args.plugins, args.record.mode(), args.record.recording()),
        Command::Play(args) => (&mut args.plugins, args.record.mode(), args.record.recording()),
        Command::Pipe(args) => (&mut args.plugins, args.record.mode(), args.record.recording()),
        Command::Chat(args) => (&mut args.plugins, args.record.mode(), args.record.recording()),
        Command::Eval(args) => (&mut args.plugins, args.record.mode(), args.record.recording()),
        Command::Serve(args) => (&mut args.plugins, args.record.mode(), args.record.recording()),
        Command::Worker(args) => (&mut args.plugins, args.record.mode(), args.record.recording()),
        Command::Dev(args) => {
            let serve = &mut args.serve;
            (&mut serve.plugins, serve.record.mode(), serve.record.recording())
        }
        Command::Workflow(WorkflowCommand::Run(args)) => {
            (&mut args.plugins, args.record.mode(), args.record.recording())
        }
        _ => return,
    };
    (plugins.records, plugins.recording) = (mode, recording);
}

/// Returns a token that the first Ctrl-C cancels. A second Ctrl-C ends the process.
pub(crate) fn cancelled_by_ctrl_c() -> CancellationToken {
    let token = CancellationToken::new();
    let on_signal = token.clone();
    tokio::spawn(async move {
        if tokio::signal::ctrl_c().await.is_ok() {
            on_signal.cancel();
        }
        if tokio::signal::ctrl_c().await.is_ok() {
            signals::exit_interrupted().await
        }
    });
    token
}

/// Returns whether a command waits for SIGTERM itself, and ends in an orderly way.
pub(crate) fn handles_termination(command: &Command) -> bool {
    use crate::args::log::LogCommand;
    match command {
        Command::Serve(_) | Command::Dev(_) | Command::Worker(_) | Command::Pipe(_) => true,
        Command::Log(args) => matches!(args.command, Some(LogCommand::Collect(_))),
        _ => false,
    }
}

/// Returns the message about cases of which a filter selects none.
fn no_cases(filter: Option<&str>) -> String {
    match filter {
        Some(filter) => format!("the name of no case contains `{filter}`"),
        None => "there are no cases".to_owned(),
    }
}
