/* SPDX-License-Identifier: Apache-2.0 */
/*
 * turns.c - the calling thread takes the drivers' steps, for the ranks of this process in turns; see engine.h.
 *
 *     progress   retire:   rank 0 | rank 1 | rank 2       each waits until its oldest iteration is over
 *                advance:  rank 0 | rank 1 | rank 2       each hands out what there is room for
 *
 * The proof is of ranks that each go on by themselves. Where ranks are alike, turns are as good: a task that one hands out
 * in a period needs of the others only what they hand out in the same period or before. Where ranks have tasks of their
 * own, or send messages, a rank may have to be some periods ahead of another one before that one's iteration can be over.
 * So a rank that has waited for a while yields: every other one here takes a step, if it can, beyond its turn, and a longer
 * while begins. What is retired too early is told the program at once (`retired`), its result when its turn comes.
 *
 *     rank 0   retire 0, advance | - - - wait - - - | retire 1 ...
 *     rank 1             ahead: retire 0, advance, retire 1, advance
 *
 * Batches are asked for by iteration and then by rank, also for ranks that come to the iteration later: so all ranks have
 * the same number, and a rank that is far ahead when the data ends is followed by the others. An iteration that one rank has
 * no batch for begins on none, and the others give theirs back. Ranks that are processes say how many batches they have
 * (group.h); one that waits asks its source on when another one has said more.
 *
 *     batches of a rank     begun ... asked     begun: their iteration is admitted
 */
#include "engine.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/sort.h"
#include "gpu/exec/graph.h"
#include "plan/keywords.h"
#include "swpipe_impl.h"

#define FIRST_WHILE_NS  INT64_C(50000)
#define ANSWER_WHILE_NS INT64_C(1000000) /* at most: other processes wait for the answer */
#define MOST_WHILE_NS   INT64_C(1000000000)

/* A rank that is driven. */
struct feed {
    bool ended;      /* no batch after those asked for */
    bool told_end;   /* its driver knows */
    int64_t asked;   /* batches the source has given */
    int64_t begun;   /* iterations that have theirs */
    int64_t retired; /* iterations */
    int64_t cleared; /* iterations whose values and batches have been freed */
    void **batches;  /* [ahead], by iteration */
    void **results;  /* [ahead], by iteration */
};

/* ---- open and close -------------------------------------------------------------------------- */

static bool sends_messages(const struct plan *plan)
{
    for (size_t t = 0; t < plan->pipeline.task_count; t++)
        if (plan->pipeline.tasks[t].work.kind == WORK_SEND ||
            plan->pipeline.tasks[t].work.kind == WORK_RECV)
            return true;
    return false;
}

/* True if one rank may need what another one hands out in a later period. */
static bool ranks_differ(const struct engine *engine)
{
    const struct plan *plan = engine->program->plan;
    bool others = engine->pipe->local_ranks > 1 || engine->pipe->group;
    return others && (plan->pipeline.override_count > 0 || sends_messages(plan));
}

static struct feed *feed_of(const struct engine *engine, int rank)
{
    assert(rank >= engine_first_rank(engine) && rank < engine_end_rank(engine));
    struct feed *feed = &engine->feeds[rank - engine->pipe->first_rank];
    assert(feed->begun <= feed->asked && feed->asked - feed->begun <= (int64_t)engine->ahead);
    assert(!feed->told_end || (feed->ended && feed->asked == feed->begun));
    return feed;
}

/* One rank waits for what another one hands out less than a window later, which may wait for a third one so, and so on.
   In a serial run all have handed out the same iteration: a rank that yielded would ask for the next, which has no source. */
enum status turns_open(struct engine *engine, bool serial, struct diag *diag)
{
    size_t window = (size_t)engine->program->window, ranks = (size_t)engine->pipe->local_ranks;
    assert(!engine->feeds && window > 0 && ranks > 0);
    engine->yields = !serial && ranks_differ(engine);
    engine->ahead = window * (engine->yields ? (size_t)engine->pipe->ranks + 1 : 1);
    engine->feeds = calloc(ranks, sizeof *engine->feeds);
    for (size_t i = 0; engine->feeds && i < ranks; i++) {
        engine->feeds[i].batches = calloc(engine->ahead, sizeof(void *));
        engine->feeds[i].results = calloc(engine->ahead, sizeof(void *));
        if (!engine->feeds[i].batches || !engine->feeds[i].results)
            return diag_no_memory(diag);
    }
    return engine->feeds ? STATUS_OK : diag_no_memory(diag);
}

static void **turns_batch_of(const struct engine *engine, int rank, int64_t iteration)
{
    return &feed_of(engine, rank)->batches[(size_t)iteration % engine->ahead];
}

