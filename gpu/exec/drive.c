/* SPDX-License-Identifier: Apache-2.0 */
/*
 * drive.c - the driver thread of a rank: it does what the policy decides.
 *
 * Under the lock a decision and all it changes are one step: the policy hands instances to the
 * workers' queues, iterations get their context, slots are armed. Waiting for an iteration to be over
 * is done between decisions, on the device's events, without the lock. A steady period may be submitted by
 * the driver itself, as one launch of a graph (gpu/exec/graph.h).
 */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "graph.h"
#include "run.h"
#include "base/units.h"

/*
 * The policy of the program: which of the tasks that are ready begins next.
 *
 * A worker without a chooser takes the oldest instance of its queue as soon as it is idle. With one it waits until that
 * instance is chosen: the oldest ones of all idle workers of the rank are offered, without those whose turn has not come. So
 * a run with a policy is a run of the machine in which workers take later than they could. Every change that may add
 * an offer asks anew (`asks`); the answer comes on the thread of a worker that waits, without the lock, one at a time
 * for a rank.
 */

static bool choose_has_turn(const struct run *run, const struct run_thread *worker)
{
    const struct program *p = run->program;
    const struct instance *first = &worker->queue[worker->queue_first];
    const bool ordered = p->ticket_position[worker->rank * p->tasks + first->task] >= 0;
    return !ordered || program_fires_by_turn(p) || run->ranks[worker->rank].served == first->ticket;
}

static bool is_offered(const struct run *run, const struct run_thread *worker, int rank)
{
    return worker->rank == rank && worker->queue_count > 0 && worker->idle &&
           choose_has_turn(run, worker);
}

/* The older iteration first, of one iteration in the order of the plan. */
static bool choose_comes_before(const struct run_offer *a, const struct run_offer *b)
{
    return a->iteration != b->iteration ? a->iteration < b->iteration : a->task < b->task;
}

/* With the lock held. */
static int list_offers(const struct run *run, int rank, struct run_offer *out)
{
    int count = 0;
    for (int t = 0; t < run->program->thread_count; t++) {
        const struct run_thread *worker = &run->threads[t];
        if (!is_offered(run, worker, rank))
            continue;
        const struct instance *first = &worker->queue[worker->queue_first];
        const struct run_offer offer = {first->task, t, first->iteration};
        int place = count++;
        for (; place > 0 && choose_comes_before(&offer, &out[place - 1]); place--)
            out[place] = out[place - 1];
        out[place] = offer;
    }
    return count;
}

void choose_changed(struct run *run, int rank)
{
    struct rank_choice *choice = &run->ranks[rank].choice;
    if (!run->config.chooser)
        return;
    choice->asks = true;
    for (int t = 0; t < run->program->thread_count; t++)
        if (is_offered(run, &run->threads[t], rank) && run->threads[t].awaits) {
            run_wake(run, run->threads[t].queue);
            return;
        }
}

/* Something else will ask again: a task under way that ends, or the oldest iteration, which is all submitted. */
static bool choose_may_wait(struct run *run, int rank)
{
    const int64_t oldest = policy_oldest(run->policy, rank);
    return run->ranks[rank].choice.running > 0 ||
           run_iteration(run, rank, oldest)->submit_left == 0;
}

/* Without the lock; always false. */
static bool choose_refuse(struct run *run, int rank, int answer, const struct run_choice *choice)
{
    if (answer == RUN_WAITS)
        run_fail(run, STATUS_VIOLATED,
                 "rank %d: the policy chose none of %d ready task%s, and nothing else is under way",
                 rank, choice->count, units_plural((size_t)choice->count));
    else
        run_fail(run, STATUS_VIOLATED, "rank %d: the policy chose number %d of %d ready task%s",
                 rank, answer, choice->count, units_plural((size_t)choice->count));
    return false;
}

