/* SPDX-License-Identifier: Apache-2.0 */
/* models.h - the GPUs that --device=none can be, for the device and for the command that takes their names. */
#ifndef SWSIM_NONE_MODELS_H
#define SWSIM_NONE_MODELS_H

/*    key, name, major, minor, multiprocessors, bytes, bytes of L2, clocks of multiprocessors and memory in kHz, bits of the
      memory's bus, shared memory of a multiprocessor, of a block that asks for more, bytes of L2 that can be kept */
#define NONE_MODEL_LIST(X)                                                                         \
    X("h100", "NVIDIA H100 80GB HBM3", 9, 0, 132, 85017493504, 52428800, 1980000, 2619000, 5120,   \
      233472, 232448, 32768000)                                                                    \
    X("h200", "NVIDIA H200", 9, 0, 132, 150121545728, 62914560, 1980000, 3201000, 6144, 233472,    \
      232448, 39321600)                                                                            \
    X("a100", "NVIDIA A100-SXM4-80GB", 8, 0, 108, 84987740160, 41943040, 1410000, 1593000, 5120,   \
      167936, 166912, 26214400)

enum { NONE_MOST_DEVICES = 64, NONE_DEVICES = 8 };

/* Environment of a program that runs on the device. */
#define NONE_VARIABLE           "SWSIM_NONE"           /* MODEL:DEVICES */
#define NONE_VARIABLE_MEMORY    "SWSIM_NONE_MEMORY"    /* bytes of a device, if not the model's */
#define NONE_VARIABLE_LIBRARIES "SWSIM_NONE_LIBRARIES" /* the folder with the libraries */

#endif
