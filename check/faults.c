/* SPDX-License-Identifier: Apache-2.0 */
/* faults.c - see faults.h; the arguments are in doc/checker.md, "Failure safety". */
#include "faults.h"

#include "base/stopwatch.h"

#include <stdlib.h>
#include <string.h>

/* Each way but the last has a budget: where it gives up, the next may still answer. A breadth-first
   search within a budget does not reach the end of a run longer than HOPELESS_STEPS. */
enum {
    INJECT_STATES = 20000,
    SHORTEST_STATES = 100000,
    SURVIVE_STATES = 20000,
    HOPELESS_STEPS = 250
};
#define INJECT_NS    INT64_C(3000000000)
#define SHORTEST_NS  INT64_C(1000000000)
#define SURVIVE_NS   INT64_C(500000000)
#define BUDGET_BYTES ((size_t)512 << 20)

static const unsigned faults_bit = 1u << PROPERTY_FAULTS;

/* ---- structure ------------------------------------------------------------------------------- */

/* Watchdogs stop the ranks of a communicator together, and so on. */
static int team_count(const struct program *p)
{
    int count = 0;
    for (int rank = 0; rank < p->ranks; rank++)
        count += p->team[rank] == rank;
    return count;
}

static bool joins_teams(int *seen, int team)
{
    int before = *seen;
    *seen = team + 1;
    return before && before != team + 1;
}

/* Flags and queues belong to the plan: true if none connects two teams. `flags`, `queues`: zeros, for the team + 1 seen
   last. */
static bool teams_are_apart(const struct program *p, int *flags, int *queues)
{
    for (int b = 0; b < (int)p->body_count; b++) {
        int mine = p->team[p->threads[p->bodies[b].thread].rank];
        for (int i = 0; i < p->bodies[b].count; i++) {
            const struct op *op = &p->ops[p->bodies[b].first + i];
            if (op_operand(op->kind) == OPERAND_FLAG && joins_teams(&flags[op->object], mine))
                return false;
            if (op_operand(op->kind) == OPERAND_QUEUE && joins_teams(&queues[op->object], mine))
                return false;
        }
    }
    return true;
}

/* Work that needs more residency slots than there are never starts, nor a wait for a flag that nobody sets; what
   a plan aborts itself does not end as else, and a fault may lead threads into branches that no run without one takes. */
static bool work_starts(const struct program *p)
{
    int slots = p->plan->machine.sm_slots;
    for (size_t i = 0; i < p->op_count; i++)
        if ((slots && p->ops[i].sm > slots) || op_stream_waits(p->ops[i].kind) ||
            p->ops[i].kind == OP_ABORT || op_has_branches(&p->ops[i]))
            return false;
    return true;
}

enum status faults_proved_by_structure(const struct program *p, bool lives, bool *proved,
                                       struct diag *diag)
{
    *proved = false;
    if (p->plan->on_failure == ON_FAILURE_NONE || !work_starts(p) ||
        p->plan->machine.share_device || p->is_crossed)
        return STATUS_OK;
    int *flags = calloc((size_t)p->flag_families + 1, sizeof *flags);
    int *queues = calloc((size_t)p->queue_count + 1, sizeof *queues);
    bool allocated = flags && queues;
    if (allocated) {
        int teams = team_count(p);
        const enum on_failure rule = p->plan->on_failure;
        bool told = rule == ON_FAILURE_GROUP_ABORT || teams == p->ranks ||
                    (rule == ON_FAILURE_ABORT && p->abort_is_plain);
        *proved = told && (teams == 1 || lives) && teams_are_apart(p, flags, queues);
    }
    free(flags);
    free(queues);
    return allocated ? STATUS_OK : diag_no_memory(diag);
}

/* ---- injection ------------------------------------------------------------------------------- */

/* The argument of `inject`: the same program without and with faults, and the last run tried, from
   its fault on. */
struct injector {
    const struct program *plain, *program;
    struct state *start, *work;
    struct search_path run;
    size_t run_cap;
    bool out_of_memory;
};

static void faults_take_step(struct injector *injector, int agent, int choice)
{
    struct transition step = {agent, choice};
    if (search_path_push(&injector->run, &injector->run_cap, step))
        machine_step(injector->program, injector->work, step, NULL);
    else
        injector->out_of_memory = true;
}

/* Take the fault, then the steps of each agent in turn for as long as it is enabled. There are data
   for as many iterations as any wait can reach; with the end of the data every run ends. */
