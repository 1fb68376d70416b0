/*
 * rank_programs.c - see rank_programs.h.
 *
 * A rank is lowered in three walks over its list: its actions become steps (one device or host
 * operation each; with `batch` those between two other actions share one), each step finds the earlier steps
 * on other streams it has to wait for, and the steps are written down as host operations with the
 * records and waits between them.
 *
 * Events are reused: one serves from its record to its last wait, which is right because a wait
 * means the event as last recorded. So a rank needs as many as it has results in flight, not one a
 * message. Event F.2 is the third of those that stand for forward passes.
 */
#include "rank_programs.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "generate.h"
#include "rank_internal.h"

/* ---- completion ------------------------------------------------------------------------------ */

/* Messages from the generators and from comms.c know the position but not the file. */
static void name_file(struct diag *diag, size_t first, const char *file)
{
    for (size_t i = first; i < diag->count; i++) {
        if (diag->messages[i].file || !file)
            continue;
        diag->messages[i].file = strdup(file);
        if (!diag->messages[i].file)
            diag->out_of_memory = true;
    }
}

int rank_programs_copies(const struct plan *plan)
{
    const struct programs *programs = &plan->programs;
    int given = programs->copies > 1 ? programs->copies : 1;
    return programs->generate.given ? generate_copies(&programs->generate) : given;
}

static enum status complete(const struct plan *plan, struct arena *arena,
                            struct rank_program **ranks, int *rank_count, struct diag *diag)
{
    const struct programs *programs = &plan->programs;
    enum status status = STATUS_OK;
    if (programs->generate.given) {
        status = generate_program(&programs->generate, plan, arena, ranks, rank_count, NULL, diag);
    } else {
        *rank_count = plan->ranks;
        *ranks = ARENA_ARRAY(arena, (size_t)plan->ranks, struct rank_program);
        if (!*ranks)
            return diag_no_memory(diag);
        memcpy(*ranks, programs->ranks, (size_t)plan->ranks * sizeof **ranks);
    }
    if (status == STATUS_OK && !comms_present(*ranks, *rank_count))
        status = comms_add(arena, *ranks, *rank_count, rank_programs_copies(plan), diag);
    return status;
}

enum status rank_programs_complete(const struct plan *plan, struct arena *arena,
                                   struct rank_program **ranks, int *rank_count, struct diag *diag)
{
    size_t first = diag->count;
    struct rank_program *made = NULL;
    int count = 0;
    enum status status = complete(plan, arena, &made, &count, diag);
    if (status != STATUS_OK) {
        name_file(diag, first, plan->file);
        return status;
    }
    *ranks = made;
    *rank_count = count;
    return STATUS_OK;
}

/* ---- checks and costs ------------------------------------------------------------------------ */

/* A message must have a rank at its other end, even if that rank does not expect it. */
static enum status check_partner(const struct lowering *lowering, int rank,
                                 const struct action *action)
{
    int partner = comms_partner(action);
    bool within = partner >= comms_first_stage(&lowering->map, action->stage) &&
                  partner < comms_end_stage(&lowering->map, action->stage);
    if (within && comms_rank_of(&lowering->map, partner) >= 0)
        return STATUS_OK;
    char name[ACTION_NAME];
    comms_action_name(action, name, sizeof name);
    if (partner > 0 && !within && comms_rank_of(&lowering->map, partner) >= 0)
        return diag_error_at(lowering->diag, lowering->plan->file, NULL, action->mark,
                             "found %s on rank %d, but stages %d and %d are of different copies of "
                             "the model",
                             name, rank, action->stage, partner);
    if (partner < 0)
        return diag_error_at(lowering->diag, lowering->plan->file, NULL, action->mark,
                             "found %s on rank %d, expected no such message: stage 0 is the first",
                             name, rank);
    return diag_error_at(lowering->diag, lowering->plan->file, NULL, action->mark,
                         "found %s on rank %d, but no rank holds stage %d", name, rank, partner);
}

static enum status check_partners(const struct lowering *lowering)
{
    for (int rank = 0; rank < lowering->rank_count; rank++)
        for (size_t i = 0; i < lowering->ranks[rank].count; i++) {
            const struct action *action = &lowering->ranks[rank].actions[i];
            if (!comms_is_message(action))
                continue;
            enum status status = check_partner(lowering, rank, action);
            if (status != STATUS_OK)
                return status;
        }
    return STATUS_OK;
}

