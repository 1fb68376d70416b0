/* SPDX-License-Identifier: Apache-2.0 */
/*
 * result_wire.c - see result_wire.h. A message is a head and what it announces:
 *
 *     FOUND   number          then the result, its streams' accounts with their blames, how many slowdowns
 *                             and these, the blocked agents with the words
 *     END     status          seconds, then text
 *
 * Pointers travel as nothing and are set anew.
 */
#include "result_wire.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

/* A new pointer in a result must be packed here; then this number changes. */
enum { RESULT_SIZE = 408 };
_Static_assert(sizeof(void *) != 8 || sizeof(struct simulation_result) == RESULT_SIZE,
               "a new member of a result: does it travel?");

#define X(name, words) +1
enum { DOUBTS = 0 DOUBT_LIST(X) };
#undef X

enum result_kind { RESULT_FOUND, RESULT_END };

struct head {
    int32_t kind;   /* enum result_kind */
    int32_t number; /* FOUND: the replication's; END: the enum status */
    double cpu_seconds;
};

/* ---- bytes ----------------------------------------------------------------------------------- */

struct parcel {
    char *data;
    size_t bytes, cap;
    bool no_memory;
};

static void pack(struct parcel *parcel, const void *data, size_t bytes)
{
    if (parcel->no_memory || bytes == 0)
        return;
    if (!ARRAY_RESERVE(parcel->data, parcel->bytes + bytes, parcel->cap)) {
        parcel->no_memory = true;
        return;
    }
    memcpy(parcel->data + parcel->bytes, data, bytes);
    parcel->bytes += bytes;
}

/* The rest of a message; empty once the message was too short. */
struct result_wire_opened {
    const char *data;
    size_t bytes;
    bool torn, no_memory;
};

static bool result_wire_is_good(const struct result_wire_opened *opened)
{
    return !opened->torn && !opened->no_memory;
}

static void unpack(struct result_wire_opened *opened, void *out, size_t bytes)
{
    if (bytes > opened->bytes)
        opened->torn = true;
    if (!result_wire_is_good(opened) || bytes == 0)
        return;
    memcpy(out, opened->data, bytes);
    opened->data += bytes;
    opened->bytes -= bytes;
}

/* An array of `count` elements of `size` bytes, as long as the message says it has; NULL where there is
   none or something is wrong. */
static void *unpack_array(struct result_wire_opened *opened, int64_t count, size_t size)
{
    if (count < 0 || (uint64_t)count > opened->bytes / size)
        opened->torn = true;
    if (!result_wire_is_good(opened) || count == 0)
        return NULL;
    void *array = malloc((size_t)count * size);
    if (!array)
        opened->no_memory = true;
    else
        unpack(opened, array, (size_t)count * size);
    return array;
}

/* ---- a result -------------------------------------------------------------------------------- */

static void pack_account(struct parcel *parcel, const struct stream_account *account)
{
    struct stream_account flat = *account;
    flat.blames = NULL;
    flat.table = (struct table){0};
    pack(parcel, &flat, sizeof flat);
    pack(parcel, account->blames, (size_t)account->blame_count * sizeof *account->blames);
}

static void pack_result(struct parcel *parcel, const struct program *program,
                        const struct simulation_result *result)
{
    int64_t subjects = result->slowdowns ? sharing_subject_count(program) : 0;
    struct simulation_result flat = *result;
    flat.streams = NULL;
    flat.slowdowns = NULL;
    flat.blocked = NULL;
    pack(parcel, &flat, sizeof flat);
    for (int s = 0; s < result->stream_count; s++)
        pack_account(parcel, &result->streams[s]);
    pack(parcel, &subjects, sizeof subjects);
    pack(parcel, result->slowdowns, (size_t)subjects * sizeof *result->slowdowns);
    for (size_t i = 0; i < result->blocked_count; i++) {
        const struct blocked *blocked = &result->blocked[i];
        int64_t bytes = (int64_t)strlen(blocked->waits_for) + 1;
        pack(parcel, &blocked->agent, sizeof blocked->agent);
        pack(parcel, &bytes, sizeof bytes);
        pack(parcel, blocked->waits_for, (size_t)bytes);
    }
}

