// Write tools for Cofferdam in C: functions in, one WebAssembly component out.
//
//     #include "cofferdam.h"
//
//     COFFERDAM_TOOL(greet, "Greets a person.",
//                    COFFERDAM_READ_ONLY,
//                    COFFERDAM_STRING(name, "Name of the person to greet."),
//                    COFFERDAM_INTEGER_OR(year, "The year that begins.", 2027)) {
//         if (!arguments->name.length) return cofferdam_suggest(cofferdam_fail("the name is empty"), "pass a name");
//         return cofferdam_text(
//             cofferdam_format("A happy %lld, %s!", (long long)arguments->year, arguments->name.data));
//     }
//
//     COFFERDAM_PLUGIN(greet)
//
// Before the tool runs, the host checks and converts the model's arguments by the schema that the
// macros make. Report expected errors with `cofferdam_fail`: `abort`, a failed `assert` and an
// access out of bounds end the call, and then the model sees only an error type such as
// `Trap.Unreachable`. Output on standard error is in the record of the call.
//
// All memory that these functions return lives until the end of the call. A component imports only
// what its tools use: without a call of `cofferdam_progress`, the component cannot report progress.

#ifndef COFFERDAM_H
#define COFFERDAM_H

#include "cofferdam_json.h"

#ifdef __cplusplus
extern "C" {
#endif

// Bytes that live until the end of the call.
typedef struct cofferdam_bytes {
    const uint8_t *data;
    size_t length;
} cofferdam_bytes;

// Results.

typedef enum cofferdam_content_type {
    COFFERDAM_CONTENT_TEXT,
    COFFERDAM_CONTENT_JSON,
    COFFERDAM_CONTENT_BLOB,
    COFFERDAM_CONTENT_RESOURCE_TEXT,
    COFFERDAM_CONTENT_RESOURCE_BLOB,
    COFFERDAM_CONTENT_LINK,
} cofferdam_content_type;

// One item of a result. Fields that its type does not have are absent.
typedef struct cofferdam_content {
    cofferdam_content_type type;
    cofferdam_string text; // of a text, of JSON, of a resource
    cofferdam_bytes data;  // of a blob, of a resource
    cofferdam_string uri;  // of a resource, of a link
    cofferdam_string name; // of a link
    cofferdam_string media_type;
} cofferdam_content;

// Transience of a failure: whether a retry may help.
typedef enum cofferdam_transience { COFFERDAM_UNKNOWN, COFFERDAM_PERMANENT, COFFERDAM_TRANSIENT } cofferdam_transience;

// Failure of a tool. Absent strings are omitted; `value` is usually absent.
typedef struct cofferdam_failure {
    cofferdam_string message;
    cofferdam_string suggestion;
    cofferdam_string value; // JSON that the model sees instead of message and suggestion
    cofferdam_transience transience;
} cofferdam_failure;

// Result of a tool, made by the functions below. `failure` is NULL for a success. A success without
// content is null.
typedef struct cofferdam_result {
    const cofferdam_content *contents;
    size_t count;
    const cofferdam_failure *failure;
} cofferdam_result;

// Returns an empty result: the model sees null.
cofferdam_result cofferdam_nothing(void);

// Returns text. `cofferdam_text(cofferdam_format("%d files", count))` formats it.
cofferdam_result cofferdam_text(cofferdam_string text);

// Returns the written JSON, or a failure if it is nested too deeply.
cofferdam_result cofferdam_json(cofferdam_writer *json);

// Returns bytes with a media type, such as `image/png`. Does not copy the bytes.
cofferdam_result cofferdam_blob(const char *media_type, const void *data, size_t length);

// Returns several items. Copies the array, but not the data that it points to.
cofferdam_result cofferdam_several(size_t count, const cofferdam_content *contents);

cofferdam_content cofferdam_text_content(cofferdam_string text);
cofferdam_content cofferdam_json_content(cofferdam_string json);
cofferdam_content cofferdam_blob_content(const char *media_type, const void *data, size_t length);

// Makes a resource with its content. `media_type` may be NULL.
cofferdam_content cofferdam_resource_content(cofferdam_string uri, const char *media_type, cofferdam_string text);
cofferdam_content cofferdam_binary_resource_content(cofferdam_string uri, const char *media_type, const void *data, size_t length);

// Makes the address of a resource that can be read separately. `media_type` may be NULL.
cofferdam_content cofferdam_link_content(cofferdam_string uri, cofferdam_string name, const char *media_type);

// Returns a failure whose message lets a model correct itself: what was expected and what was
// found, in lower case, without a full stop. Formats like printf.
__attribute__((format(printf, 1, 2))) cofferdam_result cofferdam_fail(const char *format, ...);

// Adds a suggestion for the model to a failure: "pass …", "call …". Does not change a success.
__attribute__((format(printf, 2, 3))) cofferdam_result cofferdam_suggest(cofferdam_result result, const char *format, ...);

// Tells the host whether a retry may help.
cofferdam_result cofferdam_transient(cofferdam_result result, bool is_transient);

// Returns a failure with an error value that the model sees instead of a message.
cofferdam_result cofferdam_fail_with(cofferdam_writer *json);

// Tools.

#ifndef __cplusplus

// COFFERDAM_TOOL(name, "Description.", …) { … return cofferdam_text(…); }
//
// Defines a tool: at most 64 parameters and hints in any order, and then the body, in which
// `arguments` points to a struct with a field for each parameter. The description is all that a
// model knows about the tool. The name of a parameter is a C identifier. For other names, and for
// schemas of more than one level, use COFFERDAM_TOOL_WITH_SCHEMA.
//
// | parameter                            | field                     | the model                                  |
// |--------------------------------------|---------------------------|--------------------------------------------|
// | COFFERDAM_STRING(name, "…")          | cofferdam_string          | must send it                               |
// | COFFERDAM_STRING_OR(name, "…", "x")  | cofferdam_string          | may omit it or send null: the default      |
// | COFFERDAM_STRING_OPTIONAL(name, "…") | cofferdam_string          | may omit it or send null: `data` is NULL   |
// | COFFERDAM_INTEGER, … _OR             | int64_t                   |                                            |
// | COFFERDAM_INTEGER_OPTIONAL           | const int64_t *           | … the pointer is NULL                      |
// | COFFERDAM_NUMBER, …_OR, …_OPTIONAL   | double, const double *    |                                            |
// | COFFERDAM_BOOLEAN, …_OR, …_OPTIONAL  | bool, const bool *        |                                            |
// | COFFERDAM_CHOICE(name, "…", "a", …)  | cofferdam_string          | sends one of at most 16 strings            |
// | COFFERDAM_CHOICE_OR(name, "…", "a", "a", …), _OPTIONAL | the same | the default precedes the choices           |
// | COFFERDAM_VALUE(name, "…", schema)   | const cofferdam_value *   | sends a value that matches the schema      |
// | COFFERDAM_VALUE_OR, …_OPTIONAL       | const cofferdam_value *   | the default is JSON; absent is NULL        |
//
// With COFFERDAM_INTEGER_IN(name, "…", least, most) and COFFERDAM_INTEGER_IN_OR(name, "…", least,
// most, default) the host rejects values out of range. The most readable form of a JSON Schema is
// COFFERDAM_SCHEMA({"type": "array", "items": {"type": "string"}}).
#define COFFERDAM_TOOL(name, description, ...) \
    struct cofferdam_arguments_##name { \
        const cofferdam_value *all; \
        COFFERDAM_EACH_(COFFERDAM_FIELD_, name __VA_OPT__(, ) __VA_ARGS__) \
    }; \
    static cofferdam_result cofferdam_run_##name(const struct cofferdam_arguments_##name *arguments); \
    static cofferdam_result cofferdam_start_##name(const void *arguments) { \
        return cofferdam_run_##name((const struct cofferdam_arguments_##name *)arguments); \
    } \
    static const cofferdam_parameter cofferdam_parameters_##name[] = { \
        COFFERDAM_EACH_(COFFERDAM_ENTRY_, name __VA_OPT__(, ) __VA_ARGS__){0}}; \
    const cofferdam_tool cofferdam_tool_##name = { \
        #name, description, NULL, NULL, cofferdam_parameters_##name, sizeof(struct cofferdam_arguments_##name), \
        cofferdam_start_##name, {COFFERDAM_EACH_(COFFERDAM_HINT_, name __VA_OPT__(, ) __VA_ARGS__) .is_given = true}}; \
    static cofferdam_result cofferdam_run_##name( \
        __attribute__((unused)) const struct cofferdam_arguments_##name *arguments)

