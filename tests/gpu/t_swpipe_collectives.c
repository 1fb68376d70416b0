/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_swpipe_collectives.c - collectives and messages that functions call on memory of their own: every kind with every
 * type of numbers against plain C, with all ranks in one process and as processes; what is refused.
 * `t_swpipe_collectives cuda` is for the cuda device.
 */
#include <math.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#ifdef HAVE_CUDA
#include <cuda_runtime_api.h>
#endif

#include "gpu/device/numbers.h"
#include "gpu/lib/swpipe.h"
#include "tests/processes.h"
#include "tests/tap.h"

static const char plan_text[] = "swplan: 1\nname: own\nschedule:\n"
                                "  Meet: {stage: 0, globally_ordered: true, writes: [s],\n"
                                "         work: {collective: all_to_all, comm: dp, bytes: 4KiB}}\n"
                                "  Look: {stage: 1, reads: [s]}\n"
                                "intra_iter_deps: [[Look, Meet]]\ninter_iter_deps: [[Meet, Look]]\n"
                                "buffers: {s: {scope: shared}}\n";

enum {
    FEW = 37,
    FOUR_KIB = 1024,
    MANY = 9001,
    MOST_RANKS = 4,
    ROUNDS = 6,
    ROOM = MANY * MOST_RANKS * 8
};

static enum swpipe_device device = SWPIPE_HOST;
/* The threads that call functions: tests run both ways. */
static enum swpipe_threads threads;

enum act {
    ALL_REDUCE,
    IN_PLACE,
    ALL_GATHER,
    REDUCE_SCATTER,
    BROADCAST,
    ALL_TO_ALL,
    ALL_TO_ALL_V,
    RING,
    ACTS
};

struct trial {
    enum act act;
    enum swpipe_number number;
    int ranks;
    size_t count; /* FEW or MANY numbers, or so many for each rank */
    bool plain;   /* memory is malloc's, else the pipeline's */
};

/* The data that a rank has at hand in an iteration, and got. */
struct memory {
    unsigned char send[ROOM], recv[ROOM];
    void *on_send, *on_recv; /* what the call is given */
};

struct state {
    struct trial trial;
    struct memory (*memory)[ROUNDS]; /* [MOST_RANKS] */
    int fetched[MOST_RANKS];
    atomic_int wrong, looked;
};

/* ---- numbers --------------------------------------------------------------------------------- */

static size_t size_of(enum swpipe_number number)
{
    return (size_t)number_bytes((enum number)number);
}

/* Small, with fractions that f16 has and bf16 rounds when they are added up. */
static double value_of(int rank, int64_t iteration, size_t i)
{
    return (double)((rank * 31 + (int)iteration * 7 + (int)i * 3) % 64) - 20;
}

static void put(enum swpipe_number number, void *to, size_t i, double value)
{
    switch (number) {
    case SWPIPE_F32: ((float *)to)[i] = (float)value + 0.1F; break;
    case SWPIPE_F16: ((uint16_t *)to)[i] = number_to_f16((float)value * 1.03125F); break;
    case SWPIPE_BF16: ((uint16_t *)to)[i] = number_to_bf16((float)value * 1.03125F); break;
    case SWPIPE_I32: ((int32_t *)to)[i] = (int32_t)value; break;
    case SWPIPE_I64: ((int64_t *)to)[i] = (int64_t)value * ((int64_t)1 << 33); break;
    }
}

static void fill(const struct trial *trial, int rank, int64_t iteration, unsigned char *send)
{
    for (size_t i = 0; i < trial->count * MOST_RANKS; i++)
        put(trial->number, send, i, value_of(rank, iteration, i));
}

/* Counts from one place to another: some are 0. */
static size_t count_of(const struct trial *trial, int from, int to)
{
    return (size_t)((from * 3 + to * 5) % 4) * (trial->count / 4);
}

/* ---- what has to come out -------------------------------------------------------------------- */

