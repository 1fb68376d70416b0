/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_records.c - what the processes of other ranks send: results of a prediction, and the log of a run.
 *
 *     0 [place place value]...     a good piece of results with changed bytes; place 0xFFFF cuts it off at `value`
 *     1 [eight bytes]...           records of a log; each byte is a member, small or at a limit
 *     2 ...                        records of a log as they are in memory
 */
#include <stdlib.h>
#include <string.h>

#include "gpu/exec/runtime.h"
#include "gpu/record/journal_impl.h"
#include "plan/text/parse.h"
#include "sim/predict/predict.h"
#include "targets.h"

enum { REPLICATIONS = 3, MOST_PIECES = 8, RECORD_BYTES = 8, CUT = 0xFFFF };

static const char plan_of_ranks[] =
    "swplan: 1\n"
    "name: p\n"
    "ranks: 2\n"
    "schedule:\n"
    "  A: {stage: 0, stream: a, time: 100us, jitter: exponential, shares: {sm: 0.75}}\n"
    "  B: {stage: 1, stream: b, time: 200us, shares: {sm: 0.75}}\n"
    "intra_iter_deps: [[B, A]]\n";

static const struct program_options built_as = {.driver = DRIVER_CLOCK, .iterations = 3};

/* ---- what a good rank sends -------------------------------------------------------------------- */

struct pieces {
    struct piece {
        char *data;
        size_t bytes;
    } items[MOST_PIECES];
    int count, taken;
};

struct good {
    struct plan plan;
    struct program *program;
    struct pieces sent;
};

static enum status agree(void *context, struct diag *diag)
{
    (void)context;
    (void)diag;
    return STATUS_OK;
}

static enum status keep(void *context, const void *data, size_t bytes, struct diag *diag)
{
    struct pieces *pieces = context;
    (void)diag;
    FUZZ_EXPECT(pieces->count < MOST_PIECES);
    pieces->items[pieces->count++] = (struct piece){(char *)fuzz_text(data, bytes), bytes};
    return STATUS_OK;
}

/* Made once; it lives as long as the process. */
static const struct good *good_rank(void)
{
    static struct good good;
    if (good.program)
        return &good;
    struct diag diag;
    struct prediction prediction;
    const struct result_wire wire = {
        .rank = 1, .size = 2, .context = &good.sent, .begin = agree, .send = keep};
    const struct predict_options options = {.program = built_as,
                                            .seed = 1,
                                            .replications = REPLICATIONS,
                                            .threads = 1,
                                            .exposed = EXPOSED_NEVER,
                                            .wire = &wire};
    fuzz_diag_begin(&diag);
    FUZZ_EXPECT(plan_parse("p.yaml", plan_of_ranks, sizeof plan_of_ranks - 1, &good.plan, &diag) ==
                STATUS_OK);
    FUZZ_EXPECT(predict(&good.plan, &options, &prediction, &diag) == STATUS_OK);
    prediction_fini(&prediction);
    FUZZ_EXPECT(program_build(&good.plan, &built_as, &good.program, &diag) == STATUS_OK);
    fuzz_diag_end(&diag, true);
    return &good;
}

/* ---- results ----------------------------------------------------------------------------------- */

static enum status deliver(void *context, int from, void **data, size_t *bytes, struct diag *diag)
{
    struct pieces *pieces = context;
    (void)from;
    if (pieces->taken == pieces->count)
        return diag_error(diag, STATUS_SYSTEM, "nothing more came");
    *data = pieces->items[pieces->taken].data;
    *bytes = pieces->items[pieces->taken++].bytes;
    return STATUS_OK;
}

/* Places count through all pieces. */
static void change_byte(struct pieces *pieces, size_t place, uint8_t value)
{
    if (place == CUT) {
        struct piece *first = &pieces->items[0];
        first->bytes = value < first->bytes ? value : first->bytes;
        return;
    }
    for (int i = 0; i < pieces->count; place -= pieces->items[i++].bytes)
        if (place < pieces->items[i].bytes) {
            pieces->items[i].data[place] = (char)value;
            return;
        }
}

