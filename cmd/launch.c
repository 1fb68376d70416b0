/* SPDX-License-Identifier: Apache-2.0 */
/*
 * launch.c - see launch.h.
 *
 * Every TICK the launcher passes signals on, collects the reports of the ranks and reaps dead processes. Ranks
 * stop by themselves when one of them is gone, hangs or fails; ranks that have not ended GRACE later are
 * killed. All are killed when no rank makes progress, or reports its end, for the time limit. A rank dies with its
 * launcher.
 */
#include "launch.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "app.h"
#include "starter.h"

#include "base/hash.h"
#include "base/integers.h"
#include "base/system_words.h"
#include "gpu/exec/ranks.h"
#include "base/stopwatch.h"

#define TICK_NS   INT64_C(20000000)
#define GRACE_NS  INT64_C(2000000000)
#define MEET_NS   INT64_C(60000000000)
#define REPORT_NS INT64_C(5000000000)

/* ---- the environment ------------------------------------------------------------------------- */

/* Names of jobs may differ in their last bytes alone. */
static void keep_name(struct launch *launch, const char *name)
{
    const size_t bytes = strlen(name);
    if (bytes < sizeof launch->job)
        memcpy(launch->job, name, bytes + 1);
    else
        snprintf(launch->job, sizeof launch->job, "%.40s-%016" PRIx64, name,
                 hash_bytes(name, bytes));
}

static const char *variable(const char *name)
{
    const char *text = getenv(name);
    return text && *text ? text : NULL;
}

/* A name that the processes of a job have in common, and no other job on this machine. */
static void name_job(struct launch *launch)
{
    static const char *const names[] = {"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid",
                                        "OMPI_MCA_orte_ess_jobid"};
    const char *job = variable("SLURM_JOB_ID"), *step = variable("SLURM_STEP_ID");
    char text[512];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (variable(names[i])) {
            keep_name(launch, variable(names[i]));
            return;
        }
    if (job && step)
        snprintf(text, sizeof text, "slurm-%s.%s", job, step);
    else
        snprintf(text, sizeof text, "parent-%ld", (long)getppid());
    keep_name(launch, text);
}

enum status launch_find(struct launch *launch, struct diag *diag)
{
    const char *of = launch->name ? "--rendezvous" : "environment variable SWRUN_RENDEZVOUS";
    struct starter starter;
    starter_find(&starter);
    enum status status = starter_check(&starter, diag);
    if (status != STATUS_OK)
        return status;
    launch->rank = starter.rank;
    launch->size = starter.size;
    if (launch->size < 1)
        return STATUS_OK;
    if (starter.several_machines)
        return diag_error(diag, STATUS_USAGE,
                          "the launcher has put the %d ranks on several machines: the ranks of a "
                          "run need the memory of one machine",
                          launch->size);
    if (!launch->name)
        launch->name = variable("SWRUN_RENDEZVOUS");
    if (!launch->name)
        name_job(launch);
    const char *name = launch->name;
    if (name && strlen(name) > LAUNCH_NAME_BYTES)
        return diag_error(diag, STATUS_USAGE, "%s: found %zu bytes, expected a name of at most %d",
                          of, strlen(name), LAUNCH_NAME_BYTES);
    return STATUS_OK;
}

bool launch_is_spokesman(const struct launch *launch)
{
    return launch->size == 0 || launch->rank == 0;
}

/* ---- a process with a rank ------------------------------------------------------------------- */

/* The launcher gets the signals and passes one wish on to all ranks. */
static void ignore_signals(void)
{
    interrupts_handle(SIG_IGN, 0);
}

/* Run the rank and report; *told: the report arrived. Takes the rendezvous. */
static enum status run_rank(struct rendezvous *rendezvous, const struct plan *plan,
                            const struct runtime_options *all, bool *told, struct diag *diag)
{
    struct runtime_options options = *all;
    struct runtime_result result;
    options.rendezvous = rendezvous;
    options.stop = rendezvous_wish(rendezvous);
    options.db = NULL;
    enum status status = runtime_run(plan, &options, &result, diag);
    bool has = status == STATUS_OK || status == STATUS_VIOLATED;
    *told = ranks_report(rendezvous, status, has ? &result : NULL, diag);
    if (!*told && status == STATUS_OK)
        status = STATUS_SYSTEM;
    if (!status || (has && (result.hung || result.interrupted)))
        rendezvous_leave(rendezvous); /* each rank finds the end of these by itself */
    else
        rendezvous_leave_failed(rendezvous);
    if (has)
        runtime_result_fini(&result);
    return status;
}