/* Ask, and keep the answer. Entered and left with the lock held; false when the run has failed. */
static bool choose_ask(struct run_thread *self)
{
    struct run *run = self->run;
    const struct run_chooser *chooser = run->config.chooser;
    struct rank_choice *state = &run->ranks[self->rank].choice;
    const int64_t oldest = policy_oldest(run->policy, self->rank);
    struct run_choice choice = {.offers = state->offers,
                                .count = list_offers(run, self->rank, state->offers),
                                .running = state->running,
                                .in_flight =
                                    (int)(policy_admitted(run->policy, self->rank) - oldest),
                                .oldest = oldest,
                                .may_wait = choose_may_wait(run, self->rank)};
    assert(!state->asking && state->chosen == 0);
    state->asks = false;
    if (choice.count == 0)
        return true;
    state->asking = true;
    run_unlock(run);
    const int answer = chooser->choose(chooser->arg, self->rank, &choice);
    const bool good = (answer >= 0 && answer < choice.count) ||
                      (answer == RUN_WAITS && choice.may_wait) || run_stopped(run) ||
                      choose_refuse(run, self->rank, answer, &choice);
    pthread_mutex_lock(&run->lock);
    assert(state->asking && state->chosen == 0); /* nobody else has asked meanwhile */
    state->asking = false;
    if (!good || answer == RUN_WAITS)
        return good;
    state->chosen = state->offers[answer].thread + 1;
    run_wake(run, run->threads[state->chosen - 1].queue);
    return true;
}

bool choose_wait(struct run_thread *self)
{
    struct run *run = self->run;
    struct run_rank *rank = &run->ranks[self->rank];
    struct rank_choice *choice = &rank->choice;
    bool goes_on = true;
    if (self->queue_count > 0 && !run_is_on_caller(run))
        choice->asks = true;
    while (goes_on && !run_stopped(run) && choice->chosen != self->index + 1 &&
           (self->queue_count > 0 || !rank->driver_done)) {
        if (choice->asks && !choice->asking && choice->chosen == 0 && self->queue_count > 0)
            goes_on = choose_ask(self);
        else if (run_is_on_caller(run))
            return false;
        else
            run_block(self, self->queue);
    }
    if (!goes_on || run_stopped(run) || choice->chosen != self->index + 1)
        return false;
    assert(self->queue_count > 0 && self->idle && choice->running >= 0);
    choice->chosen = 0;
    choice->running++;
    self->idle = false;
    choose_changed(run, self->rank);
    return true;
}

void choose_submitted(struct run_thread *self)
{
    if (!self->run->config.chooser)
        return;
    assert(!self->idle && self->run->ranks[self->rank].choice.running > 0);
    self->idle = true;
    self->run->ranks[self->rank].choice.running--;
    choose_changed(self->run, self->rank);
}

void drive_arm_slot(struct run *run, int rank, int task, int64_t iteration)
{
    const struct program *p = run->program;
    int instance = (rank * p->tasks + task) * run->slots + (int)(iteration % run->slots);
    atomic_store_explicit(&run->flags[instance], 0, memory_order_release);
    atomic_store_explicit(&run->recorded[instance], false, memory_order_release);
}

static void drive_admit(struct run *run, int rank, int64_t iteration, int64_t now_ns)
{
    const struct program *p = run->program;
    assert(run_iteration(run, rank, iteration)->submit_left == 0); /* its place is free */
    *run_iteration(run, rank, iteration) = (struct run_in_flight){
        .admitted_ns = now_ns, .submit_left = p->tasks, .record_left = p->tasks};
    for (int task = 0; task < p->tasks; task++)
        if (p->plan->pipeline.slot_reset == SLOT_RESET_ADMIT)
            drive_arm_slot(run, rank, task, iteration);
}

/* ---- waiting for an iteration ---------------------------------------------------------------- */

/* How far an iteration must be: submitted; its last task finished; submitted and everything finished. */
enum goal { GOAL_SUBMITTED, GOAL_LAST_TASK, GOAL_DEVICE };

static enum goal retire_goal(const struct run *run)
{
    switch (run->program->plan->pipeline.retire) {
    case RETIRE_SUBMIT: return GOAL_SUBMITTED;
    case RETIRE_LAST_TASK: return GOAL_LAST_TASK;
    case RETIRE_DEVICE: break;
    }
    return GOAL_DEVICE;
}

static bool host_side_done(const struct run_in_flight *state, enum goal goal)
{
    switch (goal) {
    case GOAL_SUBMITTED: return state->submit_left == 0;
    case GOAL_LAST_TASK: return state->last_recorded;
    case GOAL_DEVICE: break;
    }
    return state->submit_left == 0 && state->record_left == 0;
}

/* make_room waits for all of it. */
bool drive_is_ready(const struct run *run, const struct run_in_flight *state)
{
    return host_side_done(state, GOAL_DEVICE) || host_side_done(state, retire_goal(run));
}

