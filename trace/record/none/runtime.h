/* SPDX-License-Identifier: Apache-2.0 */
/* runtime.h - how the functions of a face are written: those of CUDA's runtime, its driver, and other libraries. */
#ifndef SWSIM_NONE_RUNTIME_H
#define SWSIM_NONE_RUNTIME_H

#include "trace/record/recorder/recording.h"
#include "none.h"

/* runtime_major.c: 12 or 13 */
extern const int runtime_major;

/* The thread's last error, where there is one; the result. */
int runtime_end(int result);
const char *runtime_error(int error, bool name);

/* The libraries' functions have parameters that the device does not look at. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

/* A function that programs call, with the prototype that C wants. */
#define FACE(type, name, PARAMS)                                                                   \
    type name PARAMS;                                                                              \
    type name PARAMS

/* One that is an expression; RESULT: a result of runtime_end. */
#define VALUE(type, name, PARAMS, ...)                                                             \
    FACE(type, name, PARAMS)                                                                       \
    {                                                                                              \
        return __VA_ARGS__;                                                                        \
    }
#define RESULT(name, PARAMS, ...) VALUE(int, name, PARAMS, runtime_end(__VA_ARGS__))

/* ON(stream) is the stream that the caller means: in the variants for a default stream of each thread, without one, that of
   the thread. */
#define ON(stream) ((stream) ? (const void *)(stream) : none)
#define STREAM_FACE(name, PARAMS, ...)                                                             \
    FACE(int, name, PARAMS)                                                                        \
    {                                                                                              \
        const void *none = NULL;                                                                   \
        (void)none;                                                                                \
        return runtime_end(__VA_ARGS__);                                                           \
    }                                                                                              \
    FACE(int, name##_ptsz, PARAMS)                                                                 \
    {                                                                                              \
        const void *none = (const void *)2;                                                        \
        (void)none;                                                                                \
        return runtime_end(__VA_ARGS__);                                                           \
    }
#define DEFAULT_FACE(name, PARAMS, ...)                                                            \
    FACE(int, name, PARAMS)                                                                        \
    {                                                                                              \
        const void *none = NULL;                                                                   \
        return runtime_end(__VA_ARGS__);                                                           \
    }                                                                                              \
    FACE(int, name##_ptds, PARAMS)                                                                 \
    {                                                                                              \
        const void *none = (const void *)2;                                                        \
        return runtime_end(__VA_ARGS__);                                                           \
    }

/* Of products: by the bytes of a number; `tf32`: those of 4 lose some. */
static inline unsigned blas_rate(size_t bytes, bool tf32)
{
    return bytes >= 8   ? RECORDING_RATE_F64
           : bytes == 4 ? (tf32 ? RECORDING_RATE_TF32 : RECORDING_RATE_F32)
           : bytes == 2 ? RECORDING_RATE_F16
                        : RECORDING_RATE_F8;
}

#endif
