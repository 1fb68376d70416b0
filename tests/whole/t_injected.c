/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_injected.c - every command survives every failure of the system below it.
 *
 * The preloaded library of tests/faults/inject.h counts a command's allocations, opens, writes and so on, and then
 * lets one of them fail, or one and all later ones. After each the command
 *
 *     ends by itself, within a time, with no process left behind; a rank that fails ends the others
 *     calls no legal run illegal
 *     has the exit code of the command without a fault and its results, or 2 (a run also 1) and one
 *     sentence that names what failed
 *     leaves every file as it was or as the command without a fault leaves it, every store sound, and no other
 *
 * A quick test draws a few calls of each kind, printing the seed; SWSIM_LONG=1 takes all of them, once and lasting. A
 * lasting failure is left out where it is the single one: the command makes neither threads nor processes, so that two
 * runs make the same calls up to the failure, and after it made no other call of the kind.
 *
 * SWSIM_SHARD=K/N: every N-th attempt, from the K-th on, so that several processes share the work;
 * SWSIM_CALLERS=N: of the calls with the same callers, up to INJECT_FRAMES of them, only the first N - 1 and the last. This
 * is a sample: the state may differ where the callers are the same, and a command that makes threads or processes does
 * not number its calls the same way twice;
 * SWSIM_COMMAND=WORDS: only commands whose line contains the words; SWSIM_KIND=KIND: only this kind;
 * SWSIM_CALL=N: only the N-th call, and what the command printed is shown; SWSIM_CALLS=N: this many calls of a kind;
 * SWSIM_INJECT_PLAN=1: nothing fails; how many calls of each kind a command makes and how long all of them would take.
 */
#include <ctype.h>
#include <inttypes.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tests/faults/attempt.h"
#include "tests/faults/commands.h"
#include "trace/whole.h"
#include "tests/random_draw.h"
#include "tests/tap.h"

enum { QUICK_CALLS = 2, MAX_COMPLAINTS = 6, MAX_LINE = 1024 };
static const double limit_s = 60;

static const char *const kind_names[] = {
#define X(name, error) #name,
    INJECT_LIST(X)
#undef X
};

struct bench {
    struct attempt_place place;
    struct attempt_files runs, witness,
        certificate; /* runs:, witness: and certificate: of commands.h */
    const char *srcdir, *swsim, *swrun, *swcheck, *libraries;
    struct random random;
    int calls;   /* of a kind, at most; 0: all */
    int callers; /* calls of the same callers, at most; 0: all */
    bool only_plan;
    double planned_s;
    uint64_t planned;
    int64_t only_call;
    const char *only_kind;
    uint64_t shard, shards, attempts; /* attempt number `attempts` is the next one */
    uint64_t injected, not_reached, same, repeated;
};

/* One command: its line, its beginning and its end without a fault. */
struct subject {
    const struct command *command;
    char text[MAX_LINE], *argv[ATTEMPT_MAX_ARGS + 1];
    struct attempt_files before;
    struct attempt sound;
    bool *repeats[INJECT_KINDS]; /* [calls + 1] those that are left out; NULL: none is */
    int complaints;
    uint64_t injected;
};

/* ---- preparing ------------------------------------------------------------------------------- */

static void append(char *text, const char *more)
{
    if (strlen(text) + strlen(more) + 1 < MAX_LINE)
        strcat(text, more);
}

/* Words separated by spaces; the first is a program, $P and $F are folders. */
static void split(const struct bench *bench, const char *line, struct subject *out)
{
    int argc = 0;
    out->text[0] = '\0';
    for (const char *c = line; *c; c++) {
        if (*c == '$') {
            append(out->text, bench->srcdir);
            append(out->text, *++c == 'P' ? "/plans" : "/tests/faults");
        } else {
            append(out->text, (char[]){*c, '\0'});
        }
    }
    for (char *word = strtok(out->text, " "); word && argc < ATTEMPT_MAX_ARGS;
         word = strtok(NULL, " "))
        out->argv[argc++] = word;
    const char *program = strcmp(out->argv[0], "swsim") == 0       ? bench->swsim
                          : strcmp(out->argv[0], "swcheck") == 0   ? bench->swcheck
                          : strcmp(out->argv[0], "libraries") == 0 ? bench->libraries
                                                                   : bench->swrun;
    memcpy(&out->argv[0], &program, sizeof program);
    out->argv[argc] = NULL;
}