/* The forked process; never returns. */
static void be_rank(struct broker *broker, int rank, pid_t parent, const struct plan *plan,
                    const struct runtime_options *options)
{
    struct rendezvous *rendezvous = NULL;
    struct diag diag;
    char name
        [sizeof "rank -2147483648"]; /* the kernel keeps fifteen characters, enough for all ranks there are */
    prctl(PR_SET_PDEATHSIG, (unsigned long)SIGKILL, 0UL, 0UL, 0UL);
    if (getppid() != parent)
        _exit(status_exit_code(STATUS_SYSTEM));
    ignore_signals();
    snprintf(name, sizeof name, "rank %d", rank);
    pthread_setname_np(pthread_self(), name);
    diag_init(&diag);
    enum status status =
        rendezvous_join(broker_inherit(broker, rank), rank, RENDEZVOUS_FOREVER, &rendezvous, &diag);
    bool told = false;
    if (!status)
        status = run_rank(rendezvous, plan, options, &told, &diag);
    if (!told && diag_has_error(&diag))
        diag_print(&diag, "swrun", false, stderr);
    diag_fini(&diag);
    _exit(status_exit_code(status));
}

/* ---- the launcher ---------------------------------------------------------------------------- */

struct launcher {
    struct launch *launch;
    struct broker *broker;
    struct collector *collector;
    int ranks;
    pid_t *pids; /* [ranks]; 0: not our child, or reaped */
    int wished;
    int64_t progress, progress_ns; /* the sum of all, and when it last grew */
    int64_t trouble_ns;            /* when something was first wrong; 0: nothing is */
    bool silent;                   /* no rank makes progress or reports its end */
    bool killed;
};

static enum status launch_start_ranks(struct launcher *launcher, const struct plan *plan,
                                      const struct runtime_options *options, struct diag *diag)
{
    int mine = launcher->launch->size ? 1 : launcher->ranks; /* else mpirun has started them */
    enum status status = STATUS_OK;
    pid_t parent = getpid();
    assert(mine <= launcher->ranks);
    for (int rank = 0; rank < mine && !status; rank++)
        status = broker_invite(launcher->broker, rank, diag);
    fflush(NULL);
    for (int rank = 0; rank < mine && !status; rank++) {
        pid_t pid = fork();
        if (pid == 0)
            be_rank(launcher->broker, rank, parent, plan, options);
        if (pid < 0)
            status = diag_error(diag, STATUS_SYSTEM, "cannot start a process for rank %d: %s", rank,
                                system_words(errno));
        else
            launcher->pids[rank] = pid;
    }
    return status;
}

static void kill_all(struct launcher *launcher)
{
    for (int rank = 0; rank < launcher->ranks; rank++)
        if (launcher->pids[rank] > 0)
            kill(launcher->pids[rank], SIGKILL);
}

/* A process has ended. A signal or a bad exit code is reported first: it explains what follows. */
static void report_exit(struct launcher *launcher, int rank, int how, struct diag *diag)
{
    assert(launcher->pids[rank] > 0);
    launcher->pids[rank] = 0;
    if (WIFSIGNALED(how) && !launcher->killed)
        diag_error(diag, STATUS_VIOLATED, "rank %d: its process was killed by signal %d (%s)", rank,
                   WTERMSIG(how), system_signal_words(WTERMSIG(how)));
    else if (WIFSIGNALED(how))
        diag_error(diag, STATUS_VIOLATED, "rank %d: its process did not end, and was killed", rank);
    else if (!collector_has_end(launcher->collector, rank) && WEXITSTATUS(how) != 0 &&
             broker_is_gone(launcher->broker, rank))
        diag_error(diag, STATUS_VIOLATED, "rank %d: its process ended with code %d", rank,
                   WEXITSTATUS(how));
}

/* Returns how many are left. */
static int reap_ranks(struct launcher *launcher, struct diag *diag)
{
    int left = 0, how;
    for (int rank = 0; rank < launcher->ranks; rank++) {
        if (launcher->pids[rank] == 0)
            continue;
        if (waitpid(launcher->pids[rank], &how, WNOHANG) == launcher->pids[rank])
            report_exit(launcher, rank, how, diag);
        else
            left++;
    }
    return left;
}

