/* SPDX-License-Identifier: Apache-2.0 */
/*
 * account.c - every nanosecond of every stream goes somewhere.
 *
 * A lane says what a stream is doing and since when. At the end of an instant the lanes of the
 * touched ranks are looked at; where the answer has changed, the time since then is booked under
 * the old one. So intervals neither overlap nor leave gaps.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/assert_index.h"
#include "base/sort.h"
#include "base/table.h"
#include "memo.h"
#include "machine/uses.h"
#include "simulation.h"
#include "base/list_key.h"

enum { LEAST_LOGGED = 16, NAMED_PIECES = 64, NAME = 160 };

/* ---- stalls in words -------------------------------------------------------------------------- */

static const struct {
    const char *key, *words;
} stall_texts[STALL_COUNT] = {
#define X(name, key, words) {key, words},
    STALL_LIST(X)
#undef X
};

const char *stall_key(enum stall_cause cause)
{
    return stall_texts[cause].key;
}

const char *stall_words(enum stall_cause cause)
{
    return stall_texts[cause].words;
}

const char *agent_on_rank(const struct program *p, int rank, int agent, char *buf, size_t cap)
{
    ASSERT_INDEX(agent, p->agent_count);
    const struct agent *desc = &p->agents[agent];
    if (desc->rank != rank)
        return program_agent_name(p, agent, buf, cap);
    if (desc->kind == AGENT_STREAM)
        snprintf(buf, cap, "stream %s", p->streams[desc->index].name);
    else if (desc->kind == AGENT_THREAD && p->threads[desc->index].kind != THREAD_DRIVER)
        snprintf(buf, cap, "thread %s", p->threads[desc->index].name);
    else if (desc->kind == AGENT_THREAD)
        snprintf(buf, cap, "driver");
    else
        program_agent_name(p, agent, buf, cap);
    return buf;
}

static int held_count(const struct program *program, enum held held)
{
    switch (held) {
    case HELD_COMM: return program->comm_count;
    case HELD_LOCK: return program->lock_count;
    default: return program->agent_count;
    }
}

bool stall_is_of(const struct program *program, const struct stall *stall)
{
    if ((int)stall->cause < 0 || stall->cause >= STALL_COUNT)
        return false;
    if (stall->on < 0)
        return stall->on == STALL_ON_NONE || ~stall->on < program->agent_count;
    if (stall->cause == STALL_RESOURCE)
        return stall->on / HELD_KINDS < held_count(program, (enum held)(stall->on % HELD_KINDS));
    return stall->on < program->tasks;
}

static const char *held_describe(const struct program *program, int rank, enum held held, int index,
                                 char *buf, size_t cap)
{
    static const char *const words[HELD_KINDS] = {HELD_LIST(LIST_KEY)};
    char agent[NAME];
    const char *name;
    switch (held) {
    case HELD_COMM: name = program->comms[index].name; break;
    case HELD_LOCK: name = program->lock_names[index]; break;
    case HELD_WINDOW: name = ""; break;
    default: name = agent_on_rank(program, rank, index, agent, sizeof agent); break;
    }
    snprintf(buf, cap, "%s%s", words[held], name);
    return buf;
}

const char *stall_waits_for(const struct program *program, int rank, const struct stall *stall,
                            char *buf, size_t cap)
{
    if (stall->on < 0)
        return NULL;
    if (stall->cause == STALL_RESOURCE)
        return held_describe(program, rank, (enum held)(stall->on % HELD_KINDS),
                             stall->on / HELD_KINDS, buf, cap);
    return program->plan->pipeline.tasks[stall->on].name;
}

