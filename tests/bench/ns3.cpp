/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ns3.cpp - the benchmark's pipeline on the event core of ns-3: an event at the end of each piece of
 * work, which starts what was waiting for it.
 */
#include <deque>

#include <ns3/core-module.h>

#include "pipeline.h"

namespace
{

/* Where a stream is: the task it is at or comes to next, and of which iteration. */
struct stream {
    int first, last, stage;
    int task;
    int64_t iteration;
    bool busy;
};

struct world {
    const bench_pipeline *plan;
    int64_t iterations, periods, copied, exchanged, over;
    stream streams[3];
    int64_t ns[PIPELINE_TASKS][PIPELINE_RUN];
};

world w;

void finish(int number);

bool may_start(const stream &s)
{
    if (s.busy || s.iteration == w.iterations || s.iteration + s.stage >= w.periods)
        return false;
    if (s.task == PIPELINE_START)
        return w.copied > s.iteration;
    return s.task != PIPELINE_BATCH || w.exchanged > s.iteration;
}

void start(int number)
{
    stream &s = w.streams[number];
    if (!may_start(s))
        return;
    int64_t place = s.iteration % PIPELINE_RUN;
    if (place == 0)
        pipeline_draw(w.plan, s.task, s.iteration, w.ns[s.task]);
    s.busy = true;
    ns3::Simulator::Schedule(ns3::NanoSeconds(w.ns[s.task][place]), &finish, number);
}

void finish(int number)
{
    stream &s = w.streams[number];
    s.busy = false;
    w.copied += s.task == PIPELINE_H2D;
    w.exchanged += s.task == PIPELINE_WAIT;
    if (s.task == PIPELINE_OPTIMIZER) {
        w.over++;
        w.periods++;
    }
    bool last = s.task == s.last;
    s.task = last ? s.first : s.task + 1;
    s.iteration += last;
    for (int other = 0; other < 3; other++)
        start(other);
}

int64_t run(const bench_pipeline *plan, int64_t iterations)
{
    w.plan = plan;
    w.iterations = iterations;
    w.periods = PIPELINE_DEPTH;
    w.copied = w.exchanged = w.over = 0;
    w.streams[0] = {PIPELINE_H2D, PIPELINE_H2D, 0, PIPELINE_H2D, 0, false};
    w.streams[1] = {PIPELINE_START, PIPELINE_WAIT, 1, PIPELINE_START, 0, false};
    w.streams[2] = {PIPELINE_ZERO, PIPELINE_OPTIMIZER, 2, PIPELINE_ZERO, 0, false};
    start(0);
    start(1);
    start(2);
    ns3::Simulator::Run();
    int64_t makespan_ns = ns3::Simulator::Now().GetNanoSeconds();
    ns3::Simulator::Destroy();
    return makespan_ns;
}

} // namespace

int main(int argc, char **argv)
{
    return pipeline_main(argc, argv, run);
}
