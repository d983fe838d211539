// Host of native tests: see cofferdam_test.h. Not part of components. Grants live as long as the
// process.

#ifndef __wasm__

#include "cofferdam_test.h"
#include "cofferdam_abi.h"

#include <stdlib.h>
#include <string.h>

// A named thing: a secret, another tool, a store, or a file of a store.
typedef struct named {
    struct named *next;
    const char *kind;
    cofferdam_string name;
    cofferdam_string path;
    cofferdam_string content;
} named;

static named *granted;
static cofferdam_string logged;

// Copies a string to memory that survives `cofferdam_release`, which a test may call.
static cofferdam_string lasting(cofferdam_string text) {
    char *copy = calloc(text.length + 1, 1);
    if (!copy) cofferdam_abort("out of memory");
    if (text.length) memcpy(copy, text.data, text.length);
    return (cofferdam_string){copy, text.length};
}

static void forget(cofferdam_string text) { free((char *)text.data); }

static bool is_same(cofferdam_string one, cofferdam_string other) {
    return one.length == other.length && (!one.length || !memcmp(one.data, other.data, one.length));
}

static named *find(const char *kind, cofferdam_string name, cofferdam_string path) {
    named *at = granted;
    while (at && !(!strcmp(at->kind, kind) && is_same(at->name, name) && is_same(at->path, path))) at = at->next;
    return at;
}

static void grant(const char *kind, cofferdam_string name, cofferdam_string path, cofferdam_string content) {
    named *made = find(kind, name, path);
    if (!made) {
        made = calloc(1, sizeof *made);
        if (!made) cofferdam_abort("out of memory");
        made->next = granted;
        granted = made;
    }
    named old = *made;
    made->kind = kind;
    made->name = lasting(name);
    made->path = lasting(path);
    made->content = lasting(content);
    forget(old.name), forget(old.path), forget(old.content);
}

static const cofferdam_string NONE = {"", 0};

void cofferdam_test_grant_store(const char *store) { grant("store", cofferdam_string_of(store), NONE, NONE); }

void cofferdam_test_grant_secret(const char *name, const char *value) {
    grant("secret", cofferdam_string_of(name), NONE, cofferdam_string_of(value));
}

void cofferdam_test_grant_tool(const char *name, const char *json) {
    grant("tool", cofferdam_string_of(name), NONE, cofferdam_string_of(json));
}

cofferdam_string cofferdam_test_logged(void) {
    cofferdam_string all = cofferdam_string_copy(logged.data, logged.length);
    forget(logged);
    logged = (cofferdam_string){NULL, 0};
    return all;
}

static cofferdam_error error(cofferdam_error_code code) { return (cofferdam_error){code, {NULL, 0}, NULL}; }

// Functions of `call` and `client`.

cofferdam_string cofferdam_call_id(void) { return NONE; }
cofferdam_string cofferdam_call_session(void) { return (cofferdam_string){NULL, 0}; }
uint64_t cofferdam_time_left_ms(void) { return UINT64_MAX; }
bool cofferdam_cancelled(void) { return false; }
void cofferdam_progress(double done, double total, cofferdam_string message) { (void)done, (void)total, (void)message; }

void cofferdam_log(cofferdam_level level, const char *format, ...) {
    (void)level;
    va_list arguments;
    va_start(arguments, format);
    cofferdam_string line = cofferdam_format_list(format, arguments);
    va_end(arguments);
    cofferdam_string before = logged;
    logged = lasting(cofferdam_format("%s%s\n", before.data ? before.data : "", line.data));
    forget(before);
}

bool cofferdam_can_ask(cofferdam_question_kind kind) { return (void)kind, false; }

cofferdam_error cofferdam_ask(size_t count, const cofferdam_question *questions, cofferdam_answer *answers) {
    (void)count, (void)questions, (void)answers;
    return error(COFFERDAM_UNSUPPORTED);
}

// Secrets and tools.

cofferdam_error cofferdam_secret(cofferdam_string name, cofferdam_string *value) {
    const named *found = find("secret", name, NONE);
    if (!found) return error(COFFERDAM_ACCESS_DENIED);
    *value = found->content;
    return error(COFFERDAM_OK);
}

static size_t count(const char *kind) {
    size_t many = 0;
    for (const named *at = granted; at; at = at->next) many += !strcmp(at->kind, kind);
    return many;
}