const char *stall_describe(const struct program *program, int rank, const struct stall *stall,
                           char *buf, size_t cap)
{
    char text[2 * NAME];
    const char *name = stall_waits_for(program, rank, stall, text, sizeof text);
    if (!name && stall->on != STALL_ON_NONE)
        name = agent_on_rank(program, rank, ~stall->on, text, sizeof text);
    const char *joint = stall->cause == STALL_DEPENDENCE     ? " on "
                        : stall->cause == STALL_SYNC         ? " of "
                        : stall->cause == STALL_HEAD_OF_LINE ? ", behind "
                                                             : ", ";
    snprintf(buf, cap, "%s%s%s", stall_words(stall->cause), name ? joint : "", name ? name : "");
    return buf;
}

/* ---- accounts -------------------------------------------------------------------------------- */

static bool same_stall(const struct stall *a, const struct stall *b)
{
    return a->cause == b->cause && a->on == b->on;
}

/* The place of a stall among the account's blames, new or old; -1: memory is exhausted. */
static int find_blame(struct stream_account *account, const struct stall *stall)
{
    const uint64_t hash = table_hash_number((uint64_t)stall->cause << 32 | (uint32_t)stall->on);
    const uint32_t found =
        TABLE_FIND(&account->table, hash, i, same_stall(&account->blames[i].stall, stall));
    if (found != TABLE_NONE)
        return (int)found;
    if (!ARRAY_GROW(account->blames, account->blame_count, account->blame_cap) ||
        !table_add(&account->table, hash, (size_t)account->blame_count))
        return -1;
    account->blames[account->blame_count] = (struct blame){*stall, 0};
    return account->blame_count++;
}

bool stream_account_blame(struct stream_account *account, const struct stall *stall, int64_t ns)
{
    int blame = find_blame(account, stall);
    if (blame >= 0)
        account->blames[blame].ns += ns;
    return blame >= 0;
}

static int account_compare_blames(const void *a, const void *b)
{
    const struct blame *x = a, *y = b;
    return compare_then(compare_int(x->stall.cause, y->stall.cause),
                        compare_int(x->stall.on, y->stall.on));
}

void stream_account_finish(struct stream_account *account)
{
    int kept = 0;
    memset(account->stall_ns, 0, sizeof account->stall_ns);
    for (int i = 0; i < account->blame_count; i++) {
        account->stall_ns[account->blames[i].stall.cause] += account->blames[i].ns;
        if (account->blames[i].ns)
            account->blames[kept++] = account->blames[i];
    }
    account->blame_count = kept;
    table_fini(&account->table);
    SORT(account->blames, (size_t)kept, account_compare_blames);
}

void stream_account_free(struct stream_account *account)
{
    free(account->blames);
    table_fini(&account->table);
}

/* Report a wait that is over to the observer. */
static void tell_stall(struct simulation *sim, int stream)
{
    const struct simulate_observer *observer = sim->options->observer;
    const struct lane *lane = &sim->stalls.lanes[stream];
    if (!observer || !observer->span || sim->status != STATUS_OK || lane->blame == LANE_BUSY ||
        lane->told_ns == sim->now_ns)
        return;
    const struct simulate_span span = {
        .kind = SIMULATE_STALL,
        .agent = program_stream_agent(sim->program, stream),
        .op = -1,
        .iteration = -1,
        .start_ns = lane->told_ns,
        .end_ns = sim->now_ns,
        .stall = sim->result.streams[stream].blames[lane->blame].stall,
    };
    if (!observer->span(observer->context, &span))
        sim->status = STATUS_SYSTEM;
}

static struct stall account_doing_now(struct simulation *sim, int stream, int *common,
                                      bool *chained)
{
    static const struct stall busy = {STALL_BUSY, STALL_ON_NONE};
    *common = COMMON_NONE;
    *chained = false;
    if (!machine_stream_running(sim->program, sim->state, stream))
        return cause_of_idleness(sim, stream, common, chained);
    int64_t iteration;
    int agent = program_stream_agent(sim->program, stream);
    int op = machine_current_op(sim->program, sim->state, agent, &iteration);
    bool meets = sim->program->ops[op].comm >= 0;
    return meets && sim->clocks.timers[agent] == TIMER_NONE
               ? cause_of_idleness(sim, stream, common, chained)
               : busy;
}

