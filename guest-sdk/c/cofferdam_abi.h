// Functions that the parts of the SDK share and tools do not need.

#ifndef COFFERDAM_ABI_H
#define COFFERDAM_ABI_H

#include "cofferdam.h"

#include <stdarg.h>

#ifdef __cplusplus
extern "C" {
#endif

// Prints a mistake of the program on standard error and ends the call.
__attribute__((noreturn)) void cofferdam_abort(const char *mistake);

// Does the same as `cofferdam_format`, for a `va_list`.
cofferdam_string cofferdam_format_list(const char *format, va_list arguments);

// Frees all memory of the call.
void cofferdam_release(void);

// Returns the plugin's tool of this name, or NULL.
const cofferdam_tool *cofferdam_find(cofferdam_string name);

// Returns the tool's schemas as JSON strings. The output schema may be absent.
cofferdam_string cofferdam_input_schema(const cofferdam_tool *tool);
cofferdam_string cofferdam_output_schema(const cofferdam_tool *tool);

// Calls a tool with a JSON object. Fills in defaults, and returns a failure if arguments do not
// match.
cofferdam_result cofferdam_start(const cofferdam_tool *tool, cofferdam_string arguments_json);

#ifdef __cplusplus
}
#endif

#endif
