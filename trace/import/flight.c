/* SPDX-License-Identifier: Apache-2.0 */
/* flight.c - see flight.h. Process groups become communicators first; then every rank becomes a thread. */
#include "flight.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "standstill.h"

#include "base/array.h"
#include "base/assert_index.h"
#include "base/sort.h"

/* A collective of a rank, and the type of its tensors. */
struct typed {
    int group;
    int64_t number;
    const char *name, *dtype;
};

struct flight {
    const struct flight_job *job;
    const struct flight_options *options;
    struct job *out;
    struct plan *plan; /* out->plan */
    bool by_place;     /* ranks of the plan are places of dumps: their own numbers are too large */
    int64_t *absent;   /* ranks without a dump for which all others of a group wait, ascending */
    size_t absent_count;
    size_t comm_cap;
    struct typed *typed; /* the collectives of all ranks whose type is told, by group and number */
    size_t typed_count;
};

/* The rank in the plan; -1: there is no dump of it, and nobody is known to wait for it. */
static int plan_rank(const struct flight *flight, int64_t rank)
{
    int place = flight_find_rank(flight->job, rank);
    for (size_t i = 0; place < 0 && i < flight->absent_count; i++)
        if (flight->absent[i] == rank)
            place = (int)(flight->job->rank_count + i);
    return place < 0 || flight->by_place ? place : (int)rank;
}

/* ---- process groups -------------------------------------------------------------------------- */

/* A name that a plan can have: of a dump it may be any bytes. NULL without memory. */
static const char *plain_name(struct arena *arena, const char *prefix, const char *text)
{
    char *name = arena_printf(arena, "%s%.100s", prefix, text);
    for (char *at = name; at && *at; at++)
        *at = *at > ' ' && *at < 127 ? *at : '_';
    return name && *name ? name : name ? "unnamed" : NULL;
}

static bool flight_is_taken(const struct plan *plan, const char *name)
{
    for (size_t i = 0; i + 1 < plan->comm_count; i++)
        if (strcmp(plan->comms[i].name, name) == 0)
            return true;
    return false;
}

/* "pg0", "pg14_dp5" where the program described it; groups of one name and of other ranks are numbered. */
static const char *flight_comm_name(struct plan *plan, const struct flight_group *group)
{
    const char *told = group->description;
    const char *described =
        told && *told && strcmp(told, "default_pg") != 0 && strcmp(told, "undefined") != 0
            ? arena_printf(&plan->arena, "%.60s_%.60s", group->name, told)
            : group->name;
    const char *stem = described ? plain_name(&plan->arena, "pg", described) : NULL, *name = stem;
    for (int number = 2; name && flight_is_taken(plan, name); number++)
        name = arena_printf(&plan->arena, "%s_%d", stem, number);
    return name;
}

/* Its members are ranks of the plan: those with a dump. */
static bool flight_add_comm(struct flight *flight, size_t g)
{
    struct plan *plan = flight->plan;
    ASSERT_INDEX(g, flight->job->group_count);
    const struct flight_group *group = &flight->job->groups[g];
    struct comm *comm = &plan->comms[plan->comm_count++];
    *comm = (struct comm){.declared = true, .name = flight_comm_name(plan, group)};
    comm->members = ARENA_ARRAY(&plan->arena, group->rank_count, int);
    for (size_t i = 0; comm->members && i < group->rank_count; i++) {
        const int rank = plan_rank(flight, group->ranks[i]);
        if (rank >= 0)
            comm->members[comm->member_count++] = rank;
    }
    sort_int(comm->members, comm->member_count);
    return comm->members && comm->name;
}

/* The communicator of two ranks of a group, of which NCCL makes one at the first message between them; -1 without
   memory. */
