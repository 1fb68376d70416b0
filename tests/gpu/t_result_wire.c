/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_result_wire.c - results travel from rank to rank (sim/predict/result_wire.c): random ones arrive as they were sent, all
 * members of them; and what is torn, cut off, too long, or lies about its counts is refused, without a
 * byte being read outside (which the sanitizers see).
 *
 * All is drawn from SWSIM_SEED (default: the time), which is printed.
 */
#include "sim/predict/result_wire.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "plan/text/parse.h"
#include "tests/harness.h"
#include "tests/random_draw.h"
#include "tests/tap.h"

enum { REPLICATIONS = 6, ROUNDS = 200, MAX_BLAMES = 5, MAX_BLOCKED = 3, MESSAGES = 8 };

static const char plan_text[] = "swplan: 1\nname: t\nranks: 2\nschedule:\n"
                                "  A: {stage: 0, stream: a, time: 100us, shares: {sm: 0.75}}\n"
                                "  B: {stage: 1, stream: b, time: 200us, shares: {sm: 0.75}}\n"
                                "intra_iter_deps: [[B, A]]\n";

static struct random rng;

/* ---- a transport that keeps what is sent ----------------------------------------------------- */

struct parcel {
    char *data;
    size_t bytes;
};

struct post {
    struct parcel parcels[MESSAGES];
    int sent, taken;
};

static void put(struct post *post, const void *data, size_t bytes)
{
    if (post->sent == MESSAGES)
        abort();
    struct parcel *parcel = &post->parcels[post->sent++];
    parcel->bytes = bytes;
    parcel->data = malloc(bytes ? bytes : 1); /* exactly: one byte more is seen */
    if (!parcel->data)
        abort();
    memcpy(parcel->data, data, bytes);
}

static enum status carry(void *context, const void *data, size_t bytes, struct diag *diag)
{
    (void)diag;
    put(context, data, bytes);
    return STATUS_OK;
}

static enum status deliver(void *context, int from, void **data, size_t *bytes, struct diag *diag)
{
    struct post *post = context;
    (void)from;
    if (post->taken == post->sent)
        return diag_error(diag, STATUS_SYSTEM, "no more post");
    *data = post->parcels[post->taken].data;
    *bytes = post->parcels[post->taken++].bytes;
    return STATUS_OK;
}

static struct result_wire spread_over(struct post *post)
{
    return (struct result_wire){.size = 2, .context = post, .send = carry, .receive = deliver};
}

static void forget(struct post *post)
{
    for (; post->taken < post->sent; post->taken++)
        free(post->parcels[post->taken].data);
    *post = (struct post){0};
}

/* ---- random results -------------------------------------------------------------------------- */

static void *some(size_t count, size_t size)
{
    void *memory = calloc(count + 1, size);
    if (!memory)
        abort();
    return memory;
}

/* Any bytes. */
static void scribble(void *memory, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        ((unsigned char *)memory)[i] = (unsigned char)below(&rng, 256);
}

static int64_t number(void)
{
    return (int64_t)hash_mix((uint64_t)below(&rng, 1 << 30)) >> below(&rng, 64);
}

static struct stall some_stall(const struct program *program)
{
    int who = below(&rng, 3);
    struct stall stall = {.cause = (enum stall_cause)below(&rng, STALL_COUNT), .on = STALL_ON_NONE};
    if (who == 1 && stall.cause == STALL_RESOURCE)
        stall = stall_for_resource(HELD_FULL, below(&rng, program->agent_count));
    else if (who == 1 && program->tasks)
        stall.on = below(&rng, program->tasks);
    if (who == 2)
        stall.on = ~below(&rng, program->agent_count);
    return stall;
}

static void draw_account(const struct program *program, struct stream_account *out)
{
    scribble(out, sizeof *out);
    out->table = (struct table){0};
    out->blame_count = out->blame_cap = below(&rng, MAX_BLAMES + 1);
    out->blames = out->blame_count ? some((size_t)out->blame_count, sizeof *out->blames) : NULL;
    for (int i = 0; i < out->blame_count; i++)
        out->blames[i] = (struct blame){some_stall(program), number()};
}

