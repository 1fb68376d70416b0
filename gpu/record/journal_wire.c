/* SPDX-License-Identifier: Apache-2.0 */
/*
 * journal_wire.c - a log that goes to another process: records sent by the process of a rank, and the journal
 * of the launcher that collects them.
 */
#include "journal_impl.h"

#include <stdlib.h>
#include <string.h>

#include "gpu/device/device_impl.h"
#include "base/processors.h"
#include "base/sort.h"
#include "rank_report.h"

bool rank_report_send(struct rendezvous *rendezvous, enum report_kind kind, int number,
                      const void *data, size_t bytes)
{
    const struct report_head head = {(int32_t)kind, number};
    char *packet = malloc(sizeof head + bytes);
    if (!packet)
        return false;
    memcpy(packet, &head, sizeof head);
    if (bytes > 0)
        memcpy(packet + sizeof head, data, bytes);
    bool sent = rendezvous_send(rendezvous, TO_BROKER, packet, sizeof head + bytes);
    free(packet);
    return sent;
}

/* ---- sending --------------------------------------------------------------------------------- */

void journal_send_records(struct journal *journal)
{
    if (journal->ship_count == 0)
        return;
    if (!rank_report_send(journal->config.rendezvous, REPORT_LOG, 0, journal->ship,
                          journal->ship_count * sizeof *journal->ship))
        journal->ship_failed = true;
    journal->ship_count = 0;
}

static void ship(struct journal *journal, const struct log_record *record)
{
    if (journal->ship_count == SHIP_RECORDS)
        journal_send_records(journal);
    journal->ship[journal->ship_count++] = *record;
}

void journal_ship_entry(struct journal *journal, int thread, int64_t sequence,
                        const struct log_entry *entry)
{
    ship(journal,
         &(struct log_record){.what = RECORD_ENTRY,
                              .thread = thread,
                              .kind = (int32_t)entry->kind,
                              .op = entry->op,
                              .sequence = sequence,
                              .iteration = entry->iteration,
                              .begin_ns = entry->begin_ns,
                              .at_ns = entry->at_ns,
                              .end_ns = entry->end_ns,
                              .number = entry->stamp.number,
                              .pushed_from_ns = log_pushed_from_ns(entry),
                              .pushed_by_ns = entry->stamp.pushed_by_ns,
                              .start_ns = entry->kind == LOG_RETIRE ? entry->stamp.start_ns : 0,
                              .since = entry->since.number});
}

void journal_ship_stamp(struct journal *journal, const struct open_entry *open,
                        enum record_kind what)
{
    ship(journal, &(struct log_record){
                      .what = (int32_t)what,
                      .thread = open->thread,
                      .sequence = open->sequence,
                      .start_ns = open->entry->stamp.start_ns,
                      .stamp_end_ns = what == RECORD_FINISHED ? open->entry->stamp.end_ns : 0,
                      .since = open->entry->since.number >= 0 ? open->entry->since.end_ns : 0});
}

void journal_ship_started(struct journal *journal)
{
    for (size_t i = 0; journal->ship && i < journal->open_count; i++)
        if (log_has_started(journal->open[i].entry))
            journal_ship_stamp(journal, &journal->open[i], RECORD_STARTED);
    if (journal->ship)
        journal_send_records(journal);
}

void journal_know_clocks(struct journal *journal)
{
    const struct program *p = journal->config.program;
    int64_t error_ns = journal->clock_error_ns;
    for (int rank = 0; rank < p->ranks && journal->config.devices; rank++) {
        const struct device *device = journal->config.devices[rank];
        int64_t off_ns = device ? atomic_load(&device->clock_error_ns) : 0;
        error_ns = off_ns > error_ns ? off_ns : error_ns;
    }
    if (journal->ship && error_ns > journal->clock_error_ns)
        ship(journal, &(struct log_record){.what = RECORD_CLOCK, .number = error_ns});
    journal->clock_error_ns = error_ns;
}

/* ---- collecting ------------------------------------------------------------------------------ */

enum status journal_open_collecting(const struct program *program,
                                    const struct runtime_options *options, const char *device,
                                    int64_t start_ns, struct journal **out, struct diag *diag)
{
    struct journal *journal =
        journal_new(&(struct journal_config){.program = program, .options = options}, diag);
    if (!journal)
        return STATUS_SYSTEM;
    /* Where these are not all, the ranks may be bound to others. */
    const int cores = processors_are_all() ? processors_count() : 0;
    enum status status = journal_open_books(journal, device, start_ns, cores, diag);
    if (status) {
        journal_close(journal);
        return status;
    }
    *out = journal;
    return STATUS_OK;
}