static void pass_wish_on(struct launcher *launcher)
{
    int wish = launcher->launch->wish ? atomic_load(launcher->launch->wish) : RUNTIME_GO;
    if (wish == launcher->wished)
        return;
    launcher->wished = wish;
    broker_wish(launcher->broker, wish);
}

/* True if something is wrong, so that the ranks must end soon. */
static bool in_trouble(struct launcher *launcher)
{
    const struct board *board = broker_board(launcher->broker);
    int64_t progress = broker_ended(launcher->broker), now_ns = stopwatch_now_ns();
    bool good;
    for (int rank = 0; rank < launcher->ranks; rank++) {
        progress += atomic_load(&board->members[rank].progress);
        if (broker_is_gone(launcher->broker, rank))
            return true;
    }
    if (progress != launcher->progress) {
        launcher->progress = progress;
        launcher->progress_ns = now_ns;
    }
    collector_ends(launcher->collector, &good);
    launcher->silent = now_ns - launcher->progress_ns >
                       integers_sum(collector_patience_ns(launcher->collector), GRACE_NS);
    return !good || launcher->wished == RUNTIME_ABORT || launcher->silent;
}

/* False: the ranks have had GRACE to end, and must be killed. */
static bool is_patient(struct launcher *launcher)
{
    int64_t now_ns = stopwatch_now_ns();
    if (launcher->trouble_ns == 0 && in_trouble(launcher))
        launcher->trouble_ns = now_ns;
    return launcher->trouble_ns == 0 || now_ns - launcher->trouble_ns < GRACE_NS;
}

/* Until all have ended, one way or another. */
static enum status supervise_ranks(struct launcher *launcher, struct diag *diag)
{
    enum status status = STATUS_OK;
    launcher->progress_ns = stopwatch_now_ns();
    while (!status) {
        int left = reap_ranks(launcher, diag);
        bool all = broker_ended(launcher->broker) == launcher->ranks;
        int failure = broker_failure(launcher->broker);
        if (failure)
            return diag_error(diag, STATUS_SYSTEM, "the launcher of the ranks cannot go on: %s",
                              system_words(failure));
        status = collector_take(launcher->collector, left || !all ? TICK_NS : 0, diag);
        if (left == 0 && (all || launcher->killed) && !collector_is_behind(launcher->collector))
            break;
        pass_wish_on(launcher);
        if (!launcher->killed && !is_patient(launcher)) {
            launcher->killed = true;
            if (launcher->silent && !broker_tell_missing(launcher->broker, STATUS_VIOLATED, diag))
                diag_error(diag, STATUS_VIOLATED,
                           "the ranks came together, but made no progress in time");
            kill_all(launcher);
        }
    }
    return status;
}

/* No process is left behind, however the run ends. */
static void end_all(struct launcher *launcher)
{
    int how;
    kill_all(launcher);
    for (int rank = 0; rank < launcher->ranks; rank++)
        while (launcher->pids[rank] > 0 && waitpid(launcher->pids[rank], &how, 0) < 0 &&
               errno == EINTR)
            continue;
}

/* The same for all ranks of a run. */
static void name_run(const struct launch *launch, char name[RENDEZVOUS_MAX_NAME + 1])
{
    snprintf(name, RENDEZVOUS_MAX_NAME + 1, "%s.%d", launch->name ? launch->name : launch->job,
             launch->runs);
}

static enum status run_all(struct launcher *launcher, const struct plan *plan,
                           const struct runtime_options *options, struct runtime_result *out,
                           struct diag *diag)
{
    char name[RENDEZVOUS_MAX_NAME + 1];
    struct launch *launch = launcher->launch;
    enum status status = STATUS_OK;
    if (launch->size) {
        name_run(launch, name);
        status = broker_listen(launcher->broker, name, diag);
    }
    if (!status)
        status = collector_open(plan, options, launcher->broker, &launcher->collector, diag);
    if (status)
        return status;
    status = launch_start_ranks(launcher, plan, options, diag);
    if (!status)
        status = broker_start(launcher->broker, diag);
    if (!status)
        status = supervise_ranks(launcher, diag);
    end_all(launcher);
    if (!status)
        return collector_end(launcher->collector, out, diag);
    collector_drop(launcher->collector);
    return status;
}

