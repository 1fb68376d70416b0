/* SPDX-License-Identifier: Apache-2.0 */
/* ranks.c - see ranks.h. */
#include "ranks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/integers.h"
#include "gpu/device/device_impl.h"
#include "gpu/record/journal.h"

/* REPORT_END */
struct ranks_rank_end {
    int32_t status, has_result;
    int32_t finished, interrupted, hung, peer_died, complete, matches_serial;
    int64_t planned, duration_ns, held_ns;
    struct runtime_graphs graph;
    struct runtime_arithmetic arithmetic;
};

/* ---- a process with a rank ------------------------------------------------------------------- */

static bool send_text(struct rendezvous *rendezvous, enum report_kind kind, int number,
                      const char *text)
{
    size_t bytes = strlen(text) + 1, most = RENDEZVOUS_MAX_BYTES - sizeof(struct report_head);
    return rank_report_send(rendezvous, kind, number, text, bytes < most ? bytes : most);
}

static bool send_blocked(struct rendezvous *rendezvous, const struct runtime_blocked *blocked)
{
    size_t agent = strlen(blocked->agent) + 1, waits = strlen(blocked->waits_for) + 1;
    char *text = malloc(agent + waits);
    if (!text)
        return false;
    memcpy(text, blocked->agent, agent);
    memcpy(text + agent, blocked->waits_for, waits);
    bool sent = rank_report_send(rendezvous, REPORT_BLOCKED, blocked->rank, text, agent + waits);
    free(text);
    return sent;
}

bool ranks_report(struct rendezvous *rendezvous, enum status status,
                  const struct runtime_result *result, const struct diag *diag)
{
    struct ranks_rank_end end = {.status = (int32_t)status, .has_result = result != NULL};
    bool sent = true;
    for (size_t i = 0; i < diag->count; i++)
        sent = send_text(rendezvous, REPORT_MESSAGE, (int)diag->messages[i].severity,
                         diag->messages[i].text) &&
               sent;
    if (diag->out_of_memory)
        sent = send_text(rendezvous, REPORT_MESSAGE, SEVERITY_ERROR, "a rank is out of memory") &&
               sent;
    for (size_t i = 0; result && i < result->blocked_count; i++)
        sent = send_blocked(rendezvous, &result->blocked[i]) && sent;
    if (result) {
        end.finished = result->finished;
        end.interrupted = result->interrupted;
        end.hung = result->hung;
        end.peer_died = result->peer_died;
        end.complete = result->local.complete;
        end.planned = result->local.end;
        end.matches_serial = (int32_t)result->matches_serial;
        end.duration_ns = result->duration_ns;
        end.held_ns = result->held_ns;
        end.graph = result->graph;
        end.arithmetic = result->arithmetic;
    }
    return rank_report_send(rendezvous, REPORT_END, 0, &end, sizeof end) && sent;
}

/* ---- whether ranks can be processes ------------------------------------------------------------- */

/* The ranks of a program can be processes where no threads of two ranks share a CPU flag or a queue, as those of host programs
   may, and those of all plans where a first use blocks: these are memory of one process. Nor may a thread drive the devices of several ranks, or ranks share the residency slots
   of a device. STATUS_USAGE names what is shared. */

/* The first user of each flag and queue: its rank + 1, 0 none. */
struct users {
    const struct program *program;
    int *flags, *queues;
    struct diag *diag;
};

static enum status ranks_use(struct users *users, int *user, const char *name, int rank)
{
    if (*user != 0 && *user != rank + 1)
        return diag_error(users->diag, STATUS_USAGE,
                          "%s: '%s' is shared by ranks %d and %d, so they cannot be processes "
                          "(--one-process)",
                          users->program->plan->name, name, *user - 1, rank);
    *user = rank + 1;
    return STATUS_OK;
}

/* At `mark` of the plan. */
static enum status ranks_refuse(const struct users *users, struct mark mark, const char *text)
{
    return diag_error(
        users->diag, STATUS_USAGE,
        "%s:%u:%u: %s, so the ranks cannot be processes: run it on the host device with "
        "--one-process",
        users->program->plan->file, mark.line, mark.col, text);
}

static enum status ranks_check_device(const struct users *users, const struct op *op, int rank)
{
    if (!users->program->is_crossed || !program_op_crosses(users->program, op, rank))
        return STATUS_OK;
    char text[96];
    snprintf(text, sizeof text, "a thread of rank %d uses the device of another rank", rank);
    return ranks_refuse(users, op->mark, text);
}