static void add_plan(const struct bench *bench, const char *plan, const char *name,
                     struct attempt_files *out)
{
    char path[MAX_LINE];
    size_t bytes;
    snprintf(path, sizeof path, "%s/tests/faults/%s.yaml", bench->srcdir, plan);
    char *data = attempt_read(path, &bytes);
    attempt_add(out, name, data, bytes);
    free(data);
}

static void add_before(const struct bench *bench, char *entry, struct attempt_files *out)
{
    static const char old[] = "the old file\n";
    char *name = strchr(entry, ':');
    *name++ = '\0';
    const struct attempt_files *made = strcmp(entry, "runs") == 0          ? &bench->runs
                                       : strcmp(entry, "witness") == 0     ? &bench->witness
                                       : strcmp(entry, "certificate") == 0 ? &bench->certificate
                                                                           : NULL;
    if (made)
        attempt_add(out, name, made->items[0].data, made->items[0].bytes);
    else if (strcmp(entry, "old") == 0)
        attempt_add(out, name, old, sizeof old - 1);
    else
        add_plan(bench, entry, name, out);
}

static void prepare(const struct bench *bench, const struct command *command, struct subject *out)
{
    char before[MAX_LINE];
    *out = (struct subject){.command = command};
    split(bench, command->line, out);
    snprintf(before, sizeof before, "%s", command->before);
    for (char *entry = strtok(before, " "); entry; entry = strtok(NULL, " "))
        add_before(bench, entry, &out->before);
}

static void attempt(const struct bench *bench, struct subject *subject, const char *fault,
                    struct attempt *out)
{
    attempt_put(&bench->place, &subject->before);
    attempt_run(&bench->place, subject->argv, fault, limit_s, out);
}

/* The file that the commands leave, each starting with the files of the one before. */
static void make_file(const struct bench *bench, const char *const *lines, int count,
                      struct attempt_files *out)
{
    for (int i = 0; i < count; i++) {
        struct subject subject = {0};
        struct attempt made;
        split(bench, lines[i], &subject);
        subject.before = *out;
        attempt(bench, &subject, "none", &made);
        attempt_free_files(out);
        *out = made.files;
        made.files.count = 0;
        attempt_free(&made);
    }
}

static void make_files(struct bench *bench)
{
    static const char
        *const runs[] = {"swrun -n 5 --serial --db=x.db $F/small.yaml",
                         "swrun -n 5 --db=x.db $F/small.yaml"},
               *const witness[] = {"swsim verify --no-fix --witness=x.db $F/small_broken.yaml"},
               *const certificate[] = {"swsim verify --certificate=c.txt $F/small.yaml"};
    make_file(bench, runs, 2, &bench->runs);
    make_file(bench, witness, 1, &bench->witness);
    make_file(bench, certificate, 1, &bench->certificate);
}

/* ---- judging --------------------------------------------------------------------------------- */

/* Figures differ between two runs of one command: a number with its unit becomes '#'. */
static void without_figures(char *text)
{
    char *out = text;
    for (const char *in = text; *in;) {
        if (isdigit((unsigned char)*in)) {
            in += strspn(in, "0123456789.eE+");
            if (in[-1] == 'e' && *in == '-') /* 9.1e-05 s are printed so, 0.00012 s are not */
                in += 1 + strspn(in + 1, "0123456789");
            while (*in == ' ' && (isdigit((unsigned char)in[1]) || strchr(" numsK", in[1])))
                in++;
            in += strspn(in, "numsKMGiB");
            *out++ = '#';
        } else if (*in == ' ') {
            in += strspn(in, " ");
            *out++ = ' ';
        } else {
            *out++ = *in++;
        }
    }
    *out = '\0';
}

static bool same_text(const char *a, const char *b)
{
    char *text_a = strdup(a), *text_b = strdup(b);
    without_figures(text_a);
    without_figures(text_b);
    bool same = strcmp(text_a, text_b) == 0;
    free(text_a);
    free(text_b);
    return same;
}

