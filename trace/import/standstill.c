/* SPDX-License-Identifier: Apache-2.0 */
/* standstill.c - see standstill.h. */
#include "standstill.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "value.h"

#include "base/array.h"
#include "base/assert_index.h"
#include "base/sort.h"

/* ---- texts ----------------------------------------------------------------------------------- */

/* The number that ends the name of a file, in front of its suffixes: 3 of "stacks/rank_3.txt"; -1. */
static int64_t number_of_name(const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    size_t end = strlen(name);
    while (end > 0 && !isdigit((unsigned char)name[end - 1]))
        end--;
    size_t begin = end;
    while (begin > 0 && isdigit((unsigned char)name[begin - 1]))
        begin--;
    return end > begin && end - begin <= 9 ? strtoll(name + begin, NULL, 10) : -1;
}

/* A file of the program itself: none of PyTorch's, of Python's own, or of an installed package. */
static bool is_own_file(const char *path)
{
    static const char *const folders[] = {"torch/", "-packages/", "lib/python", "<", "importlib"};
    static const char *const files[] = {"threading.py",  "queue.py",      "selectors.py",
                                        "socket.py",     "connection.py", "runpy.py",
                                        "process.py",    "popen_fork.py", "subprocess.py",
                                        "contextlib.py", "functools.py",  "asyncio.py"};
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
        if (strstr(path, folders[i]))
            return false;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        if (strcmp(name, files[i]) == 0)
            return false;
    return strstr(name, ".py") != NULL;
}

/* The text between two places without what a terminal or a plan would act on; NULL without memory. */
static const char *stand_text(struct arena *arena, const char *from, size_t length)
{
    char *text = arena_printf(arena, "%.*s", (int)(length < 120 ? length : 120), from);
    for (char *at = text; at && *at; at++)
        *at = *at >= ' ' && *at < 127 ? *at : '?';
    return text;
}

/* ---- stacks ---------------------------------------------------------------------------------- */

/* A frame of the thread under way: the first is the innermost. */
static bool add_frame(struct arena *arena, struct stand_stack *stack, const char *function,
                      size_t length, const char *path, int64_t line)
{
    const char *slash = strrchr(path, '/');
    if (!stack->frame)
        stack->frame = stand_text(arena, function, length);
    if (stack->line || !is_own_file(path))
        return stack->frame != NULL;
    const char *name =
        stand_text(arena, slash ? slash + 1 : path, strlen(slash ? slash + 1 : path));
    stack->line = name ? arena_printf(arena, "%s:%" PRId64, name, line) : NULL;
    stack->function = stand_text(arena, function, length);
    return stack->frame && stack->line && stack->function;
}

/* "    step (train.py:41)", "    poll (libc.so.6)" of py-spy. */
static bool read_spy_frame(struct arena *arena, struct stand_stack *stack, char *text)
{
    char *open = strrchr(text, '('), *close = open ? strchr(open, ')') : NULL;
    if (!close || open == text)
        return true;
    *close = 0;
    char *colon = strrchr(open, ':');
    const int64_t line = colon ? strtoll(colon + 1, NULL, 10) : 0;
    if (colon)
        *colon = 0;
    size_t length = (size_t)(open - text);
    while (length > 0 && text[length - 1] == ' ')
        length--;
    return add_frame(arena, stack, text, length, open + 1, line);
}

/* "#3  0x00007f in ncclGroupEnd () from libnccl.so.2", "#4  main (argc=1) at train.c:41" of gdb. */
static bool read_gdb_frame(struct arena *arena, struct stand_stack *stack, char *text)
{
    char *in = strstr(text, " in "), *name = in ? in + 4 : text + strcspn(text, " ");
    name += strspn(name, " ");
    const size_t length = strcspn(name, " (");
    char *at = strstr(name, " at ");
    char *colon = at ? strrchr(at, ':') : NULL;
    const int64_t line = colon ? strtoll(colon + 1, NULL, 10) : 0;
    if (colon)
        *colon = 0;
    return length == 0 || add_frame(arena, stack, name, length, at ? at + 4 : "", line);
}

