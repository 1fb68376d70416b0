/* SPDX-License-Identifier: Apache-2.0 */
/* launches.c - see launches.h. */
#include "launches.h"

void launches_init(struct launches *launches, const struct program *program, struct arena *arena)
{
    *launches = (struct launches){.latency_ns = program->plan->machine.launch_latency_ns};
    if (launches->latency_ns == 0)
        return;
    launches->queues = ARENA_ARRAY(arena, (size_t)program->stream_count + 1, struct launch_queue);
    for (int s = 0; launches->queues && s < program->stream_count; s++) {
        launches->queues[s].cap = program->streams[s].cap + 1;
        launches->queues[s].pushed_ns =
            ARENA_ARRAY(arena, (size_t)launches->queues[s].cap, int64_t);
    }
}

void launches_note(struct launches *launches, const struct program *program,
                   const struct state *state, int stream, int64_t now_ns)
{
    if (launches->latency_ns == 0)
        return;
    struct launch_queue *queue = &launches->queues[stream];
    const int count = machine_stream_queued(program, state, stream);
    for (; queue->count > count; queue->count--)
        queue->first = (queue->first + 1) % queue->cap;
    for (; queue->count < count; queue->count++)
        queue->pushed_ns[(queue->first + queue->count) % queue->cap] = now_ns;
}

int64_t launches_head_ns(const struct launches *launches, int stream)
{
    if (launches->latency_ns == 0 || launches->queues[stream].count == 0)
        return INT64_MIN;
    const struct launch_queue *queue = &launches->queues[stream];
    return queue->pushed_ns[queue->first] + launches->latency_ns;
}
