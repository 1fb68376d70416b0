/* SPDX-License-Identifier: Apache-2.0 */
/* explained.c - see explained.h. */
#include "explained.h"

#include <inttypes.h>

#include "stalls.h"

enum status explained_load(struct store *store, int64_t run, struct arena *arena, struct trace *out,
                           struct diag *diag)
{
    enum status status = store_load(store, run, STORE_ALL, STORE_ALL, arena, out, diag);
    if (status != STATUS_OK)
        return status;
    if (stalls_known(&out->info)) {
        status = store_load_steps(store, out, diag);
        return status == STATUS_OK ? stalls_add(out, diag) : status;
    }
    if (!store_has_ledgers(store))
        diag_note(diag,
                  "run %" PRId64 ": why its streams were idle is not known: the store has an older "
                  "schema, without ledgers",
                  out->run);
    return STATUS_OK;
}