// COFFERDAM_TOOL_WITH_SCHEMA(name, "Description.", schema, hints…) { … cofferdam_member(arguments,
// "…") … }
//
// Defines a tool whose input schema is a JSON Schema 2020-12 object schema as a string. `arguments`
// is the object as a cofferdam_value.
#define COFFERDAM_TOOL_WITH_SCHEMA(name, description, schema, ...) \
    static cofferdam_result cofferdam_run_##name(const cofferdam_value *arguments); \
    static cofferdam_result cofferdam_start_##name(const void *arguments) { \
        return cofferdam_run_##name((const cofferdam_value *)arguments); \
    } \
    const cofferdam_tool cofferdam_tool_##name = { \
        #name, description, schema, NULL, NULL, 0, \
        cofferdam_start_##name, {COFFERDAM_EACH_(COFFERDAM_HINT_, name __VA_OPT__(, ) __VA_ARGS__) .is_given = true}}; \
    static cofferdam_result cofferdam_run_##name(__attribute__((unused)) const cofferdam_value *arguments)

// Lists the tools of the plugin, at most 128. Use it once per plugin. Declare tools of another
// source file first, with COFFERDAM_DECLARE(name);
#define COFFERDAM_PLUGIN(...) \
    const cofferdam_tool *const *cofferdam_tools(void) { \
        static const cofferdam_tool *const tools[] = {COFFERDAM_EACH_(COFFERDAM_TOOL_ADDRESS_, _, __VA_ARGS__) NULL}; \
        return tools; \
    }
