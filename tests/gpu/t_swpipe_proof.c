/* SPDX-License-Identifier: Apache-2.0 */
/* t_swpipe_proof.c - the proof that a pipeline is opened with, swpipe_verify and swpipe_predict. */
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/lib/swpipe.h"
#include "tests/tap.h"

static const char proved[] = "swplan: 1\n"
                             "name: proved\n"
                             "schedule:\n"
                             "  A: {stage: 0, stream: a, time: 1ms, writes: [x]}\n"
                             "  B: {stage: 1, time: 2ms, reads: [x]}\n"
                             "intra_iter_deps: [[B, A]]\n";
static const char racy[] = "swplan: 1\n"
                           "name: racy\n"
                           "schedule:\n"
                           "  A: {stage: 0, stream: a, writes: [x]}\n"
                           "  B: {stage: 0, reads: [x]}\n";
/* With a story of many steps. */
static const char long_racy[] =
    "swplan: 1\nname: long_racy\nranks: 2\nretire: device\nschedule:\n"
    "  Copy: {stage: 0, stream: m, thread_group: io, writes: [ids]}\n"
    "  Send: {stage: 1, stream: d, thread_group: d, globally_ordered: true, reads: [ids],\n"
    "    writes: [mine], work: {collective: all_to_all, comm: dp, bytes: 1KiB}}\n"
    "  Train: {stage: 2, thread_group: t, reads: [mine]}\n"
    "intra_iter_deps: [[Send, Copy]]\n";
static const char crossed[] =
    "swplan: 1\n"
    "name: crossed\n"
    "enqueue_order: stage-ascending\n"
    "schedule:\n"
    "  FillCache: {stage: 0, thread_group: sparse, stream: sparse}\n"
    "  StoreParams: {stage: 1, thread_group: sparse, stream: sparse}\n"
    "  LoadParams: {stage: 0, thread_group: dense, stream: dense}\n"
    "  UpdateRows: {stage: 1, thread_group: dense, stream: dense}\n"
    "inter_iter_deps: [[FillCache, UpdateRows], [LoadParams, StoreParams]]\n";

/* The messages of the pipeline. */
struct told {
    char text[16384];
    int messages;
};

static void listen(void *arg, const char *text)
{
    struct told *told = arg;
    size_t used = strlen(told->text);
    told->messages++;
    strncpy(told->text + used, text, sizeof told->text - used - 1);
}

static void contains(const char *text, const char *part, const char *what)
{
    tap_ok(strstr(text, part) != NULL, "%s", what);
    if (!strstr(text, part))
        tap_note("'%s' is not in: %s", part, text);
}

static enum swpipe_status open_plan(const char *plan, enum swpipe_driver driver, int64_t limit_ns,
                                    struct told *told, struct swpipe **pipe)
{
    const struct swpipe_config config = {.plan_file = "test.yaml",
                                         .plan_text = plan,
                                         .driver = driver,
                                         .proof_limit_ns = limit_ns,
                                         .message = listen,
                                         .message_arg = told};
    *told = (struct told){0};
    return swpipe_open(&config, pipe);
}

static void what_is_proved_is_not_told(void)
{
    static struct told told;
    struct swpipe *pipe;
    struct swpipe_answer answer;
    tap_is_int(open_plan(proved, SWPIPE_CLOCK, 0, &told, &pipe), SWPIPE_OK, "a proved plan opens");
    tap_is_int(told.messages, 0, "in silence");
    tap_is_int(swpipe_verify(pipe, 0, &answer), SWPIPE_OK, "it is verified");
    tap_is_int(answer.holds, 1, "and proved");
    contains(answer.json, "\"driver\":\"clock\"", "under its driver");
    tap_is_str(answer.repair, "", "without a repair");
    tap_is_int(swpipe_predict(pipe, &answer), SWPIPE_OK, "it is predicted");
    tap_is_int(answer.holds, 1, "to run");
    contains(answer.text, "2.00 ms", "two milliseconds an iteration");
    swpipe_close(pipe);
}

static int nothing(struct swpipe_context *context, void *arg)
{
    (void)context, (void)arg;
    return 0;
}

