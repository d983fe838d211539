//! Prompts of the planner. The questions are those of the published method; the wording is our own.

/// Prompt for the known facts, before anything is done.
pub(super) fn facts(task: &str) -> String {
    format!(
        "This is a request:\n\n{task}\n\nBefore anybody works on it, write down under four headings, and nothing else:\n\
         1. GIVEN OR VERIFIED FACTS: facts and figures that the request itself states.\n\
         2. FACTS TO LOOK UP: what has to be looked up, and where it may be found.\n\
         3. FACTS TO DERIVE: what has to be worked out.\n\
         4. EDUCATED GUESSES: what you remember or take for likely.\n\
         Plan no steps yet."
    )
}

/// Prompt for the known facts, after the work has stalled.
pub(super) fn updated_facts(task: &str, facts: &str) -> String {
    format!(
        "The request is still:\n\n{task}\n\nWe get on less well than we should, and may have learned something. Write the fact \
         sheet anew, with the same headings: add what is new, move what has been verified, and \
         change at least one guess and say \
         why.\n\nThe fact sheet so far:\n\n{facts}"
    )
}

/// Prompt for a plan.
pub(super) fn plan(team: &str) -> String {
    format!(
        "This is the team:\n\n{team}\n\nWrite a short plan for the request as a list of points. \
         Not everybody has to take part."
    )
}

/// Prompt for a new plan, after the work has stalled.
pub(super) fn new_plan(team: &str) -> String {
    format!(
        "Say in short what went wrong and why. Then write a new plan as a short list of points that does not repeat it.\n\nThis \
         is the team:\n\n{team}"
    )
}

/// First message to the team.
pub(super) fn begin(task: &str, team: &str, facts: &str, plan: &str) -> String {
    format!(
        "We work on this request:\n\n{task}\n\nThe team:\n\n{team}\n\nWhat is \
         known:\n\n{facts}\n\nThe plan:\n\n{plan}"
    )
}

/// Prompt for the progress ledger.
pub(super) fn progress(task: &str, team: &str, names: &str) -> String {
    format!(
        "We work on this request:\n\n{task}\n\nThe team:\n\n{team}\n\nAnswer these questions, each with a reason:\n\
         - is_request_satisfied: has the whole request been dealt with, with success? true or \
         false\n\
         - is_in_loop: do the same requests or answers come again and again? true or false\n\
         - is_progress_being_made: do the last messages add something, or has the work just \
         begun? true or false\n\
         - next_speaker: who speaks next? One of: {names}\n\
         - instruction_or_question: what is that one told or asked, with everything that it needs \
         to know?\n\n\
         Answer with JSON alone, in this form:\n\
         {{\"is_request_satisfied\": {{\"reason\": \"…\", \"answer\": false}}, \"is_in_loop\": {{\"reason\": \"…\", \"answer\": \
         false}}, \"is_progress_being_made\": {{\"reason\": \"…\", \"answer\": \
         true}}, \"next_speaker\": {{\"reason\": \"…\", \
         \"answer\": \"NAME\"}}, \"instruction_or_question\": \
         {{\"reason\": \"…\", \"answer\": \"…\"}}}}"
    )
}

/// Prompt for the final answer.
pub(super) fn answer(task: &str) -> String {
    format!(
        "The work on this request is over:\n\n{task}\n\nWith what the messages above say, write the final answer, as you would \
         say it to the person who asked."
    )
}
