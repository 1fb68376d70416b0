/* SPDX-License-Identifier: Apache-2.0 */
/* difference.c - see difference.h. */
#include "difference.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/sort.h"
#include "trace/trace.h"

#define CAUSE_WORDS_LIST(X)                                                                        \
    X("dependence", "work of other streams or threads")                                            \
    X("clock", "the next period of the clock driver")                                              \
    X("backpressure", "an iteration in flight to retire")                                          \
    X("host", "the host to launch its work")                                                       \
    X("head_of_line", "a thread that is blocked before it can launch its work")                    \
    X("sync", "the host, which is or was blocked in a sync")                                       \
    X("peer", "other members of a collective")                                                     \
    X("resource", "a resource")                                                                    \
    X("no_more_data", "nothing: no more work comes")                                               \
    X(LEDGER_ORDER, "its turn after the work before it")                                           \
    X(LEDGER_UNEXPLAINED, "nothing that the run's record explains")                                \
    X(ACCOUNT_NOT_RECORDED, "a cause that is not recorded")

const char *difference_cause_words(const char *cause)
{
#define X(key, words)                                                                              \
    if (strcmp(cause, key) == 0)                                                                   \
        return words;
    CAUSE_WORDS_LIST(X)
#undef X
    return cause;
}

struct difference_builder {
    const struct run_account *before, *after;
    struct arena *arena;
    struct difference *out;
};

/* ---- which streams belong together ----------------------------------------------------------- */

static double shared_work(const struct account_stream *a, const struct account_stream *b)
{
    double sum = 0;
    for (size_t i = 0; i < a->tasks.count; i++) {
        const struct account_part *other = account_find_task(b, a->tasks.items[i].name);
        if (other)
            sum += fmin(a->tasks.items[i].ns, other->ns);
    }
    return sum;
}

struct couple {
    double shared_ns, score; /* the name of a stream counts a little, too */
    size_t before, after;
    bool by_name; /* of one name, and one of the two has no work that could be shared */
};

static int most_shared_first(const void *left, const void *right)
{
    const struct couple *a = left, *b = right;
    return compare_then(
        compare_double(b->score, a->score),
        compare_then(compare_size(a->before, b->before), compare_size(a->after, b->after)));
}

static void difference_add_stream(struct difference_builder *builder,
                                  const struct account_stream *before,
                                  const struct account_stream *after)
{
    builder->out->streams[builder->out->stream_count++] =
        (struct difference_stream){.before = before, .after = after};
}

/* Greedily: the couple that shares the most work, then the next of the others; streams without work by their names. */
static void couple_up(struct difference_builder *builder, struct couple *couples, size_t count,
                      bool *before_taken, bool *after_taken)
{
    const struct run_account *before = builder->before, *after = builder->after;
    for (size_t i = 0; i < count; i++) {
        const struct couple *couple = &couples[i];
        if ((couple->shared_ns <= 0 && !couple->by_name) || before_taken[couple->before] ||
            after_taken[couple->after])
            continue;
        before_taken[couple->before] = after_taken[couple->after] = true;
        difference_add_stream(builder, &before->streams[couple->before],
                              &after->streams[couple->after]);
    }
    for (size_t i = 0; i < before->stream_count; i++)
        if (!before_taken[i])
            difference_add_stream(builder, &before->streams[i], NULL);
    for (size_t i = 0; i < after->stream_count; i++)
        if (!after_taken[i])
            difference_add_stream(builder, NULL, &after->streams[i]);
}

static bool difference_find_streams(struct difference_builder *builder)
{
    const struct run_account *before = builder->before, *after = builder->after;
    const size_t count = before->stream_count * after->stream_count;
    const size_t all = before->stream_count + after->stream_count;
    struct couple *couples = ARENA_ARRAY(builder->arena, count + 1, struct couple);
    bool *taken = ARENA_ARRAY(builder->arena, all + 1, bool);
    builder->out->streams = ARENA_ARRAY(builder->arena, all + 1, struct difference_stream);
    if (!couples || !taken || !builder->out->streams)
        return false;
    for (size_t i = 0; i < count; i++) {
        const size_t b = i / after->stream_count, a = i % after->stream_count;
        const struct account_stream *one = &before->streams[b], *other = &after->streams[a];
        const double shared_ns = shared_work(one, other);
        const bool same_name = strcmp(one->name, other->name) == 0;
        const bool idle = one->busy_ns <= 0 || other->busy_ns <= 0;
        couples[i] = (struct couple){.shared_ns = shared_ns,
                                     .score = same_name ? 1.1 * shared_ns : shared_ns,
                                     .before = b,
                                     .after = a,
                                     .by_name = same_name && idle};
    }
    SORT(couples, count, most_shared_first);
    couple_up(builder, couples, count, taken, taken + before->stream_count);
    return true;
}

/* ---- rows ------------------------------------------------------------------------------------ */

/* A trace does not tell a host that is slow from one that is blocked before the launch. */
static const char *known_cause(const struct account_part *part, bool coarse)
{
    const bool blocked = part->cause && (strcmp(part->cause, "head_of_line") == 0 ||
                                         strcmp(part->cause, "sync") == 0);
    return coarse && blocked ? "host" : part->cause;
}

static bool difference_is_same(const struct difference_row *row, const struct account_part *part,
                               bool coarse)
{
    if (!row->cause || !part->cause)
        return !row->cause && !part->cause && strcmp(row->name, part->name) == 0;
    if (strcmp(row->cause, known_cause(part, coarse)) != 0)
        return false;
    if (coarse || !row->waits_for || !part->waits_for)
        return coarse || row->waits_for == part->waits_for;
    return strcmp(row->waits_for, part->waits_for) == 0;
}

