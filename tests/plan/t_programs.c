/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_programs.c - schedules: their generation, the messages added to them, and what they become.
 *
 * Orders are compared as text, "0F0 0F1 0B0". The lowering is checked twice over: by running it on
 * the machine to its end, and by the times a small simulation of its streams comes to, against
 * figures known for these schedules.
 */
#include <stdlib.h>
#include <string.h>

#include "plan/schedules/comms.h"
#include "improve/found.h"
#include "plan/schedules/generate.h"
#include "machine/machine.h"
#include "machine/lower/rank_programs.h"
#include "tests/harness.h"
#include "tests/tap.h"

enum { TEXT = 1 << 16 };

/* ---- schedules from and to text -------------------------------------------------------------- */

static int read_number(const char **text)
{
    char *end;
    long value = strtol(*text, &end, 10);
    *text = end;
    return (int)value;
}

static struct action read_simple(const char **text)
{
    static const char *const words[] = {
#define X(name, key, microbatch) key,
        ACTION_LIST(X)
#undef X
    };
    struct action action = {.stage = read_number(text), .microbatch = -1};
    size_t length = strspn(*text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_");
    for (int kind = 0; kind < ACTION_IDLE; kind++)
        if (strlen(words[kind]) == length && strncmp(words[kind], *text, length) == 0)
            action.kind = (enum action_kind)kind;
    *text += length;
    if (action_has_microbatch(action.kind))
        action.microbatch = read_number(text);
    return action;
}

static struct action read_action(struct arena *arena, const char **text)
{
    if (**text == ',') /* an idle cell */
        return (struct action){.kind = ACTION_IDLE, .microbatch = -1};
    if (**text != '(')
        return read_simple(text);
    struct action pair = {.kind = ACTION_OVERLAP_F_B, .microbatch = -1};
    pair.parts = ARENA_ARRAY(arena, 2, struct action);
    ++*text;
    pair.parts[0] = read_simple(text);
    ++*text;
    pair.parts[1] = read_simple(text);
    *text += strcspn(*text, " ,\n");
    return pair;
}

/* Actions of a rank separated by spaces or, as in a CSV file, by commas. */
static struct rank_program read_rank(struct arena *arena, const char *text)
{
    struct rank_program list = {.actions = ARENA_ARRAY(arena, strlen(text) + 1, struct action)};
    while (*text && *text != '\n') {
        list.actions[list.count++] = read_action(arena, &text);
        text += *text == ',' || *text == ' ';
    }
    return list;
}

static const char *print_rank(const struct rank_program *list, char *buf)
{
    size_t used = 0;
    buf[0] = '\0';
    for (size_t i = 0; i < list->count; i++) {
        char name[ACTION_NAME];
        used += (size_t)snprintf(buf + used, TEXT - used, "%s%s", i ? " " : "",
                                 comms_action_name(&list->actions[i], name, sizeof name));
    }
    return buf;
}

static void is_rank(const struct rank_program *list, const char *want, const char *what)
{
    static char got[TEXT];
    tap_is_str(print_rank(list, got), want, "%s", what);
}

static bool has_message(const struct diag *diag, const char *text)
{
    for (size_t i = 0; i < diag->count; i++)
        if (strstr(diag->messages[i].text, text))
            return true;
    for (size_t i = 0; i < diag->count; i++)
        tap_note("message: %s", diag->messages[i].text);
    return false;
}

/* ---- generators ------------------------------------------------------------------------------ */

static struct generate_spec spec_of(const char *schedule, int ranks, int chunks, int microbatches)
{
    return (struct generate_spec){.given = true,
                                  .schedule = schedule,
                                  .ranks = ranks,
                                  .chunks = chunks,
                                  .microbatches = microbatches,
                                  .mark = {3, 12}};
}

static void check_order(struct generate_spec spec, int rank, const char *want)
{
    struct arena arena;
    struct diag diag;
    struct rank_program *ranks;
    int count = 0;
    arena_init(&arena, 0);
    diag_init(&diag);
    enum status status = generate_program(&spec, &arena, &ranks, &count, &diag);
    tap_is_int(status, STATUS_OK, "%s is generated", spec.schedule);
    if (status == STATUS_OK) {
        tap_is_int(count, spec.ranks, "for all ranks");
        is_rank(&ranks[rank], want, spec.schedule);
    }
    diag_fini(&diag);
    arena_fini(&arena);
}

static void test_orders(void)
{
    check_order(spec_of("gpipe", 2, 0, 3), 1, "1F0 1F1 1F2 1B0 1B1 1B2");
    check_order(spec_of("gpipe_reverse", 2, 1, 3), 0, "0F0 0F1 0F2 0B2 0B1 0B0");
    check_order(spec_of("1f1b", 4, 0, 8), 0,
                "0F0 0F1 0F2 0F3 0B0 0F4 0B1 0F5 0B2 0F6 0B3 0F7 0B4 0B5 0B6 0B7");
    check_order(spec_of("1f1b", 4, 0, 8), 2,
                "2F0 2F1 2B0 2F2 2B1 2F3 2B2 2F4 2B3 2F5 2B4 2F6 2B5 2F7 2B6 2B7");
    check_order(spec_of("1f1b", 4, 0, 8), 3,
                "3F0 3B0 3F1 3B1 3F2 3B2 3F3 3B3 3F4 3B4 3F5 3B5 3F6 3B6 3F7 3B7");
    check_order(spec_of("1f1b", 4, 0, 2), 0, "0F0 0F1 0B0 0B1");
    check_order(spec_of("looped_bfs", 2, 2, 2), 1, "1F0 1F1 3F0 3F1 3B1 3B0 1B1 1B0");
    check_order(spec_of("zb_h1", 2, 0, 3), 0, "0F0 0F1 0I0 0W0 0F2 0I1 0W1 0I2 0W2");
    check_order(spec_of("zb_h1", 2, 0, 3), 1, "1F0 1I0 1F1 1I1 1W0 1F2 1I2 1W1 1W2");
    check_order(spec_of("dualpipe_v", 1, 0, 2), 0,
                "0F0 1F0 0F1 1B0 (1F1;0B0)OVERLAP_F_B 1B1 0I1 0W1");
    check_order(spec_of("forward_only", 2, 2, 3), 0, "0F0 0F1 0F2 2F0 2F1 2F2");
    check_order(spec_of("forward_only", 2, 2, 4), 1, "1F0 1F1 3F0 3F1 1F2 1F3 3F2 3F3");
    /* PyTorch's with fewer microbatches than ranks: one round of all. */
    check_order(spec_of("interleaved_1f1b", 4, 2, 2), 3, "3F0 3F1 7F0 7B0 7F1 7B1 3B0 3B1");
    struct generate_spec moe = spec_of("interleaved_1f1b", 2, 2, 4);
    moe.moe_overlap = true;
    check_order(moe, 1,
                "1F0 1F1 3F0 (3F1;3B0)OVERLAP_F_B (1F2;3B1)OVERLAP_F_B (1F3;1B0)OVERLAP_F_B "
                "(3F2;1B1)OVERLAP_F_B (3F3;3B2)OVERLAP_F_B 3B3 1B2 1B3");
}

/* Megatron's published table: p2 g3 m5 v2, 1 + chunk of forwards, -(1 + chunk) of backwards. */
static void test_megatron_table(void)
{
    static const int want[] = {1,  1, 1,  2, 2,  2,  -2, 1,  -2, 1,
                               -2, 2, -1, 2, -1, -1, -2, -2, -1, -1};
    struct arena arena;
    struct diag diag;
    struct rank_program *ranks = NULL;
    int count = 0, wrong = 0;
    arena_init(&arena, 0);
    diag_init(&diag);
    struct generate_spec spec = spec_of("interleaved_1f1b", 2, 2, 5);
    spec.group = 3;
    tap_is_int(generate_program(&spec, &arena, &ranks, &count, &diag), STATUS_OK,
               "interleaved with group 3");
    tap_is_int(ranks ? (int)ranks[0].count : 0, 20, "20 passes on rank 0");
    for (size_t i = 0; ranks && i < 20; i++) {
        const struct action *action = &ranks[0].actions[i];
        int chunk = action->stage / 2;
        wrong += (action->kind == ACTION_F ? 1 + chunk : -1 - chunk) != want[i];
    }
    tap_is_int(wrong, 0, "in the order of the table");
    diag_fini(&diag);
    arena_fini(&arena);
}

static void test_warm_ups(void)
{
    static const int want[] = {10, 8, 6, 4}; /* p4 v2 m8 */
    struct arena arena;
    struct diag diag;
    struct rank_program *ranks = NULL;
    int count = 0;
    arena_init(&arena, 0);
    diag_init(&diag);
    struct generate_spec spec = spec_of("interleaved_1f1b", 4, 2, 8);
    generate_program(&spec, &arena, &ranks, &count, &diag);
    for (int rank = 0; rank < count; rank++) {
        int forwards = 0;
        while (ranks[rank].actions[forwards].kind == ACTION_F)
            forwards++;
        tap_is_int(forwards - 1, want[rank], "warm-up of rank %d", rank);
    }
    diag_fini(&diag);
    arena_fini(&arena);
}

/* By rules, or found. */
static enum status make_lists(const struct generate_spec *spec, struct arena *arena,
                              struct rank_program **ranks, int *count, struct diag *diag)
{
    *count = spec->ranks;
    return generate_is_found(spec->schedule) ? found_search(spec, NULL, arena, ranks, NULL, diag)
                                             : generate_program(spec, arena, ranks, count, diag);
}

static void check_refusal(struct generate_spec spec, const char *message)
{
    struct arena arena;
    struct diag diag;
    struct rank_program *ranks;
    int count;
    arena_init(&arena, 0);
    diag_init(&diag);
    tap_is_int(make_lists(&spec, &arena, &ranks, &count, &diag), STATUS_INPUT, "refused: %s",
               message);
    tap_ok(has_message(&diag, message), "says so");
    tap_ok(diag.count == 1 && diag.messages[0].mark.line == 3, "once, with the place");
    diag_fini(&diag);
    arena_fini(&arena);
}

static void test_refusals(void)
{
    check_refusal(spec_of("2f2b", 2, 1, 4), "found schedule 2f2b, expected one of gpipe, ");
    check_refusal(spec_of("2f2b", 2, 1, 4),
                  "interleaved_1f1b, looped_bfs, interleaved_zero_bubble");
    check_refusal(spec_of(NULL, 2, 1, 4), "expected one of gpipe");
    check_refusal(spec_of("1f1b", 0, 1, 4), "found 0 ranks, expected 1 to 65536");
    check_refusal(spec_of("1f1b", 2, 2, 4), "found 2 chunks, expected 1");
    check_refusal(spec_of("zbv", 2, 3, 4), "found 3 chunks, expected 2");
    check_refusal(spec_of("1f1b", 2, 1, 0), "found 0 microbatches");
    check_refusal(spec_of("1f1b", 2, 1, 65537), "expected 1 to 65536");
    check_refusal(spec_of("looped_bfs", 1000, 256, 1), "256000 stages");
    check_refusal(spec_of("looped_bfs", 16, 17, 65536), "17825792 passes");
    check_refusal(spec_of("interleaved_1f1b", 4, 2, 9), "microbatches divisible by");
    struct generate_spec grouped = spec_of("interleaved_1f1b", 4, 2, 9);
    grouped.group = 4;
    check_refusal(grouped, "microbatches divisible by the group");
    grouped.group = 10;
    check_refusal(grouped, "at least one full group");
    grouped.group = 3;
    check_refusal(grouped, "a group of at least `ranks` microbatches, or of all");
    struct generate_spec moe = spec_of("1f1b", 4, 1, 8);
    moe.moe_overlap = true;
    check_refusal(moe, "found moe_overlap");
    check_refusal(spec_of("interleaved_zero_bubble", 4, 2, 9), "microbatches divisible by");
    check_refusal(spec_of("dualpipe_v", 4, 2, 7), "at least 2 x ranks microbatches");
    check_refusal(spec_of("dualpipe", 4, 2, 9), "an even number of each");
    struct generate_spec tight = spec_of("zbv_auto", 2, 2, 4);
    tight.memory = 1;
    check_refusal(tight, "found memory for 1 activations");
    struct generate_spec remembered = spec_of("1f1b", 2, 1, 4);
    remembered.memory = 1;
    check_refusal(remembered, "found memory, expected it for schedules that are found");
    struct generate_spec spec = spec_of("1f1b", 4, 1, 8);
    spec.group = 4;
    check_refusal(spec, "it has no groups");
}

/* ---- a simulation of streams ----------------------------------------------------------------- */

/* Streams of all ranks, the host infinitely fast, messages free and a rendezvous. */
struct timed_op {
    const struct host_op *op;
    size_t record; /* WAIT: number of the record + 1 on its rank, 0: never recorded */
};

struct timed_stream {
    int rank, stream;
    struct timed_op *ops;
    size_t count, at;
    int64_t now;
};

struct simulation {
    struct arena arena;
    const struct plan *plan;
    struct timed_stream *streams; /* [rank * streams + stream] */
    size_t stream_count;
    int64_t *record_times; /* [rank * most + number], -1: not yet */
    size_t most;
};

static struct timed_stream *stream_of(struct simulation *simulation, int rank, int stream)
{
    return &simulation->streams[(size_t)rank * simulation->plan->streams.count + (size_t)stream];
}

static void queue_ops(struct simulation *simulation, const struct host_thread *thread)
{
    size_t *last = calloc(simulation->plan->events.count + 1, sizeof *last);
    for (size_t i = 0; i < thread->op_count; i++) {
        const struct host_op *op = &thread->ops[i];
        if (op->stream < 0)
            continue;
        struct timed_stream *stream = stream_of(simulation, thread->rank, op->stream);
        if (!stream->ops)
            stream->ops = ARENA_ARRAY(&simulation->arena, thread->op_count, struct timed_op);
        if (op->kind == OP_RECORD)
            last[op->object] = i + 1;
        size_t record = op->kind == OP_RECORD || op->kind == OP_WAIT ? last[op->object] : 0;
        stream->ops[stream->count++] = (struct timed_op){op, record};
    }
    free(last);
}

static int64_t *record_time(struct simulation *simulation, int rank, size_t record)
{
    return &simulation->record_times[(size_t)rank * simulation->most + record];
}

/* The stream whose head is the other half of a message at the head of `stream`, NULL: not there. */
static struct timed_stream *find_peer(struct simulation *simulation,
                                      const struct timed_stream *stream)
{
    const struct host_op *op = stream->ops[stream->at].op;
    const struct p2p_part *part = &op->parts[0];
    for (size_t s = 0; s < simulation->plan->streams.count; s++) {
        struct timed_stream *peer = stream_of(simulation, part->peer, (int)s);
        if (peer->at == peer->count)
            continue;
        const struct host_op *other = peer->ops[peer->at].op;
        if (other->kind == OP_GROUP && other->comm == op->comm &&
            other->parts[0].peer == stream->rank && other->parts[0].send != part->send &&
            strcmp(other->parts[0].tag, part->tag) == 0)
            return peer;
    }
    return NULL;
}

static bool advance(struct simulation *simulation, struct timed_stream *stream)
{
    if (stream->at == stream->count)
        return false;
    const struct timed_op *timed = &stream->ops[stream->at];
    if (timed->op->kind == OP_LAUNCH) {
        stream->now += timed->op->time_ns;
    } else if (timed->op->kind == OP_RECORD) {
        *record_time(simulation, stream->rank, timed->record) = stream->now;
    } else if (timed->op->kind == OP_WAIT && timed->record) {
        int64_t time = *record_time(simulation, stream->rank, timed->record);
        if (time < 0)
            return false;
        stream->now = time > stream->now ? time : stream->now;
    } else if (timed->op->kind == OP_GROUP) {
        struct timed_stream *peer = find_peer(simulation, stream);
        if (!peer)
            return false;
        stream->now = peer->now = peer->now > stream->now ? peer->now : stream->now;
        peer->at++;
    }
    stream->at++;
    return true;
}

/* When everything is done; -1 if it never is. */
static int64_t makespan(const struct plan *plan)
{
    struct simulation simulation = {.plan = plan,
                                    .stream_count = (size_t)plan->ranks * plan->streams.count};
    arena_init(&simulation.arena, 0);
    for (size_t t = 0; t < plan->thread_count; t++)
        if (plan->threads[t].op_count >= simulation.most)
            simulation.most = plan->threads[t].op_count + 1;
    simulation.streams =
        ARENA_ARRAY(&simulation.arena, simulation.stream_count, struct timed_stream);
    size_t records = simulation.most * (size_t)plan->ranks;
    simulation.record_times = ARENA_ARRAY(&simulation.arena, records, int64_t);
    memset(simulation.record_times, -1, records * sizeof *simulation.record_times);
    for (size_t s = 0; s < simulation.stream_count; s++) {
        simulation.streams[s].rank = (int)(s / plan->streams.count);
        simulation.streams[s].stream = (int)(s % plan->streams.count);
    }
    for (size_t t = 0; t < plan->thread_count; t++)
        queue_ops(&simulation, &plan->threads[t]);
    for (bool progress = true; progress;) {
        progress = false;
        for (size_t s = 0; s < simulation.stream_count; s++)
            while (advance(&simulation, &simulation.streams[s]))
                progress = true;
    }
    int64_t end = 0;
    for (size_t s = 0; s < simulation.stream_count; s++) {
        const struct timed_stream *stream = &simulation.streams[s];
        end = end < 0 || stream->at < stream->count ? -1 : stream->now > end ? stream->now : end;
    }
    arena_fini(&simulation.arena);
    return end;
}

/* ---- plans ----------------------------------------------------------------------------------- */

/* A plan of rank programs with F = 1, B = 2, I = 1, W = 1. */
static void begin_plan(struct plan *plan)
{
    plan_init(plan);
    plan->form = FORM_PROGRAMS;
    plan->file = "test.yaml";
    plan->name = "test";
    plan->ranks = 1;
    plan->programs.p2p_bytes = 1024;
    plan->programs.times[ACTION_F] = (struct action_time){true, 1};
    plan->programs.times[ACTION_I] = (struct action_time){true, 1};
    plan->programs.times[ACTION_W] = (struct action_time){true, 1};
}

static void begin_generated(struct plan *plan, struct generate_spec spec)
{
    struct diag diag;
    begin_plan(plan);
    plan->ranks = spec.ranks;
    plan->programs.generate = spec;
    diag_init(&diag);
    (void)found_resolve(plan, &plan->arena, &diag);
    diag_fini(&diag);
}

static void begin_written(struct plan *plan, int ranks, const char *const *texts)
{
    begin_plan(plan);
    plan->ranks = ranks;
    plan->programs.ranks = ARENA_ARRAY(&plan->arena, (size_t)ranks, struct rank_program);
    for (int rank = 0; rank < ranks; rank++)
        plan->programs.ranks[rank] = read_rank(&plan->arena, texts[rank]);
}

/* Each operation in a word or two, for comparing. */
static const char *print_thread(const struct plan *plan, int rank, char *buf)
{
    const struct host_thread *thread = &plan->threads[rank];
    size_t used = 0;
    for (size_t i = 0; i < thread->op_count; i++) {
        const struct host_op *op = &thread->ops[i];
        const char *stream = op->stream < 0 ? "" : plan->streams.items[op->stream];
        used += (size_t)snprintf(buf + used, TEXT - used, "%s", i ? "; " : "");
        if (op->kind == OP_RECORD || op->kind == OP_WAIT)
            used += (size_t)snprintf(buf + used, TEXT - used, "%s %s %s", stream, op_key(op->kind),
                                     plan->events.items[op->object]);
        else if (op->kind == OP_GROUP)
            for (size_t k = 0; k < op->part_count; k++)
                used += (size_t)snprintf(buf + used, TEXT - used, "%s%s %s %d", k ? "+" : stream,
                                         k                   ? ""
                                         : op->parts[k].send ? " send"
                                                             : " recv",
                                         op->parts[k].tag, op->parts[k].peer);
        else if (op->kind == OP_SYNC)
            used += (size_t)snprintf(buf + used, TEXT - used, "sync");
        else
            used += (size_t)snprintf(buf + used, TEXT - used, "%s%s%s", stream,
                                     op->stream < 0 ? "host " : " ",
                                     op->name ? op->name : op_key(op->kind));
    }
    return buf;
}

static void is_thread(const struct plan *plan, int rank, const char *want, const char *what)
{
    static char got[TEXT];
    tap_is_str(print_thread(plan, rank, got), want, "%s", what);
}

/* Lower and forget the original, which nothing of the result may need. */
static bool lower_and_end(struct plan *plan, struct plan *out)
{
    struct diag diag;
    diag_init(&diag);
    enum status status = rank_programs_lower(plan, false, out, &diag);
    for (size_t i = 0; i < diag.count; i++)
        tap_note("%s", diag.messages[i].text);
    diag_fini(&diag);
    plan_fini(plan);
    return status == STATUS_OK;
}

/* ---- running on the machine ------------------------------------------------------------------ */

/* Take the first enabled step until there is none. Was everything done? *violated: bits of the
   properties violated on the way. */
static bool runs_to_its_end(const struct plan *plan, unsigned *violated)
{
    struct program *program;
    struct diag diag;
    diag_init(&diag);
    struct program_options options = {.driver = DRIVER_NONE, .iterations = 1};
    if (program_build(plan, &options, &program, &diag) != STATUS_OK) {
        diag_fini(&diag);
        return false;
    }
    struct state *state = machine_state(program);
    struct transition *enabled = calloc(machine_most_transitions(program), sizeof *enabled);
    machine_reset(program, state);
    *violated = 0;
    while (machine_enabled(program, state, enabled) > 0) {
        struct effect effect = {0};
        machine_step(program, state, enabled[0], &effect);
        *violated |= effect.violated;
    }
    bool done = machine_done(program, state);
    free(enabled);
    machine_free(state);
    program_close(program);
    diag_fini(&diag);
    return done;
}

/* ---- adding messages ------------------------------------------------------------------------- */

static void test_add(void)
{
    struct arena arena;
    struct diag diag;
    arena_init(&arena, 0);
    diag_init(&diag);
    struct rank_program ranks[] = {read_rank(&arena, "0F0,0F1,,0B0,0W0"),
                                   read_rank(&arena, ",1F0,1I0,1W0,1F1")};
    tap_is_int(comms_add(&arena, ranks, 2, 1, &diag), STATUS_OK, "messages are added");
    is_rank(&ranks[0], "0F0 0SEND_F0 0F1 0SEND_F1 0RECV_B0 0B0 0W0", "sends follow their passes");
    is_rank(&ranks[1], "1RECV_F0 1F0 1RECV_F1 1I0 1SEND_B0 1W0 1F1",
            "receives come as they are sent");
    struct rank_program merged[] = {read_rank(&arena, "0I0,,0W0,0I1,0F2,0W1")};
    comms_merge_bw(&arena, merged, 1, &diag);
    is_rank(&merged[0], "0B0 0I1 0F2 0W1", "neighbouring I and W are joined");
    struct rank_program one[] = {read_rank(&arena, "0F0 1F0 1B0 0B0")};
    comms_add(&arena, one, 1, 1, &diag);
    is_rank(&one[0], "0F0 1F0 1B0 0B0", "stages on one rank need no messages");
    struct rank_program pair[] = {read_rank(&arena, "0F0 (0F1;0B0)OVERLAP_F_B"),
                                  read_rank(&arena, "1F0 1B0 1F1")};
    tap_is_int(comms_add(&arena, pair, 2, 1, &diag), STATUS_OK, "composites");
    is_rank(&pair[0], "0F0 0SEND_F0 0RECV_B0 (0F1;0B0)OVERLAP_F_B 0SEND_F1",
            "messages of a composite surround it");
    diag_fini(&diag);
    arena_fini(&arena);
}

static void check_malformed(const char *first, const char *second, const char *const *messages)
{
    struct arena arena;
    struct diag diag;
    arena_init(&arena, 0);
    diag_init(&diag);
    struct rank_program ranks[] = {read_rank(&arena, first), read_rank(&arena, second)};
    tap_is_int(comms_add(&arena, ranks, 2, 1, &diag), STATUS_INPUT, "refused: %s / %s", first,
               second);
    for (; *messages; messages++)
        tap_ok(has_message(&diag, *messages), "%s", *messages);
    diag_fini(&diag);
    arena_fini(&arena);
}

static void test_malformed(void)
{
    check_malformed("0F0 0B0 0F1 0B1", "1F0 1F1 1B0 1B1",
                    (const char *const[]){
                        "malformed schedule",
                        "rank 0 is at 0B0 (row 1, column 2), which waits for 1B0 (row 2, column 3)",
                        "rank 1 is at 1F1 (row 2, column 2), which waits for 0F1 (row 1, column 3)",
                        NULL});
    check_malformed("0F0 0B0", "1F0",
                    (const char *const[]){"waits for 1B0: row 2 has none left", NULL});
    check_malformed("0F0", "2F0", (const char *const[]){"none of the ranks names stage 1", NULL});
    check_malformed("0F0", "0B0", (const char *const[]){"stage 0 is also on rank 0", NULL});
    check_malformed("0F0", "65536F0",
                    (const char *const[]){"found stage 65536, expected 0 to 65535", NULL});
    check_malformed("0F65535", "65535F0",
                    (const char *const[]){"expected at most 16777216 pairs", NULL});
}

/* ---- lowering -------------------------------------------------------------------------------- */

static void test_lowered_text(void)
{
    static const char *const texts[] = {"0F0 0F1 0B0 0B1", "1F0 1B0 1F1 1B1"};
    struct plan plan, out;
    begin_written(&plan, 2, texts);
    bool ok = lower_and_end(&plan, &out);
    tap_ok(ok, "lowered");
    if (!ok)
        return;
    is_thread(&out, 0,
              "compute 0F0; compute record F; p2p wait F; p2p send F0@1 1; "
              "compute 0F1; compute record F; p2p wait F; p2p send F1@1 1; "
              "p2p recv B0@0 1; p2p record RECV_B; compute wait RECV_B; compute 0B0; "
              "p2p recv B1@0 1; p2p record RECV_B; compute wait RECV_B; compute 0B1; sync",
              "sends wait for passes, passes for receives");
    tap_is_int((long long)out.threads[0].ops[0].time_ns, 1, "time of F");
    tap_is_int((long long)out.threads[0].ops[11].time_ns, 2, "time of B is I + W");
    tap_is_int((long long)out.comm_count, 1, "one communicator");
    tap_is_str(out.comms[0].name, "pp", "called pp");
    tap_ok(!out.comms[0].members, "of all ranks");
    tap_is_str(out.buffers[0].name, "act.0.0", "buffers are named after stage and microbatch");
    tap_ok(out.form == FORM_THREADS && out.ranks == 2 && strcmp(out.file, "test.yaml") == 0,
           "the head is taken over");
    plan_fini(&out);
}

static void check_streams(enum fifo_rule fifo, const char *const *streams, size_t comms)
{
    struct plan plan, out;
    begin_generated(&plan, spec_of("1f1b", 3, 0, 3));
    plan.programs.fifo = fifo;
    bool ok = lower_and_end(&plan, &out);
    tap_ok(ok, "lowered");
    if (!ok)
        return;
    tap_is_int((long long)out.comm_count, (long long)comms, "%zu communicators", comms);
    for (; *streams; streams++)
        tap_ok(names_find(&out.streams, *streams) >= 0, "stream %s", *streams);
    for (size_t i = 0; i < out.comm_count && fifo != FIFO_RANK && fifo != FIFO_DIRECTION; i++)
        tap_ok(out.comms[i].member_count == 2 && out.comms[i].members[0] < out.comms[i].members[1],
               "%s has two members, ascending", out.comms[i].name);
    plan_fini(&out);
}

static void test_fifo(void)
{
    check_streams(FIFO_RANK, (const char *const[]){"compute", "p2p", NULL}, 1);
    check_streams(FIFO_DIRECTION, (const char *const[]){"p2p.forward", "p2p.backward", NULL}, 2);
    check_streams(FIFO_PAIR, (const char *const[]){"p2p.0-1", "p2p.1-2", NULL}, 2);
    check_streams(FIFO_EDGE,
                  (const char *const[]){"p2p.0>1", "p2p.1>0", "p2p.1>2", "p2p.2>1", NULL}, 4);
}

static void test_batch(void)
{
    static const char *const texts[] = {"0F0 0SEND_F0 0RECV_B0 0B0", "1RECV_F0 1F0 1B0 1SEND_B0"};
    struct plan plan, out;
    begin_written(&plan, 2, texts);
    plan.programs.batch = true;
    if (lower_and_end(&plan, &out)) {
        is_thread(&out, 0,
                  "compute 0F0; compute record F; p2p wait F; p2p send F0@1 1+ B0@0 1; "
                  "p2p record SEND_F; compute wait SEND_F; compute 0B0; sync",
                  "neighbours form a group");
        plan_fini(&out);
    }
    begin_written(&plan, 2, texts);
    plan.programs.batch = true;
    plan.programs.fifo = FIFO_DIRECTION;
    if (lower_and_end(&plan, &out)) {
        tap_is_int((long long)out.threads[0].op_count, 9, "one group a communicator");
        plan_fini(&out);
    }
}

static void test_fsdp(void)
{
    static const char *const texts[] = {"0UNSHARD 0F0 (0F1;0B0)OVERLAP_F_B 0RESHARD 0REDUCE_GRAD"};
    struct plan plan, out;
    begin_written(&plan, 1, texts);
    plan.programs.times[ACTION_OVERLAP_F_B] = (struct action_time){true, 30};
    if (!lower_and_end(&plan, &out)) {
        tap_ok(0, "lowered");
        return;
    }
    is_thread(&out, 0,
              "fsdp alloc; fsdp 0UNSHARD; fsdp record UNSHARD; compute wait UNSHARD; compute 0F0; "
              "compute (0F1;0B0)OVERLAP_F_B; compute record OVERLAP_F_B; host 0RESHARD; "
              "compute record_stream; host free; fsdp wait OVERLAP_F_B; fsdp 0REDUCE_GRAD; sync; "
              "host end of the list",
              "parameters are gathered before and gradients reduced after the passes");
    tap_is_int((long long)out.threads[0].ops[5].time_ns, 30, "a composite has a time of its own");
    plan_fini(&out);
}

/* The replicas of a pipeline share nothing but the communicators of their parameters. */
static void test_replicas(void)
{
    static const char *const texts[] = {"0UNSHARD 0F0 0SEND_F0 0RESHARD 0UNSHARD",
                                        "1RECV_F0 1UNSHARD 1F0"};
    struct plan plan, out;
    begin_written(&plan, 2, texts);
    plan.programs.fsdp_replicas = 2;
    if (!lower_and_end(&plan, &out)) {
        tap_ok(0, "lowered");
        return;
    }
    tap_is_int(out.ranks, 4, "a replica has ranks of its own");
    is_thread(&out, 2,
              "fsdp alloc; fsdp 0UNSHARD; fsdp record UNSHARD; compute wait UNSHARD; compute 0F0; "
              "compute record F; p2p wait F; p2p send F0@1 3; host 0RESHARD; "
              "compute record_stream; host free; fsdp alloc; fsdp 0UNSHARD; sync",
              "which send to those of their own replica");
    const struct host_op *ops = out.threads[2].ops;
    const struct comm *shared = &out.comms[ops[1].comm], *own = &out.comms[ops[7].comm];
    tap_is_str(shared->name, "fsdp.0", "ranks of one stage share a communicator");
    tap_ok(shared->member_count == 2 && shared->members[0] == 0 && shared->members[1] == 2,
           "with their like in the other replica");
    tap_is_str(own->name, "pp@1", "messages have a communicator of the replica");
    tap_ok(own->member_count == 2 && own->members[0] == 2 && own->members[1] == 3,
           "with its ranks");
    tap_ok(ops[0].object != ops[11].object, "each UNSHARD fills memory of its own");
    plan_fini(&out);
}

/* Order that is not stated is not invented. */
static void test_missing_order(void)
{
    static const char *const texts[] = {"0F0 0SEND_F0 0SEND_F1", "1F0 1RECV_F0"};
    struct plan plan, out;
    begin_written(&plan, 2, texts);
    if (!lower_and_end(&plan, &out)) {
        tap_ok(0, "lowered");
        return;
    }
    is_thread(&out, 0,
              "compute 0F0; compute record F; p2p wait F; p2p send F0@1 1; p2p send F1@1 1; sync; "
              "host end of the list",
              "a send without its pass waits for nothing, nor for its receive");
    is_thread(&out, 1, "compute 1F0; p2p recv F0@1 0; sync; host end of the list",
              "a pass before its receive does not wait");
    const struct host_op *pass = &out.threads[1].ops[0], *receive = &out.threads[1].ops[1];
    tap_ok(host_op_reads(pass)->count == 1 && host_op_writes(receive)->count == 1 &&
               host_op_reads(pass)->items[0] == host_op_writes(receive)->items[0],
           "but both touch the same buffer");
    plan_fini(&out);
}

/* Programs that say too little, as the machine takes them. */
static void check_violated(const char *const texts[2], bool done, unsigned want, const char *what)
{
    struct plan plan, out;
    unsigned violated;
    begin_written(&plan, 2, texts);
    if (!lower_and_end(&plan, &out)) {
        tap_ok(0, "lowered");
        return;
    }
    tap_is_int(runs_to_its_end(&out, &violated), done, "%s: %s", what,
               done ? "runs to its end" : "hangs");
    tap_is_int(violated, want, "%s: properties violated", what);
    plan_fini(&out);
}

/* A tensor that no action of a list makes is read at its end, unless the lists are a piece. */
static void test_end_of_list(void)
{
    static const char *const texts[] = {"0F0 0F1 0I0 0B1"};
    for (int fragment = 0; fragment < 2; fragment++) {
        struct plan plan, out;
        begin_written(&plan, 1, texts);
        plan.programs.fragment = fragment;
        if (!lower_and_end(&plan, &out)) {
            tap_ok(0, "lowered");
            return;
        }
        const struct host_thread *thread = &out.threads[0];
        const struct host_op *last = &thread->ops[thread->op_count - 1];
        tap_is_int(last->kind == OP_HOST, !fragment, "a piece need not have all passes: %d",
                   fragment);
        tap_ok(fragment ||
                   (host_op_reads(last)->count == 1 &&
                    strcmp(out.buffers[host_op_reads(last)->items[0]].name, "weight.0.0") == 0),
               "the end reads what W0 would make");
        plan_fini(&out);
    }
}

/* Replicas have buffers of their own, each on its rank. */
static void test_buffers_of_replicas(void)
{
    static const char *const texts[] = {"0UNSHARD 0F0 0B0 0REDUCE_GRAD"};
    struct plan plan, out;
    begin_written(&plan, 1, texts);
    plan.programs.fsdp_replicas = 3;
    if (!lower_and_end(&plan, &out)) {
        tap_ok(0, "lowered");
        return;
    }
    size_t each = out.buffer_count / 3;
    bool own = out.buffer_count == 3 * each && each > 0;
    for (size_t i = 0; own && i < out.buffer_count; i++)
        own = out.buffers[i].owner == 1 + (int)(i / each);
    for (int rank = 0; own && rank < 3; rank++)
        for (size_t i = 0; i < out.threads[rank].op_count; i++)
            for (size_t k = 0; k < host_op_reads(&out.threads[rank].ops[i])->count; k++)
                own &= out.buffers[host_op_reads(&out.threads[rank].ops[i])->items[k]].owner ==
                       rank + 1;
    tap_ok(own, "%zu buffers on each of three replicas", each);
    plan_fini(&out);
}

static void test_violations(void)
{
    const unsigned value = 1u << PROPERTY_VALUE, race = 1u << PROPERTY_RACE | value;
    check_violated((const char *const[]){"0F0 0SEND_F0", "1RECV_F0 1F0"}, true, 0, "in order");
    check_violated((const char *const[]){"0F0 0SEND_F0", "1F0 1RECV_F0"}, true, race,
                   "a pass before its receive");
    check_violated((const char *const[]){"0SEND_F0 0F0", "1RECV_F0 1F0"}, true, race,
                   "a send before its pass");
    check_violated((const char *const[]){"0F0 0SEND_F0", "1F0"}, false, value, "a missing receive");
    check_violated((const char *const[]){"0F0 0SEND_F0 0RECV_B0 0B0", "1F0 1B0 1SEND_B0 1RECV_F0"},
                   false, value, "two sends facing each other");
}

static void check_lower_refusal(int ranks, const char *const *texts, const char *message)
{
    struct plan plan, out;
    struct diag diag;
    diag_init(&diag);
    begin_written(&plan, ranks, texts);
    tap_is_int(rank_programs_lower(&plan, false, &out, &diag), STATUS_INPUT, "refused: %s",
               message);
    tap_ok(has_message(&diag, message), "says so");
    tap_is_str(diag.count ? diag.messages[0].file : NULL, "test.yaml", "names the file");
    plan_fini(&plan);
    diag_fini(&diag);
}

static void test_lower_refusals(void)
{
    check_lower_refusal(2, (const char *const[]){"0F0 0SEND_F0", "1RECV_F0 1SEND_F0"},
                        "found 1SEND_F0 on rank 1, but no rank holds stage 2");
    check_lower_refusal(1, (const char *const[]){"0RECV_F0"}, "stage 0 is the first");
    check_lower_refusal(2, (const char *const[]){"0F0 0B0", "1F0"}, "malformed schedule");
    struct plan plan, out;
    struct diag diag;
    diag_init(&diag);
    begin_generated(&plan, spec_of("1f1b", 2, 0, 2));
    struct comm comm = {.name = "pipe", .eager_messages = 1};
    plan.comms = &comm;
    plan.comm_count = 1;
    tap_is_int(rank_programs_lower(&plan, false, &out, &diag), STATUS_INPUT,
               "an unknown communicator");
    tap_ok(has_message(&diag, "found communicator pipe"), "is named");
    comm.name = "pp";
    tap_is_int(rank_programs_lower(&plan, false, &out, &diag), STATUS_OK, "a known one");
    tap_is_int(out.comms[0].eager_messages, 1, "hands on its eager messages");
    plan_fini(&out);
    plan_fini(&plan);
    diag_fini(&diag);
}

static void test_warning(void)
{
    struct plan plan, out;
    struct diag diag;
    diag_init(&diag);
    begin_generated(&plan, spec_of("zb_h1", 2, 0, 2));
    plan.programs.times[ACTION_W].given = false;
    if (rank_programs_lower(&plan, false, &out, &diag) == STATUS_OK)
        plan_fini(&out);
    tap_ok(has_message(&diag, "does not say how long W takes"), "a forgotten time is warned of");
    plan_fini(&plan);
    diag_fini(&diag);
}

/* ---- every schedule, whole ------------------------------------------------------------------- */

enum { SEEN_F = 1, SEEN_I = 2, SEEN_W = 4 };

/* Is every pass of every stage there once, in the order F, backward, W, and are those `wanted`? */
static bool is_complete(const struct rank_program *ranks, int count, int stages, int microbatches,
                        unsigned wanted)
{
    unsigned char *seen = calloc((size_t)stages * (size_t)microbatches, 1);
    bool good = true;
    for (int rank = 0; rank < count; rank++)
        for (size_t i = 0; i < ranks[rank].count; i++) {
            const struct action *parts;
            size_t part_count = comms_parts(&ranks[rank].actions[i], &parts);
            for (size_t k = 0; k < part_count; k++) {
                unsigned char *cell = &seen[parts[k].stage * microbatches + parts[k].microbatch];
                unsigned need = parts[k].kind == ACTION_F   ? 0
                                : parts[k].kind == ACTION_W ? SEEN_F | SEEN_I
                                                            : SEEN_F;
                good &= *cell == need;
                *cell |= (unsigned char)(parts[k].kind == ACTION_F   ? SEEN_F
                                         : parts[k].kind == ACTION_I ? SEEN_I
                                         : parts[k].kind == ACTION_W ? SEEN_W
                                                                     : SEEN_I | SEEN_W);
            }
        }
    for (int i = 0; i < stages * microbatches; i++)
        good &= seen[i] == wanted;
    free(seen);
    return good;
}

static int default_chunks(const char *schedule)
{
    static const char *const twos[] = {"zbv",      "dualpipe", "dualpipe_v",
                                       "zbv_auto", "v_half",   "v_min"};
    for (size_t i = 0; i < sizeof twos / sizeof twos[0]; i++)
        if (strcmp(schedule, twos[i]) == 0)
            return 2;
    return 1;
}

static void check_schedule(struct generate_spec spec)
{
    struct arena arena;
    struct diag diag;
    struct rank_program *ranks = NULL;
    int count = 0;
    arena_init(&arena, 0);
    diag_init(&diag);
    bool ok = make_lists(&spec, &arena, &ranks, &count, &diag) == STATUS_OK;
    int chunks = spec.chunks ? spec.chunks : default_chunks(spec.schedule);
    int microbatches = spec.microbatches / generate_copies(&spec);
    tap_ok(ok && is_complete(ranks, count, spec.ranks * chunks, microbatches,
                             strcmp(spec.schedule, "forward_only") ? SEEN_F | SEEN_I | SEEN_W
                                                                   : SEEN_F),
           "%s p%d v%d m%d is complete", spec.schedule, spec.ranks, chunks, spec.microbatches);
    struct plan plan, out;
    begin_generated(&plan, spec);
    if (lower_and_end(&plan, &out)) {
        unsigned violated;
        tap_ok(runs_to_its_end(&out, &violated) && violated == 0, "and runs to its end");
        plan_fini(&out);
    } else {
        tap_ok(0, "and is lowered");
    }
    diag_fini(&diag);
    arena_fini(&arena);
}

static void test_all_schedules(void)
{
    static const struct {
        int ranks, chunks, microbatches;
    } sizes[] = {{1, 0, 1}, {2, 0, 4}, {3, 0, 9}, {4, 0, 8}, {4, 0, 16}};
    for (size_t i = 0; generate_name(i); i++)
        for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++) {
            const char *name = generate_name(i);
            bool dual = strncmp(name, "dualpipe", 8) == 0;
            bool even = sizes[k].ranks % 2 == 0 && sizes[k].microbatches % 2 == 0;
            if (dual && (sizes[k].microbatches < 2 * sizes[k].ranks ||
                         (!even && strcmp(name, "dualpipe") == 0)))
                continue;
            check_schedule(spec_of(name, sizes[k].ranks, sizes[k].chunks, sizes[k].microbatches));
        }
    check_schedule(spec_of("1f1b", 8, 0, 3));
    check_schedule(spec_of("zbv", 4, 0, 3));
    check_schedule(spec_of("zb_h2", 4, 0, 2));
    check_schedule(spec_of("interleaved_1f1b", 4, 2, 8));
    check_schedule(spec_of("interleaved_1f1b", 2, 4, 6));
    check_schedule(spec_of("interleaved_1f1b", 4, 2, 3));
    check_schedule(spec_of("interleaved_1f1b", 4, 3, 10));
    check_schedule(spec_of("forward_only", 4, 2, 8));
    struct generate_spec moe = spec_of("interleaved_1f1b", 4, 2, 8);
    moe.moe_overlap = true;
    check_schedule(moe);
    check_schedule(spec_of("interleaved_zero_bubble", 4, 2, 8));
    check_schedule(spec_of("looped_bfs", 4, 3, 8));
}

