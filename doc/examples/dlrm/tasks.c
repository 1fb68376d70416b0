/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tasks.c - the tasks: each pushes its work to its stream and returns.
 *
 * The plan says on which stream and thread, in which order, and what waits for what. So nothing here waits, but for
 * what the host has to know before it can push more. A task that communicates pushes nothing else: in the plan it is
 * one work on its communicator, and the next one begins when it has ended.
 */
#include "app.h"

#include <stdlib.h>

/* ---- a step as device work ------------------------------------------------------------------- */

/* On the host device a step runs when its stream comes to it, so it is kept until then. */
struct later {
    model_step *step;
    struct work *work;
};

static void run_later(void *arg)
{
    const struct later *later = arg;
    later->step(later->work, NULL); /* it cannot fail on the host */
}

/* On CUDA the step itself pushes to the stream. */
static int push(struct swpipe_context *context, struct later *later)
{
    if (!device_is_cuda())
        return swpipe_launch(context, run_later, later);
    if (later->step(later->work, swpipe_stream(context)) == 0)
        return 0;
    return swpipe_fail(context, "%s", device_error());
}

/* The place of each step in an iteration's list. */
enum { LOAD, FETCH_LENGTHS, FETCH_IDS, PREFETCH, LOOK_UP, FORWARD, BACKWARD, UPDATE, STEPS };

/* The data that an iteration hands from task to task. */
struct iteration {
    struct work *work;
    struct later steps[STEPS];
    float *loss; /* the place of its loss; NULL: another rank of this process keeps it */
};

/* Called when the device is done with the iteration. It has retired before, when all its work was pushed. */
static void iteration_close(void *content, void *arg)
{
    struct iteration *it = content;
    (void)arg;
    if (it->loss)
        *it->loss = it->work->host->loss;
    work_close(it->work);
    free(it);
}

static struct iteration *iteration_open(struct model *model, const struct batch *batch)
{
    static model_step *const steps[STEPS] = {
        [LOAD] = model_load,           [FETCH_LENGTHS] = model_fetch_lengths,
        [FETCH_IDS] = model_fetch_ids, [PREFETCH] = model_prefetch,
        [LOOK_UP] = model_look_up,     [FORWARD] = model_forward,
        [BACKWARD] = model_backward,   [UPDATE] = model_update,
    };
    struct iteration *it = calloc(1, sizeof *it);
    struct work *work = it ? work_open(model, batch) : NULL;
    if (!work) {
        free(it);
        return NULL;
    }
    it->work = work;
    for (int s = 0; s < STEPS; s++)
        it->steps[s] = (struct later){steps[s], work};
    return it;
}

static struct iteration *iteration_of(struct swpipe_context *context)
{
    return swpipe_get(context, "iteration");
}

/* The numbers that a rank sends to each rank, for every bag of its. */
static size_t bags_of(const struct work *work)
{
    return (size_t)(TABLES * work->batch->count);
}

/* ---- the tasks ------------------------------------------------------------------------------- */

static void ask(void *work)
{
    model_ask(work);
}

static int load(struct swpipe_context *context, void *arg)
{
    static const struct swpipe_kind kind = {.release = iteration_close};
    struct app *app = arg;
    int rank = swpipe_rank(context);
    struct iteration *it = iteration_open(&app->models[rank], swpipe_batch(context));
    if (!it)
        return swpipe_fail(context, "out of memory");
    if (rank == app->rank || (app->rank < 0 && rank == 0))
        it->loss = &app->losses[swpipe_iteration(context)];
    if (swpipe_set(context, "iteration", it, &kind) != 0) {
        iteration_close(it, NULL);
        return swpipe_fail(context, "out of memory");
    }
    return swpipe_launch(context, ask, it->work) || push(context, &it->steps[LOAD]);
}

static int input_dist_start(struct swpipe_context *context, void *arg)
{
    struct work *work = iteration_of(context)->work;
    (void)arg;
    return swpipe_all_to_all(context, NULL, work->device->ask_lengths, work->device->asked_lengths,
                             bags_of(work), SWPIPE_I32);
}

static int lengths(struct swpipe_context *context, void *arg)
{
    (void)arg;
    return push(context, &iteration_of(context)->steps[FETCH_LENGTHS]);
}

/* The host has to know how many ids come before it can push their exchange. */
static int input_dist_wait(struct swpipe_context *context, void *arg)
{
    struct work *work = iteration_of(context)->work;
    struct on_device *device = work->device;
    (void)arg;
    if (swpipe_sync(context) != 0)
        return -1;
    model_count_asked(work);
    return swpipe_all_to_all_v(context, NULL, device->ask_ids, work->ask_counts, device->asked_ids,
                               work->asked_counts, SWPIPE_I64);
}

/* The host knows which rows are on the device, so it has to know the ids. */
static int prefetch(struct swpipe_context *context, void *arg)
{
    struct iteration *it = iteration_of(context);
    (void)arg;
    if (push(context, &it->steps[FETCH_IDS]) != 0 || swpipe_sync(context) != 0)
        return -1;
    model_choose_slots(it->work, swpipe_iteration(context));
    return push(context, &it->steps[PREFETCH]);
}

static int look_up(struct swpipe_context *context, void *arg)
{
    (void)arg;
    return push(context, &iteration_of(context)->steps[LOOK_UP]);
}

static int output_dist(struct swpipe_context *context, void *arg)
{
    struct work *work = iteration_of(context)->work;
    (void)arg;
    return swpipe_all_to_all(context, NULL, work->device->answers, work->device->answered,
                             bags_of(work) * DIM, SWPIPE_F32);
}

static int forward(struct swpipe_context *context, void *arg)
{
    (void)arg;
    return push(context, &iteration_of(context)->steps[FORWARD]);
}

static int backward(struct swpipe_context *context, void *arg)
{
    (void)arg;
    return push(context, &iteration_of(context)->steps[BACKWARD]);
}

static int grad_dist(struct swpipe_context *context, void *arg)
{
    struct work *work = iteration_of(context)->work;
    struct on_device *device = work->device;
    (void)arg;
    return swpipe_all_to_all(context, NULL, device->turned, device->row_gradients,
                             bags_of(work) * DIM, SWPIPE_F32) ||
           swpipe_all_reduce(context, NULL, device->gradients, device->summed, WEIGHTS + 1,
                             SWPIPE_F32);
}

static int update(struct swpipe_context *context, void *arg)
{
    (void)arg;
    return push(context, &iteration_of(context)->steps[UPDATE]);
}

const struct swpipe_task *tasks_of(struct app *app, size_t *count)
{
    static struct swpipe_task tasks[] = {{.name = "Load", .function = load},
                                         {.name = "InputDistStart", .function = input_dist_start},
                                         {.name = "Lengths", .function = lengths},
                                         {.name = "InputDistWait", .function = input_dist_wait},
                                         {.name = "Lookup", .function = look_up},
                                         {.name = "OutputDist", .function = output_dist},
                                         {.name = "Forward", .function = forward},
                                         {.name = "Backward", .function = backward},
                                         {.name = "GradDist", .function = grad_dist},
                                         {.name = "Update", .function = update},
                                         {.name = "Prefetch", .function = prefetch}};
    *count = sizeof tasks / sizeof *tasks;
    for (size_t t = 0; t < *count; t++)
        tasks[t].arg = app;
    return tasks;
}
