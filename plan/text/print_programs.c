/* SPDX-License-Identifier: Apache-2.0 */
/* print_programs.c - rank programs in canonical text. */
#include "plan/schedules/actions.h"
#include "plan/schedules/generate.h"
#include "plan/keywords.h"
#include "print_internal.h"

enum { PROGRAM_WIDTH = 96, MAX_ACTION = 160 };

static bool has_idle(const struct rank_program *program)
{
    for (size_t i = 0; i < program->count; i++)
        if (program->actions[i].kind == ACTION_IDLE)
            return true;
    return false;
}

static void put_actions_as_list(struct printer *printer, const struct rank_program *program)
{
    char text[MAX_ACTION];
    open_list(printer, FLOW);
    for (size_t i = 0; i < program->count; i++) {
        action_format(&program->actions[i], text, sizeof text);
        put_word(printer, text);
    }
    close_list(printer);
}

static void put_actions_as_text(struct printer *printer, const struct rank_program *program)
{
    size_t cap = 1, length = 0;
    for (size_t i = 0; i < program->count; i++)
        cap += action_format(&program->actions[i], NULL, 0) + 1;
    char *text = arena_alloc(&printer->scratch, cap);
    for (size_t i = 0; text && i < program->count; i++) {
        if (i)
            text[length++] = ' ';
        length += action_format(&program->actions[i], text + length, cap - length);
    }
    put_scalar(printer, text, YAML_PLAIN_SCALAR_STYLE);
}

/* Without idle cells one text is shorter and reads better than a list. */
void put_program(struct printer *printer, const struct rank_program *program)
{
    if (program->count == 0 || has_idle(program))
        put_actions_as_list(printer, program);
    else
        put_actions_as_text(printer, program);
}

/* Elsewhere a line is a task's property or an operation, however long; only these are folded. */
static void print_rank_programs(struct printer *printer)
{
    const struct plan *plan = printer->plan;
    bool found = plan->programs.generate.given;
    const struct rank_program *ranks = found ? plan->programs.generate.found : plan->programs.ranks;
    if (!ranks || (found && !printer->kept && !plan->programs.generate.found_given))
        return;
    yaml_emitter_set_width(&printer->emitter, PROGRAM_WIDTH);
    put_word(printer, "programs");
    open_map(printer, BLOCK);
    for (int rank = 0; rank < plan->ranks; rank++) {
        put_number(printer, rank);
        put_program(printer, &ranks[rank]);
    }
    close_map(printer);
}

static void print_generate(struct printer *printer)
{
    const struct generate_spec *generate = &printer->plan->programs.generate;
    if (!generate->given)
        return;
    put_word(printer, "generate");
    open_map(printer, FLOW);
    put_pair_text(printer, "schedule", generate->schedule);
    put_pair_number(printer, "ranks", generate->ranks, 0);
    put_pair_number(printer, "chunks", generate->chunks, 0);
    put_pair_number(printer, "microbatches", generate->microbatches, 0);
    put_pair_number(printer, "group", generate->group, 0);
    put_pair_bool(printer, "moe_overlap", generate->moe_overlap, false);
    put_pair_keyword(printer, "megatron", keywords_megatron, generate->megatron, MEGATRON_NONE);
    if (generate->memory == GENERATE_FIT)
        put_pair_text(printer, "memory", "fit");
    else
        put_pair_number(printer, "memory", generate->memory, 0);
    close_map(printer);
}

static void print_p2p(struct printer *printer)
{
    const struct programs *programs = &printer->plan->programs;
    enum fifo_rule fifo;
    bool batch;
    generate_channel(&programs->generate, &fifo, &batch);
    if (programs->fifo == fifo && programs->batch == batch && !programs->metadata &&
        !programs->p2p_bytes && !programs->eager_messages && !programs->eager_bytes &&
        !has_links(&programs->links))
        return;
    put_word(printer, "p2p");
    open_map(printer, FLOW);
    put_pair_keyword(printer, "fifo", keywords_fifo, programs->fifo, fifo);
    put_pair_bool(printer, "batch", programs->batch, batch);
    put_pair_keyword(printer, "metadata", keywords_metadata, programs->metadata, METADATA_NONE);
    put_pair_bytes(printer, "bytes", programs->p2p_bytes, 0);
    put_pair_number(printer, "eager_messages", programs->eager_messages, 0);
    put_pair_bytes(printer, "eager_bytes", programs->eager_bytes, 0);
    put_links(printer, &programs->links);
    close_map(printer);
}

static void print_fsdp(struct printer *printer)
{
    const struct programs *programs = &printer->plan->programs;
    if (programs->fsdp_replicas <= 1 && !programs->fsdp_bytes)
        return;
    put_word(printer, "fsdp");
    open_map(printer, FLOW);
    if (programs->fsdp_replicas > 1)
        put_pair_number(printer, "replicas", programs->fsdp_replicas, 1);
    put_pair_bytes(printer, "bytes", programs->fsdp_bytes, 0);
    close_map(printer);
}

static void print_arithmetic(struct printer *printer)
{
    const struct arithmetic *arithmetic = &printer->plan->programs.arithmetic;
    if (!arithmetic->given)
        return;
    put_word(printer, "arithmetic");
    open_map(printer, FLOW);
    put_pair_number(printer, "width", arithmetic->width, ARITHMETIC_WIDTH);
    put_pair_number(printer, "batch", arithmetic->batch, ARITHMETIC_BATCH);
    put_pair_number(printer, "layers_per_stage", arithmetic->layers_per_stage, 0);
    put_pair_keyword(printer, "activation", keywords_layer_function, arithmetic->activation,
                     LAYER_FUNCTION_RELU);
    put_pair_keyword(printer, "loss", keywords_loss, arithmetic->loss, LOSS_MSE);
    put_pair_number(printer, "seed", arithmetic->seed, 0);
    close_map(printer);
}

static void print_times(struct printer *printer)
{
    const struct programs *programs = &printer->plan->programs;
    bool any = false;
    for (int kind = 0; kind < ACTION_IDLE; kind++)
        any |= programs->times[kind].given;
    if (!any)
        return;
    put_word(printer, "times");
    open_map(printer, FLOW);
    for (int kind = 0; kind < ACTION_IDLE; kind++)
        if (programs->times[kind].given)
            put_pair_time(printer, action_text((enum action_kind)kind),
                          programs->times[kind].time_ns, -1);
    close_map(printer);
}

void print_programs(struct printer *printer)
{
    print_machine(printer);
    print_p2p(printer);
    print_fsdp(printer);
    print_parallel(printer);
    print_arithmetic(printer);
    print_times(printer);
    print_stages(printer);
    put_pair_bool(printer, "fragment", printer->plan->programs.fragment, false);
    if (printer->plan->programs.copies > 1)
        put_pair_number(printer, "copies", printer->plan->programs.copies, 0);
    print_generate(printer);
    print_rank_programs(printer);
}
