/* SPDX-License-Identifier: Apache-2.0 */
/* copy.c - see copy.h. */
#include "copy.h"

#include <stdlib.h>
#include <string.h>

#include "parse.h"
#include "print.h"

enum status plan_copy(const struct plan *plan, const char *name, struct plan *out,
                      const char **text, struct diag *diag)
{
    char *printed;
    enum status status = plan_text(plan, &printed, diag);
    if (status == STATUS_OK)
        status = plan_parse(name, printed, strlen(printed), out, diag);
    if (status == STATUS_OK && !(*text = arena_strdup(&out->arena, printed))) {
        plan_fini(out);
        status = diag_no_memory(diag);
    }
    free(printed);
    return status;
}
