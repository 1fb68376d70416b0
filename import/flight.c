/* flight.c - see flight.h. Process groups become communicators first; then every rank becomes a thread. */
#include "flight.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

struct group {
    const char *key; /* as entries name it */
    int64_t *ranks;  /* of the job, by rank in the group */
    size_t rank_count;
    int64_t first_seq; /* the oldest collective that all members still have */
};

struct flight {
    struct flight_dump *dumps;
    size_t count;
    const struct flight_options *options;
    struct plan *plan;
    struct group *groups; /* as plan->comms */
    size_t group_cap, comm_cap, op_cap;
    bool is_ring; /* some dump does not begin at its first entry */
};

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

/* ---- entries --------------------------------------------------------------------------------- */

static size_t entry_count(const struct flight_dump *dump)
{
    return value_count(value_get(dump->root, "entries"));
}

static const struct value *entry_at(const struct flight_dump *dump, size_t i)
{
    return value_get(dump->root, "entries")->items[i];
}

/* The key of an entry's process group: [name, description], or the name alone. */
static const char *group_key(const struct value *entry)
{
    const struct value *group = value_get(entry, "process_group");
    const char *key = value_text(value_count(group) > 0 ? group->items[0] : group);
    return key ? key : "default";
}

static bool is_p2p(const struct value *entry)
{
    return value_int(value_get(entry, "is_p2p"), 0) != 0;
}

/* "nccl:all_reduce" without its backend. */
static const char *operation(const struct value *entry)
{
    const char *name = value_text(value_get(entry, "profiling_name"));
    const char *colon = name ? strchr(name, ':') : NULL;
    return colon ? colon + 1 : name ? name : "unknown";
}

/* ---- process groups -------------------------------------------------------------------------- */

static int find_group(const struct flight *flight, const char *key)
{
    for (size_t i = 0; i < flight->plan->comm_count; i++)
        if (strcmp(flight->groups[i].key, key) == 0)
            return (int)i;
    return -1;
}

/* The ranks of a group: "[0, 1]" or a list; all where nothing says which. */
static bool read_ranks(struct flight *flight, const struct value *config, struct group *group)
{
    const struct value *ranks = value_get(config, "ranks");
    const char *text = value_text(ranks);
    const size_t most = text ? strlen(text) : value_count(ranks) + flight->count;
    group->ranks = ARENA_ARRAY(&flight->plan->arena, most + 1, int64_t);
    if (!group->ranks)
        return false;
    for (size_t i = 0; i < value_count(ranks); i++)
        group->ranks[group->rank_count++] = value_int(ranks->items[i], -1);
    while (text && *text) {
        char *end = NULL;
        if (isdigit((unsigned char)*text))
            group->ranks[group->rank_count++] = strtoll(text, &end, 10);
        text = end ? end : text + 1;
    }
    for (size_t i = 0; group->rank_count == 0 && i < flight->count; i++)
        group->ranks[i] = flight->dumps[i].rank;
    group->rank_count = group->rank_count ? group->rank_count : flight->count;
    return true;
}

/* The rank in the plan: the place of its dump; -1: there is no dump of it. */
static int plan_rank(const struct flight *flight, int64_t rank)
{
    for (size_t i = 0; i < flight->count; i++)
        if (flight->dumps[i].rank == rank)
            return (int)i;
    return -1;
}

static int by_value(const void *left, const void *right)
{
    const int a = *(const int *)left, b = *(const int *)right;
    return (a > b) - (a < b);
}

static bool add_group(struct flight *flight, const char *key, const struct value *config)
{
    struct plan *plan = flight->plan;
    struct group group = {.key = key};
    struct comm comm = {.declared = true, .name = arena_printf(&plan->arena, "pg%s", key)};
    if (!read_ranks(flight, config, &group))
        return false;
    comm.members = ARENA_ARRAY(&plan->arena, group.rank_count, int);
    if (!comm.name || !comm.members ||
        !arena_grow(&plan->arena, (void **)&plan->comms, plan->comm_count, &flight->comm_cap,
                    sizeof comm) ||
        !arena_grow(&plan->arena, (void **)&flight->groups, plan->comm_count, &flight->group_cap,
                    sizeof group))
        return false;
    for (size_t i = 0; i < group.rank_count; i++) {
        const int rank = plan_rank(flight, group.ranks[i]);
        if (rank >= 0)
            comm.members[comm.member_count++] = rank;
    }
    qsort(comm.members, comm.member_count, sizeof *comm.members, by_value);
    flight->groups[plan->comm_count] = group;
    plan->comms[plan->comm_count++] = comm;
    return true;
}

/* The oldest collective of a dump in a group; -1: it has none. */
static int64_t oldest(const struct flight_dump *dump, const char *key)
{
    for (size_t i = 0; i < entry_count(dump); i++)
        if (!is_p2p(entry_at(dump, i)) && strcmp(group_key(entry_at(dump, i)), key) == 0)
            return value_int(value_get(entry_at(dump, i), "collective_seq_id"), -1);
    return -1;
}

