// The tools of ../README.md in C.

#include "cofferdam_http.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

COFFERDAM_TOOL(echo, "Returns what it was given.",
               COFFERDAM_STRING(text, "A text."),
               COFFERDAM_BOOLEAN(flag, "A truth value."),
               COFFERDAM_INTEGER(integer, "An integer."),
               COFFERDAM_NUMBER(number, "A number."),
               COFFERDAM_VALUE(list, "Some texts.", COFFERDAM_SCHEMA({"type": "array", "items": {"type": "string"}})),
               COFFERDAM_VALUE(map, "Integers by name.",
                               COFFERDAM_SCHEMA({"type": "object", "additionalProperties": {"type": "integer"}}))) {
    cofferdam_writer json = {0};
    cofferdam_begin_object(&json, NULL);
    cofferdam_add_string(&json, "text", arguments->text);
    cofferdam_add_boolean(&json, "flag", arguments->flag);
    cofferdam_add_integer(&json, "integer", arguments->integer);
    cofferdam_add_number(&json, "number", arguments->number);
    cofferdam_add_value(&json, "list", arguments->list);
    cofferdam_add_value(&json, "map", arguments->map);
    return cofferdam_json(&json);
}

COFFERDAM_TOOL(defaults, "Returns what it was given, or the defaults.",
               COFFERDAM_INTEGER_OR(count, "How many.", 3),
               COFFERDAM_STRING_OR(word, "A word.", "abc"),
               COFFERDAM_VALUE_OR(tags, "Some tags.", COFFERDAM_SCHEMA({"type": "array", "items": {"type": "string"}}),
                                  COFFERDAM_SCHEMA(["x", "y"])),
               COFFERDAM_NUMBER_OR(ratio, "A ratio.", 0.5),
               COFFERDAM_BOOLEAN_OR(flag, "A truth value.", true)) {
    cofferdam_writer json = {0};
    cofferdam_begin_object(&json, NULL);
    cofferdam_add_integer(&json, "count", arguments->count);
    cofferdam_add_string(&json, "word", arguments->word);
    cofferdam_add_value(&json, "tags", arguments->tags);
    cofferdam_add_number(&json, "ratio", arguments->ratio);
    cofferdam_add_boolean(&json, "flag", arguments->flag);
    return cofferdam_json(&json);
}

COFFERDAM_TOOL(nullables, "Returns what it was given, or null.",
               COFFERDAM_STRING_OPTIONAL(name, "A name."),
               COFFERDAM_INTEGER_OPTIONAL(count, "How many.")) {
    cofferdam_writer json = {0};
    cofferdam_begin_object(&json, NULL);
    cofferdam_add_string(&json, "name", arguments->name);
    if (arguments->count) cofferdam_add_integer(&json, "count", *arguments->count);
    else cofferdam_add_null(&json, "count");
    return cofferdam_json(&json);
}

static const char ORDER[] = COFFERDAM_SCHEMA({
    "type": "object",
    "properties": {
        "id": {"type": "integer"},
        "customer": {
            "type": "object",
            "properties": {"name": {"type": "string"}, "email": {"type": ["string", "null"]}},
            "required": ["name"]
        },
        "items": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"sku": {"type": "string"}, "quantity": {"type": "integer", "default": 1}},
                "required": ["sku"]
            }
        },
        "status": {"type": "string", "enum": ["open", "paid"]}
    },
    "required": ["id", "customer", "items", "status"]
});

COFFERDAM_TOOL(nested, "Sums up an order.", COFFERDAM_VALUE(order, "The order.", ORDER)) {
    const cofferdam_value *customer = cofferdam_member(arguments->order, "customer");
    const cofferdam_value *items = cofferdam_member(arguments->order, "items");
    int64_t sum = 0;
    for (const cofferdam_value *item = cofferdam_first(items); item; item = cofferdam_next(item)) {
        int64_t quantity = 1;
        cofferdam_read_integer(cofferdam_member(item, "quantity"), &quantity);
        if (__builtin_add_overflow(sum, quantity, &sum)) return cofferdam_fail("the quantities are too large");
    }
    cofferdam_writer json = {0};
    cofferdam_begin_object(&json, NULL);
    cofferdam_add_value(&json, "id", cofferdam_member(arguments->order, "id"));
    cofferdam_add_integer(&json, "quantity", sum);
    cofferdam_add_value(&json, "first", cofferdam_member(cofferdam_first(items), "sku"));
    cofferdam_add_value(&json, "customer", cofferdam_member(customer, "name"));
    cofferdam_add_value(&json, "email", cofferdam_member(customer, "email"));
    cofferdam_add_value(&json, "status", cofferdam_member(arguments->order, "status"));
    return cofferdam_json(&json);
}

