/* SPDX-License-Identifier: Apache-2.0 */
/* flight_calls.c - see flight_calls.h: entries one by one, their groups, their batches; then what rings have lost. */
#include "flight_calls.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/assert_index.h"
#include "base/sort.h"

static bool flight_is_completed(const struct value *entry);

/*
 * What differs between the dumps of one backend and another: who belongs to a process group, which
 * calls have come to their end, and which are not recorded.
 *
 * NCCL lists the members of each group in `pg_config` and moves `state` to completed. Gloo (PyTorch 2.9) does neither: its
 * `pg_config` is empty, `state` stays scheduled and `retired` tells the end; and its sends and receives have no
 * entries. Source: FlightRecorder.hpp and
 * ProcessGroupGloo.cpp of PyTorch 2.9.
 */

static bool flight_is_member(const struct flight_group *group, int64_t rank)
{
    for (size_t i = 0; i < group->rank_count; i++)
        if (group->ranks[i] == rank)
            return true;
    return false;
}

/* Each rank once; most lists are ascending. */
static void add_member(struct flight_group *group, int64_t rank)
{
    enum { MOST = 1 << 14 };
    const size_t count = group->rank_count;
    const bool is_last = count == 0 || rank > group->ranks[count - 1];
    if (rank >= 0 && count < MOST && (is_last || !flight_is_member(group, rank)))
        group->ranks[group->rank_count++] = rank;
}

/* ---- dumps that do not name the members --------------------------------------------------------- */

static bool is_of_group(const struct value *entry, const char *name)
{
    const struct value *named = value_get(entry, "process_group");
    const char *text = value_text(value_count(named) > 0 ? named->items[0] : named);
    return text && strcmp(text, name) == 0;
}

/* True if the rank has called the group. *completed becomes true if one of these calls is over. */
static bool flight_calls_has_called(const struct flight_rank *rank, const char *name,
                                    bool *completed)
{
    const struct value *entries = value_get(rank->root, "entries");
    bool found = false;
    for (size_t i = 0; i < value_count(entries); i++)
        if (is_of_group(entries->items[i], name)) {
            found = true;
            *completed |= flight_is_completed(entries->items[i]);
        }
    return found;
}

/* Sets the ranks of `group`, whose name is set, from "[0, 1]", or a list. Where these are empty: the ranks that called it,
   if one of its calls has come to its end, else all dumps. False without memory. */
static bool flight_read_members(const struct flight_job *job, const struct value *ranks,
                                struct flight_group *group)
{
    const char *text = value_text(ranks);
    const size_t most = (text ? strlen(text) : value_count(ranks)) + job->rank_count;
    group->ranks = ARENA_ARRAY(job->arena, most + 1, int64_t);
    if (!group->ranks)
        return false;
    for (size_t i = 0; i < value_count(ranks); i++)
        add_member(group, value_int(ranks->items[i], -1));
    while (text && *text) {
        char *end = NULL;
        if (isdigit((unsigned char)*text))
            add_member(group, strtoll(text, &end, 10));
        text = end ? end : text + 1;
    }
    if (group->rank_count == 0) {
        /* Where a call of the group has come to its end all members have called it; else all dumps may be its members. */
        bool completed = false;
        for (size_t i = 0; i < job->rank_count; i++)
            if (flight_calls_has_called(&job->ranks[i], group->name, &completed))
                add_member(group, job->ranks[i].rank);
        group->is_guessed = !completed;
        for (size_t i = 0; !completed && i < job->rank_count; i++)
            group->ranks[i] = job->ranks[i].rank;
        group->rank_count = completed ? group->rank_count : job->rank_count;
    }
    return true;
}

/* ---- what gloo records ------------------------------------------------------------------------- */

static bool is_of_gloo(const struct value *entry)
{
    static const char word[] = "gloo:";
    const char *name = value_text(value_get(entry, "profiling_name"));
    return name && strncmp(name, word, sizeof word - 1) == 0;
}