/* Blames up to this one, which has time on another simulation's account. false: memory is exhausted. */
static bool account_catch_up(struct simulation *sim, int stream, int blame)
{
    ASSERT_INDEX(stream, sim->result.stream_count);
    struct stream_account *own = &sim->result.streams[stream];
    while (own->blame_count <= blame) {
        if (!ARRAY_GROW(own->blames, own->blame_count, own->blame_cap))
            return false;
        own->blames[own->blame_count] =
            (struct blame){sim->stalls.known[stream].blames[own->blame_count].stall, 0};
        own->blame_count++;
    }
    return true;
}

/* -1: memory is exhausted. */
static int blame_of_lane(struct simulation *sim, int stream, const struct stall *stall)
{
    struct stream_account *known = sim->stalls.known ? sim->stalls.known : sim->result.streams;
    int blame = find_blame(&known[stream], stall);
    if (blame >= 0 && account_catch_up(sim, stream, blame))
        return blame;
    simulation_fail(sim, diag_no_memory(sim->diag));
    return -1;
}

/* ---- common reasons -------------------------------------------------------------------------- */

/* Look up the stall a lane has not booked last. false: memory is exhausted. */
static bool find_booked(struct simulation *sim, int stream, const struct stall *stall)
{
    int blame = blame_of_lane(sim, stream, stall);
    if (blame >= 0)
        sim->stalls.lanes[stream].booked = blame;
    return blame >= 0;
}

static inline void account_book(struct simulation *sim, int stream, const struct stall *stall,
                                int64_t ns)
{
    ASSERT_INDEX(stream, sim->result.stream_count);
    const struct stream_account *account = &sim->result.streams[stream];
    int *booked = &sim->stalls.lanes[stream].booked;
    bool known = false;
    for (int i = *booked; i < *booked + 2 && i < account->blame_count && !known; i++)
        if ((known = same_stall(&account->blames[i].stall, stall)))
            *booked = i; /* the same, or that which came behind it the first time */
    if (ns > 0 && (known || find_booked(sim, stream, stall)))
        account->blames[*booked].ns += ns;
}

/* True if this piece is one of the first of its wait, or is long beside the wait so far. */
static bool account_is_named(const struct wait_of_lane *wait, int64_t ns, int64_t until_ns)
{
    return wait->pieces < NAMED_PIECES || ns >= (until_ns - wait->began_ns) / NAMED_PIECES;
}

/* The next piece of a lane's wait for a common reason. */
static void book_piece(struct simulation *sim, int stream, struct stall stall, int64_t until_ns)
{
    struct lane *lane = &sim->stalls.lanes[stream];
    const int64_t ns = until_ns - lane->since_ns;
    lane->since_ns = until_ns;
    if (ns <= 0)
        return;
    if (!account_is_named(&lane->wait, ns, until_ns))
        stall.on = STALL_ON_NONE;
    account_book(sim, stream, &stall, ns);
    lane->wait.pieces += lane->wait.pieces < NAMED_PIECES;
}

/* Sum up the entries of the log that are not summed up. false: memory is exhausted. */
static bool sum_log(struct simulation *sim, struct common *common)
{
    if (common->sum_cap < common->log_cap) {
        struct log_sum *sums = ARENA_ARRAY(&sim->arena, (size_t)common->log_cap, struct log_sum);
        if (!sums)
            return simulation_fail(sim, diag_no_memory(sim->diag)), false;
        if (common->sum_count)
            memcpy(sums, common->sums, (size_t)common->sum_count * sizeof *sums);
        common->sums = sums;
        common->sum_cap = common->log_cap;
    }
    for (int i = common->sum_count; i < common->log_count; i++) {
        struct log_sum *sum = &common->sums[i];
        const int64_t ns = i ? common->log[i].until_ns - common->log[i - 1].until_ns : 0;
        *sum = i ? common->sums[i - 1] : (struct log_sum){0};
        sum->cause_ns[common->log[i].value.cause] += ns;
        sum->longest_ns = ns;
        for (int below = i - 1; below >= (i & (i + 1)); below = (below & (below + 1)) - 1)
            sum->longest_ns = max_i64(sum->longest_ns, common->sums[below].longest_ns);
    }
    common->sum_count = common->log_count;
    return true;
}