/* "; rank 0, stream net: Exchange waits for rank 1": the first streams that have work. */
static void drive_note_streams(const struct run *run, char *text, size_t cap)
{
    enum { MOST = 3 };
    struct diag streams;
    diag_init(&streams);
    device_world_explain(run->world, &streams);
    for (size_t i = 0; i < streams.count && i < MOST; i++) {
        size_t length = strlen(text);
        snprintf(text + length, cap - length, "; %s", streams.messages[i].text);
    }
    diag_fini(&streams);
}

/* Later than its caller can bear: everything stops, and the reasons are the threads and streams that have work. */
static bool late(struct run_thread *self, const char *what)
{
    struct run *run = self->run;
    char causes[sizeof run->failure_text] = "";
    waits_of_others(self, causes, sizeof causes);
    drive_note_streams(run, causes, sizeof causes);
    run_fail(run, STATUS_LIMIT, "%s of rank %d did not finish in time%s", what, self->rank, causes);
    return false;
}

static bool late_iteration(struct run_thread *self, int64_t iteration)
{
    char what[40];
    snprintf(what, sizeof what, "iteration %" PRId64, iteration);
    return late(self, what);
}

static enum drive_wait await_tasks(struct run_thread *self, int64_t iteration, int first, int last,
                                   int64_t deadline_ns)
{
    struct run *run = self->run;
    struct diag diag;
    enum drive_wait wait = DRIVE_READY;
    diag_init(&diag);
    for (int task = last; task >= first && wait == DRIVE_READY;
         task--) { /* the first sleeps longest, the others rarely */
        struct device_event *event = push_done_event(run, self->rank, task, iteration);
        enum status status = pump_event(run, event, deadline_ns, &diag);
        if (status == STATUS_LIMIT)
            wait = DRIVE_HELD_BY_DEVICE;
        else if (!run_check(run, status, &diag))
            wait = DRIVE_STOPPED;
    }
    diag_fini(&diag);
    return wait;
}

/* Until the iteration is as far as the goal says, or the deadline. */
static enum drive_wait await_goal(struct run_thread *self, int64_t iteration, enum goal goal,
                                  int64_t deadline_ns)
{
    struct run *run = self->run;
    struct run_in_flight *state = run_iteration(run, self->rank, iteration);
    bool in_time = true;
    pthread_mutex_lock(&run->lock);
    while (!run_stopped(run) && in_time && !host_side_done(state, goal))
        in_time = run_block_until(self, state, deadline_ns);
    in_time = in_time || host_side_done(state, goal);
    run_unlock(run);
    if (run_stopped(run))
        return DRIVE_STOPPED;
    if (!in_time)
        return DRIVE_HELD_BY_HOST;
    int last = run->program->last_task;
    switch (goal) {
    case GOAL_SUBMITTED: return DRIVE_READY;
    case GOAL_LAST_TASK: return await_tasks(self, iteration, last, last, deadline_ns);
    case GOAL_DEVICE: break;
    }
    return await_tasks(self, iteration, 0, run->program->tasks - 1, deadline_ns);
}

/* The same; false when the run stopped, or has failed because it was late. */
static bool await_iteration(struct run_thread *self, int64_t iteration, enum goal goal,
                            int64_t deadline_ns)
{
    switch (await_goal(self, iteration, goal, deadline_ns)) {
    case DRIVE_READY: return true;
    case DRIVE_HELD_BY_HOST:
    case DRIVE_HELD_BY_DEVICE: return late_iteration(self, iteration);
    case DRIVE_STOPPED: break;
    }
    return false;
}

/* A look, with the lock of the run held or not: a failed stream is told of by the next wait. */
static bool tasks_are_over(struct run_thread *self, int64_t iteration, int first, int last)
{
    struct run *run = self->run;
    struct diag diag;
    bool over = true;
    diag_init(&diag);
    for (int task = last; task >= first && over; task--) {
        bool done = false;
        struct device_event *event = push_done_event(run, self->rank, task, iteration);
        over = device_event_query(event, &done, &diag) == STATUS_OK && done;
    }
    diag_fini(&diag);
    return over;
}

/* Is the iteration, which was as far as the goal says, still so? Not where its slots have been used again since. With the lock
   held: the look and what the driver does then are one step. */
static bool is_still_over(struct run_thread *self, int64_t iteration, enum goal goal)
{
    const struct program *p = self->run->program;
    if (p->slots_safe)
        return true;
    if (!host_side_done(run_iteration(self->run, self->rank, iteration), goal))
        return false;
    return goal == GOAL_SUBMITTED ||
           tasks_are_over(self, iteration, goal == GOAL_LAST_TASK ? p->last_task : 0,
                          goal == GOAL_LAST_TASK ? p->last_task : p->tasks - 1);
}

