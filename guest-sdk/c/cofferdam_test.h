// Tests tools natively, without a host: compile the plugin, the `.c` files of the SDK and a test
// program with the compiler of your machine. Works from C and C++.
//
//     #include "cofferdam_test.h"
//
//     int main(void) {
//         COFFERDAM_EXPECT("greet", "{\"name\": \"Ada\"}", "\"A happy 2027, Ada!\"");
//         COFFERDAM_EXPECT_FAILURE("greet", "{\"name\": \"\"}", "the name is empty");
//         return cofferdam_test_end();
//     }
//
// Missing arguments get their defaults as in the host. Other steps of the host do not happen:
// converting `"2"` to 2, checking against the schema, dropping unknown keys.
//
// By default nothing is granted. A granted store is empty and in memory; its search supports plain
// text and no globs. Questions cannot be asked. Progress is dropped, and log lines are stored.

#ifndef COFFERDAM_TEST_H
#define COFFERDAM_TEST_H

#include "cofferdam.h"

#ifdef __cplusplus
extern "C" {
#endif

// Calls a tool and checks the value that the model would see: JSON, compared as values. See
// `cofferdam_test_value`.
#define COFFERDAM_EXPECT(tool, arguments, json) cofferdam_test_expect(__FILE__, __LINE__, tool, arguments, json)

// Calls a tool and checks that it reports a failure with this message.
#define COFFERDAM_EXPECT_FAILURE(tool, arguments, message) \
    cofferdam_test_expect_failure(__FILE__, __LINE__, tool, arguments, message)

// Checks any condition.
#define COFFERDAM_CHECK(condition) cofferdam_test_check(__FILE__, __LINE__, condition, #condition)

// Calls a tool with a JSON object. A missing tool is a failure.
cofferdam_result cofferdam_test_call(const char *tool, const char *arguments);

// Returns the value of a success as JSON: null, a string, or a JSON value; several items as an
// array of such values. A blob is {"media_type", "bytes"}, a resource {"uri", "media_type"} with
// "text" or "bytes", a link {"uri", "name", "media_type"}. A failure is {"error": {"message",
// "suggestion"}}, or its own error value.
cofferdam_string cofferdam_test_value(cofferdam_result result);

// Return the published schemas of a tool as JSON strings.
cofferdam_string cofferdam_test_input_schema(const char *tool);
cofferdam_string cofferdam_test_output_schema(const char *tool);

// Grants.
void cofferdam_test_grant_store(const char *store);
void cofferdam_test_grant_secret(const char *name, const char *value);

// Grants requests to a URL, and sets the response: `headers` has lines of `name: value` and may be
// NULL. Other requests are denied.
void cofferdam_test_grant_response(const char *url, uint16_t status, const char *headers, const char *body);

// Returns the last request: `POST http://example.com/a`, its headers as lines, and its body after an
// empty line.
cofferdam_string cofferdam_test_sent(void);

// Grants another tool that always returns this JSON value.
void cofferdam_test_grant_tool(const char *name, const char *json);

// Returns the log lines since the last call of this function, one per line.
cofferdam_string cofferdam_test_logged(void);

// Prints the number of checks. Returns 0 if all of them hold, for `return` in `main`.
int cofferdam_test_end(void);

// Functions that the macros call.
void cofferdam_test_expect(const char *file, int line, const char *tool, const char *arguments, const char *json);
void cofferdam_test_expect_failure(const char *file, int line, const char *tool, const char *arguments, const char *message);
void cofferdam_test_check(const char *file, int line, bool holds, const char *what);

#ifdef __cplusplus
}
#endif

#endif