static int pair_comm(struct flight *flight, int group, int a, int b)
{
    struct plan *plan = flight->plan;
    const int first = a < b ? a : b, second = a < b ? b : a;
    ASSERT_INDEX(group, plan->comm_count);
    const char *name =
        arena_printf(&plan->arena, "%s.%dand%d", plan->comms[group].name, first, second);
    for (size_t i = 0; name && i < plan->comm_count; i++)
        if (strcmp(plan->comms[i].name, name) == 0)
            return (int)i;
    int *members = ARENA_ARRAY(&plan->arena, 2, int);
    if (!name || !members ||
        !ARENA_GROW(&plan->arena, plan->comms, plan->comm_count, flight->comm_cap))
        return -1;
    members[0] = first;
    members[1] = second;
    plan->comms[plan->comm_count] =
        (struct comm){.declared = true, .name = name, .members = members, .member_count = 2};
    return (int)plan->comm_count++;
}

/* ---- types ------------------------------------------------------------------------------------ */

static int flight_by_call(const void *left, const void *right)
{
    const struct typed *a = left, *b = right;
    return compare_then(compare_int(a->group, b->group), compare_i64(a->number, b->number));
}

static bool is_typed(const struct flight_call *call)
{
    return !call->left_out && call->part_count == 1 && !call->parts[0].is_message &&
           call->parts[0].dtype && call->number >= 0;
}

static bool list_types(struct flight *flight)
{
    const struct flight_job *job = flight->job;
    size_t count = 0;
    for (size_t r = 0; r < job->rank_count; r++)
        count += job->ranks[r].call_count;
    flight->typed = ARENA_ARRAY(&flight->plan->arena, count + 1, struct typed);
    if (!flight->typed)
        return false;
    for (size_t r = 0; r < job->rank_count; r++)
        for (size_t i = 0; i < job->ranks[r].call_count; i++) {
            const struct flight_call *call = &job->ranks[r].calls[i];
            if (is_typed(call))
                flight->typed[flight->typed_count++] = (struct typed){
                    call->group, call->number, call->parts[0].name, call->parts[0].dtype};
        }
    SORT(flight->typed, flight->typed_count, flight_by_call);
    return true;
}

/* True if another rank has another type in its call of this number and name. */
static bool types_differ(const struct flight *flight, const struct flight_call *call)
{
    const struct typed key = {call->group, call->number, NULL, NULL};
    if (!is_typed(call))
        return false;
    size_t at = SORT_FIRST(i, 0, flight->typed_count, flight_by_call(&flight->typed[i], &key) >= 0);
    for (; at < flight->typed_count && flight_by_call(&flight->typed[at], &key) == 0; at++)
        if (strcmp(flight->typed[at].dtype, call->parts[0].dtype) != 0 &&
            strcmp(flight->typed[at].name, call->parts[0].name) == 0)
            return true;
    return false;
}

/* ---- operations ------------------------------------------------------------------------------ */

/* A message from or to a rank without a dump stands for nothing. */
static bool is_kept(const struct flight *flight, const struct flight_part *part)
{
    return !part->is_message || flight_find_rank(flight->job, part->peer) >= 0;
}

static size_t kept_parts(const struct flight *flight, const struct flight_call *call)
{
    size_t kept = 0;
    for (size_t i = 0; i < call->part_count; i++)
        kept += is_kept(flight, &call->parts[i]);
    return kept;
}

static bool flight_is_collective(const struct flight_call *call)
{
    return call->part_count == 1 && !call->parts[0].is_message;
}

/* Its name tells the type where ranks have different ones: a collective meets one of its name only. */
static bool set_collective(struct flight *flight, struct host_op *op,
                           const struct flight_call *call)
{
    const struct flight_part *part = &call->parts[0];
    struct arena *arena = &flight->plan->arena;
    const char *name = types_differ(flight, call)
                           ? arena_printf(arena, "%s:%s", part->name, part->dtype)
                           : part->name;
    op->name = name ? plain_name(arena, "", name) : NULL;
    op->collective = part->kind;
    op->bytes = part->bytes;
    return op->name != NULL;
}