/* Book the rest of the log, of a wait whose first pieces are named. */
static void book_long_pieces(struct simulation *sim, int stream, struct common *common)
{
    struct lane *lane = &sim->stalls.lanes[stream];
    const struct logged *log = common->log;
    const int first = lane->from, last = common->log_count - 1;
    int64_t rest_ns[STALL_COUNT];
    if (!sum_log(sim, common))
        return;
    const struct log_sum *sums = common->sums;
    for (int cause = 0; cause < STALL_COUNT; cause++)
        rest_ns[cause] = sums[last].cause_ns[cause] - sums[first - 1].cause_ns[cause];
    for (int i = last; i >= first;) {
        const int block = i & (i + 1);
        const int64_t ns = log[i].until_ns - log[i - 1].until_ns;
        if (block >= first &&
            !account_is_named(&lane->wait, sums[i].longest_ns, log[block].until_ns)) {
            i = block - 1;
            continue;
        }
        if (account_is_named(&lane->wait, ns, log[i].until_ns)) {
            account_book(sim, stream, &log[i].value, ns);
            rest_ns[log[i].value.cause] -= ns;
        }
        i--;
    }
    for (int cause = 0; cause < STALL_COUNT; cause++)
        account_book(sim, stream, &(struct stall){(enum stall_cause)cause, STALL_ON_NONE},
                     rest_ns[cause]);
    lane->since_ns = log[last].until_ns;
    lane->from = common->log_count;
}

/* Book what a lane's common reason has been since the lane came to it, or was last booked. Of the first entry it may have
   seen a part. */
static inline void book_common(struct simulation *sim, int stream, struct common *common)
{
    struct lane *lane = &sim->stalls.lanes[stream];
    for (const int first = lane->from; lane->from < common->log_count &&
                                       (lane->from == first || lane->wait.pieces < NAMED_PIECES);
         lane->from++)
        book_piece(sim, stream, common->log[lane->from].value, common->log[lane->from].until_ns);
    if (lane->from < common->log_count)
        book_long_pieces(sim, stream, common);
    book_piece(sim, stream, common->value, sim->now_ns);
}

static void join_common(struct simulation *sim, int stream, struct common *joined)
{
    struct lane *lane = &sim->stalls.lanes[stream];
    joined->waiting++;
    lane->from = joined->log_count;
    lane->next = joined->first;
    lane->previous = -1;
    if (joined->first >= 0)
        sim->stalls.lanes[joined->first].previous = stream;
    joined->first = stream;
}

static void leave_common(struct simulation *sim, int stream, struct common *left)
{
    const struct lane *lane = &sim->stalls.lanes[stream];
    book_common(sim, stream, left);
    assert(left->waiting > 0);
    *(lane->previous >= 0 ? &sim->stalls.lanes[lane->previous].next : &left->first) = lane->next;
    if (lane->next >= 0)
        sim->stalls.lanes[lane->next].previous = lane->previous;
    if (--left->waiting == 0) {
        left->value = (struct stall){STALL_BUSY, STALL_ON_NONE};
        left->log_count = left->sum_count = 0;
    }
}

/* A stream that did `from` does `to` from now on: blames of its lane. A wait goes on from one common reason to another. */
static inline void switch_lane(struct simulation *sim, int stream, int from, int to, int common)
{
    struct lane *lane = &sim->stalls.lanes[stream];
    struct stream_account *account = &sim->result.streams[stream];
    if (from == LANE_BUSY)
        account->busy_ns += sim->now_ns - lane->since_ns;
    else if (from >= 0 && lane->wait.common == COMMON_NONE)
        account->blames[from].ns += sim->now_ns - lane->since_ns;
    else if (from >= 0)
        book_piece(sim, stream, account->blames[from].stall, sim->now_ns);
    else
        leave_common(sim, stream, &sim->stalls.commons[LANE_COMMON - from]);
    lane->blame = to;
    lane->since_ns = sim->now_ns;
    if (lane->wait.common == COMMON_NONE)
        lane->wait = (struct wait_of_lane){.began_ns = sim->now_ns};
    lane->wait.common = common;
    if (to <= LANE_COMMON)
        join_common(sim, stream, &sim->stalls.commons[LANE_COMMON - to]);
}

