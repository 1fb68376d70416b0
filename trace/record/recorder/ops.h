/* SPDX-License-Identifier: Apache-2.0 */
/* ops.h - operations that the program itself tells of (swsim_ops.h), as the other parts of the recorder meet them. */
#ifndef SWSIM_RECORDER_OPS_H
#define SWSIM_RECORDER_OPS_H

#include <stdbool.h>
#include <stdint.h>

#include "recording.h"

/* A kernel is launched to this stream. True: it belongs to an operation that the program tells of, and is no item. */
bool ops_take_launch(uint64_t stream);
/* A call of the program is about to begin: what was launched so far comes before it. */
void ops_before(enum recording_kind kind);
/* The number by which items mean a text of swsim_text; what is not meant by any is not written. */
uint64_t ops_word(uint32_t text);
/* In a new process: its one thread is in no bracket. */
void ops_begin_child(void);

#endif