static void gather(const uint8_t *data, size_t size)
{
    const struct good *good = good_rank();
    struct pieces pieces = {.count = good->sent.count};
    struct simulation_result results[REPLICATIONS];
    struct simulation_result *places[REPLICATIONS];
    struct diag diag;
    double cpu_seconds = 0;
    for (int i = 0; i < pieces.count; i++)
        pieces.items[i] = (struct piece){
            fuzz_text((const uint8_t *)good->sent.items[i].data, good->sent.items[i].bytes),
            good->sent.items[i].bytes};
    for (size_t at = 0; at + 3 <= size; at += 3)
        change_byte(&pieces, (size_t)data[at] << 8 | data[at + 1], data[at + 2]);
    memset(results, 0, sizeof results);
    for (int i = 0; i < REPLICATIONS; i++)
        places[i] = &results[i];
    const struct result_wire wire = {.size = 2, .context = &pieces, .receive = deliver};
    fuzz_diag_begin(&diag);
    enum status status =
        result_wire_gather(&wire, good->program, places, REPLICATIONS, &cpu_seconds, &diag);
    fuzz_diag_end(&diag, status == STATUS_OK);
    for (int i = 0; i < REPLICATIONS; i++)
        simulation_fini(&results[i]);
    for (; pieces.taken < pieces.count; pieces.taken++)
        free(pieces.items[pieces.taken].data);
}

/* ---- logs -------------------------------------------------------------------------------------- */

/* Small numbers mostly, and some at limits. */
static int64_t number_of(uint8_t byte)
{
    static const int64_t limits[] = {INT64_MAX, INT64_MIN, INT32_MAX,     INT32_MIN,
                                     -1,        1 << 20,   INT64_MAX / 2, -1000000};
    return byte < 248 ? byte : limits[byte - 248];
}

static struct log_record record_of(const uint8_t *bytes)
{
    int64_t begin_ns = number_of(bytes[6]);
    return (struct log_record){.what = bytes[0] % 4,
                               .thread = (int32_t)number_of(bytes[1]),
                               .kind = bytes[2] % 8,
                               .op = (int32_t)number_of(bytes[3]),
                               .sequence = number_of(bytes[4] & 15),
                               .iteration = number_of(bytes[4]),
                               .begin_ns = begin_ns,
                               .at_ns = begin_ns,
                               .end_ns = begin_ns,
                               .number = number_of(bytes[5]),
                               .pushed_from_ns = begin_ns,
                               .pushed_by_ns = begin_ns,
                               .start_ns = number_of(bytes[7]),
                               .stamp_end_ns = number_of(bytes[7]),
                               .since = bytes[2] & 64 ? number_of(bytes[5] / 2) : -1};
}

static void take_records(struct journal *journal, bool raw, const uint8_t *data, size_t size)
{
    if (raw) {
        journal_take(journal, data, size);
        return;
    }
    for (size_t at = 0; at + RECORD_BYTES <= size; at += RECORD_BYTES) {
        struct log_record record = record_of(data + at);
        journal_take(journal, &record, sizeof record);
    }
}

static void collect(bool raw, const uint8_t *data, size_t size)
{
    const struct good *good = good_rank();
    const struct runtime_options options = {
        .driver = DRIVER_CLOCK, .iterations = 3, .ranks = 2, .replay = true};
    const int64_t ends[] = {3, 3};
    const struct journal_end end = {.complete = true, .ends = ends, .duration_ns = 1000000};
    struct runtime_result result = {.run = -1};
    struct journal *journal;
    struct diag diag;
    diag_init(&diag);
    arena_init(&result.arena, 0);
    if (journal_open_collecting(good->program, &options, "host", 0, &journal, &diag) == STATUS_OK) {
        take_records(journal, raw, data, size);
        journal_pass(journal, 1000000);
        (void)journal_end(journal, &end, &result, &diag);
        journal_close(journal);
    }
    runtime_result_fini(&result);
    diag_fini(&diag);
}

void fuzz_records(const uint8_t *data, size_t size)
{
    if (size == 0)
        return;
    if (data[0] % 3 == 0)
        gather(data + 1, size - 1);
    else
        collect(data[0] % 3 == 2, data + 1, size - 1);
}