static void difference_add_parts(struct difference_builder *builder,
                                 struct difference_stream *stream,
                                 const struct account_parts *parts, bool is_after)
{
    for (size_t i = 0; i < parts->count; i++) {
        const struct account_part *part = &parts->items[i];
        const bool coarse = builder->out->coarse;
        size_t at = 0;
        while (at < stream->row_count && !difference_is_same(&stream->rows[at], part, coarse))
            at++;
        struct difference_row *row = &stream->rows[at];
        if (at == stream->row_count) {
            stream->row_count++;
            *row = (struct difference_row){.name = part->name,
                                           .cause = known_cause(part, coarse),
                                           .waits_for = coarse ? NULL : part->waits_for};
            if (coarse && part->cause)
                row->name = difference_cause_words(row->cause);
        }
        *(is_after ? &row->after_ns : &row->before_ns) += part->ns;
        *(is_after ? &row->after_count : &row->before_count) += part->count;
    }
}

static double task_ns(const struct run_account *account, const char *name)
{
    double sum = 0;
    for (size_t i = 0; i < account->stream_count; i++) {
        const struct account_part *part = account_find_task(&account->streams[i], name);
        sum += part ? part->ns : 0;
    }
    return sum;
}

static int difference_greatest_first(const void *left, const void *right)
{
    const struct difference_row *a = left, *b = right;
    return compare_then(compare_double(fabs(difference_change(b)), fabs(difference_change(a))),
                        strcmp(a->name, b->name));
}

static size_t count_parts(const struct account_stream *stream)
{
    return stream ? stream->tasks.count + stream->idle.count : 0;
}

static bool difference_find_rows(struct difference_builder *builder,
                                 struct difference_stream *stream)
{
    const size_t most = count_parts(stream->before) + count_parts(stream->after);
    stream->rows = ARENA_ARRAY(builder->arena, most + 1, struct difference_row);
    if (!stream->rows)
        return false;
    for (int is_after = 0; is_after <= 1; is_after++) {
        const struct account_stream *side = is_after ? stream->after : stream->before;
        if (!side)
            continue;
        difference_add_parts(builder, stream, &side->tasks, is_after);
        difference_add_parts(builder, stream, &side->idle, is_after);
    }
    for (size_t i = 0; i < stream->row_count; i++) {
        struct difference_row *row = &stream->rows[i];
        if (row->cause && row->waits_for)
            row->itself_ns =
                task_ns(builder->after, row->waits_for) - task_ns(builder->before, row->waits_for);
    }
    SORT(stream->rows, stream->row_count, difference_greatest_first);
    return true;
}

/* ---- all together ---------------------------------------------------------------------------- */

static double difference_work_of(const struct difference_stream *stream)
{
    return (stream->before ? stream->before->busy_ns : 0) +
           (stream->after ? stream->after->busy_ns : 0);
}

/* Couples first, and the most work. */
static int main_first(const void *left, const void *right)
{
    const struct difference_stream *a = left, *b = right;
    const bool pair_a = a->before && a->after, pair_b = b->before && b->after;
    return compare_then(compare_int(pair_b, pair_a),
                        compare_double(difference_work_of(b), difference_work_of(a)));
}

static double all_work(const struct run_account *account)
{
    double sum = 0;
    for (size_t i = 0; i < account->stream_count; i++)
        sum += account->streams[i].busy_ns;
    return sum;
}

/* The part of the shorter run's work that is in both, by name and stream. */
static double shared_share(const struct difference *out, const struct run_account *before,
                           const struct run_account *after)
{
    double sum = 0;
    for (size_t i = 0; i < out->stream_count; i++)
        if (out->streams[i].before && out->streams[i].after)
            sum += shared_work(out->streams[i].before, out->streams[i].after);
    return sum / fmin(all_work(before), all_work(after));
}

static bool is_uncaused(const struct difference_row *row)
{
    return row->cause && (strcmp(row->cause, LEDGER_UNEXPLAINED) == 0 ||
                          strcmp(row->cause, ACCOUNT_NOT_RECORDED) == 0);
}

enum status difference_make(const struct run_account *before, const struct run_account *after,
                            struct arena *arena, struct difference *out, struct diag *diag)
{
    struct difference made = {.before_ns = before->step_ns,
                              .after_ns = after->step_ns,
                              .by_steps = before->by_steps,
                              .coarse = before->modelled != after->modelled};
    struct difference_builder builder = {before, after, arena, &made};
    if (!difference_find_streams(&builder))
        return diag_no_memory(diag);
    SORT(made.streams, made.stream_count, main_first);
    const double share = shared_share(&made, before, after);
    if (!(share >= DIFFERENCE_LEAST))
        return diag_error(diag, STATUS_INPUT,
                          "the two runs have tasks of the same names for only %.0f%% of their "
                          "work: they are of unrelated plans",
                          share > 0 ? 100 * share : 0);
    for (size_t i = 0; i < made.stream_count; i++)
        if (!difference_find_rows(&builder, &made.streams[i]))
            return diag_no_memory(diag);
    made.left_ns = made.after_ns - made.before_ns;
    for (size_t i = 0; i < made.streams[0].row_count; i++) {
        const struct difference_row *row = &made.streams[0].rows[i];
        made.left_ns -= difference_change(row);
        made.uncaused_ns += is_uncaused(row) ? difference_change(row) : 0;
    }
    *out = made;
    return STATUS_OK;
}
