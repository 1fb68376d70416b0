/* SPDX-License-Identifier: Apache-2.0 */
/*
 * journal_replay.c - a log as steps of the machine, and the verdict on them (gpu/record/replay.h).
 */
#include "journal_impl.h"

#include <assert.h>
#include <inttypes.h>

#include "gpu/device/device_impl.h"

enum {
    REPLAY_SLICE = 1 << 16, /* steps between two checks of the stop flag */
    REPLAY_PIECE = 256,     /* and of the clock */
    REPLAY_STEPS = 1 << 17, /* pending, about 12 MB: then the replay has its share of each pass */
    REPLAY_HOLD = 1 << 18,  /* then the run waits for it */
    REPLAY_MOST = 1 << 23,  /* then it is left */
    REPLAY_LAG_MS = 250, /* behind the clock, so that late steps are in their place; as much ... */
    REPLAY_FAR_LAG_MS =
        1000, /* ... where steps come from other processes, or a device other than the host's */
    REPLAY_SHARE_MS = 25,     /* of a pass */
    REPLAY_PATIENCE_MS = 2000 /* without a step it waits for an operation that is not over */
};
#define MS INT64_C(1000000)

/* ---- the writer: steps of the replay --------------------------------------------------------- */

static void journal_replay_add_step(struct journal *journal, const struct replay_step *step)
{
    if (replay_pending(journal->replay) >= REPLAY_MOST)
        journal->replay_left = true;
    if (!journal->replay_left && !replay_add(journal->replay, step))
        journal->replay_memory = true;
}

/* True if a task's event may be recorded for a later iteration before the driver retires this one. What the driver
   found over may not be over again by the time it writes down, which is that behind its look. */
static bool retires_early(const struct program *p, const struct log_entry *entry)
{
    return entry->kind == LOG_RETIRE && !p->slots_safe;
}

/* A step of the host alone has an exact time, but for two that look without the lock, and are tried as early as they may have
   been: a retirement, and an await, whose flag's slot the driver may have reset before the clock was read again. A push has
   the time at which the device says that it took effect: its call may return long after. A wait for the device has the times
   of its call, and most likely ended with it. */
void journal_replay_host(struct journal *journal, int thread, const struct log_entry *entry)
{
    static const enum replay_kind kinds[] = {
        [LOG_OP] = REPLAY_OP,         [LOG_TAKE] = REPLAY_TAKE, [LOG_ENQUEUE] = REPLAY_ENQUEUE,
        [LOG_RETIRE] = REPLAY_RETIRE, [LOG_END] = REPLAY_END,   [LOG_CALL] = REPLAY_OP,
        [LOG_NO] = REPLAY_OP};
    const struct program *p = journal->config.program;
    bool is_op = log_is_of_op(entry->kind);
    bool pushed = is_op && entry->stamp.number >= 0;
    bool marked = pushed && entry->since.number >= 0;
    const struct op *op = is_op ? &p->ops[entry->op] : NULL;
    bool call = op && (op_syncs(op->kind) || op_is_cpu_work(op->kind) || op_asks(op->kind));
    bool looked = op && op_uses_so(op->kind, OPERAND_FLAG, AT_CALL, TAKES),
         early = retires_early(p, entry);
    int64_t at_ns = pushed ? entry->stamp.pushed_by_ns : entry->at_ns;
    journal_replay_add_step(journal,
                            &(struct replay_step){
                                .kind = kinds[entry->kind],
                                .agent = program_thread_agent(p, thread),
                                .op = is_op ? entry->op : -1,
                                .task = entry->kind == LOG_TAKE ? entry->op : -1,
                                .iteration = entry->iteration,
                                .lo_ns = pushed          ? log_pushed_from_ns(entry)
                                         : call || early ? entry->begin_ns
                                                         : entry->at_ns,
                                .hi_ns = looked ? entry->end_ns : at_ns,
                                .key_ns = early ? entry->begin_ns : at_ns,
                                .no = entry->kind == LOG_NO,
                                .number = pushed ? entry->stamp.number : -1,
                                .span = marked ? entry->stamp.number - entry->since.number : 0,
                            });
}

/* Of a function's device work only the span is known: its collective began and ended somewhere in it. */
static bool journal_replay_is_within(const struct journal *journal, const struct log_entry *entry)
{
    return entry->kind == LOG_CALL && op_uses_comm(journal->config.program->ops[entry->op].kind);
}

