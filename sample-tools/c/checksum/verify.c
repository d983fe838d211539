// The tool `verify_checksums`: does the same as `sha256sum --check`, for a model.

#include "files.h"

#include <ctype.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

enum {
    LIST_BYTES_MAX = 1 << 20,
    ENTRIES_MAX = 10000,
    // Maximum number of names in the result.
    NAMES_MAX = 500,
    ANSWER_BYTES_MAX = 128 << 10,
    SKIPPED_MAX = 20,
};

// Line of the list.
typedef struct entry {
    unsigned kind;
    cofferdam_string digits;
    cofferdam_string name;
} entry;

static cofferdam_string part(cofferdam_string text, size_t from, size_t to) {
    return (cofferdam_string){text.data + from, to - from};
}

static size_t hex_digits(cofferdam_string text, size_t from) {
    size_t at = from;
    while (at < text.length && isxdigit((unsigned char)text.data[at])) at++;
    return at - from;
}

// GNU tools escape a backslash or line break in a name, and put a backslash at the start of the
// line.
static cofferdam_string unescaped(cofferdam_string name) {
    char *made = cofferdam_allocate(name.length + 1);
    size_t length = 0;
    for (size_t at = 0; at < name.length; at++) {
        char byte = name.data[at];
        if (byte == '\\' && at + 1 < name.length) {
            byte = name.data[++at];
            byte = byte == 'n' ? '\n' : byte == 'r' ? '\r' : byte;
        }
        made[length++] = byte;
    }
    return (cofferdam_string){made, length};
}

// Parses `CHECKSUM  NAME` and `CHECKSUM *NAME` of GNU tools.
static bool read_gnu_line(cofferdam_string line, entry *entry) {
    size_t digits = hex_digits(line, 0);
    entry->kind = kind_of_length(digits);
    // CRC-32 is not recognized, because eight such letters can also be a word.
    if (!entry->kind || entry->kind == CRC32 || line.length < digits + 3) return false;
    char mark = line.data[digits + 1];
    if (line.data[digits] != ' ' || (mark != ' ' && mark != '*')) return false;
    entry->digits = part(line, 0, digits);
    entry->name = part(line, digits + 2, line.length);
    return true;
}

// Parses `SHA256 (NAME) = CHECKSUM` of BSD tools.
static bool read_bsd_line(cofferdam_string line, entry *entry) {
    static const struct {
        const char *text;
        unsigned kind;
    } STARTS[] = {{"SHA256 (", SHA256}, {"SHA1 (", SHA1}, {"MD5 (", MD5}};
    for (size_t at = 0; at < sizeof STARTS / sizeof *STARTS; at++) {
        size_t from = strlen(STARTS[at].text), to = line.length;
        if (line.length < from || memcmp(line.data, STARTS[at].text, from)) continue;
        while (to > from && isxdigit((unsigned char)line.data[to - 1])) to--;
        entry->kind = kind_of_length(line.length - to);
        if (entry->kind != STARTS[at].kind || to < from + 5 || memcmp(line.data + to - 4, ") = ", 4)) return false;
        entry->digits = part(line, to, line.length);
        entry->name = part(line, from, to - 4);
        return true;
    }
    return false;
}

static bool read_line(cofferdam_string line, entry *entry) {
    bool is_escaped = line.length && *line.data == '\\';
    if (is_escaped) line = part(line, 1, line.length);
    if (!read_gnu_line(line, entry) && !read_bsd_line(line, entry)) return false;
    if (is_escaped) entry->name = unescaped(entry->name);
    return true;
}

