/* SPDX-License-Identifier: Apache-2.0 */
/*
 * simgrid.cpp - the benchmark's pipeline in SimGrid S4U: an actor a stream and one for the driver,
 * semaphores between them, a sleep for each piece of work. Times are milliseconds.
 */
#include <cmath>
#include <vector>

#include <simgrid/s4u.hpp>

#include "pipeline.h"

namespace s4u = simgrid::s4u;

namespace
{

struct stream {
    int stage;
    std::vector<int> tasks;
};

const stream streams[] = {
    {0, {PIPELINE_H2D}},
    {1, {PIPELINE_START, PIPELINE_WAIT}},
    {2, {PIPELINE_ZERO, PIPELINE_BATCH, PIPELINE_FORWARD, PIPELINE_BACKWARD, PIPELINE_OPTIMIZER}}};
constexpr int stream_count = 3;

struct world {
    const bench_pipeline *plan;
    int64_t iterations;
    s4u::SemaphorePtr period[stream_count], done[stream_count], copied, exchanged;
};

void work(world *w, int number)
{
    const stream &self = streams[number];
    std::vector<std::vector<int64_t>> ns(self.tasks.size(), std::vector<int64_t>(PIPELINE_RUN));
    for (int64_t i = 0; i < w->iterations; i++) {
        for (size_t t = 0; i % PIPELINE_RUN == 0 && t < self.tasks.size(); t++)
            pipeline_draw(w->plan, self.tasks[t], i, ns[t].data());
        w->period[number]->acquire();
        for (size_t t = 0; t < self.tasks.size(); t++) {
            int task = self.tasks[t];
            if (task == PIPELINE_START)
                w->copied->acquire();
            if (task == PIPELINE_BATCH)
                w->exchanged->acquire();
            s4u::this_actor::sleep_for(1e-6 * static_cast<double>(ns[t][i % PIPELINE_RUN]));
            if (task == PIPELINE_H2D)
                w->copied->release();
            if (task == PIPELINE_WAIT)
                w->exchanged->release();
        }
        w->done[number]->release();
    }
}

void drive(world *w)
{
    for (int64_t period = 0; period < w->iterations + PIPELINE_DEPTH - 1; period++) {
        for (int s = 0; period >= PIPELINE_DEPTH && s < stream_count; s++)
            w->done[s]->acquire();
        for (int s = 0; s < stream_count; s++)
            if (period >= streams[s].stage)
                w->period[s]->release();
    }
}

int64_t run(const bench_pipeline *plan, int64_t iterations)
{
    s4u::Engine *engine = s4u::Engine::get_instance();
    s4u::Host *host = engine->get_netzone_root()->create_host("host", 1e9)->seal();
    world w{plan, iterations, {}, {}, s4u::Semaphore::create(0), s4u::Semaphore::create(0)};
    engine->get_netzone_root()->seal();
    for (int s = 0; s < stream_count; s++) {
        w.period[s] = s4u::Semaphore::create(0);
        w.done[s] = s4u::Semaphore::create(0);
        s4u::Actor::create("stream", host, work, &w, s);
    }
    s4u::Actor::create("driver", host, drive, &w);
    engine->run();
    return std::llround(1e6 * s4u::Engine::get_clock());
}

} // namespace

int main(int argc, char **argv)
{
    /* contexts of its own are the fastest SimGrid has; the log is for errors only */
    const char *settings[] = {"simgrid", "--log=root.thres:error", "--cfg=surf/precision:1e-9",
                              nullptr};
    int count = 3;
    s4u::Engine engine(&count, const_cast<char **>(settings));
    s4u::create_full_zone("root");
    return pipeline_main(argc, argv, run);
}
