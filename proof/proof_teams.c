/* SPDX-License-Identifier: Apache-2.0 */
/*
 * proof_teams.c - failure safety by the plan alone: its certificate has no numbers.
 *
 * A team is the ranks that communicators connect. The conditions are those of doc/checker.md, "Failure safety": every living rank
 * of a team is stopped after a fault, and teams share nothing.
 */
#include "proof.h"

#include <stdlib.h>

struct teams {
    const struct program *p;
    int *parent;                 /* of a rank: one of its team; itself: it stands for the team */
    int *flag_team, *queue_team; /* the team that uses it, or -1 */
    int count;
};

static int team_of(const struct teams *t, int rank)
{
    while (t->parent[rank] != rank)
        rank = t->parent[rank] = t->parent[t->parent[rank]];
    return rank;
}

static void connect_ranks(struct teams *t)
{
    const struct program *p = t->p;
    t->count = p->ranks;
    for (int rank = 0; rank < p->ranks; rank++)
        t->parent[rank] = rank;
    for (int c = 0; c < p->comm_count; c++)
        for (int m = 1; m < p->comms[c].count; m++) {
            int a = team_of(t, p->comms[c].members[0]), b = team_of(t, p->comms[c].members[m]);
            t->parent[a] = b;
            t->count -= a != b;
        }
}

/* The object is used by no other team than this one. */
static bool is_own(int *user, int team)
{
    if (*user < 0)
        *user = team;
    return *user == team;
}

static bool op_is_good(struct teams *t, const struct op *op, int team)
{
    const int slots = t->p->plan->machine.sm_slots;
    if (slots > 0 && op->sm > slots)
        return false;
    if (op_operand(op->kind) == OPERAND_FLAG)
        return is_own(&t->flag_team[op->object], team);
    return op_operand(op->kind) != OPERAND_QUEUE || is_own(&t->queue_team[op->object], team);
}

static bool ops_are_good(struct teams *t)
{
    const struct program *p = t->p;
    for (size_t b = 0; b < p->body_count; b++)
        for (int i = 0; i < p->bodies[b].count; i++)
            if (!op_is_good(t, &p->ops[p->bodies[b].first + i],
                            team_of(t, p->threads[p->bodies[b].thread].rank)))
                return false;
    return true;
}

static bool judge(struct teams *t, struct certificate *c)
{
    const unsigned life = 1u << PROPERTY_DEADLOCK | 1u << PROPERTY_DRAIN | 1u << PROPERTY_MISMATCH;
    enum on_failure told = t->p->plan->on_failure;
    connect_ranks(t);
    if (told == ON_FAILURE_NONE || t->p->plan->machine.share_device || t->p->is_crossed)
        return certificate_refuse(c,
                                  "ranks of this plan are not told of a failure, or share devices");
    if (told != ON_FAILURE_ABORT && t->count != t->p->ranks)
        return certificate_refuse(c, "a failure is not told to the other ranks of a communicator");
    if (t->count > 1 && (c->before & life) != life)
        return certificate_refuse(c, "no certificate in front of it proves that nothing hangs");
    return ops_are_good(t) ||
           certificate_refuse(c, "ranks that no communicator connects share flags or queues, or "
                                 "work needs more residency slots than there are");
}

unsigned proof_teams_covers(const struct program *p)
{
    (void)p;
    return 1u << PROPERTY_FAULTS;
}

static int *no_users(int count)
{
    int *users = malloc(((size_t)count + 1) * sizeof *users);
    for (int i = 0; users && i < count; i++)
        users[i] = -1;
    return users;
}

bool proof_teams(const struct program *p, struct certificate *c, unsigned proves, bool *no_memory)
{
    struct teams t = {.p = p,
                      .parent = no_users(p->ranks),
                      .flag_team = no_users(p->flag_families),
                      .queue_team = no_users(p->queue_count)};
    (void)proves;
    *no_memory = !t.parent || !t.flag_team || !t.queue_team;
    bool good = !*no_memory && judge(&t, c);
    free(t.parent);
    free(t.flag_team);
    free(t.queue_team);
    return good;
}
