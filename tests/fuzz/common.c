/* SPDX-License-Identifier: Apache-2.0 */
/* common.c - see targets.h. */
#include "targets.h"

#include <stdlib.h>
#include <string.h>

#include "gpu/net/rendezvous.h"
#include "base/diag.h"
#include "plan/text/parse.h"
#include "plan/text/print.h"

_Noreturn void fuzz_contradiction(const char *condition, const char *file, int line)
{
    fprintf(stderr, "%s:%d: contradiction: expected %s\n", file, line, condition);
    abort();
}

char *fuzz_text(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    FUZZ_EXPECT(text);
    if (size)
        memcpy(text, data, size);
    text[size] = '\0';
    return text;
}

FILE *fuzz_sink(void)
{
    static FILE *sink;
    if (!sink)
        sink = fopen("/dev/null", "w");
    FUZZ_EXPECT(sink);
    return sink;
}

void fuzz_diag_begin(struct diag *diag)
{
    diag_init(diag);
}

void fuzz_diag_end(struct diag *diag, bool success)
{
    FUZZ_EXPECT(success || diag->errors > 0 || diag->out_of_memory);
    FUZZ_EXPECT(!success || diag->errors == 0);
    diag_print(diag, "fuzz", true, fuzz_sink());
    diag_fini(diag);
}

void fuzz_ask(struct rendezvous *member)
{
    struct diag diag;
    char value[16];
    size_t bytes = sizeof value;
    diag_init(&diag);
    (void)rendezvous_get(member, "k", value, &bytes, 0, &diag);
    (void)rendezvous_gone(member);
    diag_fini(&diag);
}

void fuzz_print_again(const struct plan *plan)
{
    struct diag diag;
    struct plan again;
    char *first = NULL, *second = NULL;
    fuzz_diag_begin(&diag);
    FUZZ_EXPECT(plan_text(plan, &first, &diag) == STATUS_OK);
    FUZZ_EXPECT(plan_parse("again.yaml", first, strlen(first), &again, &diag) == STATUS_OK);
    FUZZ_EXPECT(plan_text(&again, &second, &diag) == STATUS_OK && strcmp(first, second) == 0);
    plan_fini(&again);
    free(first);
    free(second);
    fuzz_diag_end(&diag, true);
}
