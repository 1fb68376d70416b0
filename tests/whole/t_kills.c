/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_kills.c - a store and its runs after an end that nobody asked for: SIGKILL of swrun, of its launcher and of a
 * rank, a process that stops, a full disk, two runs on one store, a time of day that jumps.
 *
 * Moments, plans and victims are drawn from a seed, which is told; SWSIM_SEED=N repeats it. SWSIM_KILLS=N sets how many
 * kills there are (30; with SWSIM_LONG=1 1,000). After each: the store passes SQLite's integrity_check and
 * foreign_key_check, iterations count from 0 without a gap, those that --progress named are there, no process
 * is left, nor a file in the folder for temporary ones or in /dev/shm. How much of the run was lost is told and
 * held to LAG_MOST: the promise, JOURNAL_LAG_MS, holds on a machine with time for the writer, and this one may be busy.
 *
 * Files: a store, what --progress named, and a folder for temporary files.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "gpu/record/journal.h"
#include "tests/harness.h"
#include "tests/random_draw.h"
#include "tests/tap.h"

enum { LAG_MOST_MS = 20 * JOURNAL_LAG_MS, END_MS = 30000, ARGUMENTS = 24, SAMPLES = 4096 };

static struct random draw;
static const char *store, *told, *temp; /* paths */
static double lags_ms[SAMPLES];
static int lag_count;
static int64_t started_ns; /* the newest process, on the clock of stores */

static const char plan_text[] =
    "swplan: 1\n"
    "name: quick\n"
    "ranks: 2\n"
    "schedule:\n"
    "  Copy: {stage: 0, stream: memcpy, time: 300us, writes: [x], work: {copy: h2d, bytes: 4KiB}}\n"
    "  Meet: {stage: 1, time: 200us, reads: [x], writes: [y], globally_ordered: true,\n"
    "         work: {collective: all_to_all, comm: dp, bytes: 4KiB}}\n"
    "intra_iter_deps: [[Meet, Copy]]\n"
    "buffers: {x: {scope: iteration}, y: {scope: shared}}\n";
/* As fast as it goes: more operations than can be written down. */
static const char fast_text[] = "swplan: 1\n"
                                "name: fast\n"
                                "schedule:\n"
                                "  A: {stage: 0, stream: memcpy, thread_group: io}\n"
                                "  B: {stage: 1, stream: dist, thread_group: dist}\n"
                                "  C: {stage: 2}\n"
                                "intra_iter_deps: [[B, A], [C, B]]\n";

/* ---- time -------------------------------------------------------------------------------------- */

static int64_t clock_ns(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void nap_ms(int ms)
{
    nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L}, NULL);
}

/* ---- files ------------------------------------------------------------------------------------- */

static void write_text(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    if (!file || fputs(text, file) < 0 || fclose(file) != 0)
        tap_ok(0, "could write %s", path);
}

/* Files in a folder whose names begin so. */
static int count_files(const char *folder, const char *prefix)
{
    int count = 0;
    DIR *dir = opendir(folder);
    for (struct dirent *at = dir ? readdir(dir) : NULL; at; at = readdir(dir))
        count += at->d_name[0] != '.' && strncmp(at->d_name, prefix, strlen(prefix)) == 0;
    if (dir)
        closedir(dir);
    return count;
}

/* The thread sanitizer opens such a file while a program starts, and removes it at once: a program that is killed in
   between leaves it. */
static void remove_sanitizer_files(const char *folder)
{
    char path[PATH_CAP + 256];
    DIR *dir = opendir(folder);
    for (struct dirent *at = dir ? readdir(dir) : NULL; at; at = readdir(dir)) {
        snprintf(path, sizeof path, "%s/%s", folder, at->d_name);
        if (strncmp(at->d_name, "tsan.rodata.", strlen("tsan.rodata.")) == 0)
            unlink(path);
    }
    if (dir)
        closedir(dir);
}

static void remove_store(void)
{
    char path[PATH_CAP + 8];
    static const char *const ends[] = {"", "-wal", "-shm", "-journal"};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        snprintf(path, sizeof path, "%s%s", store, ends[i]);
        unlink(path);
    }
}

/* ---- processes --------------------------------------------------------------------------------- */

struct how {
    const char *plan;
    const char *const *options; /* ends with NULL */
    const char *preload;        /* NULL: nothing */
    rlim_t file_bytes;          /* 0: no limit */
};

