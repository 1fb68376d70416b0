/*
 * flight.h - dumps of PyTorch's flight recorder, one a rank, as a plan: which collectives, sends and receives each rank
 * called, in its order.
 *
 * A dump has neither streams nor the host's waits, so the plan stands under hypotheses, which its `about` says:
 * every process group has a stream and a communicator of its own, which its sends and receives share; the host waits
 * for each operation, or for none; operations take residency slots, or none. Dumps are rings: what is older
 * than the oldest entry of another member of the group is left out.
 */
#ifndef SWSIM_FLIGHT_H
#define SWSIM_FLIGHT_H

#include "plan/plan.h"
#include "value.h"

struct flight_options {
    const char *name;
    bool host_waits;   /* for each operation; else for none */
    bool launch_order; /* operations of a rank run in the order of their launches */
    int64_t sm_slots;  /* operations that can be resident at once; 0: any number */
};

struct flight_dump {
    const char *file;
    int64_t rank; /* -1: not known */
    const struct value *root;
};

/* Is this the document of a dump? */
bool flight_is_dump(const struct value *root);
/* The rank that the dump says, or else its file's name, as in nccl_trace_rank_3; -1. */
int64_t flight_rank(const struct value *root, const char *file);

/* Sorts the dumps by rank. The caller ends *out with plan_fini; set on success only. STATUS_INPUT for
   two dumps of a rank, and for dumps without entries. */
enum status flight_plan(struct flight_dump *dumps, size_t count,
                        const struct flight_options *options, struct plan *out, struct diag *diag);

#endif
