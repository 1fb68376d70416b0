/* SPDX-License-Identifier: Apache-2.0 */
/* keys_hardware.c - the keys of a file that describes hardware. See plan/hardware.h. */
#include "text_internal.h"

#include <stdlib.h>

#include "plan/hardware.h"

#define HARDWARE_FIELD(name, kind, about, ...)                                                     \
    FIELD(#name, struct hardware, name, kind, about, ##__VA_ARGS__)
static const struct field hardware_fields[] = {
    FIELD("base", struct hardware, name, name,
          "The hardware whose figures hold where none is given here."),
    FIELD("name", struct hardware, name, name, "The name in reports."),
    HARDWARE_FIELD(memory, given_bytes, "The memory of the device."),
    HARDWARE_FIELD(outside, given_bytes,
                   "The part of the memory that CUDA's context and NCCL take."),
    HARDWARE_FIELD(bandwidth, given_rate, "The bandwidth of the memory."),
#define X(rate, key)                                                                               \
    FIELD(key, struct hardware, flops[RATE_##rate], given_flops,                                   \
          "Operations a second with numbers of this type."),
    RATE_LIST(X)
#undef X
        HARDWARE_FIELD(nvlink, given_rate, "The bandwidth of NCCL over NVLink, in one direction."),
    HARDWARE_FIELD(domain, given_int, "The number of GPUs that NVLink joins.", .min = 1,
                   .max = PLAN_MAX_RANKS),
    HARDWARE_FIELD(network, given_rate,
                   "The bandwidth from a GPU to those that NVLink does not join with it."),
    HARDWARE_FIELD(copy, given_rate, "The bandwidth of copies to and from the host."),
    HARDWARE_FIELD(launch, given_time, "The time of the host for a call that pushes work."),
    HARDWARE_FIELD(kernel, given_time, "The time of the shortest kernel."),
    HARDWARE_FIELD(reached, share, "The share of rates and bandwidth that large kernels reach."),
};
static const struct keys hardware_keys =
    KEYS(hardware_fields, "a description of hardware", "{base: h100-sxm, bandwidth: 3TB/s}");

/* What `base` names, which the other keys change. */
static bool parse_base(struct parser *parser, struct hardware *out)
{
    const struct node *base =
        parser->root->kind == NODE_MAP ? node_find(parser->root, "base") : NULL;
    const struct hardware *named =
        base && base->kind == NODE_SCALAR ? hardware_named(base->text) : NULL;
    if (base && !named)
        return parse_error(parser, base->mark, "found %s, expected one of %s",
                           parse_describe(parser, base), hardware_names(&parser->scratch));
    *out = named ? *named : (struct hardware){0};
    return true;
}

enum status hardware_read(const char *path, struct arena *arena, struct hardware *out,
                          struct diag *diag)
{
    struct plan plan; /* has the texts meanwhile */
    struct parser parser;
    char *text = NULL;
    size_t length = 0;
    enum status status = parse_text_of(path, &text, &length, diag);
    if (status != STATUS_OK)
        return status;
    if (parser_start(&parser, &plan, path, text, length, diag)) {
        parser.root = parse_yaml(&parser, false);
        if (parser.root && parse_base(&parser, out) &&
            keys_parse(&parser, parser.root, &hardware_keys, out)) {
            const struct node *name = node_find(parser.root, "name");
            out->name = arena_strdup(arena, name ? name->text : path);
        }
    }
    free(text);
    status = parser_finish(&parser);
    if (status != STATUS_OK)
        return status;
    plan_fini(&plan);
    return out->name ? STATUS_OK : diag_no_memory(diag);
}
