/* SPDX-License-Identifier: Apache-2.0 */
/* group_record.c - the recording of a group's run: see group.h. */
#include "engine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/device/device_impl.h"
#include "gpu/record/rank_report.h"
#include "gpu/net/mail.h"
#include "base/quiet_thread.h"
#include "base/system_words.h"

enum { TAKE_NS = 20000000, KEY = 64 };
#define PASS_NS (JOURNAL_PASS_MS * INT64_C(1000000))

/* REPORT_END */
struct group_record_rank_end {
    int64_t complete, planned, duration_ns;
};

/* The answer of rank 0 to the others: of an opening, and of an end. */
struct answer_mail {
    int32_t status, legal;
    int64_t run, iterations, steps, duration_ns;
    double iteration_ns;
    char text[400]; /* why it failed, or was not legal */
};

struct keeper {
    struct swpipe_group *group;
    struct run *run;
    struct journal *journal;
    int number;                         /* of the run: what is late comes of another */
    struct group_record_rank_end *ends; /* [ranks] */
    bool *ended;
    pthread_t thread;
    bool started;
    atomic_bool closing; /* rank 0 has ended: its patience begins */
};

/* ---- the keeper's thread --------------------------------------------------------------------- */

static void keeper_take(struct keeper *keeper, const struct report *report)
{
    struct report_head head;
    if (report->bytes < sizeof head || report->from >= keeper->group->size)
        return;
    memcpy(&head, report->data, sizeof head);
    const char *data = report->data + sizeof head;
    size_t bytes = report->bytes - sizeof head;
    if (head.kind == REPORT_LOG)
        journal_take(keeper->journal, data, bytes);
    if (head.kind == REPORT_END && head.number == keeper->number && bytes == sizeof *keeper->ends) {
        memcpy(&keeper->ends[report->from], data, bytes);
        keeper->ended[report->from] = true;
    }
}

/* Everything has come that will come. */
static bool group_record_is_through(struct keeper *keeper)
{
    for (int rank = 0; rank < keeper->group->size; rank++)
        if (!keeper->ended[rank] && !broker_is_gone(keeper->group->broker, rank))
            return false;
    return true;
}

static void *keeper_run(void *arg)
{
    struct keeper *keeper = arg;
    const int64_t patience_ns = keeper->group->patience_ns;
    int64_t pass_ns = device_clock_ns(), closing_ns = 0;
    bool good = true;
    while (!group_record_is_through(keeper)) {
        struct report *report = broker_receive(keeper->group->broker, TAKE_NS);
        int64_t now_ns = device_clock_ns();
        if (report)
            keeper_take(keeper, report);
        free(report);
        if (good && now_ns - pass_ns >= PASS_NS) {
            /* Books that cannot be kept end the run. */
            struct diag diag;
            diag_init(&diag);
            journal_pass(keeper->journal, run_now(keeper->run));
            enum status status = journal_status(keeper->journal, &diag);
            if (status)
                run_fail(keeper->run, status, "%s", diag_first_text(&diag));
            diag_fini(&diag);
            good = !status;
            pass_ns = now_ns;
        }
        if (!atomic_load(&keeper->closing))
            continue;
        closing_ns = closing_ns ? closing_ns : now_ns;
        if (patience_ns != RENDEZVOUS_FOREVER && now_ns - closing_ns > patience_ns)
            break;
    }
    for (struct report *more; (more = broker_receive(keeper->group->broker, 0)); free(more))
        keeper_take(keeper, more); /* of a rank that went: the last it said */
    return NULL;
}

/* ---- opening --------------------------------------------------------------------------------- */

static void keeper_free(struct keeper *keeper)
{
    if (!keeper)
        return;
    if (keeper->started) {
        atomic_store(&keeper->closing, true);
        pthread_join(keeper->thread, NULL);
    }
    journal_close(keeper->journal);
    free(keeper->ends);
    free(keeper->ended);
    free(keeper);
}