/* An entry outlives the mail it came in when it has a stamp. */
static void journal_wire_take_entry(struct journal *journal, const struct log_record *record)
{
    struct log_entry entry = {
        .kind = (enum log_kind)record->kind,
        .op = record->op,
        .iteration = record->iteration,
        .begin_ns = record->begin_ns,
        .at_ns = record->at_ns,
        .end_ns = record->end_ns,
        .stamp = {.number = record->number,
                  .pushed_from_ns = record->pushed_from_ns,
                  .pushed_by_ns = record->pushed_by_ns,
                  .start_ns = record->start_ns},
        .since = {.number = record->since, .pushed_from_ns = record->pushed_from_ns}};
    struct open_entry open = {.thread = record->thread, .sequence = record->sequence};
    open.span = journal_enter(journal, record->thread, &entry);
    if (record->number < 0)
        return;
    struct log_entry *kept = malloc(sizeof *kept);
    if (!kept) {
        journal->no_memory = true;
        return;
    }
    *kept = entry;
    open.entry = kept;
    journal_keep_open(journal, &open);
}

static void take_stamp(struct journal *journal, const struct log_record *record)
{
    for (size_t i = 0; i < journal->open_count; i++) {
        struct open_entry *open = &journal->open[i];
        if (open->thread != record->thread || open->sequence != record->sequence)
            continue;
        struct log_entry *entry = (struct log_entry *)(uintptr_t)open->entry; /* our own */
        entry->stamp.start_ns = record->start_ns;
        entry->stamp.end_ns = record->stamp_end_ns;
        entry->stamp.started = true;
        entry->since.end_ns = record->since;
        entry->since.valid = entry->since.number >= 0;
        if (record->what == RECORD_STARTED)
            return;
        entry->stamp.valid = true;
        journal_enter_end(journal, open);
        free(entry);
        memmove(open, open + 1, (--journal->open_count - i) * sizeof *open);
        return;
    }
}

/* Moments of a run: differences of two, and sums of many, stay within 64 bits. */
static bool is_moment(int64_t ns)
{
    const int64_t most_ns = INT64_C(1) << 56;
    return ns >= -most_ns && ns <= most_ns;
}

static bool has_moments(const struct log_record *record)
{
    return is_moment(record->begin_ns) && is_moment(record->at_ns) && is_moment(record->end_ns) &&
           is_moment(record->start_ns) && is_moment(record->stamp_end_ns) &&
           is_moment(record->pushed_from_ns) && is_moment(record->pushed_by_ns) &&
           is_moment(record->since);
}

/* True if `op` is one, and what was logged is the push of work that has a stamp. Behind a mark, it is a function's. */
static bool has_operation(const struct program *p, const struct log_record *record)
{
    bool is_op = log_is_of_op((enum log_kind)record->kind);
    int64_t ops = is_op ? (int64_t)p->op_count : record->kind == LOG_TAKE ? p->tasks : 0;
    if (record->op < 0 ? ops != 0 : record->op >= ops)
        return false;
    if (record->since >= 0 &&
        (record->kind != LOG_CALL || record->number < 0 || record->since > record->number))
        return false;
    if (record->kind == LOG_NO && !op_has_branches(&p->ops[record->op]))
        return false;
    return record->number < 0 ||
           (is_op && p->ops[record->op].stream >= 0 && op_pushes(p->ops[record->op].kind));
}

/* Records come from the same program, but their numbers are checked all the same. */
static bool makes_sense(const struct journal *journal, const struct log_record *record)
{
    const struct program *p = journal->config.program;
    if (record->what == RECORD_CLOCK)
        return record->number >= 0 && is_moment(record->number);
    if (record->thread < 0 || record->thread >= p->thread_count || !has_moments(record))
        return false;
    if (record->what != RECORD_ENTRY)
        return record->what == RECORD_FINISHED || record->what == RECORD_STARTED;
    return record->kind >= LOG_OP && record->kind <= LOG_NO && record->iteration >= -1 &&
           record->iteration <= INT32_MAX && has_operation(p, record);
}

void journal_take(struct journal *journal, const void *records, size_t bytes)
{
    struct log_record record;
    for (size_t at = 0; at + sizeof record <= bytes; at += sizeof record) {
        memcpy(&record, (const char *)records + at, sizeof record);
        if (!makes_sense(journal, &record))
            continue;
        if (record.what == RECORD_ENTRY)
            journal_wire_take_entry(journal, &record);
        else if (record.what == RECORD_CLOCK)
            journal->clock_error_ns = max_i64(journal->clock_error_ns, record.number);
        else
            take_stamp(journal, &record);
    }
}