static const struct attempt_file *file_of(const struct attempt_files *files, const char *name)
{
    for (int i = 0; i < files->count; i++)
        if (strcmp(files->items[i].name, name) == 0)
            return &files->items[i];
    return NULL;
}

static bool equal(const struct attempt_file *a, const struct attempt_file *b)
{
    return a && b && a->bytes == b->bytes && memcmp(a->data, b->data, a->bytes) == 0;
}

/* A verdict whose story was cut short says so, and its witness is a longer one. */
static bool ends_in_line(const struct attempt_file *file)
{
    return file->bytes > 0 && file->data[file->bytes - 1] == '\n';
}

static bool has_suffix(const char *name, const char *suffix)
{
    const size_t length = strlen(name), end = strlen(suffix);
    return length > end && strcmp(name + length - end, suffix) == 0;
}

/* The complete file may name a time; a picture may have other fonts, and so other sizes. Of an image nothing but its
   structure is known: the libraries below Graphviz go on without a letter for which there is no memory. */
static bool is_complete(const struct attempt_file *file, const struct attempt_file *complete)
{
    if (has_suffix(file->name, ".png"))
        return whole_png(file->data, file->bytes);
    return equal(file, complete) || (complete && same_text(file->data, complete->data));
}

static bool is_store(const char *name)
{
    return has_suffix(name, ".db");
}

/* SQLite's files beside a store that it could not write back; the next to open the store does so. */
static bool belongs_to_store(const struct attempt_files *files, const char *name)
{
    for (int i = 0; i < files->count; i++) {
        const char *store = files->items[i].name;
        if (is_store(store) && strncmp(name, store, strlen(store)) == 0 &&
            name[strlen(store)] == '-')
            return true;
    }
    return false;
}

static bool is_one(const char *answer)
{
    return answer && strcmp(answer, "ok") == 0;
}

/* SQLite's own opinion, after whatever recovery it makes. */
static bool store_is_sound(const struct bench *bench, const char *name)
{
    char path[MAX_LINE];
    sqlite3 *db = NULL;
    sqlite3_stmt *query = NULL;
    snprintf(path, sizeof path, "%s/%s", bench->place.folder, name);
    bool sound = sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL) == SQLITE_OK &&
                 sqlite3_prepare_v2(db, "PRAGMA integrity_check", -1, &query, NULL) == SQLITE_OK &&
                 sqlite3_step(query) == SQLITE_ROW &&
                 is_one((const char *)sqlite3_column_text(query, 0));
    sqlite3_finalize(query);
    sqlite3_close(db);
    return sound;
}

static bool same_line(const char *a, const char *b, const char *word)
{
    const char *in_a = strstr(a, word), *in_b = strstr(b, word);
    if (!in_a || !in_b)
        return in_a == in_b;
    char *line_a = strndup(in_a, strcspn(in_a, "\n")), *line_b = strndup(in_b, strcspn(in_b, "\n"));
    bool same = same_text(line_a, line_b);
    free(line_a);
    free(line_b);
    return same;
}

static bool same_results(const struct subject *subject, const struct attempt *a)
{
    const struct attempt *b = &subject->sound;
    if (subject->command->flags & REAL_RUN)
        return same_line(a->out, b->out, "  legal ") && same_line(a->out, b->out, "  results ");
    return same_text(a->out, b->out);
}

/* No failure makes a legal run an illegal one. */
static bool wrong_verdict(const struct subject *subject, const struct attempt *a)
{
    return strstr(subject->sound.out, "  legal       yes") && strstr(a->out, "  legal       no");
}

static int count(const char *text, const char *words)
{
    int found = 0;
    for (const char *at = text; (at = strstr(at, words)); at += strlen(words))
        found++;
    return found;
}