static unsigned find_kinds(const struct lowering *lowering)
{
    unsigned kinds = 0;
    for (int rank = 0; rank < lowering->rank_count; rank++)
        for (size_t i = 0; i < lowering->ranks[rank].count; i++) {
            const struct action *parts;
            size_t count = comms_parts(&lowering->ranks[rank].actions[i], &parts);
            for (size_t k = 0; k < count; k++)
                kinds |= 1u << parts[k].kind;
        }
    return kinds;
}

static const enum action_kind cost_actions[] = {
    [COST_F] = ACTION_F, [COST_I] = ACTION_I, [COST_W] = ACTION_W, [COST_B] = ACTION_B};

/* A pass forgotten is worth a warning: it would make a prediction too good. */
static void warn_of_free_passes(const struct lowering *lowering)
{
    for (int c = COST_F; c <= COST_B; c++) {
        bool any = false, known = true;
        for (int s = 0; s < lowering->map.stages; s++) {
            for (int other = COST_F; other <= COST_B; other++)
                any |= lowering->costs[s].given[other];
            known &= lowering->costs[s].given[c];
        }
        if (any && !known && lowering->kinds & 1u << cost_actions[c])
            diag_warn(lowering->diag, "%s: times: does not say how long %s takes; it takes no time",
                      lowering->plan->file, cost_key((enum cost)c));
    }
}

static enum status check_edges(const struct lowering *lowering)
{
    const struct links *links = &lowering->plan->programs.links;
    for (size_t i = 0; i < links->edge_count; i++) {
        const struct edge_link *edge = &links->edges[i];
        int most = edge->from > edge->to ? edge->from : edge->to;
        if (most >= lowering->rank_count)
            return diag_error_at(lowering->diag, lowering->plan->file, NULL, edge->mark,
                                 "found an edge of rank %d, expected ranks below %d", most,
                                 lowering->rank_count);
    }
    return STATUS_OK;
}

static enum status find_costs(struct lowering *lowering)
{
    const struct action_time *given = lowering->plan->programs.times;
    for (int kind = 0; kind < ACTION_IDLE; kind++)
        lowering->times[kind] = given[kind].given ? given[kind].time_ns : 0;
    enum status status = check_edges(lowering);
    if (status == STATUS_OK)
        status = costs_resolve(lowering->plan, lowering->map.stages, &lowering->scratch,
                               &lowering->costs, lowering->diag);
    if (status == STATUS_OK)
        warn_of_free_passes(lowering);
    return status;
}

/* ---- all ranks ------------------------------------------------------------------------------- */

static enum status lower_rank(struct lowering *lowering, int rank)
{
    struct host_thread *thread = &lowering->out->threads[rank];
    thread->rank = rank;
    thread->name = "main";
    lowering->rank = rank;
    events_reset(lowering);
    if (!steps_make(lowering, &lowering->ranks[rank]))
        return diag_no_memory(lowering->diag);
    return ops_write(lowering, thread);
}

static size_t part_total(const struct rank_program *list)
{
    size_t total = 0;
    for (size_t i = 0; i < list->count; i++) {
        const struct action *parts;
        total += comms_parts(&list->actions[i], &parts);
    }
    return total;
}

bool rank_programs_are_big(const struct plan *plan)
{
    const struct programs *programs = &plan->programs;
    const struct generate_spec *spec = &programs->generate;
    size_t count = 0;
    if (spec->given) /* a forward and a backward pass at least, but where there are none */
        count = (size_t)spec->ranks * (size_t)spec->microbatches;
    for (int rank = 0; programs->ranks && rank < plan->ranks; rank++)
        count += part_total(&programs->ranks[rank]);
    return count > RANK_PROGRAMS_MAX_TRACKED;
}

/* The ranks of each replica share devices as those of the first one do. */
static bool share_devices(struct lowering *lowering)
{
    struct plan *out = lowering->out;
    const int *shared = lowering->plan->machine.share_device;
    if (!shared)
        return true;
    int *device = ARENA_ARRAY(&out->arena, (size_t)out->ranks, int);
    for (int rank = 0; device && rank < out->ranks; rank++) {
        int own = rank % lowering->rank_count;
        device[rank] = rank - own + (own < lowering->plan->ranks ? shared[own] : own);
    }
    out->machine.share_device = device;
    return device != NULL;
}

