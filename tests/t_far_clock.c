/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_far_clock.c - an hour on two machines whose clocks differ in rate, asked every 20 ms over a network that
 * holds messages up: how far the far member's time is from the broker's, and that it never runs backwards.
 * All in computed time, so an hour takes a moment.
 */
#include "gpu/net/far_clock.h"

#include <stdio.h>
#include <stdlib.h>

#include "random_draw.h"
#include "tap.h"

#define ASK_NS  INT64_C(20000000)
#define HOUR_NS INT64_C(3600000000000)

/* A network: a way takes `least_ns`, most often some more, now and then (one in `seldom`) much more. */
struct network {
    const char *name;
    int64_t least_ns, more_ns, much_ns;
    int seldom;
};

static int64_t way(struct random *luck, const struct network *network)
{
    int64_t ns = network->least_ns + below(luck, (int)network->more_ns);
    return rarely(luck, network->seldom) ? ns + below(luck, (int)network->much_ns) : ns;
}

/* The broker's time is the true one; here a second lasts `ppm` millionths longer, and time 0 is said to be
   `off_ns` from where it is. */
static void test_hour(const struct network *network, double ppm, int64_t off_ns, int64_t limit_ns)
{
    struct random luck = {.seed = 7};
    struct far_clock clock;
    const int64_t start_ns = INT64_C(5000000000000);
    int64_t worst_ns = 0, before_ns = INT64_MIN, backwards = 0;
    far_clock_init(&clock, start_ns + off_ns);
    for (int64_t true_ns = ASK_NS; true_ns < HOUR_NS; true_ns += ASK_NS) {
        int64_t there_ns = true_ns + way(&luck, network), back_ns = there_ns + way(&luck, network);
        int64_t asked_ns = start_ns + true_ns + (int64_t)((double)true_ns * ppm / 1e6);
        int64_t heard_ns = start_ns + back_ns + (int64_t)((double)back_ns * ppm / 1e6);
        far_clock_hear(&clock, asked_ns, heard_ns, there_ns);
        int64_t now_ns = heard_ns - clock.base_ns + far_clock_correction(&clock, heard_ns);
        int64_t next_ns = heard_ns + 1 - clock.base_ns + far_clock_correction(&clock, heard_ns + 1);
        backwards += now_ns < before_ns || next_ns < now_ns;
        before_ns = back_ns > true_ns + ASK_NS ? INT64_MIN : next_ns; /* answers overtake none */
        if (true_ns > 30 * FAR_CLOCK_WINDOW_NS && llabs(now_ns - back_ns) > worst_ns)
            worst_ns = llabs(now_ns - back_ns);
    }
    tap_ok(worst_ns < limit_ns, "%s, %.0f ppm: within %.1f us after the first half minute",
           network->name, ppm, (double)worst_ns / 1e3);
    tap_is_int(backwards, 0, "and time never runs backwards");
}

int main(void)
{
    static const struct network quiet = {"a quiet network", 30000, 20000, 1, 1000000};
    static const struct network busy = {"a busy one", 50000, 400000, 5000000, 3};
    const double rates[] = {0, 1, 20, 100, -20, -100};
    for (size_t i = 0; i < sizeof rates / sizeof *rates; i++) {
        test_hour(&quiet, rates[i], 3000000, 250000);
        test_hour(&busy, rates[i], -3000000, FAR_CLOCK_APART_NS);
    }
    return tap_done();
}
