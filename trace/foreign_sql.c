/* SPDX-License-Identifier: Apache-2.0 */
/* foreign_sql.c - see foreign_sql.h. */
#include "foreign_sql.h"

#include <stddef.h>

enum { MAX_VALUE_BYTES = 256 << 20 /* of a text in a row */ };

bool foreign_sql_distrust(sqlite3 *db)
{
    (void)sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    (void)sqlite3_db_config(db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    (void)sqlite3_limit(db, SQLITE_LIMIT_LENGTH, MAX_VALUE_BYTES);
    return sqlite3_exec(db, "PRAGMA cell_size_check = ON; PRAGMA mmap_size = 0", NULL, NULL,
                        NULL) == SQLITE_OK;
}