static cofferdam_result read_list(const char *path, cofferdam_string *list) {
    bool is_directory;
    uint64_t size;
    cofferdam_result wrong = read_kind(path, &is_directory, &size);
    if (wrong.failure) return wrong;
    if (is_directory)
        return cofferdam_suggest(cofferdam_fail("`%s` is a directory", path), "pass the list of checksums in it, such as `%s/SHA256SUMS`", path);
    if (size > LIST_BYTES_MAX)
        return cofferdam_suggest(cofferdam_fail("`%s` has more than %d bytes", path, LIST_BYTES_MAX), "pass the list, and not what is listed");
    int file = open(path, O_RDONLY);
    if (file < 0) return fail_for_file(READ_REFUSED, path);
    size_t length = 0;
    char *data = cofferdam_allocate((size_t)size + 1);
    ssize_t got;
    while (length < size && (got = read(file, data + length, (size_t)size - length)) > 0) length += (size_t)got;
    close(file);
    if (length < size) return cofferdam_fail("`%s` cannot be read to its end", path);
    *list = (cofferdam_string){data, length};
    return cofferdam_nothing();
}

// Results of the verification. Each kind of name is written to its own array as it is found.
typedef struct findings {
    cofferdam_writer changed, missing, unreadable, outside, skipped;
    int64_t entries, ok, wrong, skipped_count, named;
    bool is_truncated;
} findings;

static bool has_room(findings *found) {
    size_t bytes = found->changed.length + found->missing.length + found->unreadable.length + found->outside.length;
    bool has = found->named < NAMES_MAX && bytes < ANSWER_BYTES_MAX;
    if (has) found->named++;
    else found->is_truncated = true;
    return has;
}

static void add_name(findings *found, cofferdam_writer *list, cofferdam_string name) {
    found->wrong++;
    if (has_room(found)) cofferdam_add_string(list, NULL, name);
}

static bool is_same(cofferdam_string digits, const char *made) {
    for (size_t at = 0; at < digits.length; at++)
        if (tolower((unsigned char)digits.data[at]) != made[at]) return false;
    return true;
}

static cofferdam_result check(findings *found, const entry *entry, const char *directory, budget *budget) {
    char path[PATH_BYTES_MAX];
    strcpy(path, directory);
    // A list is untrusted: an absolute path is a file of another machine, or an attack.
    if (entry->name.data[0] == '/' || !add_path(path, entry->name)) {
        add_name(found, &found->outside, entry->name);
        return cofferdam_nothing();
    }
    checksums made;
    uint64_t bytes;
    read_end end = read_checksums(path, entry->kind, budget, &made, &bytes);
    switch (end) {
    case READ_ALL:
        if (is_same(entry->digits, checksum_of(&made, entry->kind))) found->ok++;
        else add_name(found, &found->changed, entry->name);
        return cofferdam_nothing();
    case READ_MISSING: add_name(found, &found->missing, entry->name); return cofferdam_nothing();
    case READ_DIRECTORY:
    case READ_REFUSED: add_name(found, &found->unreadable, entry->name); return cofferdam_nothing();
    default:
        return cofferdam_suggest(
            cofferdam_fail("%s after %lld files: a call reads at most %llu MiB", end == READ_NO_TIME ? "the time was used up" : "it was too much",
                           (long long)(found->entries - 1), (unsigned long long)(READ_BYTES_MAX >> 20)),
            "call `checksum` with `expected` for single files, or pass a shorter list");
    }
}

static void add_list(cofferdam_writer *json, const char *name, cofferdam_writer *list) {
    cofferdam_add_json(json, name, cofferdam_written(list));
}

