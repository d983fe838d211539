//! The tools, prompts and resources that the MCP conformance suite expects of a server.
//!
//! Prompts and resources are tools too: the configuration makes the server publish the result of a
//! tool as one. The suite defines their names, arguments and results, and these texts.

pub mod asks;
pub mod changes;
pub mod contents;
pub mod prompts;
pub mod reports;
pub mod resources;
pub mod rounds;
pub mod schemas;
pub mod tasks;

cofferdam_sdk::plugin!(
    contents::test_simple_text,
    contents::test_image_content,
    contents::test_audio_content,
    contents::test_embedded_resource,
    contents::test_multiple_content_types,
    contents::test_error_handling,
    reports::test_tool_with_progress,
    reports::test_tool_with_logging,
    reports::test_logging_tool,
    reports::test_reconnection,
    schemas::JsonSchema202012,
    schemas::CustomHeader,
    asks::test_sampling,
    asks::test_elicitation,
    asks::test_elicitation_sep1034_defaults,
    asks::test_elicitation_sep1330_enums,
    asks::test_missing_capability,
    asks::test_streaming_elicitation,
    rounds::test_input_required_result_elicitation,
    rounds::test_input_required_result_sampling,
    rounds::test_input_required_result_list_roots,
    rounds::test_input_required_result_request_state,
    rounds::test_input_required_result_multiple_inputs,
    rounds::test_input_required_result_multi_round,
    rounds::test_input_required_result_tampered_state,
    rounds::test_input_required_result_capabilities,
    tasks::greet,
    tasks::slow_compute,
    tasks::failing_job,
    tasks::protocol_error_job,
    tasks::confirm_delete,
    tasks::multi_input,
    tasks::test_tool_with_task,
    changes::test_trigger_tool_change,
    changes::test_trigger_prompt_change,
    prompts::test_simple_prompt,
    prompts::test_prompt_with_arguments,
    prompts::test_prompt_with_embedded_resource,
    prompts::test_prompt_with_image,
    prompts::test_input_required_result_prompt,
    resources::static_text,
    resources::static_binary,
    resources::template;
    manifest = "plugin.toml"
);