static void add_all(const struct trial *trial, int64_t iteration, size_t first, size_t count,
                    unsigned char *out)
{
    const size_t size = size_of(trial->number);
    unsigned char send[MOST_RANKS][ROOM];
    for (int rank = 0; rank < trial->ranks; rank++)
        fill(trial, rank, iteration, send[rank]);
    for (size_t at = 0, part; at < count; at += part) {
        union number_sums sums;
        part = count - at < NUMBER_SUMS ? count - at : NUMBER_SUMS;
        memset(&sums, 0, sizeof sums);
        for (int rank = 0; rank < trial->ranks; rank++)
            number_add((enum number)trial->number, &sums, send[rank] + (first + at) * size, part);
        number_store((enum number)trial->number, &sums, out + at * size, part);
    }
}

/* Returns the bytes that count. */
static size_t expect(const struct trial *trial, int rank, int64_t iteration, unsigned char *out)
{
    unsigned char send[ROOM];
    size_t size = size_of(trial->number), block = trial->count * size, bytes = 0;
    int ranks = trial->ranks;
    switch (trial->act) {
    case ALL_REDUCE:
    case IN_PLACE: add_all(trial, iteration, 0, trial->count, out); return block;
    case REDUCE_SCATTER:
        add_all(trial, iteration, (size_t)rank * trial->count, trial->count, out);
        return block;
    case BROADCAST:
        fill(trial, ranks - 1, iteration, send);
        memcpy(out, send, block);
        return block;
    case RING:
        fill(trial, (rank + ranks - 1) % ranks, iteration, send);
        memcpy(out, send, block);
        return block;
    case ALL_GATHER:
    case ALL_TO_ALL:
    case ALL_TO_ALL_V:
    case ACTS: break;
    }
    for (int from = 0; from < ranks; from++) {
        size_t first = trial->act == ALL_GATHER ? 0 : (size_t)rank * block, give = block;
        fill(trial, from, iteration, send);
        if (trial->act == ALL_TO_ALL_V) {
            first = 0;
            for (int to = 0; to < rank; to++)
                first += count_of(trial, from, to) * size;
            give = count_of(trial, from, rank) * size;
        }
        memcpy(out + bytes, send + first, give);
        bytes += give;
    }
    return bytes;
}

/* ---- device memory --------------------------------------------------------------------------- */

struct move {
    void *to;
    const void *from;
    size_t bytes;
};

/* Of what a rank gives or gets, at most. */
static size_t room_of(const struct trial *trial)
{
    return trial->count * MOST_RANKS * 8;
}

static void run_move(void *arg)
{
    struct move *move = arg;
    memcpy(move->to, move->from, move->bytes);
}

static void free_move(void *move, void *arg)
{
    (void)arg;
    free(move);
}

/* In stream order. */
static int move(struct swpipe_context *context, const char *name, void *to, const void *from,
                size_t bytes)
{
#ifdef HAVE_CUDA
    if (device == SWPIPE_CUDA)
        return cudaMemcpyAsync(to, from, bytes,
                               strcmp(name, "there") == 0 ? cudaMemcpyHostToDevice
                                                          : cudaMemcpyDeviceToHost,
                               (cudaStream_t)swpipe_stream(context)) == cudaSuccess
                   ? 0
                   : swpipe_fail(context, "a copy was refused");
#endif
    static const struct swpipe_kind kind = {.release = free_move};
    struct move *what = malloc(sizeof *what);
    *what = (struct move){to, from, bytes};
    return swpipe_set(context, name, what, &kind) || swpipe_launch(context, run_move, what);
}

/* ---- the functions of the tasks -------------------------------------------------------------- */