/* ---- the two steps of a driver --------------------------------------------------------------- */

/* The iteration whose memory this one takes: it must be over, which the launch queues have seen to but for graphs, whose
   pushes wait for no queue. -1: none. Where retiring waits for the device, that one was retired, and its events may have
   been recorded again since. */
static int64_t predecessor(const struct run *run, int64_t admitted)
{
    int most = run->program->most_in_flight;
    return admitted < most || retire_goal(run) == GOAL_DEVICE ? -1 : admitted - most;
}

/* `*room_for` is the last iteration for which there is known to be room. False when the run stopped. */
static bool drive_make_room(struct run_thread *self, int64_t admitted, int64_t *room_for)
{
    int64_t before = predecessor(self->run, admitted);
    *room_for = admitted;
    return before < 0 || await_iteration(self, before, GOAL_DEVICE, DEVICE_FOREVER);
}

/* True if the next period can be handed out now. One that is to be a graph waits for the workers first; then all has to
   be looked at again. */
static bool drive_own_is_ready(struct run_thread *self)
{
    struct run *run = self->run;
    return !graph_takes(run, self->rank, policy_admitted(run->policy, self->rank)) ||
           graph_is_quiet(self);
}

/* All slots are reset before the clock is read: an await that found its flag set looked before. */
static bool enqueue(struct run_thread *self)
{
    struct run *run = self->run;
    int64_t before = policy_admitted(run->policy, self->rank), now_ns = run_step_ns(self);
    bool as_graph = graph_takes(run, self->rank, before);
    graph_expect(run, self->rank, as_graph);
    policy_enqueue(run->policy, self->rank);
    for (int64_t i = before; i < policy_admitted(run->policy, self->rank); i++)
        drive_admit(run, self->rank, i, now_ns);
    bool noted = run_note(self, LOG_ENQUEUE, -1, policy_admitted(run->policy, self->rank), now_ns,
                          run_step_ns(self));
    run_end_step(self);
    return noted && (!as_graph || graph_submit(self, before + run->program->min_stage));
}

/* HELD_BY_DEVICE: it has to be waited for again. */
static enum drive_wait drive_own_retire(struct run_thread *self, int64_t iteration)
{
    struct run *run = self->run;
    const int64_t begin_ns = run_step_ns(self);
    assert(policy_oldest(run->policy, self->rank) == iteration);
    if (!is_still_over(self, iteration, retire_goal(run)))
        return run_stopped(run) ? DRIVE_STOPPED : DRIVE_HELD_BY_DEVICE;
    const int64_t now_ns = run_step_ns(self);
    policy_retire(run->policy, self->rank);
    choose_changed(run, self->rank);
    run_wake_dependents(run, self->rank); /* one on a retired iteration may be skipped now */
    struct log_entry *entry = run_log(self, LOG_RETIRE, -1, iteration, begin_ns, now_ns);
    if (entry) {
        entry->stamp.start_ns = run_iteration(run, self->rank, iteration)->admitted_ns;
        log_commit(self->log);
    }
    run_end_step(self);
    return entry || !self->log ? DRIVE_READY : DRIVE_STOPPED;
}

/* ---- start to end ---------------------------------------------------------------------------- */

/* One decision, entered and left with the lock held; false when the driver is through or the run
   stopped. */
static bool drive_decide(struct run_thread *self, int64_t *room_for)
{
    struct run *run = self->run;
    int64_t iteration = 0;
    bool goes_on = true;
    switch (policy_next(run->policy, self->rank, &iteration)) {
    case POLICY_ENQUEUE: {
        int64_t admitted = policy_admitted(run->policy, self->rank);
        if (run->draining) {
            run_block(self, &run->draining);
            return true;
        }
        if (*room_for == admitted)
            return !drive_own_is_ready(self) || enqueue(self);
        run_unlock(run);
        goes_on = drive_make_room(self, admitted, room_for);
        break;
    }
    case POLICY_RETIRE:
        run_unlock(run);
        atomic_store(&self->at, iteration);
        goes_on = await_iteration(self, iteration, retire_goal(run), DEVICE_FOREVER);
        if (goes_on)
            atomic_store(&self->at, -1);
        pthread_mutex_lock(&run->lock);
        return goes_on && !run_stopped(run) && drive_own_retire(self, iteration) != DRIVE_STOPPED;
    case POLICY_FETCH: /* the number of iterations is always known here */
    case POLICY_END: return false;
    }
    pthread_mutex_lock(&run->lock);
    return goes_on;
}

