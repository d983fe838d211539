// Binds values to statements, and writes rows as JSON.

#ifndef ROWS_H
#define ROWS_H

#include "cofferdam.h"
#include "sqlite3.h"

// Binds strings, numbers, booleans and nulls to `?` in order. Returns a result without a failure on
// success.
cofferdam_result bind(sqlite3_stmt *statement, const cofferdam_value *parameters);

// Runs a statement and adds the members `columns`, `rows` and `truncated` to an object. Returns
// SQLITE_DONE, SQLITE_ROW, or an error of SQLite.
int add_rows(cofferdam_writer *json, sqlite3_stmt *statement, int64_t rows_max);

#endif
