/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_record.c - `swsim record`: runs a CUDA program with the recorder before its libraries. */
#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "app.h"
#include "options.h"

#include "base/array.h"
#include "trace/record/reader/tapes.h"
#include "trace/record/none/models.h"
#include "trace/record/recorder/launched.h"
#include "base/system_words.h"
#include "base/array.h"
#include "base/units.h"

#define LIBRARY "libswrecord.so"

struct cmd_record_recording {
    struct app *app;
    const char *path;   /* of the recording */
    const char *folder; /* where the processes write */
    char **program;     /* with its arguments, NULL behind them */
    bool is_static;     /* CUDA's runtime is part of it */
    bool touch;         /* the host's accesses to pinned memory are seen, too */
    bool asks_twice;    /* the first question for an event is answered with no */
    bool untimed;       /* device operations are not measured */
    const char
        *device; /* MODEL:DEVICES of the device that is not there; NULL: the machine's own GPUs */
    bool values; /* PyTorch's operators are computed there, on the CPU */
};

/* ---- the library ------------------------------------------------------------------------------ */

/* Beside this program, where it has been built; else where it has been installed. NULL: nowhere. */
static const char *find_library(struct app *app)
{
    char own[PATH_MAX];
    const ssize_t length = readlink("/proc/self/exe", own, sizeof own - 1);
    if (length > 0) {
        own[length] = '\0';
        *strrchr(own, '/') = '\0';
        const char *beside = arena_printf(&app->arena, "%s/" LIBRARY, own);
        if (beside && access(beside, R_OK) == 0)
            return beside;
        const char *moved = arena_printf(&app->arena, "%s/../libexec/swsim/" LIBRARY, own);
        if (moved && access(moved, R_OK) == 0)
            return moved;
    }
    return access(PKGLIBEXECDIR "/" LIBRARY, R_OK) == 0 ? PKGLIBEXECDIR "/" LIBRARY : NULL;
}

/* ---- the program ------------------------------------------------------------------------------ */

