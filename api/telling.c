/* SPDX-License-Identifier: Apache-2.0 */
/* telling.c - see telling.h. */
#include "telling.h"

#include <inttypes.h>
#include <string.h>

#include "base/assert_index.h"
#include "base/hash.h"
#include "base/repeats.h"

/* In one line. */
enum { MOST_PUSHES = 8 };

/* Lines at the end that are never folded, and the fewest that a fold leaves out. */
enum { END = 10, LEAST_FOLDED = 4 };

/* ---- steps that belong together -------------------------------------------------------------- */

/* A step that opens a submission only takes the instance, whatever its first operation is. */
static bool is_push_of_work(const struct story_step *step)
{
    return step->stream && op_is_device_work((enum op_kind)step->op);
}

/* A pushed wait for an iteration before the first, which may be why nothing orders the work behind it. */
static bool waits_before_first(const struct story_step *step)
{
    return step->op == OP_WAIT && !*step->behind;
}

/* That there are data for an iteration is told with what the driver does next. */
static bool leads_to_driver(const struct story *story, size_t at)
{
    ASSERT_INDEX(at, story->step_count);
    const struct story_step *step = &story->steps[at];
    return step->agent_kind == AGENT_DATA && step->choice == 0 && at + 2 < story->step_count &&
           step[1].agent_kind == AGENT_THREAD && step[1].op < 0;
}

/* From taking an instance to having submitted it, or as far as the worker comes if it has pushed work; from the start of
   work to its end; from the data of an iteration to the driver's step. */
static size_t end_of_one(const struct story *story, size_t first)
{
    ASSERT_INDEX(first, story->step_count);
    const struct story_step *step = &story->steps[first];
    size_t last = first;
    if (step->kind == EFFECT_START && first + 1 < story->step_count &&
        story->steps[first + 1].kind == EFFECT_FINISH &&
        story->steps[first + 1].agent_index == step->agent_index)
        return first + 1;
    if (leads_to_driver(story, first))
        return first + 1;
    if (!step->opens)
        return first;
    bool works = false, waits = true;
    while (!story->steps[last].closes && last + 1 < story->step_count &&
           story->steps[last + 1].agent_index == step->agent_index &&
           story->steps[last + 1].agent_kind != AGENT_FAULT) {
        last++;
        works |= is_push_of_work(&story->steps[last]);
        waits &= !waits_before_first(&story->steps[last]);
    }
    return story->steps[last].closes || (works && waits && last + 1 < story->step_count) ? last
                                                                                         : first;
}

static bool is_push(const struct story_step *step)
{
    return step->stream != NULL;
}

/* The submission of an instance with device work, or one push of a host program. */
static bool only_pushes(const struct story *story, const struct telling *telling)
{
    bool works = false;
    if (telling->first == telling->last)
        return is_push(&story->steps[telling->first]);
    if (!story->steps[telling->first].opens)
        return false;
    for (size_t i = telling->first; i <= telling->last; i++)
        works |= is_push_of_work(&story->steps[i]);
    return works;
}

/* True if `next` may be told together with `line`. The last step is where something goes wrong. */
static bool telling_goes_on(const struct story *story, const struct telling *line,
                            const struct telling *next)
{
    const struct story_step *steps = story->steps;
    return next->last + 1 < story->step_count && line->pushes < MOST_PUSHES &&
           steps[line->first].agent_index == steps[next->first].agent_index &&
           (line->pushes || only_pushes(story, line)) && only_pushes(story, next);
}

size_t telling_all(const struct story *story, bool whole, struct telling *out)
{
    size_t count = 0;
    for (size_t i = 0; i < story->step_count;) {
        if (!whole && story->steps[i].aside) {
            i++;
            continue;
        }
        struct telling next = {.first = i, .last = whole ? i : end_of_one(story, i)};
        struct telling *line = count ? &out[count - 1] : NULL;
        i = next.last + 1;
        if (whole || !line || !telling_goes_on(story, line, &next)) {
            out[count++] = next;
            continue;
        }
        line->last = next.last;
        line->pushes += line->pushes ? 1 : 2;
    }
    return count;
}

/* ---- lines that come again ------------------------------------------------------------------- */

/* Of agents and actions, without numbers. Only one line has the key of a fault. */
static uint64_t telling_key_of(const struct story *story, const struct telling *line, size_t number)
{
    uint64_t key = line->last - line->first + 1;
    for (size_t i = line->first; i <= line->last; i++) {
        const struct story_step *step = &story->steps[i];
        if (step->agent_kind == AGENT_FAULT)
            return hash_mix(number + 1);
        key = repeats_key(step->action, repeats_key(step->agent, key));
    }
    return key;
}

static size_t put_folded(struct telling *lines, const struct stretch *repeat, size_t at)
{
    const struct telling *first = &lines[repeat->first];
    size_t rest = repeat->first + repeat->length,
           end = repeat->first + repeat->times * repeat->length;
    const struct telling more = {.first = lines[rest].first,
                                 .last = lines[end - 1].last,
                                 .same = repeat->length,
                                 .times = repeat->times - 1};
    memmove(&lines[at], first, repeat->length * sizeof *lines);
    lines[at + repeat->length] = more;
    return at + repeat->length + 1;
}