/* True if the call of this entry is over. */
static bool flight_is_completed(const struct value *entry)
{
    const char *state = value_text(value_get(entry, "state"));
    return (state && strcmp(state, "completed") == 0) ||
           (is_of_gloo(entry) && value_int(value_get(entry, "retired"), 0) != 0);
}

static bool flight_is_started(const struct value *entry)
{
    const char *state = value_text(value_get(entry, "state"));
    return state && strcmp(state, "started") == 0;
}

bool flight_lacks_messages(const struct flight_rank *rank)
{
    const struct value *entries = value_get(rank->root, "entries");
    for (size_t i = 0; i < value_count(entries); i++)
        if (is_of_gloo(entries->items[i]))
            return true;
    return false;
}

bool flight_is_dump(const struct value *root)
{
    return value_get(root, "entries") || value_get(root, "pg_config");
}

int64_t flight_rank(const struct value *root, const char *file)
{
    int64_t rank = value_int(value_get(root, "rank"), -1);
    const char *slash = strrchr(file, '/');
    const char *digits = strstr(slash ? slash : file, "rank_");
    if (rank < 0 && digits && isdigit((unsigned char)digits[5]))
        rank = strtoll(digits + 5, NULL, 10);
    return rank;
}

int flight_find_rank(const struct flight_job *job, int64_t rank)
{
    size_t low = SORT_FIRST(i, 0, job->rank_count, job->ranks[i].rank >= rank);
    return low < job->rank_count && job->ranks[low].rank == rank ? (int)low : -1;
}

/* ---- process groups -------------------------------------------------------------------------- */

static bool is_same_group(const struct flight_group *a, const struct flight_group *b)
{
    return strcmp(a->name, b->name) == 0 && a->rank_count == b->rank_count &&
           memcmp(a->ranks, b->ranks, a->rank_count * sizeof *a->ranks) == 0;
}

/* The group's place in job->groups, where it is added if it is new; -1 without memory. */
static int intern_group(struct flight_job *job, const struct flight_group *group)
{
    for (size_t i = 0; i < job->group_count; i++)
        if (is_same_group(&job->groups[i], group))
            return (int)i;
    if (!ARENA_GROW(job->arena, job->groups, job->group_count, job->group_cap))
        return -1;
    job->groups[job->group_count] = *group;
    return (int)job->group_count++;
}

/* The rank's own table of groups reaches this one; false without memory. */
static bool know_group(const struct flight_job *job, struct flight_rank *rank, int group)
{
    while (rank->group_count <= (size_t)group) {
        if (!ARENA_GROW(job->arena, rank->last_call, rank->group_count, rank->group_cap))
            return false;
        rank->last_call[rank->group_count++] = 0;
    }
    return true;
}

/* A group of this name that the rank has called; -1. */
static int find_called(const struct flight_job *job, const struct flight_rank *rank,
                       const char *name)
{
    for (size_t g = 0; g < rank->group_count; g++)
        if (rank->last_call[g] && strcmp(job->groups[g].name, name) == 0)
            return (int)g;
    return -1;
}

static int refuse_stranger(struct flight_job *job, const struct flight_rank *rank,
                           const struct flight_group *group)
{
    job->status = diag_error(job->diag, STATUS_INPUT,
                             "%s: rank %lld calls process group '%.100s', to which it does not "
                             "belong: is it the dump of another rank?",
                             rank->file, (long long)rank->rank, group->name);
    return -1;
}

