/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_collector.c - reports of ranks that have ended before the launcher took them: none is lost.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "gpu/exec/ranks.h"
#include "plan/text/parse.h"
#include "tests/tap.h"

enum { RANKS = 2, MESSAGES = 400, NAP_NS = 120000000 };

static const char plan_text[] = "swplan: 1\n"
                                "name: quick\n"
                                "ranks: 2\n"
                                "schedule:\n"
                                "  Load: {stage: 0, stream: memcpy, writes: [x]}\n"
                                "buffers: {x: {scope: iteration, bytes: 4KiB}}\n";

/* The process of a rank, with more to say than is taken at once. Never returns. */
static void be_rank(struct broker *broker, int rank)
{
    struct rendezvous *rendezvous = NULL;
    struct diag diag, said;
    static const char device[] = "a device";
    diag_init(&diag);
    diag_init(&said);
    said.limit = MESSAGES;
    if (rendezvous_join(broker_inherit(broker, rank), rank, RENDEZVOUS_FOREVER, &rendezvous, &diag))
        _exit(1);
    for (int i = 0; i < MESSAGES; i++)
        diag_note(&said, "rank %d, message %d", rank, i);
    bool told = rank > 0 || rank_report_send(rendezvous, REPORT_BEGIN, 0, device, sizeof device);
    told = ranks_report(rendezvous, STATUS_VIOLATED, NULL, &said) && told;
    rendezvous_leave(rendezvous);
    diag_fini(&said);
    diag_fini(&diag);
    _exit(told ? 0 : 1);
}

static void nap(void)
{
    nanosleep(&(struct timespec){.tv_nsec = NAP_NS}, NULL);
}

/* Until all are gone, without a report taken. */
static void await_ranks(struct broker *broker, const pid_t *pids)
{
    for (int rank = 0; rank < RANKS; rank++) {
        int how = -1;
        waitpid(pids[rank], &how, 0);
        tap_is_int(how, 0, "rank %d has told all", rank);
    }
    while (broker_ended(broker) < RANKS)
        nap();
    nap(); /* a pass is due */
}

static void count_messages(const struct diag *diag)
{
    for (int rank = 0; rank < RANKS; rank++) {
        char start[20];
        int count = 0;
        snprintf(start, sizeof start, "rank %d, ", rank);
        for (size_t i = 0; i < diag->count; i++)
            count += strncmp(diag->messages[i].text, start, strlen(start)) == 0;
        tap_is_int(count, MESSAGES, "messages of rank %d", rank);
    }
}

static void take_late(const struct plan *plan, struct broker *broker, struct diag *diag)
{
    const struct runtime_options options = {
        .driver = DRIVER_CLOCK, .iterations = 1, .ranks = RANKS};
    struct collector *collector = NULL;
    struct runtime_result result;
    pid_t pids[RANKS];
    int takes = 0;
    bool good;
    if (collector_open(plan, &options, broker, &collector, diag))
        abort();
    for (int rank = 0; rank < RANKS; rank++)
        if (broker_invite(broker, rank, diag))
            abort();
    fflush(stdout);
    for (int rank = 0; rank < RANKS; rank++) {
        pids[rank] = fork();
        if (pids[rank] == 0)
            be_rank(broker, rank);
    }
    if (broker_start(broker, diag))
        abort();
    await_ranks(broker, pids);
    do
        tap_is_int(collector_take(collector, 0, diag), STATUS_OK, "reports are taken");
    while (++takes < 100 && collector_is_behind(collector));
    tap_ok(takes > 1, "a pass of the journal came between");
    tap_is_int(collector_ends(collector, &good), RANKS, "each rank's end has come");
    tap_is_int(collector_end(collector, &result, diag), STATUS_VIOLATED, "the ranks failed");
    runtime_result_fini(&result);
}

int main(void)
{
    struct plan plan;
    struct broker *broker = NULL;
    struct diag diag;
    diag_init(&diag);
    diag.limit = 10 * MESSAGES;
    if (plan_parse("quick.yaml", plan_text, strlen(plan_text), &plan, &diag) ||
        broker_open(RANKS, &broker, &diag))
        abort();
    take_late(&plan, broker, &diag);
    count_messages(&diag);
    broker_close(broker);
    plan_fini(&plan);
    diag_fini(&diag);
    return tap_done();
}
