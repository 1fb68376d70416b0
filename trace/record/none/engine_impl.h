/* SPDX-License-Identifier: Apache-2.0 */
/* engine_impl.h - the entries of streams and graphs, for engine.c and graph.c. */
#ifndef SWSIM_NONE_ENGINE_IMPL_H
#define SWSIM_NONE_ENGINE_IMPL_H

#include "none.h"

enum none_entry_kind {
    NONE_KERNEL,
    NONE_BOX,
    NONE_RECORD,
    NONE_WAIT,
    NONE_JOIN, /* waits for the first `version` entries of another stream */
    NONE_WORK,
    NONE_HOST
};

struct none_entry {
    enum none_entry_kind kind;
    struct none_event *event; /* held */
    struct none_stream *other;
    uint64_t version;
    struct none_box box;
    void *staged; /* the source's bytes, freed behind the copy */
    struct none_work work;
    void *arg; /* in a queue the instance */
    void (*function)(void *);
};

/* An event of a capture: behind which node of it the event is. */
struct none_node {
    struct none_entry entry;
};

struct none_graph {
    int references;
    uint64_t id;
    bool over, broken;
    int device;
    struct none_stream *origin;
    struct none_node **nodes;
    size_t count, cap;
};

struct none_event {
    int references;
    bool timed;
    uint64_t records, done;
    struct none_stream *stream; /* of the last record; NULL: none */
    uint64_t position;          /* the record's, among the stream's entries */
    int64_t done_ns;
    struct none_graph *capture; /* of the last record; held; NULL: none */
    void *node;                 /* that the record comes behind; NULL: none */
};

/* What a wait of the host for the first `at` entries of a stream implies. */
struct none_implied {
    uint64_t at, position;
    struct none_stream *other;
};

struct none_stream {
    struct none_stream *next; /* in the list of all */
    int device, priority;
    bool blocking, legacy, closed, busy, moving; /* moving: the clerk executes its first entry */
    uint64_t number;
    struct none_entry *entries; /* a ring */
    size_t first, count, cap;
    uint64_t pushed, done, known; /* known: a wait of the host implies that so many are done */
    int64_t done_ns;              /* the last entry */
    struct none_implied *implied;
    size_t implied_first, implied_count, implied_cap;
    struct none_graph *capture; /* held */
    void *node;                 /* the last one of this stream in the capture */
    struct none_stream *next_busy;
};

int64_t none_now_ns(void);
/* To the end of the queue, or into the graph; takes the entry. */
int none_append_locked(struct none_stream *stream, struct none_entry *entry);
void none_drive_locked(void);
void none_event_release_locked(struct none_event *event);
int none_graph_add_locked(struct none_stream *stream, const struct none_entry *entry);
int none_graph_join_locked(struct none_stream *stream, struct none_event *event);
/* What a call that waits does to captures: the error, or NONE_OK. */
int none_capture_forbids_locked(const struct none_stream *stream);

#endif
