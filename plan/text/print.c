/* SPDX-License-Identifier: Apache-2.0 */
/*
 * print.c - see print.h: a plan as a stream of libyaml events. The emitter decides about quoting
 * and line breaks.
 */
#include "print.h"

#include <stdlib.h>

#include <errno.h>
#include <string.h>

#include "plan/keywords.h"
#include "print_internal.h"
#include "base/system_words.h"
#include "base/text_stream.h"

enum { UNLIMITED = -1, INDENT = 2 };

/* ---- shared by all forms --------------------------------------------------------------------- */

void print_comms(struct printer *printer)
{
    const struct plan *plan = printer->plan;
    if (plan->comm_count == 0)
        return;
    put_word(printer, "comms");
    open_map(printer, FLOW);
    for (size_t i = 0; i < plan->comm_count; i++) {
        const struct comm *comm = &plan->comms[i];
        put_text(printer, comm->name);
        if (!comm->members) {
            put_word(printer, "all");
            continue;
        }
        open_list(printer, FLOW);
        for (size_t k = 0; k < comm->member_count; k++)
            put_number(printer, comm->members[k]);
        close_list(printer);
    }
    close_map(printer);
}

void print_queues(struct printer *printer)
{
    const struct plan *plan = printer->plan;
    if (plan->queue_count == 0)
        return;
    put_word(printer, "queues");
    open_map(printer, FLOW);
    for (size_t i = 0; i < plan->queue_count; i++) {
        put_text(printer, plan->queues[i].name);
        put_number(printer, plan->queues[i].capacity);
    }
    close_map(printer);
}

void print_streams(struct printer *printer)
{
    const struct plan *plan = printer->plan;
    if (plan->stream_spec_count == 0)
        return;
    put_word(printer, "streams");
    open_map(printer, FLOW);
    for (size_t i = 0; i < plan->stream_spec_count; i++) {
        const struct stream_spec *spec = &plan->stream_specs[i];
        put_text(printer, plan->streams.items[spec->stream]);
        open_map(printer, FLOW);
        put_pair_bool(printer, "legacy", spec->legacy, false);
        put_pair_bool(printer, "blocking", spec->blocking, true);
        put_pair_number(printer, "hw_queue", spec->hw_queue, -1);
        close_map(printer);
    }
    close_map(printer);
}

static bool any_declared(const struct plan *plan)
{
    for (size_t i = 0; i < plan->buffer_count; i++)
        if (plan->buffers[i].declared)
            return true;
    return false;
}

void print_buffers(struct printer *printer)
{
    const struct plan *plan = printer->plan;
    enum buffer_scope usual = plan->form == FORM_PIPELINE ? SCOPE_ITERATION : SCOPE_SHARED;
    if (!any_declared(plan))
        return;
    put_word(printer, "buffers");
    open_map(printer, BLOCK);
    for (size_t i = 0; i < plan->buffer_count; i++) {
        const struct buffer *buffer = &plan->buffers[i];
        if (!buffer->declared)
            continue;
        put_text(printer, buffer->name);
        open_map(printer, FLOW);
        put_pair_keyword(printer, "scope", keywords_scope, buffer->scope, usual);
        put_pair_bytes(printer, "bytes", buffer->bytes, 0);
        close_map(printer);
    }
    close_map(printer);
}

void print_inputs(struct printer *printer)
{
    const struct plan *plan = printer->plan;
    if (!plan->inputs_given)
        return;
    put_word(printer, "inputs");
    open_list(printer, FLOW);
    for (size_t i = 0; i < plan->buffer_count; i++)
        if (plan->buffers[i].input)
            put_text(printer, plan->buffers[i].name);
    close_list(printer);
}