/* A function may call other collectives than the plan describes for its task. */
static void what_the_proof_does_not_see(void)
{
    static const char plan[] =
        "swplan: 1\nranks: 2\nschedule:\n"
        "  Sum: {stage: 0, work: {collective: all_reduce, comm: dp, bytes: 4KiB}}\n"
        "  Gather: {stage: 0, work: {collective: all_gather, comm: dp, bytes: 4KiB}}\n"
        "  Step: {stage: 1, writes: [x]}\n";
    static const struct swpipe_task tasks[] = {{"Step", nothing, NULL, NULL, 0},
                                               {"Sum", nothing, NULL, NULL, 0}};
    static struct told told;
    const struct swpipe_config config = {.plan_text = plan,
                                         .tasks = tasks,
                                         .task_count = 2,
                                         .message = listen,
                                         .message_arg = &told};
    struct swpipe *pipe;
    tap_is_int(swpipe_open(&config, &pipe), SWPIPE_OK, "a plan with collectives opens");
    tap_is_str(told.text,
               "plan: the proof assumes that these functions make the calls that the plan describes: Sum\n",
               "and the calls that the proof does not see are told");
    swpipe_close(pipe);
}

/* The proof is of the plan as it stands, so what its author may have meant otherwise is told. */
static void what_may_be_meant_otherwise(void)
{
    static const char misspelt[] =
        "swplan: 1\nschedule:\n"
        "  Load: {stage: 0, stream: copy, writes: [batch]}\n"
        "  Train: {stage: 1, reads: [batch, weights], writes: [weights]}\n"
        "  Log: {stage: 1, reads: [bacth]}\n"
        "intra_iter_deps: [[Train, Load]]\n"
        "inputs: [weights]\n";
    static const char silent[] = "swplan: 1\nschedule: {A: {stage: 0, stream: s}, B: {stage: 1}}\n";
    static struct told told;
    struct swpipe *pipe;
    tap_is_int(open_plan(misspelt, SWPIPE_CLOCK, -1, &told, &pipe), SWPIPE_OK,
               "a plan with odd names opens");
    contains(told.text, "test.yaml:5:27: warning: buffer \"bacth\" is read and never written",
             "a name is asked for");
    contains(told.text, "test.yaml:4:36: warning: buffer \"weights\" is an input that is written",
             "so are weights that no iteration hands on");
    swpipe_close(pipe);
    tap_is_int(open_plan(silent, SWPIPE_CLOCK, 0, &told, &pipe), SWPIPE_OK,
               "a plan without a word of memory opens");
    tap_is_str(told.text,
               "test.yaml: no task says what it reads and writes, so the proof finds no race\n",
               "and that it has none is told");
    swpipe_close(pipe);
}

/* A configuration of zeros has the clock, also where the plan is for data-flow. */
static void another_driver_is_told(void)
{
    static const char plan[] = "swplan: 1\ndriver: dataflow\nschedule: {A: {writes: [x]}}\n";
    static struct told told;
    struct swpipe *pipe;
    tap_is_int(open_plan(plan, SWPIPE_DATAFLOW, 0, &told, &pipe), SWPIPE_OK,
               "a plan under the driver that it names");
    tap_is_str(told.text, "", "opens in silence");
    swpipe_close(pipe);
    tap_is_int(open_plan(plan, SWPIPE_CLOCK, -1, &told, &pipe), SWPIPE_OK, "under the other");
    tap_is_str(told.text,
               "test.yaml: the plan names driver dataflow; config.driver, clock, overrides it\n",
               "it is told, also without a proof");
    swpipe_close(pipe);
}

static void what_must_hang_is_refused(void)
{
    static const struct {
        const char *plan, *corollary;
    } own[] = {
        {"swplan: 1\nschedule: {A: {stage: 1}, B: {stage: 0}}\nintra_iter_deps: [[B, A]]\n",
         "Corollary 1"},
        {"swplan: 1\nenqueue_order: [B, A]\nschedule: {A: {stage: 1}, B: {stage: 0}}\n"
         "inter_iter_deps: [[B, A]]\n",
         "Corollary 2"},
        {"swplan: 1\nschedule: {A: {stage: 2}, B: {stage: 0}}\ninter_iter_deps: [[B, A]]\n",
         "Corollary 3"},
    };
    static struct told told;
    struct swpipe *pipe;
    for (size_t i = 0; i < sizeof own / sizeof *own; i++) {
        tap_is_int(open_plan(own[i].plan, SWPIPE_CLOCK, -1, &told, &pipe), SWPIPE_INPUT,
                   "a thread that waits for itself is refused, also without a proof");
        contains(swpipe_error(pipe), own[i].corollary, own[i].corollary);
        swpipe_close(pipe);
    }
}