static const char *judge_files(const struct bench *bench, const struct subject *subject,
                               const struct attempt *a, bool done)
{
    for (int i = 0; i < a->files.count; i++) {
        const struct attempt_file *file = &a->files.items[i],
                                  *old = file_of(&subject->before, file->name),
                                  *new = file_of(&subject->sound.files, file->name);
        if (belongs_to_store(&a->files, file->name))
            continue;
        if (!old && !new)
            return is_store(file->name) ? "a store was left behind" : "a file was left behind";
        bool other_witness = a->code != 0 && subject->sound.code == 1 &&
                             strstr(a->err, ": error: ") && ends_in_line(file);
        if (!is_store(file->name) && !is_complete(file, new) && !other_witness &&
            (done || !equal(file, old)))
            return "a file is neither the old nor the complete one";
        if (is_store(file->name) && file->bytes > 0 && !store_is_sound(bench, file->name))
            return "a store is damaged";
    }
    for (int i = 0; i < subject->before.count; i++)
        if (!file_of(&a->files, subject->before.items[i].name))
            return "a file was lost";
    for (int i = 0; done && i < subject->sound.files.count; i++)
        if (!file_of(&a->files, subject->sound.files.items[i].name))
            return "a file was not written";
    return NULL;
}

static bool sanitizer_spoke(const char *text)
{
    return strstr(text, "Sanitizer") || strstr(text, "runtime error:");
}

/* SQLite takes a page that the disk does not give for a damaged one. */
static bool unreadable_store(const struct attempt *a)
{
    return a->code == 3 && strstr(a->err, "is a damaged trace store");
}

/* Why the end of an attempt is no good one; NULL: it is. */
static const char *judge(const struct bench *bench, const struct subject *subject,
                         const struct attempt *a)
{
    unsigned flags = subject->command->flags;
    int errors = count(a->err, ": error: ");
    bool done = a->code == subject->sound.code && same_results(subject, a) &&
                errors <= count(subject->sound.err, ": error: ");
    if (a->hung)
        return "it hangs";
    if (sanitizer_spoke(a->err))
        return "a sanitizer has a finding";
    if (a->signal)
        return "a signal ends it";
    if (a->survivors)
        return "a process was left behind";
    if (strstr(a->err, "its process did not end"))
        return "a rank waits for one that failed";
    if (wrong_verdict(subject, a))
        return "a legal run is called illegal";
    if (!done && errors == 0)
        return a->code == subject->sound.code ? "other results, and no error"
                                              : "no sentence says why";
    if (!done && a->code != 2 &&
        !(a->code == 1 && (flags & REAL_RUN || subject->sound.code == 1)) && !unreadable_store(a))
        return "an exit code of another meaning";
    if (!done && errors > 1 && !(flags & SEVERAL))
        return "several sentences for one failure";
    return judge_files(bench, subject, a, done);
}

/* ---- one command ----------------------------------------------------------------------------- */

static void show(const struct bench *bench, const struct attempt *a)
{
    size_t bytes;
    char *path = attempt_path(&bench->place, "trace"), *trace = attempt_read(path, &bytes);
    tap_note("exit code %d, signal %d; it printed:", a->code, a->signal);
    tap_note("%.2000s", a->err);
    tap_note("%.1000s", a->out);
    tap_note("the call that failed came from:");
    tap_note("%s", trace);
    free(trace);
    free(path);
}

/* Two runs of it make the same calls in the same order. */
static bool is_ordered(const struct subject *subject)
{
    return subject->sound.calls[INJECT_thread] == 0 && subject->sound.calls[INJECT_process] == 0;
}

/* Tells whether the call was the last of its kind that the command came to. */
static bool try_fault(struct bench *bench, struct subject *subject, int kind, uint64_t call,
                      bool lasting)
{
    char fault[64];
    struct attempt a;
    snprintf(fault, sizeof fault, "%s:%" PRIu64 "%s", kind_names[kind], call, lasting ? "+" : "");
    attempt(bench, subject, fault, &a);
    const char *complaint = judge(bench, subject, &a);
    a.failed ? bench->injected++ : bench->not_reached++;
    subject->injected += a.failed > 0;
    if (complaint && subject->complaints++ < MAX_COMPLAINTS)
        tap_note("%s, SWSIM_INJECT=%s: %s", subject->command->line, fault, complaint);
    if ((complaint && subject->complaints <= MAX_COMPLAINTS) || bench->only_call)
        show(bench, &a);
    bool was_last = a.calls[kind] == call;
    attempt_free(&a);
    return was_last;
}

static bool is_of_shard(struct bench *bench)
{
    return bench->attempts++ % bench->shards == bench->shard;
}

