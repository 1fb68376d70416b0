/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sections.h - the steps of a job, each cut into the sections that the program has annotated.
 *
 * The stepping thread is the one with the steps of the profiler (ProfilerStep#N); without these the one whose annotations
 * take the most time, and a step begins with the first of those that come as often as the longest does. A
 * section is an annotation of that thread that stands in no other one; one that is nearly the whole step and holds others
 * counts as these. Time between two sections is part of the later one, or a section `unannotated` where it is
 * long. Steps whose sections are not those of most steps of all ranks are left out.
 */
#ifndef SWSIM_SECTIONS_H
#define SWSIM_SECTIONS_H

#include "trace/job/job.h"

struct section {
    const char *name; /* clean: letters, digits and _ . : - */
    int64_t number;   /* that ends its name in the first step, as in "forward 12"; -1 */
};

struct section_step {
    int rank;          /* whose step it is */
    int place;         /* among all steps of the trace; steps of two ranks are far apart */
    int64_t *begin_ns; /* per section, and the end of the step */
};

struct sections {
    struct section *items;
    struct section_step *steps;     /* by place */
    size_t count, annotation_count; /* all; without those called `unannotated` */
    size_t step_count, left_out;    /* the steps, and those that are not like most */
    int64_t period_ns;              /* mean over the steps */
    int annotated;                  /* share of the time of the steps, in millionths */
};

/* A time is long for a step if it is more than this share of it: 1%. */
enum { SECTION_LONG = 100 };

/* Of ranks whose times follow each other (turns.h); all memory is in `arena`. STATUS_INPUT for a rank without
   annotations, and for one whose steps are not like those of the others. */
enum status sections_find(const struct job *job, const struct job_rank *ranks, size_t count,
                          struct arena *arena, struct sections *out, struct diag *diag);

/* The step and the section that `time_ns` is in; false: none. */
bool sections_at(const struct sections *sections, int64_t time_ns, int *step, int *section);

#endif