/* Starts a thread: `Thread 7 (idle): "MainThread"` of py-spy, `Thread 1 (Thread 0x7f (LWP 7) "python"):` of gdb. */
static void begin_thread(struct arena *arena, struct stand_stack *stack, const char *text)
{
    const char *quote = strchr(text, '"'), *end = quote ? strchr(quote + 1, '"') : NULL;
    stack->frame = stack->line = stack->function = NULL;
    stack->thread = end ? stand_text(arena, quote + 1, (size_t)(end - quote - 1)) : "main";
}

/* True if it is the process's first: py-spy calls it MainThread, gdb numbers it 1. */
static bool is_main_thread(const char *text)
{
    return strstr(text, "\"MainThread\"") || strncmp(text, "Thread 1 (", 10) == 0;
}

/* The main thread, or else the first one, of a text. */
static bool read_stack_lines(struct arena *arena, char *text, struct stand_stack *out)
{
    struct stand_stack thread = {0}, found = {0};
    bool in_main = false, has_main = false, ok = true;
    for (char *line = text, *next; ok && line; line = next) {
        next = strchr(line, '\n');
        if (next)
            *next++ = 0;
        if (strncmp(line, "Thread ", 7) == 0) {
            begin_thread(arena, &thread, line);
            in_main = is_main_thread(line);
            ok = thread.thread != NULL;
        } else if (line[0] == '#' && isdigit((unsigned char)line[1])) {
            thread.thread = thread.thread ? thread.thread : "main";
            ok = read_gdb_frame(arena, &thread, line + 1);
        } else if (strncmp(line, "    ", 4) == 0) {
            ok = !thread.thread || read_spy_frame(arena, &thread, line + 4);
        }
        if (!thread.thread || (has_main && !in_main))
            continue;
        has_main |= in_main;
        if (in_main || !found.thread || strcmp(found.thread, thread.thread) == 0)
            found = thread;
    }
    out->thread = found.thread;
    out->frame = found.frame;
    out->line = found.line;
    out->function = found.function;
    return ok;
}

/* `py-spy dump --json`: a list of threads. */
static bool read_stack_list(struct arena *arena, const struct value *root, struct stand_stack *out)
{
    const struct value *main = NULL;
    for (size_t i = 0; i < value_count(root); i++) {
        const char *name = value_text(value_get(root->items[i], "thread_name"));
        if (!main || (name && strcmp(name, "MainThread") == 0))
            main = root->items[i];
    }
    const char *name = value_text(value_get(main, "thread_name"));
    const struct value *frames = value_get(main, "frames");
    out->thread = stand_text(arena, name ? name : "main", name ? strlen(name) : 4);
    bool ok = out->thread != NULL;
    for (size_t i = 0; ok && i < value_count(frames); i++) {
        const struct value *frame = frames->items[i];
        const char *function = value_text(value_get(frame, "name")),
                   *file = value_text(value_get(frame, "filename"));
        if (function)
            ok = add_frame(arena, out, function, strlen(function), file ? file : "",
                           value_int(value_get(frame, "line"), 0));
    }
    return ok;
}

/* ---- files ----------------------------------------------------------------------------------- */

/* All of a file as text. */
static enum status stand_load(struct bytes *bytes, char **out, struct diag *diag)
{
    size_t count = 0, cap = 0, got = 0;
    char *text = NULL;
    enum status status;
    do {
        status =
            count > VALUE_MAX_BYTES
                ? diag_error(diag, STATUS_INPUT, "%s: it is longer than 256 MiB", bytes_name(bytes))
            : !ARRAY_RESERVE(text, count + 65536, cap)
                ? diag_no_memory(diag)
                : bytes_read(bytes, text + count, cap - count - 1, &got, diag);
        count += status == STATUS_OK ? got : 0;
    } while (status == STATUS_OK && got > 0);
    if (status != STATUS_OK) {
        free(text);
        return status;
    }
    text[count] = 0;
    *out = text;
    return STATUS_OK;
}

static enum status stand_parse(const char *path, const char *text, size_t length,
                               struct arena *arena, struct value **out, struct diag *diag)
{
    struct bytes *bytes;
    enum status status = bytes_open_memory(path, text, length, &bytes, diag);
    if (status != STATUS_OK)
        return status;
    status = value_read_json(bytes, arena, out, diag);
    bytes_close(bytes);
    return status;
}