static void give_back_rest(const struct engine *engine, int rank)
{
    struct feed *feed = feed_of(engine, rank);
    while (feed->asked > feed->begun) {
        /* A batch that no iteration begins with. */
        void *batch = *turns_batch_of(engine, rank, --feed->asked);
        const struct swpipe_hooks *hooks = &engine->pipe->hooks;
        if (hooks->release)
            hooks->release(hooks->arg, rank, batch);
    }
}

void turns_close(struct engine *engine)
{
    for (int rank = engine_first_rank(engine); engine->feeds && rank < engine_end_rank(engine);
         rank++) {
        struct feed *feed = feed_of(engine, rank);
        give_back_rest(engine, rank);
        free(feed->batches);
        free(feed->results);
    }
    free(engine->feeds);
}

/* ---- failures -------------------------------------------------------------------------------- */

/* Why the run stopped. */
static enum status turns_failure(struct engine *engine, struct diag *diag)
{
    struct run *run = &engine->run;
    pthread_mutex_lock(&run->lock);
    enum status status = run->failure ? run->failure : STATUS_SYSTEM;
    diag_error(diag, status, "%s", run->failure ? run->failure_text : "the pipeline was stopped");
    run_unlock(run);
    return status;
}

bool engine_agree(struct engine *engine, int64_t number, bool ended, bool *all, struct diag *diag)
{
    group_say(engine->pipe->group, number + !ended, ended);
    if (group_hear(engine->pipe->group, &engine->run, number, all))
        return true;
    (void)turns_failure(engine, diag);
    return false;
}

/* ---- batches --------------------------------------------------------------------------------- */

int engine_next(const struct swpipe_source *source, int rank, void **batch)
{
    int answer = source->next(source->arg, rank, batch);
    return answer == 0 || answer == 1 ? answer : -1;
}

/* One more batch of a rank. False: the source failed. */
static bool ask_source(struct engine *engine, int rank, const struct swpipe_source *source)
{
    struct feed *feed = feed_of(engine, rank);
    void *batch = NULL;
    assert(feed->asked >= feed->begun && feed->asked - feed->begun < (int64_t)engine->ahead);
    int more = source ? engine_next(source, rank, &batch) : 0;
    if (more < 0) {
        run_fail(&engine->run, STATUS_VIOLATED, "the source failed for iteration %lld of rank %d",
                 (long long)feed->asked, rank);
        return false;
    }
    if (more)
        *turns_batch_of(engine, rank, feed->asked++) = batch;
    else
        feed->ended = true;
    if (engine->pipe->group)
        group_say(engine->pipe->group, feed->asked, feed->ended);
    return true;
}

/* True if the data of a rank here has ended. */
static bool has_ended(const struct engine *engine)
{
    bool ended = false;
    for (int rank = engine_first_rank(engine); rank < engine_end_rank(engine); rank++)
        ended = ended || feed_of(engine, rank)->ended;
    return ended;
}

/* True if all ranks here have a batch for the iteration. */
static bool have_batches(const struct engine *engine, int64_t iteration)
{
    bool have = true;
    for (int rank = engine_first_rank(engine); rank < engine_end_rank(engine); rank++)
        have = have && feed_of(engine, rank)->asked > iteration;
    return have;
}

/* Ask for batches of all ranks here for iterations up to this one, until the data of one ends. */
static bool ask_up_to(struct engine *engine, int64_t iteration, const struct swpipe_source *source)
{
    int first = engine_first_rank(engine);
    for (int64_t i = feed_of(engine, first)->begun; i <= iteration; i++)
        for (int rank = first; rank < engine_end_rank(engine) && !has_ended(engine); rank++)
            if (feed_of(engine, rank)->asked == i && !ask_source(engine, rank, source))
                return false;
    return true;
}

/* Free what belongs to iterations that the device has passed. */
static void clear_passed(struct engine *engine, int rank)
{
    struct feed *feed = feed_of(engine, rank);
    while (feed->cleared < feed->retired &&
           drive_is_over(engine_driver(engine, rank), feed->cleared))
        iteration_clear(engine_iteration(engine, rank, feed->cleared++));
}

static struct iteration *begin_context(struct engine *engine, int rank, int64_t admitted,
                                       int64_t number, void *batch)
{
    struct iteration *iteration = engine_iteration(engine, rank, admitted);
    assert(feed_of(engine, rank)->cleared > admitted - engine->places);
    iteration->number = number;
    iteration->batch = batch;
    return iteration;
}

