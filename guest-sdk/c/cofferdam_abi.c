// The world of Cofferdam's plugins in the canonical ABI, written by hand from `wit/`: exports
// first, then imports. On 32 bits, a C struct has the layout of the corresponding record or
// variant, so the host reads and writes these structs. Each import is used in one function. The
// linker drops a function that no tool calls, together with its import.

#ifdef __wasm__

#include "cofferdam_abi.h"

#include <stdlib.h>
#include <string.h>

#define EXPORT(name) __attribute__((export_name(name)))
#define IMPORT(interface, name) __attribute__((import_module("cofferdam:plugin/" interface "@0.1.0"), import_name(name)))

// `option<string>`.
typedef struct abi_optional {
    bool is_there;
    abi_text text;
} abi_optional;

// `option<bool>`.
typedef struct abi_optional_bool {
    bool is_there;
    bool is;
} abi_optional_bool;

typedef struct abi_definition {
    abi_text name;
    abi_optional title;
    abi_text description;
    abi_text input_schema;
    abi_optional output_schema;
    abi_optional_bool read_only, destructive, idempotent, open_world, long_running;
} abi_definition;

enum { ABI_TEXT, ABI_JSON, ABI_BLOB, ABI_RESOURCE, ABI_LINK };

typedef struct abi_content {
    uint8_t tag;
    union {
        abi_text text; // also JSON
        struct {
            abi_text media_type;
            abi_text data;
        } blob;
        struct {
            abi_text uri;
            abi_optional media_type;
            uint8_t is_blob;
            abi_text body;
        } resource;
        struct {
            abi_text uri;
            abi_text name;
            abi_optional media_type;
        } link;
    };
} abi_content;

typedef struct abi_failure {
    abi_text message;
    abi_optional suggestion;
    abi_optional_bool transient;
    abi_optional value;
} abi_failure;

// `result<list<content>, failure>`, the result of a tool.
typedef struct abi_result {
    uint8_t is_error;
    union {
        abi_list contents;
        abi_failure failure;
    };
} abi_result;

_Static_assert(sizeof(abi_definition) == 60 && sizeof(abi_content) == 36 && sizeof(abi_failure) == 36 && sizeof(abi_result) == 40,
               "the layout of the canonical ABI");

// Conversions to and from the ABI.

static abi_text to(cofferdam_string text) {
    text = cofferdam_utf8(text);
    return (abi_text){text.data, text.length};
}

static abi_optional to_optional(cofferdam_string text) { return (abi_optional){text.data, to(text)}; }

// Memory from the host ends with a NUL: see `cabi_realloc`.
static cofferdam_string from(abi_text text) { return (cofferdam_string){text.length ? text.data : "", text.length}; }

static cofferdam_string from_optional(abi_optional text) {
    return text.is_there ? from(text.text) : (cofferdam_string){NULL, 0};
}

static abi_text bytes_to(cofferdam_bytes bytes) { return (abi_text){(const char *)bytes.data, bytes.length}; }

// Allocates an array for items from the host, which is not much larger than the list that is
// already in memory.
#define NEW(type, count) ((type *)cofferdam_allocate((count) * sizeof(type)))

// Allocation for the host and for the WASI adapter. Memory of the host lives until the end of the
// call, like all memory here, and is followed by a NUL. Memory of the adapter lives as long as the
// instance.

static struct {
    void *data;
    size_t bytes;
} lent;

void cofferdam_lend(void *buffer, size_t bytes) {
    lent.data = buffer;
    lent.bytes = bytes;
}

EXPORT("cabi_realloc") void *cofferdam_realloc(void *old, size_t old_bytes, size_t alignment, size_t bytes) {
    (void)alignment;
    if (lent.data && !old_bytes && bytes <= lent.bytes) {
        void *given = lent.data;
        lent.data = NULL;
        return given;
    }
    if (old_bytes >= bytes && old) return old;
    void *given = cofferdam_allocate(bytes + 1);
    if (old_bytes) memcpy(given, old, old_bytes);
    return given;
}

EXPORT("cabi_realloc_adapter") void *cofferdam_realloc_adapter(void *old, size_t old_bytes, size_t alignment, size_t bytes) {
    (void)old_bytes, (void)alignment;
    void *given = realloc(old, bytes);
    if (!given) cofferdam_abort("out of memory");
    return given;
}

// Exports.

