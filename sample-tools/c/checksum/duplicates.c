// The tool `find_duplicates`: files with the same content. Sizes are compared first, because that
// needs no reading.

#include "files.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum {
    // Maximum number of files and directories, including directories that are not read yet.
    SEEN_MAX = 50000,
    PATHS_BYTES_MAX = 8 << 20,
    // Maximum number of files and of unreadable paths in the result.
    FILES_TOLD_MAX = 100,
    UNREADABLE_TOLD_MAX = 20,
    ANSWER_BYTES_MAX = 192 << 10,
};

typedef struct found_file {
    const char *path;
    uint64_t bytes;
    char sha256[HEX_BYTES_MAX];
} found_file;

typedef struct group {
    const found_file *files;
    size_t count;
} group;

typedef struct walk {
    found_file *files; // SEEN_MAX elements
    size_t file_count;
    const char **directories; // directories still to be read, the newest last
    size_t directory_count;
    size_t seen, paths_bytes;
    int64_t bytes_min, bytes_max;
    const char *unreadable[UNREADABLE_TOLD_MAX];
    size_t unreadable_count;
} walk;

static void add_unreadable(walk *walk, const char *path) {
    if (walk->unreadable_count < UNREADABLE_TOLD_MAX) walk->unreadable[walk->unreadable_count] = path;
    walk->unreadable_count++;
}

static void look_at(walk *walk, const char *path) {
    struct stat stat_of;
    if (stat(path, &stat_of)) {
        add_unreadable(walk, path);
    } else if (S_ISDIR(stat_of.st_mode)) {
        walk->directories[walk->directory_count++] = path;
    } else if (stat_of.st_size >= walk->bytes_min && stat_of.st_size <= walk->bytes_max) {
        walk->files[walk->file_count++] = (found_file){.path = path, .bytes = (uint64_t)stat_of.st_size};
    }
}

static cofferdam_result read_directory(walk *walk, const char *directory) {
    DIR *open = opendir(directory);
    if (!open) {
        add_unreadable(walk, directory);
        return cofferdam_nothing();
    }
    cofferdam_result result = cofferdam_nothing();
    for (struct dirent *entry; !result.failure && (entry = readdir(open));) {
        if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..")) continue;
        size_t bytes = strlen(directory) + 1 + strlen(entry->d_name) + 1;
        // Checked before anything is stored, so that there is room.
        if (++walk->seen > SEEN_MAX) {
            result = cofferdam_suggest(
                cofferdam_fail("there are more than %d files and directories below this directory", SEEN_MAX),
                "pass one of the directories below it");
        } else if (walk->paths_bytes + bytes > PATHS_BYTES_MAX) {
            result = cofferdam_suggest(cofferdam_fail("the paths below this directory have more than %d bytes together", PATHS_BYTES_MAX),
                                       "pass one of the directories below it");
        } else if (walk->seen % 1024 == 0 && is_time_over()) {
            result = cofferdam_suggest(cofferdam_fail("the time of the call was used up after %zu files and directories", walk->seen),
                                       "pass one of the directories below it");
        } else {
            walk->paths_bytes += bytes;
            look_at(walk, cofferdam_format("%s/%s", directory, entry->d_name).data);
        }
    }
    closedir(open);
    return result;
}

// Sorts the largest first, so that the result begins with the most expensive groups if it is cut.
static int by_size(const void *one, const void *other) {
    const found_file *first = one, *second = other;
    if (first->bytes != second->bytes) return first->bytes < second->bytes ? 1 : -1;
    int order = strcmp(first->sha256, second->sha256);
    return order ? order : strcmp(first->path, second->path);
}

static uint64_t superfluous(const group *group) { return (group->count - 1) * group->files->bytes; }

static int by_superfluous(const void *one, const void *other) {
    uint64_t first = superfluous(one), second = superfluous(other);
    if (first != second) return first < second ? 1 : -1;
    return strcmp(((const group *)one)->files->path, ((const group *)other)->files->path);
}

