/* SPDX-License-Identifier: Apache-2.0 */
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

#include "base/array.h"
#include "base/sort.h"
#include "plan/schedules/generate.h"
#include "plan/schedules/complete_lists.h"
#include "plan/schedules/arithmetic.h"
#include "plan/schedules/costs.h"
#include "plan/schedules/parallel.h"
#include "rank_internal.h"

/* ---- checks and costs ------------------------------------------------------------------------ */

/* A message must have a rank at its other end, even if that rank does not expect it. */
static enum status check_partner(const struct rank_lowering *lowering, int rank,
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
        return plan_error_at(lowering->plan, lowering->diag, action->mark,
                             "found %s on rank %d, but stages %d and %d are of different copies of "
                             "the model",
                             name, rank, action->stage, partner);
    if (partner < 0)
        return plan_error_at(lowering->plan, lowering->diag, action->mark,
                             "found %s on rank %d, expected no such message: stage 0 is the first",
                             name, rank);
    return plan_error_at(lowering->plan, lowering->diag, action->mark,
                         "found %s on rank %d, but no rank holds stage %d", name, rank, partner);
}

static enum status check_partners(const struct rank_lowering *lowering)
{
    for (int i = 0; i < lowering->list_count; i++) {
        const struct rank_list *list = &lowering->lists[i];
        for (size_t k = 0; k < list->program->count; k++) {
            const struct action *action = &list->program->actions[k];
            if (!comms_is_message(action))
                continue;
            enum status status = check_partner(lowering, list->own, action);
            if (status != STATUS_OK)
                return status;
        }
    }
    return STATUS_OK;
}

/* A list of a rank that differs names the stages of its place, and no others. */
static enum status rank_programs_check_stages(const struct rank_lowering *lowering)
{
    for (int i = lowering->rank_count; i < lowering->list_count; i++) {
        const struct rank_list *list = &lowering->lists[i];
        for (size_t k = 0; k < list->program->count; k++) {
            const struct action *parts;
            size_t count = comms_parts(&list->program->actions[k], &parts);
            for (size_t j = 0; j < count; j++)
                if (comms_rank_of(&lowering->map, parts[j].stage) != list->own ||
                    parts[j].microbatch >= lowering->map.microbatches)
                    return plan_error_at(
                        lowering->plan, lowering->diag, parts[j].mark,
                        "found stage %d, microbatch %d in the list of rank %d, expected those of "
                        "the lists of all pipelines",
                        parts[j].stage, parts[j].microbatch,
                        lowering->plan->programs.parallel.differing[i - lowering->rank_count].rank);
        }
    }
    return STATUS_OK;
}

static unsigned rank_programs_find_kinds(const struct rank_lowering *lowering)
{
    unsigned kinds = 0;
    for (int i = 0; i < lowering->list_count; i++)
        for (size_t k = 0; k < lowering->lists[i].program->count; k++) {
            const struct action *parts;
            size_t count = comms_parts(&lowering->lists[i].program->actions[k], &parts);
            for (size_t j = 0; j < count; j++)
                kinds |= 1u << parts[j].kind;
        }
    return kinds;
}

/* A pass forgotten is worth a warning: it would make a prediction too good. */
static void warn_of_free_passes(const struct rank_lowering *lowering)
{
    for (int c = COST_F; c <= COST_B; c++) {
        bool any = false, known = true;
        for (int s = 0; s < lowering->map.stages; s++) {
            for (int other = COST_F; other <= COST_B; other++)
                any |= lowering->costs[s].given[other];
            known &= lowering->costs[s].given[c];
        }
        if (any && !known && lowering->kinds & 1u << action_of_cost((enum cost)c))
            diag_warn(lowering->diag,
                      "%s: times: does not say how long %s takes, so it takes no time",
                      lowering->plan->file, cost_key((enum cost)c));
    }
}

