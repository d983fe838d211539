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
// The host checks and converts what a model sent by the schema that the macros make, before the tool runs. Report what can go
// wrong with `cofferdam_fail`: `abort`, a failed `assert` and an access out of bounds end the call, and all that the
// model learns then is `Trap.Unreachable` or the like. What is printed to standard error stands in the record of the call.
//
// All memory that these functions give lives until the end of the call. A component imports what its tools use and nothing
// else: a tool that never calls `cofferdam_progress` gives a component that could not report any.

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

// Whether trying again may help.
typedef enum cofferdam_transience { COFFERDAM_UNKNOWN, COFFERDAM_PERMANENT, COFFERDAM_TRANSIENT } cofferdam_transience;

// Why a tool could not do what was asked. Absent texts are left out; an absent `value` is the usual.
typedef struct cofferdam_failure {
    cofferdam_string message;
    cofferdam_string suggestion;
    cofferdam_string value; // JSON that the model sees instead of message and suggestion
    cofferdam_transience transience;
} cofferdam_failure;

// What a tool returns. Made by the functions below. `failure` is NULL for a success, which may have no content: null.
typedef struct cofferdam_result {
    const cofferdam_content *contents;
    size_t count;
    const cofferdam_failure *failure;
} cofferdam_result;

// Nothing: the model sees null.
cofferdam_result cofferdam_nothing(void);

// A text. `cofferdam_text(cofferdam_format("%d files", count))` formats one.
cofferdam_result cofferdam_text(cofferdam_string text);

// What was written; a failure if it is nested too deeply.
cofferdam_result cofferdam_json(cofferdam_writer *json);

// Bytes with a media type, such as `image/png`. They are not copied.
cofferdam_result cofferdam_blob(const char *media_type, const void *data, size_t length);

// Several items, or one of the other kinds. The array is copied, what it points to is not.
cofferdam_result cofferdam_several(size_t count, const cofferdam_content *contents);

cofferdam_content cofferdam_text_content(cofferdam_string text);
cofferdam_content cofferdam_json_content(cofferdam_string json);
cofferdam_content cofferdam_blob_content(const char *media_type, const void *data, size_t length);

// Something that has an address, together with what it holds. `media_type` may be NULL.
cofferdam_content cofferdam_resource_content(cofferdam_string uri, const char *media_type, cofferdam_string text);
cofferdam_content cofferdam_binary_resource_content(cofferdam_string uri, const char *media_type, const void *data, size_t length);

// The address of something that can be read on its own. `media_type` may be NULL.
cofferdam_content cofferdam_link_content(cofferdam_string uri, cofferdam_string name, const char *media_type);

// A failure with a message in words that let a model correct itself: lower case, no full stop, what was expected and what
// was found. Formats as printf does.
__attribute__((format(printf, 1, 2))) cofferdam_result cofferdam_fail(const char *format, ...);

// Adds to a failure what the model could do instead: "pass …", "call …". Nothing happens to a success.
__attribute__((format(printf, 2, 3))) cofferdam_result cofferdam_suggest(cofferdam_result result, const char *format, ...);

// Says whether trying again may help, for the host.
cofferdam_result cofferdam_transient(cofferdam_result result, bool is_transient);

// A failure with an error value of your own, which the model sees instead of a message.
cofferdam_result cofferdam_fail_with(cofferdam_writer *json);

// Tools.

#ifndef __cplusplus

// COFFERDAM_TOOL(name, "Description.", …) { … return cofferdam_text(…); }
//
// Defines a tool: parameters and hints in any order, at most 64, and then the body, in which `arguments` points to a
// struct with a field for each parameter. The description is all that a model knows of the tool. A parameter is named like
// a C identifier; another name, and a schema of more than one level, are possible with COFFERDAM_TOOL_WITH_SCHEMA.
//
// | parameter                            | field                     | the model may                              |
// |--------------------------------------|---------------------------|--------------------------------------------|
// | COFFERDAM_STRING(name, "…")          | cofferdam_string          | not leave it out                           |
// | COFFERDAM_STRING_OR(name, "…", "x")  | cofferdam_string          | leave it out or send null: the default     |
// | COFFERDAM_STRING_OPTIONAL(name, "…") | cofferdam_string          | leave it out or send null: `data` is NULL  |
// | COFFERDAM_INTEGER, … _OR             | int64_t                   |                                            |
// | COFFERDAM_INTEGER_OPTIONAL           | const int64_t *           | … the pointer is NULL                      |
// | COFFERDAM_NUMBER, …_OR, …_OPTIONAL   | double, const double *    |                                            |
// | COFFERDAM_BOOLEAN, …_OR, …_OPTIONAL  | bool, const bool *        |                                            |
// | COFFERDAM_CHOICE(name, "…", "a", …)  | cofferdam_string          | send one of at most 16 texts               |
// | COFFERDAM_CHOICE_OR(name, "…", "a", "a", …), _OPTIONAL | the same | the default stands before the choices      |
// | COFFERDAM_VALUE(name, "…", schema)   | const cofferdam_value *   | send what fits the schema                  |
// | COFFERDAM_VALUE_OR, …_OPTIONAL       | const cofferdam_value *   | the default is JSON text; absent is NULL   |
//
// COFFERDAM_INTEGER_IN(name, "…", least, most) and COFFERDAM_INTEGER_IN_OR(name, "…", least, most, default) have the host refuse
// what is out of range. A JSON Schema is most readable as COFFERDAM_SCHEMA({"type": "array", "items": {"type": "string"}}).
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