static struct stand_comm *find_stand_comm(const struct standstill *in, const char *name,
                                          bool completed)
{
    for (size_t i = 0; i < in->comm_count; i++)
        if (in->comms[i].completed == completed && strcmp(in->comms[i].name, name) == 0)
            return &in->comms[i];
    return NULL;
}

static struct stand_comm *add_stand_comm(struct arena *arena, struct standstill *out,
                                         const char *name, int64_t size, bool completed)
{
    struct stand_comm *comm = find_stand_comm(out, name, completed);
    if (comm)
        return comm;
    if (!ARENA_GROW(arena, out->comms, out->comm_count, out->comm_cap))
        return NULL;
    comm = &out->comms[out->comm_count++];
    *comm = (struct stand_comm){.name = stand_text(arena, name, strlen(name)),
                                .title = "",
                                .size = size,
                                .completed = completed};
    return comm->name ? comm : NULL;
}

static struct stand_member *find_stand_member(const struct stand_comm *comm, int64_t rank)
{
    for (size_t i = comm->count; i-- > 0;)
        if (comm->members[i].rank == rank)
            return &comm->members[i];
    return NULL;
}

/* The member of a rank, maybe a new one; NULL without memory. */
static struct stand_member *stand_add_member(struct arena *arena, struct stand_comm *comm,
                                             int64_t rank)
{
    struct stand_member *found = find_stand_member(comm, rank);
    if (found)
        return found;
    if (!ARENA_GROW(arena, comm->members, comm->count, comm->cap))
        return NULL;
    comm->members[comm->count] = (struct stand_member){.rank = rank, .host = ""};
    return &comm->members[comm->count++];
}

static bool set_process(struct arena *arena, struct stand_member *member, const struct value *from,
                        const char *host_key)
{
    const char *host = value_text(value_get(from, host_key));
    member->host = host ? stand_text(arena, host, strlen(host)) : "";
    member->pid = value_int(value_get(from, "pid"), -1);
    member->device = value_int(value_get(from, "cuda_dev"), -1);
    return member->host != NULL;
}

/* A kind of collectives, maybe a new one; -1 without memory. */
static int stand_kind(struct arena *arena, struct standstill *out, const char *name)
{
    for (size_t i = 0; i < out->kind_count; i++)
        if (strcmp(out->kinds[i], name) == 0)
            return (int)i;
    if (out->kind_count == STAND_KINDS)
        return STAND_KINDS - 1;
    if (out->kind_count == STAND_KINDS - 1)
        name = "collective";
    const char *kept = stand_text(arena, name, strlen(name));
    if (kept)
        out->kinds[out->kind_count++] = kept;
    return kept ? (int)out->kind_count - 1 : -1;
}

static bool stand_count(struct arena *arena, struct standstill *out, struct stand_member *member,
                        const char *name, int64_t count)
{
    const int kind = name ? stand_kind(arena, out, name) : 0;
    if (name && kind >= 0 && count > member->counts[kind] && count <= INT64_C(1) << 40)
        member->counts[kind] = count;
    return kind >= 0;
}

static bool read_ras_comm(struct arena *arena, const struct value *from, struct standstill *out)
{
    const char *hash = value_text(value_get(from, "hash"));
    const struct value *ranks = value_get(from, "ranks"),
                       *missing = value_get(from, "missing_ranks");
    struct stand_comm *comm = add_stand_comm(arena, out, hash ? hash : "unnamed",
                                             value_int(value_get(from, "size"), 0), false);
    for (size_t i = 0; comm && i < value_count(ranks) + value_count(missing); i++) {
        const bool silent = i >= value_count(ranks);
        const struct value *rank =
            silent ? missing->items[i - value_count(ranks)] : ranks->items[i];
        const struct value *status = value_get(rank, "status"),
                           *counts = value_get(rank, "collective_counts");
        struct stand_member *member =
            stand_add_member(arena, comm, value_int(value_get(rank, "rank"), (int64_t)i));
        if (!member || !set_process(arena, member, rank, "host"))
            return false;
        member->silent = silent;
        member->dead = value_int(value_get(status, "considered_dead"), 0) != 0;
        member->error = value_int(value_get(status, "async_error"), 0);
        member->aborted = value_int(value_get(status, "abort_flag"), 0) != 0;
        for (size_t k = 0; counts && counts->kind == VALUE_DICT && k + 1 < counts->count; k += 2)
            if (!stand_count(arena, out, member, value_text(counts->items[k]),
                             value_int(counts->items[k + 1], 0)))
                return false;
    }
    return comm != NULL;
}

