/* SPDX-License-Identifier: Apache-2.0 */
/*
 * execution.h - what the operations of a rank read and write, from the execution trace that PyTorch records beside its
 * profile (ExecutionTraceObserver; Chakra calls it a host trace).
 *
 * A node of such a trace is an operator with the storages of its input and output tensors and its schema. The profile has
 * the same operators with their times, and the number of their record function (rf_id) joins the two. A work accesses what
 * the innermost operator around its call does; CPU work is of interest where it touches memory that others use, too.
 *
 *     reads    an input, unless the schema says that it is only viewed (a) or overwritten (out=, copy_, zero_)
 *     writes   an input that the schema marks with !, and an output with a storage of its own
 *
 * The schemas of torch.distributed mark nothing: a table says which argument its operators write. Custom kernels without a
 * schema (Triton) tell nothing, and what they push counts as work that declares no accesses.
 *
 * A storage ends with its tensors: memory that an allocator hands out again is another storage, so that the reuse of
 * memory is not judged.
 */
#ifndef SWSIM_EXECUTION_H
#define SWSIM_EXECUTION_H

#include "trace/job/bytes.h"
#include "trace/job/job.h"

struct execution_node {
    int64_t number;     /* of its record function */
    uint64_t name_hash; /* table_hash_name */
    int first, count;   /* of accesses */
};

struct execution_access {
    int64_t storage;
    bool write, reads_too; /* a write may read the old value */
    bool of_host;
};

struct execution {
    const char *file;
    int64_t pid;                  /* -1: not told */
    struct execution_node *nodes; /* by number; of operators whose accesses are known */
    struct execution_access *accesses;
    size_t node_count, node_cap, access_count, access_cap;
};

/* All of it lives in `arena`. STATUS_INPUT for a file that is no execution trace. */
enum status execution_read(struct bytes *bytes, struct arena *arena, struct execution *out,
                           struct diag *diag);

/* After job_finish: each rank gets the accesses that the trace of its process tells: the one of its process id, else the one
   at its place. Of a rank on CPUs whose trace has no waits of threads CPU work accesses nothing. Warns of a trace whose
   operators are not those of the rank, and leaves it out; notes the names of works whose accesses no schema tells. `settle`: what one
   stream alone uses is one memory, what is only read is one; else each storage is. */
enum status execution_join(struct job *job, const struct execution *items, size_t count,
                           bool settle, struct diag *diag);

/* The names of a rank's works whose accesses are not told, the most frequent first, and how many there are: "triton_add (8)".
   NULL without memory. */
const char *execution_untold(const struct job *job, const struct job_rank *rank, size_t *count,
                             struct arena *arena);

#endif