static enum status check_body(struct users *users, const struct body *body, int rank)
{
    const struct program *p = users->program;
    enum status status = STATUS_OK;
    for (int i = 0; i < body->count && !status; i++) {
        const struct op *op = &p->ops[body->first + i];
        if (op_operand(op->kind) == OPERAND_FLAG)
            status = ranks_use(users, &users->flags[op->object], p->flag_names[op->object], rank);
        else if (op_operand(op->kind) == OPERAND_QUEUE)
            status = ranks_use(users, &users->queues[op->object], p->queue_names[op->object], rank);
        else
            status = ranks_check_device(users, op, rank);
    }
    return status;
}

static enum status check_threads(struct users *users)
{
    const struct program *p = users->program;
    enum status status = STATUS_OK;
    for (size_t b = 0; b < p->body_count && !status; b++)
        status = check_body(users, &p->bodies[b], p->threads[p->bodies[b].thread].rank);
    return status;
}

/* In a pipeline each rank has flags and queues of its own, but for those of a first use (first_use_blocks). */
static enum status rank_split_check(const struct program *program, struct diag *diag)
{
    struct users users = {.program = program, .diag = diag};
    if (program->plan->machine.share_device)
        return ranks_refuse(
            &users, program->plan->machine.share_device_mark,
            "processes do not share the residency slots of a device (share_device)");
    users.flags = calloc((size_t)program->flag_families + 1, sizeof *users.flags);
    users.queues = calloc((size_t)program->queue_count + 1, sizeof *users.queues);
    enum status status = users.flags && users.queues ? check_threads(&users) : diag_no_memory(diag);
    free(users.flags);
    free(users.queues);
    return status;
}

/* ---- the collector --------------------------------------------------------------------------- */

struct blocked_node {
    struct blocked_node *next;
    struct runtime_blocked blocked;
};

struct collector {
    struct runtime_options options;
    struct broker *broker;
    struct variant variant;
    struct program *program;
    struct journal *journal; /* NULL: nothing has begun */
    struct arena arena;      /* becomes that of the result */
    const char *device;
    struct ranks_rank_end *ends; /* [ranks] */
    bool *ended;
    struct diag messages; /* what the ranks said */
    struct blocked_node *blocked, **blocked_end;
    size_t blocked_count;
    int64_t pass_ns; /* when the journal was last made durable */
    bool behind;     /* reports may be left that have come */
};

static void collector_free(struct collector *collector)
{
    journal_close(collector->journal);
    program_close(collector->program);
    variant_fini(&collector->variant);
    diag_fini(&collector->messages);
    free(collector->ends);
    free(collector->ended);
    free(collector);
}

void collector_drop(struct collector *collector)
{
    arena_fini(&collector->arena);
    collector_free(collector);
}

enum status collector_open(const struct plan *plan, const struct runtime_options *options,
                           struct broker *broker, struct collector **out, struct diag *diag)
{
    struct collector *collector = calloc(1, sizeof *collector);
    if (!collector)
        return diag_no_memory(diag);
    collector->options = *options;
    collector->broker = broker;
    collector->blocked_end = &collector->blocked;
    arena_init(&collector->arena, 0);
    diag_init(&collector->messages);
    collector->messages.limit = 1000;
    struct diag unheard; /* what there is to note, the ranks note */
    diag_init(&unheard);
    enum status status =
        runtime_build(plan, options, &collector->variant, &collector->program, &unheard);
    if (status)
        diag_error(diag, status, "%s", unheard.count ? unheard.messages[0].text : "no program");
    diag_fini(&unheard);
    if (!status)
        status = rank_split_check(collector->program, diag);
    size_t ranks = collector->program ? (size_t)collector->program->ranks : 1;
    collector->ends = calloc(ranks, sizeof *collector->ends);
    collector->ended = calloc(ranks, sizeof *collector->ended);
    if (!status && (!collector->ends || !collector->ended))
        status = diag_no_memory(diag);
    if (status) {
        collector_drop(collector);
        return status;
    }
    *out = collector;
    return STATUS_OK;
}

/* ---- taking reports -------------------------------------------------------------------------- */