#define COFFERDAM_DECLARE(name) extern const cofferdam_tool cofferdam_tool_##name

// Hints for approvals. They grant nothing. A missing hint means unknown.
#define COFFERDAM_TITLE(text) (HINT, .title = text)              // a display name for users
#define COFFERDAM_GROUP(name) (HINT, .group = name)              // the group of tools that it belongs to
#define COFFERDAM_READ_ONLY COFFERDAM_IS_READ_ONLY(true)         // changes nothing
#define COFFERDAM_DESTRUCTIVE COFFERDAM_IS_DESTRUCTIVE(true)     // may delete, overwrite, send
#define COFFERDAM_IDEMPOTENT COFFERDAM_IS_IDEMPOTENT(true)       // a second call changes nothing more
#define COFFERDAM_OPEN_WORLD COFFERDAM_IS_OPEN_WORLD(true)       // accesses systems outside the host
#define COFFERDAM_LONG_RUNNING COFFERDAM_IS_LONG_RUNNING(true)   // may take minutes
#define COFFERDAM_IS_READ_ONLY(is) (HINT, .read_only = COFFERDAM_SAYS_(is))
#define COFFERDAM_IS_DESTRUCTIVE(is) (HINT, .destructive = COFFERDAM_SAYS_(is))
#define COFFERDAM_IS_IDEMPOTENT(is) (HINT, .idempotent = COFFERDAM_SAYS_(is))
#define COFFERDAM_IS_OPEN_WORLD(is) (HINT, .open_world = COFFERDAM_SAYS_(is))
#define COFFERDAM_IS_LONG_RUNNING(is) (HINT, .long_running = COFFERDAM_SAYS_(is))

// Sets the schema of the result's value, as a JSON string. The host checks each result against it.
#define COFFERDAM_OUTPUT(schema) (HINT, .output_schema = schema)

// Turns JSON into a string literal, so that quotes need no backslash.
#define COFFERDAM_SCHEMA(...) #__VA_ARGS__

