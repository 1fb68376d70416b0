/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hardware.c - GPUs by name. See hardware.h.
 *
 * Where figures are from. Rates, bandwidth of memory, network of a node: NVIDIA's data sheets of the V100 (2020), the A100 80GB
 * (2021), the H100, the H200 and the DGX B200 (2024); tensor cores without sparsity, which is half of what those of the H100
 * and later print. `memory`: totalGlobalMem of cudaGetDeviceProperties, as record --device=none has it; where there is none,
 * the data sheet's. `nvlink`: NCCL, src/graph/topo.h, SM70_NVLINK_BW 20.0, SM80 20.0, SM90 20.6, SM100 40.1 GB/s a link, times
 * 6, 12, 18, 18 links; tuning.cc bounds that of compute capability 8.0 by 235. `outside`: NVIDIA/nccl issue 1685, 8 H100:
 * 1.06 GB that are not PyTorch's, in front of the first all-to-all. `launch`, `kernel`: "Getting Started with CUDA Graphs",
 * NVIDIA's developer blog, 2019, on a V100: 3.8 us a kernel where launches overlap, a kernel of 2.9 us. `copy`: PCIe 3, 4 and 5
 * with 16 lanes have 16, 32 and 64 GB/s less their encoding; "How to Optimize Data Transfers", the same blog, reaches three
 * quarters of it.
 */
#include "hardware.h"

#include <string.h>

#include "base/nearest.h"

#define GIVEN(number)                                                                              \
    {                                                                                              \
        true, (int64_t)(number)                                                                    \
    }
#define HOST .launch = GIVEN(3800), .kernel = GIVEN(2900), .domain = GIVEN(8)
static const struct hardware known[] = {
    {.name = "v100-sxm2-16",
     .memory = GIVEN(16e9),
     .bandwidth = GIVEN(900e9),
     .flops = {[RATE_F64] = GIVEN(7.8e12),
               [RATE_F32] = GIVEN(15.7e12),
               [RATE_TF32] = GIVEN(15.7e12), /* it has none: f32 */
               [RATE_F16] = GIVEN(125e12)},
     .nvlink = GIVEN(120e9),
     .network = GIVEN(6.25e9), /* DGX-1: four ports of 100 Gbit/s for 8 */
     .copy = GIVEN(12e9),
     HOST},
    {.name = "a100-80",
     .memory = GIVEN(84987740160),
     .bandwidth = GIVEN(2039e9),
     .flops = {[RATE_F64] = GIVEN(19.5e12),
               [RATE_F32] = GIVEN(19.5e12),
               [RATE_TF32] = GIVEN(156e12),
               [RATE_F16] = GIVEN(312e12)},
     .nvlink = GIVEN(235e9),
     .network = GIVEN(25e9), /* DGX A100: eight ports of 200 Gbit/s for 8 */
     .copy = GIVEN(24e9),
     HOST},
    {.name = "h100-sxm",
     .memory = GIVEN(85017493504),
     .outside = GIVEN(1.06e9),
     .bandwidth = GIVEN(3350e9),
     .flops = {[RATE_F64] = GIVEN(67e12),
               [RATE_F32] = GIVEN(67e12),
               [RATE_TF32] = GIVEN(494.7e12),
               [RATE_F16] = GIVEN(989.4e12),
               [RATE_F8] = GIVEN(1978.9e12)},
     .nvlink = GIVEN(370.8e9),
     .network = GIVEN(50e9), /* DGX H100: eight ports of 400 Gbit/s for 8 */
     .copy = GIVEN(48e9),
     HOST},
    {.name = "h200-sxm",
     .memory = GIVEN(150121545728),
     .bandwidth = GIVEN(4800e9),
     .flops = {[RATE_F64] = GIVEN(67e12),
               [RATE_F32] = GIVEN(67e12),
               [RATE_TF32] = GIVEN(494.7e12),
               [RATE_F16] = GIVEN(989.4e12),
               [RATE_F8] = GIVEN(1978.9e12)},
     .nvlink = GIVEN(370.8e9),
     .network = GIVEN(50e9),
     .copy = GIVEN(48e9),
     HOST},
    {.name = "b200-sxm",
     .memory = GIVEN(180e9), /* DGX B200: 1,440 GB, 64 TB/s, 72 PFLOPS of f8 with 8 */
     .bandwidth = GIVEN(8000e9),
     .flops = {[RATE_F16] = GIVEN(2250e12), [RATE_F8] = GIVEN(4500e12)},
     .nvlink = GIVEN(721.8e9),
     .network = GIVEN(50e9),
     .copy = GIVEN(48e9),
     HOST},
};
enum { KNOWN = sizeof known / sizeof *known };

const struct hardware *hardware_named(const char *name)
{
    for (size_t i = 0; i < KNOWN; i++)
        if (strcmp(known[i].name, name) == 0)
            return &known[i];
    /* The memory is what matters of "h100-80". */
    return strcmp(name, "h100-80") == 0 ? hardware_named("h100-sxm") : NULL;
}

const char *hardware_names(struct arena *arena)
{
    const char *names = known[0].name;
    for (size_t i = 1; names && i < KNOWN; i++)
        names = arena_printf(arena, "%s %s", names, known[i].name);
    return names ? names : "";
}

enum status hardware_find(const char *name_or_file, struct arena *arena, struct hardware *out,
                          struct diag *diag)
{
    const struct hardware *named = hardware_named(name_or_file);
    struct nearest nearest = {.found = name_or_file};
    if (named) {
        *out = *named;
        return STATUS_OK;
    }
    if (strpbrk(name_or_file, "./"))
        return hardware_read(name_or_file, arena, out, diag);
    for (size_t i = 0; i < KNOWN; i++)
        nearest_try(&nearest, known[i].name);
    return diag_error(diag, STATUS_INPUT,
                      "found no hardware '%s'%s; expected one of %s, or a file, whose name has a "
                      "dot or a slash",
                      name_or_file, nearest_hint(&nearest, '\'', arena), hardware_names(arena));
}

enum status hardware_need(const struct hardware *hardware, const struct amount *amount,
                          const char *key, struct diag *diag)
{
    if (amount->given)
        return STATUS_OK;
    return diag_error(diag, STATUS_INPUT,
                      "hardware %s: its figure '%s' is not known; a file that has '%s: ...' "
                      "gives it",
                      hardware->name, key, key);
}