/* The group of an entry: [name, description], or the name alone; -1: job->status, or memory. */
static int flight_calls_group_of(struct flight_job *job, struct flight_rank *rank,
                                 const struct value *root, const struct value *entry)
{
    const struct value *named = value_get(entry, "process_group");
    const char *name = value_text(value_count(named) > 0 ? named->items[0] : named);
    struct flight_group group = {.name = name ? name : "default"};
    int found = find_called(job, rank, group.name);
    if (found >= 0)
        return found;
    const struct value *config = value_get(value_get(root, "pg_config"), group.name);
    group.description = value_text(value_get(config, "desc"));
    if (!group.description && value_count(named) > 1)
        group.description = value_text(named->items[1]);
    if (!flight_read_members(job, value_get(config, "ranks"), &group))
        return -1;
    if (!flight_is_member(&group, rank->rank))
        return refuse_stranger(job, rank, &group);
    found = intern_group(job, &group);
    return found >= 0 && know_group(job, rank, found) ? found : -1;
}

/* ---- sizes ----------------------------------------------------------------------------------- */

/* By PyTorch's name of the type, "Float" or "torch.float32". ELEMENT_NONE, of one byte: another type, or none is told. */
static enum element flight_calls_element(const char *dtype)
{
    static const struct {
        const char *name;
        enum element element;
    } types[] = {{"Float8_e4m3", ELEMENT_F8E4M3},
                 {"Float8_e5m2", ELEMENT_F8E5M2},
                 {"Float8", ELEMENT_NONE},
                 {"Float", ELEMENT_F32},
                 {"Half", ELEMENT_F16},
                 {"BFloat16", ELEMENT_BF16},
                 {"Double", ELEMENT_F64},
                 {"Long", ELEMENT_I64},
                 {"Int", ELEMENT_I32},
                 {"Short", ELEMENT_I16},
                 {"Byte", ELEMENT_U8},
                 {"Char", ELEMENT_I8},
                 {"Bool", ELEMENT_BOOL},
                 /* in Python's spelling */
                 {"float8_e4m3", ELEMENT_F8E4M3},
                 {"float8_e5m2", ELEMENT_F8E5M2},
                 {"float32", ELEMENT_F32},
                 {"float16", ELEMENT_F16},
                 {"bfloat16", ELEMENT_BF16},
                 {"float64", ELEMENT_F64},
                 {"int64", ELEMENT_I64},
                 {"int32", ELEMENT_I32},
                 {"int16", ELEMENT_I16},
                 {"uint8", ELEMENT_U8},
                 {"int8", ELEMENT_I8},
                 {"bool", ELEMENT_BOOL}};
    static const char prefix[] = "torch.";
    if (dtype && strncmp(dtype, prefix, sizeof prefix - 1) == 0)
        dtype += sizeof prefix - 1;
    for (size_t i = 0; dtype && i < sizeof types / sizeof *types; i++)
        if (strncmp(dtype, types[i].name, strlen(types[i].name)) == 0)
            return types[i].element;
    return ELEMENT_NONE;
}

/* Of all tensors of a list of shapes; 0 where they would be more than can be. */
static int64_t flight_calls_tensor_bytes(const struct value *shapes, const struct value *dtypes)
{
    int64_t sum = 0;
    for (size_t i = 0; i < value_count(shapes); i++) {
        const struct value *shape = shapes->items[i];
        const char *dtype = i < value_count(dtypes) ? value_text(dtypes->items[i]) : NULL;
        int64_t bytes = element_bytes(flight_calls_element(dtype));
        for (size_t k = 0; k < value_count(shape); k++) {
            const int64_t extent = value_int(shape->items[k], 0);
            if (extent < 0 || __builtin_mul_overflow(bytes, extent, &bytes))
                return 0;
        }
        if (__builtin_add_overflow(sum, bytes, &sum))
            return 0;
    }
    return sum;
}

static int64_t entry_bytes(const struct value *entry, const char *which)
{
    char sizes[32], dtypes[32];
    snprintf(sizes, sizeof sizes, "%s_sizes", which);
    snprintf(dtypes, sizeof dtypes, "%s_dtypes", which);
    return flight_calls_tensor_bytes(value_get(entry, sizes), value_get(entry, dtypes));
}

/* ---- one entry ------------------------------------------------------------------------------- */

