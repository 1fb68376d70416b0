/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record.h - a simulated run goes into a trace store while it happens.
 *
 * A recorder is the observer of one simulation: recorder_begin as predict_options.begin,
 * recorder_observer as its observer. Work of streams and threads, causes of idle streams,
 * dependences and launches become spans and edges of a run of kind simulated, and its ledger. Memory does not grow
 * with the iterations. The recorder refers to the plan and the store, which must outlive it.
 */
#ifndef SWSIM_RECORD_H
#define SWSIM_RECORD_H

#include "predict.h"
#include "trace/store.h"

struct recorder {
    struct store *store;
    const struct plan *plan;
    uint64_t seed;
    struct diag *diag;
    const struct program *program;
    int64_t run;     /* -1: none yet */
    int64_t *agents; /* the store's numbers of the program's agents */
    struct record_recorded {
        int64_t iteration; /* -1: none */
        int64_t span;
    } * device, *host; /* per rank and task: the last `ring` iterations */
    int ring;
    struct stream_account *idle; /* per stream: why it was idle so far */
    int stream_count;
    struct simulate_observer observer;
};

void recorder_init(struct recorder *recorder, struct store *store, const struct plan *plan,
                   uint64_t seed, struct diag *diag);
void recorder_fini(struct recorder *recorder);

const struct simulate_observer *recorder_observer(const struct recorder *recorder);
/* `context` is the recorder. */
enum status recorder_begin(void *context, const struct program *program, struct diag *diag);

/* Add the figures of the prediction and end the run. With `prediction` NULL the run is marked as
   interrupted. */
enum status recorder_end(struct recorder *recorder, const struct prediction *prediction);

#endif
