/* SPDX-License-Identifier: Apache-2.0 */
/* attempt.c - see attempt.h. A command is the leader of a process group, so that what it leaves behind is found. */
#include "attempt.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { NOT_STARTED = 99 };

static void *sound(void *pointer, const char *what)
{
    if (!pointer) {
        fprintf(stderr, "t_injected: %s: %s\n", what, strerror(errno));
        exit(NOT_STARTED);
    }
    return pointer;
}

static void must(bool done, const char *what)
{
    (void)sound(done ? &done : NULL, what);
}

char *attempt_path(const struct attempt_place *place, const char *name)
{
    char *path = NULL;
    must(asprintf(&path, "%s/%s", place->base, name) > 0, "asprintf");
    return path;
}

void attempt_place_open(struct attempt_place *place, const char *library)
{
    const char *tmp = getenv("TMPDIR");
    char *base = NULL;
    must(asprintf(&base, "%s/swsim-faults.XXXXXX", tmp ? tmp : "/tmp") > 0, "asprintf");
    *place = (struct attempt_place){.base = sound(mkdtemp(base), base), .library = library};
    place->folder = attempt_path(place, "folder");
    must(mkdir(place->folder, 0700) == 0, place->folder);
}

/* ---- files ----------------------------------------------------------------------------------- */

char *attempt_read(const char *path, size_t *bytes)
{
    FILE *file = sound(fopen(path, "rb"), path);
    struct stat about;
    must(fstat(fileno(file), &about) == 0, path);
    char *data = sound(malloc((size_t)about.st_size + 1), path);
    *bytes = fread(data, 1, (size_t)about.st_size, file);
    data[*bytes] = '\0';
    fclose(file);
    return data;
}

static void write_file(const char *path, const char *data, size_t bytes)
{
    FILE *file = sound(fopen(path, "wb"), path);
    bool written = fwrite(data, 1, bytes, file) == bytes;
    must(fclose(file) == 0 && written, path);
}

static char *in_folder(const char *folder, const char *name)
{
    char *path = NULL;
    must(asprintf(&path, "%s/%s", folder, name) > 0, "asprintf");
    return path;
}

static void empty(const char *folder)
{
    DIR *listing = sound(opendir(folder), folder);
    for (struct dirent *entry; (entry = readdir(listing));) {
        char *path = in_folder(folder, entry->d_name);
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            must(remove(path) == 0, path);
        free(path);
    }
    closedir(listing);
}

void attempt_place_close(struct attempt_place *place)
{
    empty(place->folder);
    rmdir(place->folder);
    empty(place->base);
    rmdir(place->base);
    free(place->folder);
    free(place->base);
}

void attempt_add(struct attempt_files *files, const char *name, const char *data, size_t bytes)
{
    must(files->count < ATTEMPT_MAX_FILES, "too many files");
    char *copy = sound(malloc(bytes + 1), name);
    memcpy(copy, data, bytes);
    copy[bytes] = '\0';
    files->items[files->count++] = (struct attempt_file){sound(strdup(name), name), copy, bytes};
}

void attempt_put(const struct attempt_place *place, const struct attempt_files *files)
{
    empty(place->folder);
    for (int i = 0; i < files->count; i++) {
        char *path = in_folder(place->folder, files->items[i].name);
        write_file(path, files->items[i].data, files->items[i].bytes);
        free(path);
    }
}

static void take_files(const char *folder, struct attempt_files *out)
{
    DIR *listing = sound(opendir(folder), folder);
    for (struct dirent *entry; (entry = readdir(listing));) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        size_t bytes;
        char *path = in_folder(folder, entry->d_name), *data = attempt_read(path, &bytes);
        attempt_add(out, entry->d_name, data, bytes);
        free(data);
        free(path);
    }
    closedir(listing);
}

void attempt_free_files(struct attempt_files *files)
{
    for (int i = 0; i < files->count; i++) {
        free(files->items[i].name);
        free(files->items[i].data);
    }
    *files = (struct attempt_files){0};
}

void attempt_free(struct attempt *attempt)
{
    attempt_free_files(&attempt->files);
    free(attempt->out);
    free(attempt->err);
    free(attempt->stacks);
    *attempt = (struct attempt){0};
}

/* ---- processes ------------------------------------------------------------------------------- */