static bool cmd_record_is_folder(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

/* The path at which execvp finds it; NULL: none. An empty folder of PATH is the current one. */
static const char *find_program(struct app *app, const char *name)
{
    const char *at = getenv("PATH");
    if (strchr(name, '/'))
        return access(name, X_OK) == 0 ? name : NULL;
    for (at = at ? at : "/bin:/usr/bin";; at++) {
        const size_t length = strcspn(at, ":");
        const char *path =
            arena_printf(&app->arena, "%.*s%s%s", (int)length, at, length ? "/" : "./", name);
        if (path && access(path, X_OK) == 0 && !cmd_record_is_folder(path))
            return path;
        at += length;
        if (!*at)
            return NULL;
    }
}

struct image {
    const char *bytes;
    size_t size;
};

static bool map_file(const char *path, struct image *out)
{
    struct stat info;
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    void *bytes = MAP_FAILED;
    if (fd >= 0 && fstat(fd, &info) == 0 && info.st_size > 64)
        bytes = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (fd >= 0)
        close(fd);
    if (bytes == MAP_FAILED)
        return false;
    *out = (struct image){bytes, (size_t)info.st_size};
    return true;
}

static bool contains(const struct image *image, const char *text)
{
    return memmem(image->bytes, image->size, text, strlen(text)) != NULL;
}

/* An ELF file names the loader that brings in its libraries, or has none. */
static bool has_loader(const struct image *image)
{
    const Elf64_Ehdr *head = (const Elf64_Ehdr *)(const void *)image->bytes;
    if (memcmp(head->e_ident, ELFMAG, SELFMAG) != 0 || head->e_ident[EI_CLASS] != ELFCLASS64 ||
        head->e_phoff > image->size ||
        (image->size - head->e_phoff) / sizeof(Elf64_Phdr) < head->e_phnum)
        return true;
    const Elf64_Phdr *part = (const Elf64_Phdr *)(const void *)(image->bytes + head->e_phoff);
    for (int i = 0; i < head->e_phnum; i++)
        if (part[i].p_type == PT_INTERP)
            return true;
    return false;
}

/* The loader takes no library from those who start such a program. */
static bool runs_as_another(const struct stat *info)
{
    return ((info->st_mode & S_ISUID) && info->st_uid != geteuid()) ||
           ((info->st_mode & S_ISGID) && info->st_gid != getegid());
}

static enum status look_at_program(struct cmd_record_recording *recording)
{
    struct app *app = recording->app;
    struct image image;
    struct stat info;
    const char *path = find_program(app, recording->program[0]);
    if (!path && strchr(recording->program[0], '/') && access(recording->program[0], F_OK) == 0)
        return diag_error(&app->diag, STATUS_SYSTEM, "%s cannot be executed: permission denied",
                          recording->program[0]);
    if (!path)
        return diag_error(&app->diag, STATUS_SYSTEM, "%s: no such program", recording->program[0]);
    if (cmd_record_is_folder(path))
        return diag_error(&app->diag, STATUS_SYSTEM, "%s is a folder, not a program", path);
    if (stat(path, &info) == 0 && runs_as_another(&info))
        return diag_error(&app->diag, STATUS_INPUT,
                          "%s runs as its owner or group (set-user-ID, set-group-ID): nothing can "
                          "be put before its libraries",
                          path);
    if (!map_file(path, &image))
        return STATUS_OK;
    const bool loaded = has_loader(&image);
    recording->is_static = contains(&image, "libcudart_static_");
    munmap((void *)(uintptr_t)image.bytes, image.size);
    if (!loaded)
        return diag_error(&app->diag, STATUS_INPUT,
                          "%s is linked statically: nothing can be put before its libraries", path);
    return STATUS_OK;
}

/* A value that was there is replaced, also by none. */
static bool cmd_record_set(const char *variable, const char *value)
{
    return (value ? setenv(variable, value, 1) : unsetenv(variable)) == 0;
}

/* The libraries of the device that is not there are in a folder beside the recorder, and the loader is told to take them. */
static bool cmd_record_set_device(const struct cmd_record_recording *recording, const char *library)
{
    struct app *app = recording->app;
    const int length = (int)(strrchr(library, '/') - library);
    const char *others = getenv("LD_AUDIT"), *python = getenv("PYTHONPATH"),
               *tunables = getenv("GLIBC_TUNABLES");
    if (!recording->device)
        return true;
    const char *folder = arena_printf(&app->arena, "%.*s/none", length, library);
    const char *audit = arena_printf(&app->arena, "%s/libswnone-audit.so%s%s", folder,
                                     others && *others ? ":" : "", others ? others : "");
    const char *modules = arena_printf(&app->arena, "%s/python%s%s", folder,
                                       python && *python ? ":" : "", python ? python : "");
    /* where a library looks on, the loader has little room for variables of threads */
    const char *room = arena_printf(&app->arena, "%s%sglibc.rtld.optional_static_tls=65536",
                                    tunables ? tunables : "", tunables && *tunables ? ":" : "");
    return folder && audit && modules && room && cmd_record_set("GLIBC_TUNABLES", room) &&
           cmd_record_set(NONE_VARIABLE_LIBRARIES, folder) &&
           cmd_record_set(NONE_VARIABLE, recording->device) &&
           cmd_record_set("SWSIM_NONE_VALUES", recording->values ? "1" : NULL) &&
           cmd_record_set("LD_AUDIT", audit) && cmd_record_set("PYTHONPATH", modules);
}

/* In the child. */
_Noreturn static void cmd_record_run_program(const struct cmd_record_recording *recording,
                                             const char *library)
{
    const char *others = getenv("LD_PRELOAD");
    char *place = arena_printf(&recording->app->arena, "%s/process", recording->folder);
    char *all = arena_printf(&recording->app->arena, "%s%s%s", library,
                             others && *others ? ":" : "", others ? others : "");
    const bool told =
        place && all && cmd_record_set("SWSIM_RECORD_TOUCH", recording->touch ? "1" : NULL) &&
        cmd_record_set("SWSIM_RECORD_ASK_TWICE", recording->asks_twice ? "1" : NULL) &&
        cmd_record_set("SWSIM_RECORD_TIMES", recording->untimed ? "0" : NULL) &&
        cmd_record_set("SWSIM_RECORD_STATIC", recording->is_static ? "1" : NULL) &&
        cmd_record_set("SWSIM_RECORD", place) && cmd_record_set("LD_PRELOAD", all) &&
        cmd_record_set_device(recording, library);
    if (told)
        execvp(recording->program[0], recording->program);
    fprintf(stderr, "swsim: cannot run %s: %s\n", recording->program[0], system_words(errno));
    _exit(127);
}

/* SIGCHLD, and what ends a program that hangs: blocked while the program runs, and passed on to it. */
static sigset_t cmd_record_awaited(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGHUP);
    return set;
}