/* Every group that an entry names. */
static bool add_groups(struct flight *flight)
{
    for (size_t d = 0; d < flight->count; d++) {
        const struct flight_dump *dump = &flight->dumps[d];
        for (size_t i = 0; i < entry_count(dump); i++) {
            const char *key = group_key(entry_at(dump, i));
            if (find_group(flight, key) < 0 &&
                !add_group(flight, key, value_get(value_get(dump->root, "pg_config"), key)))
                return false;
        }
        flight->is_ring |=
            entry_count(dump) > 0 && value_int(value_get(entry_at(dump, 0), "record_id"), 0) > 0;
    }
    for (size_t g = 0; g < flight->plan->comm_count; g++)
        for (size_t d = 0; d < flight->count; d++) {
            const int64_t first = oldest(&flight->dumps[d], flight->groups[g].key);
            if (first > flight->groups[g].first_seq)
                flight->groups[g].first_seq = first;
        }
    return true;
}

/* ---- sizes ----------------------------------------------------------------------------------- */

static int64_t element_bytes(const char *dtype)
{
    static const struct {
        const char *name;
        int64_t bytes;
    } sizes[] = {{"Float8", 1}, {"Float", 4}, {"Half", 2}, {"BFloat16", 2},
                 {"Double", 8}, {"Long", 8},  {"Int", 4},  {"Short", 2},
                 {"Byte", 1},   {"Char", 1},  {"Bool", 1}};
    for (size_t i = 0; dtype && i < sizeof sizes / sizeof *sizes; i++)
        if (strncmp(dtype, sizes[i].name, strlen(sizes[i].name)) == 0)
            return sizes[i].bytes;
    return 1;
}

/* Of all tensors of a list of shapes; 0 where they would be more than can be. */
static int64_t tensor_bytes(const struct value *shapes, const struct value *dtypes)
{
    int64_t sum = 0;
    for (size_t i = 0; i < value_count(shapes); i++) {
        const struct value *shape = shapes->items[i];
        const char *dtype = i < value_count(dtypes) ? value_text(dtypes->items[i]) : NULL;
        int64_t bytes = element_bytes(dtype);
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
    return tensor_bytes(value_get(entry, sizes), value_get(entry, dtypes));
}

/* ---- operations ------------------------------------------------------------------------------ */

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
    {"reduce", COLLECTIVE_ALL_REDUCE, true},
};

static const struct kind_word *kind_of(const char *name)
{
    static const struct kind_word other = {"", COLLECTIVE_ALL_TO_ALL, false};
    for (size_t i = 0; i < sizeof kind_words / sizeof *kind_words; i++)
        if (strstr(name, kind_words[i].part))
            return &kind_words[i];
    return &other;
}

static struct host_op *add_op(struct flight *flight, struct host_thread *thread, enum op_kind kind)
{
    if (!arena_grow(&flight->plan->arena, (void **)&thread->ops, thread->op_count, &flight->op_cap,
                    sizeof *thread->ops))
        return NULL;
    struct host_op *op = &thread->ops[thread->op_count++];
    *op = (struct host_op){.kind = kind, .stream = -1, .graph = -1, .object = -1, .comm = -1};
    op->work.comm = op->work.root = -1;
    return op;
}

static bool add_collective(struct flight *flight, struct host_op *op, const struct value *entry)
{
    const char *name = operation(entry);
    const struct kind_word *kind = kind_of(name);
    op->name = arena_strdup(&flight->plan->arena, name);
    op->collective = op->work.collective = kind->kind;
    op->bytes = kind->same_size ? entry_bytes(entry, "input") : 0;
    return op->name != NULL;
}

/* The peer of "send 0->1" and "recv 1<-0", by its rank in the plan; -1: none, or without a dump. */
static int peer_of(const struct flight *flight, const struct group *group, const char *name)
{
    const char *arrow = strstr(name, "->");
    arrow = arrow ? arrow : strstr(name, "<-");
    if (!arrow || !isdigit((unsigned char)arrow[2]))
        return -1;
    const long long peer = strtoll(arrow + 2, NULL, 10);
    return (size_t)peer < group->rank_count ? plan_rank(flight, group->ranks[peer]) : -1;
}

static bool add_message(struct flight *flight, struct host_op *op, const struct value *entry,
                        int peer)
{
    const bool send = strncmp(operation(entry), "send", 4) == 0;
    op->parts = ARENA_NEW(&flight->plan->arena, struct p2p_part);
    if (!op->parts)
        return false;
    op->part_count = 1;
    *op->parts = (struct p2p_part){
        .send = send, .tag = "p2p", .peer = peer, .root = -1, .comm = -1, .stream = -1};
    op->parts->bytes = entry_bytes(entry, send ? "input" : "output");
    return true;
}

