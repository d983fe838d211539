// Files of mounts: paths that stay inside, and checksums of content that is read in pieces.

#ifndef FILES_H
#define FILES_H

#include "cofferdam.h"
#include "hashes.h"

enum { PATH_BYTES_MAX = 4096 };

// Maximum bytes of files that a call reads. All checksums of that need about half of the default
// CPU time of a call.
#define READ_BYTES_MAX (UINT64_C(256) << 20)

typedef enum read_end { READ_ALL, READ_MISSING, READ_DIRECTORY, READ_REFUSED, READ_TOO_MUCH, READ_NO_TIME } read_end;

// Bytes that a call has read so far.
typedef struct budget {
    uint64_t used;
} budget;

// Appends `name` to the path in `path`, which is empty or `/MOUNT…` and has room for PATH_BYTES_MAX
// bytes. Resolves `.` and `..` lexically. Returns false if the path would leave the mount, is too
// long, or contains U+0000; then the content of `path` is unspecified.
bool add_path(char *path, cofferdam_string name);

// Resolves `.` and `..` in a path from a model. Returns a failure if the path is invalid.
cofferdam_result read_path(cofferdam_string given, char *path);

// Computes the checksums of a file. With READ_REFUSED, `errno` contains the reason.
read_end read_checksums(const char *path, unsigned wanted, budget *budget, checksums *made, uint64_t *bytes);

// Returns whether the path is a directory, or else the file's size. Returns a failure if nothing is
// there.
cofferdam_result read_kind(const char *path, bool *is_directory, uint64_t *bytes);

// Returns the failure of a tool that could not read a file it needs.
cofferdam_result fail_for_file(read_end end, const char *path);

// Returns whether the result must be returned now because little time is left.
bool is_time_over(void);

#endif