static enum status check_edges(const struct rank_lowering *lowering)
{
    const struct links *links = &lowering->plan->programs.links;
    for (size_t i = 0; i < links->edge_count; i++) {
        const struct edge_link *edge = &links->edges[i];
        int most = edge->from > edge->to ? edge->from : edge->to;
        if (most >= lowering->rank_count)
            return plan_error_at(lowering->plan, lowering->diag, edge->mark,
                                 "found an edge of rank %d, expected ranks below %d", most,
                                 lowering->rank_count);
    }
    return STATUS_OK;
}

static enum status find_costs(struct rank_lowering *lowering)
{
    enum status status = check_edges(lowering);
    if (status == STATUS_OK)
        status = costs_resolve(lowering->plan, lowering->map.stages, &lowering->scratch,
                               &lowering->costs, lowering->diag);
    if (status != STATUS_OK)
        return status;
    lowering->clock =
        (struct pass_clock){lowering->plan, lowering->costs, lowering->map.microbatches};
    warn_of_free_passes(lowering);
    return STATUS_OK;
}

/* ---- all ranks ------------------------------------------------------------------------------- */

bool rank_list_steps(struct rank_lowering *lowering, const struct rank_list *list)
{
    lowering->rank = list->own;
    lowering->list = list;
    lowering->walk++;
    events_reset(lowering);
    tensors_turn(lowering, list->program);
    return steps_make(lowering, list->program);
}

static enum status lower_list(struct rank_lowering *lowering, const struct rank_list *list,
                              struct host_thread *thread)
{
    return rank_list_steps(lowering, list) ? ops_write(lowering, thread)
                                           : diag_no_memory(lowering->diag);
}