static abi_optional_bool hint(enum cofferdam_says says) {
    return (abi_optional_bool){says != COFFERDAM_SAYS_NOTHING_, says == COFFERDAM_SAYS_YES_};
}

static abi_definition definition(const cofferdam_tool *tool) {
    const cofferdam_hints *hints = &tool->hints;
    return (abi_definition){
        .name = to(cofferdam_string_of(tool->name)),
        .title = to_optional(cofferdam_string_of(hints->title)),
        .description = to(cofferdam_string_of(tool->description)),
        .input_schema = to(cofferdam_input_schema(tool)),
        .output_schema = to_optional(cofferdam_output_schema(tool)),
        .read_only = hint(hints->read_only),
        .destructive = hint(hints->destructive),
        .idempotent = hint(hints->idempotent),
        .open_world = hint(hints->open_world),
        .long_running = hint(hints->long_running),
    };
}

EXPORT("cofferdam:plugin/tools@0.1.0#list-tools") abi_list *cofferdam_export_list(void) {
    abi_list *list = NEW(abi_list, 1);
    const cofferdam_tool *const *tools = cofferdam_tools();
    while (tools[list->length]) list->length++;
    abi_definition *definitions = NEW(abi_definition, list->length);
    for (size_t at = 0; at < list->length; at++) definitions[at] = definition(tools[at]);
    list->items = definitions;
    return list;
}

static abi_content content_to(const cofferdam_content *content) {
    abi_content made = {.tag = ABI_TEXT};
    switch (content->type) {
    case COFFERDAM_CONTENT_TEXT: made.text = to(content->text); break;
    case COFFERDAM_CONTENT_JSON: made.tag = ABI_JSON, made.text = to(content->text); break;
    case COFFERDAM_CONTENT_BLOB:
        made.tag = ABI_BLOB;
        made.blob.media_type = to(content->media_type);
        made.blob.data = bytes_to(content->data);
        break;
    case COFFERDAM_CONTENT_RESOURCE_TEXT:
    case COFFERDAM_CONTENT_RESOURCE_BLOB:
        made.tag = ABI_RESOURCE;
        made.resource.uri = to(content->uri);
        made.resource.media_type = to_optional(content->media_type);
        made.resource.is_blob = content->type == COFFERDAM_CONTENT_RESOURCE_BLOB;
        made.resource.body = made.resource.is_blob ? bytes_to(content->data) : to(content->text);
        break;
    case COFFERDAM_CONTENT_LINK:
        made.tag = ABI_LINK;
        made.link.uri = to(content->uri);
        made.link.name = to(content->name);
        made.link.media_type = to_optional(content->media_type);
        break;
    }
    return made;
}

static abi_failure failure_to(const cofferdam_failure *failure) {
    return (abi_failure){
        .message = to(failure->message),
        .suggestion = to_optional(failure->suggestion),
        .transient = {failure->transience != COFFERDAM_UNKNOWN, failure->transience == COFFERDAM_TRANSIENT},
        .value = to_optional(failure->value),
    };
}

EXPORT("cofferdam:plugin/tools@0.1.0#call-tool")
abi_result *cofferdam_export_call(const char *name, size_t name_bytes, const char *arguments, size_t arguments_bytes) {
    const cofferdam_tool *tool = cofferdam_find((cofferdam_string){name, name_bytes});
    if (!tool) cofferdam_abort("the host has called a tool that is not there");
    cofferdam_result result = cofferdam_start(tool, (cofferdam_string){arguments, arguments_bytes});
    abi_result *given = NEW(abi_result, 1);
    given->is_error = result.failure != NULL;
    if (result.failure) {
        given->failure = failure_to(result.failure);
        return given;
    }
    abi_content *contents = NEW(abi_content, result.count);
    for (size_t at = 0; at < result.count; at++) contents[at] = content_to(&result.contents[at]);
    given->contents = (abi_list){contents, result.count};
    return given;
}

EXPORT("cabi_post_cofferdam:plugin/tools@0.1.0#list-tools") void cofferdam_listed(const abi_list *list) {
    (void)list;
    cofferdam_release();
}

EXPORT("cabi_post_cofferdam:plugin/tools@0.1.0#call-tool") void cofferdam_called(const abi_result *result) {
    (void)result;
    cofferdam_release();
}

// Imports of `call`.