static void check_makespan(struct generate_spec spec, enum fifo_rule fifo, long long want)
{
    struct plan plan, out;
    begin_generated(&plan, spec);
    plan.programs.fifo = fifo;
    if (!lower_and_end(&plan, &out)) {
        tap_ok(0, "lowered");
        return;
    }
    tap_is_int(makespan(&out), want, "makespan of %s p%d v%d m%d, %s", spec.schedule, spec.ranks,
               spec.chunks, spec.microbatches, fifo == FIFO_RANK ? "one FIFO" : "a FIFO an edge");
    plan_fini(&out);
}

static void test_makespans(void)
{
    check_makespan(spec_of("1f1b", 4, 1, 8), FIFO_RANK, 33);
    check_makespan(spec_of("1f1b", 4, 1, 8), FIFO_EDGE, 33);
    check_makespan(spec_of("interleaved_1f1b", 4, 2, 8), FIFO_RANK, 67);
    check_makespan(spec_of("interleaved_1f1b", 4, 2, 8), FIFO_EDGE, 57);
    check_makespan(spec_of("interleaved_1f1b", 8, 2, 16), FIFO_RANK, 168);
    check_makespan(spec_of("interleaved_1f1b", 8, 2, 16), FIFO_EDGE, 117);
    check_makespan(spec_of("interleaved_1f1b", 8, 4, 32), FIFO_RANK, 552);
    check_makespan(spec_of("interleaved_1f1b", 8, 4, 32), FIFO_EDGE, 405);
    check_makespan(spec_of("gpipe", 4, 1, 8), FIFO_RANK, 33); /* m (F+B) + (p-1)(F+B) */
}