static bool set_parts(struct flight *flight, struct host_op *op, const struct flight_call *call)
{
    op->parts = ARENA_ARRAY(&flight->plan->arena, call->part_count, struct p2p_part);
    for (size_t i = 0; op->parts && i < call->part_count; i++) {
        const struct flight_part *from = &call->parts[i];
        if (!is_kept(flight, from))
            continue;
        struct p2p_part *part = &op->parts[op->part_count++];
        *part = (struct p2p_part){.tag = "p2p", .root = -1, .comm = -1, .stream = -1};
        part->is_collective = !from->is_message;
        part->send = from->send;
        part->peer = from->is_message ? plan_rank(flight, from->peer) : -1;
        part->collective = from->kind;
        part->bytes = from->bytes;
        part->element = from->element;
        if (part->is_collective)
            part->tag = plain_name(&flight->plan->arena, "", from->name);
        if (!part->tag)
            return false;
    }
    return op->parts != NULL;
}

/* "train.py:41#12": the number is that of the dumps, which counts from the job's begin on. */
static bool flight_set_line(struct flight *flight, struct host_op *op,
                            const struct flight_call *call)
{
    struct arena *arena = &flight->plan->arena;
    const char *line = flight_line(call, arena);
    if (!line && flight->job->over_count == 0)
        return true; /* its place in the plan is its number */
    if (call->number >= 0)
        line = arena_printf(arena, "%s#%" PRId64, line ? line : "", call->number);
    op->at = line ? plain_name(arena, "", line) : NULL;
    return op->at || call->number < 0;
}

static bool flight_add_call(struct flight *flight, struct job_thread *thread,
                            const struct flight_call *call)
{
    struct plan *plan = flight->plan;
    if (call->left_out || call->over || kept_parts(flight, call) == 0)
        return true;
    int comm = call->group;
    if (flight->options->pair_streams && !call->is_batch && call->part_count == 1 &&
        call->parts[0].is_message)
        comm = pair_comm(flight, call->group, thread->host.rank,
                         plan_rank(flight, call->parts[0].peer));
    if (comm < 0)
        return false;
    char name[PLAN_MAX_NAME];
    snprintf(name, sizeof name, "nccl.%.150s", plan->comms[comm].name);
    const int stream = names_intern(&plan->streams, &plan->arena, name);
    struct host_op *op =
        job_add_op(flight->out, thread, flight_is_collective(call) ? OP_COLLECTIVE : OP_GROUP);
    if (stream < 0 || !op)
        return false;
    op->comm = comm;
    op->stream = stream;
    op->sm = flight->options->sm_slots > 0;
    if (!flight_set_line(flight, op, call))
        return false;
    return flight_is_collective(call) ? set_collective(flight, op, call)
                                      : set_parts(flight, op, call);
}

/* A rank that is in none of its calls stands where its stack says: so the story has that line. */
static bool flight_add_stand(struct flight *flight, struct job_thread *thread, int64_t rank)
{
    const struct standstill *standstill = flight->job->standstill;
    const struct stand_stack *stack = standstill ? standstill_stack(standstill, rank) : NULL;
    struct host_op *op = stack ? job_add_op(flight->out, thread, OP_HOST) : NULL;
    if (!op)
        return stack == NULL;
    struct arena *arena = &flight->plan->arena;
    op->name = arena_printf(arena, "stands in %s", stack->line ? stack->function : stack->frame);
    op->at = stack->line ? arena_strdup(arena, stack->line) : NULL;
    return op->name && (op->at || !stack->line);
}

static bool flight_add_thread(struct flight *flight, const struct flight_rank *rank)
{
    struct job_thread *thread = job_add_thread(flight->out, plan_rank(flight, rank->rank), "main");
    if (!thread)
        return false;
    thread->is_rank = true;
    for (size_t i = 0; i < rank->call_count; i++)
        if (!flight_add_call(flight, thread, &rank->calls[i]))
            return false;
    return flight_open_call(rank, -1) || flight_add_stand(flight, thread, rank->rank);
}