// COFFERDAM_TOOL_WITH_SCHEMA(name, "Description.", schema, hints…) { … cofferdam_member(arguments, "…") … }
//
// A tool whose input schema is JSON text of a JSON Schema 2020-12 object schema; `arguments` is the object as a cofferdam_value.
#define COFFERDAM_TOOL_WITH_SCHEMA(name, description, schema, ...) \
    static cofferdam_result cofferdam_run_##name(const cofferdam_value *arguments); \
    static cofferdam_result cofferdam_start_##name(const void *arguments) { \
        return cofferdam_run_##name((const cofferdam_value *)arguments); \
    } \
    const cofferdam_tool cofferdam_tool_##name = { \
        #name, description, schema, NULL, NULL, 0, \
        cofferdam_start_##name, {COFFERDAM_EACH_(COFFERDAM_HINT_, name __VA_OPT__(, ) __VA_ARGS__) .is_given = true}}; \
    static cofferdam_result cofferdam_run_##name(__attribute__((unused)) const cofferdam_value *arguments)

// Stands once in a plugin and names its tools, at most 128. Those of another source file are declared before, each with
// COFFERDAM_DECLARE(name);
#define COFFERDAM_PLUGIN(...) \
    const cofferdam_tool *const *cofferdam_tools(void) { \
        static const cofferdam_tool *const tools[] = {COFFERDAM_EACH_(COFFERDAM_TOOL_ADDRESS_, _, __VA_ARGS__) NULL}; \
        return tools; \
    }
#define COFFERDAM_DECLARE(name) extern const cofferdam_tool cofferdam_tool_##name

// Hints for whoever decides about a call; they grant nothing. Not to give one means that it is not known.
#define COFFERDAM_TITLE(text) (HINT, .title = text)              // a short name for people
#define COFFERDAM_READ_ONLY COFFERDAM_IS_READ_ONLY(true)         // changes nothing
#define COFFERDAM_DESTRUCTIVE COFFERDAM_IS_DESTRUCTIVE(true)     // may delete, overwrite, send
#define COFFERDAM_IDEMPOTENT COFFERDAM_IS_IDEMPOTENT(true)       // a second call changes nothing more
#define COFFERDAM_OPEN_WORLD COFFERDAM_IS_OPEN_WORLD(true)       // reaches things outside of the host
#define COFFERDAM_LONG_RUNNING COFFERDAM_IS_LONG_RUNNING(true)   // may take minutes
#define COFFERDAM_IS_READ_ONLY(is) (HINT, .read_only = COFFERDAM_SAYS_(is))
#define COFFERDAM_IS_DESTRUCTIVE(is) (HINT, .destructive = COFFERDAM_SAYS_(is))
#define COFFERDAM_IS_IDEMPOTENT(is) (HINT, .idempotent = COFFERDAM_SAYS_(is))
#define COFFERDAM_IS_OPEN_WORLD(is) (HINT, .open_world = COFFERDAM_SAYS_(is))
#define COFFERDAM_IS_LONG_RUNNING(is) (HINT, .long_running = COFFERDAM_SAYS_(is))

// The schema of the result's value, as JSON text. The host checks each result against it.
#define COFFERDAM_OUTPUT(schema) (HINT, .output_schema = schema)

// JSON as it is written, made a text: no quote needs a backslash.
#define COFFERDAM_SCHEMA(...) #__VA_ARGS__

#endif

#include "cofferdam_tool.h"

// The call that is being served.

// The id of the call, unique within its session; empty if there is none.
cofferdam_string cofferdam_call_id(void);

// The session that the call belongs to; absent if there is none.
cofferdam_string cofferdam_call_session(void);