/* Tables and arrays as big as the biggest rank needs them. */
static bool begin_tables(struct lowering *lowering)
{
    struct arena *scratch = &lowering->scratch;
    struct rank_steps *now = &lowering->now;
    size_t most = 0, total = 0;
    for (int rank = 0; rank < lowering->rank_count; rank++) {
        size_t count = part_total(&lowering->ranks[rank]);
        most = count > most ? count : most;
        total += count;
    }
    lowering->listed_cap = total + (size_t)lowering->rank_count; /* and the ends of the lists */
    lowering->out->listed =
        ARENA_ARRAY(&lowering->out->arena, lowering->listed_cap, struct listed_action);
    now->steps = ARENA_ARRAY(scratch, most, struct rank_step);
    now->messages = ARENA_ARRAY(scratch, most, struct message);
    now->waits =
        ARENA_ARRAY(scratch, 3 * most, struct wait_for); /* a pass waits for three at most */
    return tensors_begin(lowering, total) && routes_begin(lowering) && fsdp_begin(lowering) &&
           lowering->out->listed && !scratch->failed;
}

static enum status begin(struct lowering *lowering)
{
    const struct plan *plan = lowering->plan;
    size_t first = lowering->diag->count;
    enum status status = rank_programs_complete(plan, &lowering->scratch, &lowering->ranks,
                                                &lowering->rank_count, lowering->diag);
    if (status == STATUS_OK)
        status = comms_map_stages(&lowering->scratch, lowering->ranks, lowering->rank_count,
                                  rank_programs_copies(plan), &lowering->map, lowering->diag);
    if (status != STATUS_OK) {
        name_file(lowering->diag, first, plan->file);
        return status;
    }
    status = check_partners(lowering);
    if (status != STATUS_OK)
        return status;
    if (lowering->rank_count > PLAN_MAX_RANKS / replica_count(lowering))
        return diag_error(lowering->diag, STATUS_INPUT,
                          "%s: found %d replicas of %d ranks, expected at most %d ranks in all",
                          plan->file, replica_count(lowering), lowering->rank_count,
                          PLAN_MAX_RANKS);
    lowering->kinds = find_kinds(lowering);
    status = find_costs(lowering);
    if (status != STATUS_OK)
        return status;
    struct plan *out = lowering->out;
    lowering->compute = names_intern(&out->streams, &out->arena, "compute");
    out->ranks = lowering->rank_count * replica_count(lowering);
    out->thread_count = (size_t)out->ranks;
    out->threads = ARENA_ARRAY(&out->arena, out->thread_count, struct host_thread);
    if (lowering->compute < 0 || !out->threads || !begin_tables(lowering) ||
        !share_devices(lowering))
        return diag_no_memory(lowering->diag);
    return STATUS_OK;
}

static bool copy_text(struct arena *arena, const char *text, const char **out)
{
    *out = text ? arena_strdup(arena, text) : NULL;
    return !text || *out;
}

static bool copy_head(struct plan *out, const struct plan *plan)
{
    out->form = FORM_THREADS;
    out->inputs_given = true; /* what no action provides holds nothing */
    out->machine = plan->machine;
    out->on_failure = plan->on_failure;
    out->expect = plan->expect;
    out->expect_dataflow = plan->expect_dataflow;
    return copy_text(&out->arena, plan->file, &out->file) &&
           copy_text(&out->arena, plan->name, &out->name) &&
           copy_text(&out->arena, plan->about, &out->about) &&
           copy_text(&out->arena, plan->source, &out->source);
}

/* ---- in one walk: all operations at once ----------------------------------------------------- */

/* Threads grow in place: the operations of one follow each other in the plan's arena. */
static enum status keep_op(void *arg, struct host_thread *thread, const struct host_op *op)
{
    struct lowering *lowering = arg;
    if (!arena_grow(&lowering->out->arena, (void **)&thread->ops, thread->op_count - 1,
                    &lowering->kept_cap, sizeof *op))
        return diag_no_memory(lowering->diag);
    thread->ops[thread->op_count - 1] = *op;
    return STATUS_OK;
}

static enum status keep_rank(struct lowering *lowering, int rank)
{
    lowering->kept_cap = 0;
    return lower_rank(lowering, rank);
}