cofferdam_granted_tools cofferdam_toolbox_list(void) {
    cofferdam_granted_tool *tools = cofferdam_allocate(count("tool") * sizeof *tools);
    size_t made = 0;
    for (const named *at = granted; at; at = at->next)
        if (!strcmp(at->kind, "tool"))
            tools[made++] = (cofferdam_granted_tool){
                .name = at->name, .description = NONE, .input_schema = cofferdam_string_of("{\"type\":\"object\"}")};
    return (cofferdam_granted_tools){tools, made};
}

cofferdam_error cofferdam_toolbox_call(cofferdam_string name, cofferdam_string arguments_json, cofferdam_result *result) {
    (void)arguments_json;
    const named *found = find("tool", name, NONE);
    if (!found) return error(COFFERDAM_UNKNOWN_TOOL);
    cofferdam_content content = cofferdam_json_content(found->content);
    *result = cofferdam_several(1, &content);
    return error(COFFERDAM_OK);
}

// Files.

cofferdam_stores cofferdam_files_stores(void) {
    cofferdam_store *stores = cofferdam_allocate(count("store") * sizeof *stores);
    size_t made = 0;
    for (const named *at = granted; at; at = at->next)
        if (!strcmp(at->kind, "store")) stores[made++] = (cofferdam_store){at->name, true};
    return (cofferdam_stores){stores, made};
}

// Returns whether a path is below a directory. An empty directory is the root.
static bool is_below(cofferdam_string path, cofferdam_string directory) {
    if (!directory.length) return true;
    return path.length > directory.length && path.data[directory.length] == '/' &&
           !memcmp(path.data, directory.data, directory.length);
}

static bool is_directory(cofferdam_string store, cofferdam_string path) {
    for (const named *at = granted; at; at = at->next)
        if (!strcmp(at->kind, "file") && is_same(at->name, store) && path.length && is_below(at->path, path)) return true;
    return find("directory", store, path);
}

static cofferdam_error file(cofferdam_string store, cofferdam_string path, named **found) {
    if (!find("store", store, NONE)) return error(COFFERDAM_UNKNOWN_STORE);
    *found = find("file", store, path);
    return error(*found ? COFFERDAM_OK : COFFERDAM_NOT_FOUND);
}

cofferdam_error cofferdam_files_stat(cofferdam_string store, cofferdam_string path, cofferdam_stat *stat) {
    named *found;
    cofferdam_error refused = file(store, path, &found);
    if (refused.code == COFFERDAM_NOT_FOUND && (!path.length || is_directory(store, path))) {
        *stat = (cofferdam_stat){.is_directory = true};
        return error(COFFERDAM_OK);
    }
    if (!refused.code) *stat = (cofferdam_stat){.size = found->content.length};
    return refused;
}

cofferdam_error cofferdam_files_read(
    cofferdam_string store, cofferdam_string path, uint64_t offset, uint64_t length, cofferdam_bytes *content) {
    named *found;
    cofferdam_error refused = file(store, path, &found);
    if (refused.code) return refused;
    if (offset > found->content.length) offset = found->content.length;
    uint64_t rest = found->content.length - offset;
    // Copied, because the tool may write the file while it uses the content.
    cofferdam_string copy = cofferdam_string_copy(found->content.data + offset, (size_t)(length < rest ? length : rest));
    *content = (cofferdam_bytes){(const uint8_t *)copy.data, copy.length};
    return refused;
}

cofferdam_error cofferdam_files_create(cofferdam_string store, cofferdam_string path, const void *data, size_t length) {
    named *found;
    if (!file(store, path, &found).code) return error(COFFERDAM_ALREADY_EXISTS);
    return cofferdam_files_write(store, path, data, length);
}

cofferdam_error cofferdam_files_write(cofferdam_string store, cofferdam_string path, const void *data, size_t length) {
    if (!find("store", store, NONE)) return error(COFFERDAM_UNKNOWN_STORE);
    if (!path.length || path.data[0] == '/') return error(COFFERDAM_INVALID_PATH);
    if (is_directory(store, path)) return error(COFFERDAM_WRONG_TYPE);
    grant("file", store, path, (cofferdam_string){data, length});
    return error(COFFERDAM_OK);
}

cofferdam_error cofferdam_files_delete(cofferdam_string store, cofferdam_string path) {
    named *found;
    cofferdam_error refused = file(store, path, &found);
    if (!refused.code) found->kind = "deleted";
    return refused;
}

