// Functions that the parts of the SDK share and tools do not need.

#ifndef COFFERDAM_ABI_H
#define COFFERDAM_ABI_H

#include "cofferdam_http.h"

#include <stdarg.h>

#ifdef __cplusplus
extern "C" {
#endif

// `string`, and `list<u8>`.
typedef struct abi_text {
    const char *data;
    size_t length;
} abi_text;

// `list<T>` for any `T`.
typedef struct abi_list {
    const void *items;
    size_t length;
} abi_list;

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

// Lends the memory for the next value from the host that fits in it, so that it need not live until
// the end of the call. NULL takes it back.
void cofferdam_lend(void *buffer, size_t bytes);

// A request without its redirects, as a host sends it.
typedef struct cofferdam_hop {
    cofferdam_string method;
    bool is_https;
    cofferdam_string authority;
    cofferdam_string path; // with the query
    const cofferdam_http_header *headers;
    size_t header_count;
    const cofferdam_http_request *request;
    bool has_body;
    uint64_t deadline; // from `cofferdam_deadline`
} cofferdam_hop;

// Connection of one hop.
typedef struct cofferdam_connection cofferdam_connection;

// Returns the instant at which a timeout ends, or 0 for a timeout of 0.
uint64_t cofferdam_deadline(uint32_t timeout_ms);

// Sends the hop with its body, which is that of its request.
cofferdam_error cofferdam_connect(const cofferdam_hop *hop, cofferdam_connection **made);

// Waits for the head of the response and sets status and headers.
cofferdam_error cofferdam_connection_head(cofferdam_connection *connection, cofferdam_http_response *response);

// Reads a part of the body. Sets `*length` to 0 at its end.
cofferdam_error cofferdam_connection_read(cofferdam_connection *connection, void *buffer, size_t capacity, size_t *length);

void cofferdam_connection_close(cofferdam_connection *connection);

// Returns the error for a hop without a grant.
cofferdam_error cofferdam_http_denied(const cofferdam_hop *hop);

#ifdef __cplusplus
}
#endif

#endif