/* The same text from several ranks is said once. */
static void keep_message(struct collector *collector, enum severity severity, const char *text)
{
    struct diag *messages = &collector->messages;
    for (size_t i = 0; i < messages->count; i++)
        if (strcmp(messages->messages[i].text, text) == 0)
            return;
    if (severity == SEVERITY_ERROR)
        diag_error(messages, STATUS_VIOLATED, "%s", text);
    else if (severity == SEVERITY_WARNING)
        diag_warn(messages, "%s", text);
    else
        diag_note(messages, "%s", text);
}

static enum status keep_blocked(struct collector *collector, int rank, const char *agent,
                                const char *waits_for, struct diag *diag)
{
    struct blocked_node *node = ARENA_ARRAY(&collector->arena, 1, struct blocked_node);
    if (!node)
        return diag_no_memory(diag);
    *node = (struct blocked_node){.blocked = {rank, arena_strdup(&collector->arena, agent),
                                              arena_strdup(&collector->arena, waits_for)}};
    if (!node->blocked.agent || !node->blocked.waits_for)
        return diag_no_memory(diag);
    *collector->blocked_end = node;
    collector->blocked_end = &node->next;
    collector->blocked_count++;
    return STATUS_OK;
}

static enum status ranks_begin(struct collector *collector, const char *device, struct diag *diag)
{
    collector->device = arena_strdup(&collector->arena, device);
    if (!collector->device)
        return diag_no_memory(diag);
    return collector->journal
               ? STATUS_OK
               : journal_open_collecting(collector->program, &collector->options, collector->device,
                                         atomic_load(&broker_board(collector->broker)->start_ns),
                                         &collector->journal, diag);
}

/* `text` ends with 0, and the one behind it, too. */
static enum status ranks_take(struct collector *collector, const struct report *report,
                              const struct report_head *head, const char *text, struct diag *diag)
{
    size_t bytes = report->bytes - sizeof *head;
    switch ((enum report_kind)head->kind) {
    case REPORT_BEGIN: return ranks_begin(collector, text, diag);
    case REPORT_LOG:
        if (collector->journal)
            journal_take(collector->journal, text, bytes);
        break;
    case REPORT_MESSAGE: keep_message(collector, (enum severity)head->number, text); break;
    case REPORT_BLOCKED:
        if (strlen(text) + 1 == bytes || head->number < 0 ||
            head->number >= collector->program->ranks)
            break; /* cut off */
        return keep_blocked(collector, head->number, text, text + strlen(text) + 1, diag);
    case REPORT_END:
        if (bytes == sizeof *collector->ends && report->from < collector->program->ranks) {
            memcpy(&collector->ends[report->from], text, bytes);
            collector->ended[report->from] = true;
        }
        break;
    }
    return STATUS_OK;
}

static enum status take_report(struct collector *collector, const struct report *report,
                               struct diag *diag)
{
    struct report_head head;
    if (report->bytes < sizeof head)
        return STATUS_OK;
    memcpy(&head, report->data, sizeof head);
    const char *text = report->data + sizeof head;
    bool is_text = head.kind != REPORT_LOG && head.kind != REPORT_END;
    if (is_text && (report->bytes == sizeof head || report->data[report->bytes - 1] != '\0'))
        return STATUS_OK; /* cut off: too long to be said */
    return ranks_take(collector, report, &head, text, diag);
}

/* Since the start of all ranks' clocks. */
static int64_t now_of(const struct collector *collector)
{
    return device_clock_ns() - broker_board(collector->broker)->base_ns;
}

/* Ranks may report as fast as this process takes reports, so that it never sees the last one. */
static bool pass_is_due(const struct collector *collector, int64_t now_ns)
{
    return collector->journal && now_ns - collector->pass_ns > JOURNAL_PASS_MS * INT64_C(1000000);
}

enum status collector_take(struct collector *collector, int64_t timeout_ns, struct diag *diag)
{
    enum status status = STATUS_OK;
    struct report *report = broker_receive(collector->broker, timeout_ns);
    collector->behind = false;
    while (report && !status) {
        status = take_report(collector, report, diag);
        free(report);
        collector->behind = status || pass_is_due(collector, now_of(collector));
        report = collector->behind ? NULL : broker_receive(collector->broker, 0);
    }
    int64_t now_ns = now_of(collector);
    if (!status && pass_is_due(collector, now_ns)) {
        journal_pass(collector->journal, now_ns);
        collector->pass_ns = now_of(collector); /* reports come before the next one */
        status = journal_status(collector->journal, diag);
    }
    return status;
}

