/* SPDX-License-Identifier: Apache-2.0 */
/* steps.c - see steps.h: clean names, the stepping thread, its steps by the profiler or by what repeats. */
#include "steps.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "trace/job/call_names.h"
#include "base/assert_index.h"
#include "base/sort.h"

/* ---- names ----------------------------------------------------------------------------------- */

/* The number that ends a name behind a mark, and how long the name is without it; -1. */
static int64_t ending_number(const char *name, size_t *length)
{
    size_t at = *length;
    while (at > 0 && isdigit((unsigned char)name[at - 1]))
        at--;
    if (at == *length || at < 2 || *length - at > 18 || !strchr(" #_-:", name[at - 1]))
        return -1;
    const int64_t number = strtoll(name + at, NULL, 10);
    *length = at - 1;
    return number;
}

/* "## forward 12 ##" is forward, "Optimizer.step#SGD.step" Optimizer.step, "enumerate(DataLoader)#..." DataLoader. */
const char *steps_clean_name(const char *name, int64_t *number, struct arena *arena)
{
    static const char loop[] = "enumerate(";
    name += strspn(name, "# ");
    size_t length = strlen(name);
    while (length > 0 && strchr("# ", name[length - 1]))
        length--;
    *number = ending_number(name, &length);
    const char *sharp = memchr(name, '#', length);
    if (sharp)
        length = (size_t)(sharp - name);
    if (strncmp(name, loop, sizeof loop - 1) == 0 && memchr(name, ')', length)) {
        name += sizeof loop - 1;
        length = strcspn(name, ")");
    }
    enum { LONGEST = PLAN_MAX_NAME / 2 };
    char *clean = arena_strndup(arena, length > 0 ? name : "range",
                                length == 0        ? 5
                                : length < LONGEST ? length
                                                   : LONGEST);
    for (char *c = clean; c && *c; c++)
        if (!isalnum((unsigned char)*c) && !strchr("_.:-", *c))
            *c = '_';
    return clean;
}

/* Numbers the cleaned form of each name of the job. */
static bool number_stems(struct step_search *search)
{
    const struct names *names = &search->job->names;
    struct names stems = {0};
    search->stem = ARENA_ARRAY(search->arena, names->count + 1, int);
    for (size_t i = 0; search->stem && i < names->count; i++) {
        int64_t number;
        const char *clean = steps_clean_name(names->items[i], &number, search->arena);
        search->stem[i] = clean ? names_intern(&stems, search->arena, clean) : -1;
        if (search->stem[i] < 0)
            return false;
    }
    return search->stem != NULL;
}

bool steps_same_name(const struct step_search *search, int a, int b)
{
    return search->stem[a] == search->stem[b];
}

/* ---- the stepping thread --------------------------------------------------------------------- */

static int compare_ranges(const void *left, const void *right)
{
    const struct job_range *a = *(const struct job_range *const *)left;
    const struct job_range *b = *(const struct job_range *const *)right;
    return compare_then(
        compare_i64(a->start_ns, b->start_ns),
        compare_then(compare_i64(b->end_ns, a->end_ns), compare_int(a->name, b->name)));
}

static bool list_thread(const struct step_search *search, int thread, struct mark_list *out)
{
    const struct job_rank *rank = search->rank;
    out->count = 0;
    out->items = ARENA_ARRAY(search->arena, rank->range_count + 1, const struct job_range *);
    for (size_t i = 0; out->items && i < rank->range_count; i++)
        if (rank->ranges[i].thread == thread && rank->ranges[i].end_ns > rank->ranges[i].start_ns)
            out->items[out->count++] = &rank->ranges[i];
    if (out->items)
        SORT(out->items, out->count, compare_ranges);
    return out->items != NULL;
}

static bool is_step(const struct step_search *search, const struct job_range *range)
{
    int64_t number;
    return range_is_step(search->job->names.items[range->name], &number);
}