static void run_on(struct injector *injector, int fault)
{
    const struct program *p = injector->program;
    int more = p->tasks ? p->window + p->history + p->max_distance : 0;
    injector->run.count = 0;
    faults_take_step(injector, fault, 0);
    for (bool again = true; again && !injector->out_of_memory;) {
        again = false;
        for (int agent = 1; agent < p->agent_count; agent++)
            while (machine_agent_enabled(p, injector->work, agent) && !injector->out_of_memory) {
                faults_take_step(injector, agent, 0);
                again = true;
            }
        if (!again && machine_agent_enabled(p, injector->work, 0)) {
            faults_take_step(injector, 0, more-- > 0 ? 0 : 1);
            again = true;
        }
    }
}

/* True if some fault in this state leaves an agent blocked, in the one run that is tried. */
static bool faults_inject(void *arg, const struct state *state)
{
    struct injector *injector = arg;
    const struct program *p = injector->program;
    machine_state_from_plain(p, injector->start, injector->plain, state);
    for (int agent = 0; agent < p->agent_count && !injector->out_of_memory; agent++) {
        if (p->agents[agent].kind != AGENT_FAULT ||
            !machine_agent_enabled(p, injector->start, agent))
            continue;
        machine_copy(p, injector->work, injector->start);
        run_on(injector, agent);
        if (machine_never_woken(p, injector->work))
            return !injector->out_of_memory;
    }
    return false;
}

/* Append the last run tried to `path`. */
static bool append_run(struct search_path *path, const struct search_path *run)
{
    size_t count = path->count + run->count;
    struct transition *steps = realloc(path->steps, (count + 1) * sizeof *steps);
    if (!steps)
        return false;
    if (run->count)
        memcpy(steps + path->count, run->steps, run->count * sizeof *steps);
    path->steps = steps;
    path->count = count;
    return true;
}

/* ---- searches -------------------------------------------------------------------------------- */

static uint64_t smaller(uint64_t a, uint64_t b)
{
    return a && (!b || a < b) ? a : b;
}

/* The caller's limits, or the budget where that is less; 0 is no limit. */
static struct search_limits faults_within(const struct search_limits *limits, uint64_t states,
                                          int64_t time_ns)
{
    return (struct search_limits){
        .states = smaller(limits->states, states),
        .mem_bytes = (size_t)smaller(limits->mem_bytes, BUDGET_BYTES),
        .until_ns = stopwatch_earlier(limits->until_ns, stopwatch_now_ns() + time_ns)};
}

static void faults_add_up(struct faults_answer *answer, const struct search_result *result)
{
    answer->states += result->states;
    answer->transitions += result->transitions;
    if (result->peak_bytes > answer->peak_bytes)
        answer->peak_bytes = result->peak_bytes;
}

/* Keep the witness of a search, if there is one, and it is the first or shorter than the last. */
static void take_witness(struct faults_answer *answer, struct search_result *result)
{
    struct search_path *found = &result->witness[PROPERTY_FAULTS];
    bool first = answer->outcome != OUTCOME_SOME;
    if (!(result->found & faults_bit) || (!first && found->count >= answer->witness.count))
        return;
    struct search_path before = answer->witness;
    answer->witness = *found;
    *found = before;
    answer->outcome = OUTCOME_SOME;
}

/* Search the program without faults and try one run for each fault in each state. */
static enum status search_with_injector(struct injector *injector,
                                        const struct faults_options *options,
                                        struct faults_answer *answer, struct diag *diag)
{
    struct search_options search = {.reduction = true,
                                    .properties = faults_bit,
                                    .stop_at = faults_bit,
                                    .visit = faults_inject,
                                    .visit_arg = injector,
                                    .limits =
                                        faults_within(&options->limits, INJECT_STATES, INJECT_NS),
                                    .interrupted = options->interrupted,
                                    .progress = options->progress,
                                    .progress_arg = options->progress_arg};
    struct search_result result;
    enum status status = search_run(injector->plain, &search, &result, diag);
    if (status != STATUS_OK)
        return status;
    bool found = result.found & faults_bit;
    if (injector->out_of_memory ||
        (found && !append_run(&result.witness[PROPERTY_FAULTS], &injector->run))) {
        search_result_fini(&result);
        return diag_no_memory(diag);
    }
    faults_add_up(answer, &result);
    take_witness(answer, &result);
    search_result_fini(&result);
    return STATUS_OK;
}