// Milliseconds until the host ends the call as timed out.
uint64_t cofferdam_time_left_ms(void);

// Whether the caller has given up. The host stops a cancelled call by itself, soon; a tool that asks can stop sooner.
bool cofferdam_cancelled(void);

// Says how far the call has come, in a unit of the tool's own. `done` should not fall. A `total` of 0 or less is unknown;
// `message` may be absent. The host may leave reports out when they come too fast.
void cofferdam_progress(double done, double total, cofferdam_string message);

// The one who made the call.

// As in MCP and syslog.
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

// Says something to the client, which may show it to a person. Needs no grant. The host leaves out what is too long or too
// much. Formats as printf does.
__attribute__((format(printf, 2, 3))) void cofferdam_log(cofferdam_level level, const char *format, ...);

// What can be asked for. Each needs a grant, which `plugin.toml` asks for: `ask = ["form", "sample", "roots"]`.
typedef enum cofferdam_question_kind {
    COFFERDAM_FORM,   // data from a person
    COFFERDAM_SAMPLE, // a message of the client's model
    COFFERDAM_ROOTS,  // the places that the client works in
} cofferdam_question_kind;

typedef struct cofferdam_question {
    cofferdam_question_kind kind;
    // 1 to 64 characters out of `A-Z a-z 0-9 _ -`, unique within the call. May be absent.
    cofferdam_string name;
    // Of a form: why this is asked, for the person. Never ask for a password or a key.
    cofferdam_string message;
    // Of a form: a JSON Schema of an object of texts, numbers, truth values and choices of texts, as JSON text. Of a sample:
    // the parameters of MCP's `sampling/createMessage` as JSON text.
    cofferdam_string json;
} cofferdam_question;

typedef struct cofferdam_root {
    cofferdam_string uri;
    cofferdam_string name; // may be absent
} cofferdam_root;

typedef enum cofferdam_answer_kind {
    COFFERDAM_ACCEPTED,  // the person filled in the form: `json` is an object
    COFFERDAM_DECLINED,  // the person said no
    COFFERDAM_CLOSED,    // the person closed the form
    COFFERDAM_MESSAGE,   // `json` is the result of `sampling/createMessage`
    COFFERDAM_ROOT_LIST, // where the client works
} cofferdam_answer_kind;

// An answer. It comes from outside and nothing has checked it.
typedef struct cofferdam_answer {
    cofferdam_answer_kind kind;
    cofferdam_string json;
    const cofferdam_root *roots;
    size_t root_count;
} cofferdam_answer;

// Why there are no answers, files, secrets or results of other tools: which of them depends on the function.
typedef enum cofferdam_error_code {
    COFFERDAM_OK,
    // Files.
    COFFERDAM_UNKNOWN_STORE,   // no store of that name was granted
    COFFERDAM_NOT_FOUND,       // no regular file, or no directory, at that path
    COFFERDAM_ALREADY_EXISTS,  // the path is taken by a file
    COFFERDAM_WRONG_TYPE,      // the path, or one above it, is taken by something of another type
    COFFERDAM_INVALID_PATH,    // the path breaks a rule
    COFFERDAM_STORE_READ_ONLY, // the store may only be read
    COFFERDAM_FILE_DENIED,     // the grant does not reach that far
    COFFERDAM_FILE_LIMIT,      // a limit of the store or of the call
    COFFERDAM_INVALID_PATTERN, // a glob or a regex is not valid
    COFFERDAM_UNAVAILABLE,     // the store cannot be reached, or somebody else has changed the file: try again
    // Questions.
    COFFERDAM_UNSUPPORTED,      // nobody can be asked this
    COFFERDAM_ASK_DENIED,       // there is no grant for it
    COFFERDAM_INVALID_QUESTION, // the question is not one
    COFFERDAM_ASK_LIMIT,        // a limit of the host
    COFFERDAM_NO_ANSWER,        // the client was asked and did not answer
    // Secrets.
    COFFERDAM_ACCESS_DENIED, // no secret of that name was granted
    // Other tools.
    COFFERDAM_UNKNOWN_TOOL,      // no such tool was granted
    COFFERDAM_INVALID_ARGUMENTS, // the arguments do not fit the tool's schema
    COFFERDAM_FAILED,            // the tool reported a failure
    COFFERDAM_ENDED,             // the tool ended without an answer; the text is the name of the error type
    COFFERDAM_TOO_DEEP,          // calls are nested too deeply
} cofferdam_error_code;