#endif

#include "cofferdam_tool.h"

// The current call.

// Returns the id of the call, unique within its session. Empty outside a call.
cofferdam_string cofferdam_call_id(void);

// Returns the session of the call. Absent if there is none.
cofferdam_string cofferdam_call_session(void);

// Returns the milliseconds until the host stops the call with a timeout.
uint64_t cofferdam_time_left_ms(void);

// Returns whether the caller has canceled the call. The host soon stops a canceled call by itself;
// a tool that checks can stop sooner.
bool cofferdam_cancelled(void);

// Reports progress in a unit that the tool chooses. `done` should not decrease. A `total` of 0 or
// less means unknown; `message` may be absent. The host may drop reports that come too fast.
void cofferdam_progress(double done, double total, cofferdam_string message);

// The caller.

// Severity of a log line, as in MCP and syslog.
typedef enum cofferdam_level {
    COFFERDAM_DEBUG,
    COFFERDAM_INFO,
    COFFERDAM_NOTICE,
    COFFERDAM_WARNING,
    COFFERDAM_ERROR,
    COFFERDAM_CRITICAL,
    COFFERDAM_ALERT,
    COFFERDAM_EMERGENCY,
} cofferdam_level;

// Sends a log line to the client, which may show it to the user. Needs no grant. The host drops
// lines that are too long or too many. Formats like printf.
__attribute__((format(printf, 2, 3))) void cofferdam_log(cofferdam_level level, const char *format, ...);

// Kind of question. Each kind needs a grant, which `plugin.toml` requests:
// `ask = ["form", "sample", "roots"]`.
typedef enum cofferdam_question_kind {
    COFFERDAM_FORM,   // data from the user
    COFFERDAM_SAMPLE, // a message of the client's model
    COFFERDAM_ROOTS,  // the locations in which the client works
} cofferdam_question_kind;

typedef struct cofferdam_question {
    cofferdam_question_kind kind;
    // 1 to 64 characters from `A-Z a-z 0-9 _ -`, unique within the call. May be absent.
    cofferdam_string name;
    // For a form: the reason for the question, for the user. Never ask for a password or a key.
    cofferdam_string message;
    // For a form: a JSON Schema of an object of strings, numbers, booleans and enums of strings, as
    // a JSON string. For a sample: the parameters of MCP's `sampling/createMessage` as a JSON
    // string.
    cofferdam_string json;
} cofferdam_question;

typedef struct cofferdam_root {
    cofferdam_string uri;
    cofferdam_string name; // may be absent
} cofferdam_root;

typedef enum cofferdam_answer_kind {
    COFFERDAM_ACCEPTED,  // the user filled in the form: `json` is an object
    COFFERDAM_DECLINED,  // the user declined
    COFFERDAM_CLOSED,    // the user closed the form
    COFFERDAM_MESSAGE,   // `json` is the result of `sampling/createMessage`
    COFFERDAM_ROOT_LIST, // the locations in which the client works
} cofferdam_answer_kind;

// Answer to a question. It is untrusted input that the host has not checked.
typedef struct cofferdam_answer {
    cofferdam_answer_kind kind;
    cofferdam_string json;
    const cofferdam_root *roots;
    size_t root_count;
} cofferdam_answer;