static enum status lower_rank(struct rank_lowering *lowering, int rank)
{
    struct host_thread *thread = &lowering->out->threads[rank];
    thread->rank = rank;
    thread->name = "main";
    return lower_list(lowering, &lowering->lists[rank], thread);
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

bool rank_programs_are_big(const struct plan *plan, int copies)
{
    const struct programs *programs = &plan->programs;
    const struct generate_spec *spec = &programs->generate;
    size_t count = 0;
    if (spec->given) /* a forward and a backward pass at least, but where there are none */
        count = (size_t)spec->ranks * (size_t)spec->microbatches;
    for (int rank = 0; programs->ranks && rank < plan->ranks; rank++)
        count += part_total(&programs->ranks[rank]);
    return count > (size_t)RANK_PROGRAMS_MAX_TRACKED / (size_t)copies;
}

/* The ranks of each pipeline share devices as those of the first one do. */
static bool share_devices(struct rank_lowering *lowering)
{
    struct plan *out = lowering->out;
    const struct plan *plan = lowering->plan;
    const int *shared = plan->machine.share_device;
    if (!shared)
        return true;
    int *device = ARENA_ARRAY(&out->arena, (size_t)out->ranks, int);
    for (int rank = 0; device && rank < out->ranks; rank++) {
        int replica, own;
        parallel_place(&lowering->grid, lowering->rank_count, rank, &replica, &own);
        device[rank] = rank_at(lowering, replica, own < plan->ranks ? shared[own] : own);
    }
    out->machine.share_device = device;
    return device != NULL;
}

/* The lists that are lowered: those of a pipeline, and behind them those of ranks that differ. */
static bool list_lists(struct rank_lowering *lowering, struct rank_program *differing)
{
    const struct plan *plan = lowering->plan;
    size_t others = plan->programs.parallel.differing_count;
    lowering->list_count = lowering->rank_count + (int)others;
    lowering->lists =
        ARENA_ARRAY(&lowering->scratch, (size_t)lowering->list_count, struct rank_list);
    for (int rank = 0; lowering->lists && rank < lowering->rank_count; rank++)
        lowering->lists[rank] = (struct rank_list){.program = &lowering->ranks[rank], .own = rank};
    for (size_t i = 0; lowering->lists && i < others; i++) {
        const struct rank_differs *differs = &plan->programs.parallel.differing[i];
        struct rank_list *list = &lowering->lists[(size_t)lowering->rank_count + i];
        *list = (struct rank_list){.program = &differing[i],
                                   .reduce = parallel_ends(plan, differs).reduce};
        parallel_place(&plan->programs.parallel, lowering->rank_count, differs->rank,
                       &list->replica, &list->own);
    }
    for (int rank = 0; lowering->lists && rank < lowering->rank_count; rank++)
        lowering->lists[rank].reduce = parallel_ends(plan, NULL).reduce;
    return lowering->lists != NULL;
}

/* Tables and arrays as big as the biggest rank needs them. */
static bool begin_tables(struct rank_lowering *lowering)
{
    struct arena *scratch = &lowering->scratch;
    struct rank_steps *now = &lowering->now;
    size_t most = 0, total = 0;
    for (int i = 0; i < lowering->list_count; i++) {
        size_t count = part_total(lowering->lists[i].program);
        most = count > most ? count : most;
        total += count;
    }
    lowering->listed_cap = total + (size_t)lowering->list_count; /* and the ends of the lists */
    lowering->out->listed =
        ARENA_ARRAY(&lowering->out->arena, lowering->listed_cap, struct listed_action);
    if (lowering->plan->programs.metadata == METADATA_FIRST)
        lowering->told =
            ARENA_ARRAY(scratch, MESSAGE_KINDS * (size_t)lowering->map.stages, uint32_t);
    size_t steps = most * (1 + collectives_most(lowering));
    now->steps = ARENA_ARRAY(scratch, steps, struct rank_step);
    now->messages = ARENA_ARRAY(scratch, most, struct message);
    now->waits = ARENA_ARRAY(scratch, 4 * steps,
                             struct wait_for); /* a pass waits for three, and its collectives */
    return fsdp_begin(lowering) && tensors_begin(lowering, total) && routes_begin(lowering) &&
           groups_begin(lowering) && lowering->out->listed && !scratch->failed;
}

static enum status rank_programs_begin(struct rank_lowering *lowering)
{
    const struct plan *plan = lowering->plan;
    enum status status =
        complete_lists_make(plan, lowering->scratch.limit, &lowering->complete, lowering->diag);
    if (status != STATUS_OK)
        return status;
    lowering->ranks = lowering->complete.ranks;
    lowering->rank_count = lowering->complete.rank_count;
    lowering->map = lowering->complete.map;
    lowering->replicas.count = plan_replicas(plan);
    lowering->grid = plan->programs.parallel;
    if (lowering->few && lowering->grid.given) {
        lowering->grid = parallel_few(&plan->programs.parallel, lowering->few);
        lowering->replicas.count = parallel_world(&lowering->grid) / lowering->grid.size[DIM_PP];
    } else if (lowering->few) {
        lowering->replicas.count = min_int(lowering->replicas.count, lowering->few);
    }
    if (!list_lists(lowering, lowering->complete.differing))
        return diag_no_memory(lowering->diag);
    lowering->kinds = rank_programs_find_kinds(lowering);
    lowering->out->action_kinds = lowering->kinds;
    status = rank_programs_check_stages(lowering);
    if (status == STATUS_OK)
        status = check_partners(lowering);
    if (status == STATUS_OK)
        status = groups_check(lowering);
    if (status != STATUS_OK)
        return status;
    if (lowering->rank_count > PLAN_MAX_RANKS / lowering->replicas.count)
        return diag_error(lowering->diag, STATUS_INPUT,
                          "%s: found %d replicas of %d ranks, expected at most %d ranks in all",
                          plan->file, lowering->replicas.count, lowering->rank_count,
                          PLAN_MAX_RANKS);
    status = find_costs(lowering);
    if (status != STATUS_OK)
        return status;
    struct plan *out = lowering->out;
    if (plan->programs.arithmetic.given)
        status = arithmetic_resolve(plan, &lowering->map, lowering->rank_count, lowering->costs,
                                    &out->arena, &out->programs.arithmetic, lowering->diag);
    if (status != STATUS_OK)
        return status;
    lowering->compute = names_intern(&out->streams, &out->arena, "compute");
    out->ranks = lowering->rank_count * lowering->replicas.count;
    out->thread_count = (size_t)out->ranks;
    out->threads = ARENA_ARRAY(&out->arena, out->thread_count, struct host_thread);
    if (lowering->compute < 0 || !out->threads || !begin_tables(lowering) ||
        !share_devices(lowering))
        return diag_no_memory(lowering->diag);
    return STATUS_OK;
}

static bool rank_programs_copy_text(struct arena *arena, const char *text, const char **out)
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
    return rank_programs_copy_text(&out->arena, plan->file, &out->file) &&
           rank_programs_copy_text(&out->arena, plan->name, &out->name) &&
           rank_programs_copy_text(&out->arena, plan->about, &out->about) &&
           rank_programs_copy_text(&out->arena, plan->source, &out->source);
}