static void exec_swrun(const struct how *how)
{
    char db[PATH_CAP + 8];
    const char *argv[ARGUMENTS] = {getenv("SWRUN"), "--progress", "-n", "50000000", db};
    int count = 5, out = open(told, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0600);
    snprintf(db, sizeof db, "--db=%s", store);
    for (int i = 0; how->options[i]; i++)
        argv[count++] = how->options[i];
    argv[count] = how->plan;
    if (how->preload)
        setenv("LD_PRELOAD", how->preload, 1);
    if (how->file_bytes)
        setrlimit(RLIMIT_FSIZE, &(struct rlimit){how->file_bytes, how->file_bytes});
    signal(SIGXFSZ, SIG_IGN);
    setenv("TMPDIR", temp, 1);
    if (out >= 0 && dup2(out, 1) == 1 && (getenv("SWSIM_KILLS_SHOW") || dup2(out, 2) == 2))
        execv(argv[0], (char *const *)(uintptr_t)argv);
    _exit(99);
}

static pid_t start(const struct how *how)
{
    started_ns = clock_ns(CLOCK_REALTIME);
    unlink(told); /* a run that is killed before it opens the file has named nothing */
    pid_t pid = fork();
    if (pid == 0)
        exec_swrun(how);
    return pid;
}

/* A child of `pid`, drawn; 0: it has none. */
static pid_t child_of(pid_t pid)
{
    char path[64], text[4096] = "";
    pid_t children[64];
    int count = 0;
    snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)pid, (int)pid);
    FILE *file = fopen(path, "r");
    if (!file)
        return 0;
    if (!fgets(text, sizeof text, file))
        text[0] = '\0';
    fclose(file);
    for (char *at = text, *end; count < 64; at = end) {
        long number = strtol(at, &end, 10);
        if (end == at)
            break;
        children[count++] = (pid_t)number;
    }
    return count ? children[below(&draw, count)] : 0;
}

/* Wait for the end of a process; false: it was killed at the end of our patience. */
static bool await_end(pid_t pid, int *out_code)
{
    int code = 0;
    for (int ms = 0; ms < END_MS; ms += 2) {
        if (waitpid(pid, &code, WNOHANG) == pid) {
            *out_code = WIFEXITED(code) ? WEXITSTATUS(code) : 128 + WTERMSIG(code);
            return true;
        }
        nap_ms(2);
    }
    kill(pid, SIGKILL);
    waitpid(pid, &code, 0);
    return false;
}

/* Orphans become our children: none is left after a while. */
static bool no_process_left(void)
{
    for (int ms = 0; ms < 5000; ms += 5) {
        pid_t pid = waitpid(-1, NULL, WNOHANG);
        if (pid < 0 && errno == ECHILD)
            return true;
        if (pid <= 0)
            nap_ms(5);
    }
    return false;
}

/* ---- the store --------------------------------------------------------------------------------- */

/* The first column of the first row; `otherwise` where there is none. */
static double query(sqlite3 *db, const char *sql, double otherwise)
{
    sqlite3_stmt *statement = NULL;
    double value = otherwise;
    if (sqlite3_prepare_v2(db, sql, -1, &statement, NULL) == SQLITE_OK &&
        sqlite3_step(statement) == SQLITE_ROW && sqlite3_column_type(statement, 0) != SQLITE_NULL)
        value = sqlite3_column_double(statement, 0);
    sqlite3_finalize(statement);
    return value;
}

static bool is_text(sqlite3 *db, const char *sql, const char *want)
{
    sqlite3_stmt *statement = NULL;
    bool is = sqlite3_prepare_v2(db, sql, -1, &statement, NULL) == SQLITE_OK &&
              sqlite3_step(statement) == SQLITE_ROW &&
              strcmp((const char *)sqlite3_column_text(statement, 0), want) == 0;
    if (!is)
        tap_note("%s: %s", sql,
                 statement ? (const char *)sqlite3_column_text(statement, 0) : sqlite3_errmsg(db));
    sqlite3_finalize(statement);
    return is;
}

/* Iterations that --progress named, in one file by one run. */
static int64_t count_told(void)
{
    char line[256];
    long long count = 0, number;
    FILE *file = fopen(told, "r");
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "iteration %lld\n", &number) == 1 && strchr(line, '\n'))
            count = number + 1;
    if (file)
        fclose(file);
    return count;
}

static void note_lag(sqlite3 *db, int64_t killed_ns)
{
    double start =
        query(db, "SELECT value FROM stat WHERE key = 'start_unix_ns' ORDER BY run DESC", 0);
    double last = query(db,
                        "SELECT max(retire_ns) FROM iteration WHERE rank = 0 AND"
                        " run = (SELECT max(id) FROM run)",
                        0);
    bool begun = start > (double)started_ns; /* else the newest run is an earlier one */
    if (killed_ns && begun && last > 0 && lag_count < SAMPLES)
        lags_ms[lag_count++] = ((double)killed_ns - start - last) / 1e6;
}