/* A rank for which the others wait has a thread that calls nothing. */
static bool add_absent(struct flight *flight)
{
    for (size_t i = 0; i < flight->absent_count; i++) {
        struct job_thread *thread =
            job_add_thread(flight->out, plan_rank(flight, flight->absent[i]), "main");
        if (!thread || !flight_add_stand(flight, thread, flight->absent[i]))
            return false;
        thread->is_rank = true;
    }
    return true;
}

/* "3", "3, 5 and 7", "3, 5, 7, 9 and 12 more"; NULL without memory. */
static const char *flight_list_ranks(struct arena *arena, const int64_t *ranks, size_t count)
{
    enum { SHOWN = 8 };
    const size_t shown = count > SHOWN ? SHOWN - 1 : count;
    const char *text = "";
    for (size_t i = 0; text && i < shown; i++)
        text = arena_printf(arena, "%s%s%" PRId64, text,
                            i == 0           ? ""
                            : i + 1 == count ? " and "
                                             : ", ",
                            ranks[i]);
    return text && shown < count ? arena_printf(arena, "%s and %zu more", text, count - shown)
                                 : text;
}

/* "rank 3", "ranks 3 and 5"; NULL without memory. */
static const char *flight_name_ranks(struct arena *arena, const int64_t *ranks, size_t count)
{
    const char *list = flight_list_ranks(arena, ranks, count);
    return list ? arena_printf(arena, count == 1 ? "rank %s" : "ranks %s", list) : NULL;
}

/* ---- where all stand --------------------------------------------------------------------------- */

/* The collective of a group in which all members with a dump stand, as the first that is not over; NULL: they do not, or
   there is no dump of any. */
static const struct flight_call *common_call(const struct flight_job *job, int g, size_t *standing)
{
    ASSERT_INDEX(g, job->group_count);
    const struct flight_group *group = &job->groups[g];
    const struct flight_call *common = NULL;
    *standing = 0;
    for (size_t i = 0; i < group->rank_count; i++) {
        const int place = flight_find_rank(job, group->ranks[i]);
        const struct flight_call *call =
            place < 0 ? NULL : flight_open_call(&job->ranks[place], -1);
        const bool stands = call && call->group == g && !call->is_message && call->number >= 0;
        if (place >= 0 && (!stands || (common && (call->number != common->number ||
                                                  !flight_same_call(call, common)))))
            return NULL;
        common = call ? call : common;
        *standing += place >= 0;
    }
    return common;
}

static bool is_absent(const struct flight *flight, int64_t rank)
{
    for (size_t i = 0; i < flight->absent_count; i++)
        if (flight->absent[i] == rank)
            return true;
    return false;
}

/* Where all with a dump stand in one call of a group, and few members have none, it is those that have not called. */
static bool find_absent(struct flight *flight, struct diag *diag)
{
    const struct flight_job *job = flight->job;
    struct arena *arena = &flight->plan->arena;
    for (int g = 0; g < (int)job->group_count; g++) {
        const struct flight_group *group = &job->groups[g];
        size_t standing;
        const struct flight_call *call = common_call(job, g, &standing);
        const size_t missing = group->rank_count - standing;
        if (!call || missing == 0 || (missing > 1 && missing >= standing) || group->is_guessed)
            continue;
        int64_t *all = ARENA_ARRAY(arena, flight->absent_count + missing, int64_t);
        if (!all)
            return false;
        if (flight->absent_count)
            memcpy(all, flight->absent, flight->absent_count * sizeof *all);
        size_t count = flight->absent_count;
        for (size_t i = 0; i < group->rank_count; i++)
            if (flight_find_rank(job, group->ranks[i]) < 0 && !is_absent(flight, group->ranks[i]))
                all[count++] = group->ranks[i];
        const size_t fresh = count - flight->absent_count;
        const char *names = flight_name_ranks(arena, all + flight->absent_count, fresh),
                   *line = flight_line(call, arena);
        if (!names)
            return false;
        if (fresh > 0)
            diag_warn(diag,
                      "%s %s no dump, and all others of process group %s stand in %s, number "
                      "%" PRId64 "%s%s: %s, so look at the log and the stack of %s",
                      names, fresh == 1 ? "has" : "have", group->name, call->parts[0].name,
                      call->number, line ? ", " : "", line ? line : "",
                      fresh == 1 ? "that rank has not called it"
                                 : "at least one of them has not called it",
                      fresh == 1 ? "its process" : "their processes");
        flight->absent = all;
        flight->absent_count = count;
        sort_i64(flight->absent, flight->absent_count);
    }
    return true;
}