/* Its turn, in a run that is forced into an order; entered and left with the lock held. Until the step
   has been taken this returns at once. */
static void drive_await_turn(struct run_thread *self)
{
    if (!run_is_forced(self->run))
        return;
    run_unlock(self->run);
    run_begin_step(self);
    pthread_mutex_lock(&self->run->lock);
}

void drive_run(struct run_thread *self)
{
    struct run *run = self->run;
    struct run_rank *rank = &run->ranks[self->rank];
    int64_t room_for = -1;
    pthread_mutex_lock(&run->lock);
    drive_await_turn(self);
    while (!run_stopped(run) && drive_decide(self, &room_for)) {
        if (run->journal) {
            run_unlock(run);
            journal_throttle(run->journal);
            pthread_mutex_lock(&run->lock);
        }
        drive_await_turn(self);
    }
    assert(!rank->driver_done);
    rank->driver_done = true;
    run_wake_rank(run, self->rank);
    run_unlock(run);
}

/* ---- driven by the caller -------------------------------------------------------------------- */

struct drive_step drive_next(struct run_thread *self)
{
    struct drive_step step = {.iteration = -1};
    assert(run_is_driven(self->run));
    pthread_mutex_lock(&self->run->lock);
    step.next = policy_next(self->run->policy, self->rank, &step.iteration);
    step.admitted = policy_admitted(self->run->policy, self->rank);
    run_unlock(self->run);
    return step;
}

bool drive_is_over(struct run_thread *self, int64_t iteration)
{
    struct run *run = self->run;
    if (retire_goal(run) == GOAL_DEVICE)
        return true;
    pthread_mutex_lock(&run->lock);
    bool over = host_side_done(run_iteration(run, self->rank, iteration), GOAL_DEVICE);
    run_unlock(run);
    return over && tasks_are_over(self, iteration, 0, run->program->tasks - 1);
}

/* Until all instances that were handed out are submitted; false: some are not. */
static bool drive_await_workers(struct run_thread *self, int64_t deadline_ns)
{
    struct run *run = self->run;
    const int64_t *handed_out = &run->ranks[self->rank].handed_out;
    bool in_time = true;
    pthread_mutex_lock(&run->lock);
    while (!run_stopped(run) && in_time && *handed_out > 0)
        in_time = run_block_until(self, handed_out, deadline_ns);
    assert(*handed_out >= 0);
    bool none = *handed_out == 0;
    run_unlock(run);
    return none;
}

/* A period that is to be a graph waits for the workers. */
static enum drive_wait await_quiet(struct run_thread *self, int64_t admitted, int64_t deadline_ns)
{
    struct run *run = self->run;
    if (!run->ranks[self->rank].graphs)
        return DRIVE_READY;
    pthread_mutex_lock(&run->lock);
    bool waits = graph_takes(run, self->rank, admitted);
    run_unlock(run);
    bool quiet = !waits || drive_await_workers(self, deadline_ns);
    return run_stopped(run) ? DRIVE_STOPPED : quiet ? DRIVE_READY : DRIVE_HELD_BY_HOST;
}

static enum drive_wait drive_await_room(struct run_thread *self, int64_t admitted,
                                        int64_t deadline_ns)
{
    int64_t before = predecessor(self->run, admitted);
    enum drive_wait wait =
        before < 0 ? DRIVE_READY : await_goal(self, before, GOAL_DEVICE, deadline_ns);
    return wait == DRIVE_READY ? await_quiet(self, admitted, deadline_ns) : wait;
}

enum drive_wait drive_await(struct run_thread *self, const struct drive_step *step,
                            int64_t deadline_ns)
{
    if (run_stopped(self->run))
        return DRIVE_STOPPED;
    switch (step->next) {
    case POLICY_ENQUEUE: return drive_await_room(self, step->admitted, deadline_ns);
    case POLICY_RETIRE:
        return await_goal(self, step->iteration, retire_goal(self->run), deadline_ns);
    case POLICY_FETCH:
    case POLICY_END: break;
    }
    return DRIVE_READY;
}

void drive_late(struct run_thread *self, const struct drive_step *step)
{
    int64_t iteration =
        step->next == POLICY_RETIRE ? step->iteration : predecessor(self->run, step->admitted);
    if (iteration >= 0)
        (void)late_iteration(self, iteration);
    else
        (void)late(self, "the CPU part of a task");
}

