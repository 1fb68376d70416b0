/* SPDX-License-Identifier: Apache-2.0 */
/* flight_members.c - see flight_members.h. */
#include "flight_members.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

bool flight_is_member(const struct flight_group *group, int64_t rank)
{
    for (size_t i = 0; i < group->rank_count; i++)
        if (group->ranks[i] == rank)
            return true;
    return false;
}

/* Each rank once; most lists are ascending. */
static void add_member(struct flight_group *group, int64_t rank)
{
    enum { MOST = 1 << 14 };
    const size_t count = group->rank_count;
    const bool is_last = count == 0 || rank > group->ranks[count - 1];
    if (rank >= 0 && count < MOST && (is_last || !flight_is_member(group, rank)))
        group->ranks[group->rank_count++] = rank;
}

/* ---- dumps that do not name the members --------------------------------------------------------- */

static bool is_of_group(const struct value *entry, const char *name)
{
    const struct value *named = value_get(entry, "process_group");
    const char *text = value_text(value_count(named) > 0 ? named->items[0] : named);
    return text && strcmp(text, name) == 0;
}

/* Has the rank called the group, and has one of its calls there come to its end? */
static bool has_called(const struct flight_rank *rank, const char *name, bool *completed)
{
    const struct value *entries = value_get(rank->root, "entries");
    bool found = false;
    for (size_t i = 0; i < value_count(entries); i++)
        if (is_of_group(entries->items[i], name)) {
            found = true;
            *completed |= flight_is_completed(entries->items[i]);
        }
    return found;
}

/* Where a call of the group has come to its end all members have called it; else all dumps may be its members. */
static void take_callers(const struct flight_job *job, struct flight_group *group)
{
    bool completed = false;
    for (size_t i = 0; i < job->rank_count; i++)
        if (has_called(&job->ranks[i], group->name, &completed))
            add_member(group, job->ranks[i].rank);
    group->is_guessed = !completed;
    for (size_t i = 0; !completed && i < job->rank_count; i++)
        group->ranks[i] = job->ranks[i].rank;
    group->rank_count = completed ? group->rank_count : job->rank_count;
}

bool flight_read_members(const struct flight_job *job, const struct value *ranks,
                         struct flight_group *group)
{
    const char *text = value_text(ranks);
    const size_t most = (text ? strlen(text) : value_count(ranks)) + job->rank_count;
    group->ranks = ARENA_ARRAY(job->arena, most + 1, int64_t);
    if (!group->ranks)
        return false;
    for (size_t i = 0; i < value_count(ranks); i++)
        add_member(group, value_int(ranks->items[i], -1));
    while (text && *text) {
        char *end = NULL;
        if (isdigit((unsigned char)*text))
            add_member(group, strtoll(text, &end, 10));
        text = end ? end : text + 1;
    }
    if (group->rank_count == 0)
        take_callers(job, group);
    return true;
}

/* ---- what gloo records ------------------------------------------------------------------------- */

static bool is_of_gloo(const struct value *entry)
{
    static const char word[] = "gloo:";
    const char *name = value_text(value_get(entry, "profiling_name"));
    return name && strncmp(name, word, sizeof word - 1) == 0;
}

bool flight_is_completed(const struct value *entry)
{
    const char *state = value_text(value_get(entry, "state"));
    return (state && strcmp(state, "completed") == 0) ||
           (is_of_gloo(entry) && value_int(value_get(entry, "retired"), 0) != 0);
}

bool flight_lacks_messages(const struct flight_rank *rank)
{
    const struct value *entries = value_get(rank->root, "entries");
    for (size_t i = 0; i < value_count(entries); i++)
        if (is_of_gloo(entries->items[i]))
            return true;
    return false;
}