static bool read_inspector_line(struct arena *arena, const struct value *line,
                                struct standstill *out)
{
    const struct value *header = value_get(line, "header"), *coll = value_get(line, "coll_perf");
    const char *id = value_text(value_get(header, "id")),
               *title = value_text(value_get(header, "comm_name"));
    if (!id || !coll)
        return true; /* of a message */
    struct stand_comm *comm =
        add_stand_comm(arena, out, id, value_int(value_get(header, "n_ranks"), 0), true);
    struct stand_member *member =
        comm ? stand_add_member(arena, comm, value_int(value_get(header, "rank"), 0)) : NULL;
    if (!member ||
        (!*member->host && !set_process(arena, member, value_get(line, "metadata"), "hostname")))
        return false;
    if (!*comm->title && title && strcmp(title, "unknown") != 0)
        comm->title = arena_printf(arena, " (%s)", stand_text(arena, title, strlen(title)));
    return comm->title && stand_count(arena, out, member, value_text(value_get(coll, "coll")),
                                      value_int(value_get(coll, "coll_sn"), -1) + 1);
}

/* A process that hangs, or was ended, has written its last line in part. */
static enum status read_inspector(const char *path, char *text, struct arena *arena,
                                  struct standstill *out, struct diag *diag)
{
    enum status status = STATUS_OK;
    struct diag quiet;
    diag_init(&quiet);
    for (char *line = text, *next; status == STATUS_OK && line && *line; line = next) {
        struct arena own; /* of the line: what is kept is copied */
        struct value *value;
        next = strchr(line, '\n');
        const size_t length = next ? (size_t)(next - line) : strlen(line);
        next = next ? next + 1 : NULL;
        if (strspn(line, " \t\r") >= length)
            continue;
        arena_init(&own, 0);
        status = stand_parse(path, line, length, &own, &value, next ? diag : &quiet);
        if (status == STATUS_OK && !read_inspector_line(arena, value, out))
            status = diag_no_memory(diag);
        if (status == STATUS_INPUT && !next && line > text) {
            diag_warn(diag, "%s: its last line is cut off, and left out", path);
            status = STATUS_OK;
        } else if (status == STATUS_INPUT && !next) {
            status = diag_error(diag, STATUS_INPUT, "%s: its only line is cut off", path);
        }
        arena_fini(&own);
    }
    diag_fini(&quiet);
    return status;
}

static enum status read_stack(const char *path, enum format format, char *text, struct arena *arena,
                              struct standstill *out, struct diag *diag)
{
    struct stand_stack stack = {.file = path, .rank = number_of_name(path)};
    struct value *root = NULL;
    enum status status = format == FORMAT_STACK_JSON
                             ? stand_parse(path, text, strlen(text), arena, &root, diag)
                             : STATUS_OK;
    if (status != STATUS_OK)
        return status;
    if (!(root ? read_stack_list(arena, root, &stack) : read_stack_lines(arena, text, &stack)) ||
        !ARENA_GROW(arena, out->stacks, out->stack_count, out->stack_cap))
        return diag_no_memory(diag);
    if (!stack.frame)
        return diag_error(diag, STATUS_INPUT, "%s: no thread of it has a frame", path);
    out->stacks[out->stack_count++] = stack;
    return STATUS_OK;
}