/* The first signal is the program's, the second ends it. Returns how the program ended; *signal: what came, 0 if nothing. */
static int cmd_record_wait_for(pid_t child, int *signal)
{
    const sigset_t set = cmd_record_awaited();
    int how = 0;
    *signal = 0;
    while (waitpid(child, &how, WNOHANG) != child) {
        const int came = sigwaitinfo(&set, NULL);
        if (came != SIGTERM && came != SIGHUP)
            continue;
        kill(child, *signal ? SIGKILL : came);
        *signal = came;
    }
    return how;
}

/* Keys typed at the terminal are for the program. */
static enum status await_program(struct cmd_record_recording *recording, pid_t child)
{
    const struct sigaction ignore = {.sa_handler = SIG_IGN};
    struct sigaction before_int, before_quit;
    struct app *app = recording->app;
    int came;
    sigaction(SIGINT, &ignore, &before_int);
    sigaction(SIGQUIT, &ignore, &before_quit);
    const int how = cmd_record_wait_for(child, &came);
    sigaction(SIGINT, &before_int, NULL);
    sigaction(SIGQUIT, &before_quit, NULL);
    if (came)
        return diag_error(&app->diag, STATUS_SYSTEM,
                          "signal %d ended %s; what it had called by then is in %s", came,
                          recording->program[0], recording->path);
    if (WIFSIGNALED(how))
        return diag_error(&app->diag, STATUS_SYSTEM, "%s was ended by signal %d",
                          recording->program[0], WTERMSIG(how));
    if (WEXITSTATUS(how) != 0)
        return diag_error(&app->diag, STATUS_SYSTEM, "%s exited with %d", recording->program[0],
                          WEXITSTATUS(how));
    return STATUS_OK;
}

static enum status cmd_record_run(struct cmd_record_recording *recording)
{
    struct app *app = recording->app;
    const char *library = find_library(app);
    if (!library)
        return diag_error(&app->diag, STATUS_SYSTEM,
                          LIBRARY " is neither beside swsim nor in " PKGLIBEXECDIR);
    fflush(NULL);
    const sigset_t awaited = cmd_record_awaited();
    sigset_t before;
    sigprocmask(SIG_BLOCK, &awaited, &before);
    const pid_t child = fork();
    if (child == 0) {
        sigprocmask(SIG_SETMASK, &before, NULL);
        cmd_record_run_program(recording, library);
    }
    const enum status status = child < 0
                                   ? diag_error(&app->diag, STATUS_SYSTEM,
                                                "cannot start a process: %s", system_words(errno))
                                   : await_program(recording, child);
    sigprocmask(SIG_SETMASK, &before, NULL);
    return status;
}

/* ---- the recordings --------------------------------------------------------------------------- */

struct names_found {
    const char **items;
    size_t count, cap;
};