/* ---- in two walks ---------------------------------------------------------------------------- */

static bool has_copies(const struct rank_lowering *lowering)
{
    return lowering->plan->programs.parallel.given || lowering->replicas.count > 1;
}

/* A list in the first walk: what its threads will need is counted. */
static enum status rank_programs_walk_list(struct rank_lowering *lowering, struct rank_list *list)
{
    struct host_thread none = {.name = "main"};
    size_t ops = lowering->op_count, parts = lowering->part_count;
    list->first_listed = lowering->out->listed_count;
    lowering->replica = list->replica;
    enum status status = lower_list(lowering, list, &none);
    list->op_count = lowering->op_count - ops;
    list->part_count = lowering->part_count - parts;
    if (has_copies(lowering))
        tensors_forget(lowering, list);
    return status;
}

/* The first walk makes what the operations of all ranks refer to. */
static enum status walk_first(struct rank_lowering *lowering, struct arena *piece)
{
    enum status status = STATUS_OK;
    lowering->sink = (struct ops_sink){.arena = piece, .empties = piece != &lowering->scratch};
    for (int i = 0; status == STATUS_OK && i < lowering->list_count; i++)
        status = rank_programs_walk_list(lowering, &lowering->lists[i]);
    if (!has_copies(lowering))
        tensors_again(lowering);
    lowering->again = true;
    lowering->all_listed = lowering->out->listed_count;
    if (status == STATUS_OK)
        status = routes_check(lowering);
    return status == STATUS_OK ? replicas_make(lowering) : status;
}

/* The thread of a rank, in the second walk. */
static enum status lower_copy(struct rank_lowering *lowering, int rank)
{
    const struct rank_list *list = replicas_list(lowering, rank, &lowering->replica);
    lowering->out->listed_count = list->first_listed;
    lowering->op_count = 0;
    enum status status = lower_list(lowering, list, &lowering->out->threads[rank]);
    if (has_copies(lowering))
        tensors_forget(lowering, list);
    lowering->out->listed_count = lowering->all_listed;
    return status;
}

/* ---- all operations at once ------------------------------------------------------------------ */

/* Threads grow in place: the operations of one follow each other in the plan's arena. */
static enum status keep_op(void *arg, struct host_thread *thread, const struct host_op *op)
{
    struct rank_lowering *lowering = arg;
    if (!ARENA_GROW(&lowering->out->arena, thread->ops, thread->op_count - 1, lowering->kept_cap))
        return diag_no_memory(lowering->diag);
    thread->ops[thread->op_count - 1] = *op;
    return STATUS_OK;
}

static struct ops_sink kept_sink(struct rank_lowering *lowering)
{
    return (struct ops_sink){.take = keep_op, .arg = lowering, .arena = &lowering->out->arena};
}

