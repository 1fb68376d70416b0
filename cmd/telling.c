/* telling.c - see telling.h. */
#include "telling.h"

#include <string.h>

/* In one line. */
enum { MOST_PUSHES = 8 };

static const char event[] = "wait for the event of ", on_stream[] = " on stream ",
                  of_comm[] = " of communicator ";

/* ---- steps that belong together -------------------------------------------------------------- */

/* From taking an instance to having submitted it, or from the start of work to its end. */
static size_t end_of_one(const struct story *story, size_t first)
{
    const struct story_step *step = &story->steps[first];
    size_t last = first;
    if (step->kind == EFFECT_START && first + 1 < story->step_count &&
        story->steps[first + 1].kind == EFFECT_FINISH &&
        story->steps[first + 1].agent_index == step->agent_index)
        return first + 1;
    if (!step->opens)
        return first;
    while (!story->steps[last].closes && last + 1 < story->step_count &&
           story->steps[last + 1].agent_index == step->agent_index &&
           story->steps[last + 1].agent_kind != AGENT_FAULT)
        last++;
    return story->steps[last].closes ? last : first;
}

/* A step that opens a submission only takes the instance, whatever its first operation is. */
static bool is_push_of_work(const struct story_step *step)
{
    return step->op >= 0 && !step->opens && step->kind == EFFECT_HOST &&
           op_is_device_work((enum op_kind)step->op);
}

static bool is_push(const struct story_step *step)
{
    return step->op >= 0 && step->kind == EFFECT_HOST && step->agent_kind == AGENT_THREAD &&
           op_pushes((enum op_kind)step->op) && strstr(step->action, "stream ");
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

/* May `next` be told together with `line`? The last step is where something goes wrong. */
static bool goes_on(const struct story *story, const struct telling *line,
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
        struct telling next = {.first = i, .last = whole ? i : end_of_one(story, i)};
        struct telling *line = count ? &out[count - 1] : NULL;
        i = next.last + 1;
        if (whole || !line || !goes_on(story, line, &next)) {
            out[count++] = next;
            continue;
        }
        line->last = next.last;
        line->pushes += line->pushes ? 1 : 2;
    }
    return count;
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
    const char *rest = step->kind == EFFECT_START ? strchr(step->action, ' ') : NULL;
    return rest ? rest + 1 : step->action;
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
        const char *behind = strstr(story->steps[i].action, event);
        if (behind) {
            fprintf(out, "%s%s", separator, behind + strlen(event));
            separator = ", ";
        }
    }
    fputc('\n', out);
}

/* A push without its verb, stream and communicator: "grads", "send x0 to rank 1", "record done". */
static void print_push(const struct story_step *step, FILE *out)
{
    const char *wait = strstr(step->action, " wait for "), *comm = strstr(step->action, of_comm);
    const char *subject = strchr(step->action, ' '), *end = strstr(step->action, on_stream);
    const char *parts = step->op == OP_GROUP && comm ? strchr(comm, '(') : NULL;
    if (step->op == OP_COLLECTIVE && comm && subject) {
        subject = strchr(subject + 1, ' ');
        end = comm;
    } else if (parts) {
        subject = parts;
        end = strrchr(parts, ')');
    }
    if (wait)
        fprintf(out, "%s", wait + 1);
    else if (subject && end && end > subject)
        fprintf(out, "%s%.*s", step->op == OP_RECORD ? "record " : "", (int)(end - subject - 1),
                subject + 1);
    else
        fputs(step->action, out);
}

/* The stream of a push, up to the end of its name. */
static const char *stream_of(const struct story_step *step, size_t *length)
{
    static const char makes[] = "makes stream ";
    const char *wait = strstr(step->action, " wait for "),
               *stream = strstr(step->action, on_stream);
    if (wait && strncmp(step->action, makes, strlen(makes)) == 0) {
        *length = (size_t)(wait - step->action) - strlen(makes);
        return step->action + strlen(makes);
    }
    stream = stream ? stream + strlen(on_stream) : "";
    *length = strlen(stream);
    return stream;
}

/* A worker's waits since the work before: " (behind A(0), B(0))". */
static void print_behind(const struct story *story, size_t first, size_t work, FILE *out)
{
    const char *separator = " (behind ";
    while (work > first && !is_push_of_work(&story->steps[work - 1]))
        work--;
    for (; !is_push_of_work(&story->steps[work]); work++) {
        const char *behind = strstr(story->steps[work].action, event);
        if (behind) {
            fprintf(out, "%s%s", separator, behind + strlen(event));
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
    size_t last_length = 0, length;
    for (size_t i = telling->first; i <= telling->last; i++) {
        const struct story_step *step = &story->steps[i];
        if (worker ? !is_push_of_work(step) : !is_push(step))
            continue;
        const char *stream = stream_of(step, &length);
        if (!last || length != last_length || memcmp(stream, last, length) != 0) {
            fprintf(out, "%s to stream %.*s: ", separator, (int)length, stream);
            separator = ";";
        } else {
            fputs(", ", out);
        }
        print_push(step, out);
        if (worker)
            print_behind(story, telling->first, i, out);
        last = stream;
        last_length = length;
    }
    fputc('\n', out);
}

void telling_print(const struct story *story, const struct telling *telling, FILE *out)
{
    const struct story_step *step = &story->steps[telling->first];
    if (telling->pushes)
        print_pushes(story, telling, out);
    else if (telling->first == telling->last)
        fprintf(out, "%s\n", step->action);
    else if (step->opens)
        print_submission(story, telling, out);
    else
        fprintf(out, "runs %s\n", telling_label(step));
}