// Error codes of questions, files, secrets, other tools and requests.
typedef enum cofferdam_error_code {
    COFFERDAM_OK,
    // Files.
    COFFERDAM_UNKNOWN_STORE,   // no store of this name is granted
    COFFERDAM_NOT_FOUND,       // there is no regular file, or no directory, at the path
    COFFERDAM_ALREADY_EXISTS,  // the path exists already
    COFFERDAM_WRONG_TYPE,      // the path, or one of its parents, is an entry of another type
    COFFERDAM_INVALID_PATH,    // the path breaks a rule
    COFFERDAM_STORE_READ_ONLY, // the store is read-only
    COFFERDAM_FILE_DENIED,     // the grant does not allow the operation
    COFFERDAM_FILE_LIMIT,      // a limit of the store or of the call is reached
    COFFERDAM_INVALID_PATTERN, // a glob or a regex is invalid
    COFFERDAM_UNAVAILABLE,     // the store cannot be reached, or another writer has changed the file: retry
    // Questions.
    COFFERDAM_UNSUPPORTED,      // the client does not support it, or there is no client
    COFFERDAM_ASK_DENIED,       // the plugin has no grant for it
    COFFERDAM_INVALID_QUESTION, // the question is invalid
    COFFERDAM_ASK_LIMIT,        // a limit of the host is reached
    COFFERDAM_NO_ANSWER,        // the client did not answer
    // Secrets.
    COFFERDAM_ACCESS_DENIED, // no secret of this name is granted
    // Other tools.
    COFFERDAM_UNKNOWN_TOOL,      // no tool of this name is granted
    COFFERDAM_INVALID_ARGUMENTS, // the arguments do not match the tool's schema
    COFFERDAM_FAILED,            // the tool reported a failure
    COFFERDAM_ENDED,             // the tool ended with an error; the text is the name of its type
    COFFERDAM_TOO_DEEP,          // calls are nested too deeply
    // Requests over HTTP: see cofferdam_http.h.
    COFFERDAM_HTTP_DENIED,             // no grant covers the request, or its address
    COFFERDAM_HTTP_UNKNOWN_HOST,       // the lookup of the host failed
    COFFERDAM_HTTP_UNREACHABLE,        // there is no route to the host
    COFFERDAM_HTTP_REFUSED,            // the host refused the connection
    COFFERDAM_HTTP_CLOSED,             // the connection was closed before the response was complete
    COFFERDAM_HTTP_TIMEOUT,            // `timeout_ms`, or a time limit of the host, has passed
    COFFERDAM_HTTP_TLS,                // the certificate was rejected, or TLS failed
    COFFERDAM_HTTP_LIMIT,              // a limit of the host, or of the caller, is reached
    COFFERDAM_HTTP_INVALID,            // the method, the URL or a header is invalid
    COFFERDAM_HTTP_TOO_MANY_REDIRECTS, // more than `redirects_max`
    COFFERDAM_HTTP_STOPPED,            // the source of the body broke the request off
    COFFERDAM_HTTP_FAILED,             // the connection or the server failed in another way
} cofferdam_error_code;

// An error, or success if `code` is 0. `text` contains the host's message, if there is one.
// `failure` is set only for COFFERDAM_FAILED.
typedef struct cofferdam_error {
    cofferdam_error_code code;
    cofferdam_string text;
    const cofferdam_failure *failure;
} cofferdam_error;

// Returns a failure for an error: its message, the suggestion of another tool's failure, and
// whether it is transient.
cofferdam_result cofferdam_fail_for(cofferdam_error error);

// Returns whether questions of this kind are granted and the client can answer them. Many clients
// cannot answer questions, so check this first.
bool cofferdam_can_ask(cofferdam_question_kind kind);

// Asks several questions at once and waits. `answers` must have room for `count` answers, which are
// in the same order. A call may ask 64 questions in total. Some clients cannot be asked in the
// middle of a call. For those, the host runs the call again from its beginning when it has the
// answers. Therefore ask the same questions in the same order each time, and cause side effects
// only after the last one.
cofferdam_error cofferdam_ask(size_t count, const cofferdam_question *questions, cofferdam_answer *answers);

// The granted file stores. For the C library they are directories: the store `data` is `/data`.
// Paths here are relative to their store, with `/` between segments and without `.` and `..`. The
// changes of a call become visible together when the tool has succeeded; if it fails, the host
// drops them all.

typedef struct cofferdam_store {
    cofferdam_string name;
    bool is_writable;
} cofferdam_store;

typedef struct cofferdam_entry {
    cofferdam_string name; // in a recursive listing the path relative to the listed directory
    bool is_directory;
} cofferdam_entry;

typedef struct cofferdam_stat {
    bool is_directory;
    uint64_t size; // 0 for a directory
} cofferdam_stat;

