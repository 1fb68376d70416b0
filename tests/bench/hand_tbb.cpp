// SPDX-License-Identifier: Apache-2.0
/*
 * hand_tbb.cpp - a peer of hand.c: the same work as a parallel_pipeline of oneTBB, a serial filter a lane, three tokens.
 */
#include <oneapi/tbb/parallel_pipeline.h>

using oneapi::tbb::filter_mode;
using oneapi::tbb::flow_control;
using oneapi::tbb::make_filter;

extern "C" bool peer_run(int iterations, int in_flight, void (*work)(void *))
{
    int next = 0;
    auto first = make_filter<void, int>(filter_mode::serial_in_order, [&](flow_control &control) {
        if (next == iterations) {
            control.stop();
            return 0;
        }
        work(nullptr);
        return next++;
    });
    auto second = make_filter<int, int>(filter_mode::serial_in_order, [&](int iteration) {
        for (int task = 1; task <= 2; task++)
            work(nullptr);
        return iteration;
    });
    auto third = make_filter<int, void>(filter_mode::serial_in_order, [&](int) {
        for (int task = 3; task <= 7; task++)
            work(nullptr);
    });
    oneapi::tbb::parallel_pipeline(static_cast<size_t>(in_flight), first & second & third);
    return next == iterations;
}