/* Emptying is rare, since a log that is full has room for as many entries as streams read it. */
static void make_log_room(struct simulation *sim, struct common *common)
{
    if (common->log_cap >= max_int(common->waiting, LEAST_LOGGED)) {
        /* All streams that wait for the common reason read its log, which is empty then. */
        for (int s = common->first; s >= 0; s = sim->stalls.lanes[s].next) {
            book_common(sim, s, common);
            sim->stalls.lanes[s].from = 0;
        }
        common->log_count = common->sum_count = 0;
        return;
    }
    const int cap = max_int(2 * common->waiting, LEAST_LOGGED);
    struct logged *log = ARENA_ARRAY(&sim->arena, (size_t)cap, struct logged);
    if (log && common->log_count)
        memcpy(log, common->log, (size_t)common->log_count * sizeof *log);
    common->log = log;
    if (common->log)
        common->log_cap = cap;
    else
        simulation_fail(sim, diag_no_memory(sim->diag));
}

static inline void change_common(struct simulation *sim, int number, struct stall value)
{
    ASSERT_INDEX(number, sim->stalls.common_count);
    struct common *common = &sim->stalls.commons[number];
    if (common->waiting && common->since_ns < sim->now_ns) {
        if (common->log_count == common->log_cap)
            make_log_room(sim, common);
        if (common->log_count < common->log_cap)
            common->log[common->log_count++] = (struct logged){common->value, sim->now_ns};
    }
    common->value = value;
    common->since_ns = sim->now_ns;
}

void account_apply(struct simulation *sim, const struct memo_change *changes, int count)
{
    for (const struct memo_change *change = changes; change < changes + count; change++)
        if (change->number < 0)
            change_common(sim, ~change->number, change->value);
        else if (account_catch_up(sim, change->number, change->to))
            switch_lane(sim, change->number, change->from, change->to,
                        change->to <= LANE_COMMON ? LANE_COMMON - change->to : COMMON_NONE);
        else
            simulation_fail(sim, diag_no_memory(sim->diag));
}

static void renew_common(struct simulation *sim, int number, struct stall value)
{
    ASSERT_INDEX(number, sim->stalls.common_count);
    if (same_stall(&sim->stalls.commons[number].value, &value))
        return;
    change_common(sim, number, value);
    if (sim->recording)
        recording_common(sim, number, &value);
}

/* ---- looks at streams ------------------------------------------------------------------------- */

static void unlink_instance(struct chain_link *links, int instance)
{
    struct chain_link *link = &links[instance];
    if (link->lacks < 0)
        return;
    *(link->previous >= 0 ? &links[link->previous].next : &links[link->lacks].first) = link->next;
    if (link->next >= 0)
        links[link->next].previous = link->previous;
    link->lacks = link->next = link->previous = -1;
}

void account_link(struct simulation *sim, int instance, int lacks)
{
    struct chain_link *links = sim->stalls.links, *link = &links[instance];
    if (link->lacks == lacks || !sim->marks.selective)
        return;
    unlink_instance(links, instance);
    if (lacks < 0)
        return;
    link->lacks = lacks;
    link->next = links[lacks].first;
    if (link->next >= 0)
        links[link->next].previous = instance;
    links[lacks].first = instance;
}

