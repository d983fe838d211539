// Binds values to statements, and writes rows as JSON.

#ifndef ROWS_H
#define ROWS_H

#include "cofferdam.h"
#include "sqlite3.h"

// Binds strings, numbers, booleans and nulls to `?` in order. Returns a result without a failure on
// success.
cofferdam_result bind(sqlite3_stmt *statement, const cofferdam_value *parameters);

// Maximum bytes of a cell for a model. A larger cell would displace all others.
enum { CELL_BYTES_MAX = 16 << 10 };

typedef struct row_limits {
    int64_t rows_max;
    // Maximum bytes of a cell; a longer text is cut, and a longer blob has its length only.
    size_t bytes_max;
} row_limits;

// Runs a statement and adds the members `columns`, `rows` and `truncated` to an object. Returns
// SQLITE_DONE, SQLITE_ROW, or an error of SQLite.
int add_rows(cofferdam_writer *json, sqlite3_stmt *statement, row_limits limits);

// Adds the member `columns` with the columns of a table or view. Returns SQLITE_DONE or an error of
// SQLite.
int add_table_columns(cofferdam_writer *json, sqlite3 *database, const char *table);

#endif