IMPORT("call", "id") void host_call_id(abi_text *id);
IMPORT("call", "session") void host_call_session(abi_optional *session);
IMPORT("call", "time-left-ms") uint64_t host_call_time_left_ms(void);
IMPORT("call", "cancelled") bool host_call_cancelled(void);
IMPORT("call", "progress")
void host_call_progress(double done, bool has_total, double total, bool has_message, const char *message, size_t message_bytes);

cofferdam_string cofferdam_call_id(void) {
    abi_text id;
    host_call_id(&id);
    return from(id);
}

cofferdam_string cofferdam_call_session(void) {
    abi_optional session;
    host_call_session(&session);
    return from_optional(session);
}

uint64_t cofferdam_time_left_ms(void) { return host_call_time_left_ms(); }

bool cofferdam_cancelled(void) { return host_call_cancelled(); }

void cofferdam_progress(double done, double total, cofferdam_string message) {
    abi_text said = to(message);
    host_call_progress(done, total > 0, total, said.data, said.data, said.length);
}

// Imports of `client`.

typedef struct abi_question {
    abi_optional name;
    uint8_t kind; // as cofferdam_question_kind
    abi_text first, second;
} abi_question;

typedef struct abi_answer {
    uint8_t tag; // as cofferdam_answer_kind
    union {
        abi_text json;
        abi_list roots;
    };
} abi_answer;

typedef struct abi_root {
    abi_text uri;
    abi_optional name;
} abi_root;

// `error` of `client` and of `files`: some cases have a string.
typedef struct abi_error {
    uint8_t tag;
    abi_text text;
} abi_error;

IMPORT("client", "can-ask") bool host_client_can_ask(int kind);
IMPORT("client", "log") void host_client_log(int level, const char *message, size_t message_bytes);
typedef struct abi_answers {
    uint8_t is_error;
    union {
        abi_list answers;
        abi_error error;
    };
} abi_answers;
IMPORT("client", "ask") void host_client_ask(const abi_question *questions, size_t count, abi_answers *answers);

void cofferdam_log(cofferdam_level level, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    abi_text message = to(cofferdam_format_list(format, arguments));
    va_end(arguments);
    host_client_log(level, message.data, message.length);
}

bool cofferdam_can_ask(cofferdam_question_kind kind) { return host_client_can_ask(kind); }

static abi_question question_to(const cofferdam_question *question) {
    bool is_form = question->kind == COFFERDAM_FORM;
    return (abi_question){
        .name = to_optional(question->name),
        .kind = (uint8_t)question->kind,
        .first = to(is_form ? question->message : question->json),
        .second = to(question->json),
    };
}

static cofferdam_answer answer_from(const abi_answer *answer) {
    cofferdam_answer made = {.kind = answer->tag};
    if (made.kind == COFFERDAM_ACCEPTED || made.kind == COFFERDAM_MESSAGE) made.json = from(answer->json);
    if (made.kind != COFFERDAM_ROOT_LIST) return made;
    const abi_root *given = answer->roots.items;
    cofferdam_root *roots = NEW(cofferdam_root, answer->roots.length);
    for (size_t at = 0; at < answer->roots.length; at++)
        roots[at] = (cofferdam_root){from(given[at].uri), from_optional(given[at].name)};
    made.roots = roots;
    made.root_count = answer->roots.length;
    return made;
}

// Converts an error. The cases of the variant have the order of the codes from `first` on; `texts`
// has a bit for each case with a string.
static cofferdam_error error_from(const abi_error *error, cofferdam_error_code first, unsigned texts) {
    cofferdam_error made = {.code = first + error->tag};
    if (texts >> error->tag & 1) made.text = from(error->text);
    return made;
}

cofferdam_error cofferdam_ask(size_t count, const cofferdam_question *questions, cofferdam_answer *answers) {
    // The host rejects more questions, whatever they are.
    if (count > 64) return (cofferdam_error){.code = COFFERDAM_ASK_LIMIT, .text = cofferdam_string_of("at most 64 questions")};
    abi_question *asked = NEW(abi_question, count);
    for (size_t at = 0; at < count; at++) asked[at] = question_to(&questions[at]);
    abi_answers given;
    host_client_ask(asked, count, &given);
    if (given.is_error) return error_from(&given.error, COFFERDAM_UNSUPPORTED, 0x1E);
    const abi_answer *items = given.answers.items;
    for (size_t at = 0; at < count && at < given.answers.length; at++) answers[at] = answer_from(&items[at]);
    return (cofferdam_error){.code = COFFERDAM_OK};
}

