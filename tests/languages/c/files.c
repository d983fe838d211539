// File operations with the C library: stdio, and the functions of POSIX below it.

#include "component.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { WORDS_MAX = 6, FILES_MAX = 8, NAMES_MAX = 256, BLOCK_BYTES = 65536 };

static FILE *streams[FILES_MAX];
static int stream_count;
static int descriptors[FILES_MAX];
static int descriptor_count;

void *cabi_realloc(void *old, size_t old_bytes, size_t align, size_t bytes) {
    (void)old_bytes, (void)align;
    return realloc(old, bytes);
}

static char *say(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    char *said = NULL;
    if (vasprintf(&said, format, arguments) < 0) abort();
    va_end(arguments);
    return said;
}

static const struct {
    int number;
    const char *name;
} ERRORS[] = {
    {EACCES, "EACCES"}, {EBADF, "EBADF"},   {EBUSY, "EBUSY"},         {EDQUOT, "EDQUOT"},   {EEXIST, "EEXIST"},
    {EFBIG, "EFBIG"},   {EINVAL, "EINVAL"}, {EIO, "EIO"},             {EISDIR, "EISDIR"},   {EMLINK, "EMLINK"},
    {ENOENT, "ENOENT"}, {ENOSPC, "ENOSPC"}, {ENOTCAPABLE, "ENOTCAPABLE"}, {ENOTDIR, "ENOTDIR"}, {ENOTEMPTY, "ENOTEMPTY"},
    {ENOTSUP, "ENOTSUP"}, {EPERM, "EPERM"}, {EROFS, "EROFS"},         {EXDEV, "EXDEV"},     {ENAMETOOLONG, "ENAMETOOLONG"},
};

static char *failed(void) {
    for (size_t at = 0; at < sizeof ERRORS / sizeof *ERRORS; at++)
        if (ERRORS[at].number == errno) return say("%s", ERRORS[at].name);
    return say("errno %d: %s", errno, strerror(errno));
}

static char *done(bool is_done) { return is_done ? say("done") : failed(); }

static char *hex(const unsigned char *bytes, size_t length) {
    char *shown = calloc(2 * length + 1, 1);
    for (size_t at = 0; at < length; at++) sprintf(shown + 2 * at, "%02x", bytes[at]);
    return shown;
}

static FILE *stream(const char *number) { return streams[atoi(number) % FILES_MAX]; }
static int descriptor(const char *number) { return descriptors[atoi(number) % FILES_MAX]; }

static char *kind_and_size(const struct stat *stat) {
    if (S_ISDIR(stat->st_mode)) return say("directory");
    return S_ISREG(stat->st_mode) ? say("file %lld", (long long)stat->st_size) : say("other");
}

// Streams.

static char *open_stream(const char *mode, const char *path) {
    FILE *file = fopen(path, mode);
    if (!file) return failed();
    if (stream_count == FILES_MAX) abort();
    streams[stream_count] = file;
    return say("%d", stream_count++);
}

// What a buffer holds back is written at the latest here, so that its errors are told here.
static char *close_stream(FILE *file) { return done(fclose(file) == 0); }

static char *get(FILE *file, size_t length) {
    char *bytes = calloc(length + 1, 1);
    size_t got = fread(bytes, 1, length, file);
    if (got == 0 && ferror(file)) return clearerr(file), failed();
    return bytes;
}

static char *line(FILE *file) {
    char *bytes = calloc(BLOCK_BYTES, 1);
    if (!fgets(bytes, BLOCK_BYTES, file)) return ferror(file) ? failed() : say("end");
    bytes[strcspn(bytes, "\n")] = 0;
    return bytes;
}

static char *seek(FILE *file, long offset, const char *whence) {
    int from = !strcmp(whence, "end") ? SEEK_END : !strcmp(whence, "current") ? SEEK_CUR : SEEK_SET;
    return fseek(file, offset, from) ? failed() : say("%ld", ftell(file));
}

static char *stream_stat(FILE *file) {
    struct stat stat;
    return fstat(fileno(file), &stat) ? failed() : kind_and_size(&stat);
}