/* True if the device gets work in this time. A job on CPUs has its work in the thread. */
static bool has_calls(const struct step_search *search, int64_t begin_ns, int64_t end_ns)
{
    const struct job_rank *rank = search->rank;
    if (rank->is_host)
        return true;
    for (size_t i = 0; i < rank->call_count; i++)
        if (rank->calls[i].work_count > 0 && rank->calls[i].start_ns >= begin_ns &&
            rank->calls[i].start_ns < end_ns)
            return true;
    return false;
}

static void steps_add_step(struct step_search *search, int64_t begin_ns, int64_t end_ns)
{
    if (end_ns > begin_ns && has_calls(search, begin_ns, end_ns))
        search->steps[search->step_count++] =
            (struct found_step){.begin_ns = begin_ns, .end_ns = end_ns};
}

static bool room_for_steps(struct step_search *search, size_t count)
{
    search->steps = ARENA_ARRAY(search->arena, count + 1, struct found_step);
    search->step_count = 0;
    return search->steps != NULL;
}

/* A step lasts until the next one where that follows at once. */
static bool steps_take_profiler_steps(struct step_search *search)
{
    const struct mark_list *list = &search->thread;
    if (!room_for_steps(search, list->count))
        return false;
    for (size_t i = 0; i < list->count; i++)
        if (is_step(search, list->items[i]))
            steps_add_step(search, list->items[i]->start_ns, list->items[i]->end_ns);
    for (size_t i = 0; i + 1 < search->step_count; i++) {
        struct found_step *step = &search->steps[i];
        const int64_t gap = step[1].begin_ns - step->end_ns;
        if (gap > -1 && gap < (step->end_ns - step->begin_ns) / 10)
            step->end_ns = step[1].begin_ns;
    }
    return true;
}

/* The thread with the most steps of the profiler; -1: none has any. */
static int thread_of_steps(const struct step_search *search)
{
    const struct job_rank *rank = search->rank;
    size_t best = 0;
    int thread = -1;
    for (int t = 0; t < (int)rank->threads.count; t++) {
        size_t count = 0;
        for (size_t i = 0; i < rank->range_count; i++)
            count += rank->ranges[i].thread == t && is_step(search, &rank->ranges[i]);
        if (count > best) {
            best = count;
            thread = t;
        }
    }
    return thread;
}

/* ---- annotations within a time ----------------------------------------------------------------- */

/* The time that annotations within the i-th one take. */
static int64_t held_by(const struct mark_list *list, size_t outer)
{
    ASSERT_INDEX(outer, list->count);
    int64_t sum = 0, cursor = list->items[outer]->start_ns;
    for (size_t i = outer + 1;
         i < list->count && list->items[i]->start_ns < list->items[outer]->end_ns; i++) {
        const struct job_range *range = list->items[i];
        if (range->start_ns < cursor || range->end_ns > list->items[outer]->end_ns)
            continue;
        sum += range->end_ns - range->start_ns;
        cursor = range->end_ns;
    }
    return sum;
}

/* The outermost annotations between two times; not those that are nearly all of it and hold others. */
bool steps_list_between(const struct step_search *search, int64_t begin_ns, int64_t end_ns,
                        const struct job_range ***out, size_t *count)
{
    const struct mark_list *list = &search->thread;
    const size_t first = SORT_FIRST(i, 0, list->count, list->items[i]->start_ns >= begin_ns);
    size_t end = first;
    while (end < list->count && list->items[end]->start_ns < end_ns)
        end++;
    *out = ARENA_ARRAY(search->arena, end - first + 1, const struct job_range *);
    *count = 0;
    int64_t cursor = begin_ns;
    for (size_t i = first; *out && i < end; i++) {
        const struct job_range *range = list->items[i];
        const int64_t length = range->end_ns - range->start_ns;
        const bool whole = length > (end_ns - begin_ns) / 5 * 4 && held_by(list, i) > length / 2;
        if (range->start_ns < cursor || range->end_ns > end_ns || whole || is_step(search, range))
            continue;
        (*out)[(*count)++] = range;
        cursor = range->end_ns;
    }
    return *out != NULL;
}