/* Begin the next iteration's context, if all ranks have data for it. False: the run stopped. */
static bool fetch_batch(struct engine *engine, int rank, int64_t admitted,
                        const struct swpipe_source *source)
{
    struct feed *feed = feed_of(engine, rank);
    if (feed->told_end || feed->begun > admitted)
        return true;
    clear_passed(engine, rank); /* the one before in its place is over: drive_await */
    if (!ask_up_to(engine, admitted, source))
        return false;
    bool more = have_batches(engine, admitted);
    if (engine->pipe->group && !group_hear(engine->pipe->group, &engine->run, admitted, &more))
        return false;
    if (!more) {
        assert(!feed->told_end);
        give_back_rest(engine, rank);
        feed->ended = feed->told_end = true;
        if (!drive_end_data(engine_driver(engine, rank)))
            return false;
        if (engine->pipe->group)
            group_end_run(engine->pipe->group, feed->begun + (int64_t)engine->ahead);
        return true;
    }
    struct iteration *iteration =
        begin_context(engine, rank, admitted, admitted, *turns_batch_of(engine, rank, admitted));
    assert(feed->begun == admitted && feed->asked > admitted);
    feed->begun = admitted + 1;
    if (engine->pipe->hooks.release)
        iteration->owner = &engine->pipe->hooks;
    return true;
}

/* ---- one step of one rank -------------------------------------------------------------------- */

/* Numbers for which any thread may ask are left in the pipeline. */
static void tell_progress(const struct engine *engine)
{
    struct swpipe *pipe = engine->pipe;
    const struct feed *feed = feed_of(engine, engine_first_rank(engine));
    if (engine != &pipe->pipelined)
        return;
    atomic_store(&pipe->in_flight, (int)(feed->begun - feed->retired));
    if (pipe->graph)
        atomic_store(&pipe->graph_launches, pipe->past_launches + graph_launches(&engine->run));
}

/* Once: a result is handed out that the device may still be at. */
static void tell_early_result(struct swpipe *pipe, enum retire_rule rule)
{
    char text[512];
    if (pipe->told_early || !pipe->message || rule == RETIRE_DEVICE)
        return;
    pipe->told_early = true;
    snprintf(text, sizeof text,
             "%s: a result (swpipe_set_result) is handed out when its iteration is retired, which "
             "under 'retire: %s' is not when its device work is done: what the device computes may "
             "be missing in it; 'retire: device' in the plan waits for that\n",
             pipe->plan.file, keywords_retire[rule]);
    pipe->message(pipe->message_arg, text);
}

/* The iteration was over; if it is no longer, nothing happens. False: the run stopped. */
static bool retire_rank(struct engine *engine, int rank, int64_t oldest)
{
    struct feed *feed = feed_of(engine, rank);
    struct iteration *iteration = engine_iteration(engine, rank, oldest);
    const enum drive_wait wait = drive_retire(engine_driver(engine, rank), oldest);
    if (wait != DRIVE_READY)
        return wait != DRIVE_STOPPED;
    assert(feed->retired - engine->retired < (int64_t)engine->ahead);
    feed->results[(size_t)feed->retired++ % engine->ahead] = iteration->result;
    tell_progress(engine);
    if (iteration->result)
        tell_early_result(engine->pipe, engine->program->plan->pipeline.retire);
    const struct swpipe_hooks *hooks = &engine->pipe->hooks;
    const struct swpipe_retired retired = {iteration->number, iteration->rank, iteration->batch,
                                           iteration->result};
    if (hooks->retired)
        hooks->retired(hooks->arg, &retired);
    clear_passed(engine, rank);
    if (engine->recording.journal)
        journal_throttle(engine->recording.journal);
    return true;
}

/* Where the data has just ended there may be nothing to hand out. */
static bool fetch_and_enqueue(struct engine *engine, int rank, int64_t admitted,
                              const struct swpipe_source *source)
{
    struct run_thread *driver = engine_driver(engine, rank);
    const bool *told_end = &feed_of(engine, rank)->told_end, knew = *told_end;
    if (!fetch_batch(engine, rank, admitted, source))
        return false;
    if (*told_end != knew && drive_next(driver).next != POLICY_ENQUEUE)
        return true;
    bool enqueued = drive_enqueue(driver);
    tell_progress(engine);
    return enqueued;
}

/* The step that drive_await has said can be taken. False: the run stopped. */
static bool turns_take_step(struct engine *engine, int rank, const struct drive_step *step,
                            const struct swpipe_source *source)
{
    switch (step->next) {
    case POLICY_ENQUEUE: return fetch_and_enqueue(engine, rank, step->admitted, source);
    case POLICY_RETIRE: return retire_rank(engine, rank, step->iteration);
    case POLICY_FETCH: /* the number of iterations is known: the most there can be */
    case POLICY_END: break;
    }
    return true;
}