static void threads_that_wait_for_each_other(void)
{
    static struct told told;
    struct swpipe *pipe;
    struct swpipe_answer answer;
    enum { PATIENT_NS = 1000000000 };
    tap_is_int(open_plan(crossed, SWPIPE_CLOCK, PATIENT_NS, &told, &pipe), SWPIPE_INPUT,
               "two threads that wait for each other are refused");
    contains(swpipe_error(pipe), "must hang under the clock driver: deadlock, always", "with why");
    contains(told.text, "cycle: ", "and who waits for whom");
    tap_is_int(swpipe_verify(pipe, 0, &answer), SWPIPE_OK, "the refused plan is verified");
    tap_is_int(answer.holds, 0, "violated");
    contains(answer.repair, "swplan: 1", "with a repair");
    struct swpipe *repaired;
    char *text = strdup(answer.repair);
    tap_is_int(open_plan(text, SWPIPE_CLOCK, PATIENT_NS, &told, &repaired), SWPIPE_OK,
               "which opens");
    swpipe_close(repaired);
    free(text);
    tap_is_int(swpipe_fill(pipe, NULL), SWPIPE_USAGE, "the refused pipeline cannot be filled");
    swpipe_close(pipe);
    tap_is_int(open_plan(crossed, SWPIPE_CLOCK, -1, &told, &pipe), SWPIPE_OK,
               "without a proof it opens");
    swpipe_close(pipe);
    tap_is_int(open_plan(crossed, SWPIPE_DATAFLOW, PATIENT_NS, &told, &pipe), SWPIPE_OK,
               "and under data-flow, where it does not hang");
    swpipe_close(pipe);
}

static int next_of_two(void *arg, int rank, void **batch)
{
    int *next = arg;
    (void)rank;
    *batch = NULL;
    return (*next)++ < 8;
}

/* A plan that was opened without a proof: its wait ends, and the error says who waits for whom. */
static void a_wait_that_ends(void)
{
    struct swpipe *pipe;
    int next = 0;
    const struct swpipe_source source = {next_of_two, &next};
    const struct swpipe_config config = {
        .plan_text = crossed, .proof_limit_ns = -1, .wait_timeout_ns = 300000000};
    tap_is_int(swpipe_open(&config, &pipe), SWPIPE_OK, "opened without a proof");
    tap_is_int(swpipe_run(pipe, &source, NULL), SWPIPE_TIMEOUT, "it hangs until its limit");
    contains(swpipe_error(pipe), "waited longer than 300 ms for the CPU part of", "what waited");
    contains(swpipe_error(pipe), " waits for the CPU part of", "and what that waits for");
    tap_note("%s", swpipe_error(pipe));
    swpipe_close(pipe);
}

/* ---- functions that do not end ------------------------------------------------------------------- */

struct stuck {
    sem_t entered, leave;
    bool on_device;
};

static void stay(void *arg)
{
    struct stuck *stuck = arg;
    sem_post(&stuck->entered);
    while (sem_wait(&stuck->leave) != 0)
        continue;
}

static int stay_in_task(struct swpipe_context *context, void *arg)
{
    struct stuck *stuck = arg;
    if (stuck->on_device)
        return swpipe_launch(context, stay, stuck);
    stay(stuck);
    return 0;
}

