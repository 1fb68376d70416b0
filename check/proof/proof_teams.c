/* SPDX-License-Identifier: Apache-2.0 */
/*
 * proof_teams.c - failure safety by the plan alone: its certificate has no numbers.
 *
 * A team is the ranks that communicators connect (program->team). The conditions are those of doc/checker.md, "Failure
 * safety": every living rank of a team is stopped after a fault, and teams share nothing.
 */
#include "proof.h"

/* The flag or queue that an operation uses, flags first; -1: neither. */
static int shared_object(const struct program *p, const struct op *op)
{
    switch (op_operand(op->kind)) {
    case OPERAND_FLAG: return op->object;
    case OPERAND_QUEUE: return p->flag_families + op->object;
    default: return -1;
    }
}

/* True if one team alone uses each flag and queue, and all work fits. `user`: zeros, for a team + 1 each. */
static bool ops_are_good(const struct program *p, int *user)
{
    const int slots = p->plan->machine.sm_slots;
    for (size_t b = 0; b < p->body_count; b++)
        for (int i = 0; i < p->bodies[b].count; i++) {
            const struct op *op = &p->ops[p->bodies[b].first + i];
            int team = p->team[p->threads[p->bodies[b].thread].rank];
            int object = shared_object(p, op);
            if ((slots > 0 && op->sm > slots) || op_stream_waits(op->kind) ||
                op->kind == OP_ABORT || op_has_branches(op))
                return false;
            if (object >= 0 && user[object] && user[object] != team + 1)
                return false;
            if (object >= 0)
                user[object] = team + 1;
        }
    return true;
}

static bool proof_teams_judge(const struct program *p, struct certificate *c, int *user)
{
    const unsigned life = 1u << PROPERTY_DEADLOCK | 1u << PROPERTY_DRAIN | 1u << PROPERTY_MISMATCH;
    enum on_failure told = p->plan->on_failure;
    int teams = 0;
    for (int rank = 0; rank < p->ranks; rank++)
        teams += p->team[rank] == rank;
    if (told == ON_FAILURE_NONE || p->plan->machine.share_device || p->is_crossed)
        return certificate_refuse(c,
                                  "ranks of this plan are not told of a failure, or share devices");
    if (told == ON_FAILURE_WAKE && teams != p->ranks)
        return certificate_refuse(c, "a failure is not told to the other ranks of a communicator");
    if (told == ON_FAILURE_ABORT && !p->abort_is_plain)
        return certificate_refuse(c, "an abort of a rank waits for another communicator of it, or "
                                     "a communicator without operations is not watched");
    if (teams > 1 && (c->before & life) != life)
        return certificate_refuse(c, "no certificate in front of it proves that nothing hangs");
    return ops_are_good(p, user) ||
           certificate_refuse(c, "ranks that no communicator connects share flags or queues, "
                                 "work needs more residency slots than there are, or a stream "
                                 "waits for a flag");
}

unsigned proof_teams_covers(const struct program *p)
{
    (void)p;
    return 1u << PROPERTY_FAULTS;
}

bool proof_teams(const struct program *p, struct certificate *c, unsigned proves)
{
    (void)proves;
    int *user = ARENA_ARRAY(&c->arena, (size_t)p->flag_families + (size_t)p->queue_count + 1, int);
    return user && proof_teams_judge(p, c, user);
}