// Computes the checksums of files that share their size with another file.
static cofferdam_result read_files(walk *walk) {
    budget budget = {0};
    for (size_t at = 0; at < walk->file_count; at++) {
        found_file *file = &walk->files[at];
        bool is_alone = (!at || file[-1].bytes != file->bytes) && (at + 1 == walk->file_count || file[1].bytes != file->bytes);
        if (is_alone) continue;
        checksums made;
        uint64_t bytes = 0;
        read_end end = read_checksums(file->path, SHA256, &budget, &made, &bytes);
        if (end == READ_TOO_MUCH || end == READ_NO_TIME)
            return cofferdam_suggest(cofferdam_fail("%s: files that have a size in common are read, %llu MiB of them at most",
                                                    end == READ_NO_TIME ? "the time was used up" : "there is too much to read",
                                                    (unsigned long long)(READ_BYTES_MAX >> 20)),
                                     "pass one of the directories below it, or `bytes_max`: %llu", (unsigned long long)file->bytes - 1);
        // The file has changed since its size was read.
        if (end != READ_ALL || bytes != file->bytes) add_unreadable(walk, file->path);
        else memcpy(file->sha256, made.sha256, sizeof file->sha256);
        cofferdam_progress((double)(at + 1), (double)walk->file_count, (cofferdam_string){0});
    }
    return cofferdam_nothing();
}

// Makes groups of files that are sorted by size and checksum. There are at most half as many groups
// as files.
static size_t make_groups(const walk *walk, group *groups) {
    size_t count = 0;
    for (size_t from = 0, to; from < walk->file_count; from = to) {
        const found_file *first = &walk->files[from];
        for (to = from + 1; to < walk->file_count; to++)
            if (walk->files[to].bytes != first->bytes || strcmp(walk->files[to].sha256, first->sha256)) break;
        if (*first->sha256 && to - from > 1) groups[count++] = (group){first, to - from};
    }
    qsort(groups, count, sizeof *groups, by_superfluous);
    return count;
}

static void add_group(cofferdam_writer *json, const group *group) {
    cofferdam_begin_object(json, NULL);
    cofferdam_add_integer(json, "bytes", (int64_t)group->files->bytes);
    cofferdam_add_text(json, "sha256", group->files->sha256);
    cofferdam_add_integer(json, "count", (int64_t)group->count);
    cofferdam_begin_array(json, "files");
    for (size_t at = 0; at < group->count && at < FILES_TOLD_MAX && json->length < ANSWER_BYTES_MAX; at++)
        cofferdam_add_text(json, NULL, group->files[at].path);
    cofferdam_end(json);
    cofferdam_end(json);
}

