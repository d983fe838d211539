// Values into statements, and rows into JSON.

#ifndef ROWS_H
#define ROWS_H

#include "cofferdam.h"
#include "sqlite3.h"

// Binds texts, numbers, truth values and nulls to `?` in their order. A result without failure if that went well.
cofferdam_result bind(sqlite3_stmt *statement, const cofferdam_value *parameters);

// Steps through a statement and adds the members `columns`, `rows` and `truncated` to an object. SQLITE_DONE or SQLITE_ROW, or
// an error of SQLite.
int add_rows(cofferdam_writer *json, sqlite3_stmt *statement, int64_t rows_max);

#endif