/* The promises of a store after any end. `told_all`: the file of --progress is of the newest run. */
static bool store_is_good(bool told_all, int64_t killed_ns)
{
    sqlite3 *db = NULL;
    bool good = true;
    struct stat info;
    if (stat(store, &info) != 0 || info.st_size == 0)
        return count_told() == 0; /* it had not begun */
    if (sqlite3_open_v2(store, &db, SQLITE_OPEN_READWRITE, NULL) != SQLITE_OK) {
        tap_note("%s: %s", store, sqlite3_errmsg(db));
        sqlite3_close(db);
        return false;
    }
    sqlite3_busy_timeout(db, 10000);
    if (query(db, "SELECT count(*) FROM sqlite_master", 0) > 0) {
        double gaps = query(db,
                            "SELECT count(*) FROM (SELECT 1 FROM iteration GROUP BY run, rank"
                            " HAVING count(*) <> max(number) + 1 OR min(number) <> 0)",
                            -1);
        double stored = query(db,
                              "SELECT min(n) FROM (SELECT count(*) AS n FROM iteration WHERE"
                              " run = (SELECT max(id) FROM run) GROUP BY rank)",
                              0);
        double broken = query(db, "SELECT count(*) FROM pragma_foreign_key_check", -1);
        good = is_text(db, "PRAGMA integrity_check", "ok") && broken == 0 && gaps == 0 &&
               (!told_all || stored >= (double)count_told());
        if (!good)
            tap_note("%g references broken, %g ranks with gaps, %g iterations stored, %lld named",
                     broken, gaps, stored, (long long)count_told());
        note_lag(db, killed_ns);
    }
    sqlite3_close(db);
    return good;
}

static bool nothing_left(void)
{
    bool alone = no_process_left();
    remove_sanitizer_files(temp);
    int files = count_files(temp, ""), shared = count_files("/dev/shm", "swrun");
    if (!alone || files || shared)
        tap_note("%s, %d files in the temporary folder, %d in /dev/shm",
                 alone ? "no process" : "processes are left", files, shared);
    return alone && files == 0 && shared == 0;
}

/* ---- kills ------------------------------------------------------------------------------------- */

static const char *plans[2];
static const char *const alone[][3] = {{NULL},
                                       {"--driver=dataflow", NULL},
                                       {"--no-check", NULL},
                                       {"--durable", NULL},
                                       {"--driver=dataflow", "--durable", NULL}};

/* The store has the runs of several kills. */
static bool kill_one(void)
{
    const struct how how = {.plan = plans[below(&draw, 2)], .options = alone[below(&draw, 5)]};
    int code;
    if (below(&draw, 4) == 0)
        remove_store();
    pid_t pid = start(&how);
    nap_ms(below(&draw, 500));
    int64_t killed_ns = clock_ns(CLOCK_REALTIME);
    kill(pid, SIGKILL);
    bool ended = await_end(pid, &code);
    return ended && store_is_good(true, killed_ns) && nothing_left();
}

/* The launcher, which is the hub, or a rank; `signal`: what the victim gets. The rest ends by itself. */
static bool kill_of_ranks(int signal)
{
    static const char *const options[] = {"--processes", "--timeout=300ms", NULL};
    int code = 0;
    remove_store();
    pid_t pid = start(&(struct how){.plan = plans[0], .options = options});
    nap_ms(150 + below(&draw, 600));
    pid_t victim = below(&draw, 3) ? child_of(pid) : pid;
    if (victim == 0 || (victim == pid && signal == SIGSTOP))
        victim = pid;
    int64_t killed_ns = clock_ns(CLOCK_REALTIME);
    kill(victim, signal);
    if (victim == pid && signal == SIGSTOP) {
        nap_ms(200 + below(&draw, 600));
        kill(pid, SIGCONT);
        nap_ms(50);
        kill(pid, SIGINT);
        killed_ns = 0;
    }
    bool ended = await_end(pid, &code);
    bool good = ended && (code != 0 || signal == SIGSTOP) &&
                store_is_good(true, victim == pid ? killed_ns : 0) && nothing_left();
    if (!good)
        tap_note("exit code %d, the victim was %s", code,
                 victim == pid ? "the launcher" : "a rank");
    return good;
}

static void report_lags(const char *what)
{
    double most = 0, sum = 0;
    int late = 0;
    for (int i = 0; i < lag_count; i++) {
        most = lags_ms[i] > most ? lags_ms[i] : most;
        sum += lags_ms[i];
        late += lags_ms[i] > JOURNAL_LAG_MS;
    }
    tap_ok(most < LAG_MOST_MS,
           "%s: what was lost, in %d kills: %.0f ms on average, at most %.0f ms, more than %d ms "
           "in %d",
           what, lag_count, lag_count ? sum / lag_count : 0, most, JOURNAL_LAG_MS, late);
    lag_count = 0;
}