/* Has it gone from the ring of another member? What messages are missing there cannot be told: those that are over
   are left out where there is a ring. */
static bool is_too_old(const struct flight *flight, const struct group *group,
                       const struct value *entry)
{
    const char *state = value_text(value_get(entry, "state"));
    if (is_p2p(entry))
        return flight->is_ring && state && strcmp(state, "completed") == 0;
    return value_int(value_get(entry, "collective_seq_id"), INT64_MAX) < group->first_seq;
}

static bool add_entry(struct flight *flight, struct host_thread *thread, const struct value *entry)
{
    struct plan *plan = flight->plan;
    const int comm = find_group(flight, group_key(entry));
    const struct group *group = &flight->groups[comm];
    const int peer = is_p2p(entry) ? peer_of(flight, group, operation(entry)) : -1;
    if (is_too_old(flight, group, entry) || (is_p2p(entry) && peer < 0))
        return true;
    char name[PLAN_MAX_NAME];
    snprintf(name, sizeof name, "nccl.%.150s", plan->comms[comm].name);
    const int stream = names_intern(&plan->streams, &plan->arena, name);
    struct host_op *op = add_op(flight, thread, is_p2p(entry) ? OP_GROUP : OP_COLLECTIVE);
    if (stream < 0 || !op)
        return false;
    op->comm = comm;
    op->stream = stream;
    op->sm = flight->options->sm_slots > 0 && !is_p2p(entry);
    if (!(is_p2p(entry) ? add_message(flight, op, entry, peer) : add_collective(flight, op, entry)))
        return false;
    if (!flight->options->host_waits)
        return true;
    op = add_op(flight, thread, OP_SYNC);
    if (op) {
        op->sync = SYNC_STREAM;
        op->stream = stream;
    }
    return op != NULL;
}

static bool add_thread(struct flight *flight, size_t rank)
{
    struct host_thread *thread = &flight->plan->threads[flight->plan->thread_count++];
    *thread = (struct host_thread){.rank = (int)rank, .name = "main"};
    flight->op_cap = 0;
    for (size_t i = 0; i < entry_count(&flight->dumps[rank]); i++)
        if (!add_entry(flight, thread, entry_at(&flight->dumps[rank], i)))
            return false;
    return true;
}

/* ---- the plan -------------------------------------------------------------------------------- */

static bool write_plan(struct flight *flight)
{
    const struct flight_options *options = flight->options;
    struct plan *plan = flight->plan;
    plan->form = FORM_THREADS;
    plan->ranks = (int)flight->count;
    plan->name = arena_strdup(&plan->arena, options->name);
    plan->machine.sm_slots = (int)options->sm_slots;
    plan->machine.launch_order_implicit = options->launch_order;
    plan->about = arena_printf(
        &plan->arena,
        "a dump of the flight recorder; hypotheses: the host waits for %s operation; each process "
        "group has a stream of its own, which its sends and receives share; %s operations of a "
        "rank run at "
        "once; %s",
        options->host_waits ? "each" : "no",
        options->sm_slots ? "a limited number of" : "any number of",
        options->launch_order ? "in the order of their launches" : "in any order of groups");
    plan->threads = ARENA_ARRAY(&plan->arena, flight->count, struct host_thread);
    bool ok = plan->name && plan->about && plan->threads && add_groups(flight);
    for (size_t r = 0; ok && r < flight->count; r++)
        ok = add_thread(flight, r);
    return ok;
}

static int by_rank(const void *left, const void *right)
{
    const struct flight_dump *a = left, *b = right;
    return (a->rank > b->rank) - (a->rank < b->rank);
}

static enum status check(struct flight_dump *dumps, size_t count, struct diag *diag)
{
    size_t entries = 0;
    for (size_t i = 0; i < count; i++) {
        if (dumps[i].rank < 0)
            dumps[i].rank = (int64_t)i;
        entries += entry_count(&dumps[i]);
    }
    qsort(dumps, count, sizeof *dumps, by_rank);
    for (size_t i = 1; i < count; i++)
        if (dumps[i].rank == dumps[i - 1].rank)
            return diag_error(diag, STATUS_INPUT,
                              "%s and %s do not belong together: both are of rank %lld",
                              dumps[i - 1].file, dumps[i].file, (long long)dumps[i].rank);
    return entries > 0
               ? STATUS_OK
               : diag_error(diag, STATUS_INPUT, "%s: the dump has no entries", dumps[0].file);
}

enum status flight_plan(struct flight_dump *dumps, size_t count,
                        const struct flight_options *options, struct plan *out, struct diag *diag)
{
    struct plan plan;
    enum status status = check(dumps, count, diag);
    if (status != STATUS_OK)
        return status;
    plan_init(&plan);
    struct flight flight = {.dumps = dumps, .count = count, .options = options, .plan = &plan};
    if (write_plan(&flight)) {
        *out = plan;
        return STATUS_OK;
    }
    plan_fini(&plan);
    return diag_no_memory(diag);
}
