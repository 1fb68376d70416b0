/* memory.c - see memory.h. */
#include "memory.h"

#include <stdlib.h>

#include "machine/machine.h"

/* Where a body uses a buffer: the first and the last operation, -1: nowhere. */
struct span {
    int first, last;
};

static void note_uses(const struct program *p, const struct body *body, struct span *spans)
{
    for (int i = 0; i < body->count; i++) {
        const struct op *op = &p->ops[body->first + i];
        for (int k = 0; k < op->access_count; k++) {
            struct span *span = &spans[p->accesses[op->access_first + k].buffer];
            if (span->first < 0)
                span->first = i;
            span->last = i;
        }
    }
}

/* The most bytes held at any operation of the body. */
static int64_t sweep(const struct program *p, const struct body *body, const struct span *spans)
{
    int64_t held = 0, most = 0;
    for (int i = 0; i < body->count; i++) {
        const struct op *op = &p->ops[body->first + i];
        for (int pass = 0; pass < 2; pass++) {
            for (int k = 0; k < op->access_count; k++) {
                int buffer = p->accesses[op->access_first + k].buffer;
                bool again = false;
                for (int j = 0; j < k; j++)
                    again |= p->accesses[op->access_first + j].buffer == buffer;
                if (again)
                    continue;
                if (pass == 0 && spans[buffer].first == i)
                    held += p->buffers[buffer].bytes;
                if (pass == 1 && spans[buffer].last == i)
                    held -= p->buffers[buffer].bytes;
            }
            most = held > most ? held : most;
        }
    }
    return most;
}

static enum status most_of_lists(const struct program *p, int64_t *bytes, int *rank,
                                 struct diag *diag)
{
    struct span *spans = malloc(((size_t)p->buffer_count + 1) * sizeof *spans);
    if (!spans)
        return diag_no_memory(diag);
    for (int b = 0; b < p->buffer_count; b++)
        spans[b] = (struct span){-1, -1};
    for (size_t b = 0; b < p->body_count; b++) {
        note_uses(p, &p->bodies[b], spans);
        int64_t most = sweep(p, &p->bodies[b], spans);
        if (most > *bytes) {
            *bytes = most;
            *rank = p->threads[p->bodies[b].thread].rank;
        }
    }
    free(spans);
    return STATUS_OK;
}

/* Before the first step: what is never allocated. The machine counts the rest, at each alloc. */
static enum status most_at_first(const struct program *p, int64_t *bytes, int *rank,
                                 struct diag *diag)
{
    struct state *state = machine_state(p);
    if (!state)
        return diag_no_memory(diag);
    for (int r = 0; r < p->ranks; r++) {
        int64_t held = machine_held_bytes(p, state, r);
        if (held > *bytes) {
            *bytes = held;
            *rank = r;
        }
    }
    machine_free(state);
    return STATUS_OK;
}

enum status memory_most(const struct program *p, int64_t *bytes, int *rank, struct diag *diag)
{
    *bytes = 0;
    *rank = 0;
    if (p->tasks > 0)
        return STATUS_OK;
    return p->owned_plan ? most_of_lists(p, bytes, rank, diag)
                         : most_at_first(p, bytes, rank, diag);
}
