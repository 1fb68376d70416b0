/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store_steps.c - see store_sql.h: steps go into the store in blocks.
 *
 * A run has many steps and few kinds of them. Rank, agent, operation and task of a step are a row of step_word, once a run.
 * The rest of it is one whole number, and those of up to STEP_BLOCK steps are a JSON array in a row of step_block; the view
 * `step` makes rows of them again. A row a step takes four times the bytes and twenty times the time.
 *
 * Of a block with the least iteration i, the least time t and the numbers of words and iterations W and N, a step is the
 * number ((time - t) * N + iteration - i + 1) * W + word; without an iteration the middle term is 0.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/hash.h"
#include "store_sql.h"
#include "base/sort.h"

enum { NUMBER_TEXT = 20 };

/* ---- words ------------------------------------------------------------------------------------ */

static uint64_t hash_text(const char *text)
{
    return text ? hash_bytes(text, strlen(text)) : 0;
}

static bool store_steps_same_word(const struct step_word *word, const struct trace_step *step)
{
    return word->rank == step->rank && equal_text(word->agent, step->agent) &&
           equal_text(word->op, step->op) &&
           equal_text(word->task, step->task);
}

static enum status store_steps_add_word(struct store *store, uint64_t hash,
                                        const struct trace_step *step, int64_t *out,
                                        struct diag *diag)
{
    struct step_blocks *blocks = &store->steps;
    const struct store_sql_value row[] = {
        value_int(blocks->run),    value_int(blocks->next_word), value_int(step->rank),
        value_string(step->agent), value_string(step->op),       value_text(step->task),
    };
    const struct step_word word = {
        .rank = step->rank,
        .agent = arena_strdup(&blocks->texts, step->agent ? step->agent : ""),
        .op = arena_strdup(&blocks->texts, step->op ? step->op : ""),
        .task = step->task ? arena_strdup(&blocks->texts, step->task) : NULL,
        .number = blocks->next_word,
    };
    const size_t count = blocks->table.count;
    if (blocks->texts.failed || !ARRAY_GROW(blocks->words, count, blocks->word_cap) ||
        !table_add(&blocks->table, hash, count))
        return diag_no_memory(diag);
    blocks->words[count] = word;
    *out = blocks->next_word++;
    return sql_insert(store, STATEMENT_ADD_STEP_WORD, row, NULL, diag);
}

static enum status store_steps_word_of(struct store *store, const struct trace_step *step,
                                       int64_t *out, struct diag *diag)
{
    const struct step_blocks *blocks = &store->steps;
    const uint64_t parts[] = {hash_text(step->agent), hash_text(step->op), hash_text(step->task),
                              (uint64_t)step->rank};
    const uint64_t hash = hash_words(parts, sizeof parts / sizeof *parts);
    const uint32_t found =
        TABLE_FIND(&blocks->table, hash, i, store_steps_same_word(&blocks->words[i], step));
    if (found == TABLE_NONE)
        return store_steps_add_word(store, hash, step, out, diag);
    *out = blocks->words[found].number;
    return STATUS_OK;
}

struct bounds {
    int64_t iteration, time_ns; /* the least */
    uint64_t words, iterations; /* their numbers, with 0 for no iteration */
};

/* False: a step of these does not fit into a number. */
static bool find_bounds(const struct kept_step *steps, int count, struct bounds *out)
{
    int64_t word = 0, first = INT64_MAX, last = -1, begin_ns = INT64_MAX, end_ns = INT64_MIN;
    for (int i = 0; i < count; i++) {
        const struct kept_step *step = &steps[i];
        word = step->word > word ? step->word : word;
        first = step->iteration >= 0 && step->iteration < first ? step->iteration : first;
        last = step->iteration > last ? step->iteration : last;
        begin_ns = step->time_ns < begin_ns ? step->time_ns : begin_ns;
        end_ns = step->time_ns > end_ns ? step->time_ns : end_ns;
    }
    *out = (struct bounds){.iteration = last < 0 ? 0 : first,
                           .time_ns = begin_ns,
                           .words = (uint64_t)word + 1,
                           .iterations = last < 0 ? 1 : (uint64_t)(last - first) + 2};
    uint64_t most = (uint64_t)end_ns - (uint64_t)begin_ns;
    return !__builtin_add_overflow(most, 1, &most) &&
           !__builtin_mul_overflow(most, out->iterations, &most) &&
           !__builtin_mul_overflow(most, out->words, &most) && most <= INT64_MAX;
}

static char *print_number(char *out, uint64_t number)
{
    char digits[NUMBER_TEXT];
    int count = 0;
    do
        digits[count++] = (char)('0' + number % 10);
    while (number /= 10);
    while (count > 0)
        *out++ = digits[--count];
    return out;
}