static int act(struct swpipe_context *context, const struct trial *trial, struct memory *memory)
{
    size_t give[MOST_RANKS], get[MOST_RANKS];
    int me = swpipe_comm_place(context, "dp"), ranks = swpipe_comm_size(context, NULL);
    void *send = memory->on_send, *recv = memory->on_recv;
    for (int i = 0; i < ranks; i++) {
        give[i] = count_of(trial, me, i);
        get[i] = count_of(trial, i, me);
    }
    switch (trial->act) {
    case ALL_REDUCE:
        return swpipe_all_reduce(context, "dp", send, recv, trial->count, trial->number);
    case IN_PLACE:
        memory->on_recv = send;
        return swpipe_all_reduce(context, NULL, send, send, trial->count, trial->number);
    case ALL_GATHER:
        return swpipe_all_gather(context, NULL, send, recv, trial->count, trial->number);
    case REDUCE_SCATTER:
        return swpipe_reduce_scatter(context, NULL, send, recv, trial->count, trial->number);
    case BROADCAST:
        return swpipe_broadcast(context, NULL, me == ranks - 1 ? send : NULL, recv, trial->count,
                                trial->number, ranks - 1);
    case ALL_TO_ALL:
        return swpipe_all_to_all(context, NULL, send, recv, trial->count, trial->number);
    case ALL_TO_ALL_V:
        return swpipe_all_to_all_v(context, NULL, send, give, recv, get, trial->number);
    case RING:
        if (me % 2 == 0)
            return swpipe_send(context, NULL, send, trial->count, trial->number,
                               (me + 1) % ranks) ||
                   swpipe_receive(context, NULL, recv, trial->count, trial->number,
                                  (me + ranks - 1) % ranks);
        return swpipe_receive(context, NULL, recv, trial->count, trial->number,
                              (me + ranks - 1) % ranks) ||
               swpipe_send(context, NULL, send, trial->count, trial->number, (me + 1) % ranks);
    case ACTS: break;
    }
    return -1;
}

static int meet(struct swpipe_context *context, void *arg)
{
    struct state *state = arg;
    int rank = swpipe_rank(context);
    int64_t iteration = swpipe_iteration(context);
    struct memory *memory = &state->memory[rank][iteration];
    if ((device == SWPIPE_CUDA) != (swpipe_comm_handle(context, NULL) != NULL) ||
        swpipe_comm_handle(context, "tp"))
        return swpipe_fail(context, "the handle of the communicator is wrong");
    const size_t room = room_of(&state->trial);
    fill(&state->trial, rank, iteration, memory->send);
    if (state->trial.plain) {
        memory->on_send = memory->send;
        memory->on_recv = memory->recv;
        return act(context, &state->trial, memory) || swpipe_sync(context);
    }
    memory->on_send = swpipe_alloc(context, "send", room);
    memory->on_recv = swpipe_alloc(context, "recv", room);
    return move(context, "there", memory->on_send, memory->send, room) ||
           act(context, &state->trial, memory) ||
           move(context, "back", memory->recv, memory->on_recv, room) || swpipe_sync(context);
}

static int look(struct swpipe_context *context, void *arg)
{
    struct state *state = arg;
    int rank = swpipe_rank(context);
    int64_t iteration = swpipe_iteration(context);
    unsigned char wanted[ROOM] = {0};
    size_t bytes = expect(&state->trial, rank, iteration, wanted);
    atomic_fetch_add(&state->looked, 1);
    const struct memory *memory = &state->memory[rank][iteration];
    const void *got = state->trial.plain ? memory->on_recv : memory->recv;
    if (memcmp(wanted, got, bytes) != 0)
        atomic_fetch_add(&state->wrong, 1);
    return 0;
}

static int next(void *arg, int rank, void **batch)
{
    struct state *state = arg;
    *batch = NULL;
    return state->fetched[rank]++ < ROUNDS;
}

static int run_with(int (*function)(struct swpipe_context *context, void *arg), struct state *state,
                    struct swpipe_group *group, char *said)
{
    struct swpipe_task tasks[] = {{"Meet", function, state, NULL, 0},
                                  {"Look", look, state, NULL, 0}};
    struct swpipe_config config = {.threads = threads,
                                   .plan_text = plan_text,
                                   .plan_file = "own.yaml",
                                   .tasks = tasks,
                                   .task_count = 2,
                                   .device = device,
                                   .ranks = state->trial.ranks,
                                   .wait_timeout_ns = 20000000000,
                                   .group = group};
    const struct swpipe_source source = {next, state};
    struct swpipe *pipe;
    int status = (int)swpipe_open(&config, &pipe);
    if (status == SWPIPE_OK)
        status = (int)swpipe_run(pipe, &source, NULL);
    snprintf(said, SAID_CAP, "%s", swpipe_error(pipe));
    swpipe_close(pipe);
    return status;
}

static int run(struct state *state, struct swpipe_group *group, char *said)
{
    return run_with(meet, state, group, said);
}

static const char *const acts[] = {"all_reduce", "in place",   "all_gather",   "reduce_scatter",
                                   "broadcast",  "all_to_all", "all_to_all_v", "a ring"};
static const char *const numbers[] = {"f32", "f16", "bf16", "i32", "i64"};

