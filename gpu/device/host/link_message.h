/* SPDX-License-Identifier: Apache-2.0 */
/*
 * link_message.h - what processes of the host device say to each other: see host_link.c.
 *
 * Both are of one build and on machines of one kind, so a message is its bytes in memory.
 */
#ifndef SWSIM_LINK_MESSAGE_H
#define SWSIM_LINK_MESSAGE_H

#include <stdatomic.h>
#include <stdint.h>

enum word {
    WORD_ARRIVE,
    WORD_LEAVE,
    WORD_DELIVERED,
    WORD_TOOK,
    WORD_SEND,
    WORD_WITHDRAW,
    WORD_RECEIVED,
    WORD_UNFIT,
    WORD_ABORT,
    WORD_DESK,
    WORDS
};

/* Where the bytes of a reference are for all: bytes 0: nowhere. */
struct far_ref {
    int64_t buffer_offset, buffer_bytes, offset;
};

/* One mail: this, and two texts that end with 0 each: tag and label, or what failed. */
struct link_message {
    int32_t word, rank, peer;
    int32_t kind, root, number, status, tagged, labelled, staged, kept;
    int32_t world;              /* of the rendezvous': mail of an earlier one may come late */
    uint64_t channel, position; /* or the number of a send */
    int64_t bytes, iteration;
    int64_t
        claim; /* ARRIVE of the first member: where the channel's claim is in the common memory; 0: nowhere. DESK: where it
                      is */
    struct far_ref send, recv;
};

/* The desk of a member: host_desk.c. */
enum { DESK_SLOTS = 2, DESK_TEXT = 128, DESK_BYTES = 8 << 10 };

struct desk_head {
    int32_t kind, root, number, tagged, labelled;
    int64_t bytes, iteration;
    char tag[DESK_TEXT], label[DESK_TEXT]; /* a label is cut */
};

struct desk_slot {
    _Alignas(64) atomic_uint number; /* 1 + the position */
    struct desk_head head;
    _Alignas(64) char data[DESK_BYTES];
};

struct desk {
    struct desk_slot slots[DESK_SLOTS];
};

#endif