static struct replay_step journal_replay_start_of(const struct journal *journal,
                                                  const struct log_entry *entry)
{
    const struct program *p = journal->config.program;
    const bool acts = op_role(p->ops[entry->op].kind) == ROLE_STEP &&
                      journal->config.options->device == DEVICE_KIND_HOST;
    return (struct replay_step){
        .kind = REPLAY_START,
        .agent = program_stream_agent(p, p->ops[entry->op].stream),
        .op = entry->op,
        .task = -1,
        .iteration = entry->iteration,
        .lo_ns = log_started_ns(entry),
        .hi_ns = acts ? log_started_ns(entry) : INT64_MAX,
        .key_ns = log_started_ns(entry),
        .number = entry->stamp.number,
        .optional =
            journal_replay_is_within(journal, entry) ||
            op_stream_waits(journal->config.program->ops[entry->op].kind)}; /* unless it ended */
}

/* Records, waits and allocations are no steps of a stream in the machine. */
static bool is_stream_step(const struct journal *journal, const struct log_entry *entry)
{
    return !op_is_mark(journal->config.program->ops[entry->op].kind);
}

void journal_replay_start(struct journal *journal, struct open_entry *open)
{
    if (open->start_added || !is_stream_step(journal, open->entry) || !log_has_started(open->entry))
        return;
    struct replay_step step = journal_replay_start_of(journal, open->entry);
    journal_replay_add_step(journal, &step);
    open->start_added = true;
}

/* The start of an operation may be taken later than it was, as long as it runs: no other agent can see the
   difference, but for a step, of which the host device knows when it took effect. */
void journal_replay_device(struct journal *journal, const struct open_entry *open)
{
    struct replay_step step = journal_replay_start_of(journal, open->entry);
    assert(log_is_over(open->entry));
    if (!is_stream_step(journal, open->entry))
        return;
    step.hi_ns = step.hi_ns < open->entry->stamp.end_ns ? step.hi_ns : open->entry->stamp.end_ns;
    if (!open->start_added)
        journal_replay_add_step(journal, &step);
    step.kind = REPLAY_FINISH;
    step.optional = false;
    step.hi_ns = open->entry->stamp.end_ns;
    step.key_ns = step.hi_ns;
    if (!journal_replay_is_within(journal, open->entry))
        step.lo_ns = step.hi_ns;
    journal_replay_add_step(journal, &step);
}

/* The collective of a function that is not over may be. */
static void replay_unfinished_call(struct journal *journal, const struct open_entry *open)
{
    struct replay_step step = journal_replay_start_of(journal, open->entry);
    if (!journal_replay_is_within(journal, open->entry) || !log_has_started(open->entry))
        return;
    step.kind = REPLAY_FINISH;
    step.key_ns = INT64_MAX;
    journal_replay_add_step(journal, &step);
}

/* An unfinished device operation may have started, and that start may have let others finish. The host device
   reports each start. */
static void replay_unfinished(struct journal *journal)
{
    for (size_t i = 0; i < journal->open_count; i++) {
        struct open_entry *open = &journal->open[i];
        if (!is_stream_step(journal, open->entry))
            continue;
        if (log_has_started(open->entry)) {
            journal_replay_start(journal, open);
            replay_unfinished_call(journal, open);
            continue;
        }
        if (open->start_added)
            continue;
        if (journal->config.options->device == DEVICE_KIND_HOST)
            continue; /* this device would have said so */
        struct replay_step step = journal_replay_start_of(journal, open->entry);
        step.lo_ns = open->entry->begin_ns;
        step.key_ns = INT64_MAX;
        step.optional = true;
        journal_replay_add_step(journal, &step);
    }
}

/* A device's stamps may be less exact than was known. */
static void know_tolerance(struct journal *journal)
{
    journal_know_clocks(journal);
    replay_tolerate(journal->replay, journal->tolerance_ns + journal->clock_error_ns);
}

/* ---- along with the run ---------------------------------------------------------------------- */

void journal_replay_along(struct journal *journal, int64_t now_ns, int64_t until_ns)
{
    int64_t begin_ns = device_clock_ns(), clock_ns = begin_ns;
    int64_t due_ns = begin_ns + REPLAY_SHARE_MS * MS;
    bool near = journal->logs && journal->config.options->device == DEVICE_KIND_HOST;
    int64_t old_ns = now_ns - (near ? REPLAY_LAG_MS : REPLAY_FAR_LAG_MS) * MS;
    bool more = true;
    know_tolerance(journal);
    while (more && !journal->replay_left &&
           (replay_pending(journal->replay) > REPLAY_STEPS
                ? clock_ns < due_ns || clock_ns < until_ns
                : clock_ns < until_ns && !atomic_load(&journal->wanted))) {
        int64_t taken = replay_taken(journal->replay);
        more = replay_advance(journal->replay, old_ns, REPLAY_PIECE);
        clock_ns = device_clock_ns();
        if (replay_taken(journal->replay) > taken)
            journal->replay_moved_ns = clock_ns;
    }
}

