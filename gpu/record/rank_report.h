/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rank_report.h - the packets in which the process of a rank reports its run to its broker.
 *
 * A packet is a struct report_head and its data. Journals send REPORT_LOG, gpu/exec/ranks.h the others
 * and reads them all.
 */
#ifndef SWSIM_RANK_REPORT_H
#define SWSIM_RANK_REPORT_H

#include "gpu/net/rendezvous.h"

struct report_head {
    int32_t kind, number;
};

enum report_kind {
    REPORT_BEGIN,   /* of rank 0, before the start: the device in words */
    REPORT_LOG,     /* records of gpu/record/journal.c */
    REPORT_MESSAGE, /* number: enum severity; text */
    REPORT_BLOCKED, /* number: rank; agent, 0, what it waits for */
    REPORT_END      /* how it ended: the last one */
};

/* False: the broker is gone, or the data is too large. */
bool rank_report_send(struct rendezvous *rendezvous, enum report_kind kind, int number,
                      const void *data, size_t bytes);

#endif