/* A kind whose ranks all have inputs of one size; the sizes of others may differ, and are not compared. */
static const struct kind_word {
    const char *part;
    enum collective_kind kind;
    bool same_size;
} kind_words[] = {
    {"all_reduce", COLLECTIVE_ALL_REDUCE, true},
    {"allreduce", COLLECTIVE_ALL_REDUCE, true},
    {"reduce_scatter", COLLECTIVE_REDUCE_SCATTER, true},
    {"all_gather", COLLECTIVE_ALL_GATHER, true},
    {"allgather", COLLECTIVE_ALL_GATHER, true},
    {"broadcast", COLLECTIVE_BROADCAST, true},
    {"barrier", COLLECTIVE_BARRIER, true},
    {"all_to_all", COLLECTIVE_ALL_TO_ALL, false},
    {"alltoall", COLLECTIVE_ALL_TO_ALL, false},
    {"gather", COLLECTIVE_ALL_TO_ALL, true},
    {"reduce", COLLECTIVE_ALL_REDUCE, true},
    {"", COLLECTIVE_ALL_TO_ALL, false},
};

static const struct kind_word *flight_calls_kind_of(const char *name)
{
    const struct kind_word *word = kind_words;
    while (!strstr(name, word->part))
        word++;
    return word;
}

/* "nccl:all_reduce" without its backend. */
static const char *operation(const struct value *entry)
{
    const char *name = value_text(value_get(entry, "profiling_name"));
    const char *colon = name ? strchr(name, ':') : NULL;
    return colon ? colon + 1 : name ? name : "unknown";
}

/* The peer of "send 0->1" and "recv 1<-0", which are ranks in the group. */
static int64_t flight_calls_peer_of(const struct flight_group *group, const char *name)
{
    const char *arrow = strstr(name, "->");
    arrow = arrow ? arrow : strstr(name, "<-");
    if (!arrow || !isdigit((unsigned char)arrow[2]))
        return -1;
    const long long peer = strtoll(arrow + 2, NULL, 10);
    return (size_t)peer < group->rank_count ? group->ranks[peer] : -1;
}

static bool flight_calls_is_message(const struct value *entry)
{
    const char *name = operation(entry);
    return strncmp(name, "send", 4) == 0 || strncmp(name, "recv", 4) == 0;
}

static bool ends_batch(const char *name)
{
    static const char word[] = "coalesced";
    const size_t length = strlen(name);
    return length >= strlen(word) && strcmp(name + length - strlen(word), word) == 0;
}

static struct flight_part read_part(const struct flight_group *group, const struct value *entry)
{
    struct flight_part part = {.name = operation(entry), .peer = -1};
    part.is_message = flight_calls_is_message(entry);
    if (part.is_message) {
        part.send = strncmp(part.name, "send", 4) == 0;
        part.peer = flight_calls_peer_of(group, part.name);
        const struct value *types = value_get(entry, part.send ? "input_dtypes" : "output_dtypes");
        part.bytes = entry_bytes(entry, part.send ? "input" : "output");
        if (value_count(types) == 1)
            part.element = flight_calls_element(value_text(types->items[0]));
        return part;
    }
    const struct kind_word *word = flight_calls_kind_of(part.name);
    part.kind = word->kind;
    part.bytes = word->same_size ? entry_bytes(entry, "input") : 0;
    /* Of the first tensor, which a rank that only gives or takes has on one side. */
    const struct value *dtypes = value_get(entry, "input_dtypes");
    if (value_count(dtypes) == 0)
        dtypes = value_get(entry, "output_dtypes");
    const char *dtype = value_count(dtypes) > 0 ? value_text(dtypes->items[0]) : NULL;
    part.dtype = dtype && *dtype ? dtype : NULL;
    return part;
}

/* ---- calls ----------------------------------------------------------------------------------- */

static bool flight_calls_add_part(struct flight_job *job, struct flight_call *call,
                                  const struct value *entry)
{
    if (!ARENA_GROW(job->arena, call->parts, call->part_count, call->part_cap))
        return false;
    call->parts[call->part_count++] = read_part(&job->groups[call->group], entry);
    return true;
}

