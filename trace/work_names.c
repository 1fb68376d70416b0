/* SPDX-License-Identifier: Apache-2.0 */
/* work_names.c - see work_names.h. */
#include "work_names.h"

#include <string.h>

#include "base/keyed_hash.h"
#include "plan/text/parse.h"
#include "machine/lower/rank_programs.h"

/* ---- the table ------------------------------------------------------------------------------- */

/* Without the "(3)" that operations of a repeat have behind their names. */
static size_t bare_length(const char *name)
{
    const size_t length = strlen(name);
    size_t at = length;
    if (length < 3 || name[length - 1] != ')')
        return length;
    at--;
    while (at > 0 && name[at - 1] >= '0' && name[at - 1] <= '9')
        at--;
    return at > 1 && at < length - 1 && name[at - 1] == '(' ? at - 1 : length;
}

static struct named_work *place_of(const struct work_names *names, const char *name, size_t length)
{
    size_t at = keyed_hash(name, length) & (names->cap - 1);
    while (names->places[at].name && (strncmp(names->places[at].name, name, length) != 0 ||
                                      names->places[at].name[length] != 0))
        at = (at + 1) & (names->cap - 1);
    return &names->places[at];
}

/* The first of a name counts. */
static bool add(struct work_names *names, struct arena *arena, const struct named_work *work)
{
    struct named_work *place = place_of(names, work->name, strlen(work->name));
    if (place->name)
        return true;
    *place = *work;
    place->name = arena_strdup(arena, work->name);
    place->comm = work->comm ? arena_strdup(arena, work->comm) : NULL;
    return place->name && (place->comm || !work->comm);
}

static bool make_room(struct work_names *names, struct arena *arena, size_t count)
{
    for (names->cap = 16; names->cap < 2 * count;)
        names->cap *= 2;
    names->places = ARENA_ARRAY(arena, names->cap, struct named_work);
    return names->places;
}

/* ---- from plans ------------------------------------------------------------------------------ */

static const char *comm_name(const struct plan *plan, int comm)
{
    return comm >= 0 ? plan->comms[comm].name : NULL;
}

static enum work_class class_of(enum work_kind kind)
{
    switch (kind) {
    case WORK_COPY: return WORK_CLASS_COPY;
    case WORK_COLLECTIVE: return WORK_CLASS_COLLECTIVE;
    case WORK_SEND:
    case WORK_RECV: return WORK_CLASS_MESSAGE;
    case WORK_NONE:
    case WORK_GEMM:
    case WORK_GATHER:
    case WORK_AXPY:
    case WORK_SPIN:
    case WORK_HOST: break;
    }
    return WORK_CLASS_KERNEL;
}

static bool add_tasks(struct work_names *names, struct arena *arena, const struct plan *plan)
{
    const struct pipeline *pipeline = &plan->pipeline;
    bool ok = make_room(names, arena, pipeline->task_count);
    for (size_t i = 0; i < pipeline->task_count && ok; i++) {
        const struct work *work = &pipeline->tasks[i].work;
        ok = add(names, arena,
                 &(struct named_work){.name = pipeline->tasks[i].name,
                                      .class = class_of(work->kind),
                                      .direction = work->direction,
                                      .pageable = work->pageable,
                                      .collective = work->collective,
                                      .comm = comm_name(plan, work->comm),
                                      .bytes = work->bytes});
    }
    return ok;
}

static bool add_op(struct work_names *names, struct arena *arena, const struct plan *plan,
                   const struct host_op *op)
{
    struct named_work work = {.name = op->name ? op->name : op_key(op->kind),
                              .class = WORK_CLASS_KERNEL,
                              .direction = op->direction,
                              .pageable = op->pageable,
                              .collective = op->collective,
                              .comm = comm_name(plan, op->comm),
                              .bytes = op->bytes};
    if (op->kind == OP_COPY)
        work.class = WORK_CLASS_COPY;
    else if (op->kind == OP_COLLECTIVE)
        work.class = WORK_CLASS_COLLECTIVE;
    else if (op->kind == OP_GROUP)
        work.class = WORK_CLASS_MESSAGE;
    else if (op->kind != OP_LAUNCH)
        return true;
    return add(names, arena, &work);
}

static bool add_threads(struct work_names *names, struct arena *arena, const struct plan *plan)
{
    size_t count = 0;
    for (size_t t = 0; t < plan->thread_count; t++)
        count += plan->threads[t].op_count;
    bool ok = make_room(names, arena, count);
    for (size_t t = 0; t < plan->thread_count; t++)
        for (size_t i = 0; i < plan->threads[t].op_count && ok; i++)
            ok = add_op(names, arena, plan, &plan->threads[t].ops[i]);
    return ok;
}

static enum status add_plan(struct work_names *names, struct arena *arena, const struct plan *plan,
                            struct diag *diag)
{
    struct plan lowered;
    bool ok;
    if (plan->form == FORM_PROGRAMS) {
        enum status status = rank_programs_lower(plan, false, &lowered, diag);
        if (status != STATUS_OK)
            return status;
        ok = add_threads(names, arena, &lowered);
        plan_fini(&lowered);
    } else {
        ok = plan->form == FORM_PIPELINE ? add_tasks(names, arena, plan)
                                         : add_threads(names, arena, plan);
    }
    return ok ? STATUS_OK : diag_no_memory(diag);
}

enum status work_names_read(const struct run_info *info, struct arena *arena,
                            struct work_names *out, struct diag *diag)
{
    struct plan plan;
    struct work_names names = {0};
    enum status status = STATUS_OK;
    if (info->plan_text && *info->plan_text) {
        status =
            plan_parse("plan of the run", info->plan_text, strlen(info->plan_text), &plan, diag);
        if (status != STATUS_OK)
            return status;
        status = add_plan(&names, arena, &plan, diag);
        plan_fini(&plan);
    }
    if (status == STATUS_OK)
        *out = names;
    return status;
}

/* ---- to names -------------------------------------------------------------------------------- */

static bool begins(const char *name, const char *with)
{
    return strncmp(name, with, strlen(with)) == 0;
}

static struct named_work by_name(const char *name)
{
    struct named_work work = {.name = name, .class = WORK_CLASS_KERNEL};
    if (begins(name, "Memcpy"))
        work.class = WORK_CLASS_COPY;
    else if (begins(name, "ncclDevKernel") || begins(name, "ncclKernel"))
        work.class = WORK_CLASS_COLLECTIVE;
    else if (begins(name, "send ") || begins(name, "receive "))
        work.class = WORK_CLASS_MESSAGE;
    return work;
}

struct named_work work_names_find(const struct work_names *names, const char *name)
{
    if (names->cap) {
        const struct named_work *place = place_of(names, name, bare_length(name));
        if (place->name)
            return *place;
    }
    return by_name(name);
}
