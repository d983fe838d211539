// `cofferdam:plugin/files` in the canonical ABI. cofferdam_abi.c implements the other interfaces.

#ifdef __wasm__

#include "cofferdam_abi.h"

#define IMPORT(name) __attribute__((import_module("cofferdam:plugin/files@0.1.0"), import_name(name)))
#define TEXT(name) const char *name, size_t name##_bytes
#define NEW(type, count) ((type *)cofferdam_allocate((count) * sizeof(type)))

typedef struct abi_error {
    uint8_t tag;
    abi_text text;
} abi_error;

// `result<_, error>`.
typedef struct abi_done {
    uint8_t is_error;
    abi_error error;
} abi_done;

// `result<list<T>, error>`.
typedef struct abi_listed {
    uint8_t is_error;
    union {
        abi_list list;
        abi_error error;
    };
} abi_listed;

typedef struct abi_stat {
    uint8_t is_error;
    union {
        struct {
            uint8_t type;
            uint64_t size;
        } stat;
        abi_error error;
    };
} abi_stat;

typedef struct abi_found {
    uint8_t is_error;
    union {
        struct {
            abi_list matches;
            bool is_truncated;
        } found;
        abi_error error;
    };
} abi_found;

// A store with its flag `writable`, or an entry with its type.
typedef struct abi_named {
    abi_text name;
    uint8_t is;
} abi_named;

typedef struct abi_match {
    abi_text path, snippet;
    abi_list lines;
} abi_match;

typedef struct abi_line {
    uint64_t number;
    abi_text text;
} abi_line;

_Static_assert(sizeof(abi_stat) == 24 && sizeof(abi_found) == 16 && sizeof(abi_named) == 12 && sizeof(abi_line) == 16,
               "the layout of the canonical ABI");

IMPORT("stores") void host_stores(abi_list *stores);
IMPORT("stat") void host_stat(TEXT(store), TEXT(path), abi_stat *stat);
IMPORT("read") void host_read(TEXT(store), TEXT(path), uint64_t offset, uint64_t length, abi_listed *content);
IMPORT("write") void host_write(TEXT(store), TEXT(path), const void *data, size_t length, int replaces, abi_done *done);
IMPORT("delete") void host_delete(TEXT(store), TEXT(path), abi_done *done);
IMPORT("create-directory") void host_create_directory(TEXT(store), TEXT(path), abi_done *done);
IMPORT("list") void host_list(TEXT(store), TEXT(directory), bool has_glob, TEXT(glob), bool is_recursive, abi_listed *entries);
IMPORT("search")
void host_search(TEXT(store), TEXT(directory), TEXT(pattern), bool minds_case, bool has_glob, TEXT(glob), bool is_recursive,
                 abi_found *found);

static cofferdam_string from(abi_text text) { return (cofferdam_string){text.length ? text.data : "", text.length}; }

static cofferdam_error error_from(const abi_error *error) {
    static const bool HAS_TEXT[] = {false, false, false, true, true, false, true, true, true, false};
    cofferdam_error made = {.code = COFFERDAM_UNKNOWN_STORE + error->tag};
    if (HAS_TEXT[error->tag]) made.text = from(error->text);
    return made;
}

static cofferdam_error done_from(const abi_done *done) {
    return done->is_error ? error_from(&done->error) : (cofferdam_error){.code = COFFERDAM_OK};
}

cofferdam_stores cofferdam_files_stores(void) {
    abi_list list;
    host_stores(&list);
    const abi_named *given = list.items;
    cofferdam_store *stores = NEW(cofferdam_store, list.length);
    for (size_t at = 0; at < list.length; at++) stores[at] = (cofferdam_store){from(given[at].name), given[at].is};
    return (cofferdam_stores){stores, list.length};
}

cofferdam_error cofferdam_files_stat(cofferdam_string store, cofferdam_string path, cofferdam_stat *stat) {
    abi_stat given;
    store = cofferdam_utf8(store), path = cofferdam_utf8(path);
    host_stat(store.data, store.length, path.data, path.length, &given);
    if (given.is_error) return error_from(&given.error);
    *stat = (cofferdam_stat){given.stat.type, given.stat.size};
    return (cofferdam_error){.code = COFFERDAM_OK};
}