/* ---- PyTorch's own file ---------------------------------------------------------------------- */

static void read_ranks(struct arena *arena, const char *text, struct rank_program ranks[2])
{
    ranks[0] = read_rank(arena, text);
    ranks[1] = read_rank(arena, strchr(text, '\n') + 1);
}

static void test_pytorch(void)
{
    static char want[TEXT];
    const char *path = path_shared("data/pytorch/zb1p_2rank_2stagep_comms.csv");
    if (!has_shared(path))
        return;
    char *comms = file_text(path);
    char *compute = file_text(path_shared("data/pytorch/zb1p_2rank_2stagep_compute.csv"));
    struct arena arena;
    struct diag diag;
    arena_init(&arena, 0);
    diag_init(&diag);
    struct rank_program given[2], lowered[2], *made = NULL;
    int count = 0;
    read_ranks(&arena, comms, given);
    read_ranks(&arena, compute, lowered);
    comms_merge_bw(&arena, lowered, 2, &diag);
    tap_is_int(comms_add(&arena, lowered, 2, 1, &diag), STATUS_OK, "PyTorch's ZB1P is lowered");
    is_rank(&lowered[0], print_rank(&given[0], want), "as PyTorch does, rank 0");
    is_rank(&lowered[1], print_rank(&given[1], want), "as PyTorch does, rank 1");
    struct generate_spec spec = spec_of("interleaved_zero_bubble", 2, 2, 8);
    generate_program(&spec, &arena, &made, &count, &diag);
    comms_merge_bw(&arena, made, count, &diag);
    comms_add(&arena, made, count, 1, &diag);
    is_rank(&made[0], print_rank(&given[0], want), "and generated the same, rank 0");
    is_rank(&made[1], print_rank(&given[1], want), "and generated the same, rank 1");
    struct plan plan, out;
    begin_plan(&plan);
    plan.ranks = 2;
    plan.programs.ranks = given;
    for (int fifo = FIFO_RANK; fifo <= FIFO_EDGE; fifo++) {
        plan.programs.fifo = (enum fifo_rule)fifo;
        tap_is_int(rank_programs_lower(&plan, false, &out, &diag), STATUS_OK,
                   "PyTorch's messages, p2p.fifo %d", fifo);
        if (fifo == FIFO_RANK || fifo == FIFO_DIRECTION)
            tap_is_int(makespan(&out), 49, "take 49");
        plan_fini(&out);
    }
    plan_fini(&plan);
    diag_fini(&diag);
    arena_fini(&arena);
    free(comms);
    free(compute);
}

int main(void)
{
    test_orders();
    test_megatron_table();
    test_warm_ups();
    test_refusals();
    test_add();
    test_malformed();
    test_lowered_text();
    test_fifo();
    test_batch();
    test_fsdp();
    test_replicas();
    test_missing_order();
    test_end_of_list();
    test_buffers_of_replicas();
    test_violations();
    test_lower_refusals();
    test_warning();
    test_all_schedules();
    test_makespans();
    test_pytorch();
    return tap_done();
}