static enum status list_files(struct cmd_record_recording *recording, struct names_found *out)
{
    struct app *app = recording->app;
    DIR *stream = opendir(recording->folder);
    const struct dirent *entry;
    if (!stream)
        return diag_error(&app->diag, STATUS_SYSTEM, "%s: %s", recording->folder,
                          system_words(errno));
    bool ok = true;
    while (ok && (entry = readdir(stream))) {
        if (entry->d_name[0] == '.')
            continue;
        ok = ARENA_GROW(&app->arena, out->items, out->count, out->cap) &&
             (out->items[out->count] =
                  arena_printf(&app->arena, "%s/%s", recording->folder, entry->d_name));
        out->count += ok;
    }
    closedir(stream);
    return ok ? STATUS_OK : diag_no_memory(&app->diag);
}

/* One process: a file. Several: a folder of files. */
static enum status put_in_place(struct cmd_record_recording *recording,
                                const struct names_found *files)
{
    struct app *app = recording->app;
    struct stat info;
    const char *from = files->count == 1 ? files->items[0] : recording->folder;
    if (files->count > 1 && stat(recording->path, &info) == 0 && S_ISREG(info.st_mode))
        unlink(recording->path);
    if (rename(from, recording->path) != 0)
        return diag_error(&app->diag, STATUS_SYSTEM, "cannot rename %s to %s: %s", from,
                          recording->path, system_words(errno));
    if (files->count == 1)
        rmdir(recording->folder);
    return STATUS_OK;
}

static enum status say_nothing_seen(const struct cmd_record_recording *recording)
{
    rmdir(recording->folder);
    return diag_error(
        &recording->app->diag, STATUS_INPUT,
        "%s made no call to CUDA's runtime or NCCL that can be seen%s", recording->program[0],
        recording->is_static
            ? ": the runtime is linked into it (libcudart_static.a); link it with -lcudart, "
              "or nvcc --cudart=shared"
            : "");
}

struct content {
    size_t threads, calls, timed;
    const char *untimed; /* why a process has no times; NULL: all have some */
};

/* A text that a thread has written before. */
static const char *cmd_record_find_text(struct app *app, const struct tape_thread *thread,
                                        uint64_t number)
{
    for (size_t i = 0; i < thread->count; i++)
        if (thread->items[i]->kind == RECORDING_TEXT && thread->items[i]->word[0] == number)
            return tapes_text(thread->items[i], &app->arena);
    return "no reason is told";
}

/* A thread of CUPTI's makes no calls. */
static void count_thread(struct app *app, const struct tape_thread *thread, struct content *content)
{
    const size_t before = content->calls;
    for (size_t i = 0; i < thread->count; i++) {
        const struct recording_item *item = thread->items[i];
        content->calls += (item->kind > RECORDING_UNSEEN && item->kind <= RECORDING_TOUCH) ||
                          item->kind == RECORDING_OPERATOR;
        content->timed += item->kind == RECORDING_DEVICE_OP;
        if (item->kind == RECORDING_NO_TIMES)
            content->untimed = cmd_record_find_text(app, thread, item->word[0]);
    }
    content->threads += content->calls > before;
}

/* The size of the recording, and what is missing in it. */
static enum status cmd_record_describe(struct cmd_record_recording *recording,
                                       const struct names_found *files)
{
    struct app *app = recording->app;
    struct content content = {0};
    for (size_t i = 0; i < files->count; i++) {
        struct tapes tapes;
        enum status status = tapes_read_file(files->items[i], &app->arena, &tapes, &app->diag);
        if (status != STATUS_OK)
            return status;
        for (size_t t = 0; t < tapes.thread_count; t++)
            count_thread(app, &tapes.threads[t], &content);
    }
    if (content.untimed && !recording->untimed)
        diag_note(&app->diag, "%s: device operations are recorded without their times: %s",
                  recording->path, content.untimed);
    diag_note(&app->diag,
              "%s: %zu process%s, %zu thread%s, %zu call%s, %zu device operation%s with measured "
              "times; 'swsim import %s' makes a plan of it",
              recording->path, files->count, files->count == 1 ? "" : "es", content.threads,
              units_plural(content.threads), content.calls, units_plural(content.calls),
              content.timed, units_plural(content.timed), recording->path);
    return STATUS_OK;
}

