/* worklist.c - see worklist.h. */
#include "worklist.h"

#include <stdlib.h>

enum { WATCHES_PER_AGENT = 4 }; /* most agents wait for one other */

/* ---- who is ready ---------------------------------------------------------------------------- */

static int place(const struct worklist *list, const struct ready_list *ready, int k)
{
    int at = ready->first + k, size = list->program->agent_count;
    return at < size ? at : at - size;
}

int ready_peek(const struct worklist *list, const struct ready_list *ready, int k)
{
    return ready->agents[place(list, ready, k)];
}

static void ready_add(const struct worklist *list, struct ready_list *ready, int agent)
{
    ready->agents[place(list, ready, ready->count++)] = agent;
}

/* Those before it move up by one, or those behind it down. */
int ready_take(const struct worklist *list, struct ready_list *ready, int k)
{
    int agent = ready_peek(list, ready, k);
    bool from_front = k < ready->count / 2;
    for (; from_front && k > 0; k--)
        ready->agents[place(list, ready, k)] = ready_peek(list, ready, k - 1);
    for (; !from_front && k < ready->count - 1; k++)
        ready->agents[place(list, ready, k)] = ready_peek(list, ready, k + 1);
    if (from_front)
        ready->first = place(list, ready, 1);
    ready->count--;
    return agent;
}

static void drop(const struct worklist *list, struct ready_list *ready, int agent)
{
    for (int k = 0; k < ready->count; k++)
        if (ready_peek(list, ready, k) == agent) {
            ready_take(list, ready, k);
            return;
        }
}

void worklist_drop(struct worklist *list, int agent)
{
    drop(list, &list->hosts, agent);
    drop(list, &list->devices, agent);
}

/* ---- who watches whom ------------------------------------------------------------------------ */

static void watch(struct worklist *list, int watcher, int watched)
{
    int at = list->unused;
    if (at < 0) {
        list->unwatched = true;
        return;
    }
    struct watching *watch = &list->watches[at];
    list->unused = watch->next_own;
    *watch = (struct watching){watcher, watched, list->head[watched], -1, list->own[watcher]};
    if (watch->next >= 0)
        list->watches[watch->next].previous = at;
    list->head[watched] = list->own[watcher] = at;
}

static void unwatch_all(struct worklist *list, int watcher)
{
    while (list->own[watcher] >= 0) {
        int at = list->own[watcher];
        struct watching *watch = &list->watches[at];
        if (watch->previous >= 0)
            list->watches[watch->previous].next = watch->next;
        else
            list->head[watch->watched] = watch->next;
        if (watch->next >= 0)
            list->watches[watch->next].previous = watch->previous;
        list->own[watcher] = watch->next_own;
        watch->next_own = list->unused;
        list->unused = at;
    }
}

static void look_at(struct worklist *list, const struct state *state, int agent)
{
    const struct program *p = list->program;
    unwatch_all(list, agent);
    if (machine_agent_enabled(p, state, agent)) {
        bool host = p->agents[agent].kind == AGENT_THREAD;
        if (machine_step_free(p, state, agent))
            ready_add(list, host ? &list->hosts : &list->devices, agent);
        return;
    }
    agent_set_clear(&list->enablers, p->agent_count);
    machine_enablers(p, state, agent, &list->enablers);
    for (int i = 0; i < list->enablers.count; i++)
        if (list->enablers.members[i] != agent)
            watch(list, agent, list->enablers.members[i]);
}

/* ---- the contract ---------------------------------------------------------------------------- */

void worklist_begin(struct worklist *list, const struct state *state)
{
    const struct program *p = list->program;
    int places = WATCHES_PER_AGENT * p->agent_count;
    for (int agent = 0; agent < p->agent_count; agent++)
        list->head[agent] = list->own[agent] = -1;
    for (int at = 0; at < places; at++)
        list->watches[at].next_own = at + 1 < places ? at + 1 : -1;
    list->unused = 0;
    list->unwatched = false;
    list->hosts.first = list->hosts.count = list->devices.first = list->devices.count = 0;
    for (int agent = 1; agent < p->agent_count; agent++) /* the data loader is asked apart */
        look_at(list, state, agent);
}

void worklist_acted(struct worklist *list, const struct state *state, int agent)
{
    struct agent_set *woken = &list->woken;
    agent_set_clear(woken, list->program->agent_count);
    for (int at = list->head[agent]; at >= 0; at = list->watches[at].next)
        agent_set_add(woken, list->watches[at].watcher);
    for (int i = 0; i < woken->count; i++)
        look_at(list, state, woken->members[i]);
    look_at(list, state, agent);
}

static bool ready_init(struct ready_list *ready, size_t agents)
{
    ready->agents = calloc(agents, sizeof *ready->agents);
    return ready->agents;
}

bool worklist_init(struct worklist *list, const struct program *program)
{
    size_t agents = (size_t)program->agent_count;
    *list = (struct worklist){.program = program};
    list->watches = calloc(WATCHES_PER_AGENT * agents, sizeof *list->watches);
    list->head = calloc(agents, sizeof *list->head);
    list->own = calloc(agents, sizeof *list->own);
    bool ready = ready_init(&list->hosts, agents) && ready_init(&list->devices, agents);
    bool sets = agent_set_init(&list->enablers, program->agent_count) &&
                agent_set_init(&list->woken, program->agent_count);
    return ready && sets && list->watches && list->head && list->own;
}

void worklist_fini(struct worklist *list)
{
    free(list->hosts.agents);
    free(list->devices.agents);
    free(list->watches);
    free(list->head);
    free(list->own);
    agent_set_fini(&list->enablers);
    agent_set_fini(&list->woken);
}
