/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pipeline_internal.h - what the files share that write a job as a pipeline.
 *
 * pipeline_tasks.c writes the tasks, pipeline_deps.c their stages and dependences, pipeline_buffers.c what they read and
 * write; pipeline_form.c is the plan around them.
 */
#ifndef SWSIM_PIPELINE_INTERNAL_H
#define SWSIM_PIPELINE_INTERNAL_H

#include "pieces.h"
#include "turns.h"

struct pipeline_form_writer {
    const struct job *job;
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

/* Each is a part of the plan. pipeline_tasks: STATUS_INPUT for ranks that are not alike; the others: false without
   memory. */
enum status pipeline_tasks(struct pipeline_form_writer *writer, struct diag *diag);
void pipeline_stages(struct pipeline_form_writer *writer);
bool pipeline_deps(struct pipeline_form_writer *writer);
/* Behind the dependences; `arena` is for its own use. */
bool pipeline_buffers(struct pipeline_form_writer *writer, struct arena *arena);

/* True if it has a forward and sections of TorchRec's pipelines that are ahead of it. */
bool pipeline_is_torchrec(const struct pipeline_form_writer *writer);

/* The section of this name; -1. */
int pipeline_section(const struct pipeline_form_writer *writer, const char *name);

#endif