static cofferdam_result failure_with_value(void) {
    cofferdam_writer json = {0};
    cofferdam_begin_object(&json, NULL);
    cofferdam_add_integer(&json, "code", 7);
    cofferdam_begin_array(&json, "detail");
    cofferdam_add_text(&json, NULL, "a");
    cofferdam_add_null(&json, NULL);
    return cofferdam_fail_with(&json);
}

COFFERDAM_TOOL(fail, "Reports a failure.",
               COFFERDAM_CHOICE(kind, "Which one.", "plain", "suggestion", "transient", "permanent", "value", "empty")) {
    cofferdam_result failure = cofferdam_fail("it went wrong");
    if (cofferdam_equals(arguments->kind, "suggestion")) return cofferdam_suggest(failure, "try again tomorrow");
    if (cofferdam_equals(arguments->kind, "transient")) return cofferdam_transient(failure, true);
    if (cofferdam_equals(arguments->kind, "permanent")) return cofferdam_transient(failure, false);
    if (cofferdam_equals(arguments->kind, "value")) return failure_with_value();
    if (cofferdam_equals(arguments->kind, "empty")) return cofferdam_fail("%s", "");
    return failure;
}

COFFERDAM_TOOL(crash, "Ends as a bug ends.", COFFERDAM_STRING(secret, "Something to print at the end.")) {
    fprintf(stderr, "the invariant does not hold: %s\n", arguments->secret.data);
    abort();
}

COFFERDAM_TOOL(unicode, "Looks at a text as Unicode.", COFFERDAM_STRING(text, "The text.")) {
    cofferdam_string text = arguments->text;
    char *reversed = cofferdam_allocate(text.length + 1);
    int64_t characters = 0;
    for (size_t at = 0, start = 0; at < text.length; start = at, characters++) {
        cofferdam_next_character(text, &at);
        memcpy(reversed + text.length - at, text.data + start, at - start);
    }
    cofferdam_writer json = {0};
    cofferdam_begin_object(&json, NULL);
    cofferdam_add_string(&json, "text", text);
    cofferdam_add_integer(&json, "characters", characters);
    cofferdam_add_integer(&json, "bytes", (int64_t)text.length);
    cofferdam_add_string(&json, "reversed", (cofferdam_string){reversed, text.length});
    return cofferdam_json(&json);
}

COFFERDAM_TOOL(big_numbers, "Returns numbers with all their digits.",
               COFFERDAM_INTEGER(integer, "An integer of 64 bits."),
               COFFERDAM_NUMBER(number, "A number.")) {
    cofferdam_writer json = {0};
    cofferdam_begin_object(&json, NULL);
    cofferdam_add_integer(&json, "integer", arguments->integer);
    cofferdam_add_number(&json, "number", arguments->number);
    return cofferdam_json(&json);
}

COFFERDAM_TOOL(nothing, "Returns nothing.") { return cofferdam_nothing(); }

COFFERDAM_TOOL(word, "Returns a text.") { return cofferdam_text(cofferdam_string_of("word")); }

COFFERDAM_TOOL(blob, "Returns bytes.", COFFERDAM_INTEGER(size, "How many.")) {
    if (arguments->size < 0 || arguments->size > 1 << 20)
        return cofferdam_suggest(cofferdam_fail("there are no %lld bytes", (long long)arguments->size), "pass 0 to 1048576");
    size_t size = (size_t)arguments->size;
    unsigned char *bytes = cofferdam_allocate(size);
    for (size_t at = 0; at < size; at++) bytes[at] = (unsigned char)at;
    return cofferdam_blob("application/octet-stream", bytes, size);
}