enum status standstill_read(struct bytes *bytes, enum format format, struct arena *arena,
                            struct standstill *out, struct diag *diag)
{
    const char *path = bytes_name(bytes);
    char *text;
    struct value *root;
    enum status status = stand_load(bytes, &text, diag);
    if (status != STATUS_OK)
        return status;
    if (format == FORMAT_INSPECTOR) {
        status = read_inspector(path, text, arena, out, diag);
    } else if (format == FORMAT_RAS) {
        status = stand_parse(path, text, strlen(text), arena, &root, diag);
        const struct value *comms = status == STATUS_OK ? value_get(root, "communicators") : NULL;
        for (size_t i = 0; status == STATUS_OK && i < value_count(comms); i++)
            if (!read_ras_comm(arena, comms->items[i], out))
                status = diag_no_memory(diag);
    } else {
        status = read_stack(path, format, text, arena, out, diag);
    }
    free(text);
    return status;
}

/* ---- what they tell ---------------------------------------------------------------------------- */

const struct stand_stack *standstill_stack(const struct standstill *standstill, int64_t rank)
{
    for (size_t i = 0; i < standstill->stack_count; i++)
        if (standstill->stacks[i].rank == rank)
            return &standstill->stacks[i];
    return NULL;
}

static bool same_stand(const struct stand_stack *a, const struct stand_stack *b)
{
    return equal_text(a->line, b->line) && equal_text(a->function, b->function) &&
           equal_text(a->frame, b->frame);
}

static int by_stack_rank(const void *left, const void *right)
{
    const struct stand_stack *a = left, *b = right;
    return compare_then(compare_i64(a->rank, b->rank), strcmp(a->file, b->file));
}

/* "rank 2", "3 of them: ranks 0, 1, 3", by the stacks that are like the first. */
static const char *name_stands(struct arena *arena, const struct stand_stack *stacks, size_t count,
                               size_t first, bool *told)
{
    enum { SHOWN = 8 };
    size_t like = 0;
    const char *text = "";
    for (size_t i = first; text && i < count; i++) {
        if (told[i] || !same_stand(&stacks[i], &stacks[first]))
            continue;
        told[i] = true;
        if (like++ < SHOWN)
            text = stacks[i].rank >= 0
                       ? arena_printf(arena, "%s%s%" PRId64, text, like > 1 ? ", " : "",
                                      stacks[i].rank)
                       : arena_printf(arena, "%s%s%s", text, like > 1 ? ", " : "", stacks[i].file);
    }
    if (text && like > SHOWN)
        text = arena_printf(arena, "%s and %zu more", text, like - SHOWN);
    return text ? arena_printf(arena, "rank%s %s", like == 1 ? "" : "s", text) : NULL;
}

static bool tell_stacks(const struct standstill *standstill, struct arena *arena, struct diag *diag)
{
    const size_t count = standstill->stack_count;
    struct stand_stack *stacks = ARENA_ARRAY(arena, count + 1, struct stand_stack);
    bool *told = ARENA_ARRAY(arena, count + 1, bool);
    if (!stacks || !told)
        return false;
    if (count > 0)
        memcpy(stacks, standstill->stacks, count * sizeof *stacks);
    memset(told, 0, count + 1);
    SORT(stacks, count, by_stack_rank);
    for (size_t i = 0; i < count; i++) {
        const struct stand_stack *stack = &stacks[i];
        if (told[i])
            continue;
        const char *ranks = name_stands(arena, stacks, count, i, told);
        if (!ranks)
            return false;
        if (stack->line)
            diag_note(diag, "%s: %s at %s in %s, innermost %s", ranks, stack->thread, stack->line,
                      stack->function, stack->frame);
        else
            diag_note(diag, "%s: %s in %s", ranks, stack->thread, stack->frame);
    }
    return true;
}

/* The least and the most calls of a kind that members who answer have. */
static void stand_range(const struct stand_comm *comm, size_t kind, int64_t *least, int64_t *most)
{
    *least = INT64_MAX;
    *most = 0;
    for (size_t i = 0; i < comm->count; i++)
        if (!comm->members[i].silent) {
            *least = min_i64(*least, comm->members[i].counts[kind]);
            *most = max_i64(*most, comm->members[i].counts[kind]);
        }
}