bool collector_is_behind(const struct collector *collector)
{
    return collector->behind;
}

int64_t collector_patience_ns(const struct collector *collector)
{
    const struct program *p = collector->program;
    int64_t limit_ns = collector->options.timeout_ns, longest_ns = 0;
    for (size_t i = 0; i < p->op_count; i++)
        if (p->ops[i].time_ns > longest_ns)
            longest_ns = p->ops[i].time_ns;
    return integers_sum(limit_ns ? limit_ns : RUNTIME_TIMEOUT_NS, longest_ns);
}

bool collector_has_end(const struct collector *collector, int rank)
{
    return collector->ended[rank];
}

int collector_ends(const struct collector *collector, bool *good)
{
    int ends = 0;
    *good = true;
    for (int rank = 0; rank < collector->program->ranks; rank++) {
        ends += collector->ended[rank];
        *good = *good && (!collector->ended[rank] || collector->ends[rank].status == STATUS_OK);
    }
    return ends;
}

/* ---- the result ------------------------------------------------------------------------------ */

/* The sums over all ranks. */
struct summary {
    enum status status;
    bool all; /* every rank reported an end with a result */
    bool finished, interrupted, hung, peer_died, complete;
    enum answer matches;
    int64_t duration_ns, held_ns;
    struct runtime_graphs graph;
    struct runtime_arithmetic arithmetic;
};

static enum status ranks_worse(enum status a, enum status b)
{
    return a == STATUS_OK || (a == STATUS_VIOLATED && b != STATUS_OK) ? b : a;
}

/* Ranks match their serial runs when all do; one that does not decides, one that is unknown leaves it open. */
static enum answer both_match(enum answer a, enum answer b)
{
    if (a == ANSWER_NO || b == ANSWER_NO)
        return ANSWER_NO;
    return a == ANSWER_YES && b == ANSWER_YES ? ANSWER_YES : ANSWER_UNKNOWN;
}

/* Add what a rank reported at its end. */
static void add_end(struct summary *all, const struct ranks_rank_end *end)
{
    all->finished = all->finished && end->finished;
    all->complete = all->complete && end->complete;
    all->interrupted = all->interrupted || end->interrupted;
    all->hung = all->hung || end->hung;
    all->peer_died = all->peer_died || end->peer_died;
    all->matches = both_match(all->matches, (enum answer)end->matches_serial);
    all->held_ns += end->held_ns;
    if (end->duration_ns > all->duration_ns)
        all->duration_ns = end->duration_ns;
    all->graph.graphs += end->graph.graphs;
    all->graph.launches += end->graph.launches;
    all->graph.periods += end->graph.periods;
    /* Ranks come in their order: the first difference is that of the lowest. */
    struct runtime_arithmetic *sum = &all->arithmetic;
    const struct runtime_arithmetic *more = &end->arithmetic;
    if (sum->different == 0)
        sum->first = more->first;
    sum->equal = both_match(sum->equal, more->equal);
    sum->gradients += more->gradients;
    for (int64_t i = 0; i < more->losses && sum->losses + i < ARITHMETIC_LOSSES; i++)
        sum->each_loss[sum->losses + i] = more->each_loss[i];
    sum->losses += more->losses;
    sum->loss_sum += more->loss_sum;
    sum->different += more->different;
}

static struct summary ranks_sum_up(const struct collector *collector)
{
    bool missing = false;
    struct summary all = {.all = true,
                          .finished = true,
                          .complete = true,
                          .matches = ANSWER_YES,
                          .arithmetic.equal = ANSWER_YES};
    for (int rank = 0; rank < collector->program->ranks; rank++) {
        const struct ranks_rank_end *end = &collector->ends[rank];
        bool ended = collector->ended[rank];
        missing = missing || !ended;
        all.status = ranks_worse(all.status, ended ? (enum status)end->status : STATUS_VIOLATED);
        if (ended && end->has_result)
            add_end(&all, end);
        else
            all.all = false;
    }
    all.finished = all.finished && all.all;
    all.complete = all.complete && all.all;
    if (!all.finished)
        all.matches = all.arithmetic.equal = ANSWER_UNKNOWN;
    all.hung = all.hung && !all.peer_died;
    all.peer_died = all.peer_died || (missing && !all.hung);
    return all;
}

