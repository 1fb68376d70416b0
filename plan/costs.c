/* costs.c - see costs.h. */
#include "costs.h"

#include "plan.h"

enum { NS_PER_S = 1000 * 1000 * 1000 };

/* ---- messages -------------------------------------------------------------------------------- */

enum { MOST_LINKS = 4 };

static const struct link *find_edge(const struct links *links, int from, int to)
{
    for (size_t i = 0; i < links->edge_count; i++)
        if (links->edges[i].from == from && links->edges[i].to == to)
            return &links->edges[i].link;
    return NULL;
}

/* The links of a message, narrowest first; returns how many. */
static int links_of(const struct links *links, int from, int to, bool forward,
                    const struct link *out[MOST_LINKS])
{
    int count = 0;
    const struct link *edge = find_edge(links, from, to);
    if (edge)
        out[count++] = edge;
    if (links->node && from / links->node != to / links->node)
        out[count++] = &links->between;
    out[count++] = forward ? &links->forward : &links->backward;
    out[count++] = &links->all;
    return count;
}

/* What the narrowest link that says it says; 0: none does. */
#define FIRST_GIVEN(links, count, what)                                                            \
    for (int i_ = 0; i_ < (count); i_++)                                                           \
        if ((links)[i_]->what.given) {                                                             \
            what = (links)[i_]->what.value;                                                        \
            break;                                                                                 \
        }

static int64_t transfer_ns(int64_t bytes, int64_t bandwidth)
{
    return bandwidth ? (int64_t)((double)bytes * NS_PER_S / (double)bandwidth + 0.5) : 0;
}

/* A time given for either end of a message is that of the message. */
static bool given_time(const struct programs *programs, bool forward, int64_t *ns)
{
    const struct action_time *send = &programs->times[forward ? ACTION_SEND_F : ACTION_SEND_B];
    const struct action_time *recv = &programs->times[forward ? ACTION_RECV_F : ACTION_RECV_B];
    *ns = send->time_ns > recv->time_ns ? send->time_ns : recv->time_ns;
    return send->given || recv->given;
}

struct message_cost costs_message(const struct plan *plan, int from, int to, bool forward)
{
    const struct programs *programs = &plan->programs;
    const struct link *links[MOST_LINKS];
    int count = links_of(&programs->links, from, to, forward, links);
    int64_t latency = 0, bandwidth = 0, bytes = programs->p2p_bytes, given;
    FIRST_GIVEN(links, count, latency)
    FIRST_GIVEN(links, count, bandwidth)
    FIRST_GIVEN(links, count, bytes)
    if (given_time(programs, forward, &given))
        return (struct message_cost){.bytes = bytes, .latency_ns = given};
    return (struct message_cost){
        .bytes = bytes, .latency_ns = latency, .transfer_ns = transfer_ns(bytes, bandwidth)};
}
