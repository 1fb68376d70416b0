/* SPDX-License-Identifier: Apache-2.0 */
/*
 * foreign_sql.h - files of SQLite that may come from a stranger: trace stores, exports of profilers.
 *
 * https://sqlite.org/security.html, "Untrusted SQLite Database Files".
 */
#ifndef SWSIM_FOREIGN_SQL_H
#define SWSIM_FOREIGN_SQL_H

#include <sqlite3.h>
#include <stdbool.h>

/* Before the first statement. An older SQLite refuses an option that it does not know, and does without. False: the
   settings could not be made, for which sqlite3_errcode has the reason. */
bool foreign_sql_distrust(sqlite3 *db);

#endif
