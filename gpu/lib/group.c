/* SPDX-License-Identifier: Apache-2.0 */
/* group.c - see swpipe_group.h: joining and leaving. */
#include "group.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "gpu/net/address.h"
#include "gpu/device/device_impl.h"
#include "swpipe_impl.h"

#define JOIN_NS INT64_C(60000000000)
enum { LEAVE_TICK_NS = 1000000 };

/* ---- join ------------------------------------------------------------------------------------ */

static enum status check(const struct swpipe_join *join, struct diag *diag)
{
    if (join->size < 1 || join->size > RENDEZVOUS_MAX_MEMBERS)
        return diag_error(diag, STATUS_USAGE, "found a group of %d processes, expected 1 to %d",
                          join->size, RENDEZVOUS_MAX_MEMBERS);
    if (join->rank < 0 || join->rank >= join->size)
        return diag_error(diag, STATUS_USAGE, "found rank %d of %d, expected 0 to %d", join->rank,
                          join->size, join->size - 1);
    if (join->timeout_ns < -1)
        return diag_error(diag, STATUS_USAGE, "timeout_ns is %lld: expected at least -1",
                          (long long)join->timeout_ns);
    if (!join->address == !join->broadcast)
        return diag_error(diag, STATUS_USAGE,
                          "a join needs either an address or a broadcast to find the others");
    if (join->broadcast && join->password)
        return diag_error(diag, STATUS_USAGE,
                          "a join by broadcast has no password: it makes a secret of its own");
    return STATUS_OK;
}

int64_t group_deadline(const struct swpipe_group *group)
{
    return device_deadline(device_clock_ns(), group->patience_ns);
}

/* Rank 0 listens before anybody is told where. */
static enum status lead(struct swpipe_group *group, const struct meeting_place *known,
                        struct diag *diag)
{
    enum status status = known ? listener_open_at(known, &group->listener, diag)
                               : listener_open("swpipe", NULL, &group->listener, diag);
    if (!status)
        status = broker_open(group->size, &group->broker, diag);
    if (!status)
        status = broker_open_listener(group->broker, group->listener, 0, diag);
    return status ? status : broker_start(group->broker, diag);
}

/* The place goes from rank 0 to all; one without addresses: rank 0 could not open it. */
static enum status spread(struct swpipe_group *group, const struct swpipe_join *join,
                          struct meeting_place *place, struct diag *diag)
{
    enum status status = group->rank == 0 ? lead(group, NULL, diag) : STATUS_OK;
    if (group->rank == 0 && !status)
        *place = *listener_place(group->listener);
    if (join->broadcast(join->arg, place, sizeof *place))
        return diag_error(diag, STATUS_SYSTEM, "rank %d: the broadcast failed", group->rank);
    if (!status && place->address_count == 0)
        status = diag_error(diag, STATUS_VIOLATED, "rank %d: rank 0 could not join", group->rank);
    return status;
}

/* Rank 0, to which all others come, can say which did not. */
static enum status reach(struct swpipe_group *group, const struct meeting_place *place,
                         int64_t deadline_ns, struct diag *diag)
{
    struct diag own;
    diag_init(&own);
    enum status status =
        rendezvous_reach(place, 0, group->rank, deadline_ns, &group->rendezvous, &own);
    bool told =
        status == STATUS_LIMIT && group->broker && broker_tell_missing(group->broker, status, diag);
    if (!told && status == STATUS_LIMIT && !group->broker && own.count)
        diag_error(diag, status, "%s; ranks meet that have the same address, password and size",
                   own.messages[0].text);
    else if (!told)
        diag_take(diag, &own);
    diag_fini(&own);
    return status;
}

/* Rank 0 says how many there are. */
static enum status agree_on_size(struct swpipe_group *group, struct diag *diag)
{
    const int size = rendezvous_size(group->rendezvous);
    if (size == group->size)
        return STATUS_OK;
    rendezvous_leave(group->rendezvous);
    group->rendezvous = NULL;
    return diag_error(diag, STATUS_USAGE, "rank %d joins a group of %d, rank 0 has one of %d",
                      group->rank, group->size, size);
}

static enum status come_together(struct swpipe_group *group, const struct swpipe_join *join,
                                 struct diag *diag)
{
    struct meeting_place place = {0};
    enum status status = check(join, diag);
    if (status)
        return status;
    group->rank = join->rank;
    group->size = join->size;
    group->patience_ns = join->timeout_ns == -1 ? RENDEZVOUS_FOREVER
                         : join->timeout_ns     ? join->timeout_ns
                                                : JOIN_NS;
    if (join->broadcast) {
        status = spread(group, join, &place, diag);
    } else {
        status = address_place(join->address, join->password, &place, diag);
        if (!status && group->rank == 0)
            status = lead(group, &place, diag);
    }
    if (status)
        return status;
    status = reach(group, &place, group_deadline(group), diag);
    return status ? status : agree_on_size(group, diag);
}

/* The first error of `diag`, if there is one, is the group's. */
static int finish(struct swpipe_group *group, enum status status, struct diag *diag)
{
    if (status)
        snprintf(group->error, sizeof group->error, "%s",
                 diag->count ? diag->messages[0].text : "out of memory");
    diag_fini(diag);
    return (int)status_for_caller(status);
}

int swpipe_join(const struct swpipe_join *join, struct swpipe_group **out)
{
    struct swpipe_group *group = out ? calloc(1, sizeof *group) : NULL;
    struct diag diag;
    if (!out)
        return SWPIPE_USAGE;
    *out = group;
    if (!group)
        return SWPIPE_SYSTEM;
    diag_init(&diag);
    return finish(group,
                  join ? come_together(group, join, &diag)
                       : diag_error(&diag, STATUS_USAGE, "the join has no rank and no address"),
                  &diag);
}

const char *swpipe_group_error(const struct swpipe_group *group)
{
    return group ? group->error : "out of memory";
}

int swpipe_group_rank(const struct swpipe_group *group)
{
    return group ? group->rank : -1;
}

int swpipe_group_size(const struct swpipe_group *group)
{
    return group ? group->size : -1;
}

int swpipe_group_wait(struct swpipe_group *group)
{
    struct diag diag;
    if (!group)
        return SWPIPE_USAGE;
    diag_init(&diag);
    enum status status = group->rendezvous
                             ? rendezvous_barrier(group->rendezvous, group_deadline(group), &diag)
                             : diag_error(&diag, STATUS_USAGE, "the group did not come together");
    return finish(group, status, &diag);
}

/* ---- leave ----------------------------------------------------------------------------------- */

/* Rank 0 carries the mail of the others until they have gone. */
static void await_others(struct swpipe_group *group)
{
    int64_t since_ns = device_clock_ns();
    while (broker_ended(group->broker) < group->size &&
           (group->patience_ns == RENDEZVOUS_FOREVER ||
            device_clock_ns() - since_ns < group->patience_ns))
        nanosleep(&(struct timespec){.tv_nsec = LEAVE_TICK_NS}, NULL);
}

void swpipe_leave(struct swpipe_group *group)
{
    if (!group)
        return;
    if (group->in_use) { /* swpipe_close comes back */
        group->left = true;
        return;
    }
    bool came = group->rendezvous;
    if (came)
        (void)swpipe_group_wait(group); /* a rank that is slower may still need this one */
    rendezvous_leave(group->rendezvous);
    if (group->broker && came)
        await_others(group);
    broker_close(group->broker);
    listener_close(group->listener);
    free(group);
}