static struct state *state_of(const struct trial *trial)
{
    struct state *state = calloc(1, sizeof *state);
    state->trial = *trial;
    state->memory = calloc(MOST_RANKS, sizeof *state->memory);
    return state;
}

static void free_state(struct state *state)
{
    free(state->memory);
    free(state);
}

static void test_one_process(const struct trial *trial)
{
    struct state *state = state_of(trial);
    char said[SAID_CAP];
    int status = run(state, NULL, said);
    tap_ok(status == SWPIPE_OK && state->wrong == 0 && state->looked == trial->ranks * ROUNDS,
           "%s of %s, %d ranks here: %s", acts[trial->act], numbers[trial->number], trial->ranks,
           said);
    free_state(state);
}

/* ---- processes ------------------------------------------------------------------------------- */

/* Plain memory is the host device's only. Of MANY the members of a large collective take what they get themselves, of as few
   numbers as FOUR_KIB they lie on desks. */
static const struct way {
    size_t count;
    bool plain;
} ways[] = {{FEW, false}, {FEW, true}, {MANY, true},    {MANY, false},
            {0, true},    {1, true},   {FOUR_KIB, true}};

static int way_count(void)
{
    return device == SWPIPE_HOST ? (int)(sizeof ways / sizeof *ways) : 1;
}

/* All kinds of trials one after the other, in one group. */
static void body(const struct process *self, struct outcome *out)
{
    const struct swpipe_join join = {
        .rank = self->number, .size = self->count, .address = self->address};
    struct swpipe_group *group;
    if (device == SWPIPE_CUDA) {
        processes_share_gpu(self);
        swpipe_set_environment();
    }
    out->status = (int)swpipe_join(&join, &group);
    for (int a = 0; a < ACTS && out->status == SWPIPE_OK; a++)
        for (int n = 0; n < 5 * way_count() && out->status == SWPIPE_OK; n++) {
            const struct way *how = &ways[n / 5];
            const struct trial trial = {(enum act)a, (enum swpipe_number)(n % 5), self->count,
                                        how->count, how->plain};
            struct state *state = state_of(&trial);
            out->status = run(state, group, out->said);
            out->count += state->looked - state->wrong;
            if (state->wrong)
                snprintf(out->said, sizeof out->said, "%s of %zu %s: %d wrong", acts[a],
                         trial.count, numbers[n % 5], state->wrong);
            free_state(state);
        }
    swpipe_leave(group);
}

static void test_processes(int count)
{
    struct outcome outcomes[PROCESSES_MOST];
    bool ended[PROCESSES_MOST];
    tap_ok(processes_run(count, body, NULL, 240, outcomes, ended), "%d processes end", count);
    for (int i = 0; i < count; i++)
        tap_ok(ended[i] && outcomes[i].status == SWPIPE_OK &&
                   outcomes[i].count == ACTS * 5 * way_count() * ROUNDS,
               "rank %d of %d got what plain C gets: %s", i, count,
               ended[i] ? outcomes[i].said : "killed");
}

/* ---- a rank dies ----------------------------------------------------------------------------- */

/* Some of the calls are done, some pushed. */
static int die_within(struct swpipe_context *context, void *arg)
{
    enum { CALLS = 64, LAST = 5 };
    struct state *state = arg;
    const int rank = swpipe_rank(context);
    const bool dies = rank == 1 && swpipe_iteration(context) == 1;
    struct memory *memory = &state->memory[rank][swpipe_iteration(context)];
    memory->on_recv = memory->recv;
    for (int i = 0; i < CALLS; i++) {
        if (dies && i == LAST && swpipe_sync(context) == 0)
            raise(SIGKILL);
        if (swpipe_all_reduce(context, NULL, memory->send, memory->recv, state->trial.count,
                              state->trial.number))
            return -1;
    }
    return swpipe_sync(context);
}

/* Without a word each later call would meet one of another iteration, with wrong sums. */
static int leave_out(struct swpipe_context *context, void *arg)
{
    struct state *state = arg;
    const int rank = swpipe_rank(context);
    struct memory *memory = &state->memory[rank][swpipe_iteration(context)];
    memory->on_recv = memory->recv;
    return rank == 1 && swpipe_iteration(context) == 1
               ? 0
               : swpipe_all_reduce(context, NULL, memory->send, memory->recv, state->trial.count,
                                   state->trial.number) ||
                     swpipe_sync(context); /* the next task looks */
}