static void test_kills(const char *what, int count, bool (*kill_it)(int), int signal)
{
    int good = 0;
    for (int i = 0; i < count; i++)
        good += kill_it(signal);
    tap_ok(good == count, "%s, %d times: the store is whole, nothing is left", what, count);
    report_lags(what);
}

static bool kill_alone(int signal)
{
    (void)signal;
    return kill_one();
}

/* ---- other ends -------------------------------------------------------------------------------- */

static bool full_disk(int unused)
{
    (void)unused;
    int code = 0;
    remove_store();
    const struct how how = {.plan = plans[1],
                            .options = alone[below(&draw, 3)],
                            .file_bytes = (rlim_t)(4096 + below(&draw, 3000000))};
    bool ended = await_end(start(&how), &code);
    char *text = file_text(told);
    bool said = text && strstr(text, "swrun: ");
    if (!ended || code != 2 || !said)
        tap_note("exit code %d, said: %s", code, text ? text : "");
    free(text);
    return ended && code == 2 && said && store_is_good(true, 0) && nothing_left();
}

/* One is killed, the other interrupted some time later: it comes to its end. */
static bool two_programs(int unused)
{
    (void)unused;
    int code = 0, killed;
    remove_store();
    const struct how how = {.plan = plans[below(&draw, 2)], .options = alone[below(&draw, 3)]};
    pid_t one = start(&how), two = start(&how);
    nap_ms(100 + below(&draw, 500));
    kill(one, SIGKILL);
    nap_ms(below(&draw, 300));
    kill(two, SIGINT);
    bool ended = await_end(two, &code);
    ended = await_end(one, &killed) && ended;
    bool early = code == 128 + SIGINT; /* it did not hear of signals yet */
    bool good = ended && (code <= 1 || early) && store_is_good(false, 0) && nothing_left();
    if (!good)
        tap_note("exit code %d of the second", code);
    return good;
}

static const char *jumps; /* the library */

static bool jumping_clock(int unused)
{
    (void)unused;
    int code;
    remove_store();
    const struct how how = {.plan = plans[0], .options = alone[below(&draw, 2)], .preload = jumps};
    pid_t pid = start(&how);
    for (int ms = 0; ms < END_MS && count_told() < 10; ms += 10)
        nap_ms(10);
    kill(pid, SIGKILL);
    bool ended = await_end(pid, &code);
    int64_t named = count_told();
    if (named < 10)
        tap_note("%lld iterations named", (long long)named);
    return ended && named >= 10 && store_is_good(true, 0) && nothing_left();
}

static bool build_jumps(void)
{
    char command[3 * PATH_CAP];
    const char *cc = getenv("CC"), *flags = getenv("INSTRUMENT_FLAGS");
    if (flags && strspn(flags, " ") != strlen(flags))
        return false; /* what a sanitizer preloads must be the first */
    jumps = path_temp("clock_jumps.so");
    snprintf(command, sizeof command, "%s -shared -fPIC -o '%s' '%s' 2>/dev/null", cc ? cc : "cc",
             jumps, path_source("tests/clock_jumps.c"));
    return system(command) == 0;
}

int main(void)
{
    int count = (int)env_number("SWSIM_KILLS", env_is_long() ? 1000 : 30);
    char *home[] = {strdup(path_temp("kills.db")), strdup(path_temp("told")),
                    strdup(path_temp("tmp")), strdup(path_temp("quick.yaml")),
                    strdup(path_temp("fast.yaml"))};
    draw.seed = env_seed();
    store = home[0], told = home[1], temp = home[2];
    plans[0] = home[3], plans[1] = home[4];
    write_text(plans[0], plan_text);
    write_text(plans[1], fast_text);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    if (!getenv("SWRUN") || mkdir(temp, 0700) != 0) {
        tap_skip("SWRUN is not set");
        return tap_done();
    }
    test_kills("swrun killed", count - count / 3, kill_alone, SIGKILL);
    test_kills("launcher or rank killed", count / 3, kill_of_ranks, SIGKILL);
    test_kills("launcher or rank stopped", count / 15, kill_of_ranks, SIGSTOP);
    test_kills("disk full", count / 6, full_disk, 0);
    test_kills("two programs on one store", count / 6, two_programs, 0);
    if (build_jumps())
        test_kills("a clock that jumps", count / 15, jumping_clock, 0);
    else
        tap_skip("nothing can be preloaded here");
    remove_store();
    rmdir(temp);
    for (size_t i = 0; i < sizeof home / sizeof *home; i++)
        free(home[i]);
    return tap_done();
}