/* All that lack it lose their links: a look at their streams makes new ones. */
void account_moved(struct simulation *sim, int rank, int task)
{
    struct chain_link *links = sim->stalls.links;
    const int moved = rank * sim->program->tasks + task;
    if (!sim->marks.selective)
        return;
    unlink_instance(links, moved);
    for (int at = moved, rest = -1, after; at >= 0; at = rest) {
        const int stream = sim->pipeline.task_streams[at];
        if (at != moved)
            rest = links[at].next;
        if (sim->stalls.chained[stream])
            account_touch(sim, stream);
        for (int lacking = links[at].first; lacking >= 0; lacking = after) {
            after = links[lacking].next;
            links[lacking].lacks = links[lacking].previous = -1;
            links[lacking].next = rest;
            rest = lacking;
        }
        links[at].first = links[at].next = -1;
    }
}

static void set_loose(struct stalls *stalls, int stream, bool loose)
{
    const int at = stalls->loose_at[stream];
    if ((at >= 0) == loose)
        return;
    if (loose) {
        stalls->loose_at[stream] = stalls->loose_count;
        stalls->loose_list[stalls->loose_count++] = stream;
    } else {
        const int last = stalls->loose_list[--stalls->loose_count];
        stalls->loose_list[at] = last;
        stalls->loose_at[last] = at;
        stalls->loose_at[stream] = -1;
    }
}

/* The lane's entry for the stream; none if sim->status is a failure. */
static int blame_for(struct simulation *sim, int stream, const struct stall *doing, int common)
{
    if (doing->cause == STALL_BUSY)
        return LANE_BUSY;
    if (common != COMMON_NONE && sim->marks.selective) {
        renew_common(sim, common, *doing);
        return LANE_COMMON - common;
    }
    return blame_of_lane(sim, stream, doing);
}

static void look_at_lane(struct simulation *sim, int stream)
{
    int common;
    bool chained;
    sim->result.looks++;
    struct lane *lane = &sim->stalls.lanes[stream];
    struct stall doing = account_doing_now(sim, stream, &common, &chained);
    if (!sim->marks.has_commons)
        common = COMMON_NONE;
    sim->stalls.chained[stream] = chained && sim->marks.selective;
    set_loose(&sim->stalls, stream, sim->stalls.chained[stream] && common == COMMON_NONE);
    int blame = blame_for(sim, stream, &doing, common);
    if (sim->status != STATUS_OK || (blame == lane->blame && common == lane->wait.common))
        return;
    if (blame != lane->blame) {
        tell_stall(sim, stream);
        lane->told_ns = sim->now_ns;
    }
    if (sim->recording)
        recording_lane(sim, stream, lane->blame, blame);
    switch_lane(sim, stream, lane->blame, blame, common);
}

void account_touch(struct simulation *sim, int stream)
{
    struct marks *marks = &sim->marks;
    if (!marks->selective || marks->touched_streams[stream])
        return;
    marks->touched_streams[stream] = true;
    marks->touched_list[marks->touched_stream_count++] = stream;
}

void account_stir(struct simulation *sim, int thread)
{
    struct marks *marks = &sim->marks;
    if (!marks->selective || !sim->program->tasks || marks->stirred[thread])
        return;
    marks->stirred[thread] = true;
    marks->stirred_list[marks->stirred_count++] = thread;
}

static void renew_of_thread(struct simulation *sim, int thread)
{
    for (int number = 2 * thread; number < 2 * thread + 2; number++)
        if (sim->stalls.commons[number].waiting)
            renew_common(sim, number, cause_in_common(sim, number));
}

/* What the workers of a rank have in hand, and what they wait for, may have changed. Whose turn comes is known when others hand
   it out; all else is told to who waits for it. */
static void renew_of_rank(struct simulation *sim, int rank)
{
    const struct program *p = sim->program;
    for (int k = sim->marks.rank_first[rank];
         p->ordered_tasks[rank] && k < sim->marks.rank_streams[rank]; k++)
        renew_of_thread(sim, p->agents[sim->marks.rank_agents[k]].index);
}