/* The ranks of a group whose open call of this number is in one state; or which are past it. */
enum standing { STANDS_SCHEDULED, STANDS_STARTED, STANDS_PAST };

static void list_standing(const struct flight *flight, const struct flight_call *like,
                          enum standing which, int64_t *out, size_t *count)
{
    const struct flight_job *job = flight->job;
    const struct flight_group *group = &job->groups[like->group];
    *count = 0;
    for (size_t i = 0; i < group->rank_count; i++) {
        const int place = flight_find_rank(job, group->ranks[i]);
        for (size_t k = 0; place >= 0 && k < job->ranks[place].call_count; k++) {
            const struct flight_call *call = &job->ranks[place].calls[k];
            if (call->group != like->group || call->is_message || call->number != like->number ||
                !flight_same_call(call, like))
                continue;
            const enum standing is = call->completed ? STANDS_PAST
                                     : call->started ? STANDS_STARTED
                                                     : STANDS_SCHEDULED;
            if (is == which)
                out[(*count)++] = group->ranks[i];
            break;
        }
    }
}

/* What the states of one call tell that its order does not: whose device has not begun it, and who is past it. */
static bool warn_of_states(struct flight *flight, struct diag *diag)
{
    const struct flight_job *job = flight->job;
    struct arena *arena = &flight->plan->arena;
    for (int g = 0; g < (int)job->group_count; g++) {
        const struct flight_group *group = &job->groups[g];
        const struct flight_call *first = NULL;
        for (size_t i = 0; i < group->rank_count; i++) {
            const int place = flight_find_rank(job, group->ranks[i]);
            const struct flight_call *call =
                place < 0 ? NULL : flight_open_call(&job->ranks[place], g);
            if (call && call->number >= 0 && (!first || call->number < first->number))
                first = call;
        }
        size_t scheduled, started, past;
        int64_t *late = ARENA_ARRAY(arena, group->rank_count + 1, int64_t);
        int64_t *other = ARENA_ARRAY(arena, group->rank_count + 1, int64_t);
        if (!late || !other)
            return false;
        if (!first || flight_lacks_messages(&job->ranks[0]))
            continue;
        list_standing(flight, first, STANDS_SCHEDULED, late, &scheduled);
        list_standing(flight, first, STANDS_PAST, other, &past);
        if (past > 0 && scheduled > 0) {
            const char *open =
                arena_printf(arena, "%s, number %" PRId64 " of %s", first->parts[0].name,
                             first->number, flight->plan->comms[g].name);
            if (!plan_add_unrecorded(flight->plan, open, "some ranks are past it"))
                return false;
            diag_warn(diag,
                      "%s %s past %s, number %" PRId64
                      " of process group %s, and %s %s not: they do not meet in it, or its last "
                      "message is not received",
                      flight_name_ranks(arena, other, past), past == 1 ? "is" : "are",
                      first->parts[0].name, first->number, group->name,
                      flight_name_ranks(arena, late, scheduled), scheduled == 1 ? "is" : "are");
            continue;
        }
        list_standing(flight, first, STANDS_STARTED, other, &started);
        if (started > 0 && scheduled > 0)
            diag_warn(
                diag,
                "%s: the device has not begun %s, number %" PRId64
                " of process group %s (scheduled), as that of %s has (started): the device is "
                "held up by its earlier work",
                flight_name_ranks(arena, late, scheduled), first->parts[0].name, first->number,
                group->name, flight_name_ranks(arena, other, started));
    }
    return true;
}