cofferdam_error cofferdam_files_read(
    cofferdam_string store, cofferdam_string path, uint64_t offset, uint64_t length, cofferdam_bytes *content) {
    abi_listed given;
    store = cofferdam_utf8(store), path = cofferdam_utf8(path);
    host_read(store.data, store.length, path.data, path.length, offset, length, &given);
    if (given.is_error) return error_from(&given.error);
    *content = (cofferdam_bytes){given.list.items, given.list.length};
    return (cofferdam_error){.code = COFFERDAM_OK};
}

static cofferdam_error write_file(cofferdam_string store, cofferdam_string path, cofferdam_bytes content, bool replaces) {
    abi_done done;
    store = cofferdam_utf8(store), path = cofferdam_utf8(path);
    host_write(store.data, store.length, path.data, path.length, content.data, content.length, replaces, &done);
    return done_from(&done);
}

cofferdam_error cofferdam_files_create(cofferdam_string store, cofferdam_string path, const void *data, size_t length) {
    return write_file(store, path, (cofferdam_bytes){data, length}, false);
}

cofferdam_error cofferdam_files_write(cofferdam_string store, cofferdam_string path, const void *data, size_t length) {
    return write_file(store, path, (cofferdam_bytes){data, length}, true);
}

cofferdam_error cofferdam_files_delete(cofferdam_string store, cofferdam_string path) {
    abi_done done;
    store = cofferdam_utf8(store), path = cofferdam_utf8(path);
    host_delete(store.data, store.length, path.data, path.length, &done);
    return done_from(&done);
}

cofferdam_error cofferdam_files_create_directory(cofferdam_string store, cofferdam_string path) {
    abi_done done;
    store = cofferdam_utf8(store), path = cofferdam_utf8(path);
    host_create_directory(store.data, store.length, path.data, path.length, &done);
    return done_from(&done);
}

cofferdam_error cofferdam_files_list(
    cofferdam_string store, cofferdam_string directory, cofferdam_string glob, bool is_recursive, cofferdam_entries *entries) {
    abi_listed given;
    store = cofferdam_utf8(store), directory = cofferdam_utf8(directory), glob = cofferdam_utf8(glob);
    host_list(store.data, store.length, directory.data, directory.length, glob.data, glob.data, glob.length, is_recursive, &given);
    if (given.is_error) return error_from(&given.error);
    const abi_named *items = given.list.items;
    cofferdam_entry *made = NEW(cofferdam_entry, given.list.length);
    for (size_t at = 0; at < given.list.length; at++) made[at] = (cofferdam_entry){from(items[at].name), items[at].is};
    *entries = (cofferdam_entries){made, given.list.length};
    return (cofferdam_error){.code = COFFERDAM_OK};
}

static cofferdam_match match_from(const abi_match *match) {
    const abi_line *given = match->lines.items;
    cofferdam_line *lines = NEW(cofferdam_line, match->lines.length);
    for (size_t at = 0; at < match->lines.length; at++) lines[at] = (cofferdam_line){given[at].number, from(given[at].text)};
    return (cofferdam_match){from(match->path), from(match->snippet), lines, match->lines.length};
}

cofferdam_error cofferdam_files_search(
    cofferdam_string store, cofferdam_string directory, cofferdam_query query, cofferdam_matches *matches) {
    abi_found given;
    store = cofferdam_utf8(store), directory = cofferdam_utf8(directory);
    cofferdam_string pattern = cofferdam_utf8(query.pattern), glob = cofferdam_utf8(query.glob);
    host_search(store.data, store.length, directory.data, directory.length, pattern.data, pattern.length, !query.ignores_case,
                glob.data, glob.data, glob.length, query.is_recursive, &given);
    if (given.is_error) return error_from(&given.error);
    const abi_match *items = given.found.matches.items;
    size_t count = given.found.matches.length;
    cofferdam_match *made = NEW(cofferdam_match, count);
    for (size_t at = 0; at < count; at++) made[at] = match_from(&items[at]);
    *matches = (cofferdam_matches){made, count, given.found.is_truncated};
    return (cofferdam_error){.code = COFFERDAM_OK};
}

#endif