/* That a rank was aborted because of what another one has said already is not said again. */
static bool ranks_follows(const struct diag *messages, const char *text)
{
    static const char aborted[] = "aborted: ";
    const char *why = text + strlen(aborted);
    if (strncmp(text, aborted, strlen(aborted)) != 0)
        return false;
    for (size_t i = 0; i < messages->count; i++)
        if (messages->messages[i].text != text && strstr(messages->messages[i].text, why))
            return true;
    return false;
}

/* Errors first, then what explains them. */
static void pass_messages(const struct collector *collector, struct diag *diag)
{
    for (int notes = 0; notes < 2; notes++)
        for (size_t i = 0; i < collector->messages.count; i++) {
            const struct diag_message *message = &collector->messages.messages[i];
            if ((message->severity != SEVERITY_ERROR) != notes ||
                ranks_follows(&collector->messages, message->text))
                continue;
            if (message->severity == SEVERITY_ERROR)
                diag_error(diag, STATUS_VIOLATED, "%s", message->text);
            else if (message->severity == SEVERITY_WARNING)
                diag_warn(diag, "%s", message->text);
            else
                diag_note(diag, "%s", message->text);
        }
}

/* The blocked agents by the ranks' reports, where the machine did not name them. */
static enum status list_blocked(const struct collector *collector, struct runtime_result *result,
                                struct diag *diag)
{
    if (result->blocked_count > 0 || collector->blocked_count == 0)
        return STATUS_OK;
    result->blocked = ARENA_ARRAY(&result->arena, collector->blocked_count, struct runtime_blocked);
    if (!result->blocked)
        return diag_no_memory(diag);
    for (const struct blocked_node *at = collector->blocked; at; at = at->next)
        result->blocked[result->blocked_count++] = at->blocked;
    return STATUS_OK;
}

static enum status judge_run(struct collector *collector, const struct summary *all,
                             struct runtime_result *result, struct diag *diag)
{
    int ranks = collector->program->ranks;
    int64_t *ends = calloc((size_t)ranks, sizeof *ends);
    if (!ends)
        return diag_no_memory(diag);
    for (int rank = 0; rank < ranks; rank++)
        ends[rank] = collector->ends[rank].planned;
    const struct journal_end how = {.complete = all->complete,
                                    .torn = !all->all || all->peer_died,
                                    .interrupted = all->interrupted,
                                    .ends = ends,
                                    .duration_ns = all->duration_ns};
    if (how.torn && collector->options.replay)
        diag_note(diag, "not replayed through the machine: part of the log is missing");
    enum status status = journal_end(collector->journal, &how, result, diag);
    free(ends);
    return status;
}

enum status collector_end(struct collector *collector, struct runtime_result *out,
                          struct diag *diag)
{
    struct summary all = ranks_sum_up(collector);
    struct runtime_result result = {.arena = collector->arena,
                                    .device = collector->device,
                                    .run = -1,
                                    .finished = all.finished,
                                    .interrupted = all.interrupted,
                                    .hung = all.hung,
                                    .peer_died = all.peer_died,
                                    .matches_serial = all.matches,
                                    .duration_ns = all.duration_ns,
                                    .held_ns = all.held_ns,
                                    .graph = all.graph,
                                    .arithmetic = all.arithmetic};
    enum status status = all.status, judged = STATUS_OK;
    pass_messages(collector, diag);
    if (!diag_has_error(diag)) {
        /* A rank whose connection breaks may exit with code 0 and without a report: no other message names it. */
        for (int rank = 0; rank < collector->program->ranks; rank++)
            if (!collector->ended[rank])
                diag_error(diag, STATUS_VIOLATED, "rank %d: no report of its end has come", rank);
    }
    if (collector->journal)
        judged = judge_run(collector, &all, &result, diag);
    else if (status == STATUS_OK || status == STATUS_VIOLATED)
        result.device = "nothing: it did not begin";
    if (!judged || judged == STATUS_VIOLATED) {
        enum status listed = list_blocked(collector, &result, diag);
        judged = listed ? listed : judged;
    }
    status = ranks_worse(status, judged);
    if (status == STATUS_OK || status == STATUS_VIOLATED)
        *out = result;
    else
        runtime_result_fini(&result);
    collector_free(collector);
    return status;
}
