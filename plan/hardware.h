/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hardware.h - a GPU and what joins it with others, in the figures of its maker: by name, or from a file.
 *
 * A file is a mapping with the keys of text/keys_hardware.c; `base: h100-sxm` takes what it does not say from a GPU that has a
 * name. What is not given is not known, and who needs it says so (hardware_need).
 */
#ifndef SWSIM_HARDWARE_H
#define SWSIM_HARDWARE_H

#include "plan.h"

struct hardware {
    const char *name;
    struct amount memory;  /* bytes, as cudaMemGetInfo says */
    struct amount outside; /* of them those of CUDA's context and NCCL, of a rank of a job */
    struct amount bandwidth;
    struct amount flops[RATES]; /* a second, dense */
    struct amount nvlink;       /* of NCCL over all links of a GPU, in one direction */
    struct amount domain;       /* GPUs that NVLink joins */
    struct amount network;      /* of a GPU to those outside its domain, in one direction */
    struct amount copy;         /* to and from the host */
    struct amount launch;       /* of the host, for a call that pushes */
    struct amount kernel;       /* the shortest kernel */
    struct share reached;       /* of the rates and the bandwidth, by large kernels */
};

/* A name of the table, or a file that is not one of them. Texts are in the arena. */
enum status hardware_find(const char *name_or_file, struct arena *arena, struct hardware *out,
                          struct diag *diag);
/* The GPU of that name; NULL: there is none. */
const struct hardware *hardware_named(const char *name);
/* All names, with a blank between them. */
const char *hardware_names(struct arena *arena);
/* keys_hardware.c: what the file says. */
enum status hardware_read(const char *path, struct arena *arena, struct hardware *out,
                          struct diag *diag);
/* STATUS_INPUT, described, where the figure is not given. */
enum status hardware_need(const struct hardware *hardware, const struct amount *amount,
                          const char *key, struct diag *diag);

#endif