/* ---- beyond its turn ------------------------------------------------------------------------- */

/* Memory of batches and results bounds how far a rank may be from the others. */
static bool turns_has_place(const struct engine *engine, int rank)
{
    const struct feed *feed = feed_of(engine, rank);
    int64_t least = INT64_MAX, ahead = (int64_t)engine->ahead;
    for (int other = engine_first_rank(engine); other < engine_end_rank(engine); other++)
        least = min_i64(least, feed_of(engine, other)->begun);
    return feed->begun - least < ahead - 1 && feed->retired - engine->retired < ahead - 1;
}

/* How the others have gone on while a rank yields. */
enum others { OTHERS_STEPPED, OTHERS_WAIT, OTHERS_ARE_HELD, OTHERS_STOPPED };

/* HELD: a rank that cannot go on before somebody hands out something. */
static enum others step_ahead(struct engine *engine, int rank, const struct swpipe_source *source)
{
    struct run_thread *driver = engine_driver(engine, rank);
    const struct drive_step step = drive_next(driver);
    if (step.next == POLICY_END || !turns_has_place(engine, rank))
        return OTHERS_ARE_HELD;
    switch (drive_await(driver, &step, run_idle_now(&engine->run))) {
    case DRIVE_READY:
        return turns_take_step(engine, rank, &step, source) ? OTHERS_STEPPED : OTHERS_STOPPED;
    case DRIVE_HELD_BY_HOST: return OTHERS_ARE_HELD;
    case DRIVE_HELD_BY_DEVICE: return OTHERS_WAIT;
    case DRIVE_STOPPED: break;
    }
    return OTHERS_STOPPED;
}

static enum others step_others(struct engine *engine, int rank, const struct swpipe_source *source)
{
    enum others all = OTHERS_ARE_HELD;
    for (int other = engine_first_rank(engine); other < engine_end_rank(engine); other++) {
        enum others one = other == rank ? OTHERS_ARE_HELD : step_ahead(engine, other, source);
        if (one == OTHERS_STOPPED)
            return one;
        all = one < all ? one : all;
    }
    return all;
}

/* Say to the ranks of other processes that there are batches for the iterations that they have come to. */
static enum others answer_group(struct engine *engine, int rank, const struct swpipe_source *source)
{
    struct feed *feed = feed_of(engine, rank);
    int64_t most = group_most(engine->pipe->group);
    if (feed->ended || feed->asked >= most ||
        feed->asked - feed->begun >= (int64_t)engine->ahead - 1)
        return OTHERS_ARE_HELD;
    return ask_source(engine, rank, source) ? OTHERS_STEPPED : OTHERS_STOPPED;
}

/* Wait until the rank's next step can be taken, as long as it takes, and let the others go on meanwhile. */
static enum drive_wait yield_turn(struct engine *engine, int rank, const struct drive_step *step,
                                  const struct swpipe_source *source, int64_t deadline_ns)
{
    struct run *run = &engine->run;
    struct run_thread *driver = engine_driver(engine, rank);
    bool group = engine->pipe->group;
    int64_t while_ns = FIRST_WHILE_NS;
    for (;;) {
        int64_t until_ns = min_i64(deadline_ns, engine_deadline(engine, while_ns));
        enum drive_wait wait = drive_await(driver, step, until_ns);
        if (wait == DRIVE_READY || wait == DRIVE_STOPPED || run_idle_now(run) >= deadline_ns)
            return wait;
        enum others others =
            group ? answer_group(engine, rank, source) : step_others(engine, rank, source);
        bool held = wait == DRIVE_HELD_BY_HOST && pump_is_held(run);
        if (others == OTHERS_STOPPED)
            return DRIVE_STOPPED;
        if (others == OTHERS_ARE_HELD && held)
            return wait;
        if (others == OTHERS_WAIT && held)
            nanosleep(&(struct timespec){.tv_nsec = FIRST_WHILE_NS}, NULL);
        if (group)
            while_ns =
                others == OTHERS_STEPPED ? FIRST_WHILE_NS : min_i64(2 * while_ns, ANSWER_WHILE_NS);
        else
            while_ns = min_i64(2 * while_ns, MOST_WHILE_NS);
    }
}

