// Opens a database of a mount, for reading or for changes, and reports errors.

#ifndef DATABASE_H
#define DATABASE_H

#include "cofferdam.h"
#include "sqlite3.h"

enum access { READING, CHANGING, CREATING };

// An open database or the failure to return; the other one is NULL. Databases are not closed,
// because the instance ends with the call.
typedef struct opened {
    sqlite3 *database;
    cofferdam_result failure;
} opened;

opened open_database(cofferdam_string path, enum access access);

// Returns SQLite's last error as a failure with a message for a model.
cofferdam_result failure_of(sqlite3 *database, enum access access);

// Returns whether a call should end now to be able to report its end.
bool is_time_over(void);

// Compiles the first statement of `sql`. Sets it to NULL and returns SQLITE_OK if only blanks and
// comments are left.
int compile(sqlite3 *database, cofferdam_string sql, sqlite3_stmt **statement, cofferdam_string *rest);

#endif