/* ---- steps without the profiler's ---------------------------------------------------------------- */

/* How often each name comes, and its time. */
struct steps_tally {
    size_t times;
    int64_t sum_ns;
};

static struct steps_tally *tally_names(const struct step_search *search,
                                       const struct job_range **ranges, size_t count)
{
    struct steps_tally *tallies =
        ARENA_ARRAY(search->arena, search->job->names.count + 1, struct steps_tally);
    for (size_t i = 0; tallies && i < count; i++) {
        struct steps_tally *tally = &tallies[search->stem[ranges[i]->name]];
        tally->times++;
        tally->sum_ns += ranges[i]->end_ns - ranges[i]->start_ns;
    }
    return tallies;
}

/* The number of steps: how often the name with the most time comes. */
static size_t steps_count_steps(const struct step_search *search, const struct steps_tally *tallies)
{
    const struct steps_tally *most = &tallies[0];
    for (size_t i = 1; i < search->job->names.count; i++)
        if (tallies[i].sum_ns > most->sum_ns)
            most = &tallies[i];
    return most->times;
}

/* A step begins with the first name that comes as often as there are steps. */
static bool steps_take_repeated(struct step_search *search, const struct job_range **ranges,
                                size_t count)
{
    const struct steps_tally *tallies = tally_names(search, ranges, count);
    if (!tallies || !room_for_steps(search, count))
        return false;
    const size_t steps = steps_count_steps(search, tallies);
    size_t first = 0;
    while (first + 1 < count && tallies[search->stem[ranges[first]->name]].times != steps)
        first++;
    for (size_t i = first; i < count; i++)
        if (steps_same_name(search, ranges[i]->name, ranges[first]->name))
            search->steps[search->step_count++].begin_ns = ranges[i]->start_ns;
    const size_t all = search->step_count;
    search->step_count = 0;
    for (size_t i = 0; i < all; i++)
        steps_add_step(search, search->steps[i].begin_ns,
                       i + 1 < all ? search->steps[i + 1].begin_ns : ranges[count - 1]->end_ns);
    return true;
}

/* Where one annotation holds the whole run, the steps are in it. */
static bool take_inner(struct step_search *search)
{
    const struct found_step whole = search->steps[0];
    const struct job_range **ranges;
    size_t count;
    if (!steps_list_between(search, whole.begin_ns, whole.end_ns, &ranges, &count))
        return false;
    const struct steps_tally *tallies = tally_names(search, ranges, count);
    if (!tallies)
        return false;
    return count == 0 || steps_count_steps(search, tallies) < 2 ||
           steps_take_repeated(search, ranges, count);
}

/* The thread whose outermost annotations take the most time; -1: there are none. */
static int longest_thread(struct step_search *search)
{
    int64_t most = 0;
    int thread = -1;
    for (int t = 0; t < (int)search->rank->threads.count; t++) {
        if (!list_thread(search, t, &search->thread))
            return -1;
        int64_t sum = 0, cursor = INT64_MIN;
        for (size_t i = 0; i < search->thread.count; i++) {
            const struct job_range *range = search->thread.items[i];
            if (range->start_ns < cursor)
                continue;
            sum += range->end_ns - range->start_ns;
            cursor = range->end_ns;
        }
        if (sum > most) {
            most = sum;
            thread = t;
        }
    }
    return thread;
}

bool steps_find(struct step_search *search)
{
    if (!number_stems(search))
        return false;
    int thread = thread_of_steps(search);
    if (thread >= 0)
        return list_thread(search, thread, &search->thread) && steps_take_profiler_steps(search);
    thread = longest_thread(search);
    if (thread < 0)
        return true;
    const struct job_range **ranges;
    size_t count;
    return list_thread(search, thread, &search->thread) &&
           steps_list_between(search, search->thread.items[0]->start_ns, INT64_MAX / 2, &ranges,
                              &count) &&
           (count == 0 || steps_take_repeated(search, ranges, count)) &&
           (count != 1 || search->step_count != 1 || take_inner(search));
}