COFFERDAM_TOOL(several, "Returns contents of all kinds.") {
    return cofferdam_several(5, (cofferdam_content[]){
        cofferdam_text_content(cofferdam_string_of("one")),
        cofferdam_json_content(cofferdam_string_of(COFFERDAM_SCHEMA({"two": 2}))),
        cofferdam_blob_content("image/png", "\x89PNG", 4),
        cofferdam_resource_content(cofferdam_string_of("memo:three"), "text/plain", cofferdam_string_of("three")),
        cofferdam_link_content(cofferdam_string_of("https://example.com/four.csv"), cofferdam_string_of("four.csv"), "text/csv"),
    });
}

static int by_bytes(const void *left, const void *right) {
    const cofferdam_entry *one = left, *other = right;
    return strcmp(one->name.data, other->name.data);
}

static void add_files(cofferdam_writer *json, cofferdam_entries entries) {
    cofferdam_entry *sorted = cofferdam_allocate(entries.count * sizeof *sorted);
    memcpy(sorted, entries.items, entries.count * sizeof *sorted);
    qsort(sorted, entries.count, sizeof *sorted, by_bytes);
    cofferdam_begin_array(json, "files");
    for (size_t at = 0; at < entries.count; at++) cofferdam_add_string(json, NULL, sorted[at].name);
    cofferdam_end(json);
}

static void add_lines(cofferdam_writer *json, cofferdam_matches matches, cofferdam_string path) {
    cofferdam_begin_array(json, "lines");
    for (size_t match = 0; match < matches.count; match++) {
        if (!cofferdam_equals(matches.items[match].path, path.data)) continue;
        for (size_t line = 0; line < matches.items[match].line_count; line++)
            cofferdam_add_integer(json, NULL, (int64_t)matches.items[match].lines[line].number);
    }
    cofferdam_end(json);
}

COFFERDAM_TOOL(store, "Works on the files of a store.",
               COFFERDAM_STRING(store, "The name of the store."),
               COFFERDAM_STRING(path, "The file to create."),
               COFFERDAM_STRING(text, "What to write into it.")) {
    cofferdam_string store = arguments->store, path = arguments->path, everywhere = cofferdam_string_of("");
    cofferdam_string any = {NULL, 0};
    cofferdam_query query = {.pattern = cofferdam_string_of("needle"), .is_recursive = true};
    cofferdam_stat stat;
    cofferdam_bytes content;
    cofferdam_entries entries;
    cofferdam_matches matches;
    cofferdam_error error = cofferdam_files_create(store, path, arguments->text.data, arguments->text.length);
    if (!error.code) error = cofferdam_files_stat(store, path, &stat);
    if (!error.code) error = cofferdam_files_read(store, path, 0, stat.size, &content);
    if (!error.code) error = cofferdam_files_list(store, everywhere, any, true, &entries);
    if (!error.code) error = cofferdam_files_search(store, everywhere, query, &matches);
    if (error.code) return cofferdam_fail_for(error);
    cofferdam_writer json = {0};
    cofferdam_begin_object(&json, NULL);
    cofferdam_add_string(&json, "text", cofferdam_string_copy((const char *)content.data, content.length));
    cofferdam_add_integer(&json, "size", (int64_t)stat.size);
    add_files(&json, entries);
    add_lines(&json, matches, path);
    return cofferdam_json(&json);
}

COFFERDAM_TOOL(missing, "Finds out that a file is not there.", COFFERDAM_STRING(store, "The name of the store.")) {
    cofferdam_bytes content;
    cofferdam_error error = cofferdam_files_read(arguments->store, cofferdam_string_of("nosuch.txt"), 0, 4096, &content);
    if (error.code == COFFERDAM_NOT_FOUND) return cofferdam_text(cofferdam_string_of("not found"));
    if (error.code) return cofferdam_fail_for(error);
    return cofferdam_text(cofferdam_string_of("found"));
}

