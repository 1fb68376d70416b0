/* variant.c - see variant.h. */
#include "gpu/variant.h"

#include "core/order.h"

/* On the host device a send always waits for its receive; whether NCCL buffers it, it decides. */
static bool drop_eager(struct variant *variant)
{
    struct plan *plan = &variant->plan;
    struct comm *comms = ARENA_ARRAY(&variant->arena, plan->comm_count, struct comm);
    bool eager = plan->programs.eager_messages > 0 || plan->programs.eager_bytes > 0;
    for (size_t c = 0; comms && c < plan->comm_count; c++) {
        comms[c] = plan->comms[c];
        eager = eager || comms[c].eager_messages > 0 || comms[c].eager_bytes > 0;
        comms[c].eager_messages = 0;
        comms[c].eager_bytes = 0;
    }
    if (comms)
        plan->comms = comms;
    plan->programs.eager_messages = 0;
    plan->programs.eager_bytes = 0;
    return eager;
}

/* What a real device decides for itself is not a rule of the machine here. */
static void relax(struct variant *variant, enum device_kind device, struct diag *diag)
{
    struct machine_spec *machine = &variant->plan.machine;
    if (machine->hw_queues > 0)
        diag_note(diag, "machine.hw_queues is left to the device");
    if (machine->launch_order_implicit)
        diag_note(diag, "machine.launch_order_implicit is left to the device");
    machine->hw_queues = 0;
    machine->launch_order_implicit = false;
    if (device == DEVICE_KIND_HOST && drop_eager(variant))
        diag_note(diag, "the host device has no eager messages: a send waits for its receive");
    if (device == DEVICE_KIND_CUDA && machine->sm_slots > 0)
        diag_note(diag, "machine.sm_slots is left to the device");
    if (device == DEVICE_KIND_CUDA)
        machine->sm_slots = 0;
}

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
    static const char *name[] = {"serial"};
    struct pipeline *pipeline = &variant->plan.pipeline;
    int *order = ARENA_ARRAY(&variant->arena, pipeline->task_count, int);
    pipeline->tasks = serial_tasks(&variant->arena, pipeline->tasks, pipeline->task_count);
    if (!order || !pipeline->tasks || !serial_overrides(&variant->arena, pipeline))
        return diag_no_memory(diag);
    enum status status = order_topological(plan, order, diag);
    if (status)
        return status;
    pipeline->order = (struct order_spec){ORDER_EXPLICIT, {order, pipeline->task_count}};
    pipeline->depth = pipeline->max_depth = 1;
    pipeline->num_slots_given = false;
    pipeline->retire = RETIRE_DEVICE;
    pipeline->slot_reset = SLOT_RESET_ADMIT;
    pipeline->elide_same_stream = false;
    variant->plan.machine.launch_queue = 0;
    variant->plan.streams = (struct names){.items = name, .count = 1};
    variant->plan.groups = variant->plan.streams;
    return STATUS_OK;
}

enum status variant_init(struct variant *variant, const struct plan *plan, bool serial,
                         enum device_kind device, struct diag *diag)
{
    variant->plan = *plan;
    arena_init(&variant->arena, 0);
    relax(variant, device, diag);
    if (variant->arena.failed)
        return diag_no_memory(diag);
    return serial ? make_serial(variant, plan, diag) : STATUS_OK;
}

void variant_fini(struct variant *variant)
{
    arena_fini(&variant->arena);
}
