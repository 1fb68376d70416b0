/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_dump.c - a dump of the flight recorder as pickle. One that is read becomes a plan whose text reads back as
 * itself; the same document twice is two ranks, or is refused.
 *
 * For `stand` the input is read as stacks, as counts and as a log of a job that hangs.
 */
#include <stdlib.h>
#include <string.h>

#include "trace/import/flight.h"
#include "trace/import/standstill.h"
#include "trace/job/host_form.h"
#include "targets.h"

static enum status make_plan(const struct value *root, size_t count, struct arena *arena,
                             struct diag *diag)
{
    const struct flight_dump dumps[] = {{"one", flight_rank(root, "nccl_trace_rank_0"), root},
                                        {"two", 1, root}};
    const struct flight_options options = {
        .name = "fuzz", .host_waits = count > 1, .sm_slots = (int64_t)count - 1};
    struct flight_job job;
    struct job threads;
    struct plan plan;
    job_init(&threads);
    enum status status = flight_read(dumps, count, arena, &job, diag);
    if (status == STATUS_OK)
        status = flight_threads(&job, &options, &threads, diag);
    if (status == STATUS_OK)
        status = host_form(&threads, &plan, diag);
    if (status == STATUS_OK) {
        fuzz_print_again(&plan);
        plan_fini(&plan);
    }
    job_fini(&threads);
    return status;
}

static void try_plan(const struct value *root, size_t count, struct arena *arena)
{
    struct diag diag;
    fuzz_diag_begin(&diag);
    enum status status = make_plan(root, count, arena, &diag);
    fuzz_diag_end(&diag, status == STATUS_OK);
}

static struct value *read_root(const uint8_t *data, size_t size, struct arena *arena)
{
    struct diag diag;
    struct bytes *bytes;
    struct value *root = NULL;
    fuzz_diag_begin(&diag);
    enum status status = bytes_open_memory("fuzz.pickle", data, size, &bytes, &diag);
    if (status == STATUS_OK) {
        status = value_read_pickle(bytes, arena, &root, &diag);
        bytes_close(bytes);
    }
    FUZZ_EXPECT((status == STATUS_OK) == (root != NULL));
    fuzz_diag_end(&diag, status == STATUS_OK);
    return root;
}

void fuzz_dump(const uint8_t *data, size_t size)
{
    struct arena arena;
    arena_init(&arena, 0);
    const struct value *root = read_root(data, size, &arena);
    if (root && flight_is_dump(root)) {
        try_plan(root, 1, &arena);
        try_plan(root, 2, &arena);
    }
    arena_fini(&arena);
}

static enum status stand_as(const uint8_t *data, size_t size, enum format format, struct job *job,
                            struct plan *plan, struct diag *diag)
{
    struct standstill standstill = {0};
    struct bytes *bytes;
    enum status status = bytes_open_memory("stack_2.txt", data, size, &bytes, diag);
    if (status != STATUS_OK)
        return status;
    status = standstill_read(bytes, format, &job->arena, &standstill, diag);
    bytes_close(bytes);
    if (status == STATUS_OK)
        FUZZ_EXPECT(standstill_tell(&standstill, &job->arena, diag));
    if (status == STATUS_OK)
        status = standstill_threads(&standstill, "fuzz", job, diag);
    return status == STATUS_OK ? host_form(job, plan, diag) : status;
}

void fuzz_stand(const uint8_t *data, size_t size)
{
    for (enum format format = FORMAT_STACK; format_is_standstill(format); format++) {
        struct diag diag;
        struct job job;
        struct plan plan;
        fuzz_diag_begin(&diag);
        job_init(&job);
        plan_init(&plan);
        const enum status status = stand_as(data, size, format, &job, &plan, &diag);
        if (status == STATUS_OK)
            fuzz_print_again(&plan);
        plan_fini(&plan);
        job_fini(&job);
        fuzz_diag_end(&diag, status == STATUS_OK);
    }
}
