/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_recording.c - recordings of CUDA programs: as lines (tape_lines.h), or as the bytes of a chunk. One that is read
 * becomes a plan whose text reads back as itself; the same twice is two ranks.
 */
#include <stdlib.h>
#include <string.h>

#include "trace/job/bytes.h"
#include "trace/record/reader/recorded.h"
#include "trace/record/recorder/recording.h"
#include "tape_lines.h"
#include "targets.h"

static void try_plan(const void *file, size_t size, size_t count)
{
    const struct recorded_options options = {.name = "fuzz",
                                             .order = count > 1 ? RECORDED_SEEN : RECORDED_WAITS,
                                             .queries = count > 1 ? RECORDED_QUERIES_WAIT
                                                                  : RECORDED_QUERIES_SEEN,
                                             .launch_order = count > 1,
                                             .sm_slots = (int64_t)count - 1};
    struct bytes *files[2] = {NULL, NULL};
    struct diag diag;
    struct plan plan;
    fuzz_diag_begin(&diag);
    enum status status = STATUS_OK;
    for (size_t i = 0; i < count && status == STATUS_OK; i++)
        status = bytes_open_memory("fuzz.swr", file, size, &files[i], &diag);
    if (status == STATUS_OK)
        status = recorded_plan_of(files, count, &options, &plan, &diag);
    for (size_t i = 0; i < count; i++)
        bytes_close(files[i]);
    if (status == STATUS_OK) {
        fuzz_print_again(&plan);
        plan_fini(&plan);
    }
    fuzz_diag_end(&diag, status == STATUS_OK);
}

/* A chunk that is filled up with zeros. */
static void *one_chunk(const uint8_t *data, size_t size)
{
    char *file = calloc(1, RECORDING_CHUNK);
    FUZZ_EXPECT(file && size <= RECORDING_CHUNK);
    memcpy(file, data, size);
    return file;
}

void fuzz_recording(const uint8_t *data, size_t size)
{
    const bool raw = size >= sizeof RECORDING_MAGIC &&
                     memcmp(data, RECORDING_MAGIC, sizeof RECORDING_MAGIC) == 0;
    size_t file_size = RECORDING_CHUNK;
    void *file = raw ? one_chunk(data, size) : tape_lines(data, size, &file_size);
    try_plan(file, file_size, 1);
    try_plan(file, file_size, 2);
    free(file);
}