/* The batch that the call belongs to: the last call of its group, if that has the same number; NULL: it begins a new
   one. */
static struct flight_call *flight_calls_batch_of(const struct flight_rank *rank,
                                                 const struct flight_call *call)
{
    const int last = rank->last_call[call->group];
    struct flight_call *batch = last ? &rank->calls[last - 1] : NULL;
    return batch && call->number >= 0 && batch->number == call->number &&
                   batch->is_message == call->is_message
               ? batch
               : NULL;
}

/* A batch is launched by its end: `left_out` says until then that it is open. */
static bool add_to_batch(struct flight_job *job, struct flight_call *batch,
                         const struct value *entry)
{
    if (!ends_batch(operation(entry))) {
        batch->left_out = true;
        return flight_calls_add_part(job, batch, entry);
    }
    batch->left_out = false;
    batch->is_batch = true;
    batch->completed = flight_is_completed(entry);
    batch->started = flight_is_started(entry);
    return true;
}

/* A batch without an end is open only until the next call of its group. */
static bool flight_calls_add_call(struct flight_job *job, struct flight_rank *rank,
                                  const struct flight_call *call)
{
    int *last = &rank->last_call[call->group];
    if (*last && rank->calls[*last - 1].part_count > 1)
        rank->calls[*last - 1].left_out = false;
    if (!ARENA_GROW(job->arena, rank->calls, rank->call_count, rank->call_cap))
        return false;
    rank->calls[rank->call_count++] = *call;
    *last = (int)rank->call_count;
    return flight_calls_add_part(job, &rank->calls[rank->call_count - 1], call->entry);
}

static bool add_entry(struct flight_job *job, struct flight_rank *rank, const struct value *root,
                      const struct value *entry)
{
    struct flight_call call = {.group = flight_calls_group_of(job, rank, root, entry),
                               .entry = entry};
    call.is_message = value_int(value_get(entry, "is_p2p"), flight_calls_is_message(entry)) != 0;
    call.number =
        value_int(value_get(entry, call.is_message ? "p2p_seq_id" : "collective_seq_id"), -1);
    call.completed = flight_is_completed(entry);
    call.started = flight_is_started(entry);
    /* the end of a batch whose messages the ring has lost */
    call.left_out = call.is_message && !flight_calls_is_message(entry);
    if (call.group < 0)
        return false;
    rank->is_ring |= !rank->last_call[call.group] && call.number > 1; /* they begin at 1 */
    struct flight_call *batch = flight_calls_batch_of(rank, &call);
    return batch ? add_to_batch(job, batch, entry) : flight_calls_add_call(job, rank, &call);
}

static bool read_rank(struct flight_job *job, const struct flight_dump *dump,
                      struct flight_rank *rank)
{
    const struct value *entries = value_get(dump->root, "entries");
    const size_t count = value_count(entries);
    for (size_t i = 0; i < count; i++)
        if (!add_entry(job, rank, dump->root, entries->items[i]))
            return false;
    rank->is_ring |= count > 0 && value_int(value_get(entries->items[0], "record_id"), 0) > 0;
    job->has_ring |= rank->is_ring;
    return true;
}

/* ---- what rings have lost -------------------------------------------------------------------- */

/* The oldest number of a rank's collectives in a group that it has; INT64_MAX: it has none. */
static int64_t oldest(const struct flight_rank *rank, int group)
{
    if ((size_t)group < rank->group_count && rank->last_call[group])
        for (size_t i = 0; i < rank->call_count; i++)
            if (!rank->calls[i].is_message && rank->calls[i].group == group)
                return rank->calls[i].number;
    return INT64_MAX;
}