struct misdeed {
    struct trial trial;
    int (*function)(struct swpipe_context *context, void *arg);
};

static void body_of_misdeed(const struct process *self, struct outcome *out)
{
    const struct misdeed *misdeed = self->arg;
    const struct trial *trial = &misdeed->trial;
    const struct swpipe_join join = {
        .rank = self->number, .size = self->count, .address = self->address};
    struct swpipe_group *group;
    struct state *state = state_of(trial);
    out->status = (int)swpipe_join(&join, &group);
    if (out->status == SWPIPE_OK)
        out->status = run_with(misdeed->function, state, group, out->said);
    free_state(state);
    swpipe_leave(group);
}

static void test_death(int count, size_t amount)
{
    const struct misdeed dies = {{ALL_REDUCE, SWPIPE_F32, count, amount, true}, die_within};
    struct outcome outcomes[PROCESSES_MOST];
    bool ended[PROCESSES_MOST];
    tap_ok(processes_run(count, body_of_misdeed, &dies, 60, outcomes, ended),
           "rank 1 of %d dies within calls of %zu numbers, and all end", count, amount);
    for (int i = 0; i < count; i++)
        tap_ok(i == 1 ? !ended[i]
                      : ended[i] && outcomes[i].status == SWPIPE_FAILED &&
                            strstr(outcomes[i].said, "rank 1"),
               "rank %d %s (%s)", i, i == 1 ? "is dead" : outcomes[i].said,
               ended[i] ? swpipe_status_name((enum swpipe_status)outcomes[i].status) : "killed");
}

static void test_left_out(int count, size_t amount)
{
    const struct misdeed skips = {{ALL_REDUCE, SWPIPE_F32, count, amount, true}, leave_out};
    struct outcome outcomes[PROCESSES_MOST];
    bool ended[PROCESSES_MOST];
    tap_ok(processes_run(count, body_of_misdeed, &skips, 60, outcomes, ended),
           "rank 1 of %d leaves out a call of %zu numbers, and all end", count, amount);
    for (int i = 0; i < count; i++)
        tap_ok(ended[i] && outcomes[i].status == SWPIPE_FAILED &&
                   strstr(outcomes[i].said, "in iteration 1") &&
                   strstr(outcomes[i].said, "in iteration 2"),
               "rank %d is told of both iterations: %s", i, outcomes[i].said);
}

/* ---- refusals -------------------------------------------------------------------------------- */

struct wrong {
    int which;
    float numbers[64];
};

