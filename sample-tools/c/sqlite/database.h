// Opening a database of a mount, for reading or for changes, and what goes wrong with it.

#ifndef DATABASE_H
#define DATABASE_H

#include "cofferdam.h"
#include "sqlite3.h"

enum access { READING, CHANGING, CREATING };

// A database that is open, or the failure to return: one of them is NULL. Nothing is closed: the instance ends with the call.
typedef struct opened {
    sqlite3 *database;
    cofferdam_result failure;
} opened;

opened open_database(cofferdam_string path, enum access access);

// What SQLite says about its last error, in words for a model.
cofferdam_result failure_of(sqlite3 *database, enum access access);

// Compiles the first statement of `sql`. NULL and SQLITE_OK when only blanks and comments are left.
int compile(sqlite3 *database, cofferdam_string sql, sqlite3_stmt **statement, cofferdam_string *rest);

#endif