static void find_first_number(const struct flight_job *job, int g)
{
    ASSERT_INDEX(g, job->group_count);
    struct flight_group *group = &job->groups[g];
    for (size_t i = 0; i < group->rank_count; i++) {
        const int member = flight_find_rank(job, group->ranks[i]);
        if (member < 0)
            continue;
        const int64_t first = oldest(&job->ranks[member], g);
        if (first == INT64_MAX)
            group->is_forgotten |= job->ranks[member].is_ring;
        else if (first > group->first_number)
            group->first_number = first;
    }
}

/* True if a rank may have lost what this call would be compared with. A ring without any call of a group has
   lost those that are over; which messages it has lost cannot be told. */
static bool is_lost(const struct flight_job *job, const struct flight_call *call)
{
    const struct flight_group *group = &job->groups[call->group];
    if (call->is_message)
        return job->has_ring && call->completed;
    return (group->is_forgotten && call->completed) ||
           (call->number >= 0 && call->number < group->first_number);
}

/* ---- what is over ---------------------------------------------------------------------------- */

/*
 * Where a job stands, its plan begins at the last moment when all had met: calls that are over on all ranks, with the
 * same arguments, and messages whose two sides are over, cannot be waited for any more. The last collective of each
 * group that is over is told, so that every rank has a place, unless a member has no dump.
 */

struct over_call {
    struct flight_call *call;
    int place; /* job->ranks */
};

static int over_by_number(const void *left, const void *right)
{
    const struct over_call *a = left, *b = right;
    return compare_then(compare_int(a->call->group, b->call->group),
                        compare_then(compare_i64(a->call->number, b->call->number),
                                     compare_int(a->place, b->place)));
}

bool flight_same_call(const struct flight_call *a, const struct flight_call *b)
{
    if (a->part_count != b->part_count)
        return false;
    for (size_t i = 0; i < a->part_count; i++) {
        const struct flight_part *x = &a->parts[i], *y = &b->parts[i];
        if (!equal_text(x->name, y->name) || x->bytes != y->bytes ||
            !equal_text(x->dtype, y->dtype))
            return false;
    }
    return true;
}

/* The calls of one number of a group. */
static bool are_over(const struct flight_job *job, const struct over_call *calls, size_t count)
{
    const struct flight_group *group = &job->groups[calls[0].call->group];
    size_t members = 0;
    for (size_t i = 0; i < group->rank_count; i++)
        members += flight_find_rank(job, group->ranks[i]) >= 0;
    for (size_t i = 0; i < count; i++)
        if (!calls[i].call->completed || calls[i].call->number < 0 ||
            !flight_same_call(calls[i].call, calls[0].call))
            return false;
    return count == members;
}

static void mark_collectives(struct flight_job *job, struct over_call *calls, size_t count)
{
    SORT(calls, count, over_by_number);
    for (size_t first = 0, end; first < count; first = end) {
        const struct flight_call *call = calls[first].call;
        for (end = first + 1; end < count && calls[end].call->group == call->group &&
                              calls[end].call->number == call->number;)
            end++;
        if (!are_over(job, calls + first, end - first))
            continue;
        if (end - first == job->groups[call->group].rank_count)
            job->groups[call->group].last_over = call->number;
        for (size_t i = first; i < end; i++)
            calls[i].call->over = true;
    }
}

/* A message as one of its two sides has it. */
struct over_message {
    int group;
    int64_t from, to;
    bool send;
    int64_t at; /* in the order of its side */
    struct flight_call *call;
};

static int over_by_way(const void *left, const void *right)
{
    const struct over_message *a = left, *b = right;
    const int way =
        compare_then(compare_int(a->group, b->group),
                     compare_then(compare_i64(a->from, b->from), compare_i64(a->to, b->to)));
    return compare_then(way,
                        compare_then(compare_int(a->send, b->send), compare_i64(a->at, b->at)));
}

/* How many messages from `first` on, up to `end`, are over on their side. */
static size_t count_over(const struct over_message *messages, size_t first, size_t end)
{
    size_t at = first;
    while (at < end && messages[at].call->over)
        at++;
    return at - first;
}

