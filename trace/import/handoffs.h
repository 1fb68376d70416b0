/* SPDX-License-Identifier: Apache-2.0 */
/*
 * handoffs.h - the order between the threads of a rank, which a trace shows only by its times.
 *
 * A call waits for one of another thread where
 *
 *     - both push to one stream, one after the other: the stream has the order of the trace;
 *     - it makes a stream wait for work that the other one pushed: the record must come first;
 *     - its thread was idle for more than HANDOFF_NS before it, the other thread made its last call in that
 *       time, and makes none for a while: it handed over.
 *
 * Every such order points forward in time, so the plan that has them cannot deadlock by them.
 */
#ifndef SWSIM_HANDOFFS_H
#define SWSIM_HANDOFFS_H

#include "evidence.h"
#include "trace/job/job.h"

enum { HANDOFF_NS = 80 * 1000 };

struct handoff {
    int call, other; /* `call` comes after `other` */
    bool at_end;     /* after its end; else after its push */
};

struct handoffs {
    struct handoff *items; /* by call */
    size_t count, cap;
};

/* Those that do not follow from earlier ones of the same two threads. Ended by handoffs_fini, also after a failure;
   false without memory. */
bool handoffs_find(const struct job_rank *rank, const struct evidence *evidence,
                   struct handoffs *out);
void handoffs_fini(struct handoffs *handoffs);

#endif