typedef struct cofferdam_query {
    cofferdam_string pattern; // syntax of the Rust `regex` crate, at most 256 characters, matched per line
    cofferdam_string glob;    // of paths: `*`, `?`, `**`, `[ab]`, `{a,b}`, case ignored; may be absent
    bool ignores_case;
    bool is_recursive;
} cofferdam_query;

typedef struct cofferdam_line {
    uint64_t number; // from 1
    cofferdam_string text;
} cofferdam_line;

typedef struct cofferdam_match {
    cofferdam_string path;
    cofferdam_string snippet; // the text around the first matching line
    const cofferdam_line *lines;
    size_t line_count;
} cofferdam_match;

typedef struct cofferdam_matches {
    const cofferdam_match *items; // sorted bytewise by path
    size_t count;
    bool is_truncated; // some were dropped because there were too many
} cofferdam_matches;

typedef struct cofferdam_entries {
    const cofferdam_entry *items; // directories first, then files, each sorted bytewise by name
    size_t count;
} cofferdam_entries;

typedef struct cofferdam_stores {
    const cofferdam_store *items;
    size_t count;
} cofferdam_stores;

cofferdam_stores cofferdam_files_stores(void);

// Reads the metadata of the entry at a path.
cofferdam_error cofferdam_files_stat(cofferdam_string store, cofferdam_string path, cofferdam_stat *stat);

// Reads at most `length` bytes from `offset`; fewer only at the end of the file. Choose a length
// that fits in the tool's memory, because the host returns as much as you ask for.
cofferdam_error cofferdam_files_read(
    cofferdam_string store, cofferdam_string path, uint64_t offset, uint64_t length, cofferdam_bytes *content);

// Writes a new file and creates missing parent directories. Returns COFFERDAM_ALREADY_EXISTS if the
// file exists.
cofferdam_error cofferdam_files_create(cofferdam_string store, cofferdam_string path, const void *data, size_t length);

// Writes a whole file, whether it exists or not, and creates missing parent directories.
cofferdam_error cofferdam_files_write(cofferdam_string store, cofferdam_string path, const void *data, size_t length);

// Deletes a file. Returns COFFERDAM_NOT_FOUND for a directory.
cofferdam_error cofferdam_files_delete(cofferdam_string store, cofferdam_string path);

// Creates a directory and its missing parents. Returns COFFERDAM_ALREADY_EXISTS for an existing
// directory.
cofferdam_error cofferdam_files_create_directory(cofferdam_string store, cofferdam_string path);

// Lists a directory; an empty path is the root. A missing directory has no entries. `glob` may be
// absent.
cofferdam_error cofferdam_files_list(
    cofferdam_string store, cofferdam_string directory, cofferdam_string glob, bool is_recursive, cofferdam_entries *entries);

// Searches the files below a directory; the host runs the search. Files that are not UTF-8 are
// skipped.
cofferdam_error cofferdam_files_search(
    cofferdam_string store, cofferdam_string directory, cofferdam_query query, cofferdam_matches *matches);

// Secrets that are granted by name. The host redacts them wherever it detects them in data that
// leaves the call. A tool that only sends a secret in a request does not need this function.
cofferdam_error cofferdam_secret(cofferdam_string name, cofferdam_string *value);

// Other granted tools. Their file changes belong to this call.

typedef struct cofferdam_granted_tool {
    cofferdam_string name;
    cofferdam_string title; // may be absent
    cofferdam_string description;
    cofferdam_string input_schema;
    cofferdam_string output_schema; // may be absent
} cofferdam_granted_tool;

typedef struct cofferdam_granted_tools {
    const cofferdam_granted_tool *items;
    size_t count;
} cofferdam_granted_tools;

cofferdam_granted_tools cofferdam_toolbox_list(void);

// Calls a tool with a JSON object and waits. `*result` is a success that you can return as it is or
// read.
cofferdam_error cofferdam_toolbox_call(cofferdam_string name, cofferdam_string arguments_json, cofferdam_result *result);

#ifdef __cplusplus
}
#endif

#endif