/* One iteration, whose first task does not end: every limit but that of progress is off. */
static void a_function_that_stays(bool on_device, const char *what, const char *who)
{
    struct stuck stuck = {.on_device = on_device};
    struct swpipe_task task = {"A", stay_in_task, &stuck, NULL, 0};
    struct swpipe *pipe;
    int next = 7;
    const struct swpipe_source source = {next_of_two, &next};
    const struct swpipe_config config = {.plan_text = proved,
                                         .tasks = &task,
                                         .task_count = 1,
                                         .wait_timeout_ns = -1,
                                         .progress_timeout_ns = 300000000};
    sem_init(&stuck.entered, 0, 0);
    sem_init(&stuck.leave, 0, 0);
    bool filled =
        swpipe_open(&config, &pipe) == SWPIPE_OK && swpipe_fill(pipe, &source) == SWPIPE_OK;
    while (filled && sem_wait(&stuck.entered) != 0)
        continue;
    enum swpipe_status status = SWPIPE_OK;
    while (filled && status == SWPIPE_OK)
        status = swpipe_progress(pipe, &source, NULL);
    tap_is_int(status, SWPIPE_TIMEOUT, "work that does not end on %s ends the wait for it",
               on_device ? "the device" : "a thread");
    contains(swpipe_error(pipe), what, "the error says what did not finish");
    contains(swpipe_error(pipe), who, "and because of whom");
    sem_post(&stuck.leave);
    tap_is_int(swpipe_drain(pipe), SWPIPE_OK, "drained when it has ended");
    swpipe_close(pipe);
    sem_destroy(&stuck.entered);
    sem_destroy(&stuck.leave);
}

static const char exchange[] =
    "swplan: 1\nname: exchange\nranks: 2\ncomms: {world: all}\nschedule:\n"
    "  Exchange: {stage: 0, stream: net, time: 10us,"
    " work: {collective: all_to_all, comm: world, bytes: 64B}}\n";

static int next_of_rank(void *arg, int rank, void **batch)
{
    int *left = arg;
    *batch = NULL;
    return left[rank]-- > 0;
}

struct ends {
    int retired[2], released[2];
};

static void count_retired(void *arg, const struct swpipe_retired *iteration)
{
    ((struct ends *)arg)->retired[iteration->rank]++;
}

static void count_released(void *arg, int rank, void *batch)
{
    (void)batch;
    ((struct ends *)arg)->released[rank]++;
}

/* One rank has fewer batches: an iteration that it has none for begins on no rank, as one waits for the other in its
   collective. The source is asked for that end once. */
static void data_that_end_early(int few)
{
    struct swpipe *pipe;
    struct ends ends = {0};
    int left[2] = {20, 20},
        taken = few ? 13 : 12; /* by the other rank: iterations are asked for by rank */
    left[few] = 12;
    const struct swpipe_source source = {next_of_rank, left};
    const struct swpipe_config config = {
        .plan_text = exchange,
        .progress_timeout_ns = 500000000,
        .hooks = {.arg = &ends, .retired = count_retired, .release = count_released}};
    tap_is_int(swpipe_open(&config, &pipe), SWPIPE_OK, "ranks with their own data");
    tap_is_int(swpipe_run(pipe, &source, NULL), SWPIPE_OK, "those of rank %d end early: %s", few,
               swpipe_error(pipe));
    tap_is_int(ends.retired[0], 12, "rank 0 ends with that iteration");
    tap_is_int(ends.retired[1], 12, "rank 1, too");
    tap_is_int(ends.released[few], 12, "its batches are given back");
    tap_is_int(ends.released[!few], taken, "and those of the other one, begun or not");
    tap_is_int(left[few], -1, "its source is asked for the end once");
    tap_is_int(left[!few], 20 - taken, "and that of the other one for no batch behind it");
    swpipe_close(pipe);
}

static int call_on_rank_0(struct swpipe_context *context, void *arg)
{
    return swpipe_rank(context) ? 0 : swpipe_all_reduce(context, NULL, arg, arg, 1, SWPIPE_I32);
}

/* Rank 1 does not come to a collective of a function's own: the iteration whose place is needed is not over, or, in
   a short run, the device's work at the end. */
