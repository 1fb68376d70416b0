/* SPDX-License-Identifier: Apache-2.0 */
/*
 * policy.c - a program that decides itself which task begins next, within what is proved.
 *
 *     cc policy.c $(pkg-config --cflags --libs swpipe) && ./a.out
 *
 * Under data-flow every task whose dependences are submitted is ready, and the thread of its group takes it. Here the
 * program chooses: training first; loading only as long as few batches are prepared, to hold less memory than
 * max_depth allows. Each task has a thread group of its own, so all that is ready is offered.
 *
 * swpipe_verify proves the plan for every order that its threads can have, so for every policy. The policy begins a
 * task whenever it is asked, unless another one is under way that will make it be asked again: then it cannot hang.
 */
#include <stdio.h>
#include <string.h>
#include <swpipe.h>

enum { BATCHES = 12, PREPARED = 2 };

static const char plan[] =
    "swplan: 1\n"
    "name: policy\n"
    "max_depth: 4\n"
    "schedule:\n"
    "  Load: {stage: 0, stream: memcpy, thread_group: load, time: 200us, writes: [raw]}\n"
    "  Sort: {stage: 1, stream: sort, thread_group: sort, time: 300us, reads: [raw], writes: "
    "[sorted]}\n"
    "  Train: {stage: 2, stream: main, thread_group: train, time: 1ms, reads: [sorted], writes: "
    "[weights]}\n"
    "intra_iter_deps: [[Sort, Load], [Train, Sort]]\n"
    "inter_iter_deps: [[Train, Train]]\n"
    "buffers: {weights: {scope: shared}}\n";

struct training {
    int left;
    int held_back; /* times a load waited although it was ready */
};

static int next_batch(void *arg, int rank, void **batch)
{
    struct training *training = arg;
    (void)rank;
    *batch = NULL;
    return training->left-- > 0;
}

/* The ready task of this name, -1: there is none. */
static int find(const struct swpipe_choice *choice, const char *task)
{
    for (int i = 0; i < choice->ready_count; i++)
        if (strcmp(choice->ready[i].task, task) == 0)
            return i;
    return -1;
}

static int choose(void *arg, const struct swpipe_choice *choice)
{
    struct training *training = arg;
    const int train = find(choice, "Train"), sort = find(choice, "Sort"),
              load = find(choice, "Load");
    if (train >= 0)
        return train;
    if (sort >= 0)
        return sort;
    if (choice->may_wait && choice->ready[load].iteration >= choice->oldest + PREPARED) {
        training->held_back++;
        return SWPIPE_WAIT;
    }
    return load;
}

int main(void)
{
    struct training training = {.left = BATCHES};
    struct swpipe_answer answer;
    const struct swpipe_config config = {
        .plan_text = plan, .driver = SWPIPE_DATAFLOW, .policy = {choose, &training}};
    const struct swpipe_source source = {next_batch, &training};
    struct swpipe *pipe;
    int64_t iteration, last = -1;
    enum swpipe_status status = swpipe_open(&config, &pipe);
    if (status == SWPIPE_OK)
        status = swpipe_verify(pipe, 0, &answer);
    if (status == SWPIPE_OK)
        printf("%s for any policy\n", answer.holds == 1 ? "proved" : "not proved");
    if (status == SWPIPE_OK)
        status = swpipe_fill(pipe, &source);
    while (status == SWPIPE_OK &&
           (status = swpipe_progress(pipe, &source, &iteration)) == SWPIPE_OK)
        last = iteration;
    if (status == SWPIPE_END)
        printf("%lld iterations, loads were held back: %s\n", (long long)last + 1,
               training.held_back > 0 ? "yes" : "no");
    else
        fprintf(stderr, "%s\n", swpipe_error(pipe));
    swpipe_close(pipe);
    return status == SWPIPE_END ? 0 : 1;
}