// Formatted, as numbers of a line.
static char *scan(FILE *file) {
    int one, other;
    return fscanf(file, "%d %d", &one, &other) == 2 ? say("%d", one + other) : say("no numbers");
}

// A character that was read is given back, and read again.
static char *peek(FILE *file) {
    int character = fgetc(file);
    if (character == EOF || ungetc(character, file) == EOF) return say("end");
    return say("%c at %ld", character, ftell(file));
}

// Descriptors.

static char *open_descriptor(const char *flags, const char *path) {
    int mode = strchr(flags, 'r') ? (strchr(flags, 'w') ? O_RDWR : O_RDONLY) : O_WRONLY;
    if (strchr(flags, 'a')) mode |= O_APPEND;
    if (strchr(flags, 'c')) mode |= O_CREAT;
    if (strchr(flags, 'x')) mode |= O_EXCL;
    if (strchr(flags, 't')) mode |= O_TRUNC;
    if (strchr(flags, 'd')) mode |= O_DIRECTORY;
    int number = open(path, mode, 0666);
    if (number < 0) return failed();
    if (descriptor_count == FILES_MAX) abort();
    descriptors[descriptor_count] = number;
    return say("%d", descriptor_count++);
}

static char *read_at(int from, size_t length, off_t offset) {
    char *bytes = calloc(length + 1, 1);
    return pread(from, bytes, length, offset) < 0 ? failed() : bytes;
}

static char *write_at(int to, const char *content, off_t offset) {
    ssize_t written = pwrite(to, content, strlen(content), offset);
    return written < 0 ? failed() : say("%zd", written);
}

static char *write_now(int to, const char *content) {
    ssize_t written = write(to, content, strlen(content));
    return written < 0 ? failed() : say("%zd", written);
}

static char *sync_both(int of) { return done(fsync(of) == 0 && fdatasync(of) == 0); }

// Paths.

static int by_name(const void *one, const void *other) { return strcmp(*(char *const *)one, *(char *const *)other); }

static char *list(const char *path) {
    DIR *directory = opendir(path);
    if (!directory) return failed();
    char *names[NAMES_MAX];
    size_t count = 0, bytes = 1;
    errno = 0;
    for (struct dirent *entry; count < NAMES_MAX && (entry = readdir(directory));) {
        if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..")) continue;
        names[count] = say("%s%s", entry->d_name, entry->d_type == DT_DIR ? "/" : "");
        bytes += strlen(names[count++]) + 1;
    }
    if (errno) return failed();
    closedir(directory);
    qsort(names, count, sizeof *names, by_name);
    char *shown = calloc(bytes, 1);
    for (size_t at = 0; at < count; at++) strcat(strcat(shown, at ? " " : ""), names[at]);
    return shown;
}

static char *status(const char *path) {
    struct stat stat_of;
    return stat(path, &stat_of) ? failed() : kind_and_size(&stat_of);
}

static char *is_new(const char *path) {
    struct stat stat_of;
    if (stat(path, &stat_of)) return failed();
    time_t age = time(NULL) - stat_of.st_mtime;
    return say(0 <= age && age < 60 ? "true" : "false");
}

static char *is_same(const char *path, const char *other_path) {
    struct stat one, other;
    if (stat(path, &one) || stat(other_path, &other)) return failed();
    return say(one.st_ino == other.st_ino && one.st_dev == other.st_dev ? "true" : "false");
}

static char *truncate_at(const char *path, off_t bytes) { return done(truncate(path, bytes) == 0); }

static char *working_directory(void) {
    char path[4096];
    return getcwd(path, sizeof path) ? say("%s", path) : failed();
}

// Whole files.

static unsigned char byte_at(unsigned long at) { return (unsigned char)(at * 31 + (at >> 8)); }

// Bytes of every value, in pieces that fit no block.
static char *fill(const char *path, unsigned long length) {
    FILE *file = fopen(path, "wb");
    if (!file) return failed();
    unsigned char piece[4999];
    for (unsigned long at = 0; at < length;) {
        size_t count = 0;
        while (count < sizeof piece && at + count < length) piece[count] = byte_at(at + count), count++;
        if (fwrite(piece, 1, count, file) != count) return failed();
        at += count;
    }
    return close_stream(file);
}