static void redirect(const char *path, int to)
{
    int file = open(path, to == STDIN_FILENO ? O_RDONLY : O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (file < 0 || dup2(file, to) < 0)
        _exit(NOT_STARTED);
    close(file);
}

struct paths {
    char *out, *err, *counts, *trace, *stacks;
};

_Noreturn static void become(const struct attempt_place *place, char *const *argv,
                             const char *fault, const struct paths *paths)
{
    setpgid(0, 0);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    redirect("/dev/null", STDIN_FILENO);
    redirect(paths->out, STDOUT_FILENO);
    redirect(paths->err, STDERR_FILENO);
    if (chdir(place->folder) != 0)
        _exit(NOT_STARTED);
    setenv("LD_PRELOAD", place->library, 1);
    setenv("ASAN_OPTIONS", "verify_asan_link_order=0:allocator_may_return_null=1", 1);
    setenv("SWSIM_INJECT", fault, 1);
    setenv("SWSIM_INJECT_COUNTS", paths->counts, 1);
    setenv("SWSIM_INJECT_TRACE", paths->trace, 1);
    if (place->stacks)
        setenv("SWSIM_INJECT_STACKS", paths->stacks, 1);
    setenv("SWSIM_DRAW_SECONDS", getenv("SWSIM_LONG") ? "2" : "20", 1);
    setenv("TMPDIR", place->folder, 1);
    execv(argv[0], argv);
    _exit(NOT_STARTED);
}

/* Wait until the child is a zombie, so that its group keeps its number. */
static bool ends_within(pid_t child, double limit_s)
{
    struct timespec begin, now, pause = {0, 500000};
    clock_gettime(CLOCK_MONOTONIC, &begin);
    for (;;) {
        siginfo_t info = {0};
        if (waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT | WNOHANG) == 0 && info.si_pid)
            return true;
        clock_gettime(CLOCK_MONOTONIC, &now);
        if ((double)(now.tv_sec - begin.tv_sec) + 1e-9 * (double)(now.tv_nsec - begin.tv_nsec) >
            limit_s)
            return false;
        nanosleep(&pause, NULL);
    }
}

/* Is any other process of the group alive? Those killed just now get a moment to be gone. */
static bool group_lives(pid_t leader)
{
    struct timespec pause = {0, 10000000};
    int status;
    waitpid(leader, &status, 0);
    for (int tries = 0; tries < 100; tries++) {
        if (kill(-leader, 0) != 0)
            return false;
        nanosleep(&pause, NULL);
    }
    return true;
}

static void wait_for(pid_t child, double limit_s, struct attempt *out)
{
    siginfo_t info = {0};
    out->hung = !ends_within(child, limit_s);
    if (out->hung)
        kill(-child, SIGKILL);
    must(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT) == 0, "waitid");
    out->signal = info.si_code == CLD_EXITED ? 0 : info.si_status;
    out->code = info.si_code == CLD_EXITED ? info.si_status : -1;
    if (out->code == NOT_STARTED) {
        errno = ENOEXEC;
        must(false, "the command cannot be started");
    }
    out->survivors = group_lives(child);
    if (out->survivors)
        kill(-child, SIGKILL);
}

void attempt_run(const struct attempt_place *place, char *const *argv, const char *fault,
                 double limit_s, struct attempt *out)
{
    struct paths paths = {attempt_path(place, "out"), attempt_path(place, "err"),
                          attempt_path(place, "counts"), attempt_path(place, "trace"),
                          attempt_path(place, "stacks")};
    struct inject_counts zero = {0};
    size_t bytes;
    *out = (struct attempt){0};
    write_file(paths.counts, (const char *)&zero, sizeof zero);
    write_file(paths.trace, "", 0);
    write_file(paths.stacks, "", 0);
    pid_t child = fork();
    must(child >= 0, "fork");
    if (child == 0)
        become(place, argv, fault, &paths);
    setpgid(child, child);
    wait_for(child, limit_s, out);
    out->out = attempt_read(paths.out, &bytes);
    out->err = attempt_read(paths.err, &bytes);
    take_files(place->folder, &out->files);
    struct inject_counts *counts = (void *)attempt_read(paths.counts, &bytes);
    for (int kind = 0; kind < INJECT_KINDS; kind++)
        out->calls[kind] = atomic_load(&counts->calls[kind]);
    out->failed = atomic_load(&counts->failed);
    out->stacks = (void *)attempt_read(paths.stacks, &bytes);
    out->stack_count = bytes / sizeof *out->stacks;
    free(counts);
    free(paths.out);
    free(paths.err);
    free(paths.counts);
    free(paths.trace);
    free(paths.stacks);
}