static void unpack_account(struct result_wire_opened *opened, const struct program *program,
                           struct stream_account *out)
{
    unpack(opened, out, sizeof *out);
    out->blames = NULL;
    out->table = (struct table){0};
    if (!result_wire_is_good(opened))
        *out = (struct stream_account){0};
    out->blames = unpack_array(opened, out->blame_count, sizeof *out->blames);
    out->blame_cap = out->blame_count;
    for (int i = 0; out->blames && i < out->blame_count; i++)
        if (!stall_is_of(program, &out->blames[i].stall))
            opened->torn = true;
}

static void unpack_blocked(struct result_wire_opened *opened, const struct program *program,
                           struct blocked *out)
{
    int64_t bytes = 0;
    unpack(opened, &out->agent, sizeof out->agent);
    unpack(opened, &bytes, sizeof bytes);
    if (bytes < 1 || out->agent < 0 || out->agent >= program->agent_count)
        opened->torn = true;
    out->waits_for = unpack_array(opened, bytes, 1);
    if (out->waits_for && out->waits_for[bytes - 1] != '\0')
        opened->torn = true;
}

/* True if counts and numbers are within those of the program, and within what has arrived. */
static bool is_plausible(const struct simulation_result *flat, const struct program *program,
                         size_t bytes)
{
    const struct iteration_figures *figures = &flat->iteration;
    return flat->stream_count == program->stream_count && flat->blocked_count <= bytes &&
           flat->violated < 1u << PROPERTY_COUNT && (int)figures->doubt >= 0 &&
           (int)figures->doubt < DOUBTS && figures->part_count >= 0 &&
           figures->part_count <= STATISTICS_BATCHES;
}

/* A part of a result is always sound enough for simulation_fini. */
static void unpack_result(struct result_wire_opened *opened, const struct program *program,
                          struct simulation_result *out)
{
    struct simulation_result flat = {0};
    int64_t subjects = 0;
    unpack(opened, &flat, sizeof flat);
    if (!result_wire_is_good(opened))
        return;
    size_t streams = (size_t)flat.stream_count, blocked = flat.blocked_count;
    if (out->streams || !is_plausible(&flat, program, opened->bytes)) { /* come already: no */
        opened->torn = true;
        return;
    }
    flat.slowdowns = NULL;
    flat.streams = calloc(streams + 1, sizeof *flat.streams);
    flat.blocked = blocked ? calloc(blocked, sizeof *flat.blocked) : NULL;
    if (!flat.streams || (blocked && !flat.blocked)) {
        free(flat.streams);
        free(flat.blocked);
        opened->no_memory = true;
        return;
    }
    *out = flat;
    for (size_t s = 0; s < streams && result_wire_is_good(opened); s++)
        unpack_account(opened, program, &out->streams[s]);
    unpack(opened, &subjects, sizeof subjects);
    if (subjects != 0 && subjects != sharing_subject_count(program))
        opened->torn = true;
    out->slowdowns = unpack_array(opened, subjects, sizeof *out->slowdowns);
    for (size_t i = 0; i < blocked && result_wire_is_good(opened); i++)
        unpack_blocked(opened, program, &out->blocked[i]);
}

/* ---- other ranks ----------------------------------------------------------------------------- */

static enum status send_parcel(const struct result_wire *wire, struct parcel *parcel,
                               struct diag *diag)
{
    enum status status = parcel->no_memory
                             ? diag_no_memory(diag)
                             : wire->send(wire->context, parcel->data, parcel->bytes, diag);
    free(parcel->data);
    return status;
}

enum status result_wire_send(const struct result_wire *wire, const struct program *program,
                             int number, const struct simulation_result *result, struct diag *diag)
{
    const struct head head = {.kind = RESULT_FOUND, .number = number};
    struct parcel parcel = {0};
    pack(&parcel, &head, sizeof head);
    pack_result(&parcel, program, result);
    return send_parcel(wire, &parcel, diag);
}

enum status result_wire_end(const struct result_wire *wire, enum status status, double cpu_seconds,
                            const struct diag *why, struct diag *diag)
{
    const struct head head = {
        .kind = RESULT_END, .number = (int32_t)status, .cpu_seconds = cpu_seconds};
    struct parcel parcel = {0};
    pack(&parcel, &head, sizeof head);
    for (size_t i = 0; status != STATUS_OK && i < why->count; i++)
        if (why->messages[i].severity == SEVERITY_ERROR) {
            /* One sentence: where, if known, and what. */
            const struct diag_message *message = &why->messages[i];
            char mark[40];
            if (message->file) {
                snprintf(mark, sizeof mark, ":%" PRIu32 ":%" PRIu32 ": ", message->mark.line,
                         message->mark.col);
                pack(&parcel, message->file, strlen(message->file));
                pack(&parcel, mark, strlen(mark));
            }
            pack(&parcel, message->text, strlen(message->text) + 1);
        }
    return send_parcel(wire, &parcel, diag);
}