static void draw_blocked(const struct program *program, struct blocked *out)
{
    size_t bytes = (size_t)below(&rng, 40);
    out->agent = below(&rng, program->agent_count);
    out->waits_for = some(bytes, 1);
    memset(out->waits_for, 'a' + below(&rng, 26), bytes);
}

static void draw(const struct program *program, struct simulation_result *out)
{
    scribble(out, sizeof *out);
    out->stream_count = program->stream_count;
    out->streams = some((size_t)out->stream_count, sizeof *out->streams);
    out->violated &= (1u << PROPERTY_COUNT) - 1;
    out->iteration.doubt = (enum doubt)below(&rng, 2);
    out->iteration.part_count = below(&rng, STATISTICS_BATCHES + 1);
    out->blocked_count = (size_t)below(&rng, MAX_BLOCKED + 1);
    out->blocked = out->blocked_count ? some(out->blocked_count, sizeof *out->blocked) : NULL;
    out->slowdowns = NULL;
    for (int s = 0; s < out->stream_count; s++)
        draw_account(program, &out->streams[s]);
    for (size_t i = 0; i < out->blocked_count; i++)
        draw_blocked(program, &out->blocked[i]);
    size_t subjects = (size_t)sharing_subject_count(program);
    if (rarely(&rng, 2) || subjects == 0)
        return;
    out->slowdowns = some(subjects, sizeof *out->slowdowns);
    scribble(out->slowdowns, subjects * sizeof *out->slowdowns);
}

/* ---- are they the same? ---------------------------------------------------------------------- */

/* Everything but where it lies. */
static bool same_account(const struct stream_account *a, const struct stream_account *b)
{
    struct stream_account x = *a, y = *b;
    x.blames = y.blames = NULL;
    return memcmp(&x, &y, sizeof x) == 0 &&
           (a->blame_count == 0 ||
            memcmp(a->blames, b->blames, (size_t)a->blame_count * sizeof *a->blames) == 0);
}

static bool same(const struct program *program, const struct simulation_result *a,
                 const struct simulation_result *b)
{
    struct simulation_result x = *a, y = *b;
    x.streams = y.streams = NULL;
    x.slowdowns = y.slowdowns = NULL;
    x.blocked = y.blocked = NULL;
    bool equal = memcmp(&x, &y, sizeof x) == 0 && !a->slowdowns == !b->slowdowns;
    for (int s = 0; equal && s < a->stream_count; s++)
        equal = same_account(&a->streams[s], &b->streams[s]);
    for (size_t i = 0; equal && i < a->blocked_count; i++)
        equal = a->blocked[i].agent == b->blocked[i].agent &&
                strcmp(a->blocked[i].waits_for, b->blocked[i].waits_for) == 0;
    size_t bytes = (size_t)sharing_subject_count(program) * sizeof *a->slowdowns;
    return equal && (!a->slowdowns || memcmp(a->slowdowns, b->slowdowns, bytes) == 0);
}

/* ---- journeys -------------------------------------------------------------------------------- */

/* Rank 0's side of what is in the post; the results as far as they came. */
static enum status gather(const struct program *program, struct post *post, int count,
                          struct simulation_result *results, struct diag *diag)
{
    struct simulation_result *places[REPLICATIONS];
    struct result_wire wire = spread_over(post);
    double cpu_seconds = 0;
    for (int i = 0; i < count; i++) {
        results[i] = (struct simulation_result){0};
        places[i] = &results[i];
    }
    enum status status = result_wire_gather(&wire, program, places, count, &cpu_seconds, diag);
    forget(post);
    return status;
}

static void drop(struct simulation_result *results, int count)
{
    for (int i = 0; i < count; i++)
        simulation_fini(&results[i]);
}

