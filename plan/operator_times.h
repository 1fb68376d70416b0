/* SPDX-License-Identifier: Apache-2.0 */
/*
 * operator_times.h - measured times of operators, by their names and the shapes of their tensors.
 *
 * They come from a trace of PyTorch's profiler (trace/import/kineto_operators.h) or from a table, a file of lines
 *
 *     operator,shapes,device_us,host_us
 *     aten::mm,bf16[4096x4096] bf16[4096x1024],61.2,9
 *
 * whose last column may be missing or empty. Shapes are those of the tensors that have a dimension, in the order of the operator's
 * arguments: type and sizes, in lists of tensors sizes alone; a text of more than 110 characters is '#' and its CRC-32. Names of
 * PyTorch's dispatcher ("aten.mm.default") and of its profiler ("aten::mm") are the same operator.
 */
#ifndef SWSIM_OPERATOR_TIMES_H
#define SWSIM_OPERATOR_TIMES_H

#include "plan.h"
#include "base/table.h"

enum { OPERATOR_SHAPES = 110, OPERATOR_NAME = 100 };

struct operator_time {
    const char *name, *shapes; /* as operator_times_key writes them */
    double device_ns, host_ns; /* sums */
    size_t count, host_count;
};

struct operator_times {
    struct operator_time *items;
    size_t count, cap;
    struct table table;
};

/* Zeros are an empty table; all of it lives in the arena. False: no memory. A host time below zero is not known. */
bool operator_times_add(struct operator_times *times, struct arena *arena, const char *name,
                        const char *shapes, double device_ns, double host_ns);
/* NULL: the operator was not measured with these shapes. */
const struct operator_time *operator_times_find(const struct operator_times *times,
                                                const char *name, const char *shapes);

/* A product of matrices: batch, rows, columns, and what is summed over. False: the operator is none. */
struct operator_product {
    double batch, m, n, k;
    char type[8];
};
bool operator_product_of(const char *name, const char *shapes, struct operator_product *out);

/* Adds the lines of a table. STATUS_INPUT for a line that is none. */
enum status operator_times_read(const char *path, struct arena *arena, struct operator_times *times,
                                struct diag *diag);

#endif
