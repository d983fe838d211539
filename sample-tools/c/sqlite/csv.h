// Reads the rows of CSV files.

#ifndef CSV_H
#define CSV_H

#include "cofferdam.h"

#include <stdio.h>

enum {
    CSV_COLUMNS_MAX = 500,
    CSV_ROW_BYTES_MAX = 4 << 20,
};

typedef enum csv_status {
    CSV_ROW,
    CSV_END,
    CSV_TOO_LONG,
    CSV_TOO_WIDE,
    CSV_OPEN_QUOTE,
    CSV_UNREADABLE,
    CSV_UTF16,
    CSV_ZERO,
    CSV_NOT_UTF8,
} csv_status;

// A cell. An empty cell without quotes is null, which has no data.
typedef cofferdam_string csv_cell;

typedef struct csv_reader {
    FILE *file;
    char delimiter;
    // Line of the row that was read last, from 1.
    int64_t line;
    size_t count;
    csv_cell cells[CSV_COLUMNS_MAX];
    // The rest is internal.
    int64_t next_line;
    bool is_utf16;
    size_t length, capacity;
    char *bytes;
    size_t starts[CSV_COLUMNS_MAX];
    bool quoted[CSV_COLUMNS_MAX];
} csv_reader;

// Begins to read a file, after a byte order mark.
void csv_begin(csv_reader *reader, FILE *file, char delimiter);

// Reads the next row that is not blank into `cells`, which are valid until the next call. After an
// error, nothing more can be read.
csv_status csv_next(csv_reader *reader);

// Returns the message of an error.
const char *csv_message(csv_status status);

// Returns what to do about an error, or NULL.
const char *csv_suggestion(csv_status status);

#endif