static void test_journeys(const struct program *program)
{
    int right = 0;
    for (int round = 0; round < ROUNDS; round++) {
        struct simulation_result sent[REPLICATIONS], got[REPLICATIONS];
        struct post post = {0};
        struct result_wire wire = spread_over(&post);
        struct diag diag;
        diag_init(&diag);
        bool good = true;
        for (int i = 0; i < REPLICATIONS; i++)
            draw(program, &sent[i]);
        for (int i = REPLICATIONS; good && i-- > 0;)
            good = !result_wire_send(&wire, program, i, &sent[i], &diag);
        good = good && !result_wire_end(&wire, STATUS_OK, 1.5, &diag, &diag) &&
               !gather(program, &post, REPLICATIONS, got, &diag);
        for (int i = 0; i < REPLICATIONS; i++)
            good = good && same(program, &sent[i], &got[i]);
        right += good;
        drop(sent, REPLICATIONS);
        drop(got, REPLICATIONS);
        diag_fini(&diag);
    }
    tap_is_int(right, ROUNDS, "results arrive as they were sent");
}

/* One message and the end of the rank; true: refused, with words. */
static bool is_refused(const struct program *program, const struct parcel *end, const char *data,
                       size_t bytes)
{
    struct simulation_result got[REPLICATIONS];
    struct post post = {0};
    struct diag diag;
    diag_init(&diag);
    put(&post, data, bytes);
    put(&post, end->data, end->bytes);
    enum status status = gather(program, &post, 1, got, &diag);
    bool refused = status != STATUS_OK && diag.errors > 0;
    drop(got, 1);
    diag_fini(&diag);
    return refused;
}

/* A reader of a result: go where its counts and numbers say. */
static long long visit(const struct program *program, const struct simulation_result *result)
{
    long long sum = 0;
    char name[200];
    for (int s = 0; s < program->stream_count; s++)
        for (int i = 0; i < result->streams[s].blame_count; i++) {
            const struct stall *stall = &result->streams[s].blames[i].stall;
            sum += stall_describe(program, 0, stall, name, sizeof name)[0];
        }
    for (size_t i = 0; i < result->blocked_count; i++) {
        program_agent_name(program, result->blocked[i].agent, name, sizeof name);
        sum += (long long)strlen(result->blocked[i].waits_for);
    }
    return sum + doubt_words(result->iteration.doubt)[0];
}

/* Some bytes of a message are others: refused, or a result that can be read. */
static void test_damage(const struct program *program, const struct parcel *piece,
                        const struct parcel *end)
{
    int refused = 0;
    long long sum = 0;
    for (int round = 0; round < 20 * ROUNDS; round++) {
        struct simulation_result got[1];
        struct post post = {0};
        struct diag diag;
        diag_init(&diag);
        put(&post, piece->data, piece->bytes);
        put(&post, end->data, end->bytes);
        struct parcel *hit = &post.parcels[rarely(&rng, 5)];
        for (int hits = 1 + below(&rng, 4); hits > 0; hits--)
            hit->data[below(&rng, (int)hit->bytes)] = (char)below(&rng, 256);
        if (gather(program, &post, 1, got, &diag) == STATUS_OK)
            sum += visit(program, &got[0]);
        else
            refused += diag.errors > 0;
        drop(got, 1);
        diag_fini(&diag);
    }
    tap_ok(refused > 0, "of %d damaged messages %d were refused (%lld)", 20 * ROUNDS, refused, sum);
}

/* A number at each place of the message, as large, as small and as negative as can be. */
static void test_lies(const struct program *program, const struct parcel *piece,
                      const struct parcel *end)
{
    static const int32_t lies[] = {-1, INT32_MIN, INT32_MAX, 1 << 20, 0};
    int refused = 0, places = 0;
    char *lie = some(piece->bytes, 1);
    for (size_t at = 0; at + 4 <= piece->bytes; at += 4)
        for (size_t i = 0; i < sizeof lies / sizeof *lies; i++, places++) {
            memcpy(lie, piece->data, piece->bytes);
            memcpy(lie + at, &lies[i], sizeof lies[i]);
            refused += is_refused(program, end, lie, piece->bytes);
        }
    free(lie);
    tap_ok(refused > 0 && refused < places, "of %d lies %d were refused, the others only are wrong",
           places, refused);
}

