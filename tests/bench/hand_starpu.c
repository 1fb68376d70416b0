/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hand_starpu.c - a peer of hand.c: the same work as tasks of StarPU. A lane is a handle that its tasks read and write in
 * turn; what one lane needs of another is a handle as well, one an iteration in flight; the last task of an iteration is
 * waited for before the third one after it is submitted.
 */
#include <starpu.h>
#include <stdbool.h>
#include <stdint.h>

enum { LANES = 3, MOST_IN_FLIGHT = 16 };

static void (*task_work)(void *);

static void run_task(void *buffers[], void *arg)
{
    (void)buffers;
    task_work(arg);
}

static struct starpu_codelet alone = {.cpu_funcs = {run_task}, .nbuffers = 1, .modes = {STARPU_RW}};
static struct starpu_codelet gives = {
    .cpu_funcs = {run_task}, .nbuffers = 2, .modes = {STARPU_RW, STARPU_W}};
static struct starpu_codelet takes = {
    .cpu_funcs = {run_task}, .nbuffers = 2, .modes = {STARPU_RW, STARPU_R}};

static bool submit(struct starpu_codelet *codelet, starpu_data_handle_t lane,
                   starpu_data_handle_t other, struct starpu_task **waited)
{
    struct starpu_task *task = starpu_task_create();
    if (!task)
        return false;
    task->cl = codelet;
    task->handles[0] = lane;
    if (other)
        task->handles[1] = other;
    if (waited) {
        task->detach = 0;
        *waited = task;
    }
    return starpu_task_submit(task) == 0;
}

static bool submit_iteration(const starpu_data_handle_t *lanes, starpu_data_handle_t first,
                             starpu_data_handle_t second, struct starpu_task **last)
{
    bool done = submit(&gives, lanes[0], first, NULL) && submit(&takes, lanes[1], first, NULL) &&
                submit(&gives, lanes[1], second, NULL) && submit(&alone, lanes[2], NULL, NULL) &&
                submit(&takes, lanes[2], second, NULL);
    for (int task = 5; task < 7; task++)
        done = done && submit(&alone, lanes[2], NULL, NULL);
    return done && submit(&alone, lanes[2], NULL, last);
}

static bool run_all(int iterations, int in_flight, const starpu_data_handle_t *lanes,
                    const starpu_data_handle_t *between)
{
    struct starpu_task *last[MOST_IN_FLIGHT] = {NULL};
    bool done = true;
    for (int i = 0; i < iterations && done; i++) {
        int slot = i % in_flight;
        done = !last[slot] || starpu_task_wait(last[slot]) == 0;
        last[slot] = NULL;
        done =
            done && submit_iteration(lanes, between[2 * slot], between[2 * slot + 1], &last[slot]);
    }
    for (int slot = 0; slot < in_flight; slot++)
        done = (!last[slot] || starpu_task_wait(last[slot]) == 0) && done;
    return done;
}

bool peer_run(int iterations, int in_flight, void (*work)(void *));

bool peer_run(int iterations, int in_flight, void (*work)(void *))
{
    static int values[LANES + 2 * MOST_IN_FLIGHT];
    starpu_data_handle_t handles[LANES + 2 * MOST_IN_FLIGHT];
    int count = LANES + 2 * in_flight;
    task_work = work;
    if (in_flight > MOST_IN_FLIGHT || starpu_init(NULL) != 0)
        return false;
    for (int i = 0; i < count; i++)
        starpu_variable_data_register(&handles[i], STARPU_MAIN_RAM, (uintptr_t)&values[i],
                                      sizeof values[i]);
    bool done = run_all(iterations, in_flight, handles, handles + LANES);
    for (int i = 0; i < count; i++)
        starpu_data_unregister(handles[i]);
    starpu_shutdown();
    return done;
}