/* The call fails alone, then with all later ones. */
static void try_call(struct bench *bench, struct subject *subject, int kind, uint64_t call)
{
    if (!is_of_shard(bench))
        return;
    if (try_fault(bench, subject, kind, call, false) && is_ordered(subject))
        bench->same++;
    else
        try_fault(bench, subject, kind, call, true);
}

static void try_all_of_kind(struct bench *bench, struct subject *subject, int kind)
{
    for (uint64_t call = 1; call <= subject->sound.calls[kind]; call++)
        if (subject->repeats[kind] && subject->repeats[kind][call])
            bench->repeated++;
        else
            try_call(bench, subject, kind, call);
}

static int by_callers(const void *a, const void *b)
{
    const struct inject_stack *x = a, *y = b;
    if (x->kind != y->kind)
        return x->kind < y->kind ? -1 : 1;
    if (x->callers != y->callers)
        return x->callers < y->callers ? -1 : 1;
    return x->call < y->call ? -1 : x->call > y->call;
}

/* Of the calls with the same callers all between the first few and the last are repetitions. */
static void find_repeats(const struct bench *bench, struct subject *subject)
{
    struct attempt *sound = &subject->sound;
    if (bench->callers == 0)
        return;
    for (int kind = 0; kind < INJECT_KINDS; kind++)
        subject->repeats[kind] = calloc(sound->calls[kind] + 1, sizeof(bool));
    qsort(sound->stacks, sound->stack_count, sizeof *sound->stacks, by_callers);
    for (size_t first = 0, end; first < sound->stack_count; first = end) {
        const struct inject_stack *of = &sound->stacks[first];
        for (end = first; end < sound->stack_count && sound->stacks[end].kind == of->kind &&
                          sound->stacks[end].callers == of->callers;)
            end++;
        for (size_t i = first + (size_t)bench->callers - 1; i + 1 < end; i++)
            subject->repeats[of->kind][sound->stacks[i].call] = true;
    }
}

/* A few calls: the first fails alone, the second and all later ones together. */
static void try_some_of_kind(struct bench *bench, struct subject *subject, int kind)
{
    uint64_t calls = subject->sound.calls[kind],
             most = subject->command->flags & SLOW ? 1 : QUICK_CALLS;
    for (uint64_t i = 0; i < calls && i < most; i++) {
        uint64_t call = calls <= most ? i + 1 : 1 + (uint64_t)below(&bench->random, (int)calls);
        if (is_of_shard(bench))
            try_fault(bench, subject, kind, call, i % 2 == 1);
    }
}

static void try_drawn_of_kind(struct bench *bench, struct subject *subject, int kind)
{
    for (int64_t i = 0; i < bench->calls; i++)
        try_call(bench, subject, kind,
                 1 + (uint64_t)below(&bench->random, (int)subject->sound.calls[kind]));
}

static void try_kind(struct bench *bench, struct subject *subject, int kind)
{
    int64_t call = bench->only_call;
    if (call)
        try_fault(bench, subject, kind, (uint64_t)llabs(call), call < 0);
    else if (bench->calls == QUICK_CALLS)
        try_some_of_kind(bench, subject, kind);
    else if (bench->calls == 0 || subject->sound.calls[kind] <= (uint64_t)bench->calls)
        try_all_of_kind(bench, subject, kind);
    else
        try_drawn_of_kind(bench, subject, kind);
}

static double seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Every call, once and lasting, as if each attempt took as long as the command without a fault. */
static void say_plan(struct bench *bench, const struct subject *subject)
{
    double begin_s = seconds_now();
    struct attempt again;
    attempt(bench, (struct subject *)subject, "none", &again);
    double one_s = seconds_now() - begin_s;
    uint64_t attempts = 0;
    for (int kind = 0; kind < INJECT_KINDS; kind++)
        for (uint64_t call = 1; call <= subject->sound.calls[kind]; call++)
            attempts += !subject->repeats[kind] || !subject->repeats[kind][call] ? 2 : 0;
    bench->planned_s += one_s * (double)attempts;
    bench->planned += attempts;
    tap_note("%6" PRIu64 " attempts of %5.1f ms, %6.0f s: %s", attempts, 1e3 * one_s,
             one_s * (double)attempts, subject->command->line);
    for (int kind = 0; kind < INJECT_KINDS; kind++)
        tap_note("    %-8s %6" PRIu64, kind_names[kind], subject->sound.calls[kind]);
    attempt_free(&again);
}