/* The messages of one way: as many are over as on both sides. True if a call is found not to be. */
static bool settle_way(struct over_message *messages, size_t first, size_t middle, size_t end)
{
    const size_t received = count_over(messages, first, middle);
    const size_t sent = count_over(messages, middle, end);
    bool changed = false;
    for (size_t i = first; i < end; i++) {
        const size_t least = first == middle                    ? sent
                             : middle == end || received < sent ? received
                                                                : sent;
        if (i - (i < middle ? first : middle) < least || !messages[i].call->over)
            continue;
        messages[i].call->over = false;
        changed = true;
    }
    return changed;
}

static bool settle_ways(struct over_message *messages, size_t count)
{
    bool changed = false;
    for (size_t first = 0, end; first < count; first = end) {
        struct over_message key = messages[first];
        size_t middle = first;
        for (end = first; end < count && messages[end].group == key.group &&
                          messages[end].from == key.from && messages[end].to == key.to;
             end++)
            middle += !messages[end].send;
        changed |= settle_way(messages, first, middle, end);
    }
    return changed;
}

static void mark_messages(struct over_message *messages, size_t count)
{
    enum { ROUNDS = 100 };
    int round = 0;
    for (size_t i = 0; i < count; i++)
        messages[i].call->over = messages[i].call->completed;
    SORT(messages, count, over_by_way);
    while (settle_ways(messages, count) && round < ROUNDS)
        round++;
    for (size_t i = 0; round == ROUNDS && i < count; i++)
        messages[i].call->over = false;
}

static void flight_list_messages(struct flight_rank *rank, struct over_message *out, size_t *count)
{
    for (size_t i = 0; i < rank->call_count; i++) {
        struct flight_call *call = &rank->calls[i];
        for (size_t k = 0; call->is_message && !call->left_out && k < call->part_count; k++) {
            const struct flight_part *part = &call->parts[k];
            out[*count] = (struct over_message){.group = call->group,
                                                .from = part->send ? rank->rank : part->peer,
                                                .to = part->send ? part->peer : rank->rank,
                                                .send = part->send,
                                                .at = (int64_t)*count,
                                                .call = call};
            ++*count;
        }
    }
}

/* False without memory. */
static bool find_over(struct flight_job *job)
{
    size_t calls = 0, parts = 0, open = 0, messages = 0, collectives = 0;
    for (size_t g = 0; g < job->group_count; g++)
        job->groups[g].last_over = -1;
    for (size_t r = 0; r < job->rank_count; r++)
        for (size_t i = 0; i < job->ranks[r].call_count; i++) {
            const struct flight_call *call = &job->ranks[r].calls[i];
            calls++;
            parts += call->part_count;
            open += !call->completed && !call->left_out;
        }
    if (open == 0)
        return true; /* it does not stand */
    struct over_call *list = malloc((calls + 1) * sizeof *list);
    struct over_message *sides = malloc((parts + 1) * sizeof *sides);
    for (size_t r = 0; list && sides && r < job->rank_count; r++) {
        flight_list_messages(&job->ranks[r], sides, &messages);
        for (size_t i = 0; i < job->ranks[r].call_count; i++) {
            struct flight_call *call = &job->ranks[r].calls[i];
            if (!call->is_message && !call->left_out)
                list[collectives++] = (struct over_call){call, (int)r};
        }
    }
    if (list && sides) {
        mark_collectives(job, list, collectives);
        mark_messages(sides, messages);
    }
    for (size_t i = 0; list && i < collectives; i++)
        list[i].call->over &= list[i].call->number != job->groups[list[i].call->group].last_over;
    for (size_t r = 0; r < job->rank_count; r++)
        for (size_t i = 0; i < job->ranks[r].call_count; i++)
            job->over_count += job->ranks[r].calls[i].over;
    const bool ok = list && sides;
    free(list);
    free(sides);
    return ok;
}