void account_touched(struct simulation *sim)
{
    struct marks *marks = &sim->marks;
    sim->stalls.chain_stamp++;
    for (int i = 0; i < marks->stirred_count; i++) {
        marks->stirred[marks->stirred_list[i]] = false;
        renew_of_thread(sim, marks->stirred_list[i]);
    }
    marks->stirred_count = 0;
    for (int i = 0; i < marks->touched_count; i++) {
        int rank = marks->touched_ranks[i];
        marks->touched[rank] = false;
        if (marks->selective)
            renew_of_rank(sim, rank);
        for (int k = marks->rank_streams[rank];
             !marks->selective && k < marks->rank_first[rank + 1]; k++)
            look_at_lane(sim, sim->program->agents[marks->rank_agents[k]].index);
    }
    marks->touched_count = 0;
    for (int i = 0; i < marks->touched_stream_count; i++) {
        marks->touched_streams[marks->touched_list[i]] = false;
        look_at_lane(sim, marks->touched_list[i]);
    }
    marks->touched_stream_count = 0;
    /* A stream that is looked at may leave the list; the last one takes its place. */
    for (int i = sim->stalls.loose_count - 1; sim->stalls.chain_moved && i >= 0; i--)
        look_at_lane(sim, sim->stalls.loose_list[i]);
    sim->stalls.chain_moved = false;
}

void account_cascade(struct simulation *sim, int stream)
{
    struct marks *marks = &sim->marks;
    const struct program *p = sim->program;
    int count = 0;
    marks->cascade[count++] = stream;
    marks->queued_seen[stream] = machine_stream_queued(p, sim->state, stream);
    while (count) {
        int s = marks->cascade[--count];
        account_touch(sim, s);
        simulation_mark(sim, program_stream_agent(p, s));
        simulation_wake(sim, uses_use_object(p, OBJECT_STREAM, s));
        for (int i = marks->watchers.first[s]; i < marks->watchers.first[s + 1]; i++) {
            int watcher = marks->watchers.items[i],
                queued = machine_stream_queued(p, sim->state, watcher);
            if (queued == marks->queued_seen[watcher])
                continue;
            marks->queued_seen[watcher] = queued;
            marks->cascade[count++] = watcher;
        }
    }
}

/* ---- worker queues --------------------------------------------------------------------------- */

static void see_queue(struct simulation *sim, int thread)
{
    const struct program *p = sim->program;
    ASSERT_INDEX(thread, p->thread_count);
    int task = -1, rank = p->threads[thread].rank;
    int64_t iteration = -1;
    int count = machine_queue(p, sim->state, thread, INT32_MAX, &task, &iteration);
    for (int k = sim->pipeline.queue_seen[thread]; k < count; k++) {
        machine_queue(p, sim->state, thread, k, &task, &iteration);
        *account_queued(sim, rank, task, iteration) = true;
        account_touch(sim, sim->pipeline.task_streams[rank * p->tasks + task]);
        account_moved(sim, rank, task);
    }
    sim->pipeline.queue_seen[thread] = count;
}

void account_queues(struct simulation *sim, int rank)
{
    const struct program *p = sim->program;
    sim->stalls.chain_moved = true;
    for (int k = sim->marks.rank_first[rank]; k < sim->marks.rank_streams[rank]; k++)
        if (p->threads[p->agents[sim->marks.rank_agents[k]].index].kind == THREAD_WORKER)
            see_queue(sim, p->agents[sim->marks.rank_agents[k]].index);
}

void account_fired(struct simulation *sim, int rank, int task)
{
    const struct program *p = sim->program;
    sim->stalls.chain_moved = true;
    if (p->driver != DRIVER_DATAFLOW)
        return;
    for (int k = 0, fired; (fired = program_may_fire(p, rank, task, k)) >= 0; k++)
        see_queue(sim, p->worker[rank * p->tasks + fired]);
}

/* ---- all of it ------------------------------------------------------------------------------- */

