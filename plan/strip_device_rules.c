/* SPDX-License-Identifier: Apache-2.0 */
/* strip_device_rules.c - see strip_device_rules.h. */
#include "strip_device_rules.h"

static void strip_device_rules_note(struct diag *diag, const char *text)
{
    if (diag)
        diag_note(diag, "%s", text);
}

/* Without eager messages a send always waits for its receive. *eager: there were some. */
static bool drop_eager(struct plan *plan, struct arena *arena, bool *eager)
{
    struct comm *comms = ARENA_ARRAY(arena, plan->comm_count + 1, struct comm);
    *eager = plan->programs.eager_messages > 0 || plan->programs.eager_bytes > 0;
    if (!comms)
        return false;
    for (size_t c = 0; c < plan->comm_count; c++) {
        comms[c] = plan->comms[c];
        *eager = *eager || comms[c].eager_messages > 0 || comms[c].eager_bytes > 0;
        comms[c].eager_messages = 0;
        comms[c].eager_bytes = 0;
    }
    plan->comms = comms;
    plan->programs.eager_messages = 0;
    plan->programs.eager_bytes = 0;
    return true;
}

bool plan_strip_device_rules(struct plan *plan, struct arena *arena, bool cuda, struct diag *diag)
{
    struct machine_spec *machine = &plan->machine;
    bool eager = false;
    if (machine->hw_queues > 0)
        strip_device_rules_note(diag, "machine.hw_queues is left to the device");
    if (machine->launch_order_implicit)
        strip_device_rules_note(diag, "machine.launch_order_implicit is left to the device");
    if (machine->copy_engines > 0)
        strip_device_rules_note(diag, "machine.copy_engines is left to the device");
    if (machine->cores > 0)
        strip_device_rules_note(
            diag, "machine.cores is for predictions: a run has the cores of its machine");
    machine->no_greed = true; /* as it is on the host device; a GPU has its own rule */
    machine->hw_queues = 0;
    machine->launch_order_implicit = false;
    if (cuda && machine->sm_slots > 0)
        strip_device_rules_note(diag, "machine.sm_slots is left to the device");
    if (cuda && machine->launch_latency_ns > 0)
        strip_device_rules_note(diag, "machine.launch_latency is left to the device");
    if (cuda && machine->first_use_blocks)
        strip_device_rules_note(diag, "machine.first_use_blocks is left to the device");
    if (cuda) {
        machine->first_use_blocks = false;
        machine->sm_slots = 0;
        machine->launch_latency_ns = 0;
    }
    if (!cuda && !drop_eager(plan, arena, &eager))
        return false;
    if (eager)
        strip_device_rules_note(
            diag, "the host device has no eager messages: a send waits for its receive");
    return true;
}