/* Under `retire: last-task` workers may still be at other tasks of iterations that are retired. */
static bool await_submitted(struct run_thread *self, int64_t deadline_ns)
{
    struct run *run = self->run;
    if (run_is_on_caller(run))
        return pump_through(self, deadline_ns);
    return (retire_goal(run) != GOAL_LAST_TASK || drive_await_workers(self, deadline_ns)) &&
           !run_stopped(run);
}

bool drive_sync(struct run_thread *self, int64_t deadline_ns)
{
    struct run *run = self->run;
    struct diag diag;
    if (!await_submitted(self, deadline_ns))
        return run_stopped(run) ? false : late(self, "the CPU part of a task");
    diag_init(&diag);
    enum status status =
        device_sync(run->ranks[self->rank].device, run_real_deadline(run, deadline_ns), &diag);
    bool done =
        status == STATUS_LIMIT ? late(self, "the device work") : run_check(run, status, &diag);
    diag_fini(&diag);
    return done;
}

bool drive_enqueue(struct run_thread *self)
{
    struct run *run = self->run;
    pthread_mutex_lock(&run->lock);
    while (!run_stopped(run) && !drive_own_is_ready(self))
        continue;
    bool done = !run_stopped(run) && enqueue(self);
    run_unlock(run);
    (void)pump_rank(run, self->rank);
    return done && !run_stopped(run);
}

enum drive_wait drive_retire(struct run_thread *self, int64_t iteration)
{
    struct run *run = self->run;
    pthread_mutex_lock(&run->lock);
    enum drive_wait wait = run_stopped(run) ? DRIVE_STOPPED : drive_own_retire(self, iteration);
    run_unlock(run);
    return wait;
}

bool drive_end_data(struct run_thread *self)
{
    struct run *run = self->run;
    pthread_mutex_lock(&run->lock);
    int64_t end = policy_admitted(run->policy, self->rank);
    run->ranks[self->rank].end = end;
    policy_end_data(run->policy, self->rank, end);
    const int64_t now_ns = run_now(run);
    const bool noted = run_note(self, LOG_END, -1, end, now_ns, now_ns);
    run_unlock(run);
    return noted;
}

void drive_leave(struct run_thread *self)
{
    struct run *run = self->run;
    pthread_mutex_lock(&run->lock);
    run->ranks[self->rank].driver_done = true;
    run_wake_rank(run, self->rank);
    run_unlock(run);
}

/* ---- an early end ---------------------------------------------------------------------------- */

/* Put this process's admissions on the board; returns the most of any process, -1: some are not known. */
static int64_t agree_on_end(struct run *run, int64_t admitted)
{
    struct board *board = rendezvous_board(run->config.rendezvous);
    int size = rendezvous_size(run->config.rendezvous);
    int64_t most = 0;
    atomic_store(&board->members[rendezvous_rank(run->config.rendezvous)].wanted, admitted + 1);
    for (int rank = 0; rank < size; rank++) {
        int64_t wanted = atomic_load(&board->members[rank].wanted);
        if (wanted == 0)
            return -1;
        most = wanted - 1 > most ? wanted - 1 : most;
    }
    return most;
}

/* Without the lock. Ranks that have admitted less catch up: their peers may be in collectives that need
   them. */
bool drive_drain(struct run *run)
{
    int64_t end = 0;
    pthread_mutex_lock(&run->lock);
    run->draining = true;
    for (int rank = run_first_rank(run); rank < run_last_rank(run); rank++)
        if (policy_admitted(run->policy, rank) > end)
            end = policy_admitted(run->policy, rank);
    if (run->config.rendezvous)
        end = agree_on_end(run, end);
    if (end >= 0) {
        /* End after this iteration. With the lock held. */
        for (int rank = 0; rank < run->program->ranks; rank++)
            if (end < run->ranks[rank].end) {
                run->ranks[rank].end = end;
                policy_end_data(run->policy, rank, end);
            }
        run->draining = false;
        for (int rank = run_first_rank(run); rank < run_last_rank(run); rank++)
            run_wake_rank(run, rank);
    }
    run_unlock(run);
    return end >= 0;
}

void drive_done(struct run *run)
{
    if (!run->config.rendezvous)
        return;
    struct board *board = rendezvous_board(run->config.rendezvous);
    atomic_store(&board->members[rendezvous_rank(run->config.rendezvous)].beat_ns, 0);
    if (run->policy)
        (void)agree_on_end(run, policy_admitted(run->policy, run_first_rank(run)));
}