/* Members of which a test holds: "ranks 0, 1, 3"; "" where it holds of none. NULL without memory. */
static const char *name_members(struct arena *arena, const struct stand_comm *comm,
                                const bool *chosen)
{
    enum { SHOWN = 8 };
    const char *text = "";
    size_t count = 0;
    for (size_t i = 0; text && i < comm->count; i++)
        if (chosen[i] && count++ < SHOWN)
            text = arena_printf(arena, "%s%s%" PRId64, text, count > 1 ? ", " : "",
                                comm->members[i].rank);
    if (text && count > SHOWN)
        text = arena_printf(arena, "%s and %zu more", text, count - SHOWN);
    return text && count > 0 ? arena_printf(arena, "rank%s %s", count == 1 ? "" : "s", text) : text;
}

/* Who has launched a collective that it has not completed, where RAS counts those and the Inspector these. */
static bool tell_stand_calls(const struct standstill *standstill, const struct stand_comm *comm,
                             struct arena *arena, struct diag *diag)
{
    const struct stand_comm *done = find_stand_comm(standstill, comm->name, true);
    bool *chosen = ARENA_ARRAY(arena, comm->count + 1, bool);
    for (size_t k = 0; chosen && done && k < standstill->kind_count; k++) {
        int64_t least, most;
        stand_range(comm, k, &least, &most);
        for (size_t i = 0; i < comm->count; i++) {
            const struct stand_member *own = &comm->members[i],
                                      *over = find_stand_member(done, own->rank);
            chosen[i] = over && !own->silent && own->counts[k] == most && over->counts[k] < most;
        }
        const char *ranks = name_members(arena, comm, chosen);
        if (!ranks)
            return false;
        if (*ranks)
            diag_note(diag,
                      "%s of communicator %s%s launched %s number %" PRId64
                      ", and did not complete it (or it is too small for the Inspector's log)",
                      ranks, comm->name, done->title, standstill->kinds[k], most);
    }
    return chosen != NULL;
}

static void tell_member(const struct standstill *standstill, const struct stand_comm *comm,
                        const struct stand_member *member, struct diag *diag)
{
    char who[256];
    snprintf(who, sizeof who,
             "rank %" PRId64 " of communicator %.64s%.80s (process %" PRId64 " on %.64s)",
             member->rank, comm->name, comm->title, member->pid, member->host);
    if (member->silent)
        diag_warn(diag, "%s %s: look at its process", who,
                  member->dead ? "is considered dead" : "does not answer");
    if (member->error)
        diag_warn(diag, "%s has the asynchronous error %" PRId64, who, member->error);
    if (member->aborted)
        diag_warn(diag, "%s was aborted", who);
    for (size_t k = 0; k < standstill->kind_count && !member->silent; k++) {
        int64_t least, most;
        stand_range(comm, k, &least, &most);
        if (member->counts[k] < most)
            diag_warn(diag, "%s has %s %s %" PRId64 " times, others %" PRId64, who,
                      comm->completed ? "completed" : "launched", standstill->kinds[k],
                      member->counts[k], most);
    }
}

/* What all members have completed. */
static bool tell_completed(const struct standstill *standstill, const struct stand_comm *comm,
                           struct arena *arena, struct diag *diag)
{
    const char *text = "";
    for (size_t k = 0; text && k < standstill->kind_count; k++) {
        int64_t least, most;
        stand_range(comm, k, &least, &most);
        if (most > 0 && least == most)
            text = arena_printf(arena, "%s%s %s %" PRId64 " times", text, *text ? "," : "",
                                standstill->kinds[k], most);
    }
    if (text && *text)
        diag_note(diag, "all %zu ranks of communicator %s%s that have a log have completed%s",
                  comm->count, comm->name, comm->title, text);
    return text != NULL;
}

/* Ranks of which the Inspector wrote nothing. */
static bool tell_unlogged(const struct stand_comm *comm, struct arena *arena, struct diag *diag)
{
    const size_t size =
        comm->completed && comm->size > 0 && comm->size <= PLAN_MAX_RANKS ? (size_t)comm->size : 0;
    struct stand_comm missing = {.members = ARENA_ARRAY(arena, size + 1, struct stand_member)};
    bool *chosen = ARENA_ARRAY(arena, size + 1, bool);
    if (!missing.members || !chosen)
        return false;
    for (size_t i = 0; i < size; i++)
        missing.members[missing.count++].rank = (int64_t)i;
    for (size_t i = 0; i < size; i++)
        chosen[i] = true;
    for (size_t i = 0; i < comm->count; i++)
        if (comm->members[i].rank >= 0 && comm->members[i].rank < (int64_t)size)
            chosen[comm->members[i].rank] = false;
    const char *ranks = name_members(arena, &missing, chosen);
    if (ranks && *ranks)
        diag_warn(diag, "%s of communicator %s%s: no log of the Inspector is there", ranks,
                  comm->name, comm->title);
    return ranks != NULL;
}