static void a_call_that_is_missing(int iterations, const char *what)
{
    int numbers[2] = {0}, left[2] = {iterations, iterations};
    struct swpipe_task task = {"Exchange", call_on_rank_0, numbers, NULL, 0};
    struct swpipe *pipe;
    const struct swpipe_source source = {next_of_rank, left};
    const struct swpipe_config config = {
        .plan_text = exchange, .tasks = &task, .task_count = 1, .progress_timeout_ns = 300000000};
    tap_is_int(swpipe_open(&config, &pipe), SWPIPE_OK, "functions that do not make the same calls");
    tap_is_int(swpipe_run(pipe, &source, NULL), SWPIPE_TIMEOUT, "one call waits until the limit");
    contains(swpipe_error(pipe), what, "what did not finish");
    contains(swpipe_error(pipe), "on communicator world waits for rank 1", "and for whom it waits");
    swpipe_close(pipe);
}

static void the_rest_is_told(void)
{
    static struct told told;
    struct swpipe *pipe;
    tap_is_int(open_plan(racy, SWPIPE_CLOCK, 1000000000, &told, &pipe), SWPIPE_OK,
               "a race is no reason to refuse");
    contains(told.text, "race", "but is told");
    contains(told.text, "see swpipe_verify", "with where to ask");
    swpipe_close(pipe);
    told.text[0] = '\0';
    tap_is_int(open_plan(long_racy, SWPIPE_CLOCK, 1000000000, &told, &pipe), SWPIPE_OK,
               "nor is a long one");
    contains(told.text, "  ....  ", "of which some steps are left out");
    tap_ok(!strstr(told.text, "--full"), "no option of a command is named");
    swpipe_close(pipe);
    struct swpipe_config silent = {.plan_text = racy};
    tap_is_int(swpipe_open(&silent, &pipe), SWPIPE_OK, "nobody has to listen");
    swpipe_close(pipe);
}

static int wait_for_fill(struct swpipe_context *context, void *arg)
{
    const atomic_bool *filled = arg;
    (void)context;
    while (!atomic_load(filled))
        sched_yield();
    return 0;
}

/* One thread for two ordered tasks: under data-flow it takes A(1), there since the fill, before B(0), whose turn it is. */
static void a_turn_that_does_not_come(void)
{
    static const char ordered[] = "swplan: 1\nmax_depth: 2\nticket_at: iteration\nschedule:\n"
                                  "  A: {stage: 0, globally_ordered: true}\n"
                                  "  B: {stage: 1, globally_ordered: true}\n"
                                  "intra_iter_deps: [[B, A]]\n";
    struct swpipe *pipe;
    int next = 0;
    atomic_bool filled = false;
    const struct swpipe_source source = {next_of_two, &next};
    const struct swpipe_task task = {"A", wait_for_fill, &filled, NULL, 0};
    const struct swpipe_config config = {.plan_text = ordered,
                                         .tasks = &task,
                                         .task_count = 1,
                                         .driver = SWPIPE_DATAFLOW,
                                         .proof_limit_ns = -1,
                                         .wait_timeout_ns = 300000000};
    tap_is_int(swpipe_open(&config, &pipe), SWPIPE_OK, "a plan whose turns deadlock");
    tap_is_int(swpipe_fill(pipe, &source), SWPIPE_OK, "is filled");
    atomic_store(&filled, true);
    tap_is_int(swpipe_progress(pipe, &source, NULL), SWPIPE_TIMEOUT, "times out");
    contains(swpipe_error(pipe),
             "A(1) waited longer than 300 ms for its turn behind B(0), which is in the queue of "
             "thread default",
             "and says whose turn it is");
    swpipe_close(pipe);
}

int main(void)
{
    what_is_proved_is_not_told();
    what_the_proof_does_not_see();
    what_may_be_meant_otherwise();
    another_driver_is_told();
    what_must_hang_is_refused();
    threads_that_wait_for_each_other();
    the_rest_is_told();
    a_wait_that_ends();
    a_turn_that_does_not_come();
    data_that_end_early(0);
    data_that_end_early(1);
    a_function_that_stays(false, "iteration 0 of rank 0 did not finish", "is at A(0)");
    a_function_that_stays(true, "the device work of rank 0 did not finish", "'A' is running");
    a_call_that_is_missing(1, "the device work of rank 0 did not finish");
    a_call_that_is_missing(30, " of rank 0 did not finish in time");
    return tap_done();
}
