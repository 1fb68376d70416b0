/*
 * t_rendezvous.c - members of a rendezvous, here threads of one process: values, barriers, letters, memory,
 * and what is known of those who leave or die.
 */
#include "gpu/rendezvous.h"
#include "tests/tap.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { MEMBERS = 3, ROUNDS = 200 };

static int64_t in_ms(int64_t ms)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec + ms * 1000000;
}

/* ---- a meeting ------------------------------------------------------------------------------- */

struct place {
    char name[40];
    struct hub *hub;
    struct diag diag;
};

static void place_open(struct place *place, int size)
{
    static int number;
    snprintf(place->name, sizeof place->name, "t_rendezvous-%ld-%d", (long)getpid(), number++);
    diag_init(&place->diag);
    if (hub_open(size, &place->hub, &place->diag) ||
        hub_listen(place->hub, place->name, &place->diag) || hub_start(place->hub, &place->diag))
        abort();
}

static void place_close(struct place *place)
{
    hub_close(place->hub);
    diag_fini(&place->diag);
}

struct member {
    const struct place *place;
    int rank, wrong;
    pthread_t thread;
    struct rendezvous *rendezvous;
    struct diag diag;
    atomic_int heard, last;
};

static void *find(void *arg)
{
    struct member *member = arg;
    diag_init(&member->diag);
    member->wrong += rendezvous_find(member->place->name, member->rank, in_ms(10000),
                                     &member->rendezvous, &member->diag) != STATUS_OK;
    return NULL;
}

static void gather(struct member *members, int count, const struct place *place)
{
    for (int i = 0; i < count; i++) {
        members[i] = (struct member){.place = place, .rank = i, .last = -1};
        pthread_create(&members[i].thread, NULL, find, &members[i]);
    }
    for (int i = 0; i < count; i++) {
        pthread_join(members[i].thread, NULL);
        if (members[i].wrong)
            abort();
    }
}

static void part(struct member *member)
{
    rendezvous_leave(member->rendezvous);
    diag_fini(&member->diag);
    member->rendezvous = NULL;
}

static void all_do(struct member *members, int count, void *(*what)(void *))
{
    for (int i = 0; i < count; i++)
        pthread_create(&members[i].thread, NULL, what, &members[i]);
    for (int i = 0; i < count; i++)
        pthread_join(members[i].thread, NULL);
}

static int errors_of(const struct member *members, int count)
{
    int errors = 0;
    for (int i = 0; i < count; i++)
        errors += members[i].wrong;
    return errors;
}

/* A call that fails as it should, and what it says. */
static void is_status(enum status got, enum status want, const char *what, const struct diag *diag)
{
    const char *text = diag->count ? diag->messages[diag->count - 1].text : "";
    tap_is_int(got, want, "%s: %s", what, text);
    tap_ok(*text != '\0', "with a reason");
}

/* ---- values and barriers --------------------------------------------------------------------- */

static atomic_int inside;

/* Nobody is in round n + 1 while somebody has not come to the end of round n. */
static void *meet_often(void *arg)
{
    struct member *member = arg;
    for (int i = 0; i < ROUNDS; i++) {
        atomic_fetch_add(&inside, 1);
        member->wrong +=
            rendezvous_barrier(member->rendezvous, in_ms(10000), &member->diag) != STATUS_OK;
        member->wrong += atomic_load(&inside) < (i + 1) * MEMBERS;
        member->wrong +=
            rendezvous_barrier(member->rendezvous, in_ms(10000), &member->diag) != STATUS_OK;
    }
    return NULL;
}

static void *exchange_values(void *arg)
{
    struct member *member = arg;
    char key[20], value[20];
    snprintf(key, sizeof key, "of %d", member->rank);
    snprintf(value, sizeof value, "value %d", member->rank);
    member->wrong += rendezvous_put(member->rendezvous, key, value, strlen(value) + 1,
                                    &member->diag) != STATUS_OK;
    for (int i = 0; i < MEMBERS; i++) {
        char got[20], want[20];
        size_t bytes = sizeof got;
        snprintf(key, sizeof key, "of %d", i);
        snprintf(want, sizeof want, "value %d", i);
        member->wrong += rendezvous_get(member->rendezvous, key, got, &bytes, in_ms(10000),
                                        &member->diag) != STATUS_OK ||
                         bytes != strlen(want) + 1 || strcmp(got, want) != 0;
    }
    return NULL;
}

/* ---- letters --------------------------------------------------------------------------------- */

static void hear(void *arg, int from, const void *data, size_t bytes)
{
    struct member *member = arg;
    int number;
    member->wrong += bytes != sizeof number || from != 0;
    memcpy(&number, data, sizeof number);
    member->wrong += number != atomic_load(&member->last) + 1; /* in order, none lost */
    atomic_store(&member->last, number);
    atomic_fetch_add(&member->heard, 1);
}

