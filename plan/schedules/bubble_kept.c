/* SPDX-License-Identifier: Apache-2.0 */
/* bubble_kept.c - see bubble_kept.h. */
#include "bubble_kept.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { KEPT = 16, HEAD_WORDS = 5, STAGE_WORDS = 8 };

/* A problem as words, and the lists of its ranks one behind the other. */
struct kept {
    size_t word_count;
    int64_t *words;
    struct action *actions;
    size_t *counts; /* per rank */
    struct bubble_figures figures;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct kept kept[KEPT];
static size_t added;

/* ---- problems -------------------------------------------------------------------------------- */

static size_t word_count(const struct bubble_problem *problem)
{
    return HEAD_WORDS + (size_t)problem->ranks + STAGE_WORDS * (size_t)problem->stages;
}

/* All that the search looks at. NULL: no memory. */
static int64_t *words_of(const struct bubble_problem *problem, bool known)
{
    int64_t *words = malloc(word_count(problem) * sizeof *words), *to = words;
    if (!words)
        return NULL;
    *to++ = problem->ranks;
    *to++ = problem->stages;
    *to++ = problem->microbatches;
    *to++ = known;
    *to++ = problem->again;
    for (int rank = 0; rank < problem->ranks; rank++)
        *to++ = problem->limits[rank];
    for (int stage = 0; stage < problem->stages; stage++) {
        const struct pass_times *times = &problem->times[stage];
        *to++ = problem->rank_of[stage];
        *to++ = times->f_ns;
        *to++ = times->i_ns;
        *to++ = times->w_ns;
        *to++ = problem->later_ns[stage];
        *to++ = stage + 1 < problem->stages ? problem->up_ns[stage] : 0;
        *to++ = stage + 1 < problem->stages ? problem->down_ns[stage] : 0;
        *to++ = problem->left_percent[stage];
    }
    return words;
}

/* With the lock held. */
static const struct kept *find(const int64_t *words, size_t count)
{
    for (int i = 0; i < KEPT; i++)
        if (kept[i].word_count == count && memcmp(kept[i].words, words, count * sizeof *words) == 0)
            return &kept[i];
    return NULL;
}

/* ---- lists ----------------------------------------------------------------------------------- */

static bool copy_lists(const struct kept *from, int ranks, struct arena *arena,
                       struct rank_program **out)
{
    const struct action *actions = from->actions;
    struct rank_program *lists = ARENA_ARRAY(arena, (size_t)ranks, struct rank_program);
    for (int rank = 0; lists && rank < ranks; rank++) {
        size_t count = from->counts[rank];
        lists[rank].actions = ARENA_ARRAY(arena, count, struct action);
        lists[rank].count = count;
        if (!lists[rank].actions)
            return false;
        memcpy(lists[rank].actions, actions, count * sizeof *actions);
        actions += count;
    }
    *out = lists;
    return lists != NULL;
}

static void drop(struct kept *entry)
{
    free(entry->words);
    free(entry->actions);
    free(entry->counts);
    *entry = (struct kept){0};
}

static bool fill(struct kept *entry, const struct rank_program *ranks, size_t count)
{
    size_t total = 0;
    for (size_t rank = 0; rank < count; rank++)
        total += ranks[rank].count;
    entry->counts = malloc(count * sizeof *entry->counts);
    entry->actions = malloc((total + 1) * sizeof *entry->actions);
    if (!entry->counts || !entry->actions)
        return false;
    struct action *to = entry->actions;
    for (size_t rank = 0; rank < count; rank++) {
        entry->counts[rank] = ranks[rank].count;
        memcpy(to, ranks[rank].actions, ranks[rank].count * sizeof *to);
        to += ranks[rank].count;
    }
    return true;
}

/* ---- both ------------------------------------------------------------------------------------ */

bool bubble_kept_find(const struct bubble_problem *problem, bool known, struct arena *arena,
                      struct rank_program **ranks, struct bubble_figures *figures)
{
    int64_t *words = words_of(problem, known);
    if (!words)
        return false;
    pthread_mutex_lock(&lock);
    const struct kept *entry = find(words, word_count(problem));
    bool found = entry && copy_lists(entry, problem->ranks, arena, ranks);
    if (found)
        *figures = entry->figures;
    pthread_mutex_unlock(&lock);
    free(words);
    return found;
}

void bubble_kept_add(const struct bubble_problem *problem, bool known,
                     const struct rank_program *ranks, const struct bubble_figures *figures)
{
    struct kept entry = {
        .word_count = word_count(problem), .words = words_of(problem, known), .figures = *figures};
    if (!entry.words || !fill(&entry, ranks, (size_t)problem->ranks)) {
        drop(&entry);
        return;
    }
    pthread_mutex_lock(&lock);
    if (find(entry.words, entry.word_count)) {
        drop(&entry);
    } else {
        struct kept *place = &kept[added++ % KEPT];
        drop(place);
        *place = entry;
    }
    pthread_mutex_unlock(&lock);
}
