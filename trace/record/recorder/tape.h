/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tape.h - what the calls of a thread are written to: its own chunks of the process's file, without a lock.
 *
 * A call is bracketed by tape_begin and tape_end, which writes its item. A call that a library makes in turn is no call of
 * the program: calls within a bracketed one write nothing. The file is made when the first item is written; a
 * process that forks gets one of its own, and so does a program that another one becomes. SWSIM_RECORD says where:
 * PATH.PID is the file, PATH.PID.2 that of the process' second program.
 */
#ifndef SWSIM_TAPE_H
#define SWSIM_TAPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "recording.h"

/* A call under way. */
struct tape_call {
    int64_t at_ns;
    uint64_t number; /* of device_times.h */
    bool outer;      /* it is the program's own, on a thread of the program */
};

/* `kind`: of its item, if it goes well. */
struct tape_call tape_begin(enum recording_kind kind);
/* The call went well: its item is written. */
void tape_end(const struct tape_call *call, enum recording_kind kind, size_t count,
              const uint64_t *words);
/* A query of the object words[1], whose answer was no: an item where it is news (recording.h). */
void tape_end_no(const struct tape_call *call, enum recording_kind kind, size_t count,
                 const uint64_t *words);
/* The call failed, or nobody needs to know. */
void tape_drop(const struct tape_call *call);

/* The same in two steps, for a call that may never return: what it is to be stands there from the beginning. */
struct recording_item *tape_open(const struct tape_call *call, enum recording_kind kind,
                                 size_t count, const uint64_t *words);
void tape_close(const struct tape_call *call, struct recording_item *item, bool good);

/* The text (swsim_text) of the line that the thread's calls come from; 0: it is not known. */
void tape_where(uint32_t text);

/* An item that is no call of CUDA's, but comes from a line. */
void tape_put_call(enum recording_kind kind, size_t count, const uint64_t *words);
/* An item that is no call. */
void tape_put(enum recording_kind kind, size_t count, const uint64_t *words);
/* The number of a new text; a text that has one. */
uint64_t tape_text(const char *text);
void tape_text_of(uint64_t number, const char *text);
/* A new number of this process. */
uint64_t tape_number(void);

/* True if this process is recorded. */
bool tape_on(void);
/* True if the thread is in a call of its program. */
bool tape_in_call(void);

/* This thread and the number of its items: what another one that learns of it comes after. 0: it has none. */
struct tape_place {
    uint32_t thread; /* from 1 on */
    uint64_t count;
    enum recording_way way; /* by which it was learned */
    uint32_t object;        /* of counted.h, by which this was the n-th time; 0: none */
};
struct tape_place tape_here(void);
/* All that this thread does from now on comes after that place. */
void tape_after(struct tape_place place);
/* In one word, without how it was learned. */
unsigned long long tape_pack(struct tape_place place);
struct tape_place tape_unpack(unsigned long long packed);

#define WORDS(...)                                                                                 \
    (sizeof((uint64_t[]){__VA_ARGS__}) / 8), (uint64_t[])                                          \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }
#define WORD_OF(pointer) ((uint64_t)(uintptr_t)(pointer))

#endif
