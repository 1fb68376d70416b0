/* SPDX-License-Identifier: Apache-2.0 */
/* pipeline.c - see pipeline.h. */
#include "pipeline.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "plan/text/parse.h"
#include "sim/engine/timing.h"

struct bench_pipeline {
    struct diag diag;
    struct plan plan;
    struct program *program;
    struct timing timing;
    uint64_t seed;
    int ops[PIPELINE_TASKS];
};

_Static_assert((int)PIPELINE_RUN == (int)RANDOM_RUN, "runs of draws are as long as the library's");

static int device_op(const struct program *program, int task)
{
    const struct body *body = &program->bodies[task];
    for (int i = body->first; i < body->first + body->count; i++)
        if (program->ops[i].kind == OP_LAUNCH || program->ops[i].kind == OP_COPY ||
            program->ops[i].kind == OP_COLLECTIVE)
            return i;
    return -1;
}

static enum status load(struct bench_pipeline *p, const char *plan_file, int64_t iterations)
{
    static const char *const names[PIPELINE_TASKS] = {"H2D",      "InputDistStart", "InputDistWait",
                                                      "ZeroGrad", "WaitBatch",      "Forward",
                                                      "Backward", "OptimizerStep"};
    static const struct dist normal = {.kind = DIST_NORMAL, .parameter = 0.3};
    const struct jitter_rule rule = {"*", normal};
    const struct program_options options = {
        .driver = DRIVER_CLOCK, .iterations = iterations, .ranks = 1};
    enum status status = plan_read(plan_file, &p->plan, &p->diag);
    if (status == STATUS_OK)
        status = program_build(&p->plan, &options, &p->program, &p->diag);
    if (status == STATUS_OK)
        status = timing_init(&p->timing, p->program, &rule, 1, &p->diag);
    for (int t = 0; status == STATUS_OK && t < PIPELINE_TASKS; t++) {
        int task = plan_find_task(&p->plan, names[t]);
        p->ops[t] = task < 0 ? -1 : device_op(p->program, task);
        if (p->ops[t] < 0)
            status = diag_error(&p->diag, STATUS_INPUT, "%s: found no work of a task %s", plan_file,
                                names[t]);
    }
    return status;
}

struct bench_pipeline *pipeline_open(const char *plan_file, int64_t iterations, uint64_t seed)
{
    struct bench_pipeline *p = calloc(1, sizeof *p);
    if (!p)
        return NULL;
    p->seed = seed;
    diag_init(&p->diag);
    if (load(p, plan_file, iterations) == STATUS_OK)
        return p;
    for (size_t i = 0; i < p->diag.count; i++)
        fprintf(stderr, "%s\n", p->diag.messages[i].text);
    free(p); /* and the program ends */
    return NULL;
}

void pipeline_close(struct bench_pipeline *p)
{
    timing_fini(&p->timing);
    program_close(p->program);
    plan_fini(&p->plan);
    diag_fini(&p->diag);
    free(p);
}

void pipeline_draw(const struct bench_pipeline *p, int task, int64_t first,
                   int64_t out_ns[PIPELINE_RUN])
{
    timing_draw_run(&p->timing, p->ops[task], first, p->seed, 0, out_ns);
}

int pipeline_main(int argc, char **argv,
                  int64_t (*run)(const struct bench_pipeline *pipeline, int64_t iterations))
{
    struct timespec begin, end;
    int64_t iterations = argc == 3 ? atoll(argv[2]) : 0;
    if (iterations < 1) {
        fprintf(stderr, "usage: %s PLAN ITERATIONS\n", argv[0]);
        return 2;
    }
    struct bench_pipeline *pipeline = pipeline_open(argv[1], iterations, 1);
    if (!pipeline)
        return 2;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &begin);
    int64_t makespan_ns = run(pipeline, iterations);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
    double seconds =
        (double)(end.tv_sec - begin.tv_sec) + 1e-9 * (double)(end.tv_nsec - begin.tv_nsec);
    printf("%lld %lld %.9f\n", (long long)makespan_ns, (long long)(iterations * PIPELINE_TASKS),
           seconds);
    pipeline_close(pipeline);
    return 0;
}