/* Without others that could help, it just waits. */
static enum drive_wait await_step(struct engine *engine, int rank, const struct drive_step *step,
                                  const struct swpipe_source *source, int64_t deadline_ns)
{
    enum drive_wait wait = DRIVE_HELD_BY_HOST;
    if (engine->yields) {
        for (int each = engine_first_rank(engine); each < engine_end_rank(engine); each++)
            engine_driver(engine, each)->yields = true;
        wait = yield_turn(engine, rank, step, source, deadline_ns);
        for (int each = engine_first_rank(engine); each < engine_end_rank(engine); each++)
            engine_driver(engine, each)->yields = false;
        if (wait == DRIVE_READY || wait == DRIVE_STOPPED)
            return wait;
    }
    return drive_await(engine_driver(engine, rank), step, deadline_ns);
}

/* ---- turns ----------------------------------------------------------------------------------- */

enum turns_phase { RETIRE, ADVANCE };

/* True if the rank, whose next step is `step`, has done its part of this phase. */
static bool turns_is_through(const struct engine *engine, int rank, enum turns_phase phase,
                             const struct drive_step *step)
{
    return step->next == POLICY_END ||
           (phase == RETIRE ? feed_of(engine, rank)->retired > engine->retired
                            : step->next == POLICY_RETIRE);
}

static enum status turns_take_turn(struct engine *engine, int rank, enum turns_phase phase,
                                   const struct swpipe_source *source, int64_t limit_ns,
                                   struct diag *diag)
{
    struct run_thread *driver = engine_driver(engine, rank);
    struct drive_step step;
    while (step = drive_next(driver), !turns_is_through(engine, rank, phase, &step)) {
        enum drive_wait wait =
            await_step(engine, rank, &step, source, engine_deadline(engine, limit_ns));
        if (wait != DRIVE_READY && wait != DRIVE_STOPPED)
            drive_late(driver, &step);
        if (wait != DRIVE_READY || !turns_take_step(engine, rank, &step, source))
            return turns_failure(engine, diag);
    }
    return STATUS_OK;
}

enum status engine_advance(struct engine *engine, const struct swpipe_source *source,
                           int64_t limit_ns, struct diag *diag)
{
    enum status status = STATUS_OK;
    for (int rank = engine_first_rank(engine); rank < engine_end_rank(engine) && !status; rank++) {
        status = turns_take_turn(engine, rank, ADVANCE, source, limit_ns, diag);
        (void)pump_rank(&engine->run, rank); /* what a retirement made possible, without a period */
        if (!status && run_stopped(&engine->run))
            status = turns_failure(engine, diag);
    }
    return status;
}

enum status engine_retire(struct engine *engine, const struct swpipe_source *source,
                          int64_t limit_ns, int64_t *iteration, struct diag *diag)
{
    enum status status = STATUS_OK;
    bool any = false;
    for (int rank = engine_first_rank(engine); rank < engine_end_rank(engine) && !status; rank++)
        status = turns_take_turn(engine, rank, RETIRE, source, limit_ns, diag);
    for (int rank = engine_first_rank(engine); rank < engine_end_rank(engine) && !status; rank++) {
        const struct feed *feed = feed_of(engine, rank);
        if (feed->retired <= engine->retired)
            continue;
        atomic_store(&engine->pipe->results[rank],
                     feed->results[(size_t)engine->retired % engine->ahead]);
        any = true;
    }
    *iteration = any ? engine->retired : -1;
    engine->retired += any;
    return status;
}

/* ---- serial ---------------------------------------------------------------------------------- */

enum status engine_single(struct engine *engine, void *const *batches, int64_t number,
                          int64_t limit_ns, struct diag *diag)
{
    int64_t iteration;
    for (int rank = engine_first_rank(engine); rank < engine_end_rank(engine); rank++) {
        struct run_thread *driver = engine_driver(engine, rank);
        const struct drive_step step = drive_next(driver);
        enum drive_wait wait = drive_await(driver, &step, engine_deadline(engine, limit_ns));
        if (wait != DRIVE_READY && wait != DRIVE_STOPPED)
            drive_late(driver, &step);
        if (wait != DRIVE_READY)
            return turns_failure(engine, diag);
        clear_passed(engine, rank);
        (void)begin_context(engine, rank, step.admitted, number,
                            batches ? batches[rank - engine_first_rank(engine)] : NULL);
        if (!drive_enqueue(driver))
            return turns_failure(engine, diag);
    }
    return engine_retire(engine, NULL, limit_ns, &iteration, diag);
}

enum status engine_sync(struct engine *engine, int64_t limit_ns, struct diag *diag)
{
    int64_t until_ns = engine_deadline(engine, limit_ns);
    for (int rank = engine_first_rank(engine); rank < engine_end_rank(engine); rank++)
        if (!drive_sync(engine_driver(engine, rank), until_ns))
            return turns_failure(engine, diag);
    return STATUS_OK;
}
