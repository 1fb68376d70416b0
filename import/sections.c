/* sections.c - see sections.h: the thread and its steps, the annotations in each, the sequence of most steps. */
#include "sections.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "call_names.h"

struct mark_list {
    const struct job_range **items; /* of one thread: by start, the outer one first */
    size_t count;
};

/* What a step has: annotations in order. */
struct found_step {
    int64_t begin_ns, end_ns;
    const struct job_range **ranges;
    size_t count;
    bool kept;
};

struct search {
    const struct job *job;
    const struct job_rank *rank;
    struct arena *arena;
    int *stem;               /* per job->names */
    struct mark_list thread; /* the stepping thread */
    struct found_step *steps;
    size_t step_count;
};

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
static const char *clean_name(const char *name, int64_t *number, struct arena *arena)
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

/* What each name of the job is when it is clean, as a number. */
static bool number_stems(struct search *search)
{
    const struct names *names = &search->job->names;
    struct names stems = {0};
    search->stem = ARENA_ARRAY(search->arena, names->count + 1, int);
    for (size_t i = 0; search->stem && i < names->count; i++) {
        int64_t number;
        const char *clean = clean_name(names->items[i], &number, search->arena);
        search->stem[i] = clean ? names_intern(&stems, search->arena, clean) : -1;
        if (search->stem[i] < 0)
            return false;
    }
    return search->stem != NULL;
}

static bool same_name(const struct search *search, int a, int b)
{
    return search->stem[a] == search->stem[b];
}

/* ---- the stepping thread --------------------------------------------------------------------- */

static int compare_ranges(const void *left, const void *right)
{
    const struct job_range *a = *(const struct job_range *const *)left;
    const struct job_range *b = *(const struct job_range *const *)right;
    if (a->start_ns != b->start_ns)
        return a->start_ns < b->start_ns ? -1 : 1;
    if (a->end_ns != b->end_ns)
        return a->end_ns > b->end_ns ? -1 : 1;
    return a->name - b->name;
}

static bool list_thread(const struct search *search, int thread, struct mark_list *out)
{
    const struct job_rank *rank = search->rank;
    out->count = 0;
    out->items = ARENA_ARRAY(search->arena, rank->range_count + 1, const struct job_range *);
    for (size_t i = 0; out->items && i < rank->range_count; i++)
        if (rank->ranges[i].thread == thread && rank->ranges[i].end_ns > rank->ranges[i].start_ns)
            out->items[out->count++] = &rank->ranges[i];
    if (out->items)
        qsort(out->items, out->count, sizeof(const struct job_range *), compare_ranges);
    return out->items != NULL;
}

static bool is_step(const struct search *search, const struct job_range *range)
{
    int64_t number;
    return range_is_step(search->job->names.items[range->name], &number);
}

/* Does the device get work in this time? */
static bool has_calls(const struct search *search, int64_t begin_ns, int64_t end_ns)
{
    const struct job_rank *rank = search->rank;
    for (size_t i = 0; i < rank->call_count; i++)
        if (rank->calls[i].work_count > 0 && rank->calls[i].start_ns >= begin_ns &&
            rank->calls[i].start_ns < end_ns)
            return true;
    return false;
}

static void add_step(struct search *search, int64_t begin_ns, int64_t end_ns)
{
    if (end_ns > begin_ns && has_calls(search, begin_ns, end_ns))
        search->steps[search->step_count++] =
            (struct found_step){.begin_ns = begin_ns, .end_ns = end_ns};
}

static bool room_for_steps(struct search *search, size_t count)
{
    search->steps = ARENA_ARRAY(search->arena, count + 1, struct found_step);
    search->step_count = 0;
    return search->steps != NULL;
}

/* A step lasts until the next one where that follows at once. */
static bool take_profiler_steps(struct search *search)
{
    const struct mark_list *list = &search->thread;
    if (!room_for_steps(search, list->count))
        return false;
    for (size_t i = 0; i < list->count; i++)
        if (is_step(search, list->items[i]))
            add_step(search, list->items[i]->start_ns, list->items[i]->end_ns);
    for (size_t i = 0; i + 1 < search->step_count; i++) {
        struct found_step *step = &search->steps[i];
        const int64_t gap = step[1].begin_ns - step->end_ns;
        if (gap > -1 && gap < (step->end_ns - step->begin_ns) / 10)
            step->end_ns = step[1].begin_ns;
    }
    return true;
}

/* The thread with the most steps of the profiler; -1: none has any. */
static int thread_of_steps(const struct search *search)
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