COFFERDAM_TOOL(verify_checksums,
               "Checks files against a list of checksums such as SHA256SUMS, in the form of `sha256sum`, `sha1sum`, `md5sum` or of BSD. "
               "Counts those that are ok and names those that are not.",
               COFFERDAM_TITLE("Verify checksums"), COFFERDAM_READ_ONLY, COFFERDAM_IDEMPOTENT, COFFERDAM_IS_OPEN_WORLD(false),
               COFFERDAM_STRING(file, "The list in a mount, such as `/data/SHA256SUMS`."),
               COFFERDAM_STRING_OPTIONAL(directory, "Where the files lie, such as `/data/release`; without it, beside the list."),
               COFFERDAM_OUTPUT(COFFERDAM_SCHEMA({
                   "type": "object",
                   "properties": {
                       "all_ok": {"type": "boolean", "description": "Whether each line was understood and each file is as listed."},
                       "ok": {"type": "integer", "description": "How many files are as listed."},
                       "changed": {"type": "array", "items": {"type": "string"}, "description": "Files of another content."},
                       "missing": {"type": "array", "items": {"type": "string"}, "description": "Files that are not there."},
                       "unreadable": {"type": "array", "items": {"type": "string"}, "description": "Directories and what the host refuses."},
                       "outside": {"type": "array", "items": {"type": "string"}, "description": "Paths that leave the mount, not looked at."},
                       "skipped_lines": {"type": "array", "items": {"type": "integer"},
                                         "description": "The first lines without a checksum that is known here."},
                       "truncated": {"type": "boolean", "description": "Whether more names or lines are wrong than are told."}
                   },
                   "required": ["all_ok", "ok", "changed", "missing", "unreadable", "outside", "skipped_lines", "truncated"]
               }))) {
    char path[PATH_BYTES_MAX], directory[PATH_BYTES_MAX];
    cofferdam_result wrong = read_path(arguments->file, path);
    if (wrong.failure) return wrong;
    if (arguments->directory.data) {
        bool is_directory;
        uint64_t bytes;
        wrong = read_path(arguments->directory, directory);
        if (!wrong.failure) wrong = read_kind(directory, &is_directory, &bytes);
        if (wrong.failure) return wrong;
        if (!is_directory)
            return cofferdam_suggest(cofferdam_fail("`%s` is a file", directory), "pass the directory that the listed files are in");
    } else {
        strcpy(directory, path);
        *strrchr(directory, '/') = 0;
    }
    cofferdam_string list;
    wrong = read_list(path, &list);
    if (wrong.failure) return wrong;

    findings found = {0};
    budget budget = {0};
    cofferdam_begin_array(&found.changed, NULL);
    cofferdam_begin_array(&found.missing, NULL);
    cofferdam_begin_array(&found.unreadable, NULL);
    cofferdam_begin_array(&found.outside, NULL);
    cofferdam_begin_array(&found.skipped, NULL);
    int64_t number = 0;
    for (size_t at = 0, end; at < list.length; at = end + 1) {
        number++;
        const char *line_break = memchr(list.data + at, '\n', list.length - at);
        end = line_break ? (size_t)(line_break - list.data) : list.length;
        cofferdam_string line = part(list, at, end);
        if (line.length && line.data[line.length - 1] == '\r') line.length--;
        if (!line.length || *line.data == '#') continue;
        entry entry;
        if (!read_line(line, &entry)) {
            if (found.skipped_count++ < SKIPPED_MAX) cofferdam_add_integer(&found.skipped, NULL, number);
            else found.is_truncated = true;
            continue;
        }
        if (++found.entries > ENTRIES_MAX)
            return cofferdam_suggest(cofferdam_fail("`%s` lists more than %d files", path, ENTRIES_MAX), "split the list and check each part");
        wrong = check(&found, &entry, directory, &budget);
        if (wrong.failure) return wrong;
        cofferdam_progress((double)end, (double)list.length, (cofferdam_string){0});
    }
    if (!found.entries)
        return cofferdam_suggest(cofferdam_fail("`%s` holds no checksum that is known here", path),
                                 "pass a list with lines of a SHA-256, SHA-1 or MD5 checksum in hexadecimal, two spaces and a name");
    cofferdam_writer json = {0};
    cofferdam_begin_object(&json, NULL);
    cofferdam_add_boolean(&json, "all_ok", !found.wrong && !found.skipped_count);
    cofferdam_add_integer(&json, "ok", found.ok);
    add_list(&json, "changed", &found.changed);
    add_list(&json, "missing", &found.missing);
    add_list(&json, "unreadable", &found.unreadable);
    add_list(&json, "outside", &found.outside);
    add_list(&json, "skipped_lines", &found.skipped);
    cofferdam_add_boolean(&json, "truncated", found.is_truncated);
    return cofferdam_json(&json);
}