static void try_command(struct bench *bench, const struct command *command)
{
    struct subject subject;
    prepare(bench, command, &subject);
    bench->place.stacks = bench->callers > 0;
    attempt(bench, &subject, "none", &subject.sound);
    bench->place.stacks = false;
    find_repeats(bench, &subject);
    if (bench->only_plan)
        say_plan(bench, &subject);
    for (int kind = 0; !bench->only_plan && kind < INJECT_KINDS; kind++)
        if (!bench->only_kind || strcmp(bench->only_kind, kind_names[kind]) == 0)
            try_kind(bench, &subject, kind);
    tap_ok(subject.complaints == 0, "%s: %" PRIu64 " faults", command->line, subject.injected);
    if (subject.complaints > MAX_COMPLAINTS)
        tap_note("%d complaints in all", subject.complaints);
    for (int kind = 0; kind < INJECT_KINDS; kind++)
        free(subject.repeats[kind]);
    attempt_free(&subject.sound);
    attempt_free_files(&subject.before);
}

static int64_t number(const char *name, int64_t usual)
{
    const char *text = getenv(name);
    return text ? strtoll(text, NULL, 10) : usual;
}

static const char *needed(const char *name, const char *usual)
{
    const char *text = getenv(name);
    return text ? text : usual;
}

static bool read_shard(struct bench *bench)
{
    const char *text = needed("SWSIM_SHARD", "1/1");
    bool read = sscanf(text, "%" SCNu64 "/%" SCNu64, &bench->shard, &bench->shards) == 2 &&
                bench->shard >= 1 && bench->shard <= bench->shards;
    bench->shard -= 1;
    return read;
}

/* Sanitizers' allocators come first in their programs, before any preloaded one. */
static bool is_sanitized(void)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    return true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
    return true;
#else
    return false;
#endif
#else
    return false;
#endif
}

int main(void)
{
    if (is_sanitized()) {
        tap_skip("a sanitizer's allocator cannot be made to fail");
        return tap_done();
    }
    struct bench bench = {
        .srcdir = needed("srcdir", "."),
        .swsim = needed("SWSIM", "./swsim"),
        .swrun = needed("SWRUN", "./swrun"),
        .swcheck = needed("SWCHECK", "./swcheck"),
        .libraries = needed("SWSIM_LIBRARY_USER", LIBRARY_USER),
        .random = {.seed = (uint64_t)number("SWSIM_SEED",
                                            getenv("SWSIM_LONG") ? (int64_t)time(NULL) : 1)},
        .calls = (int)number("SWSIM_CALLS", getenv("SWSIM_LONG") ? 0 : QUICK_CALLS),
        .callers = (int)number("SWSIM_CALLERS", 0),
        .only_call = number("SWSIM_CALL", 0),
        .only_kind = getenv("SWSIM_KIND"),
        .only_plan = getenv("SWSIM_INJECT_PLAN"),
    };
    const char *only = getenv("SWSIM_COMMAND");
    if (!read_shard(&bench)) {
        fprintf(stderr, "t_injected: SWSIM_SHARD is K/N, the K-th of N shards\n");
        return 2;
    }
    tap_note("SWSIM_SEED=%" PRIu64, bench.random.seed);
    attempt_place_open(&bench.place, needed("SWSIM_INJECT_LIBRARY", INJECT_LIBRARY));
    make_files(&bench);
    for (int i = 0; i < COMMANDS; i++)
        if (!only || strstr(commands[i].line, only))
            try_command(&bench, &commands[i]);
    tap_note("%" PRIu64 " faults injected; %" PRIu64 " lasting ones are the single ones; %" PRIu64
             " runs ended before the call",
             bench.injected, bench.same, bench.not_reached);
    if (bench.callers > 0)
        tap_note("%" PRIu64 " calls are left out: others have the same callers", bench.repeated);
    if (bench.only_plan)
        tap_note("%" PRIu64 " attempts, %.0f s at most", bench.planned, bench.planned_s);
    attempt_free_files(&bench.runs);
    attempt_free_files(&bench.witness);
    attempt_free_files(&bench.certificate);
    attempt_place_close(&bench.place);
    return tap_done();
}