COFFERDAM_TOOL(local_file, "Reads a text file with the C library.", COFFERDAM_STRING(path, "The path, such as `/data/a.txt`.")) {
    enum { TEXT_BYTES_MAX = 65536 };
    FILE *file = fopen(arguments->path.data, "r");
    if (!file) return cofferdam_fail("`%s` cannot be opened: %s", arguments->path.data, strerror(errno));
    char *text = cofferdam_allocate(TEXT_BYTES_MAX);
    size_t length = fread(text, 1, TEXT_BYTES_MAX, file);
    bool is_read = !ferror(file);
    fclose(file);
    if (!is_read) return cofferdam_fail("`%s` cannot be read", arguments->path.data);
    return cofferdam_text((cofferdam_string){text, length});
}

COFFERDAM_TOOL(progress, "Reports progress.", COFFERDAM_INTEGER_IN(steps, "How many steps.", 0, 1000)) {
    for (int64_t step = 1; step <= arguments->steps; step++)
        cofferdam_progress((double)step, (double)arguments->steps, cofferdam_format("step %lld", (long long)step));
    cofferdam_writer json = {0};
    cofferdam_begin_object(&json, NULL);
    cofferdam_add_boolean(&json, "has_id", cofferdam_call_id().length > 0);
    cofferdam_add_boolean(&json, "has_time_left", cofferdam_time_left_ms() > 0);
    cofferdam_add_boolean(&json, "cancelled", cofferdam_cancelled());
    return cofferdam_json(&json);
}

COFFERDAM_TOOL(log, "Says something to the client.", COFFERDAM_STRING(message, "What to say.")) {
    cofferdam_log(COFFERDAM_WARNING, "%s", arguments->message.data);
    fprintf(stderr, "%s (printed)\n", arguments->message.data);
    return cofferdam_nothing();
}

COFFERDAM_TOOL(relay, "Calls another tool.",
               COFFERDAM_STRING(tool, "The name of the tool."),
               COFFERDAM_VALUE(arguments, "Its arguments.",
                               COFFERDAM_SCHEMA({"type": "object", "additionalProperties": true}))) {
    cofferdam_writer json = {0};
    cofferdam_add_value(&json, NULL, arguments->arguments);
    cofferdam_result result;
    cofferdam_error error = cofferdam_toolbox_call(arguments->tool, cofferdam_written(&json), &result);
    if (error.code == COFFERDAM_UNKNOWN_TOOL) return cofferdam_fail("there is no tool `%s`", arguments->tool.data);
    return error.code ? cofferdam_fail_for(error) : result;
}

COFFERDAM_TOOL(secret, "Counts the characters of a secret.", COFFERDAM_STRING(name, "The name of the secret.")) {
    cofferdam_string secret;
    cofferdam_error error = cofferdam_secret(arguments->name, &secret);
    if (error.code) return cofferdam_fail_for(error);
    cofferdam_writer json = {0};
    int64_t characters = 0;
    for (size_t at = 0; at < secret.length; characters++) cofferdam_next_character(secret, &at);
    cofferdam_add_integer(&json, NULL, characters);
    return cofferdam_json(&json);
}

// Fills a part of a body with `x`. The context is the number of bytes that are left.
static size_t fill(void *context, void *buffer, size_t capacity) {
    size_t *left = context, length = *left < capacity ? *left : capacity;
    memset(buffer, 'x', length);
    *left -= length;
    return length;
}

static cofferdam_result failed_request(cofferdam_error error) {
    return error.code == COFFERDAM_HTTP_TIMEOUT ? cofferdam_fail("timeout") : cofferdam_fail_for(error);
}

enum { REQUESTS_MAX = 64, BODY_BYTES_MAX = 16 << 20, TEXT_BYTES_MAX = 2000 };

