/* SPDX-License-Identifier: Apache-2.0 */
/* sections.c - see sections.h: the sequence of most steps, and the table of its sections. */
#include "sections.h"

#include <assert.h>
#include <string.h>

#include "steps.h"

#include "base/array.h"

/* ---- the sequence of most steps ------------------------------------------------------------------ */

static bool same_sequence(const struct step_search *search, const struct found_step *a,
                          const struct found_step *b)
{
    if (a->count != b->count)
        return false;
    for (size_t i = 0; i < a->count; i++)
        if (!steps_same_name(search, a->ranges[i]->name, b->ranges[i]->name))
            return false;
    return true;
}

/* Marks the steps with the sequence that most have, the earliest of several; returns the first of them. */
static size_t keep_alike(struct step_search *search)
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
static int64_t gap_before(const struct step_search *search, size_t k, size_t kept)
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
static bool add_section(const struct step_search *search, struct sections *out, const char *name,
                        int64_t number, size_t k, bool behind)
{
    struct section *section = &out->items[out->count];
    assert(out->count < 2 * out->annotation_count + 1); /* the room of sections_build */
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

static bool add_sections(const struct step_search *search, const struct found_step *pattern,
                         struct sections *out)
{
    for (size_t k = 0; k <= pattern->count; k++) {
        int64_t number = -1;
        if (gap_before(search, k, out->step_count) > out->period_ns / SECTION_LONG &&
            !add_section(search, out, "unannotated", -1, k, true))
            return false;
        if (k == pattern->count)
            break;
        const char *name = steps_clean_name(search->job->names.items[pattern->ranges[k]->name],
                                            &number, search->arena);
        if (!add_section(search, out, name, number, k, false))
            return false;
    }
    return true;
}

static void sections_measure(const struct step_search *search, struct sections *out)
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
    assert(out->step_count > 0 && whole > 0);
    out->period_ns = whole / (int64_t)out->step_count;
    out->annotated = (int)((double)annotated / (double)whole * 1e6);
}

static bool sections_build(const struct step_search *search, const struct found_step *pattern,
                           struct sections *out)
{
    enum { APART = 64 }; /* steps between those of two ranks */
    const size_t most = 2 * pattern->count + 1;
    out->items = ARENA_ARRAY(search->arena, most, struct section);
    out->steps = ARENA_ARRAY(search->arena, search->step_count, struct section_step);
    if (!out->items || !out->steps)
        return false;
    for (size_t i = 0; i < search->step_count; i++) {
        if (!search->steps[i].kept)
            continue;
        struct section_step *step = &out->steps[out->step_count++];
        step->rank = search->steps[i].turn;
        step->place = (int)i + APART * step->rank;
        assert(out->step_count == 1 || step[-1].place < step->place);
        step->begin_ns = ARENA_ARRAY(search->arena, most + 1, int64_t);
        if (!step->begin_ns)
            return false;
    }
    out->left_out = search->step_count - out->step_count;
    out->annotation_count = pattern->count;
    sections_measure(search, out);
    if (!add_sections(search, pattern, out))
        return false;
    for (size_t i = 0, kept = 0; i < search->step_count; i++)
        if (search->steps[i].kept)
            out->steps[kept++].begin_ns[out->count] = search->steps[i].end_ns;
    return true;
}

/* The steps of one rank behind those of the ranks before it, each with its annotations. */
static enum status sections_add_turn(struct step_search *all, const struct job_rank *rank, int turn,
                                     size_t *cap, struct diag *diag)
{
    struct step_search search = {.job = all->job, .rank = rank, .arena = all->arena};
    if (!steps_find(&search))
        return diag_no_memory(diag);
    if (search.step_count == 0)
        return diag_error(
            diag, STATUS_INPUT,
            "%s: no thread that launches work has annotations (record_function, NVTX), so "
            "there are no steps to make a pipeline of",
            rank->file);
    for (size_t i = 0; i < search.step_count; i++) {
        struct found_step *step = &search.steps[i];
        step->turn = turn;
        if (!steps_list_between(&search, step->begin_ns, step->end_ns, &step->ranges,
                                &step->count) ||
            !ARENA_GROW(all->arena, all->steps, all->step_count, *cap))
            return diag_no_memory(diag);
        all->steps[all->step_count++] = *step;
    }
    all->stem = search.stem;
    return STATUS_OK;
}

/* The first annotation of a step that another one does not have at this place; NULL: none. */
static const char *differing_name(const struct step_search *search, const struct found_step *step,
                                  const struct found_step *other)
{
    size_t i = 0;
    while (i < step->count && i < other->count &&
           steps_same_name(search, step->ranges[i]->name, other->ranges[i]->name))
        i++;
    int64_t number;
    return i == step->count ? NULL
                            : steps_clean_name(search->job->names.items[step->ranges[i]->name],
                                               &number, search->arena);
}

/* Every rank has a step that is like most. */
static enum status check_turns(const struct step_search *search, const struct found_step *pattern,
                               const struct job_rank *ranks, size_t count, struct diag *diag)
{
    size_t at = 0;
    for (size_t r = 0; r < count; r++) {
        const struct found_step *own = &search->steps[at];
        bool kept = false;
        for (; at < search->step_count && search->steps[at].turn == (int)r; at++)
            kept |= search->steps[at].kept;
        if (kept)
            continue;
        const char *found = differing_name(search, own, pattern);
        const char *expected = differing_name(search, pattern, own);
        return diag_error(diag, STATUS_INPUT,
                          "%s and %s are not alike: a step of the one has the annotation %s where "
                          "a step of the other has %s; --ranks chooses ranks for a pipeline",
                          ranks[pattern->turn].file, ranks[r].file, expected ? expected : "none",
                          found ? found : "none");
    }
    return STATUS_OK;
}

enum status sections_find(const struct job *job, const struct job_rank *ranks, size_t count,
                          struct arena *arena, struct sections *out, struct diag *diag)
{
    struct step_search search = {.job = job, .arena = arena};
    enum status status = STATUS_OK;
    size_t cap = 0;
    *out = (struct sections){0};
    for (size_t r = 0; status == STATUS_OK && r < count; r++)
        status = sections_add_turn(&search, &ranks[r], (int)r, &cap, diag);
    if (status != STATUS_OK)
        return status;
    const size_t pattern = keep_alike(&search);
    status = check_turns(&search, &search.steps[pattern], ranks, count, diag);
    if (status != STATUS_OK)
        return status;
    return sections_build(&search, &search.steps[pattern], out) ? STATUS_OK : diag_no_memory(diag);
}

bool sections_at(const struct sections *sections, int64_t time_ns, int *step, int *section)
{
    size_t first = 0, end = sections->step_count;
    while (end - first > 1) {
        const size_t middle = first + (end - first) / 2;
        *(sections->steps[middle].begin_ns[0] <= time_ns ? &first : &end) = middle;
    }
    const int64_t *begin = end > first ? sections->steps[first].begin_ns : NULL;
    if (!begin || time_ns < begin[0] || time_ns >= begin[sections->count])
        return false;
    int low = 0, high = (int)sections->count;
    while (high - low > 1) {
        const int middle = low + (high - low) / 2;
        *(begin[middle] <= time_ns ? &low : &high) = middle;
    }
    *step = (int)first;
    *section = low;
    assert(begin[low] <= time_ns && time_ns < begin[low + 1]);
    return true;
}