static char *verify(const char *path) {
    FILE *file = fopen(path, "rb");
    if (!file) return failed();
    unsigned char piece[7001];
    unsigned long at = 0;
    for (size_t count; (count = fread(piece, 1, sizeof piece, file));)
        for (size_t index = 0; index < count; index++, at++)
            if (piece[index] != byte_at(at)) return say("byte %lu differs", at);
    return ferror(file) ? failed() : (fclose(file), say("%lu", at));
}

static char *show(const char *path) {
    FILE *file = fopen(path, "rb");
    if (!file) return failed();
    unsigned char bytes[512];
    size_t length = fread(bytes, 1, sizeof bytes, file);
    return ferror(file) ? failed() : (fclose(file), hex(bytes, length));
}

static char *run(char **words) {
    const char *what = words[0], *a = words[1], *b = words[2], *c = words[3];
#define STEP(name) if (!strcmp(what, name))
    STEP("open") return open_stream(a, b);
    STEP("close") return close_stream(stream(a));
    STEP("get") return get(stream(a), strtoul(b, NULL, 10));
    STEP("put") return done(fputs(b, stream(a)) >= 0);
    STEP("line") return line(stream(a));
    STEP("seek") return seek(stream(a), atol(b), c);
    STEP("tell") return say("%ld", ftell(stream(a)));
    STEP("flush") return done(fflush(stream(a)) == 0);
    STEP("cut") return done(ftruncate(fileno(stream(a)), atol(b)) == 0);
    STEP("status_of") return stream_stat(stream(a));
    STEP("scan") return scan(stream(a));
    STEP("peek") return peek(stream(a));
    STEP("os_open") return open_descriptor(a, b);
    STEP("os_close") return done(close(descriptor(a)) == 0);
    STEP("os_write") return write_now(descriptor(a), b);
    STEP("pread") return read_at(descriptor(a), strtoul(b, NULL, 10), atol(c));
    STEP("pwrite") return write_at(descriptor(a), b, atol(c));
    STEP("sync") return sync_both(descriptor(a));
    STEP("truncate") return truncate_at(a, atol(b));
    STEP("status") return status(a);
    STEP("is_new") return is_new(a);
    STEP("same") return is_same(a, b);
    STEP("exists") return say(access(a, F_OK) ? "false" : "true");
    STEP("make") return done(mkdir(a, 0777) == 0);
    STEP("remove_directory") return done(rmdir(a) == 0);
    STEP("rename") return done(rename(a, b) == 0);
    STEP("unlink") return done(unlink(a) == 0);
    STEP("remove") return done(remove(a) == 0);
    STEP("symlink") return done(symlink(a, b) == 0);
    STEP("link") return done(link(a, b) == 0);
    STEP("list") return list(a);
    STEP("fill") return fill(a, strtoul(b, NULL, 10));
    STEP("verify") return verify(a);
    STEP("show") return show(a);
    STEP("cwd") return working_directory();
    STEP("chdir") return done(chdir(a) == 0);
    STEP("crash") abort();
    return say("no such step: %s", what);
}

static char *copy(text word) {
    char *end = calloc(word.length + 1, 1);
    return memcpy(end, word.bytes, word.length);
}

result *files(texts *items, size_t length) {
    static result answer;
    text *answers = calloc(length, sizeof *answers);
    for (size_t step = 0; step < length; step++) {
        char *words[WORDS_MAX] = {"", "", "", "", "", ""};
        for (size_t at = 0; at < items[step].length && at < WORDS_MAX; at++) words[at] = copy(items[step].items[at]);
        if (!strcmp(words[0], "fail")) {
            answer = (result){.is_error = 1, .at = "as asked", .length = strlen("as asked")};
            return &answer;
        }
        char *said = run(words);
        answers[step] = (text){.bytes = said, .length = strlen(said)};
    }
    answer = (result){.is_error = 0, .at = answers, .length = length};
    return &answer;
}