static void test_torn(const struct program *program, const struct parcel *piece,
                      const struct parcel *end)
{
    size_t refused = 0;
    for (size_t bytes = 0; bytes < piece->bytes; bytes++)
        refused += is_refused(program, end, piece->data, bytes);
    tap_is_int((long long)refused, (long long)piece->bytes, "whatever is cut off is refused");
    char *longer = some(piece->bytes + 100, 1);
    memcpy(longer, piece->data, piece->bytes);
    tap_ok(!is_refused(program, end, longer, piece->bytes), "the whole is not");
    tap_ok(is_refused(program, end, longer, piece->bytes + 1) &&
               is_refused(program, end, longer, piece->bytes + 100),
           "what is too long is");
    free(longer);
}

/* The right bytes at the wrong time. */
static void test_order(const struct program *program, const struct parcel *piece,
                       const struct parcel *end)
{
    struct simulation_result got[2];
    struct post post = {0};
    struct diag diag;
    diag_init(&diag);
    put(&post, piece->data, piece->bytes);
    put(&post, piece->data, piece->bytes);
    put(&post, end->data, end->bytes);
    tap_is_int(gather(program, &post, 1, got, &diag), STATUS_SYSTEM, "a result that comes twice");
    drop(got, 1);
    put(&post, piece->data, piece->bytes);
    put(&post, end->data, end->bytes);
    tap_is_int(gather(program, &post, 2, got, &diag), STATUS_SYSTEM, "one that never comes");
    drop(got, 2);
    diag_fini(&diag);
    diag_init(&diag);
    struct result_wire wire = spread_over(&post);
    diag_error_at(&diag, "x.yaml", NULL, (struct mark){3, 4}, "bad");
    tap_ok(!result_wire_end(&wire, STATUS_INPUT, 0, &diag, &diag), "a failure");
    tap_is_int(gather(program, &post, 0, got, &diag), STATUS_INPUT, "keeps its status");
    tap_is_str(diag.messages[diag.count - 1].text, "MPI rank 1: x.yaml:3:4: bad", "and its words");
    diag_fini(&diag);
}

/* ---- main ------------------------------------------------------------------------------------ */

/* A message with one result and the last one of a rank. */
static void make_parcels(const struct program *program, struct post *post)
{
    struct result_wire wire = spread_over(post);
    struct simulation_result result;
    struct diag diag;
    diag_init(&diag);
    do {
        draw(program, &result);
        if (result.blocked_count && result.slowdowns && result.streams[0].blame_count)
            break;
        simulation_fini(&result);
    } while (true);
    if (result_wire_send(&wire, program, 0, &result, &diag) ||
        result_wire_end(&wire, STATUS_OK, 0, &diag, &diag))
        abort();
    simulation_fini(&result);
    diag_fini(&diag);
}

int main(void)
{
    const struct program_options options = {.driver = DRIVER_CLOCK, .iterations = 4};
    struct plan plan;
    struct program *program;
    struct diag diag;
    struct post post = {0};
    diag_init(&diag);
    rng.seed = env_seed();
    if (plan_parse("t.yaml", plan_text, strlen(plan_text), &plan, &diag) ||
        program_build(&plan, &options, &program, &diag)) {
        tap_ok(0, "the plan: %s", diag.count ? diag.messages[0].text : "?");
        return tap_done();
    }
    tap_ok(sharing_subject_count(program) > 0, "somebody may be slowed down");
    test_journeys(program);
    make_parcels(program, &post);
    test_torn(program, &post.parcels[0], &post.parcels[1]);
    test_order(program, &post.parcels[0], &post.parcels[1]);
    test_lies(program, &post.parcels[0], &post.parcels[1]);
    test_damage(program, &post.parcels[0], &post.parcels[1]);
    forget(&post);
    program_close(program);
    plan_fini(&plan);
    diag_fini(&diag);
    return tap_done();
}
