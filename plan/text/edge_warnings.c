/* SPDX-License-Identifier: Apache-2.0 */
/* edge_warnings.c - see edge_warnings.h. */
#include "edge_warnings.h"

#include "plan/schedules/comms.h"
#include "plan/schedules/generate.h"
#include "plan/schedules/complete_lists.h"

/* The lists of all ranks, with messages, and between which stages there are any. */
struct search {
    const struct links *links;
    struct stage_map map;
    struct rank_program *ranks, *differing; /* differing: of ranks with a list of their own */
    int rank_count;
    bool *forward, *backward; /* [stage that sends] */
};

static void mark_message(struct search *search, const struct action *action)
{
    bool sends = action->kind == ACTION_SEND_F || action->kind == ACTION_SEND_B;
    bool is_forward = action->kind == ACTION_SEND_F || action->kind == ACTION_RECV_F;
    int sender = sends ? action->stage : comms_partner(action);
    if (sender >= 0 && sender < search->map.stages)
        (is_forward ? search->forward : search->backward)[sender] = true;
}

static void mark_lists(struct search *search, const struct rank_program *lists, size_t count)
{
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < lists[i].count; k++)
            if (comms_is_message(&lists[i].actions[k]))
                mark_message(search, &lists[i].actions[k]);
}

static enum status read_lists(const struct plan *plan, struct arena *scratch, struct search *search,
                              struct diag *diag)
{
    struct plan made = complete_lists_like(plan);
    enum status status = complete_lists_fill_all(&made, scratch, &search->ranks,
                                                 &search->rank_count, &search->differing, diag);
    if (status == STATUS_OK)
        status = comms_map_stages(scratch, search->ranks, search->rank_count,
                                  complete_lists_copies(&made), &search->map, diag);
    if (status != STATUS_OK)
        return status;
    search->forward = ARENA_ARRAY(scratch, (size_t)search->map.stages, bool);
    search->backward = ARENA_ARRAY(scratch, (size_t)search->map.stages, bool);
    if (!search->forward || !search->backward)
        return diag_no_memory(diag);
    mark_lists(search, search->ranks, (size_t)search->rank_count);
    if (search->differing)
        mark_lists(search, search->differing, plan->programs.parallel.differing_count);
    return STATUS_OK;
}

static bool is_taken(const struct search *search, const struct edge_link *edge)
{
    bool taken = false;
    for (int s = 0; s < search->map.stages; s++) {
        bool leaves = comms_rank_of(&search->map, s) == edge->from;
        taken |= leaves && search->forward[s] && comms_rank_of(&search->map, s + 1) == edge->to;
        taken |= leaves && search->backward[s] && comms_rank_of(&search->map, s - 1) == edge->to;
    }
    return taken;
}

static void tell(const struct search *search, struct arena *arena, struct warnings *out)
{
    const struct edge_link *first = NULL;
    size_t more = 0;
    for (size_t i = 0; i < search->links->edge_count; i++) {
        const struct edge_link *edge = &search->links->edges[i];
        if (is_taken(search, edge))
            continue;
        more += first != NULL;
        first = first ? first : edge;
    }
    if (!first || out->count >= WARNINGS_MOST)
        return;
    const char *others = more ? arena_printf(arena, " (%zu more like it)", more) : "";
    out->items[out->count++] = (struct warning){
        WARNING_UNUSED_EDGE, first->mark,
        arena_printf(arena, "no message goes from rank %d to rank %d: this edge has no effect%s",
                     first->from, first->to, others ? others : "")};
}

enum status edge_warnings_find(const struct plan *plan, struct arena *arena, struct warnings *out,
                               struct diag *diag)
{
    const struct programs *programs = &plan->programs;
    if (plan->form != FORM_PROGRAMS || programs->links.edge_count == 0)
        return STATUS_OK;
    struct search search = {.links = &programs->links};
    struct arena scratch;
    struct diag refused;
    arena_init(&scratch, 0);
    diag_init(&refused);
    if (read_lists(plan, &scratch, &search, &refused) == STATUS_OK)
        tell(&search, arena, out);
    bool failed = scratch.failed || arena->failed;
    diag_fini(&refused);
    arena_fini(&scratch);
    return failed ? diag_no_memory(diag) : STATUS_OK;
}