/* ---- hypotheses ------------------------------------------------------------------------------ */

/* The members of all groups that have no dump, ascending; each once. */
static bool missing_ranks(const struct flight *flight, int64_t **out, size_t *count)
{
    const struct flight_job *job = flight->job;
    size_t most = 0, found = 0;
    for (size_t g = 0; g < job->group_count; g++)
        most += job->groups[g].rank_count;
    int64_t *ranks = ARENA_ARRAY(&flight->plan->arena, most + 1, int64_t);
    if (!ranks)
        return false;
    for (size_t g = 0; g < job->group_count; g++)
        for (size_t i = 0; i < job->groups[g].rank_count; i++)
            if (plan_rank(flight, job->groups[g].ranks[i]) < 0)
                ranks[found++] = job->groups[g].ranks[i];
    sort_i64(ranks, found);
    *count = 0;
    for (size_t i = 0; i < found; i++)
        if (*count == 0 || ranks[*count - 1] != ranks[i])
            ranks[(*count)++] = ranks[i];
    *out = ranks;
    return true;
}

static const char *say_missing(struct flight *flight, struct diag *diag)
{
    struct arena *arena = &flight->plan->arena;
    int64_t *ranks;
    size_t count;
    if (!missing_ranks(flight, &ranks, &count))
        return NULL;
    if (count == 0)
        return "";
    const char *names = flight_name_ranks(arena, ranks, count);
    if (!names)
        return NULL;
    diag_warn(diag,
              "no dump of %s: if a rank hangs for its own reasons, or calls other things than "
              "the others, that cannot be seen",
              names);
    if (!plan_add_unrecorded(flight->plan, names, "no dump"))
        return NULL;
    return arena_printf(arena, "; %s without a dump %s called what the others called", names,
                        count == 1 ? "has" : "have");
}

/* Sends and receives that a backend does not record. */
static const char *say_unrecorded(struct flight *flight, struct diag *diag)
{
    const struct flight_job *job = flight->job;
    size_t r = 0;
    while (r < job->rank_count && !flight_lacks_messages(&job->ranks[r]))
        r++;
    if (r == job->rank_count)
        return "";
    diag_warn(diag, "gloo records no sends and receives: a hang in one of them cannot be seen");
    if (!plan_add_unrecorded(flight->plan, "messages", "gloo records no sends and receives"))
        return NULL;
    return "; sends and receives, which gloo does not record, end";
}

static bool add_guessed(struct plan *plan, const char *comm)
{
    return plan_add_unrecorded(plan, arena_printf(&plan->arena, "members of %s", comm),
                               "no dump tells them");
}

/* Groups whose members no dump tells. */
static const char *say_guessed(struct flight *flight)
{
    const struct flight_job *job = flight->job;
    const char *text = "";
    for (size_t g = 0; text && g < job->group_count; g++)
        if (job->groups[g].is_guessed)
            text = add_guessed(flight->plan, flight->plan->comms[g].name)
                       ? arena_printf(&flight->plan->arena, "%s%s%s", text,
                                      *text ? ", " : "; all ranks are members of ",
                                      flight->plan->comms[g].name)
                       : NULL;
    return text;
}

/* A call that is not over, and that another rank has passed so long ago that its ring has lost its own. */
static bool warn_of_lost(struct flight *flight, struct diag *diag)
{
    const struct flight_job *job = flight->job;
    for (size_t r = 0; r < job->rank_count; r++)
        for (size_t i = 0; i < job->ranks[r].call_count; i++) {
            const struct flight_call *call = &job->ranks[r].calls[i];
            const struct flight_group *group = &job->groups[call->group];
            if (call->completed || call->is_message || call->number < 0 ||
                call->number >= group->first_number)
                continue;
            diag_warn(diag,
                      "rank %" PRId64 " has not completed %s, number %" PRId64
                      " of process group %s, and the ring of another rank has lost it: whether "
                      "they differ there cannot be told (a larger TORCH_NCCL_TRACE_BUFFER_SIZE "
                      "keeps more)",
                      job->ranks[r].rank, call->parts[0].name, call->number, group->name);
            const char *calls =
                arena_printf(&flight->plan->arena, "calls before number %" PRId64 " of group %s",
                             group->first_number, group->name);
            return plan_add_unrecorded(flight->plan, calls, "a ring has lost them");
        }
    return true;
}

