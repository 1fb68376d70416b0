/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pipeline_internal.h - what the files share that write a job as a pipeline.
 *
 * pipeline_form.c writes the tasks, their stages and dependences, and what they read and write by the names of sections;
 * pipeline_accesses.c the same by an execution trace.
 */
#ifndef SWSIM_PIPELINE_INTERNAL_H
#define SWSIM_PIPELINE_INTERNAL_H

#include "pieces.h"
#include "turns.h"

struct pipeline_form_writer {
    const struct job *job;
    const struct evidence *evidence; /* per rank of the job */
    const struct turns *turns;
    const struct sections *sections;
    const struct pieces *pieces;
    struct plan *plan;
    size_t dep_cap;
    int busiest;        /* turns->rank.streams: CPU work is beside this one */
    int *stage;         /* per section */
    struct arena *kept; /* of `*tasks`, what becomes of the works: see pipeline_form.h */
    int ***tasks;
};

/* A use of a buffer by a task. */
struct buffer_use {
    int task;
    bool reads, writes;
};

/* Two iterations of the tasks, and what comes before what: node `iteration * tasks + task`. */
struct orders {
    const struct pipeline_form_writer *writer;
    int tasks;
    int *next; /* per node: the next one on its stream; -1 */
    bool *reached;
    int *open;
    struct order_dep {
        int task, distance, next; /* deps of the same `on`; -1 */
    } * deps;
    size_t dep_count, dep_cap;
    int *first_dep; /* per task that others depend on: deps; -1 */
};

/* A dependence that the plan has. False without memory. */
bool orders_add(struct orders *orders, struct arena *arena, const struct dep *dep);
/* True if `to` begins after `from`, of the first iteration, has ended. Within the iteration only the plan's dependences tell, as
   for a serial run. */
bool orders_come_after(struct orders *orders, int to, int from);

/* The same from an execution trace; *out: false where no rank has one. */
bool pipeline_accesses(struct pipeline_form_writer *writer, struct orders *orders,
                       struct arena *arena, bool *out);

/* The stages that an execution trace tells; *out: false where it tells none. */
bool pipeline_access_stages(struct pipeline_form_writer *writer, struct arena *arena, bool *out);

/* `task` begins after `on` of the iteration `distance` earlier has ended. */
bool pipeline_add_dep(struct pipeline_form_writer *writer, int task, int on, int distance);
/* There is room for it in plan->buffers. */
bool pipeline_add_buffer(struct plan *plan, const struct buffer *buffer,
                         const struct buffer_use *uses, size_t count);

#endif