const struct flight_call *flight_open_call(const struct flight_rank *rank, int group)
{
    for (size_t i = 0; i < rank->call_count; i++) {
        const struct flight_call *call = &rank->calls[i];
        const bool asked = group < 0 || (call->group == group && !call->is_message);
        if (asked && !call->completed && !call->left_out)
            return call;
    }
    return NULL;
}

/* True if the file is one of PyTorch's, or of Python's own. */
static bool is_library(const char *file)
{
    static const char *const words[] = {
        "torch/", "torchrec/", "/dist-packages/", "/site-packages/", "<", "contextlib.py", "??"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strstr(file, words[i]))
            return true;
    return false;
}

const char *flight_line(const struct flight_call *call, struct arena *arena)
{
    const struct value *frames = value_get(call->entry, "frames"), *frame = NULL;
    for (size_t i = 0; i < value_count(frames); i++) {
        const char *file = value_text(value_get(frames->items[i], "filename"));
        if (file && (!frame || !is_library(file)))
            frame = frames->items[i];
        if (file && !is_library(file))
            break;
    }
    const char *file = value_text(value_get(frame, "filename"));
    const char *slash = file ? strrchr(file, '/') : NULL;
    return file ? arena_printf(arena, "%.150s:%" PRId64, slash ? slash + 1 : file,
                               value_int(value_get(frame, "line"), 0))
                : NULL;
}

/* ---- all dumps ------------------------------------------------------------------------------- */

static int flight_calls_by_rank(const void *left, const void *right)
{
    const struct flight_dump *a = left, *b = right;
    return compare_i64(a->rank, b->rank);
}

/* In the order of the ranks. */
static enum status sort_dumps(struct flight_dump *dumps, size_t count, struct diag *diag)
{
    size_t entries = 0;
    for (size_t i = 0; i < count; i++) {
        if (dumps[i].rank < 0)
            dumps[i].rank = (int64_t)i;
        entries += value_count(value_get(dumps[i].root, "entries"));
    }
    SORT(dumps, count, flight_calls_by_rank);
    for (size_t i = 1; i < count; i++)
        if (dumps[i].rank == dumps[i - 1].rank)
            return diag_error(diag, STATUS_INPUT,
                              "%s and %s do not belong together: both are of rank %lld",
                              dumps[i - 1].file, dumps[i].file, (long long)dumps[i].rank);
    return entries > 0
               ? STATUS_OK
               : diag_error(diag, STATUS_INPUT, "%s: the dump has no entries", dumps[0].file);
}

enum status flight_read(const struct flight_dump *dumps, size_t count, struct arena *arena,
                        struct flight_job *out, struct diag *diag)
{
    struct flight_job job = {.arena = arena, .rank_count = count, .diag = diag};
    struct flight_dump *sorted = ARENA_ARRAY(arena, count, struct flight_dump);
    job.ranks = ARENA_ARRAY(arena, count, struct flight_rank);
    if (!sorted || !job.ranks)
        return diag_no_memory(diag);
    memcpy(sorted, dumps, count * sizeof *dumps);
    enum status status = sort_dumps(sorted, count, diag);
    if (status != STATUS_OK)
        return status;
    for (size_t i = 0; i < count; i++)
        job.ranks[i] = (struct flight_rank){
            .file = sorted[i].file, .root = sorted[i].root, .rank = sorted[i].rank};
    for (size_t i = 0; i < count; i++)
        if (!read_rank(&job, &sorted[i], &job.ranks[i]))
            return job.status != STATUS_OK ? job.status : diag_no_memory(diag);
    for (size_t g = 0; g < job.group_count; g++)
        find_first_number(&job, (int)g);
    for (size_t r = 0; r < job.rank_count; r++)
        for (size_t i = 0; i < job.ranks[r].call_count; i++) {
            struct flight_call *call = &job.ranks[r].calls[i];
            call->left_out = call->left_out || is_lost(&job, call);
        }
    if (!find_over(&job))
        return diag_no_memory(diag);
    *out = job;
    return STATUS_OK;
}
