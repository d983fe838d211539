#include "files.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    PIECE_BYTES = 64 << 10,
    // Time that is reserved for the result.
    TIME_LEFT_MS_MIN = 500,
    // Maximum number of mounts in a suggestion.
    MOUNTS_NAMED_MAX = 5,
};

// The C library does not report a mount that is not granted as missing: the plugin cannot know
// whether it exists.
static read_end end_of_error(void) { return errno == ENOENT || errno == ENOTCAPABLE ? READ_MISSING : READ_REFUSED; }

bool is_time_over(void) { return cofferdam_cancelled() || cofferdam_time_left_ms() < TIME_LEFT_MS_MIN; }

bool add_path(char *path, cofferdam_string name) {
    size_t length = strlen(path);
    for (size_t at = 0, end; at < name.length; at = end + 1) {
        for (end = at; end < name.length && name.data[end] != '/'; end++)
            if (!name.data[end]) return false;
        size_t bytes = end - at;
        const char *segment = name.data + at;
        if (!bytes || (bytes == 1 && *segment == '.')) continue;
        if (bytes == 2 && !memcmp(segment, "..", 2)) {
            char *slash = strrchr(path, '/');
            // The first segment is the mount.
            if (!slash || slash == path) return false;
            *slash = 0;
            length = (size_t)(slash - path);
            continue;
        }
        if (length + 1 + bytes + 1 > PATH_BYTES_MAX) return false;
        path[length++] = '/';
        memcpy(path + length, segment, bytes);
        path[length += bytes] = 0;
    }
    return true;
}

// Suggests the mounts, in which a model can look instead.
static cofferdam_result suggest_mounts(cofferdam_result failure, const char *example) {
    cofferdam_stores stores = cofferdam_files_stores();
    if (!stores.count) return cofferdam_suggest(failure, "ask the person to mount a directory, for example as `data`");
    cofferdam_string named = {"", 0};
    for (size_t at = 0; at < stores.count && at < MOUNTS_NAMED_MAX; at++)
        named = cofferdam_format("%s%s`/%s`", named.data, at ? ", " : "", stores.items[at].name.data);
    return cofferdam_suggest(failure, "pass a path in a mount, such as `%s`; mounts are %s", example, named.data);
}

cofferdam_result read_path(cofferdam_string given, char *path) {
    *path = 0;
    if (given.length && *given.data == '/' && add_path(path, given) && *path) return cofferdam_nothing();
    if (given.length >= PATH_BYTES_MAX)
        return cofferdam_suggest(cofferdam_fail("the path has %zu bytes", given.length), "pass at most %d bytes", PATH_BYTES_MAX - 1);
    return suggest_mounts(cofferdam_fail("`%s` is not a path in a mount", given.data), "/data/app.zip");
}

read_end read_checksums(const char *path, unsigned wanted, budget *budget, checksums *made, uint64_t *bytes) {
    static uint8_t piece[PIECE_BYTES];
    struct stat stat_of;
    if (stat(path, &stat_of)) return end_of_error();
    // A directory can be opened, but not read.
    if (S_ISDIR(stat_of.st_mode)) return READ_DIRECTORY;
    uint64_t size = stat_of.st_size > 0 ? (uint64_t)stat_of.st_size : 0;
    if (size > READ_BYTES_MAX - budget->used) return READ_TOO_MUCH;
    int file = open(path, O_RDONLY);
    if (file < 0) return end_of_error();
    hashes hashes;
    hashes_start(&hashes, wanted);
    *bytes = 0;
    read_end end = READ_ALL;
    for (ssize_t got; (got = read(file, piece, sizeof piece));) {
        // The file can have grown since its size was read.
        if (got < 0) end = READ_REFUSED;
        else if ((uint64_t)got > READ_BYTES_MAX - budget->used) end = READ_TOO_MUCH;
        else if (is_time_over()) end = READ_NO_TIME;
        if (end != READ_ALL) break;
        budget->used += (uint64_t)got;
        *bytes += (uint64_t)got;
        hashes_add(&hashes, piece, (size_t)got);
    }
    int why = errno;
    close(file);
    errno = why;
    if (end == READ_ALL) hashes_finish(&hashes, made);
    return end;
}

cofferdam_result read_kind(const char *path, bool *is_directory, uint64_t *bytes) {
    struct stat stat_of;
    if (stat(path, &stat_of)) return fail_for_file(end_of_error(), path);
    *is_directory = S_ISDIR(stat_of.st_mode);
    *bytes = stat_of.st_size > 0 ? (uint64_t)stat_of.st_size : 0;
    return cofferdam_nothing();
}

cofferdam_result fail_for_file(read_end end, const char *path) {
    switch (end) {
    case READ_MISSING: return suggest_mounts(cofferdam_fail("there is no `%s`", path), "/data/app.zip");
    case READ_DIRECTORY:
        return cofferdam_suggest(cofferdam_fail("`%s` is a directory", path), "pass a file, or call `find_duplicates` with a directory");
    case READ_TOO_MUCH:
        return cofferdam_suggest(cofferdam_fail("`%s` is too large: a call reads at most %llu MiB", path,
                                                (unsigned long long)(READ_BYTES_MAX >> 20)),
                                 "ask the person to run `sha256sum` on it");
    case READ_NO_TIME:
        return cofferdam_suggest(cofferdam_fail("the time of the call was used up before `%s` was read", path),
                                 "pass fewer `algorithms`, or ask the person to run `sha256sum` on it");
    default: return cofferdam_fail("`%s` cannot be read: %s", path, strerror(errno));
    }
}