static int go_wrong(struct swpipe_context *context, void *arg)
{
    struct wrong *wrong = arg;
    int rank = swpipe_rank(context);
    float *x = wrong->numbers, *mine = x + 8 * rank;
    static const size_t ones[2] = {1, 1}, none[2] = {1, 0}, huge[2] = {SIZE_MAX / 4 + 1, 1},
                        more[2] = {1, 2};
    switch (wrong->which) {
    case 0: return swpipe_all_reduce(context, "tp", x, x, 4, SWPIPE_F32);
    case 1: return swpipe_all_reduce(context, NULL, x, x, 4, (enum swpipe_number)9);
    case 2: return swpipe_broadcast(context, NULL, x, x + 8, 4, SWPIPE_F32, 7);
    case 3: return swpipe_send(context, NULL, x, 4, SWPIPE_F32, rank);
    case 4:
        return swpipe_all_reduce(context, NULL, x, x + 8 + 8 * rank, 4,
                                 rank ? SWPIPE_I32 : SWPIPE_F32);
    case 5:
        return rank ? swpipe_receive(context, NULL, x + 8, 5, SWPIPE_F32, 0)
                    : swpipe_send(context, NULL, x, 4, SWPIPE_F32, 1);
    case 6: return swpipe_all_reduce(context, NULL, x, NULL, 4, SWPIPE_F32);
    case 7: return swpipe_all_reduce(context, NULL, x, x, SIZE_MAX / 4 + 2, SWPIPE_F32);
    case 8: return swpipe_all_gather(context, NULL, x, x, SIZE_MAX / 8 + 1, SWPIPE_F32);
    case 9: return swpipe_all_reduce(context, NULL, x, x + 1, 4, SWPIPE_F32);
    case 10: return swpipe_all_gather(context, NULL, x + 3, x, 4, SWPIPE_F32);
    case 11: return swpipe_all_to_all(context, NULL, x, x, 4, SWPIPE_F32);
    case 12: return swpipe_all_to_all_v(context, NULL, x, ones, x, ones, SWPIPE_F32);
    case 13: return swpipe_all_to_all_v(context, NULL, x, ones, x + 8, NULL, SWPIPE_F32);
    case 14: return swpipe_all_to_all_v(context, NULL, x, huge, x + 8, ones, SWPIPE_F32);
    case 15: return swpipe_all_to_all_v(context, NULL, NULL, ones, x + 8, ones, SWPIPE_F32);
    case 16: return swpipe_send(context, NULL, NULL, 1, SWPIPE_F32, !rank);
    case 17: return swpipe_all_reduce(context, NULL, mine, mine, rank ? 4 : 0, SWPIPE_F32);
    case 18:
        return swpipe_all_to_all_v(context, NULL, x + 8 * rank, rank ? ones : none,
                                   x + 32 + 8 * rank, ones, SWPIPE_F32);
    case 19:
        return swpipe_all_to_all_v(context, NULL, x + 8 * rank, rank ? more : ones,
                                   x + 32 + 8 * rank, ones, SWPIPE_F32);
    case 21:
        return rank && swpipe_iteration(context) == 0
                   ? 0
                   : swpipe_all_reduce(context, NULL, mine, mine, 4, SWPIPE_F32);
    case 22:
        return rank && swpipe_iteration(context) == 0
                   ? 0
                   : swpipe_all_to_all_v(context, NULL, x + 8 * rank, ones, x + 32 + 8 * rank, ones,
                                         SWPIPE_F32);
    default: return swpipe_broadcast(context, NULL, mine, mine, 4, SWPIPE_F32, rank);
    }
}

static int look_wrong(struct swpipe_context *context, void *arg)
{
    (void)arg;
    return swpipe_all_reduce(context, NULL, NULL, NULL, 0, SWPIPE_F32);
}

static void refuse(int which, bool in_look, const char *words)
{
    struct wrong wrong = {.which = which};
    struct state counter = {.trial = {.ranks = 2}};
    struct swpipe_task task = {in_look ? "Look" : "Meet", in_look ? look_wrong : go_wrong, &wrong,
                               NULL, 0};
    struct swpipe_config config = {.threads = threads,
                                   .plan_text = plan_text,
                                   .plan_file = "own.yaml",
                                   .tasks = &task,
                                   .task_count = 1,
                                   .ranks = 2};
    const struct swpipe_source source = {next, &counter};
    struct swpipe *pipe;
    enum swpipe_status status = swpipe_open(&config, &pipe);
    if (status == SWPIPE_OK)
        status = swpipe_run(pipe, &source, NULL);
    tap_ok(status == SWPIPE_FAILED && strstr(swpipe_error(pipe), words), "refused: %s",
           swpipe_error(pipe));
    swpipe_close(pipe);
}

/* Addresses and counts of the call that a graph has kept need not be those of the next iteration. */
static int sum_own(struct swpipe_context *context, void *arg)
{
    return swpipe_all_reduce(context, NULL, arg, arg, 4, SWPIPE_F32);
}

static void refuse_in_graph(void)
{
    static float values[4];
    static const char plan[] =
        "swplan: 1\nname: graph\nranks: 1\nschedule:\n"
        "  Sum: {stage: 0, work: {collective: all_reduce, comm: dp, bytes: 4KiB}}\n"
        "  Step: {stage: 1}\nintra_iter_deps: [[Step, Sum]]\n";
    static const char *const device_only[] = {"Sum"};
    struct swpipe_task task = {"Sum", sum_own, values, NULL, 0};
    struct state counter = {.trial = {.ranks = 1}};
    const struct swpipe_source source = {next, &counter};
    struct swpipe_config config = {.threads = threads,
                                   .plan_text = plan,
                                   .tasks = &task,
                                   .task_count = 1,
                                   .graph = SWPIPE_GRAPH_REQUIRE,
                                   .device_only = device_only,
                                   .device_only_count = 1};
    struct swpipe *pipe;
    enum swpipe_status status = swpipe_open(&config, &pipe);
    if (status == SWPIPE_OK)
        status = swpipe_run(pipe, &source, NULL);
    tap_ok(status == SWPIPE_FAILED &&
               strstr(swpipe_error(pipe), "device_only function cannot call collectives"),
           "in a graph refused: %s", swpipe_error(pipe));
    swpipe_close(pipe);
}