// Secrets.

typedef struct abi_secret {
    uint8_t is_error;
    abi_text value;
} abi_secret;
IMPORT("secrets", "get") void host_secrets_get(const char *name, size_t name_bytes, abi_secret *secret);

cofferdam_error cofferdam_secret(cofferdam_string name, cofferdam_string *value) {
    abi_text wanted = to(name);
    abi_secret secret;
    host_secrets_get(wanted.data, wanted.length, &secret);
    if (secret.is_error) return (cofferdam_error){.code = COFFERDAM_ACCESS_DENIED};
    *value = from(secret.value);
    return (cofferdam_error){.code = COFFERDAM_OK};
}

// Other tools.

typedef struct abi_called {
    uint8_t is_error;
    union {
        abi_list contents;
        struct {
            uint8_t tag;
            union {
                abi_text text;
                abi_failure failure;
            };
        } error;
    };
} abi_called;
IMPORT("toolbox", "list-tools") void host_toolbox_list(abi_list *tools);
IMPORT("toolbox", "call-tool")
void host_toolbox_call(const char *name, size_t name_bytes, const char *arguments, size_t arguments_bytes, abi_called *called);

cofferdam_granted_tools cofferdam_toolbox_list(void) {
    abi_list list;
    host_toolbox_list(&list);
    const abi_definition *given = list.items;
    cofferdam_granted_tool *tools = NEW(cofferdam_granted_tool, list.length);
    for (size_t at = 0; at < list.length; at++)
        tools[at] = (cofferdam_granted_tool){
            .name = from(given[at].name),
            .title = from_optional(given[at].title),
            .description = from(given[at].description),
            .input_schema = from(given[at].input_schema),
            .output_schema = from_optional(given[at].output_schema),
        };
    return (cofferdam_granted_tools){tools, list.length};
}

static cofferdam_content content_from(const abi_content *content) {
    switch (content->tag) {
    case ABI_TEXT: return cofferdam_text_content(from(content->text));
    case ABI_JSON: return cofferdam_json_content(from(content->text));
    case ABI_BLOB:
        return cofferdam_blob_content(from(content->blob.media_type).data, content->blob.data.data, content->blob.data.length);
    case ABI_RESOURCE: {
        const char *media_type = from_optional(content->resource.media_type).data;
        abi_text body = content->resource.body;
        cofferdam_string uri = from(content->resource.uri);
        return content->resource.is_blob ? cofferdam_binary_resource_content(uri, media_type, body.data, body.length)
                                         : cofferdam_resource_content(uri, media_type, from(body));
    }
    default:
        return cofferdam_link_content(
            from(content->link.uri), from(content->link.name), from_optional(content->link.media_type).data);
    }
}

static const cofferdam_failure *failure_from(const abi_failure *failure) {
    cofferdam_failure *made = NEW(cofferdam_failure, 1);
    *made = (cofferdam_failure){
        .message = from(failure->message),
        .suggestion = from_optional(failure->suggestion),
        .value = from_optional(failure->value),
        .transience = !failure->transient.is_there ? COFFERDAM_UNKNOWN
                      : failure->transient.is      ? COFFERDAM_TRANSIENT
                                                   : COFFERDAM_PERMANENT,
    };
    return made;
}

cofferdam_error cofferdam_toolbox_call(cofferdam_string name, cofferdam_string arguments_json, cofferdam_result *result) {
    abi_text wanted = to(name), arguments = to(arguments_json);
    abi_called called;
    host_toolbox_call(wanted.data, wanted.length, arguments.data, arguments.length, &called);
    if (called.is_error) {
        cofferdam_error error = {.code = COFFERDAM_UNKNOWN_TOOL + called.error.tag};
        if (error.code == COFFERDAM_FAILED) error.failure = failure_from(&called.error.failure);
        if (error.code == COFFERDAM_INVALID_ARGUMENTS || error.code == COFFERDAM_ENDED) error.text = from(called.error.text);
        return error;
    }
    const abi_content *given = called.contents.items;
    cofferdam_content *contents = NEW(cofferdam_content, called.contents.length);
    for (size_t at = 0; at < called.contents.length; at++) contents[at] = content_from(&given[at]);
    *result = (cofferdam_result){contents, called.contents.length, NULL};
    return (cofferdam_error){.code = COFFERDAM_OK};
}

#endif