void print_staleness(struct printer *printer)
{
    const struct plan *plan = printer->plan;
    bool any = false;
    for (size_t i = 0; i < plan->buffer_count; i++)
        any |= plan->buffers[i].staleness > 0;
    if (!any)
        return;
    put_word(printer, "staleness");
    open_map(printer, FLOW);
    for (size_t i = 0; i < plan->buffer_count; i++)
        if (plan->buffers[i].staleness > 0) {
            put_text(printer, plan->buffers[i].name);
            put_number(printer, plan->buffers[i].staleness);
        }
    close_map(printer);
}

static void print_eager(struct printer *printer)
{
    const struct plan *plan = printer->plan;
    bool messages = false, bytes = false;
    for (size_t i = 0; i < plan->comm_count; i++) {
        messages |= plan->comms[i].eager_messages != 0;
        bytes |= plan->comms[i].eager_bytes != 0;
    }
    if (messages) {
        put_word(printer, "eager_messages");
        open_map(printer, FLOW);
        for (size_t i = 0; i < plan->comm_count; i++) {
            if (plan->comms[i].eager_messages == 0)
                continue;
            put_text(printer, plan->comms[i].name);
            put_number(printer, plan->comms[i].eager_messages);
        }
        close_map(printer);
    }
    if (bytes) {
        put_word(printer, "eager_bytes");
        open_map(printer, FLOW);
        for (size_t i = 0; i < plan->comm_count; i++) {
            if (plan->comms[i].eager_bytes == 0)
                continue;
            put_text(printer, plan->comms[i].name);
            put_bytes(printer, plan->comms[i].eager_bytes);
        }
        close_map(printer);
    }
}

static bool has_no_shares(const struct plan *plan)
{
    static const struct shares nothing = {{0}, {0}, {0}};
    for (int kind = 0; kind < SHARED_WORK_COUNT; kind++)
        if (!same_shares(&plan->machine.shares[kind], &nothing))
            return false;
    return true;
}

/* The default shares of each kind of work. */
static void print_shares(struct printer *printer)
{
#define X(name, key) key,
    static const char *const keys[] = {SHARED_WORK_LIST(X)};
#undef X
    static const struct shares nothing = {{0}, {0}, {0}};
    const struct shares *shares = printer->plan->machine.shares;
    if (has_no_shares(printer->plan))
        return;
    put_word(printer, "shares");
    open_map(printer, FLOW);
    for (int kind = 0; kind < SHARED_WORK_COUNT; kind++)
        put_pair_shares(printer, keys[kind], &shares[kind], &nothing);
    close_map(printer);
}

static void print_share_device(struct printer *printer)
{
    const int *device = printer->plan->machine.share_device;
    if (!device)
        return;
    put_word(printer, "share_device");
    open_list(printer, FLOW);
    for (int first = 0; first < printer->plan->ranks; first++) {
        int count = 0;
        for (int rank = first; rank < printer->plan->ranks; rank++)
            count += device[rank] == first;
        if (count < 2)
            continue;
        open_list(printer, FLOW);
        for (int rank = first; rank < printer->plan->ranks; rank++)
            if (device[rank] == first)
                put_number(printer, rank);
        close_list(printer);
    }
    close_list(printer);
}

static bool is_usual_machine(const struct plan *plan)
{
    const struct machine_spec *machine = &plan->machine;
    for (size_t i = 0; i < plan->comm_count; i++)
        if (plan->comms[i].eager_messages || plan->comms[i].eager_bytes)
            return false;
    return !machine->sm_slots && !machine->hw_queues && !machine->launch_queue &&
           !machine->first_use_blocks && !machine->launch_order_implicit && !machine->lazy_load &&
           !machine->launch_lock && !machine->launch_blocking && !machine->alloc_may_sync &&
           !machine->copy_engines && !machine->cores && !machine_has_memory(machine) &&
           !machine->launch_latency_ns && has_no_shares(plan);
}

