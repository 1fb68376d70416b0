/* passes.c - see passes.h. */
#include "passes.h"

#include <stdint.h>
#include <stdio.h>

#include "plan/comms.h"
#include "plan/rank_programs.h"

/* Results that actions need, one per stage and microbatch. */
enum need { NEED_F, NEED_BACKWARD, NEED_W, NEED_RECV_F, NEED_RECV_B, NEEDS };

static const char *const need_names[NEEDS] = {"F", "B", "W", "RECV_F", "RECV_B"};

struct passes {
    const struct rank_program *ranks;
    int rank_count;
    struct stage_map map;
    bool fragment, has_backward, has_split; /* some pass is B or I, is I or W */
    uint8_t *there[NEEDS];                  /* in some list */
    uint8_t *seen[NEEDS];                   /* in the list that is being read, so far */
    struct arena *arena;
    const char *sentence;
};

static size_t cell(const struct passes *p, int stage, int microbatch)
{
    return (size_t)stage * (size_t)p->map.microbatches + (size_t)microbatch;
}

/* The result of an action; NEEDS: no action needs it. A B provides its W, too. */
static enum need provides(enum action_kind kind)
{
    switch (kind) {
    case ACTION_F: return NEED_F;
    case ACTION_B:
    case ACTION_I: return NEED_BACKWARD;
    case ACTION_W: return NEED_W;
    case ACTION_RECV_F: return NEED_RECV_F;
    case ACTION_RECV_B: return NEED_RECV_B;
    case ACTION_SEND_F:
    case ACTION_SEND_B:
    case ACTION_UNSHARD:
    case ACTION_RESHARD:
    case ACTION_REDUCE_GRAD:
    case ACTION_OVERLAP_F_B:
    case ACTION_IDLE: break;
    }
    return NEEDS;
}

static void note(const struct passes *p, uint8_t *const *table, const struct action *action)
{
    enum need need = provides(action->kind);
    if (need == NEEDS)
        return;
    size_t at = cell(p, action->stage, action->microbatch);
    table[need][at] = 1;
    if (action->kind == ACTION_B)
        table[NEED_W][at] = 1;
}

/* Where an action stands: its rank is the row, its number in the list the column, both from 1. */
struct place {
    const struct action *action;
    int row;
    size_t column;
};

static void say(struct passes *p, const struct place *place, const char *what, int stage,
                enum need need)
{
    char name[ACTION_NAME];
    comms_action_name(place->action, name, sizeof name);
    p->sentence =
        arena_printf(p->arena, "%s (row %d, column %zu) %s %d%s%d", name, place->row, place->column,
                     what, stage, need_names[need], place->action->microbatch);
}

/* `need` of a stage must come before this action. A piece of a schedule may lack it. */
static void require(struct passes *p, const struct place *place, int stage, enum need need)
{
    size_t at = cell(p, stage, place->action->microbatch);
    if (p->sentence || p->seen[need][at])
        return;
    if (p->there[need][at])
        say(p, place, "comes before", stage, need);
    else if (!p->fragment)
        say(p, place, "has no", stage, need);
}

/* A neighbouring stage gives its result by a pass on the same rank, or by a message. */
static void require_from(struct passes *p, const struct place *place, int neighbour, enum need pass,
                         enum need message)
{
    int rank = comms_rank_of(&p->map, neighbour);
    if (neighbour < 0 || neighbour >= p->map.stages)
        return;
    if (rank == place->row - 1)
        require(p, place, neighbour, pass);
    else
        require(p, place, place->action->stage, message);
}

static void check_action(struct passes *p, const struct place *place)
{
    const struct action *action = place->action;
    int stage = action->stage;
    switch (action->kind) {
    case ACTION_F: require_from(p, place, stage - 1, NEED_F, NEED_RECV_F); break;
    case ACTION_B:
    case ACTION_I:
        require(p, place, stage, NEED_F);
        require_from(p, place, stage + 1, NEED_BACKWARD, NEED_RECV_B);
        break;
    case ACTION_W: require(p, place, stage, NEED_BACKWARD); break;
    case ACTION_SEND_F: require(p, place, stage, NEED_F); break;
    case ACTION_SEND_B: require(p, place, stage, NEED_BACKWARD); break;
    case ACTION_RECV_F:
    case ACTION_RECV_B:
    case ACTION_UNSHARD:
    case ACTION_RESHARD:
    case ACTION_REDUCE_GRAD:
    case ACTION_OVERLAP_F_B:
    case ACTION_IDLE: break;
    }
}

/* Visit all actions, composites by their parts. */
static void read_lists(struct passes *p, void (*visit)(struct passes *p, const struct place *place))
{
    for (int rank = 0; rank < p->rank_count; rank++)
        for (size_t i = 0; i < p->ranks[rank].count; i++) {
            const struct action *parts;
            size_t count = comms_parts(&p->ranks[rank].actions[i], &parts);
            for (size_t k = 0; k < count; k++)
                visit(p, &(struct place){&parts[k], rank + 1, i + 1});
        }
}

static void visit_first(struct passes *p, const struct place *place)
{
    enum action_kind kind = place->action->kind;
    note(p, p->there, place->action);
    p->has_backward |= kind == ACTION_B || kind == ACTION_I;
    p->has_split |= kind == ACTION_I || kind == ACTION_W;
}

static void visit_again(struct passes *p, const struct place *place)
{
    check_action(p, place);
    note(p, p->seen, place->action);
}

/* Does every stage have every pass for every microbatch? */
static void check_complete(struct passes *p)
{
    for (int need = NEED_F; need <= NEED_W; need++)
        for (int s = 0; s < p->map.stages; s++)
            for (int m = 0; m < p->map.microbatches && !p->sentence; m++) {
                bool wanted = need == NEED_F || (need == NEED_W ? p->has_split : p->has_backward);
                int rank = comms_rank_of(&p->map, s);
                if (wanted && rank >= 0 && !p->there[need][cell(p, s, m)])
                    p->sentence = arena_printf(p->arena, "row %d has no %d%s%d", rank + 1, s,
                                               need_names[need], m);
            }
}

enum status passes_check(const struct plan *plan, struct arena *arena, const char **sentence,
                         struct diag *diag)
{
    struct arena scratch;
    struct rank_program *ranks = NULL;
    struct passes p = {.fragment = plan->programs.fragment, .arena = arena};
    arena_init(&scratch, 0);
    enum status status = rank_programs_complete(plan, &scratch, &ranks, &p.rank_count, diag);
    p.ranks = ranks;
    if (status == STATUS_OK)
        status = comms_map_stages(&scratch, ranks, p.rank_count, &p.map, diag);
    size_t cells = (size_t)p.map.stages * (size_t)p.map.microbatches;
    for (int need = 0; need < NEEDS && status == STATUS_OK; need++) {
        p.there[need] = ARENA_ARRAY(&scratch, cells + 1, uint8_t);
        p.seen[need] = ARENA_ARRAY(&scratch, cells + 1, uint8_t);
    }
    if (status == STATUS_OK && scratch.failed)
        status = diag_no_memory(diag);
    if (status == STATUS_OK) {
        read_lists(&p, visit_first);
        read_lists(&p, visit_again);
        if (!p.fragment && !p.sentence)
            check_complete(&p);
        *sentence = p.sentence;
        status = arena->failed ? diag_no_memory(diag) : STATUS_OK;
    }
    arena_fini(&scratch);
    return status;
}