static const char *hypotheses(struct flight *flight, struct diag *diag)
{
    const struct flight_options *options = flight->options;
    const char *missing = say_missing(flight, diag), *guessed = say_guessed(flight);
    const char *unrecorded = say_unrecorded(flight, diag);
    if (!missing || !guessed || !unrecorded)
        return NULL;
    return arena_printf(
        &flight->plan->arena,
        "a dump of the flight recorder; hypotheses: the host waits for %s operation; each process "
        "group has a stream of its own, which its sends and receives share%s; %s operations of a "
        "rank run at once; %s%s%s%s%s%s",
        options->host_waits ? "each" : "no",
        options->pair_streams ? " but for those in no batch, which have one for each two ranks"
                              : "",
        options->sm_slots ? "a limited number of" : "any number of",
        options->launch_order ? "in the order of their launches" : "in any order of groups",
        missing, guessed, unrecorded,
        flight->absent_count ? "; the ranks for which all others wait have called nothing" : "",
        flight->job->over_count
            ? "; calls that are over on all ranks are left out, but for the last of each group"
            : "");
}

/* ---- the plan -------------------------------------------------------------------------------- */

/* The plan has the job's numbers of ranks where they are small enough. */
static void flight_number_ranks(struct flight *flight, struct diag *diag)
{
    const struct flight_job *job = flight->job;
    const int64_t last = job->ranks[job->rank_count - 1].rank;
    const int64_t most = flight->absent_count && flight->absent[flight->absent_count - 1] > last
                             ? flight->absent[flight->absent_count - 1]
                             : last;
    flight->by_place = most >= PLAN_MAX_RANKS;
    flight->plan->ranks =
        flight->by_place ? (int)(job->rank_count + flight->absent_count) : (int)most + 1;
    if (flight->by_place)
        diag_warn(diag,
                  "rank %" PRId64 " is too large for a plan: the plan numbers the %zu ranks that "
                  "have a dump from 0 on",
                  last, job->rank_count);
}

static bool flight_write_plan(struct flight *flight, struct diag *diag)
{
    const struct flight_options *options = flight->options;
    const struct flight_job *job = flight->job;
    struct plan *plan = flight->plan;
    if (!find_absent(flight, diag))
        return false;
    flight_number_ranks(flight, diag);
    plan->name = arena_strdup(&plan->arena, options->name);
    plan->machine.sm_slots = (int)options->sm_slots;
    plan->machine.launch_order_implicit = options->launch_order;
    plan->machine.launch_blocking = options->host_waits;
    plan->comms = ARENA_ARRAY(&plan->arena, job->group_count, struct comm);
    flight->comm_cap = job->group_count;
    bool ok = plan->name && plan->comms && list_types(flight);
    for (size_t g = 0; ok && g < job->group_count; g++)
        ok = flight_add_comm(flight, g);
    plan->about = ok ? hypotheses(flight, diag) : NULL;
    ok = plan->about != NULL;
    for (size_t r = 0; ok && r < job->rank_count; r++)
        ok = flight_add_thread(flight, &job->ranks[r]);
    return ok && add_absent(flight) && warn_of_states(flight, diag);
}

enum status flight_threads(const struct flight_job *job, const struct flight_options *options,
                           struct job *out, struct diag *diag)
{
    struct flight flight = {.job = job, .options = options, .out = out, .plan = &out->plan};
    return flight_write_plan(&flight, diag) && warn_of_lost(&flight, diag) ? STATUS_OK
                                                                           : diag_no_memory(diag);
}
