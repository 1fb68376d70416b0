/* SPDX-License-Identifier: Apache-2.0 */
/* piece_peers.c - when ranks wait for each other: time that is no rank's own. */
#include "pieces_internal.h"

/* Works are in the order of their starts, rank by rank, and the ranks' times follow each other (turns.h). */
bool pieces_find_peer_waits(struct piece_search *search)
{
    const struct job_rank *rank = search->rank;
    struct peer_wait *waits = search->peer_waits =
        ARENA_ARRAY(search->arena, rank->work_count + 1, struct peer_wait);
    for (size_t w = 0; waits && w < rank->work_count; w++) {
        const struct meeting *meeting = pieces_meeting(search, (int)w);
        const int64_t start_ns = rank->works[w].start_ns;
        const int64_t end_ns = meeting ? rank->works[w].end_ns - meeting->time_ns : start_ns;
        struct peer_wait *last =
            search->peer_wait_count > 0 ? &waits[search->peer_wait_count - 1] : NULL;
        if (end_ns <= start_ns)
            continue;
        if (last && start_ns <= last->end_ns)
            last->end_ns = later_of(last->end_ns, end_ns);
        else
            waits[search->peer_wait_count++] = (struct peer_wait){start_ns, end_ns};
    }
    return waits != NULL;
}

int64_t pieces_peer_ns(const struct piece_search *search, int64_t from_ns, int64_t until_ns)
{
    size_t low = 0, high = search->peer_wait_count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (search->peer_waits[middle].end_ns <= from_ns)
            low = middle + 1;
        else
            high = middle;
    }
    int64_t sum = 0;
    for (; low < search->peer_wait_count && search->peer_waits[low].start_ns < until_ns; low++) {
        const struct peer_wait *wait = &search->peer_waits[low];
        sum +=
            (wait->end_ns < until_ns ? wait->end_ns : until_ns) - later_of(wait->start_ns, from_ns);
    }
    return sum;
}
