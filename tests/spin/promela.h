/* SPDX-License-Identifier: Apache-2.0 */
/*
 * promela.h - internal to export_promela: the model being written and its parts.
 *
 * export_promela.c writes the declarations and the processes, promela_ops.c the operations,
 * promela_drivers.c the two drivers.
 */
#ifndef SWSIM_PROMELA_H
#define SWSIM_PROMELA_H

#include <stdio.h>

#include "machine/program.h"

struct model {
    const struct program *p;
    FILE *out;
    int64_t iterations; /* the most a rank has data for; 0 without a pipeline */
    int64_t byte_unit;  /* message sizes are counted in this many bytes */
    bool matches;       /* there are operations that can be mismatched */
    bool messages;      /* there are groups */
};

/* Errors in writing stay in the stream. */
void promela_put(const struct model *m, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* A name of the plan's inside a comment. */
void promela_put_name(const struct model *m, const char *name);

bool promela_is_pipeline(const struct model *m);
/* The agent's name, for a comment. */
void promela_put_agent(const struct model *m, int agent);
/* The member of a communicator that an operation acts for, among all members of the program. */
int promela_member(const struct program *p, const struct op *op);
/* Equal numbers, from 1, for collectives that go together. */
int promela_collective_number(const struct program *p, const struct op *op);
/* A comment with the operation's key and the name of its object. */
void promela_put_op_comment(const struct model *m, const struct op *op);

/* promela_ops.c: the operations of a body, one a line, as `rank` executes them; the steps of a stream's
   process with an item. */
void promela_put_body(const struct model *m, int body, int rank, const char *indent);
void promela_put_item(const struct model *m, const struct op *op);

/* promela_drivers.c: definitions before the processes, the text of a driver's process, and clearing
   the signal and the event of a task's instance. */
void promela_put_driver_inlines(const struct model *m);
void promela_put_driver(const struct model *m, int rank);
void promela_put_arm_slot(const struct model *m, int rank, int task, const char *iteration);

#endif
