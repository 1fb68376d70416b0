/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_list.h - the runs of a trace store, and the ledger of one of them, as text and as JSON; for `swsim runs` and
 * libswsim alike.
 */
#ifndef SWSIM_RUN_LIST_H
#define SWSIM_RUN_LIST_H

#include <stdio.h>

#include "base/arena.h"
#include "base/json.h"
#include "trace/store.h"

/* A row for each run, below a head; *count: how many. */
enum status run_list_print(struct store *store, FILE *out, size_t *count, struct diag *diag);
/* One JSON object a run; its keys are a contract. */
enum status run_list_write(struct store *store, struct json *json, struct diag *diag);

/* The ledger of a run (STORE_LATEST: the newest that has one), causes of idle time in order of stream and time, in `arena`.
   STATUS_INPUT: it has none. */
enum status run_ledger_load(struct store *store, int64_t run, struct arena *arena,
                            struct trace *out, struct diag *diag);
void run_ledger_print(const struct trace *trace, FILE *out);
/* One JSON object; its keys are a contract. */
void run_ledger_write(const struct trace *trace, struct json *json);

#endif