static enum status launch_lead(struct launch *launch, const struct plan *plan,
                               const struct runtime_options *options, struct runtime_result *out,
                               struct diag *diag)
{
    struct launcher launcher = {.launch = launch,
                                .ranks = options->ranks ? options->ranks : plan_rank_count(plan)};
    launcher.pids = calloc((size_t)launcher.ranks, sizeof *launcher.pids);
    if (!launcher.pids)
        return diag_no_memory(diag);
    enum status status = broker_open(launcher.ranks, &launcher.broker, diag);
    if (!status)
        status = run_all(&launcher, plan, options, out, diag);
    broker_close(launcher.broker);
    free(launcher.pids);
    return status;
}

/* ---- started by mpirun or srun --------------------------------------------------------------- */

/* How long a rank waits for rank 0: as rank 0 does for the others, where a limit was given. */
static int64_t patience_ns(const struct runtime_options *options)
{
    return options->timeout_ns ? options->timeout_ns + GRACE_NS : MEET_NS;
}

/* Meet rank 0 of the next run. */
static enum status launch_join(const struct launch *launch, int64_t patience_ns,
                               struct rendezvous **out, struct diag *diag)
{
    char name[RENDEZVOUS_MAX_NAME + 1];
    name_run(launch, name);
    return rendezvous_find(name, launch->rank, stopwatch_now_ns() + patience_ns, out, diag);
}

static enum status launch_follow(struct launch *launch, const struct plan *plan,
                                 const struct runtime_options *options, struct diag *diag)
{
    struct rendezvous *rendezvous = NULL;
    struct diag own; /* rank 0 prints the messages */
    ignore_signals();
    launch->told = false;
    enum status status = launch_join(launch, patience_ns(options), &rendezvous, diag);
    if (status)
        return status;
    diag_init(&own);
    status = run_rank(rendezvous, plan, options, &launch->told, &own);
    if (!launch->told) { /* nobody is there to print them */
        diag_take(diag, &own);
        if (status != STATUS_OK)
            diag_error(diag, status, "rank %d: rank 0, through which the ranks meet, is gone",
                       launch->rank);
    }
    diag_fini(&own);
    return status;
}

/* One line each, with the place in the file. */
static void add_reasons(const struct launch *launch, const struct diag *why, struct diag *out)
{
    for (size_t i = 0; i < why->count; i++) {
        const struct diag_message *message = &why->messages[i];
        if (message->severity != SEVERITY_ERROR)
            continue;
        if (message->file && message->mark.line)
            diag_error(out, STATUS_INPUT, "rank %d: %s:%" PRIu32 ":%" PRIu32 ": %s", launch->rank,
                       message->file, message->mark.line, message->mark.col, message->text);
        else
            diag_error(out, STATUS_INPUT, "rank %d: %s%s%s", launch->rank,
                       message->file ? message->file : "", message->file ? ": " : "",
                       message->text);
    }
}

void launch_report_failure(struct launch *launch, enum status status, const struct diag *why)
{
    struct rendezvous *rendezvous = NULL;
    struct diag words, unsent;
    if (launch_is_spokesman(launch))
        return;
    diag_init(&words);
    diag_init(&unsent);
    add_reasons(launch, why, &words);
    if (launch_join(launch, REPORT_NS, &rendezvous, &unsent) == STATUS_OK)
        (void)ranks_report(rendezvous, status, NULL,
                           &words); /* without a report the rank counts as gone */
    rendezvous_leave_failed(rendezvous);
    diag_fini(&words);
    diag_fini(&unsent);
}

enum status launch_run(struct launch *launch, const struct plan *plan,
                       const struct runtime_options *options, struct runtime_result *out,
                       struct diag *diag)
{
    int ranks = options->ranks ? options->ranks : plan_rank_count(plan);
    launch->told = true; /* true of failures that all ranks see */
    if (launch->size && launch->size != ranks)
        return diag_error(diag, STATUS_USAGE, "%s has %d ranks, but %d processes were started",
                          plan->name, ranks, launch->size);
    enum status status = launch_is_spokesman(launch) ? launch_lead(launch, plan, options, out, diag)
                                                     : launch_follow(launch, plan, options, diag);
    launch->runs++;
    return status;
}