bool standstill_tell(const struct standstill *standstill, struct arena *arena, struct diag *diag)
{
    for (size_t c = 0; c < standstill->comm_count; c++) {
        const struct stand_comm *comm = &standstill->comms[c];
        for (size_t i = 0; i < comm->count; i++)
            tell_member(standstill, comm, &comm->members[i], diag);
        if (!(comm->completed ? tell_completed(standstill, comm, arena, diag) &&
                                    tell_unlogged(comm, arena, diag)
                              : tell_stand_calls(standstill, comm, arena, diag)))
            return false;
    }
    return tell_stacks(standstill, arena, diag);
}

/* ---- a plan of counts alone -------------------------------------------------------------------- */

/* A process of the job, which is a rank of the plan. */
struct stand_process {
    const struct stand_member *member;
    int64_t rank; /* in the largest communicator that it is in */
    int64_t size;
};

static bool same_process(const struct stand_member *a, const struct stand_member *b)
{
    return a == b || (a->pid == b->pid && a->pid >= 0 && a->device == b->device &&
                      strcmp(a->host, b->host) == 0);
}

/* The Inspector names no device: where a process has several ranks of a communicator, their numbers tell them apart. */
static void tell_devices_apart(struct stand_comm *comm)
{
    for (size_t i = 0; i < comm->count; i++)
        for (size_t k = 0; k < i; k++)
            if (comm->members[i].pid == comm->members[k].pid &&
                strcmp(comm->members[i].host, comm->members[k].host) == 0) {
                comm->members[i].device = comm->members[i].rank;
                comm->members[k].device = comm->members[k].rank;
            }
}

static size_t find_process(const struct stand_process *processes, size_t count,
                           const struct stand_member *member)
{
    size_t at = 0;
    while (at < count && !same_process(processes[at].member, member))
        at++;
    return at;
}

static int by_process_rank(const void *left, const void *right)
{
    const struct stand_process *a = left, *b = right;
    return compare_then(compare_i64(b->size, a->size), compare_i64(a->rank, b->rank));
}

static bool list_stand_processes(const struct standstill *standstill, bool completed,
                                 struct arena *arena, struct stand_process **out, size_t *count)
{
    size_t most = 0;
    for (size_t c = 0; c < standstill->comm_count; c++)
        most += standstill->comms[c].count;
    struct stand_process *processes = ARENA_ARRAY(arena, most + 1, struct stand_process);
    *count = 0;
    for (size_t c = 0; processes && c < standstill->comm_count; c++) {
        const struct stand_comm *comm = &standstill->comms[c];
        if (completed)
            tell_devices_apart(&standstill->comms[c]);
        for (size_t i = 0; i < comm->count && comm->completed == completed; i++) {
            const size_t at = find_process(processes, *count, &comm->members[i]);
            if (at == *count)
                processes[(*count)++] =
                    (struct stand_process){&comm->members[i], comm->members[i].rank, comm->size};
            else if (comm->size > processes[at].size)
                processes[at] =
                    (struct stand_process){&comm->members[i], comm->members[i].rank, comm->size};
        }
    }
    if (processes)
        SORT(processes, *count, by_process_rank);
    *out = processes;
    return processes != NULL;
}