void print_machine(struct printer *printer)
{
    const struct machine_spec *machine = &printer->plan->machine;
    if (is_usual_machine(printer->plan))
        return;
    put_word(printer, "machine");
    open_map(printer, FLOW);
    put_pair_number(printer, "sm_slots", machine->sm_slots, 0);
    print_share_device(printer);
    put_pair_number(printer, "hw_queues", machine->hw_queues, 0);
    put_pair_number(printer, "launch_queue", machine->launch_queue, 0);
    put_pair_time(printer, "launch_latency", machine->launch_latency_ns, 0);
    put_pair_bool(printer, "first_use_blocks", machine->first_use_blocks, false);
    put_pair_bool(printer, "launch_order_implicit", machine->launch_order_implicit, false);
    put_pair_bool(printer, "lazy_load", machine->lazy_load, false);
    put_pair_bool(printer, "launch_lock", machine->launch_lock, false);
    put_pair_bool(printer, "launch_blocking", machine->launch_blocking, false);
    put_pair_bool(printer, "alloc_may_sync", machine->alloc_may_sync, false);
    put_pair_number(printer, "copy_engines", machine->copy_engines, 0);
    put_pair_number(printer, "cores", machine->cores, 0);
    print_shares(printer);
    if (machine_has_memory(machine))
        put_cost(printer, "memory", &machine->memory, false);
    print_eager(printer);
    close_map(printer);
}

static void print_on_failure(struct printer *printer)
{
    const struct plan *plan = printer->plan;
    put_pair_keyword(printer, "on_failure", keywords_on_failure, plan->on_failure,
                     plan->form == FORM_PIPELINE ? ON_FAILURE_ABORT : ON_FAILURE_NONE);
}

static void put_verdicts(struct printer *printer, const struct expectation *expect)
{
    open_map(printer, FLOW);
    for (int p = 0; p < PROPERTY_COUNT; p++) {
        if (!expect->named[p])
            continue;
        const char *violated = p == PROPERTY_RACE ? "order" : "violated";
        put_pair_word(printer, property_key((enum property)p),
                      expect->any_violation[p] ? violated : outcome_key(expect->outcome[p]));
    }
    close_map(printer);
}

static bool same_verdicts(const struct expectation *a, const struct expectation *b)
{
    if (a->given != b->given)
        return false;
    for (int p = 0; p < PROPERTY_COUNT; p++)
        if (a->named[p] != b->named[p] || a->outcome[p] != b->outcome[p] ||
            a->any_violation[p] != b->any_violation[p])
            return false;
    return true;
}

static void print_expect(struct printer *printer)
{
    const struct plan *plan = printer->plan;
    bool one = plan->form != FORM_PIPELINE || same_verdicts(&plan->expect, &plan->expect_dataflow);
    if (!plan->expect.given && (one || !plan->expect_dataflow.given))
        return;
    put_word(printer, "expect");
    if (one) {
        put_verdicts(printer, &plan->expect);
        return;
    }
    open_map(printer, FLOW);
    if (plan->expect.given) {
        put_word(printer, "clock");
        put_verdicts(printer, &plan->expect);
    }
    if (plan->expect_dataflow.given) {
        put_word(printer, "dataflow");
        put_verdicts(printer, &plan->expect_dataflow);
    }
    close_map(printer);
}

static void print_unrecorded(struct printer *printer)
{
    const struct plan *plan = printer->plan;
    if (plan->unrecorded_count == 0)
        return;
    put_word(printer, "unrecorded");
    open_map(printer, BLOCK);
    for (size_t i = 0; i < plan->unrecorded_count; i++) {
        put_text(printer, plan->unrecorded[i].what);
        put_text(printer, plan->unrecorded[i].why);
    }
    close_map(printer);
}

/* ---- the whole ------------------------------------------------------------------------------- */

static void print_plan(struct printer *printer)
{
    const struct plan *plan = printer->plan;
    open_map(printer, BLOCK);
    put_pair_word(printer, "swplan", "1");
    put_pair_text(printer, "name", plan->name);
    put_pair_text(printer, "about", plan->about);
    put_pair_text(printer, "source", plan->source);
    put_pair_share(printer, "unexplained", &plan->unexplained);
    print_unrecorded(printer);
    switch (plan->form) {
    case FORM_PIPELINE: print_pipeline(printer); break;
    case FORM_PROGRAMS: print_programs(printer); break;
    case FORM_THREADS: print_threads(printer); break;
    }
    print_on_failure(printer);
    print_expect(printer);
    close_map(printer);
}