void account_derive(struct simulation *sim)
{
    const struct program *p = sim->program;
    if (p->tasks == 0)
        return;
    memset(sim->pipeline.queued, 0, (size_t)p->ranks * (size_t)p->tasks * (size_t)p->window);
    memset(sim->pipeline.queue_seen, 0, (size_t)p->thread_count * sizeof *sim->pipeline.queue_seen);
    sim->marks.touched_stream_count = sim->marks.stirred_count = 0;
    for (int s = 0; s < p->stream_count; s++) {
        sim->marks.queued_seen[s] = machine_stream_queued(p, sim->state, s);
        if (sim->marks.touched_streams[s])
            sim->marks.touched_list[sim->marks.touched_stream_count++] = s;
    }
    bool selective = sim->marks.selective;
    sim->marks.selective = false; /* known queues touch no stream */
    for (int t = 0; t < p->thread_count; t++) {
        if (sim->marks.stirred[t])
            sim->marks.stirred_list[sim->marks.stirred_count++] = t;
        if (p->threads[t].kind == THREAD_WORKER)
            see_queue(sim, t);
    }
    sim->marks.selective = selective;
    sim->stalls.chain_stamp++;
    for (int s = 0; selective && s < p->stream_count; s++)
        set_loose(&sim->stalls, s, sim->stalls.chained[s] && !idle_cause_link(sim, s));
}

void account_close(struct simulation *sim)
{
    account_touched(sim);
    for (int s = 0; s < sim->program->stream_count; s++) {
        tell_stall(sim, s);
        switch_lane(sim, s, sim->stalls.lanes[s].blame, LANE_BUSY, COMMON_NONE);
        stream_account_finish(&sim->result.streams[s]);
    }
}

/* Each lane's reason exists, common reasons are up to date and count the lanes that have them, and so are the reasons of chained
   streams. */
void account_check_lanes(struct simulation *sim)
{
#ifdef SWSIM_CHECKS
    const struct stalls *stalls = &sim->stalls;
    int waiting = 0, lanes = 0;
    for (int s = 0; s < sim->program->stream_count; s++) {
        const struct lane *lane = &stalls->lanes[s];
        assert(lane->since_ns <= sim->now_ns && lane->blame < sim->result.streams[s].blame_count);
        lanes += lane->blame <= LANE_COMMON;
        if (lane->blame <= LANE_COMMON) {
            assert(LANE_COMMON - lane->blame < stalls->common_count);
            assert(lane->from <= stalls->commons[LANE_COMMON - lane->blame].log_count);
        }
        bool chained;
        int common;
        if (stalls->chained[s] && lane->blame <= LANE_COMMON) {
            account_doing_now(sim, s, &common, &chained);
            assert(common == LANE_COMMON - lane->blame);
        }
    }
    for (int i = 0; i < stalls->common_count; i++) {
        waiting += stalls->commons[i].waiting;
        const struct stall now =
            stalls->commons[i].waiting ? cause_in_common(sim, i) : (struct stall){0};
        assert(stalls->commons[i].waiting == 0 || same_stall(&stalls->commons[i].value, &now));
        assert(stalls->commons[i].log_count <= stalls->commons[i].log_cap);
    }
    assert(waiting == lanes);
    assert(sim->marks.touched_count == 0 && sim->marks.touched_stream_count == 0);
#else
    (void)sim;
#endif
}

bool account_check(const struct simulation *sim)
{
    for (int s = 0; s < sim->program->stream_count; s++) {
        const struct stream_account *account = &sim->result.streams[s];
        int64_t sum = account->busy_ns, blamed = 0, slowed = 0;
        for (int i = 0; i < STALL_COUNT; i++)
            sum += account->stall_ns[i];
        for (int i = 0; i < account->blame_count; i++)
            blamed += account->blames[i].ns;
        for (int i = 0; i < RESOURCE_COUNT; i++)
            slowed += account->slowed_ns[i];
        if (sum != sim->result.makespan_ns || blamed != sum - account->busy_ns ||
            slowed > account->busy_ns)
            return false;
    }
    return true;
}