static bool was_cut(const struct cmd_record_recording *recording)
{
    const char *mark = arena_printf(&recording->app->arena, "%s/" RECORDING_CUT, recording->folder);
    return mark && unlink(mark) == 0;
}

static enum status cmd_record_collect(struct cmd_record_recording *recording)
{
    struct names_found files = {0};
    const bool cut = was_cut(recording);
    enum status status = list_files(recording, &files);
    if (status != STATUS_OK)
        return status;
    if (files.count == 0)
        return say_nothing_seen(recording);
    status = cmd_record_describe(recording, &files);
    if (status == STATUS_OK)
        status = put_in_place(recording, &files);
    return status == STATUS_OK && cut
               ? diag_error(&recording->app->diag, STATUS_SYSTEM,
                            "%s: later calls are missing: they could not be written",
                            recording->path)
               : status;
}

/* Beside the recording, so that it can be renamed. */
static enum status make_folder(struct cmd_record_recording *recording)
{
    struct app *app = recording->app;
    struct stat info;
    char *folder = arena_printf(&app->arena, "%s.XXXXXX", recording->path);
    if (!folder)
        return diag_no_memory(&app->diag);
    if (stat(recording->path, &info) == 0 && S_ISDIR(info.st_mode))
        return diag_error(&app->diag, STATUS_SYSTEM, "%s is a folder that exists already",
                          recording->path);
    if (!mkdtemp(folder))
        return diag_error(&app->diag, STATUS_SYSTEM, "cannot write %s: %s", recording->path,
                          system_words(errno));
    char *whole = realpath(folder, NULL);
    recording->folder = whole ? arena_strdup(&app->arena, whole) : folder;
    free(whole);
    return recording->folder ? STATUS_OK : diag_no_memory(&app->diag);
}

/* %r is the rank that a launcher tells, as it stands in the recording; 0 without one. */
static enum status place_rank(struct app *app, const char *path, const char **out)
{
    const char *at = strstr(path, "%r");
    *out = path;
    if (!at)
        return STATUS_OK;
    const struct launched job = launched_as();
    if (job.odd)
        return diag_error(&app->diag, STATUS_USAGE,
                          "environment variable %s: found \"%.20s\", expected a number that the "
                          "launcher has set, a rank less than the number of ranks",
                          job.odd, getenv(job.odd));
    *out = arena_printf(&app->arena, "%.*s%" PRIu64 "%s", (int)(at - path), path,
                        job.rank ? job.rank - 1 : 0, at + 2);
    return *out ? STATUS_OK : diag_no_memory(&app->diag);
}

/* Device operations are measured unless an option or the variable says no. */
static enum status cmd_record_read_times(struct app *app, bool *untimed)
{
    const char *text = getenv("SWSIM_RECORD_TIMES");
    if (text && *text && strcmp(text, "0") != 0 && strcmp(text, "1") != 0)
        return diag_error(
            &app->diag, STATUS_USAGE,
            "environment variable SWSIM_RECORD_TIMES: found \"%.20s\", expected 0 or 1", text);
    *untimed = *untimed || (text && strcmp(text, "0") == 0);
    return STATUS_OK;
}

/* "none", "none=MODEL", "none=MODEL:DEVICES", as the program's environment has it. */
static enum status cmd_record_read_device(struct app *app, const char *text, const char **out)
{
    static const char *const keys[] = {
#define X(key, ...) key,
        NONE_MODEL_LIST(X)
#undef X
    };
    const char *model = strcmp(text, "none") == 0 ? keys[0] : text + strlen("none=");
    const size_t length = strcspn(model, ":");
    char *end = NULL;
    const long count = model[length] ? strtol(model + length + 1, &end, 10) : NONE_DEVICES;
    bool known = false;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        known = known || (strlen(keys[i]) == length && memcmp(keys[i], model, length) == 0);
    if ((strcmp(text, "none") != 0 && strncmp(text, "none=", 5) != 0) || !known || (end && *end) ||
        count < 1 || count > NONE_MOST_DEVICES)
        return diag_error(
            &app->diag, STATUS_USAGE,
            "option --device: found \"%.40s\", expected none, none=MODEL or "
            "none=MODEL:DEVICES, where MODEL is h100, h200 or a100 and there are 1 to "
            "%d devices",
            text, NONE_MOST_DEVICES);
    *out = arena_printf(&app->arena, "%.*s:%ld", (int)length, model, count);
    return *out ? STATUS_OK : diag_no_memory(&app->diag);
}