static enum status open_lowering(struct lowering *lowering, const struct plan *plan,
                                 bool all_buffers, struct plan *made, struct diag *diag)
{
    assert(plan->form == FORM_PROGRAMS);
    plan_init(made);
    *lowering =
        (struct lowering){.plan = plan, .all_buffers = all_buffers, .out = made, .diag = diag};
    arena_init(&lowering->scratch, 0);
    return copy_head(made, plan) ? begin(lowering) : diag_no_memory(diag);
}

static enum status keep_all(struct lowering *lowering)
{
    enum status status = STATUS_OK;
    lowering->sink = (struct ops_sink){
        .take = keep_op, .arg = lowering, .arena = &lowering->out->arena, .names = true};
    for (int rank = 0; status == STATUS_OK && rank < lowering->rank_count; rank++)
        status = keep_rank(lowering, rank);
    if (status == STATUS_OK)
        status = routes_check(lowering);
    if (status == STATUS_OK && !fsdp_replicate(lowering))
        status = diag_no_memory(lowering->diag);
    return status;
}

enum status rank_programs_lower(const struct plan *plan, bool all_buffers, struct plan *out,
                                struct diag *diag)
{
    struct plan made;
    struct lowering lowering;
    enum status status = open_lowering(&lowering, plan, all_buffers, &made, diag);
    if (status == STATUS_OK)
        status = keep_all(&lowering);
    arena_fini(&lowering.scratch);
    if (status == STATUS_OK)
        *out = made;
    else
        plan_fini(&made);
    return status;
}

/* ---- in two walks: thread by thread ---------------------------------------------------------- */

struct rank_programs {
    struct lowering lowering;
    struct plan *made;
    struct arena piece; /* what one operation points to */
    bool kept;          /* threads have their operations: replicas are copies of them */
};

static enum status drop_op(void *arg, struct host_thread *thread, const struct host_op *op)
{
    (void)arg;
    (void)thread;
    (void)op;
    return STATUS_OK;
}

/* The first walk makes what the operations of all ranks refer to. */
static enum status walk_first(struct rank_programs *programs)
{
    struct lowering *lowering = &programs->lowering;
    enum status status = STATUS_OK;
    lowering->sink = (struct ops_sink){.take = drop_op, .arena = &programs->piece, .empties = true};
    for (int rank = 0; status == STATUS_OK && rank < lowering->rank_count; rank++)
        status = lower_rank(lowering, rank);
    lowering->again = true;
    lowering->op_count = lowering->out->listed_count = 0;
    tensors_again(lowering);
    fsdp_again(lowering);
    return status == STATUS_OK ? routes_check(lowering) : status;
}

enum status rank_programs_open(const struct plan *plan, bool all_buffers, struct plan *out,
                               struct rank_programs **programs, struct diag *diag)
{
    struct rank_programs *opened = calloc(1, sizeof *opened);
    if (!opened)
        return diag_no_memory(diag);
    opened->made = out;
    arena_init(&opened->piece, 0);
    struct lowering *lowering = &opened->lowering;
    enum status status = open_lowering(lowering, plan, all_buffers, out, diag);
    opened->kept = status == STATUS_OK && replica_count(lowering) > 1;
    if (status == STATUS_OK)
        status = opened->kept ? keep_all(lowering) : walk_first(opened);
    if (status == STATUS_OK) {
        *programs = opened;
        return STATUS_OK;
    }
    rank_programs_close(opened);
    plan_fini(out);
    return status;
}

size_t rank_programs_parts(const struct rank_programs *programs)
{
    return programs->lowering.part_count * (size_t)replica_count(&programs->lowering);
}

enum status rank_programs_thread(struct rank_programs *programs, int thread, rank_op_take *take,
                                 void *arg)
{
    struct lowering *lowering = &programs->lowering;
    struct host_thread *desc = &lowering->out->threads[thread];
    enum status status = STATUS_OK;
    lowering->sink = (struct ops_sink){
        .take = take, .arg = arg, .arena = &programs->piece, .empties = true, .names = true};
    if (!programs->kept)
        return lower_rank(lowering, thread);
    for (size_t i = 0; status == STATUS_OK && i < desc->op_count; i++)
        status = take(arg, desc, &desc->ops[i]);
    return status;
}

void rank_programs_close(struct rank_programs *programs)
{
    if (!programs)
        return;
    arena_fini(&programs->lowering.scratch);
    arena_fini(&programs->piece);
    free(programs);
}
