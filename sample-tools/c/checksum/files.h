// Files of mounts: paths that stay inside, and checksums of a content that is read in pieces.

#ifndef FILES_H
#define FILES_H

#include "cofferdam.h"
#include "hashes.h"

enum { PATH_BYTES_MAX = 4096 };

// What one call reads of files at most. All checksums of that take about half of the CPU time that a call has by default.
#define READ_BYTES_MAX (UINT64_C(256) << 20)

typedef enum read_end { READ_ALL, READ_MISSING, READ_DIRECTORY, READ_REFUSED, READ_TOO_MUCH, READ_NO_TIME } read_end;

// What a call has read so far.
typedef struct budget {
    uint64_t used;
} budget;

// Puts `name` behind the path in `path`, which is empty or `/MOUNT…` and has room for PATH_BYTES_MAX bytes. `.` and `..` are worked
// out here, by the text alone. False if that would leave the mount, is too long, or holds U+0000; then `path` is spoilt.
bool add_path(char *path, cofferdam_string name);

// The path that a model gave, without `.` and `..`. A failure if it is none.
cofferdam_result read_path(cofferdam_string given, char *path);

// Computes the checksums of a file. With READ_REFUSED `errno` says why.
read_end read_checksums(const char *path, unsigned wanted, budget *budget, checksums *made, uint64_t *bytes);

// Whether there is a directory or a file of so many bytes. A failure if there is nothing.
cofferdam_result read_kind(const char *path, bool *is_directory, uint64_t *bytes);

// The failure of a tool that needs this file and did not get it.
cofferdam_result fail_for_file(read_end end, const char *path);

// Whether so little time is left that the answer has to be given now.
bool is_time_over(void);

#endif
