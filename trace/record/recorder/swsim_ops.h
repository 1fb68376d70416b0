/* SPDX-License-Identifier: Apache-2.0 */
/*
 * swsim_ops.h - what a program may tell the recorder of its operations: what they access, and from which line they come.
 *
 * The functions are in libswrecord.so, which `swsim record` puts before the program's libraries: a program finds them with
 * dlsym(RTLD_DEFAULT, ...), or has none. They may be called by any thread and never fail.
 */
#ifndef SWSIM_OPS_H
#define SWSIM_OPS_H

#include <stddef.h>
#include <stdint.h>

/* `bytes` from an address on; SWSIM_OPS_WRITE in `bytes`: they are written, or read and written. */
#define SWSIM_OPS_WRITE (UINT64_C(1) << 63)
struct swsim_access {
    uint64_t address, bytes;
};

/* A number for a text, as "train.py:41"; 0: nothing is recorded. The same text has the same number. The name of an operation may
   have the shapes of its tensors behind a tab, as "aten.mm\tf32[64x256] f32[256x16]": by them predict finds measured times. */
uint32_t swsim_text(const char *text);

/* The thread's calls come from there, until it says something else; 0: that is not known. */
void swsim_where(uint32_t text);

/* An operation on a stream (a handle of the runtime's) with these accesses. */
void swsim_op(const void *stream, uint32_t what, const struct swsim_access *accesses, size_t count);

/* The kernels that the thread launches until swsim_op_end are one operation, which accesses no more than this. What is
   known only when it has been launched comes with its end. Brackets may be nested; the outermost counts. swsim_op_end
   returns how many kernels there were. */
void swsim_op_begin(uint32_t what, const struct swsim_access *accesses, size_t count);
size_t swsim_op_end(const struct swsim_access *accesses, size_t count);

/* The thread's operation under way, else its next one, computes so much, with such numbers (enum recording_rate of
   recording.h); several calls add up. */
void swsim_work(uint64_t operations, unsigned rate);
/* An optimizer's step is over. */
void swsim_step(void);

/* The tensors that these addresses are in are that (enum recording_tensor of recording.h). */
void swsim_tensors(unsigned what, const uint64_t *addresses, size_t count);

#endif
