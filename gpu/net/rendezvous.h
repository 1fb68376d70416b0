/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rendezvous.h - where the processes of one run meet, on one machine: a broker, and its members.
 *
 *     member 0 ----.                  .---- member 2      a connected UNIX socket each: its end is the
 *                   >--   broker   --<                    death notice, whatever the member died of
 *     member 1 ----'    (a thread)    '---- member 3
 *
 *     one file in memory, without a name, mapped by all:  | board | buffer | buffer | ...
 *
 * The broker carries mail between members; it never waits for one of them. Mail of one sender arrives in
 * the order it was sent, at every member. Nothing has a name in the file system, so a killed process leaves
 * nothing behind: the kernel closes the sockets and frees the memory.
 *
 * A member is *gone* when its socket ended before it said goodbye, and has *left* when it did. Both are
 * told to all others at once. The broker can be gone, too; then the run is over.
 *
 * Errors: STATUS_SYSTEM: sockets, threads or memory were refused. STATUS_VIOLATED: a member this
 * call would wait for is gone or has left. STATUS_LIMIT: a deadline (CLOCK_MONOTONIC) passed.
 */
#ifndef SWSIM_RENDEZVOUS_H
#define SWSIM_RENDEZVOUS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/diag.h"

struct rendezvous; /* a member's end */
struct broker;

#define RENDEZVOUS_FOREVER INT64_MAX
enum { RENDEZVOUS_MAX_BYTES = 48 * 1024, RENDEZVOUS_MAX_NAME = 80 };
enum { TO_ALL = -1, TO_BROKER = -2 }; /* all: but for the sender */
enum { RENDEZVOUS_MAX_MEMBERS = 1 << 16 };

/* ---- what all see ---------------------------------------------------------------------------- */

struct board_member {
    _Atomic int64_t progress; /* steps so far; a watchdog compares them */
    _Atomic int64_t beat_ns;  /* when its watchdog looked around last, CLOCK_MONOTONIC */
    _Atomic int64_t
        wanted; /* while a run drains: iterations it has admitted, plus 1; 0: not said */
    _Alignas(64) atomic_uint bell; /* goes on with each letter that is passed to it */
    atomic_uint sleepers;          /* its threads that wait for the bell */
};

struct board {
    int64_t base_ns;            /* CLOCK_MONOTONIC at time 0 of all worlds opened here */
    _Atomic int64_t start_ns;   /* of the run, since base_ns; written by member 0 */
    atomic_bool hung;           /* a watchdog found no progress on any rank */
    _Atomic int64_t used_bytes; /* of the file: where the next buffer begins */
    struct board_member members[];
};

/* ---- members: every function may be called from any thread ----------------------------------- */

/* Takes the socket. Returns when all members have come. */
enum status rendezvous_join(int socket, int rank, int64_t deadline_ns, struct rendezvous **out,
                            struct diag *diag);
/* The same through a broker that listens under a name; waits for it to be there. */
enum status rendezvous_find(const char *name, int rank, int64_t deadline_ns,
                            struct rendezvous **out, struct diag *diag);

/* Says goodbye and frees. No thread may use it any more. NULL is allowed. */
void rendezvous_leave(struct rendezvous *rendezvous);
/* The same after a failure: the others need not wait for what this member would have done. */
void rendezvous_leave_failed(struct rendezvous *rendezvous);

int rendezvous_rank(const struct rendezvous *rendezvous);
int rendezvous_size(const struct rendezvous *rendezvous);
struct board *rendezvous_board(const struct rendezvous *rendezvous);
/* The wish of the broker's owner for the run: a value of gpu/exec/runtime.h. */
const atomic_int *rendezvous_wish(const struct rendezvous *rendezvous);
/* The first member that is gone; the size when it is the broker; -1: all are here, or have left. */
int rendezvous_gone(struct rendezvous *rendezvous);
/* The first member that has said goodbye, -1: none has. */
int rendezvous_left(struct rendezvous *rendezvous);
/* The first member that is gone, as above, or has left after a failure. *how: "is gone", "has failed". */
int rendezvous_lost(struct rendezvous *rendezvous, const char **how);

/* Small values by key, for all; a key is put once. *bytes is the room, then the size. */
enum status rendezvous_put(struct rendezvous *rendezvous, const char *key, const void *data,
                           size_t bytes, struct diag *diag);
enum status rendezvous_get(struct rendezvous *rendezvous, const char *key, void *data,
                           size_t *bytes, int64_t deadline_ns, struct diag *diag);
/* 1, 2, ...: the same in all processes that ask in the same order. */
int rendezvous_count(struct rendezvous *rendezvous);
/* Until all members are in it. */
enum status rendezvous_barrier(struct rendezvous *rendezvous, int64_t deadline_ns,
                               struct diag *diag);