cofferdam_error cofferdam_files_create_directory(cofferdam_string store, cofferdam_string path) {
    if (!find("store", store, NONE)) return error(COFFERDAM_UNKNOWN_STORE);
    if (is_directory(store, path) || find("file", store, path)) return error(COFFERDAM_ALREADY_EXISTS);
    grant("directory", store, path, NONE);
    return error(COFFERDAM_OK);
}

static int by_kind_and_name(const void *left, const void *right) {
    const cofferdam_entry *one = left, *other = right;
    if (one->is_directory != other->is_directory) return one->is_directory ? -1 : 1;
    return strcmp(one->name.data, other->name.data);
}

// Adds an entry unless it exists already, because several files can have the same directory.
static size_t add_entry(cofferdam_entry *entries, size_t many, cofferdam_string path, size_t length, bool is_directory) {
    cofferdam_string name = cofferdam_string_copy(path.data, length);
    for (size_t at = 0; at < many; at++)
        if (is_same(entries[at].name, name)) return many;
    entries[many] = (cofferdam_entry){name, is_directory};
    return many + 1;
}

cofferdam_error cofferdam_files_list(
    cofferdam_string store, cofferdam_string directory, cofferdam_string glob, bool is_recursive, cofferdam_entries *entries) {
    if (!find("store", store, NONE)) return error(COFFERDAM_UNKNOWN_STORE);
    if (glob.data) return error(COFFERDAM_INVALID_PATTERN);
    size_t most = 0, many = 0, skipped = directory.length ? directory.length + 1 : 0;
    for (const named *at = granted; at; at = at->next) most += at->path.length + 1;
    cofferdam_entry *made = cofferdam_allocate(most * sizeof *made);
    for (const named *at = granted; at; at = at->next) {
        bool is_file = !strcmp(at->kind, "file");
        if (!is_file && strcmp(at->kind, "directory")) continue;
        if (!is_same(at->name, store) || !is_below(at->path, directory)) continue;
        cofferdam_string name = {at->path.data + skipped, at->path.length - skipped};
        size_t end = 0;
        while (end < name.length && (is_recursive || !end || name.data[end - 1] != '/'))
            if (name.data[end++] == '/') many = add_entry(made, many, name, end - 1, true);
        if (end == name.length && (!end || name.data[end - 1] != '/')) many = add_entry(made, many, name, end, !is_file);
    }
    qsort(made, many, sizeof *made, by_kind_and_name);
    *entries = (cofferdam_entries){made, many};
    return error(COFFERDAM_OK);
}

// Returns the lines of a file that contain a string.
static cofferdam_match match(const named *file, cofferdam_string pattern) {
    cofferdam_line *lines = cofferdam_allocate((file->content.length + 1) * sizeof *lines);
    size_t found = 0, number = 0;
    for (const char *at = file->content.data; at; at = *at ? at + 1 : NULL) {
        size_t length = strcspn(at, "\n");
        cofferdam_string text = cofferdam_string_copy(at, length);
        number++;
        if (strstr(text.data, pattern.data)) lines[found++] = (cofferdam_line){number, text};
        at += length;
        if (!*at) break;
    }
    return (cofferdam_match){file->path, found ? lines[0].text : NONE, lines, found};
}

static int by_path(const void *left, const void *right) {
    return strcmp(((const cofferdam_match *)left)->path.data, ((const cofferdam_match *)right)->path.data);
}

cofferdam_error cofferdam_files_search(
    cofferdam_string store, cofferdam_string directory, cofferdam_query query, cofferdam_matches *matches) {
    if (!find("store", store, NONE)) return error(COFFERDAM_UNKNOWN_STORE);
    if (query.glob.data || strpbrk(query.pattern.data, "\\^$.|?*+()[]{}")) return error(COFFERDAM_INVALID_PATTERN);
    cofferdam_match *made = cofferdam_allocate(count("file") * sizeof *made);
    size_t many = 0;
    for (const named *at = granted; at; at = at->next) {
        if (strcmp(at->kind, "file") || !is_same(at->name, store) || !is_below(at->path, directory)) continue;
        made[many] = match(at, query.pattern);
        many += made[many].line_count > 0;
    }
    qsort(made, many, sizeof *made, by_path);
    *matches = (cofferdam_matches){made, many, false};
    return error(COFFERDAM_OK);
}

#endif
