// What the parts of the SDK share and no tool needs.

#ifndef COFFERDAM_ABI_H
#define COFFERDAM_ABI_H

#include "cofferdam.h"

#include <stdarg.h>

#ifdef __cplusplus
extern "C" {
#endif

// Says on standard error what the program did wrong, and ends the call.
__attribute__((noreturn)) void cofferdam_abort(const char *mistake);

// What `cofferdam_format` does, for arguments that were passed on.
cofferdam_string cofferdam_format_list(const char *format, va_list arguments);

// Gives back all memory of the call. Everything that `cofferdam_allocate` gave is gone.
void cofferdam_release(void);

// The tool of the plugin; NULL if there is none of that name.
const cofferdam_tool *cofferdam_find(cofferdam_string name);

// JSON text of the tool's schemas; that of the output may be absent.
cofferdam_string cofferdam_input_schema(const cofferdam_tool *tool);
cofferdam_string cofferdam_output_schema(const cofferdam_tool *tool);

// Calls a tool with a JSON object: fills in defaults, and reports arguments that do not fit as a failure.
cofferdam_result cofferdam_start(const cofferdam_tool *tool, cofferdam_string arguments_json);

#ifdef __cplusplus
}
#endif

#endif