static enum status keeper_open(struct group_recording *recording, struct run *run,
                               const struct runtime_options *options, const char *device,
                               struct diag *diag)
{
    struct swpipe_group *group = recording->group;
    struct keeper *keeper = calloc(1, sizeof *keeper);
    if (!keeper)
        return diag_no_memory(diag);
    keeper->group = group;
    keeper->run = run;
    keeper->number = recording->number;
    keeper->ends = calloc((size_t)group->size, sizeof *keeper->ends);
    keeper->ended = calloc((size_t)group->size, sizeof *keeper->ended);
    enum status status = keeper->ends && keeper->ended ? STATUS_OK : diag_no_memory(diag);
    if (!status)
        status = journal_open_collecting(run->program, options, device, run_now(run),
                                         &keeper->journal, diag);
    int failed = status ? 0 : quiet_thread_start(&keeper->thread, keeper_run, keeper);
    if (failed)
        status = diag_error(diag, STATUS_SYSTEM, "cannot start a thread: %s", system_words(failed));
    keeper->started = !status;
    recording->keeper = status ? NULL : keeper;
    if (status)
        keeper_free(keeper);
    return status;
}

static void group_record_make_key(const struct group_recording *recording, const char *what,
                                  char out[KEY])
{
    snprintf(out, KEY, "recording %d, %s", recording->number, what);
}

static void keeper_say(const struct group_recording *recording, const char *what,
                       const struct answer_mail *answer)
{
    char key[KEY];
    struct diag ignored; /* a broker that is gone: the others learn of it */
    group_record_make_key(recording, what, key);
    diag_init(&ignored);
    (void)rendezvous_put(recording->group->rendezvous, key, answer, sizeof *answer, &ignored);
    diag_fini(&ignored);
}

/* STATUS_LIMIT becomes one of the system: rank 0 does not answer. */
static enum status keeper_hear(const struct group_recording *recording, const char *what,
                               struct answer_mail *answer, struct diag *diag)
{
    char key[KEY];
    const struct swpipe_group *group = recording->group;
    size_t bytes = sizeof *answer;
    struct diag why;
    group_record_make_key(recording, what, key);
    diag_init(&why);
    enum status status =
        rendezvous_get(group->rendezvous, key, answer, &bytes, group_deadline(group), &why);
    if (status || bytes != sizeof *answer)
        status = diag_error(diag, STATUS_SYSTEM,
                            "rank 0, which keeps the recording, does not answer: %s",
                            why.count ? why.messages[0].text : "all ranks record a run, or none");
    diag_fini(&why);
    return status;
}

static const char *first_text(const struct diag *diag)
{
    return diag->count ? diag->messages[diag->count - 1].text : "out of memory";
}

enum status group_recording_open(struct group_recording *recording, struct swpipe_group *group,
                                 struct run *run, const struct runtime_options *options,
                                 const char *device, struct diag *diag)
{
    struct answer_mail answer = {0};
    *recording = (struct group_recording){.group = group, .number = ++group->recordings};
    enum status status;
    if (group->rank == 0) {
        status = keeper_open(recording, run, options, device, diag);
        answer.status = (int32_t)status;
        snprintf(answer.text, sizeof answer.text, "%s", status ? first_text(diag) : "");
        keeper_say(recording, "opened", &answer);
    } else {
        status = keeper_hear(recording, "opened", &answer, diag);
        if (!status && answer.status)
            status = diag_error(diag, (enum status)answer.status, "rank 0: %s", answer.text);
    }
    if (status)
        recording->group = NULL;
    return status;
}

/* ---- the end --------------------------------------------------------------------------------- */

void group_recording_stop(struct group_recording *recording, bool complete, int64_t planned,
                          int64_t duration_ns)
{
    const struct group_record_rank_end end = {complete, planned, duration_ns};
    (void)rank_report_send(recording->group->rendezvous, REPORT_END, recording->number, &end,
                           sizeof end);
}