static size_t first_from(const struct mark_list *list, int64_t begin_ns)
{
    size_t low = 0, high = list->count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (list->items[middle]->start_ns < begin_ns)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The outermost annotations between two times; not those that are nearly all of it and hold others. */
static bool list_between(const struct search *search, int64_t begin_ns, int64_t end_ns,
                         const struct job_range ***out, size_t *count)
{
    const struct mark_list *list = &search->thread;
    const size_t first = first_from(list, begin_ns);
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
struct tally {
    size_t times;
    int64_t sum_ns;
};

static struct tally *tally_names(const struct search *search, const struct job_range **ranges,
                                 size_t count)
{
    struct tally *tallies = ARENA_ARRAY(search->arena, search->job->names.count + 1, struct tally);
    for (size_t i = 0; tallies && i < count; i++) {
        struct tally *tally = &tallies[search->stem[ranges[i]->name]];
        tally->times++;
        tally->sum_ns += ranges[i]->end_ns - ranges[i]->start_ns;
    }
    return tallies;
}

/* The number of steps: how often the name with the most time comes. */
static size_t count_steps(const struct search *search, const struct tally *tallies)
{
    const struct tally *most = &tallies[0];
    for (size_t i = 1; i < search->job->names.count; i++)
        if (tallies[i].sum_ns > most->sum_ns)
            most = &tallies[i];
    return most->times;
}

/* A step begins with the first name that comes as often as there are steps. */
static bool take_repeated(struct search *search, const struct job_range **ranges, size_t count)
{
    const struct tally *tallies = tally_names(search, ranges, count);
    if (!tallies || !room_for_steps(search, count))
        return false;
    const size_t steps = count_steps(search, tallies);
    size_t first = 0;
    while (first + 1 < count && tallies[search->stem[ranges[first]->name]].times != steps)
        first++;
    for (size_t i = first; i < count; i++)
        if (same_name(search, ranges[i]->name, ranges[first]->name))
            search->steps[search->step_count++].begin_ns = ranges[i]->start_ns;
    const size_t all = search->step_count;
    search->step_count = 0;
    for (size_t i = 0; i < all; i++)
        add_step(search, search->steps[i].begin_ns,
                 i + 1 < all ? search->steps[i + 1].begin_ns : ranges[count - 1]->end_ns);
    return true;
}

/* Where one annotation holds the whole run, the steps are in it. */
static bool take_inner(struct search *search)
{
    const struct found_step whole = search->steps[0];
    const struct job_range **ranges;
    size_t count;
    if (!list_between(search, whole.begin_ns, whole.end_ns, &ranges, &count))
        return false;
    const struct tally *tallies = tally_names(search, ranges, count);
    if (!tallies)
        return false;
    return count == 0 || count_steps(search, tallies) < 2 || take_repeated(search, ranges, count);
}

/* The thread whose outermost annotations take the most time; -1: there are none. */
static int longest_thread(struct search *search)
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

static bool find_steps(struct search *search)
{
    int thread = thread_of_steps(search);
    if (thread >= 0)
        return list_thread(search, thread, &search->thread) && take_profiler_steps(search);
    thread = longest_thread(search);
    if (thread < 0)
        return true;
    const struct job_range **ranges;
    size_t count;
    return list_thread(search, thread, &search->thread) &&
           list_between(search, search->thread.items[0]->start_ns, INT64_MAX / 2, &ranges,
                        &count) &&
           (count == 0 || take_repeated(search, ranges, count)) &&
           (count != 1 || search->step_count != 1 || take_inner(search));
}

/* ---- the sequence of most steps ------------------------------------------------------------------ */

static bool same_sequence(const struct search *search, const struct found_step *a,
                          const struct found_step *b)
{
    if (a->count != b->count)
        return false;
    for (size_t i = 0; i < a->count; i++)
        if (!same_name(search, a->ranges[i]->name, b->ranges[i]->name))
            return false;
    return true;
}

/* Marks the steps with the sequence that most have, the earliest of several; returns the first of them. */
static size_t keep_alike(struct search *search)
{
    size_t best = 0, most = 0;
    for (size_t i = 0; i < search->step_count && most < search->step_count - i; i++) {
        size_t alike = 0;
        for (size_t k = i; k < search->step_count; k++)
            alike += same_sequence(search, &search->steps[i], &search->steps[k]);
        if (alike > most) {
            most = alike;
            best = i;
        }
    }
    for (size_t k = 0; k < search->step_count; k++)
        search->steps[k].kept = same_sequence(search, &search->steps[best], &search->steps[k]);
    return best;
}

/* ---- the table ----------------------------------------------------------------------------------- */

/* Mean time between the annotations k - 1 and k of the kept steps; of k = 0 since the beginning, of the last one until
   the end. */
static int64_t gap_before(const struct search *search, size_t k, size_t kept)
{
    int64_t sum = 0;
    for (size_t i = 0; i < search->step_count; i++) {
        const struct found_step *step = &search->steps[i];
        if (!step->kept)
            continue;
        sum -= k > 0 ? step->ranges[k - 1]->end_ns : step->begin_ns;
        sum += k < step->count ? step->ranges[k]->start_ns : step->end_ns;
    }
    return sum / (int64_t)kept;
}

static bool is_section(const struct sections *out, const char *name)
{
    for (size_t i = 0; i < out->count; i++)
        if (strcmp(out->items[i].name, name) == 0)
            return true;
    return false;
}

/* The second "forward" of a step is forward-2. */
static const char *unique_name(const struct sections *out, const char *base, struct arena *arena)
{
    const char *name = base;
    for (int number = 2; name && is_section(out, name); number++)
        name = arena_printf(arena, "%s-%d", base, number);
    return name;
}

/* A section that begins with the annotation k of each step, or at its end (`behind`). */
static bool add_section(const struct search *search, struct sections *out, const char *name,
                        int64_t number, size_t k, bool behind)
{
    struct section *section = &out->items[out->count];
    *section = (struct section){unique_name(out, name, search->arena), number};
    size_t kept = 0;
    for (size_t i = 0; i < search->step_count; i++) {
        const struct found_step *step = &search->steps[i];
        if (!step->kept)
            continue;
        int64_t *begin = &out->steps[kept++].begin_ns[out->count];
        *begin = behind       ? (k > 0 ? step->ranges[k - 1]->end_ns : step->begin_ns)
                 : out->count ? step->ranges[k]->start_ns
                              : step->begin_ns;
    }
    out->count++;
    return section->name != NULL;
}

static bool add_sections(const struct search *search, const struct found_step *pattern,
                         struct sections *out)
{
    for (size_t k = 0; k <= pattern->count; k++) {
        int64_t number = -1;
        if (gap_before(search, k, out->step_count) > out->period_ns / SECTION_LONG &&
            !add_section(search, out, "unannotated", -1, k, true))
            return false;
        if (k == pattern->count)
            break;
        const char *name =
            clean_name(search->job->names.items[pattern->ranges[k]->name], &number, search->arena);
        if (!add_section(search, out, name, number, k, false))
            return false;
    }
    return true;
}

static void measure(const struct search *search, struct sections *out)
{
    int64_t whole = 0, annotated = 0;
    for (size_t i = 0; i < search->step_count; i++) {
        const struct found_step *step = &search->steps[i];
        if (!step->kept)
            continue;
        whole += step->end_ns - step->begin_ns;
        for (size_t k = 0; k < step->count; k++)
            annotated += step->ranges[k]->end_ns - step->ranges[k]->start_ns;
    }
    out->period_ns = whole / (int64_t)out->step_count;
    out->annotated = (int)((double)annotated / (double)whole * 1e6);
}

static bool build(struct search *search, struct sections *out)
{
    const struct found_step *pattern = &search->steps[keep_alike(search)];
    const size_t most = 2 * pattern->count + 1;
    out->items = ARENA_ARRAY(search->arena, most, struct section);
    out->steps = ARENA_ARRAY(search->arena, search->step_count, struct section_step);
    if (!out->items || !out->steps)
        return false;
    for (size_t i = 0; i < search->step_count; i++) {
        if (!search->steps[i].kept)
            continue;
        struct section_step *step = &out->steps[out->step_count++];
        step->place = (int)i;
        step->begin_ns = ARENA_ARRAY(search->arena, most + 1, int64_t);
        if (!step->begin_ns)
            return false;
    }
    out->left_out = search->step_count - out->step_count;
    out->annotation_count = pattern->count;
    measure(search, out);
    if (!add_sections(search, pattern, out))
        return false;
    for (size_t i = 0; i < out->step_count; i++)
        out->steps[i].begin_ns[out->count] = search->steps[out->steps[i].place].end_ns;
    return true;
}

enum status sections_find(const struct job *job, const struct job_rank *rank, struct arena *arena,
                          struct sections *out, struct diag *diag)
{
    struct search search = {.job = job, .rank = rank, .arena = arena};
    *out = (struct sections){0};
    if (!number_stems(&search) || !find_steps(&search))
        return diag_no_memory(diag);
    if (search.step_count == 0)
        return diag_error(diag, STATUS_INPUT,
                          "%s: no annotation of a thread that launches work is recorded in it "
                          "(record_function, NVTX): expected steps to make a pipeline of",
                          rank->file);
    for (size_t i = 0; i < search.step_count; i++) {
        struct found_step *step = &search.steps[i];
        if (!list_between(&search, step->begin_ns, step->end_ns, &step->ranges, &step->count))
            return diag_no_memory(diag);
    }
    return build(&search, out) ? STATUS_OK : diag_no_memory(diag);
}

bool sections_at(const struct sections *sections, int64_t time_ns, int *step, int *section)
{
    for (size_t s = 0; s < sections->step_count; s++) {
        const int64_t *begin = sections->steps[s].begin_ns;
        if (time_ns < begin[0] || time_ns >= begin[sections->count])
            continue;
        int low = 0, high = (int)sections->count;
        while (high - low > 1) {
            const int middle = low + (high - low) / 2;
            *(begin[middle] <= time_ns ? &low : &high) = middle;
        }
        *step = (int)s;
        *section = low;
        return true;
    }
    return false;
}