/* ---- rank 0 ---------------------------------------------------------------------------------- */

static enum status take_result(const struct head *head, struct result_wire_opened *opened,
                               const struct program *program,
                               struct simulation_result *const *results, int count, int from,
                               struct diag *diag)
{
    if (!results)
        return STATUS_OK; /* dropped */
    if (head->number < 0 || head->number >= count)
        opened->torn = true;
    if (result_wire_is_good(opened))
        unpack_result(opened, program, results[head->number]);
    if (opened->no_memory)
        return diag_no_memory(diag);
    if (opened->torn || opened->bytes)
        return diag_error(diag, STATUS_SYSTEM, "MPI rank %d sent what is no result", from);
    return STATUS_OK;
}

/* A failure of `from`, in its own words. */
static enum status take_failure(const struct head *head, const struct result_wire_opened *opened,
                                int from, struct diag *diag)
{
    enum status status = head->number > STATUS_OK && head->number <= STATUS_LIMIT
                             ? (enum status)head->number
                             : STATUS_SYSTEM;
    if (opened->bytes == 0 || opened->data[opened->bytes - 1] != '\0')
        return diag_error(diag, status, "MPI rank %d has failed", from);
    const char *text = opened->data, *end = text + opened->bytes;
    for (; text < end; text += strlen(text) + 1)
        diag_error(diag, status, "MPI rank %d: %s", from, text);
    return status;
}

/* One message; *over: it was the last of `from`. */
static enum status result_wire_take(const struct result_wire *wire, const struct program *program,
                                    int from, struct simulation_result *const *results, int count,
                                    double *cpu_seconds, bool *over, struct diag *diag)
{
    struct head head = {0};
    void *data;
    size_t bytes;
    enum status status = wire->receive(wire->context, from, &data, &bytes, diag);
    *over = status != STATUS_OK;
    if (status != STATUS_OK)
        return status;
    struct result_wire_opened opened = {.data = data, .bytes = bytes};
    unpack(&opened, &head, sizeof head);
    *over = opened.torn || head.kind != RESULT_FOUND;
    if (!*over)
        status = take_result(&head, &opened, program, results, count, from, diag);
    else if (opened.torn || head.kind != RESULT_END)
        status = diag_error(diag, STATUS_SYSTEM, "MPI rank %d sent what is no result", from);
    else if (head.number != STATUS_OK)
        status = take_failure(&head, &opened, from, diag);
    *cpu_seconds += head.cpu_seconds;
    free(data);
    return status;
}

/* Check that all has arrived once all processes report that all was sent. */
static enum status expect_all(struct simulation_result *const *results, int count,
                              struct diag *diag)
{
    for (int i = 0; results && i < count; i++)
        if (!results[i]->streams)
            return diag_error(diag, STATUS_SYSTEM, "no MPI rank sent the result of replication %d",
                              i);
    return STATUS_OK;
}

enum status result_wire_gather(const struct result_wire *wire, const struct program *program,
                               struct simulation_result *const *results, int count,
                               double *cpu_seconds, struct diag *diag)
{
    enum status first = STATUS_OK;
    for (int from = 1; from < wire->size; from++)
        for (bool over = false; !over;) {
            struct diag more; /* one failure is enough to be told */
            diag_init(&more);
            enum status status = result_wire_take(wire, program, from, results, count, cpu_seconds,
                                                  &over, first == STATUS_OK ? diag : &more);
            diag_fini(&more);
            first = first == STATUS_OK ? status : first;
        }
    return first == STATUS_OK ? expect_all(results, count, diag) : first;
}

void result_wire_drop(const struct result_wire *wire)
{
    struct diag unheard;
    double cpu_seconds = 0;
    diag_init(&unheard);
    (void)result_wire_gather(wire, NULL, NULL, 0, &cpu_seconds,
                             &unheard); /* it has failed already */
    diag_fini(&unheard);
}