static enum status keeper_judge(struct keeper *keeper, struct runtime_result *out,
                                struct diag *diag)
{
    int ranks = keeper->group->size;
    int64_t *ends = calloc((size_t)ranks, sizeof *ends);
    struct journal_end end = {.complete = true, .ends = ends};
    if (!ends)
        return diag_no_memory(diag);
    for (int rank = 0; rank < ranks; rank++) {
        const struct group_record_rank_end *his = &keeper->ends[rank];
        ends[rank] = his->planned;
        end.torn = end.torn || !keeper->ended[rank];
        end.complete = end.complete && keeper->ended[rank] && his->complete;
        end.iterations = his->planned > end.iterations ? his->planned : end.iterations;
        end.duration_ns = his->duration_ns > end.duration_ns ? his->duration_ns : end.duration_ns;
    }
    out->finished = end.complete;
    out->duration_ns = end.duration_ns;
    enum status status = journal_end(keeper->journal, &end, out, diag);
    free(ends);
    return status;
}

static enum status keeper_conclude(struct keeper *keeper, struct runtime_result *out, char *why,
                                   size_t why_bytes, struct diag *diag)
{
    struct diag said;
    atomic_store(&keeper->closing, true);
    pthread_join(keeper->thread, NULL);
    keeper->started = false;
    diag_init(&said);
    enum status status = keeper_judge(keeper, out, &said);
    for (size_t i = 0; status == STATUS_VIOLATED && i < said.count && !why[0]; i++)
        if (said.messages[i].severity == SEVERITY_ERROR)
            snprintf(why, why_bytes, "%s", said.messages[i].text);
    if (status == STATUS_VIOLATED)
        status = STATUS_OK;
    else if (status)
        diag_error(diag, status, "%s", first_text(&said));
    diag_fini(&said);
    return status;
}

static struct answer_mail answer_of(const struct runtime_result *result, const char *why)
{
    struct answer_mail answer = {.legal = (int32_t)result->legal,
                                 .run = result->run,
                                 .iterations = result->iterations,
                                 .steps = result->steps,
                                 .duration_ns = result->duration_ns,
                                 .iteration_ns = result->iteration.mean_ns};
    snprintf(answer.text, sizeof answer.text, "%s", why);
    return answer;
}

enum status group_recording_close(struct group_recording *recording, struct runtime_result *out,
                                  char *why, size_t why_bytes, struct diag *diag)
{
    struct answer_mail answer = {0};
    enum status status;
    if (recording->keeper) {
        status = keeper_conclude(recording->keeper, out, why, why_bytes, diag);
        answer = answer_of(out, status ? first_text(diag) : why);
        answer.status = (int32_t)status;
        keeper_say(recording, "ended", &answer);
    } else {
        status = keeper_hear(recording, "ended", &answer, diag);
        if (!status && answer.status)
            status = diag_error(diag, (enum status)answer.status, "rank 0: %s", answer.text);
        if (!status) {
            out->legal = (enum answer)answer.legal;
            out->run = answer.run;
            out->iterations = answer.iterations;
            out->steps = answer.steps;
            out->duration_ns = answer.duration_ns;
            out->iteration.mean_ns = answer.iteration_ns;
            snprintf(why, why_bytes, "%s", answer.text);
        }
    }
    keeper_free(recording->keeper);
    *recording = (struct group_recording){0};
    return status;
}

void group_recording_drop(struct group_recording *recording)
{
    struct runtime_result unseen = {.run = -1};
    char why[8] = "";
    struct diag ignored; /* the reason is the caller's */
    diag_init(&ignored);
    arena_init(&unseen.arena, 0);
    group_recording_stop(recording, false, 0, 0);
    (void)group_recording_close(recording, &unseen, why, sizeof why, &ignored);
    runtime_result_fini(&unseen);
    diag_fini(&ignored);
}