/* Mail to a member or TO_ALL, heard by the listener there; TO_BROKER: for the broker's owner. False: too
   large, or the broker is gone. */
bool rendezvous_send(struct rendezvous *rendezvous, int to, const void *data, size_t bytes);
/* Called for each mail on a thread of the rendezvous; without a listener mail is dropped. NULL: none;
   returns when the one before is not running any more. */
typedef void rendezvous_listener(void *arg, int from, const void *data, size_t bytes);
void rendezvous_listen(struct rendezvous *rendezvous, rendezvous_listener *listener, void *arg);

/* A letter that is heard when a thread of the receiver looks, or later: through common memory where there is room, else
   as above. Letters that one member passes to another are heard in their order. `wakes` false: a thread that sleeps need
   not hear it; of two members that pass a letter to each other and then look, one at least hears the other's. */
bool rendezvous_pass(struct rendezvous *rendezvous, int to, const void *data, size_t bytes,
                     bool wakes);
/* Hear the letters that have been passed to this member. A sender of none that make sense counts as gone. */
void rendezvous_look(struct rendezvous *rendezvous);
/* It changes with each letter passed to this member that wakes, after that can be heard, and with rendezvous_ring. */
const atomic_uint *rendezvous_bell(const struct rendezvous *rendezvous);
void rendezvous_ring(struct rendezvous *rendezvous);
/* Until the bell is not `seen` any more; at most that long, and perhaps for nothing. Not at all if `word`, in common memory
   (NULL: there is none), is not `value` any more. */
void rendezvous_sleep(struct rendezvous *rendezvous, unsigned seen, int64_t limit_ns,
                      const atomic_uint *word, unsigned value);
/* After such a word has been changed (in one order for all, memory_order_seq_cst): ring for a member, if it sleeps. */
void rendezvous_rouse(struct rendezvous *rendezvous, int rank);

/* Memory that the others can map, zeroed; `*offset` is where it lies in the file. */
void *rendezvous_alloc(struct rendezvous *rendezvous, size_t bytes, int64_t *offset,
                       struct diag *diag);
void rendezvous_free(struct rendezvous *rendezvous, void *address, size_t bytes, int64_t offset);
/* Not here any more, but others may look at it: it is given back behind the second call of rendezvous_age from now on. */
void rendezvous_free_late(struct rendezvous *rendezvous, void *address, size_t bytes,
                          int64_t offset);
void rendezvous_age(struct rendezvous *rendezvous);
/* Memory of another member, mapped until this one leaves. NULL: refused. */
void *rendezvous_map(struct rendezvous *rendezvous, int64_t offset, size_t bytes);

/* ---- the broker --------------------------------------------------------------------------------- */

enum status broker_open(int size, struct broker **out, struct diag *diag);
/* Either a socket for a member to come, which its process inherits; or a name to be found under,
   for members that were started by others (of the same user). Before broker_start. */
enum status broker_invite(struct broker *broker, int rank, struct diag *diag);
enum status broker_listen(struct broker *broker, const char *name, struct diag *diag);
/* The socket of an invited member, until broker_start; the broker closes it. */
int broker_invited(const struct broker *broker, int rank);
/* In a process that shall be a member and has inherited the broker: frees it, and returns the member's
   socket. */
int broker_inherit(struct broker *broker, int rank);
/* How much mail may wait here for members that do not read it; beyond that, the one with the most is given up.
   Before broker_start; 1 GiB if not set. */
void broker_limit_outboxes(struct broker *broker, size_t bytes);
/* Starts its thread: the last thing before the owner looks after its own affairs. */
enum status broker_start(struct broker *broker, struct diag *diag);
void broker_close(struct broker *broker); /* NULL is allowed */

void broker_wish(struct broker *broker, int wish);
const struct board *broker_board(const struct broker *broker);
/* Members that are gone or have left. */
int broker_ended(struct broker *broker);
bool broker_is_gone(struct broker *broker, int rank);
/* Its thread has ended before its time, so that nothing is heard of the members any more: errno; 0: it has not. */
int broker_failure(struct broker *broker);
/* Tells the ranks of the members that have not come, if there are any, as an error of that status. */
bool broker_tell_missing(struct broker *broker, enum status status, struct diag *diag);

struct report {
    struct report *next; /* the broker's */
    int from;
    size_t bytes;
    char data[];
};
/* The next mail that was sent TO_BROKER, freed with free(); NULL: none within the time. */
struct report *broker_receive(struct broker *broker, int64_t timeout_ns);

#endif