size_t telling_fold(const struct story *story, struct telling *lines, size_t count,
                    struct arena *arena)
{
    size_t body = count > END ? count - END : 0, at = 0, line = 0;
    uint64_t *keys = ARENA_ARRAY(arena, body + 1, uint64_t);
    struct stretch *repeats = ARENA_ARRAY(arena, body / 2 + 1, struct stretch);
    if (!keys || !repeats)
        return count;
    for (size_t i = 0; i < body; i++)
        keys[i] = telling_key_of(story, &lines[i], i);
    size_t found = repeats_find(keys, body, LEAST_FOLDED, repeats);
    for (size_t r = 0; r <= found; r++) {
        size_t until = r < found ? repeats[r].first : count;
        memmove(&lines[at], &lines[line], (until - line) * sizeof *lines);
        at += until - line;
        if (r == found)
            break;
        at = put_folded(lines, &repeats[r], at);
        line = until + repeats[r].times * repeats[r].length;
    }
    return at;
}

int telling_range(const struct telling *telling, char out[TELLING_RANGE])
{
    if (telling->first == telling->last)
        return snprintf(out, TELLING_RANGE, "%zu", telling->first + 1);
    return snprintf(out, TELLING_RANGE, "%zu-%zu", telling->first + 1, telling->last + 1);
}

/* ---- words ----------------------------------------------------------------------------------- */

const char *telling_label(const struct story_step *step)
{
    return step->kind == EFFECT_START ? step->subject : step->action;
}

/* "launches Backward(0) on stream compute, behind Forward(0)": a submitted task. */
static void print_submission(const struct story *story, const struct telling *telling, FILE *out)
{
    const char *action = story->steps[telling->last].action, *separator = ", behind ";
    for (size_t i = telling->first; i <= telling->last; i++)
        if (is_push_of_work(&story->steps[i]))
            action = story->steps[i].action;
    fputs(action, out);
    for (size_t i = telling->first; i <= telling->last; i++) {
        const char *behind = story->steps[i].behind;
        if (*behind) {
            fprintf(out, "%s%s", separator, behind);
            separator = ", ";
        }
    }
    fputc('\n', out);
}

/* A worker's waits since the work before: " (behind A(0), B(0))". */
static void print_behind(const struct story *story, size_t first, size_t work, FILE *out)
{
    const char *separator = " (behind ";
    while (work > first && !is_push_of_work(&story->steps[work - 1]))
        work--;
    for (; !is_push_of_work(&story->steps[work]); work++) {
        const char *behind = story->steps[work].behind;
        if (*behind) {
            fprintf(out, "%s%s", separator, behind);
            separator = ", ";
        }
    }
    fputs(*separator == ',' ? ")" : "", out);
}

/* "pushes to stream x: A(0), C(0) (behind B(0)); to stream y: record done". A worker records every task's event,
   which is not told. */
static void print_pushes(const struct story *story, const struct telling *telling, FILE *out)
{
    bool worker = story->steps[telling->first].opens;
    const char *last = NULL, *separator = "pushes";
    for (size_t i = telling->first; i <= telling->last; i++) {
        const struct story_step *step = &story->steps[i];
        if (step->aside || (worker ? !is_push_of_work(step) : !is_push(step)))
            continue;
        if (!last || strcmp(step->stream, last) != 0) {
            fprintf(out, "%s to stream %s: ", separator, step->stream);
            separator = ";";
        } else {
            fputs(", ", out);
        }
        fputs(step->pushed, out);
        if (worker)
            print_behind(story, telling->first, i, out);
        last = step->stream;
    }
    fputc('\n', out);
}

struct telling_extent {
    int64_t least, most; /* most < least: none */
};

static void telling_widen(struct telling_extent *extent, int64_t value)
{
    if (value < 0)
        return;
    extent->least = extent->most < extent->least || value < extent->least ? value : extent->least;
    extent->most = value > extent->most ? value : extent->most;
}

static void print_extent(const char *separator, const char *what,
                         const struct telling_extent *extent, FILE *out)
{
    if (extent->least == extent->most)
        fprintf(out, "%s%s %" PRId64, separator, what, extent->least);
    else
        fprintf(out, "%s%ss %" PRId64 " to %" PRId64, separator, what, extent->least, extent->most);
}

/* "the same 3 lines, 7 times more: ranks 1 to 7, iterations 0 to 3" */
static void print_fold(const struct story *story, const struct telling *telling, FILE *out)
{
    struct telling_extent ranks = {0, -1}, iterations = {0, -1}, all = {0, -1};
    const char *separator = ": ";
    for (size_t i = telling->first; i <= telling->last; i++) {
        telling_widen(&ranks, story->steps[i].rank);
        telling_widen(&iterations, story->steps[i].iteration);
    }
    fprintf(out, "the same %zu line%s, %zu time%s more", telling->same,
            telling->same == 1 ? "" : "s", telling->times, telling->times == 1 ? "" : "s");
    for (size_t i = 0; i < story->step_count; i++)
        telling_widen(&all, story->steps[i].rank);
    if (ranks.most >= ranks.least && all.most > all.least) {
        print_extent(separator, "rank", &ranks, out);
        separator = ", ";
    }
    if (iterations.most >= iterations.least)
        print_extent(separator, "iteration", &iterations, out);
    fputc('\n', out);
}

void telling_print(const struct story *story, const struct telling *telling, FILE *out)
{
    const struct story_step *step = &story->steps[telling->first];
    if (telling->times)
        print_fold(story, telling, out);
    else if (telling->pushes)
        print_pushes(story, telling, out);
    else if (telling->first == telling->last)
        fprintf(out, "%s\n", step->action);
    else if (step->opens)
        print_submission(story, telling, out);
    else if (step->agent_kind == AGENT_DATA)
        fprintf(out, "%s\n", step[1].action);
    else
        fprintf(out, "runs %s\n", telling_label(step));
}