/* ---- legality -------------------------------------------------------------------------------- */

/* Work of a function on a rank, before its sum and behind it. */
struct around {
    int before_ms, behind_ms;
};

struct pair {
    struct around around[2];
    float sums[2][2];
};

static void sleep_ms(void *arg)
{
    const int ms = *(const int *)arg;
    nanosleep(&(struct timespec){.tv_nsec = ms * 1000000}, NULL);
}

static int sum_with_work(struct swpipe_context *context, void *arg)
{
    struct pair *pair = arg;
    int rank = swpipe_rank(context);
    float *sum = &pair->sums[0][rank];
    return swpipe_launch(context, sleep_ms, &pair->around[rank].before_ms) ||
           swpipe_all_reduce(context, NULL, sum, sum, 1, SWPIPE_F32) ||
           swpipe_launch(context, sleep_ms, &pair->around[rank].behind_ms);
}

static int sum_alone(struct swpipe_context *context, void *arg)
{
    struct pair *pair = arg;
    float *sum = &pair->sums[1][swpipe_rank(context)];
    return swpipe_all_reduce(context, NULL, sum, sum, 1, SWPIPE_F32);
}

/* The sum alone comes behind the other one on their communicator, not behind the work of its function. */
static void test_legal(struct around first, struct around second, const char *what)
{
    static const char plan[] = "swplan: 1\nname: pair\nranks: 2\nschedule:\n"
                               "  Long: {stage: 0, stream: a, globally_ordered: true,\n"
                               "         work: {collective: all_reduce, comm: dp, bytes: 4B}}\n"
                               "  Short: {stage: 0, stream: b, globally_ordered: true,\n"
                               "          work: {collective: all_reduce, comm: dp, bytes: 4B}}\n"
                               "intra_iter_deps: []\n";
    struct pair pair = {.around = {first, second}};
    struct swpipe_task tasks[] = {{"Long", sum_with_work, &pair, NULL, 0},
                                  {"Short", sum_alone, &pair, NULL, 0}};
    struct state counter = {.trial = {.ranks = 2}};
    const struct swpipe_source source = {next, &counter};
    struct swpipe_config config = {
        .threads = threads, .plan_text = plan, .tasks = tasks, .task_count = 2, .ranks = 2};
    struct swpipe_recorded recorded = {.legal = -1, .why = "not recorded"};
    struct swpipe *pipe;
    enum swpipe_status status = swpipe_open(&config, &pipe);
    if (status == SWPIPE_OK)
        status = swpipe_record(pipe, "");
    if (status == SWPIPE_OK)
        status = swpipe_run(pipe, &source, NULL);
    if (status == SWPIPE_OK)
        status = swpipe_recorded(pipe, &recorded);
    tap_ok(status == SWPIPE_OK && recorded.legal == 1, "legal: %s: %s%s", what, swpipe_error(pipe),
           recorded.why);
    swpipe_close(pipe);
}

/* ---- halves ---------------------------------------------------------------------------------- */

static void test_halves(void)
{
    int wrong16 = 0, wrong_bf = 0;
    for (uint32_t h = 0; h < 65536; h++) {
        float f = number_from_f16((uint16_t)h), b = number_from_bf16((uint16_t)h);
        wrong16 += !isnan(f) && number_to_f16(f) != h;
        wrong_bf += !isnan(b) && number_to_bf16(b) != h;
    }
    tap_is_int(wrong16, 0, "every f16 comes back");
    tap_is_int(wrong_bf, 0, "every bf16 comes back");
    tap_ok(number_to_f16(1.0F + 0x1p-11F) == 0x3c00 && number_to_f16(1.0F + 0x1.8p-10F) == 0x3c02,
           "f16 rounds to nearest, ties to even");
    tap_ok(number_to_f16(65519.0F) == 0x7bff && number_to_f16(65520.0F) == 0x7c00 &&
               number_to_f16(0x1p-25F) == 0 && number_to_f16(0x1.8p-25F) == 1,
           "and at its ends");
    tap_ok(number_to_bf16(1.0F + 0x1p-8F) == 0x3f80 && number_to_bf16(1.0F + 0x1.8p-7F) == 0x3f82,
           "so does bf16");
}