static enum status search_by_injection(const struct program *plain,
                                       const struct faults_options *options,
                                       struct faults_answer *answer, struct diag *diag)
{
    struct injector injector = {.plain = plain,
                                .program = answer->program,
                                .start = machine_state(answer->program),
                                .work = machine_state(answer->program)};
    enum status status = injector.start && injector.work
                             ? search_with_injector(&injector, options, answer, diag)
                             : diag_no_memory(diag);
    free(injector.run.steps);
    machine_free(injector.start);
    machine_free(injector.work);
    return status;
}

/* Every interleaving of the program with its faults, until the first violation or the end. */
static enum status search_everything(const struct faults_options *options,
                                     struct faults_answer *answer, struct diag *diag)
{
    struct search_options search = {.properties = faults_bit,
                                    .stop_at = faults_bit,
                                    .limits = options->limits,
                                    .interrupted = options->interrupted,
                                    .progress = options->progress,
                                    .progress_arg = options->progress_arg};
    struct search_result result;
    enum status status = search_run(answer->program, &search, &result, diag);
    if (status != STATUS_OK)
        return status;
    faults_add_up(answer, &result);
    take_witness(answer, &result);
    if (answer->outcome != OUTCOME_SOME)
        answer->outcome = result.complete ? OUTCOME_PROVED : OUTCOME_UNDECIDED;
    if (answer->outcome == OUTCOME_UNDECIDED)
        answer->limit = result.limit;
    search_result_fini(&result);
    return STATUS_OK;
}

static enum status faults_find_shortest(const struct faults_options *options,
                                        struct faults_answer *answer, struct diag *diag)
{
    struct search_options search = {
        .properties = faults_bit,
        .stop_at = faults_bit,
        .interrupted = options->interrupted,
        .limits = faults_within(&options->limits, SHORTEST_STATES, SHORTEST_NS)};
    struct search_result result;
    enum status status = search_run(answer->program, &search, &result, diag);
    if (status != STATUS_OK)
        return status;
    take_witness(answer, &result);
    search_result_fini(&result);
    return STATUS_OK;
}

/* "Always" if no run with a fault ends well. */
static enum status faults_always_or_some(const struct faults_options *options,
                                         struct faults_answer *answer, struct diag *diag)
{
    struct search_options search = {
        .properties = faults_bit,
        .cut_at = faults_bit,
        .interrupted = options->interrupted,
        .limits = faults_within(&options->limits, SURVIVE_STATES, SURVIVE_NS)};
    struct search_result result;
    enum status status = search_run(answer->program, &search, &result, diag);
    if (status != STATUS_OK)
        return status;
    if (result.complete && !result.ends_well)
        answer->outcome = OUTCOME_ALWAYS;
    search_result_fini(&result);
    return STATUS_OK;
}

/* ---- the question ---------------------------------------------------------------------------- */

static enum status search_for_faults(const struct plan *plan, const struct program *plain,
                                     const struct faults_options *options,
                                     struct faults_answer *answer, struct diag *diag)
{
    struct program_options built = plain->options;
    built.faults = true;
    enum status status = program_build(plan, &built, &answer->program, diag);
    if (status == STATUS_OK)
        status = search_by_injection(plain, options, answer, diag);
    if (status == STATUS_OK && answer->outcome != OUTCOME_SOME)
        status = search_everything(options, answer, diag);
    if (status != STATUS_OK || answer->outcome != OUTCOME_SOME ||
        answer->witness.count > HOPELESS_STEPS)
        return status;
    if (!options->any_witness)
        status = faults_find_shortest(options, answer, diag);
    return status == STATUS_OK ? faults_always_or_some(options, answer, diag) : status;
}

enum status faults_judge(const struct plan *plan, const struct program *program,
                         const struct faults_options *options, struct faults_answer *out,
                         struct diag *diag)
{
    struct faults_answer answer = {.outcome = OUTCOME_UNDECIDED};
    bool proved = false;
    enum status status = STATUS_OK;
    if (!options->no_structure)
        status = faults_proved_by_structure(program, options->lives, &proved, diag);
    if (proved)
        answer.outcome = OUTCOME_PROVED;
    else if (status == STATUS_OK)
        status = search_for_faults(plan, program, options, &answer, diag);
    if (status == STATUS_OK)
        *out = answer;
    else
        faults_fini(&answer);
    return status;
}

void faults_fini(struct faults_answer *answer)
{
    free(answer->witness.steps);
    program_close(answer->program);
    *answer = (struct faults_answer){0};
}
