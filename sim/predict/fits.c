/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fits.c - see fits.h.
 *
 * Tensors at their peak must fit, whatever the allocator does. What it has of the device may be more: blocks that it keeps for
 * later, of which it gives back what is whole where the device has no more. Between the two the answer is "only just".
 */
#include "fits.h"

#include <string.h>

#include "base/sort.h"
#include "base/units.h"
#include "base/list_key.h"

enum fits { FITS, FITS_ONLY_JUST, FITS_NOT };

static int64_t fits_room(const struct hardware *hardware)
{
    return hardware->memory.value - (hardware->outside.given ? hardware->outside.value : 0);
}

static enum fits fits_rank(const struct tensor_memory *memory, const struct hardware *hardware)
{
    const int64_t others = memory->device - memory->reserved; /* that no tensor is in */
    if (memory->refused > 0 || memory->peak + max_i64(others, 0) > fits_room(hardware))
        return FITS_NOT;
    return memory->device > fits_room(hardware) ? FITS_ONLY_JUST : FITS;
}

/* Ranks that are alike are one line. */
static bool fits_same(const struct tensor_memory *a, const struct tensor_memory *b)
{
    return a->peak == b->peak && a->reserved == b->reserved && a->device == b->device &&
           a->refused == b->refused && memcmp(a->by_use, b->by_use, sizeof a->by_use) == 0 &&
           strcmp(a->at ? a->at : "", b->at ? b->at : "") == 0;
}

static void fits_show_uses(const struct tensor_memory *memory, FILE *out)
{
    static const char *const keys[] = {TENSORS_FOR_LIST(LIST_KEY)};
    char bytes[UNITS_TEXT];
    for (int i = 0; i < TENSORS_FOR; i++) {
        if (memory->by_use[i] == 0)
            continue;
        units_show_bytes((double)memory->by_use[i], bytes);
        fprintf(out, "  %10s  %4.1f%%  %s\n", bytes,
                100.0 * (double)memory->by_use[i] / (double)memory->peak,
                i == TENSORS_HELD
                    ? "held: freed by the program, but other streams may still use it "
                      "(record_stream)"
                    : keys[i]);
    }
}

static void fits_show_ranks(const struct tensor_memory *first, size_t count,
                            const struct hardware *hardware, FILE *out)
{
    static const char *const words[] = {"fits on", "fits only just on", "does not fit on"};
    char peak[UNITS_TEXT], device[UNITS_TEXT], refused[UNITS_TEXT], ranks[64];
    units_show_bytes((double)first->peak, peak);
    units_show_bytes((double)first->device, device);
    units_show_bytes((double)first->refused, refused);
    snprintf(ranks, sizeof ranks, count > 1 ? "ranks %d..%d" : "rank %d", first->rank,
             first[count - 1].rank);
    fprintf(out,
            "memory  %s: %s %s; at the peak tensors take %s, and %s of the device is allocated\n",
            ranks,
            first->refused > 0 ? "did not fit on the recorded device, so it will hardly fit on"
                               : words[fits_rank(first, hardware)],
            hardware->name, peak, device);
    if (first->refused > 0)
        fprintf(out, "  an allocation of %s failed, at %s\n", refused,
                first->at ? first->at : "an unknown line");
    else if (first->at)
        fprintf(out, "  the peak is reached at %s\n", first->at);
    fits_show_uses(first, out);
}

/* What no recording has. */
static void fits_show_outside(const struct hardware *hardware, FILE *out)
{
    char memory[UNITS_TEXT], outside[UNITS_TEXT];
    units_show_bytes((double)hardware->memory.value, memory);
    units_show_bytes((double)hardware->outside.value, outside);
    if (hardware->outside.given)
        fprintf(out, "  of the %s of %s, CUDA's context and NCCL are assumed to take %s\n", memory,
                hardware->name, outside);
    else
        fprintf(out,
                "  of the %s of %s, CUDA's context and NCCL take a part that is not known and not "
                "counted (key outside of a hardware file)\n",
                memory, hardware->name);
}

enum status fits_report(const struct plan *plan, const struct hardware *hardware, FILE *out,
                        struct diag *diag)
{
    enum status status = plan->memory_count > 0
                             ? hardware_need(hardware, &hardware->memory, "memory", diag)
                             : STATUS_OK;
    if (status != STATUS_OK)
        return status;
    for (size_t i = 0, count; i < plan->memory_count; i += count) {
        count = 1;
        while (i + count < plan->memory_count &&
               fits_same(&plan->memory[i], &plan->memory[i + count]))
            count++;
        if (out)
            fits_show_ranks(&plan->memory[i], count, hardware, out);
        if (fits_rank(&plan->memory[i], hardware) == FITS_NOT)
            status = STATUS_VIOLATED;
    }
    if (out && plan->memory_count > 0)
        fits_show_outside(hardware, out);
    return status;
}