static void print_numbers(const struct kept_step *steps, int count, const struct bounds *bounds,
                          char *out)
{
    *out++ = '[';
    for (int i = 0; i < count; i++) {
        const struct kept_step *step = &steps[i];
        uint64_t number = (uint64_t)(step->time_ns - bounds->time_ns) * bounds->iterations;
        if (step->iteration >= 0)
            number += (uint64_t)(step->iteration - bounds->iteration) + 1;
        out = print_number(out, number * bounds->words + (uint64_t)step->word);
        *out++ = i + 1 < count ? ',' : ']';
    }
    *out = '\0';
}

static enum status store_steps_write_steps(struct store *store, int64_t seq,
                                           const struct kept_step *steps, int count,
                                           struct diag *diag)
{
    char numbers[STEP_BLOCK * (NUMBER_TEXT + 1) + 2];
    struct bounds bounds;
    if (!find_bounds(steps, count, &bounds) && count > 1) {
        enum status status = store_steps_write_steps(store, seq, steps, count / 2, diag);
        return status ? status
                      : store_steps_write_steps(store, seq + count / 2, steps + count / 2,
                                                count - count / 2, diag);
    }
    print_numbers(steps, count, &bounds, numbers);
    const struct store_sql_value row[] = {
        value_int(store->steps.run),
        value_int(seq),
        value_int((int64_t)bounds.words),
        value_int((int64_t)bounds.iterations),
        value_int(bounds.iteration),
        value_int(bounds.time_ns),
        value_string(numbers),
    };
    return sql_insert(store, STATEMENT_ADD_STEP_BLOCK, row, NULL, diag);
}

enum status sql_flush_steps(struct store *store, struct diag *diag)
{
    struct step_blocks *blocks = &store->steps;
    int count = blocks->count;
    blocks->count = 0;
    return count ? store_steps_write_steps(store, blocks->seq, blocks->steps, count, diag)
                 : STATUS_OK;
}

/* ---- a step ----------------------------------------------------------------------------------- */

/* Steps of another run than before. Words that an earlier user of the store wrote for it stay as they are. */
static enum status begin_steps(struct store *store, int64_t run, struct diag *diag)
{
    const struct store_sql_value values[] = {value_int(run)};
    sql_free_steps(store);
    store->steps.run = run;
    return sql_number(store, STATEMENT_NEXT_STEP_WORD, values, &store->steps.next_word, diag);
}

enum status sql_add_step(struct store *store, int64_t run, const struct trace_step *step,
                         struct diag *diag)
{
    struct step_blocks *blocks = &store->steps;
    enum status status = STATUS_OK;
    int64_t word = 0;
    if (blocks->count > 0 && (run != blocks->run || step->seq != blocks->seq + blocks->count))
        status = sql_flush_steps(store, diag);
    if (!status && run != blocks->run)
        status = begin_steps(store, run, diag);
    if (!status)
        status = store_steps_word_of(store, step, &word, diag);
    if (status)
        return status;
    if (blocks->count == 0)
        blocks->seq = step->seq;
    assert(blocks->count < STEP_BLOCK && word >= 0 && word < blocks->next_word);
    blocks->steps[blocks->count++] = (struct kept_step){word, step->iteration, step->time_ns};
    return blocks->count < STEP_BLOCK ? STATUS_OK : sql_flush_steps(store, diag);
}

/* ---- steps of an older store ------------------------------------------------------------------ */

static const char *store_steps_column_text(const struct query *query, int column)
{
    return (const char *)sqlite3_column_text(query->statement, column);
}

static enum status move_rows(struct store *store, struct diag *diag)
{
    enum status status = STATUS_OK;
    struct query query = sql_query(store, STATEMENT_OLD_STEPS, NULL);
    while (status == STATUS_OK && sql_next(&query)) {
        const struct trace_step step = {
            .seq = sql_int(&query, 1),
            .rank = (int)sql_quantity(&query, 2, QUANTITY_ANY_RANK, &status, diag),
            .agent = store_steps_column_text(&query, 3),
            .op = store_steps_column_text(&query, 4),
            .task = store_steps_column_text(&query, 5),
            .iteration = sql_quantity(&query, 6, QUANTITY_ITERATION, &status, diag),
            .time_ns = sql_quantity(&query, 7, QUANTITY_TIME, &status, diag),
        };
        if (status == STATUS_OK)
            status = sql_add_step(store, sql_int(&query, 0), &step, diag);
    }
    return sql_end(&query, status, diag);
}

enum status sql_move_steps(struct store *store, struct diag *diag)
{
    store->in_transaction = true;
    store->rows = INT_MIN; /* one transaction, however many they are */
    enum status status = move_rows(store, diag);
    if (!status)
        status = sql_flush_steps(store, diag);
    if (!status && !sql_execute(store, STATEMENT_DROP_OLD_STEPS, NULL))
        status = sql_error(store, "create", diag);
    store->in_transaction = false;
    store->rows = 0;
    store->run = 0;
    return status;
}

void sql_free_steps(struct store *store)
{
    arena_fini(&store->steps.texts);
    free(store->steps.words);
    table_fini(&store->steps.table);
    store->steps = (struct step_blocks){0};
}