enum status cmd_record(struct app *app, int argc, char **argv)
{
    const char *path = "recording.swr", *device = NULL;
    bool touch = false, asks_twice = false, untimed = false, values = false;
    const struct option_spec options[] = {
        {"output", 'o', "FILE",
         "the recording, of several processes a folder (default recording.swr); %r in it is the "
         "rank",
         OPTION_TEXT, .value = &path},
        {"host-accesses", 0, NULL,
         "also the host's first access to pinned memory behind each copy, by its pages (slower)",
         OPTION_FLAG, .value = &touch},
        {"ask-twice", 0, NULL,
         "the first question whether an event is done is answered with no: the recording shows "
         "whether the program asks again",
         OPTION_FLAG, .value = &asks_twice},
        {"no-device-times", 0, NULL,
         "do not measure device operations; CUPTI stays free for the program's own profiler",
         OPTION_FLAG, .value = &untimed},
        {"device", 0, "none[=MODEL[:DEVICES]]",
         "run the program without a GPU, on an imitated device: h100 (the default), h200 "
         "or "
         "a100, 8 of them if no number is given",
         OPTION_TEXT, .value = &device},
        {"values", 0, NULL,
         "with --device=none: PyTorch's operators are computed, on the CPU, for programs that "
         "branch on values (slower)",
         OPTION_FLAG, .value = &values},
    };
    const struct command command = {
        .unlimited = true,
        .name = "swsim record",
        .arguments = "-- PROGRAM [ARGUMENT]...",
        .about =
            "Run an unchanged CUDA program and record what its threads call: streams, events,\n"
            "launches, copies, waits, memory and NCCL, and by CUPTI when each device operation "
            "began and\n"
            "ended. 'swsim import' makes a plan of the "
            "recording,\n"
            "and 'swsim verify' says whether it goes well in every interleaving, not only in the "
            "one\n"
            "that was recorded. The program must use the shared libraries libcudart.so and "
            "libnccl.so.",
        .examples = "  swsim record -o job.swr -- ./train --steps 3\n"
                    "  swsim import job.swr | swsim verify -\n"
                    "  mpirun -n 4 swsim record -o rank%r.swr -- ./train; swsim import rank?.swr",
        COMMAND_OPTIONS(options),
        .more_arguments = INT_MAX,
    };
    struct arguments program;
    enum status status = STATUS_OK;
    if (!options_parse(app, &command, argc, argv, &program, &status))
        return status;
    struct cmd_record_recording recording = {
        .app = app, .program = program.items, .touch = touch, .asks_twice = asks_twice};
    status = place_rank(app, path, &recording.path);
    if (status == STATUS_OK)
        status = cmd_record_read_times(app, &untimed);
    if (status == STATUS_OK && device)
        status = cmd_record_read_device(app, device, &recording.device);
    if (status == STATUS_OK && values && !device)
        status = diag_error(&app->diag, STATUS_USAGE, "option --values: expected --device=none");
    recording.values = values;
    recording.untimed = untimed || device;
    if (status == STATUS_OK)
        status = look_at_program(&recording);
    if (status == STATUS_OK)
        status = make_folder(&recording);
    if (status != STATUS_OK)
        return status;
    const enum status ended = cmd_record_run(&recording);
    status = cmd_record_collect(&recording);
    return ended != STATUS_OK ? ended : status;
}