bool journal_replay_holds(struct journal *journal)
{
    return journal->replay && !journal->replay_left &&
           replay_pending(journal->replay) > REPLAY_HOLD &&
           device_clock_ns() - journal->replay_moved_ns < REPLAY_PATIENCE_MS * MS;
}

/* ---- the verdict ----------------------------------------------------------------------------- */

static bool copy_violations(const struct journal *journal, struct runtime_result *result)
{
    for (int property = 0; property < PROPERTY_COUNT; property++) {
        const char *text = replay_violation(journal->replay, (enum property)property);
        result->violations[property] = text ? arena_strdup(&result->arena, text) : NULL;
        if (text && !result->violations[property])
            return false;
    }
    return true;
}

/* The blocked agents, in the words of the machine. */
static bool tell_blocked(const struct journal *journal, struct runtime_result *result)
{
    const struct program *p = journal->config.program;
    char name[160], wait[320];
    result->blocked = ARENA_ARRAY(&result->arena, (size_t)p->agent_count, struct runtime_blocked);
    if (!result->blocked)
        return false;
    for (int agent = 0; agent < p->agent_count; agent++) {
        struct wait why;
        machine_why(p, replay_state(journal->replay), agent, &why);
        if (why.cause == CAUSE_NONE || why.cause == CAUSE_EMPTY)
            continue;
        machine_describe_wait(p, replay_state(journal->replay), agent, wait, sizeof wait);
        program_agent_name(p, agent, name, sizeof name);
        struct runtime_blocked *blocked = &result->blocked[result->blocked_count++];
        *blocked =
            (struct runtime_blocked){p->agents[agent].rank, arena_strdup(&result->arena, name),
                                     arena_strdup(&result->arena, wait)};
        if (!blocked->agent || !blocked->waits_for)
            return false;
    }
    return true;
}

enum status journal_judge(struct journal *journal, const struct journal_end *end,
                          struct runtime_result *result, struct diag *diag)
{
    const struct program *p = journal->config.program;
    const struct runtime_options *options = journal->config.options;
    if (journal->replay_left) {
        diag_note(diag,
                  "the replay was stopped: %d steps waited for a step that was not logged in time",
                  (int)REPLAY_MOST);
        return STATUS_OK;
    }
    for (int rank = 0; rank < p->ranks && p->tasks; rank++)
        if (end->ends[rank] != p->ends[rank])
            replay_end_data(journal->replay, rank, end->ends[rank]);
    replay_unfinished(journal);
    know_tolerance(journal);
    while (replay_advance(journal->replay, INT64_MAX, REPLAY_SLICE))
        if (options->stop && atomic_load(options->stop) == RUNTIME_ABORT) {
            diag_note(diag, "interrupted before the replay ended");
            return STATUS_OK;
        }
    if (journal->replay_memory || journal->no_memory) /* steps are missing */
        return journal->reported ? STATUS_SYSTEM : diag_no_memory(diag);
    bool legal = replay_finish(journal->replay, end->complete);
    bool torn =
        !end->complete && !result->hung; /* some ends of what was under way are not logged */
    int64_t late_ns = replay_late_ns(journal->replay);
    if (!legal && late_ns > 0)
        diag_note(diag,
                  "whether the run was legal is not known: steps were logged up to %" PRId64
                  " ms later than the check can wait for",
                  late_ns / MS + 1);
    bool sure = replay_is_sure(journal->replay);
    if (!legal && !sure)
        diag_note(diag,
                  "whether the run was legal is not known: the clocks leave the order of too many "
                  "pushes and waits open");
    bool known = legal || (!torn && late_ns == 0 && sure);
    result->legal = legal ? ANSWER_YES : known ? ANSWER_NO : ANSWER_UNKNOWN;
    result->steps = replay_taken(journal->replay);
    result->stale = replay_has_stale_reads(journal->replay);
    if (!copy_violations(journal, result))
        return diag_no_memory(diag);
    if (result->legal == ANSWER_NO)
        return diag_error(diag, STATUS_VIOLATED, "the run was not legal: %s",
                          replay_reason(journal->replay));
    if (!result->hung)
        return STATUS_OK;
    if (!replay_settle(journal->replay))
        diag_note(diag,
                  "the machine could go on from here: the device, or the timeout, is to blame");
    return tell_blocked(journal, result) ? STATUS_OK : diag_no_memory(diag);
}