COFFERDAM_TOOL(http, "Sends requests over HTTP and returns the last response.",
               COFFERDAM_STRING(url, "The URL."),
               COFFERDAM_STRING_OR(method, "The method.", "GET"),
               COFFERDAM_VALUE_OPTIONAL(headers, "Headers of the request.",
                                        COFFERDAM_SCHEMA({"type": "object", "additionalProperties": {"type": "string"}})),
               COFFERDAM_STRING_OPTIONAL(body, "The text to send."),
               COFFERDAM_INTEGER_IN_OR(send_bytes, "How many bytes to send instead, in chunks.", 0, INT32_MAX, 0),
               COFFERDAM_INTEGER_IN_OR(timeout_ms, "The timeout in milliseconds; 0 for none.", 0, INT32_MAX, 0),
               COFFERDAM_BOOLEAN_OR(follow, "True to follow redirects.", true),
               COFFERDAM_INTEGER_IN_OR(count, "How many requests, one after the other.", 1, 1000, 1),
               COFFERDAM_INTEGER_IN_OR(parallel, "How many requests at once.", 1, REQUESTS_MAX, 1)) {
    cofferdam_http_header *headers = cofferdam_allocate(cofferdam_count(arguments->headers) * sizeof *headers);
    size_t header_count = 0, left[REQUESTS_MAX];
    for (const cofferdam_value *header = cofferdam_first(arguments->headers); header; header = cofferdam_next(header))
        headers[header_count++] = (cofferdam_http_header){cofferdam_name_of(header), cofferdam_text_of(header)};
    cofferdam_http_request request = {
        .method = arguments->method,
        .url = arguments->url,
        .headers = headers,
        .header_count = header_count,
        .body = arguments->body.data,
        .body_length = arguments->send_bytes ? 0 : arguments->body.length,
        .source = arguments->send_bytes ? fill : NULL,
        .timeout_ms = (uint32_t)arguments->timeout_ms,
        .redirects_max = arguments->follow ? 10 : 0,
    };
    cofferdam_http_exchange *exchanges[REQUESTS_MAX];
    cofferdam_http_response response;
    cofferdam_bytes body;
    int64_t ok = 0;
    for (int64_t round = 0; round < arguments->count; round++) {
        for (int64_t at = 0; at < arguments->parallel; at++) {
            left[at] = (size_t)arguments->send_bytes;
            request.context = &left[at];
            cofferdam_error error = cofferdam_http_start(&request, &exchanges[at]);
            if (error.code) return failed_request(error);
        }
        for (int64_t at = 0; at < arguments->parallel; at++) {
            cofferdam_error error = cofferdam_http_wait(exchanges[at], &response);
            if (!error.code) error = cofferdam_http_read_all(&response, BODY_BYTES_MAX, &body);
            if (error.code) return failed_request(error);
            ok += response.status < 400;
        }
    }
    cofferdam_writer json = {0};
    cofferdam_begin_object(&json, NULL);
    cofferdam_add_integer(&json, "status", response.status);
    cofferdam_add_string(&json, "url", response.url);
    cofferdam_add_string(&json, "type", cofferdam_http_header_of(&response, "content-type"));
    cofferdam_add_integer(&json, "bytes", (int64_t)body.length);
    cofferdam_string text = {(const char *)body.data, body.length};
    cofferdam_add_string(&json, "text", body.length <= TEXT_BYTES_MAX ? text : cofferdam_string_of(""));
    cofferdam_add_integer(&json, "ok", ok);
    return cofferdam_json(&json);
}

COFFERDAM_TOOL(annotated, "Has all annotations.",
               COFFERDAM_TITLE("An annotated tool"),
               COFFERDAM_GROUP("reading"),
               COFFERDAM_READ_ONLY,
               COFFERDAM_IS_DESTRUCTIVE(false),
               COFFERDAM_IDEMPOTENT,
               COFFERDAM_IS_OPEN_WORLD(false),
               COFFERDAM_OUTPUT(COFFERDAM_SCHEMA(
                   {"type": "object", "properties": {"answer": {"type": "integer"}}, "required": ["answer"]}))) {
    cofferdam_writer json = {0};
    cofferdam_begin_object(&json, NULL);
    cofferdam_add_integer(&json, "answer", 42);
    return cofferdam_json(&json);
}

COFFERDAM_PLUGIN(echo, defaults, nullables, nested, fail, crash, unicode, big_numbers, nothing, word, blob, several, store,
                 missing, local_file, progress, log, relay, secret, http, annotated)