COFFERDAM_TOOL(find_duplicates,
               "Finds files of the same content below a directory of a mount, by size first and then by SHA-256. What would free most "
               "comes first. Nothing is deleted.",
               COFFERDAM_TITLE("Find duplicate files"), COFFERDAM_READ_ONLY, COFFERDAM_IDEMPOTENT, COFFERDAM_IS_OPEN_WORLD(false),
               COFFERDAM_STRING(directory, "The directory in a mount, such as `/data/photos`; those below it are looked at too."),
               COFFERDAM_INTEGER_IN_OR(bytes_min, "Smaller files are left out.", 0, INT64_C(1) << 50, 1),
               COFFERDAM_INTEGER_IN_OR(bytes_max, "Larger files are left out.", 0, INT64_C(1) << 50, INT64_C(1) << 50),
               COFFERDAM_INTEGER_IN_OR(groups_max, "Maximum number of groups of files are told.", 1, 1000, 100),
               COFFERDAM_OUTPUT(COFFERDAM_SCHEMA({
                   "type": "object",
                   "properties": {
                       "groups": {
                           "type": "array",
                           "items": {
                               "type": "object",
                               "properties": {
                                   "bytes": {"type": "integer", "description": "The size of each file."},
                                   "sha256": {"type": "string", "description": "The checksum of each file."},
                                   "count": {"type": "integer", "description": "How many files are the same."},
                                   "files": {"type": "array", "items": {"type": "string"}, "description": "Their paths, at most 100."}
                               },
                               "required": ["bytes", "sha256", "count", "files"]
                           }
                       },
                       "files_compared": {"type": "integer", "description": "How many files were found of a size that was asked for."},
                       "superfluous_files": {"type": "integer", "description": "How many could go if one of each group stays."},
                       "superfluous_bytes": {"type": "integer", "description": "How much that would free."},
                       "unreadable": {"type": "array", "items": {"type": "string"}, "description": "What could not be read, at most 20."},
                       "truncated": {"type": "boolean", "description": "Whether there is more than is told."}
                   },
                   "required": ["groups", "files_compared", "superfluous_files", "superfluous_bytes", "unreadable", "truncated"]
               }))) {
    char path[PATH_BYTES_MAX];
    cofferdam_result wrong = read_path(arguments->directory, path);
    if (wrong.failure) return wrong;
    if (arguments->bytes_min > arguments->bytes_max)
        return cofferdam_suggest(cofferdam_fail("`bytes_min` is larger than `bytes_max`"), "pass the smaller size as `bytes_min`");
    bool is_directory;
    uint64_t size;
    wrong = read_kind(path, &is_directory, &size);
    if (wrong.failure) return wrong;
    if (!is_directory)
        return cofferdam_suggest(cofferdam_fail("`%s` is a file", path), "pass a directory, or call `checksum` with the file");
    walk walk = {
        .files = cofferdam_allocate(SEEN_MAX * sizeof *walk.files),
        .directories = cofferdam_allocate((SEEN_MAX + 1) * sizeof *walk.directories),
        .bytes_min = arguments->bytes_min,
        .bytes_max = arguments->bytes_max,
    };
    walk.directories[walk.directory_count++] = path;
    while (walk.directory_count) {
        wrong = read_directory(&walk, walk.directories[--walk.directory_count]);
        if (wrong.failure) return wrong;
    }
    qsort(walk.files, walk.file_count, sizeof *walk.files, by_size);
    wrong = read_files(&walk);
    if (wrong.failure) return wrong;
    qsort(walk.files, walk.file_count, sizeof *walk.files, by_size);
    group *groups = cofferdam_allocate((walk.file_count / 2 + 1) * sizeof *groups);
    size_t count = make_groups(&walk, groups), told = 0;

    cofferdam_writer json = {0};
    cofferdam_begin_object(&json, NULL);
    cofferdam_begin_array(&json, "groups");
    bool is_truncated = walk.unreadable_count > UNREADABLE_TOLD_MAX;
    uint64_t files = 0, bytes = 0;
    for (size_t at = 0; at < count; at++) {
        files += groups[at].count - 1;
        bytes += superfluous(&groups[at]);
        if (groups[at].count > FILES_TOLD_MAX) is_truncated = true;
        if (told == (size_t)arguments->groups_max || json.length >= ANSWER_BYTES_MAX) continue;
        add_group(&json, &groups[at]);
        told++;
    }
    is_truncated |= told < count || json.length >= ANSWER_BYTES_MAX;
    cofferdam_end(&json);
    cofferdam_add_integer(&json, "files_compared", (int64_t)walk.file_count);
    cofferdam_add_integer(&json, "superfluous_files", (int64_t)files);
    cofferdam_add_integer(&json, "superfluous_bytes", (int64_t)bytes);
    cofferdam_begin_array(&json, "unreadable");
    for (size_t at = 0; at < walk.unreadable_count && at < UNREADABLE_TOLD_MAX; at++)
        cofferdam_add_text(&json, NULL, walk.unreadable[at]);
    cofferdam_end(&json);
    cofferdam_add_boolean(&json, "truncated", is_truncated);
    return cofferdam_json(&json);
}
