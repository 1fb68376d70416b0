/* SPDX-License-Identifier: Apache-2.0 */
/* blocks.c - see blocks.h. */
#include "blocks.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/sort.h"

struct block_search {
    const struct plan *plan;
    struct blocks blocks;
    int *owner;    /* per flag, queue and barrier: 1 + the block that uses it */
    int *at_place; /* [ranks]: members of a communicator with that place in a block */
    char why[PLAN_MAX_NAME + 160]; /* of the smallest blocks that were tried */
};

static bool blocks_refuse(struct block_search *search, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static bool blocks_refuse(struct block_search *search, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    if (!search->why[0])
        vsnprintf(search->why, sizeof search->why, format, values);
    va_end(values);
    return false;
}

bool blocks_share(const struct blocks *blocks, const struct comm *comm)
{
    bool within = true;
    for (size_t i = 1; comm->members && i < comm->member_count && within; i++)
        within = blocks_of(blocks, comm->members[i]) == blocks_of(blocks, comm->members[0]);
    return !comm->members || !within || blocks->count == 1;
}

bool blocks_exchange(const struct blocks *blocks, const struct plan *plan, const struct host_op *op)
{
    unsigned char *met = blocks->met;
    const struct comm *comm = op->comm >= 0 ? &plan->comms[op->comm] : NULL;
    if (op->kind != OP_GROUP || !comm || !blocks_share(blocks, comm))
        return false;
    const size_t count = comm->members ? comm->member_count : (size_t)plan->ranks;
    size_t messages = 0; /* sends and receives, each peer once */
    bool all = op->part_count >= 2 * count;
    for (size_t i = 0; i < op->part_count && all; i++) {
        const struct p2p_part *part = &op->parts[i];
        const unsigned char bit = part->send ? 1 : 2;
        all = !part->is_collective && (part->comm < 0 || part->comm == op->comm) &&
              part->peer >= 0 && part->peer < plan->ranks;
        messages += all && !(met[part->peer] & bit);
        if (all)
            met[part->peer] |= bit;
    }
    memset(met, 0, op->part_count >= 2 * count ? (size_t)plan->ranks : 0);
    return all && messages == 2 * count;
}

/* Its members are as many as blocks with the places that it has in one, so all blocks have these. */
static bool blocks_take_comm(struct block_search *search, const struct comm *comm)
{
    const struct blocks *blocks = &search->blocks;
    int of_first = 0;
    if (!comm->members || !blocks_share(blocks, comm))
        return true;
    for (int place = 0; place < blocks->size; place++)
        search->at_place[place] = 0;
    for (size_t i = 0; i < comm->member_count; i++) {
        search->at_place[blocks_place(blocks, comm->members[i])]++;
        of_first += blocks_of(blocks, comm->members[i]) == 0;
    }
    for (int place = 0; place < blocks->size; place++)
        if (search->at_place[place] != 0 && search->at_place[place] != blocks->count)
            of_first = 0;
    return of_first > 0 || blocks_refuse(search, "communicator %s has %zu of its %d ranks",
                                         comm->name, comm->member_count, search->plan->ranks);
}

static bool blocks_take_rank(struct block_search *search, const struct host_op *op, int rank,
                             int other, const char *how)
{
    return blocks_of(&search->blocks, rank) == blocks_of(&search->blocks, other) ||
           blocks_refuse(search, "rank %d %s rank %d%s%s", rank, how, other, op->at ? " at " : "",
                         op->at ? op->at : "");
}

/* Whose memory it accesses. */
static bool blocks_take_list(struct block_search *search, const struct host_op *op, int rank,
                             const struct index_list *list)
{
    bool own = true;
    for (size_t i = 0; own && list->ranks && i < list->count; i++)
        own = list->ranks[i] == 0 || list->ranks[i] == 1 + rank ||
              blocks_refuse(search, "rank %d accesses memory of rank %d%s%s", max_int(rank, 0),
                            list->ranks[i] - 1, op->at ? " at " : "", op->at ? op->at : "");
    return own;
}

/* The number of its object among those that ranks can share, or -1. */
static int blocks_shared_object(const struct plan *plan, const struct host_op *op)
{
    switch (op_operand(op->kind)) {
    case OPERAND_FLAG: return op->object;
    case OPERAND_QUEUE: return (int)plan->flags.count + op->object;
    case OPERAND_BARRIER: return (int)(plan->flags.count + plan->queue_count) + op->object;
    default: return -1;
    }
}

static bool blocks_take_op(struct block_search *search, const struct host_op *op, int rank)
{
    const struct plan *plan = search->plan;
    const int shared = blocks_shared_object(plan, op),
              block = rank < 0 ? -1 : blocks_of(&search->blocks, rank);
    if (op->kind == OP_ABORT)
        return blocks_refuse(search, "rank %d aborts communicators", rank);
    if (rank < 0 && (shared >= 0 || (op_uses_comm(op->kind) && plan->comms[op->comm].members &&
                                     !blocks_share(&search->blocks, &plan->comms[op->comm]))))
        return blocks_refuse(search,
                             "a graph has a flag, or a communicator of a part of the ranks");
    if (!blocks_take_list(search, op, rank, host_op_reads(op)) ||
        !blocks_take_list(search, op, rank, host_op_writes(op)))
        return false;
    if (rank < 0)
        return true;
    if (shared >= 0 && search->owner[shared] && search->owner[shared] != 1 + block)
        return blocks_refuse(search, "%s is used by several of its ranks",
                             plan_object_name(plan, op));
    if (shared >= 0)
        search->owner[shared] = 1 + block;
    if ((op->device > 0 &&
         !blocks_take_rank(search, op, rank, op->device - 1, "drives the device of")) ||
        (op->object_rank > 0 &&
         !blocks_take_rank(search, op, rank, op->object_rank - 1, "uses an event of")))
        return false;
    int met = -1;
    const bool exchange = blocks_exchange(&search->blocks, plan, op);
    for (size_t i = 0; i < host_op_part_count(op); i++) {
        const struct p2p_part *part = &op->parts[i];
        const int comm = part->comm >= 0 ? part->comm : op->comm;
        if (!blocks_take_list(search, op, rank, &part->reads) ||
            !blocks_take_list(search, op, rank, &part->writes))
            return false;
        if (!part->is_collective) {
            if (!exchange && !blocks_take_rank(search, op, rank, part->peer,
                                               part->send ? "sends to" : "receives from"))
                return false;
        } else if (blocks_share(&search->blocks, &plan->comms[comm])) {
            if (met >= 0 && met != comm)
                return blocks_refuse(search, "a group calls communicators %s and %s",
                                     plan->comms[met].name, plan->comms[comm].name);
            met = comm;
        }
    }
    bool taken = true;
    for (size_t i = 0; taken && i < host_op_body_count(op); i++)
        taken = blocks_take_op(search, &op->body[i], rank);
    return taken;
}

static bool blocks_fit(struct block_search *search)
{
    const struct plan *plan = search->plan;
    const size_t shared = plan->flags.count + plan->queue_count + plan->barriers.count;
    bool fit = !plan->machine.share_device || blocks_refuse(search, "ranks share a device");
    for (size_t i = 0; i < shared; i++)
        search->owner[i] = 0;
    for (size_t c = 0; fit && c < plan->comm_count; c++)
        fit = blocks_take_comm(search, &plan->comms[c]);
    for (size_t t = 0; fit && t < plan->thread_count; t++)
        for (size_t i = 0; fit && i < plan->threads[t].op_count; i++)
            fit = blocks_take_op(search, &plan->threads[t].ops[i], plan->threads[t].rank);
    for (size_t g = 0; fit && g < plan->graph_count; g++)
        for (size_t i = 0; fit && i < plan->graphs[g].op_count; i++)
            fit = blocks_take_op(search, &plan->graphs[g].ops[i], -1);
    return fit;
}

enum status blocks_find(const struct plan *plan, int ranks, struct blocks *out, struct diag *diag)
{
    struct block_search search = {.plan = plan};
    bool fit = false;
    if (ranks < plan->ranks)
        return diag_error(diag, STATUS_USAGE, "%s: found --ranks=%d, expected at least its %d",
                          plan->file, ranks, plan->ranks);
    search.owner = calloc(plan->flags.count + plan->queue_count + plan->barriers.count + 1,
                          sizeof *search.owner);
    search.at_place = calloc((size_t)plan->ranks, sizeof *search.at_place);
    unsigned char *met = calloc((size_t)plan->ranks, 1);
    const bool memory = search.owner && search.at_place && met;
    for (int size = 1; memory && !fit && size <= max_int(1, plan->ranks / 2); size++)
        for (int strided = 0; !fit && strided < (size > 1 ? 2 : 1); strided++) {
            search.blocks = (struct blocks){size, plan->ranks / size, strided, met};
            fit = plan->ranks % size == 0 && blocks_fit(&search);
        }
    free(search.owner);
    free(search.at_place);
    *out = search.blocks;
    if (fit && ranks % out->size == 0)
        return STATUS_OK;
    free(met);
    *out = (struct blocks){0};
    if (!memory)
        return diag_no_memory(diag);
    if (!fit)
        return diag_error(diag, STATUS_INPUT, "%s: its ranks cannot stand for %d: %s", plan->file,
                          ranks, search.why);
    return diag_error(diag, STATUS_USAGE,
                      "%s: found --ranks=%d, expected a multiple of %d, the ranks of one of its "
                      "groups",
                      plan->file, ranks, search.blocks.size);
}

void blocks_fini(struct blocks *blocks)
{
    free(blocks->met);
    blocks->met = NULL;
}