static void test_letters(struct member *members)
{
    for (int i = 1; i < MEMBERS; i++)
        rendezvous_listen(members[i].rendezvous, hear, &members[i]);
    for (int i = 0; i < ROUNDS; i++)
        if (!rendezvous_send(members[0].rendezvous, TO_ALL, &i, sizeof i))
            abort();
    all_do(members, MEMBERS, meet_often); /* behind the letters */
    for (int i = 1; i < MEMBERS; i++) {
        rendezvous_listen(members[i].rendezvous, NULL, NULL);
        tap_is_int(atomic_load(&members[i].heard), ROUNDS, "member %d hears all, in order", i);
    }
    char *large = calloc(1, RENDEZVOUS_MAX_BYTES + 1);
    tap_ok(!rendezvous_send(members[0].rendezvous, 1, large, RENDEZVOUS_MAX_BYTES + 1),
           "what is too large is refused");
    tap_ok(rendezvous_send(members[2].rendezvous, TO_HUB, large, RENDEZVOUS_MAX_BYTES),
           "the largest goes to the hub's owner");
    struct report *report = hub_receive(members[0].place->hub, 10000000000);
    tap_ok(report && report->from == 2 && report->bytes == RENDEZVOUS_MAX_BYTES, "who gets it");
    free(report);
    free(large);
}

/* ---- memory ---------------------------------------------------------------------------------- */

static void test_memory(struct member *members)
{
    int64_t offsets[2];
    char *mine = rendezvous_alloc(members[0].rendezvous, 100, &offsets[0], &members[0].diag);
    char *other = rendezvous_alloc(members[1].rendezvous, 9000, &offsets[1], &members[1].diag);
    char *seen = rendezvous_map(members[2].rendezvous, offsets[1], 9000);
    tap_ok(mine && other && seen && offsets[0] != offsets[1], "memory that all can map");
    if (!mine || !other || !seen)
        return;
    tap_ok(other[0] == 0 && other[8999] == 0, "zeroed");
    other[8999] = 'x';
    tap_is_int(seen[8999], 'x', "one member sees what another one wrote");
    rendezvous_free(members[1].rendezvous, other, 9000, offsets[1]);
    tap_is_int(seen[8999], 0, "also when it is gone: then there is nothing, and no signal");
    rendezvous_free(members[0].rendezvous, mine, 100, offsets[0]);
}

/* ---- the end --------------------------------------------------------------------------------- */

static void test_limits(struct member *members)
{
    char value[4];
    size_t bytes = sizeof value;
    struct member *one = &members[1];
    is_status(rendezvous_get(one->rendezvous, "never", value, &bytes, in_ms(30), &one->diag),
              STATUS_LIMIT, "a value that nobody puts", &one->diag);
    hub_wish(one->place->hub, 7);
    for (int i = 0; i < 1000 && atomic_load(rendezvous_wish(one->rendezvous)) != 7; i++)
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    tap_is_int(atomic_load(rendezvous_wish(one->rendezvous)), 7, "a wish reaches the members");
}

static void test_leaving(struct member *members)
{
    part(&members[2]);
    is_status(rendezvous_barrier(members[0].rendezvous, in_ms(10000), &members[0].diag),
              STATUS_VIOLATED, "nobody waits for one who left", &members[0].diag);
    tap_is_int(rendezvous_gone(members[0].rendezvous), -1, "who said goodbye is not gone");
    hub_close(members[0].place->hub);
    for (int i = 0; i < 1000 && rendezvous_gone(members[1].rendezvous) < 0; i++)
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    tap_is_int(rendezvous_gone(members[1].rendezvous), MEMBERS, "that the hub is gone is noticed");
}

static void test_names(void)
{
    struct place place;
    struct rendezvous *nobody = NULL;
    struct hub *second = NULL;
    place_open(&place, 1);
    if (hub_open(1, &second, &place.diag))
        abort();
    is_status(hub_listen(second, place.name, &place.diag), STATUS_SYSTEM, "a name is taken",
              &place.diag);
    hub_close(second);
    is_status(rendezvous_find("t_rendezvous-none", 0, in_ms(50), &nobody, &place.diag),
              STATUS_LIMIT, "nobody is there", &place.diag);
    is_status(rendezvous_find("", 0, in_ms(50), &nobody, &place.diag), STATUS_USAGE,
              "no name is none", &place.diag);
    place_close(&place);
}

int main(void)
{
    struct place place;
    struct member members[MEMBERS];
    place_open(&place, MEMBERS);
    gather(members, MEMBERS, &place);
    tap_is_int(rendezvous_size(members[1].rendezvous), MEMBERS, "all come together");
    all_do(members, MEMBERS, exchange_values);
    tap_is_int(errors_of(members, MEMBERS), 0, "values are for all");
    test_letters(members);
    tap_is_int(errors_of(members, MEMBERS), 0, "barriers hold");
    test_memory(members);
    test_limits(members);
    test_leaving(members);
    part(&members[0]);
    part(&members[1]);
    diag_fini(&place.diag);
    test_names();
    return tap_done();
}