// An error, or none: then `code` is 0. `text` says more where the host says more; `failure` is there for COFFERDAM_FAILED alone.
typedef struct cofferdam_error {
    cofferdam_error_code code;
    cofferdam_string text;
    const cofferdam_failure *failure;
} cofferdam_error;

// The failure of a tool that cannot go on: the error in words, with the suggestion of another tool's failure, and marked as
// transient where trying again may help.
cofferdam_result cofferdam_fail_for(cofferdam_error error);

// Whether questions of this kind are granted and the client can answer them. Many clients can be asked nothing: look first.
bool cofferdam_can_ask(cofferdam_question_kind kind);

// Asks several questions at once and waits; `answers` has room for as many and is set in the same order. A call may ask 64
// questions in all. Some clients cannot be asked in the middle of a call: for those the host runs the call again from its
// beginning when the answers are there. So ask the same questions in the same order each time, and act after the last one.
cofferdam_error cofferdam_ask(size_t count, const cofferdam_question *questions, cofferdam_answer *answers);

// The file stores that were granted. They are also directories for the C library: the store `data` is `/data`. Paths here are
// relative to their store, with `/` between segments and without `.` and `..`. The changes of a call become visible together
// when the tool has succeeded; if it fails, none of them remain.

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
    cofferdam_string pattern; // in the syntax of the Rust `regex` crate, at most 256 characters, matched per line
    cofferdam_string glob;    // only files whose path matches: `*`, `?`, `**`, `[ab]`, `{a,b}`, case ignored; may be absent
    bool ignores_case;
    bool is_recursive;
} cofferdam_query;

typedef struct cofferdam_line {
    uint64_t number; // counted from 1
    cofferdam_string text;
} cofferdam_line;

typedef struct cofferdam_match {
    cofferdam_string path;
    cofferdam_string snippet; // the text around the first line that matches
    const cofferdam_line *lines;
    size_t line_count;
} cofferdam_match;

typedef struct cofferdam_matches {
    const cofferdam_match *items; // bytewise by path
    size_t count;
    bool is_truncated; // there were too many
} cofferdam_matches;

typedef struct cofferdam_entries {
    const cofferdam_entry *items; // directories first, then files, each bytewise by name
    size_t count;
} cofferdam_entries;

typedef struct cofferdam_stores {
    const cofferdam_store *items;
    size_t count;
} cofferdam_stores;

cofferdam_stores cofferdam_files_stores(void);

// What is at a path.
cofferdam_error cofferdam_files_stat(cofferdam_string store, cofferdam_string path, cofferdam_stat *stat);

// Reads at most `length` bytes from `offset`. Fewer come back only at the end of the file. Give a length that your tool can
// hold: the host gives what is asked for.
cofferdam_error cofferdam_files_read(
    cofferdam_string store, cofferdam_string path, uint64_t offset, uint64_t length, cofferdam_bytes *content);

// Writes a whole new file and creates missing parent directories; COFFERDAM_ALREADY_EXISTS if there is one.
cofferdam_error cofferdam_files_create(cofferdam_string store, cofferdam_string path, const void *data, size_t length);

// The same, and replaces the whole content of a file that is there.
cofferdam_error cofferdam_files_write(cofferdam_string store, cofferdam_string path, const void *data, size_t length);

// Deletes a file. A directory is COFFERDAM_NOT_FOUND.
cofferdam_error cofferdam_files_delete(cofferdam_string store, cofferdam_string path);

// Creates a directory and missing parents. A directory that is there is COFFERDAM_ALREADY_EXISTS.
cofferdam_error cofferdam_files_create_directory(cofferdam_string store, cofferdam_string path);

// The children of a directory; an empty path is the root. A missing directory has none. `glob` may be absent.
cofferdam_error cofferdam_files_list(
    cofferdam_string store, cofferdam_string directory, cofferdam_string glob, bool is_recursive, cofferdam_entries *entries);

// Searches the files below a directory at the host's speed. Files that are not UTF-8 are passed over.
cofferdam_error cofferdam_files_search(
    cofferdam_string store, cofferdam_string directory, cofferdam_query query, cofferdam_matches *matches);

// Secrets that were granted by name. The host takes them out of everything that leaves the call, as far as it recognises
// them. A request that only carries a secret does not need this.
cofferdam_error cofferdam_secret(cofferdam_string name, cofferdam_string *value);

// Other tools that were granted. What such a tool changes in files belongs to this call.

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

// Calls a tool with a JSON object and waits. `*result` is a success that can be returned as it is; its contents can be read.
cofferdam_error cofferdam_toolbox_call(cofferdam_string name, cofferdam_string arguments_json, cofferdam_result *result);

#ifdef __cplusplus
}
#endif

#endif