int main(int argc, char **argv)
{
    device = argc > 1 && strcmp(argv[1], "cuda") == 0 ? SWPIPE_CUDA : SWPIPE_HOST;
    test_processes(2);
    test_processes(4);
    if (device == SWPIPE_HOST) {
        test_death(2, FOUR_KIB);
        test_death(3, FOUR_KIB);
        test_death(2, MANY);
        test_death(3, MANY);
        test_left_out(2, FOUR_KIB);
        test_left_out(3, MANY);
    }
    for (int a = 0; a < ACTS && device == SWPIPE_HOST; a++)
        for (int way = 4; way < way_count(); way++)
            test_one_process(&(struct trial){(enum act)a, (enum swpipe_number)((a + way) % 5), 2,
                                             ways[way].count, true});
    for (int a = 0; a < ACTS && device == SWPIPE_HOST; a++)
        for (int n = 0; n < 5; n++)
            test_one_process(&(struct trial){(enum act)a, (enum swpipe_number)n,
                                             n % 2 ? 2 : MOST_RANKS, n % 3 ? FEW : MANY,
                                             n % 3 == 2});
    if (device == SWPIPE_HOST) {
        refuse(0, false, "the plan does not give communicator 'tp' to Meet");
        refuse(1, false, "no type of numbers 9");
        refuse(2, false, "no place 7 among 2");
        refuse(3, false, "no other member at place");
        refuse(4, false, "mismatch");
        refuse(4, false, "of 16 bytes of i32");
        refuse(5, false, "point-to-point mismatch");
        refuse(6, false, "the memory to receive is NULL, expected 16 bytes");
        refuse(7, false, "more than memory can hold");
        refuse(8, false, "more than memory can hold");
        refuse(9, false, "overlap");
        refuse(10, false, "overlap");
        refuse(11, false, "overlap");
        refuse(12, false, "overlap");
        refuse(13, false, "the counts to receive are NULL, expected one for each of 2");
        refuse(14, false, "more than memory can hold");
        refuse(15, false, "the memory to send is NULL, expected 8 bytes");
        refuse(16, false, "the memory to send is NULL");
        refuse(17, false, "all_reduce 'Meet' of 0 bytes");
        refuse(18, false, "sends a message of 0 bytes, rank 1 receives a message of 4");
        refuse(19, false, "rank 1 sends 2 numbers to itself, and receives 1 from itself");
        refuse(23, false, "of f32 from rank 1");
        refuse(21, false, "bytes of f32 in iteration 1");
        refuse(22, false, "of 4 bytes in iteration 1");
        refuse(0, true, "the plan gives Look no communicator");
        refuse_in_graph();
        test_legal((struct around){0}, (struct around){0}, "no work around a collective");
        test_legal((struct around){15, 0}, (struct around){0}, "work before it on one rank");
        test_legal((struct around){0, 15}, (struct around){0}, "work behind it on one rank");
        test_legal((struct around){0, 15}, (struct around){0, 20}, "work behind it on both");
        test_legal((struct around){0, 80}, (struct around){0, 70}, "and for longer");
        test_legal((struct around){15, 0}, (struct around){0, 15},
                   "before it here, behind it there");
    }
    test_halves();
    /* swpipe_sync needs the other ranks elsewhere */
    tap_note("functions are called on the caller's thread");
    threads = SWPIPE_CALLER;
    test_processes(2);
    test_processes(4);
    if (device == SWPIPE_HOST) {
        refuse(0, false, "the plan does not give communicator 'tp' to Meet");
        refuse(4, false, "mismatch");
        refuse_in_graph();
        test_legal((struct around){0, 15}, (struct around){0, 20}, "work behind it on both");
        test_legal((struct around){15, 0}, (struct around){0, 15},
                   "before it here, behind it there");
    }
    test_halves();
    return tap_done();
}