/* The calls behind the last that all members have, of each kind. One that does not answer lacks the last. */
static bool add_stand_calls(struct job *job, const struct standstill *standstill,
                            const struct stand_comm *comm, int c,
                            const struct stand_process *processes, size_t count)
{
    enum { AHEAD_MOST = 1000 };
    struct plan *plan = &job->plan;
    ASSERT_INDEX(c, plan->comm_count);
    const char *stream_name = arena_printf(&plan->arena, "nccl.%s", plan->comms[c].name);
    const int stream = stream_name ? names_intern(&plan->streams, &plan->arena, stream_name) : -1;
    bool silent = false;
    for (size_t i = 0; i < comm->count; i++)
        silent |= comm->members[i].silent;
    for (size_t k = 0; stream >= 0 && k < standstill->kind_count; k++) {
        int64_t least, most;
        stand_range(comm, k, &least, &most);
        least = max_i64(least - (silent && least > 0), most - AHEAD_MOST);
        for (size_t i = 0; i < comm->count; i++) {
            const struct stand_member *member = &comm->members[i];
            struct job_thread *thread = job->threads[find_process(processes, count, member)];
            const int64_t last = comm->completed ? most : member->silent ? 0 : member->counts[k];
            for (int64_t number = least + 1; number <= last; number++) {
                struct host_op *op = job_add_op(job, thread, OP_COLLECTIVE);
                if (!op)
                    return false;
                op->name = standstill->kinds[k];
                op->at = arena_printf(&plan->arena, "#%" PRId64, number);
                op->comm = c;
                op->stream = stream;
                if (!op->at)
                    return false;
            }
        }
    }
    return stream >= 0;
}

static bool add_stand_members(struct job *job, const struct standstill *standstill, bool completed,
                              const struct stand_process *processes, size_t count)
{
    struct plan *plan = &job->plan;
    bool ok = (plan->comms = ARENA_ARRAY(&plan->arena, standstill->comm_count + 1, struct comm));
    for (size_t c = 0; ok && c < standstill->comm_count; c++) {
        const struct stand_comm *from = &standstill->comms[c];
        if (from->completed != completed)
            continue;
        struct comm *comm = &plan->comms[plan->comm_count++];
        *comm = (struct comm){.name = arena_printf(&plan->arena, "comm%s", from->name),
                              .declared = true,
                              .members = ARENA_ARRAY(&plan->arena, from->count + 1, int)};
        if (!comm->name || !comm->members)
            return false;
        for (size_t i = 0; i < from->count; i++)
            comm->members[comm->member_count++] =
                (int)find_process(processes, count, &from->members[i]);
        sort_int(comm->members, comm->member_count);
        ok = add_stand_calls(job, standstill, from, (int)plan->comm_count - 1, processes, count);
    }
    return ok;
}

enum status standstill_threads(const struct standstill *standstill, const char *name,
                               struct job *job, struct diag *diag)
{
    struct plan *plan = &job->plan;
    struct stand_process *processes;
    size_t count;
    bool completed = true;
    for (size_t c = 0; c < standstill->comm_count; c++)
        completed &= standstill->comms[c].completed;
    if (standstill->kind_count == 0)
        return diag_error(
            diag, STATUS_INPUT,
            "stacks tell where a job stands, not what it called: expected dumps of the flight "
            "recorder, or the counts of ncclras, beside them");
    if (!list_stand_processes(standstill, completed, &job->arena, &processes, &count))
        return diag_no_memory(diag);
    if (count > PLAN_MAX_RANKS)
        return diag_error(diag, STATUS_INPUT, "found %zu processes, expected at most %d", count,
                          PLAN_MAX_RANKS);
    plan->ranks = (int)count;
    plan->name = arena_strdup(&plan->arena, name);
    plan->about =
        completed
            ? "logs of NCCL's Inspector, of collectives that are over: what one rank has "
              "completed, "
              "all have launched; in which of them a rank stands only ncclras or dumps of the "
              "flight recorder tell"
            : "counts of ncclras; hypotheses: each communicator has a stream of its own, the "
              "host waits for no operation, and of several kinds of collectives the order is not "
              "known; calls that all have launched are left out";
    bool ok = plan->name != NULL;
    for (size_t r = 0; ok && r < count; r++) {
        struct job_thread *thread = job_add_thread(job, (int)r, "main");
        ok = thread != NULL;
        if (thread)
            thread->is_rank = true;
    }
    ok = ok && add_stand_members(job, standstill, completed, processes, count) &&
         (completed ? plan_add_unrecorded(plan, "calls that are not over",
                                          "the Inspector logs those that are")
                    : plan_add_unrecorded(plan, "the order of calls", "ncclras counts them"));
    return ok ? STATUS_OK : diag_no_memory(diag);
}