static void print_document(struct printer *printer)
{
    yaml_event_t event;
    emit(printer, yaml_stream_start_event_initialize(&event, YAML_UTF8_ENCODING), &event);
    emit(printer, yaml_document_start_event_initialize(&event, NULL, NULL, NULL, 1), &event);
    print_plan(printer);
    emit(printer, yaml_document_end_event_initialize(&event, 1), &event);
    emit(printer, yaml_stream_end_event_initialize(&event), &event);
}

static int write_bytes(void *data, unsigned char *buffer, size_t size)
{
    struct printer *printer = data;
    errno = 0;
    if (fwrite(buffer, 1, size, printer->out) == size)
        return 1;
    printer->write_errno = errno ? errno : EIO;
    return 0;
}

static enum status print_to(const struct plan *plan, bool kept, FILE *out, struct diag *diag)
{
    struct printer printer = {.plan = plan, .out = out, .kept = kept};
    printer.default_stream = names_find(&plan->streams, PLAN_IMPLICIT_STREAM);
    printer.default_group = names_find(&plan->groups, PLAN_IMPLICIT_GROUP);
    if (!yaml_emitter_initialize(&printer.emitter))
        return diag_no_memory(diag);
    arena_init(&printer.scratch, 0);
    yaml_emitter_set_output(&printer.emitter, write_bytes, &printer);
    yaml_emitter_set_encoding(&printer.emitter, YAML_UTF8_ENCODING);
    yaml_emitter_set_unicode(&printer.emitter, 1);
    yaml_emitter_set_width(&printer.emitter, UNLIMITED);
    yaml_emitter_set_indent(&printer.emitter, INDENT);
    print_document(&printer);
    yaml_emitter_delete(&printer.emitter);
    arena_fini(&printer.scratch);
    if (!printer.failed && fflush(out) != 0) {
        printer.failed = true;
        printer.write_errno = errno;
    }
    if (!printer.failed)
        return STATUS_OK;
    return printer.write_errno ? diag_error(diag, STATUS_SYSTEM, "cannot write the plan: %s",
                                            system_words(printer.write_errno))
                               : diag_no_memory(diag);
}

enum status plan_print(const struct plan *plan, FILE *out, struct diag *diag)
{
    return print_to(plan, false, out, diag);
}

static enum status text_of(const struct plan *plan, bool kept, char **out, struct diag *diag)
{
    struct text_stream stream;
    *out = NULL;
    if (!text_open(&stream))
        return diag_no_memory(diag);
    enum status status = print_to(plan, kept, stream.out, diag);
    *out = text_close(&stream, status == STATUS_OK, NULL);
    return status == STATUS_OK && !*out ? diag_no_memory(diag) : status;
}

enum status plan_text(const struct plan *plan, char **out, struct diag *diag)
{
    return text_of(plan, false, out, diag);
}

static enum status text_in(const struct plan *plan, bool with_found, struct arena *arena,
                           const char **out, struct diag *diag)
{
    char *text;
    enum status status = text_of(plan, with_found, &text, diag);
    const char *kept = status == STATUS_OK ? arena_strdup(arena, text) : NULL;
    free(text);
    if (status == STATUS_OK && !kept)
        return diag_no_memory(diag);
    if (kept)
        *out = kept;
    return status;
}

enum status plan_text_in(const struct plan *plan, struct arena *arena, const char **out,
                         struct diag *diag)
{
    return text_in(plan, false, arena, out, diag);
}

enum status plan_kept_text_in(const struct plan *plan, struct arena *arena, const char **out,
                              struct diag *diag)
{
    return text_in(plan, true, arena, out, diag);
}
