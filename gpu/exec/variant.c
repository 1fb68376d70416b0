/* SPDX-License-Identifier: Apache-2.0 */
/* variant.c - see variant.h. */
#include "variant.h"

#include "plan/order.h"
#include "plan/strip_device_rules.h"

static struct task *serial_tasks(struct arena *arena, const struct task *tasks, size_t count)
{
    struct task *copy = ARENA_ARRAY(arena, count, struct task);
    for (size_t i = 0; copy && i < count; i++) {
        copy[i] = tasks[i];
        copy[i].stage = copy[i].stream = copy[i].group = 0;
    }
    return copy;
}

static bool serial_overrides(struct arena *arena, struct pipeline *pipeline)
{
    struct rank_override *copy = ARENA_ARRAY(arena, pipeline->override_count, struct rank_override);
    for (size_t i = 0; copy && i < pipeline->override_count; i++) {
        copy[i] = pipeline->overrides[i];
        copy[i].has_order = false;
        if (copy[i].tasks)
            copy[i].tasks = serial_tasks(arena, copy[i].tasks, pipeline->task_count);
        if (pipeline->overrides[i].tasks && !copy[i].tasks)
            return false;
    }
    pipeline->overrides = copy;
    return copy;
}

/* One task after another, on one stream a rank. */
static enum status make_serial(struct variant *variant, const struct plan *plan, struct diag *diag)
{
    struct pipeline *pipeline = &variant->plan.pipeline;
    const char **name = ARENA_ARRAY(&variant->arena, 1, const char *);
    int *order = ARENA_ARRAY(&variant->arena, pipeline->task_count, int);
    pipeline->tasks = serial_tasks(&variant->arena, pipeline->tasks, pipeline->task_count);
    if (!name || !order || !pipeline->tasks || !serial_overrides(&variant->arena, pipeline))
        return diag_no_memory(diag);
    enum status status = order_topological(plan, order, diag);
    if (status)
        return status;
    pipeline->order = (struct order_spec){.kind = ORDER_EXPLICIT,
                                          .tasks = {.items = order, .count = pipeline->task_count}};
    pipeline->depth = pipeline->max_depth = 1;
    pipeline->num_slots_given = false;
    pipeline->retire = RETIRE_DEVICE;
    pipeline->slot_reset = SLOT_RESET_ADMIT;
    pipeline->elide_same_stream = false;
    variant->plan.machine.launch_queue = 0;
    *name = "serial";
    variant->plan.streams = (struct names){.items = name, .count = 1};
    variant->plan.groups = variant->plan.streams;
    return STATUS_OK;
}

enum status variant_init(struct variant *variant, const struct plan *plan, bool serial,
                         enum device_kind device, struct diag *diag)
{
    variant->plan = *plan;
    arena_init(&variant->arena, 0);
    if (!plan_strip_device_rules(&variant->plan, &variant->arena, device == DEVICE_KIND_CUDA, diag))
        return diag_no_memory(diag);
    return serial ? make_serial(variant, plan, diag) : STATUS_OK;
}

void variant_for_graphs(struct variant *variant)
{
    if (variant->plan.form == FORM_PIPELINE && variant->plan.pipeline.retire == RETIRE_SUBMIT)
        variant->plan.pipeline.retire = RETIRE_DEVICE;
}

void variant_fini(struct variant *variant)
{
    arena_fini(&variant->arena);
}