static enum status open_lowering(struct rank_lowering *lowering, const struct plan *plan,
                                 bool all_buffers, int few, struct work_limit *limit,
                                 struct plan *made, struct diag *diag)
{
    assert(plan->form == FORM_PROGRAMS);
    plan_init(made);
    *lowering = (struct rank_lowering){
        .plan = plan, .all_buffers = all_buffers, .few = few, .out = made, .diag = diag};
    arena_init(&lowering->scratch, 0);
    made->arena.limit = lowering->scratch.limit = limit;
    return copy_head(made, plan) ? rank_programs_begin(lowering) : diag_no_memory(diag);
}

static void close_lowering(struct rank_lowering *lowering)
{
    arena_fini(&lowering->scratch);
    complete_lists_fini(&lowering->complete);
}

/* Pipelines that are there once need one walk: what operations refer to is made as it is needed. */
static enum status keep_pipeline(struct rank_lowering *lowering)
{
    enum status status = STATUS_OK;
    for (int rank = 0; status == STATUS_OK && rank < lowering->rank_count; rank++) {
        lowering->kept_cap = 0;
        status = lower_rank(lowering, rank);
    }
    return status == STATUS_OK ? routes_check(lowering) : status;
}

static enum status keep_copies(struct rank_lowering *lowering)
{
    enum status status = walk_first(lowering, &lowering->scratch);
    for (int rank = 0; status == STATUS_OK && rank < lowering->out->ranks; rank++) {
        lowering->kept_cap = 0;
        lowering->sink = kept_sink(lowering);
        status = lower_copy(lowering, rank);
    }
    return status;
}

enum status rank_programs_lower(const struct plan *plan, bool all_buffers, struct plan *out,
                                struct diag *diag)
{
    struct plan made;
    struct rank_lowering lowering;
    enum status status = open_lowering(&lowering, plan, all_buffers, 0, NULL, &made, diag);
    lowering.sink = kept_sink(&lowering);
    if (status == STATUS_OK)
        status = has_copies(&lowering) ? keep_copies(&lowering) : keep_pipeline(&lowering);
    close_lowering(&lowering);
    if (status == STATUS_OK)
        *out = made;
    else
        plan_fini(&made);
    return status;
}

/* ---- thread by thread ------------------------------------------------------------------------ */

struct rank_programs {
    struct rank_lowering lowering;
    struct arena piece; /* what one operation points to */
};

enum status rank_programs_open(const struct plan *plan, bool all_buffers, int few,
                               struct arena *arena, struct plan *out,
                               struct rank_programs **programs, struct straight **straight,
                               struct diag *diag)
{
    struct work_limit *limit = arena->limit;
    struct rank_programs *opened = calloc(1, sizeof *opened);
    if (!opened)
        return diag_no_memory(diag);
    arena_init(&opened->piece, 0);
    opened->piece.limit = limit;
    enum status status = open_lowering(&opened->lowering, plan, all_buffers, few, limit, out, diag);
    if (status == STATUS_OK && straight)
        *straight = straight_make(&opened->lowering, arena);
    if (status == STATUS_OK)
        status = straight && *straight ? replicas_make(&opened->lowering)
                                       : walk_first(&opened->lowering, &opened->piece);
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
    return programs->lowering.all_parts;
}

enum status rank_programs_thread(struct rank_programs *programs, int thread, rank_op_take *take,
                                 rank_name_take *name, void *arg)
{
    struct rank_lowering *lowering = &programs->lowering;
    lowering->sink = (struct ops_sink){
        .take = take, .name = name, .arg = arg, .arena = &programs->piece, .empties = true};
    return lower_copy(lowering, thread);
}

void rank_programs_take_lists(struct rank_programs *programs, struct complete_lists *out)
{
    *out = programs->lowering.complete;
    programs->lowering.complete = (struct complete_lists){0};
}

void rank_programs_close(struct rank_programs *programs)
{
    if (!programs)
        return;
    close_lowering(&programs->lowering);
    arena_fini(&programs->piece);
    free(programs);
}
