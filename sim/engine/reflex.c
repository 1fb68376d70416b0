/* reflex.c - see reflex.h. */
#include "reflex.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* ---- recordings ------------------------------------------------------------------------------ */

enum { FIRST_CAP = 16, CACHE_LINE = 64 };

/* Room for one more item in *items. */
static bool has_room(struct recording *recording, void **items, int count, int *cap, size_t size)
{
    if (count < *cap)
        return true;
    int larger = *cap ? 2 * *cap : FIRST_CAP;
    void *grown = realloc(*items, (size_t)larger * size);
    if (!grown) {
        recording->failed = true;
        return false;
    }
    *items = grown;
    *cap = larger;
    return true;
}

#define ADD(recording, kind, ...)                                                                  \
    do {                                                                                           \
        void *items = (recording)->kind##s;                                                        \
        bool room = has_room((recording), &items, (recording)->kind##_count,                       \
                             &(recording)->kind##_cap, sizeof *(recording)->kind##s);              \
        (recording)->kind##s = items;                                                              \
        if (room)                                                                                  \
            (recording)->kind##s[(recording)->kind##_count++] =                                    \
                (struct reflex_##kind){__VA_ARGS__};                                               \
    } while (0)

void recording_fini(struct recording *recording)
{
    free(recording->draws);
    free(recording->starts);
    free(recording->holds);
    free(recording->books);
    free(recording->turns);
}

void recording_start(struct simulation *sim, int agent, int priority, const struct timed_op *ops,
                     int count)
{
    for (int i = 0; i < count; i++) {
        const struct op_time *time = &sim->timing->ops[ops[i].op];
        struct draws *draws = time->dist ? &sim->clocks.draws[time->draw] : NULL;
        ADD(sim->recording, draw, draws, time->mean_ns, ops[i].op, (int)ops[i].iteration);
    }
    ADD(sim->recording, start, {.place = sim->clocks.events.places[agent]}, events_order(priority),
        count, sim->program->agents[agent].kind != AGENT_THREAD);
}

void recording_hold(struct simulation *sim, int op)
{
    ADD(sim->recording, hold, op);
}

void recording_lane(struct simulation *sim, int stream, int from, int to)
{
    ADD(sim->recording, book, .number = stream, .from = from, .to = to);
}

void recording_common(struct simulation *sim, int number, const struct stall *value)
{
    ADD(sim->recording, book, .number = ~number, .value = *value);
}

void recording_admitted(struct simulation *sim, int rank, int64_t iteration, int64_t in_flight)
{
    ADD(sim->recording, turn, rank, (int)iteration, (int)in_flight);
}

void recording_retired(struct simulation *sim, int rank, int64_t iteration)
{
    ADD(sim->recording, turn, rank, (int)iteration, ENDS);
}

/* ---- reflexes ----------------------------------------------------------------------------------- */

/* The next of the reflex's lists begins at *at and is a copy. */
static void *copy_list(char **at, const void *items, int count, size_t size)
{
    char *copy = *at;
    if (count)
        memcpy(copy, items, (size_t)count * size);
    *at += (size_t)count * size;
    return copy;
}

/* Whose events they are is known while it is recorded; where those stand, when all have a place. */
static void find_seats(struct simulation *sim, struct reflex *reflex, int agent)
{
    reflex->seat = events_seat(&sim->clocks.events, sim->clocks.events.places[agent]);
    for (int i = 0; i < reflex->start_count; i++)
        reflex->starts[i].seat = events_seat(&sim->clocks.events, reflex->starts[i].seat.place);
}

struct reflex *reflex_make(struct simulation *sim, int agent, size_t *bytes)
{
    struct recording *r = sim->recording;
    *bytes = sizeof(struct reflex) + (size_t)r->draw_count * sizeof *r->draws +
             (size_t)r->start_count * sizeof *r->starts + (size_t)r->hold_count * sizeof *r->holds +
             (size_t)r->book_count * sizeof *r->books + (size_t)r->turn_count * sizeof *r->turns;
    *bytes = (*bytes + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE;
    struct reflex *reflex = r->failed ? NULL : aligned_alloc(CACHE_LINE, *bytes);
    if (!reflex)
        return NULL;
    char *at = (char *)(reflex + 1); /* those with pointers come first */
    *reflex = (struct reflex){.start_count = r->start_count,
                              .hold_count = r->hold_count,
                              .book_count = r->book_count,
                              .turn_count = r->turn_count};
    reflex->draws = copy_list(&at, r->draws, r->draw_count, sizeof *r->draws);
    reflex->starts = copy_list(&at, r->starts, r->start_count, sizeof *r->starts);
    reflex->holds = copy_list(&at, r->holds, r->hold_count, sizeof *r->holds);
    reflex->books = copy_list(&at, r->books, r->book_count, sizeof *r->books);
    reflex->turns = copy_list(&at, r->turns, r->turn_count, sizeof *r->turns);
    assert(at <= (char *)reflex + *bytes);
    find_seats(sim, reflex, agent);
    reflex->plain = r->start_count == 1 && r->draw_count == 1 && !r->book_count && !r->turn_count &&
                    !sim->clocks.sharing;
    if (reflex->plain) {
        reflex->draw = reflex->draws[0];
        reflex->order = reflex->starts->order;
    }
    reflex->again = reflex->plain && reflex->starts->seat.place == reflex->seat.place;
    r->draw_count = r->start_count = r->hold_count = r->book_count = r->turn_count = 0;
    return reflex;
}

static inline void start(struct simulation *sim, const struct reflex_start *start,
                         const struct reflex_draw *draws)
{
    int64_t longest_ns = reflex_draw(sim, draws);
    for (int i = 1; i < start->draws; i++) {
        int64_t ns = reflex_draw(sim, &draws[i]);
        longest_ns = ns > longest_ns ? ns : longest_ns;
    }
    events_put(&sim->clocks.events, &start->seat, sim->now_ns + longest_ns, start->order);
}

/* The same for sharing.h: what ends, what waits, what starts. */
static void share(struct simulation *sim, const struct reflex *reflex)
{
    const int *agents = sim->clocks.events.agents;
    const struct reflex_draw *draws = reflex->draws;
    sharing_finish(sim->clocks.sharing, agents[reflex->seat.place], sim->now_ns);
    for (int i = 0; i < reflex->hold_count; i++)
        sharing_hold(sim->clocks.sharing, reflex->holds[i].op);
    for (int i = 0; i < reflex->start_count; draws += reflex->starts[i++].draws) {
        const struct reflex_start *start = &reflex->starts[i];
        for (int k = 0; start->shares && k < start->draws; k++)
            sharing_start(sim->clocks.sharing, agents[start->seat.place], draws[k].op,
                          *start->seat.due_ns - sim->now_ns, sim->now_ns);
    }
    if (reflex->settles)
        sharing_settle(sim->clocks.sharing, sim->now_ns, &sim->clocks.events);
}

void reflex_do_all(struct simulation *sim, const struct reflex *reflex)
{
    const struct reflex_draw *draws = reflex->draws;
    events_take(&sim->clocks.events, &reflex->seat);
    for (int i = 0; i < reflex->start_count; draws += reflex->starts[i++].draws)
        start(sim, &reflex->starts[i], draws);
    if (sim->clocks.sharing)
        share(sim, reflex);
    if (reflex->book_count)
        account_books(sim, reflex->books, reflex->book_count);
    if (reflex->turn_count)
        simulation_turns(sim, reflex->turns, reflex->turn_count);
    sim->base += reflex->shift;
}
