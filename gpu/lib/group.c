/* SPDX-License-Identifier: Apache-2.0 */
/* group.c - see swpipe_group.h: joining and leaving; and group.h: a run on all ranks, its end and its failures. */
#include "group.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/c_locale.h"
#include "base/hash.h"
#include "base/quiet_thread.h"
#include "base/sort.h"
#include "base/system_words.h"
#include "gpu/device/device_impl.h"
#include "gpu/net/mail.h"
#include "gpu/record/rank_report.h"
#include "plan/text/print.h"

#include "engine.h"
#include "swpipe_impl.h"

#define JOIN_NS INT64_C(60000000000)
enum { LEAVE_TICK_NS = 1000000, WATCH_NS = 20000000, SPIN_NS = 50000, NAP_NS = 50000 };
#define EPOCH     (INT64_C(1) << 40)
#define SETTLE_NS INT64_C(100000000) /* until the reason of an end has come */

static enum status group_check(const struct swpipe_join *join, struct diag *diag)
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
    if (join->machines > 1)
        return diag_error(diag, STATUS_USAGE,
                          "the %d processes of the group are on %d machines: they need the memory "
                          "of one machine",
                          join->size, join->machines);
    return STATUS_OK;
}

/* The moment at which a wait for the other processes, begun now, has taken too long. */
static int64_t group_deadline(const struct swpipe_group *group)
{
    return device_deadline(device_clock_ns(), group->patience_ns);
}

/* ---- the meeting place ----------------------------------------------------------------------- */

/* A name under which the processes of one machine meet, in bytes that a broadcast carries. */
struct meeting_place {
    char machine[64];
    char name[RENDEZVOUS_MAX_NAME + 1]; /* empty: rank 0 could not listen */
};

/* Names of sockets are those of one network namespace, as in a container of its own: that is the machine here. */
static void name_machine(char out[sizeof((struct meeting_place *)0)->machine])
{
    char boot[40] = "?";
    struct stat space = {0};
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");
    if (file && !fgets(boot, sizeof boot, file))
        snprintf(boot, sizeof boot, "?");
    if (file)
        fclose(file);
    boot[strcspn(boot, "\n")] = '\0';
    if (stat("/proc/self/ns/net", &space) != 0)
        space.st_ino = 0;
    snprintf(out, sizeof((struct meeting_place *)0)->machine, "%s/%llu", boot,
             (unsigned long long)space.st_ino);
}

/* True if a socket can be bound to the address, so that it is one of this machine. */
static bool group_is_here(const struct sockaddr *address, socklen_t length)
{
    int probe = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    bool here = probe < 0 || bind(probe, address, length) == 0 || errno != EADDRNOTAVAIL;
    if (probe >= 0)
        close(probe);
    return here;
}

/* "host:port": the port names the place, the host must be this machine. */
static enum status read_address(const char *address, struct meeting_place *place, struct diag *diag)
{
    const struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_DGRAM};
    const char *colon = strrchr(address, ':');
    struct addrinfo *found;
    char host[256], *end;
    unsigned long port = colon ? strtoul(colon + 1, &end, 10) : 0;
    if (port == 0 || port > UINT16_MAX || colon[1] < '0' || colon[1] > '9' || *end ||
        colon == address || (size_t)(colon - address) >= sizeof host)
        return diag_error(diag, STATUS_USAGE,
                          "found '%s', expected the address of rank 0 as host:port", address);
    memcpy(host, address, (size_t)(colon - address));
    host[colon - address] = '\0';
    int failed = getaddrinfo(host, NULL, &hints, &found);
    if (failed)
        return diag_error(diag, STATUS_SYSTEM, "host '%s' has no address: %s", host,
                          system_address_words(failed));
    bool here = false;
    for (const struct addrinfo *at = found; at && !here; at = at->ai_next)
        here = group_is_here(at->ai_addr, at->ai_addrlen);
    freeaddrinfo(found);
    if (!here)
        return diag_error(diag, STATUS_USAGE,
                          "'%s' is the address of another machine: the processes of a group need "
                          "the memory of one machine",
                          address);
    snprintf(place->name, sizeof place->name, "swpipe-%lu", port);
    return STATUS_OK;
}

/* A name that nobody else can take first. */
static enum status draw_name(struct meeting_place *place, struct diag *diag)
{
    uint64_t chance;
    if (getrandom(&chance, sizeof chance, 0) != (ssize_t)sizeof chance)
        return diag_error(diag, STATUS_SYSTEM,
                          "cannot make a name for the rendezvous: getrandom: %s",
                          system_words(errno));
    name_machine(place->machine);
    snprintf(place->name, sizeof place->name, "swpipe-%016" PRIx64, chance);
    return STATUS_OK;
}

static enum status group_lead(struct swpipe_group *group, const struct meeting_place *place,
                              struct diag *diag)
{
    enum status status = broker_open(group->size, &group->broker, diag);
    if (!status)
        status = broker_listen(group->broker, place->name, diag);
    return status ? status : broker_start(group->broker, diag);
}

/* Rank 0 listens before the broadcast tells the others where. */
static enum status group_spread(struct swpipe_group *group, const struct swpipe_join *join,
                                struct meeting_place *place, struct diag *diag)
{
    char mine[sizeof place->machine];
    enum status status = STATUS_OK;
    if (group->rank == 0) {
        status = draw_name(place, diag);
        if (!status)
            status = group_lead(group, place, diag);
        if (status)
            place->name[0] = '\0';
    }
    if (join->broadcast(join->arg, place, sizeof *place))
        return diag_error(diag, STATUS_SYSTEM, "rank %d: the broadcast failed", group->rank);
    if (status)
        return status;
    place->machine[sizeof place->machine - 1] = place->name[RENDEZVOUS_MAX_NAME] = '\0';
    if (!place->name[0])
        return diag_error(diag, STATUS_VIOLATED, "rank %d: rank 0 could not join", group->rank);
    name_machine(mine);
    if (strcmp(mine, place->machine) != 0)
        return diag_error(diag, STATUS_USAGE,
                          "rank %d is on another machine than rank 0, or in another network "
                          "namespace: the processes of a group need the memory of one machine",
                          group->rank);
    return STATUS_OK;
}

/* ---- join ------------------------------------------------------------------------------------ */

/* Rank 0, to which all others come, can say which did not. */
static enum status group_reach(struct swpipe_group *group, const struct meeting_place *place,
                               int64_t deadline_ns, struct diag *diag)
{
    struct diag own;
    diag_init(&own);
    enum status status =
        rendezvous_find(place->name, group->rank, deadline_ns, &group->rendezvous, &own);
    bool told =
        status == STATUS_LIMIT && group->broker && broker_tell_missing(group->broker, status, diag);
    if (!told && status == STATUS_LIMIT && !group->broker && own.count)
        diag_error(diag, status, "%s; the ranks of a group have the same port and size",
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
    enum status status = group_check(join, diag);
    if (status)
        return status;
    group->rank = join->rank;
    group->size = join->size;
    group->patience_ns = join->timeout_ns == -1 ? RENDEZVOUS_FOREVER
                         : join->timeout_ns     ? join->timeout_ns
                                                : JOIN_NS;
    if (join->broadcast) {
        status = group_spread(group, join, &place, diag);
    } else {
        status = read_address(join->address, &place, diag);
        if (!status && group->rank == 0)
            status = group_lead(group, &place, diag);
    }
    if (status)
        return status;
    status = group_reach(group, &place, group_deadline(group), diag);
    return status ? status : agree_on_size(group, diag);
}

/* The first error of `diag`, if there is one, is the group's. */
static enum swpipe_status group_finish(struct swpipe_group *group, enum status status,
                                       struct diag *diag)
{
    if (status)
        snprintf(group->error, sizeof group->error, "%s", diag_first_text(diag));
    diag_fini(diag);
    return status_for_caller(status);
}

enum swpipe_status swpipe_join(const struct swpipe_join *join, struct swpipe_group **out)
{
    struct swpipe_group *group = out ? calloc(1, sizeof *group) : NULL;
    struct diag diag;
    if (!out)
        return SWPIPE_USAGE;
    *out = group;
    if (!group)
        return SWPIPE_SYSTEM;
    group->process = getpid();
    diag_init(&diag);
    return group_finish(
        group,
        join ? come_together(group, join, &diag)
             : diag_error(&diag, STATUS_USAGE, "the join has no rank and no address"),
        &diag);
}

const char *swpipe_group_error(const struct swpipe_group *group)
{
    return group ? group->error
                 : "there is no group: memory is exhausted, or swpipe_join has not been called";
}

int swpipe_group_rank(const struct swpipe_group *group)
{
    return group ? group->rank : -1;
}

int swpipe_group_size(const struct swpipe_group *group)
{
    return group ? group->size : -1;
}

enum status group_must_be_here(const struct swpipe_group *group, struct diag *diag)
{
    if (group->process != getpid())
        return diag_error(diag, STATUS_USAGE,
                          "the group was joined by process %ld, of which this one is a fork",
                          (long)group->process);
    return group->rendezvous ? STATUS_OK
                             : diag_error(diag, STATUS_USAGE, "the group has not come together: %s",
                                          group->error);
}

enum swpipe_status swpipe_group_wait(struct swpipe_group *group)
{
    struct diag diag;
    if (!group)
        return SWPIPE_USAGE;
    diag_init(&diag);
    enum status status = group_must_be_here(group, &diag);
    if (!status)
        status = rendezvous_barrier(group->rendezvous, group_deadline(group), &diag);
    return group_finish(group, status, &diag);
}

/* ---- all open the same ----------------------------------------------------------------------- */

/* A rank's configuration as the others see it; all bytes are set. */
struct opened {
    uint64_t plan; /* hash of its canonical text */
    int32_t driver, depth, device;
    char name[PLAN_MAX_NAME + 1];
};

static enum status describe_opened(const struct swpipe *pipe, struct opened *out, struct diag *diag)
{
    const struct pipeline *pipeline = &pipe->plan.pipeline;
    char *text = NULL;
    size_t bytes = 0;
    locale_t before = c_locale_begin(); /* the same numbers in all processes */
    FILE *file = open_memstream(&text, &bytes);
    enum status status = file ? plan_print(&pipe->plan, file, diag) : diag_no_memory(diag);
    if (file && fclose(file) != 0 && !status)
        status = diag_no_memory(diag);
    c_locale_end(before);
    memset(out, 0, sizeof *out);
    if (!status)
        out->plan = hash_bytes(text, bytes);
    free(text);
    out->driver = (int32_t)pipe->driver;
    out->device = (int32_t)pipe->device;
    out->depth = pipe->driver == DRIVER_CLOCK ? pipeline->depth
                 : pipe->max_depth            ? pipe->max_depth
                                              : pipeline->max_depth;
    snprintf(out->name, sizeof out->name, "%s", pipe->plan.name);
    return status;
}

/* "rank 1 has plan 'step' (0123456789abcdef) under clock at depth 3 on host" */
static void opened_words(const struct opened *opened, int rank, char *out, size_t cap)
{
    snprintf(out, cap, "rank %d has plan '%s' (%016" PRIx64 ") under %s at depth %d on %s", rank,
             opened->name, opened->plan, driver_key((enum driver)opened->driver), opened->depth,
             device_kind_key((enum device_kind)opened->device));
}

static enum status refuse_other(const struct opened *mine, int rank, const struct opened *other,
                                int other_rank, struct diag *diag)
{
    char here[PLAN_MAX_NAME + 100], there[PLAN_MAX_NAME + 100];
    opened_words(mine, rank, here, sizeof here);
    opened_words(other, other_rank, there, sizeof there);
    return diag_error(
        diag, STATUS_INPUT,
        "%s, and %s: all ranks of a group need the same plan, driver, depth and device", here,
        there);
}

enum status group_open_same(struct swpipe_group *group, const struct swpipe *pipe,
                            struct diag *diag)
{
    struct rendezvous *rendezvous = group->rendezvous;
    struct opened mine, other;
    char key[48];
    enum status status = describe_opened(pipe, &mine, diag);
    group->opens++;
    snprintf(key, sizeof key, "open %d of rank %d", group->opens, group->rank);
    if (!status)
        status = rendezvous_put(rendezvous, key, &mine, sizeof mine, diag);
    for (int rank = 0; rank < group->size && !status; rank++) {
        size_t bytes = sizeof other;
        snprintf(key, sizeof key, "open %d of rank %d", group->opens, rank);
        status = rendezvous_get(rendezvous, key, &other, &bytes, group_deadline(group), diag);
        if (!status && memcmp(&mine, &other, sizeof mine) != 0)
            status = refuse_other(&mine, group->rank, &other, rank, diag);
    }
    return status;
}

/* ---- leave ----------------------------------------------------------------------------------- */

void swpipe_leave(struct swpipe_group *group)
{
    if (!group || group->process != getpid())
        return;
    if (group->in_use) { /* swpipe_close comes back */
        group->left = true;
        return;
    }
    bool came = group->rendezvous;
    if (came)
        (void)swpipe_group_wait(group); /* a rank that is slower may still need this one */
    rendezvous_leave(group->rendezvous);
    if (group->broker && came) {
        /* Rank 0 carries the mail of the others until they have gone. */
        int64_t since_ns = device_clock_ns();
        while (broker_ended(group->broker) < group->size &&
               (group->patience_ns == RENDEZVOUS_FOREVER ||
                device_clock_ns() - since_ns < group->patience_ns))
            nanosleep(&(struct timespec){.tv_nsec = LEAVE_TICK_NS}, NULL);
    }
    broker_close(group->broker);
    free(group);
}

/* ---- the end of the data --------------------------------------------------------------------- */

static _Atomic int64_t *count_of(const struct swpipe_group *group, int rank)
{
    return &rendezvous_board(group->rendezvous)->members[rank].wanted;
}

void group_new_world(struct swpipe_group *group)
{
    assert(group->base < (group->worlds + 1) * EPOCH);
    group->base = ++group->worlds * EPOCH;
}

enum status group_begin_run(struct swpipe_group *group, struct diag *diag)
{
    return rendezvous_barrier(group->rendezvous, group_deadline(group), diag);
}

void group_end_run(struct swpipe_group *group, int64_t most)
{
    assert(most >= 0);
    group->base += most + 1;
}

enum batch_word { SILENT, HAS_ONE, HAS_ENDED };

/* A rank's word on a batch of this run. */
static enum batch_word group_word_of(const struct swpipe_group *group, int rank, int64_t number)
{
    int64_t said = atomic_load(count_of(group, rank)), batches = said / 2 - group->base;
    if (batches > number)
        return HAS_ONE;
    return said % 2 && batches >= 0 ? HAS_ENDED : SILENT;
}

/* Spin first: the ranks come to an iteration at about the same time. They may wait for steps of this thread's workers. */
static bool await_word(struct swpipe_group *group, struct run *run, int rank, int64_t number,
                       enum batch_word *word)
{
    int64_t since_ns = device_clock_ns();
    while ((*word = group_word_of(group, rank, number)) == SILENT && !run_stopped(run))
        if (!pump_all(run) && device_clock_ns() - since_ns > SPIN_NS)
            nanosleep(&(struct timespec){.tv_nsec = NAP_NS}, NULL);
    return *word != SILENT;
}

void group_say(struct swpipe_group *group, int64_t batches, bool ended)
{
    _Atomic int64_t *count = count_of(group, group->rank);
    const int64_t said = 2 * (group->base + batches) + ended;
    assert(batches >= 0 && said >= atomic_load(count)); /* it never falls */
    atomic_store(count, said);
}

bool group_hear(struct swpipe_group *group, struct run *run, int64_t number, bool *all)
{
    *all = true;
    for (int rank = 0; rank < group->size; rank++) {
        enum batch_word word;
        if (!await_word(group, run, rank, number, &word))
            return false;
        *all = *all && word == HAS_ONE;
    }
    return true;
}

int64_t group_most(const struct swpipe_group *group)
{
    int64_t most = 0;
    for (int rank = 0; rank < group->size; rank++) {
        int64_t said = atomic_load(count_of(group, rank)),
                words = said / 2 - group->base + said % 2;
        most = max_i64(most, words);
    }
    return most;
}

/* ---- failures elsewhere ---------------------------------------------------------------------- */

/* The device first: a rank that fails says why before it goes. */
static void group_watch_look(struct group_watch *watch, int64_t *ended_ns)
{
    struct run *run = watch->run;
    struct diag diag;
    int gone = rendezvous_gone(watch->group->rendezvous),
        left = rendezvous_left(watch->group->rendezvous);
    diag_init(&diag);
    enum status status = device_world_status(run->world, &diag);
    if (status)
        (void)run_check(run, status, &diag);
    diag_fini(&diag);
    if (status || (gone < 0 && left < 0))
        return;
    if (*ended_ns == 0)
        *ended_ns = device_clock_ns();
    if (device_clock_ns() - *ended_ns < SETTLE_NS)
        return;
    /* The ranks that have ended; the broker is rank 0's. */
    int rank = gone >= 0 ? gone : left;
    run_fail(watch->run, STATUS_VIOLATED, "rank %d %s", rank < watch->group->size ? rank : 0,
             gone >= 0 ? "is gone" : "has left the group");
}

static void *watch_main(void *arg)
{
    struct group_watch *watch = arg;
    int64_t ended_ns = 0;
    pthread_mutex_lock(&watch->lock);
    while (!watch->ending && !run_stopped(watch->run)) {
        struct timespec until;
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_nsec += WATCH_NS;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        pthread_cond_timedwait(&watch->changed, &watch->lock, &until);
        if (watch->ending)
            break;
        pthread_mutex_unlock(&watch->lock);
        group_watch_look(watch, &ended_ns);
        pthread_mutex_lock(&watch->lock);
    }
    pthread_mutex_unlock(&watch->lock);
    return NULL;
}

enum status watch_open(struct group_watch *watch, struct swpipe_group *group, struct run *run,
                       struct diag *diag)
{
    assert(group->rendezvous);
    *watch = (struct group_watch){.group = group, .run = run};
    int failed = pthread_mutex_init(&watch->lock, NULL);
    if (!failed && (failed = mail_init_condition(&watch->changed)) != 0)
        pthread_mutex_destroy(&watch->lock);
    if (!failed && (failed = quiet_thread_start(&watch->thread, watch_main, watch)) != 0) {
        pthread_cond_destroy(&watch->changed);
        pthread_mutex_destroy(&watch->lock);
    }
    watch->started = !failed;
    return failed
               ? diag_error(diag, STATUS_SYSTEM, "cannot start a thread: %s", system_words(failed))
               : STATUS_OK;
}

void watch_close(struct group_watch *watch)
{
    if (!watch->started)
        return;
    pthread_mutex_lock(&watch->lock);
    watch->ending = true;
    pthread_cond_signal(&watch->changed);
    pthread_mutex_unlock(&watch->lock);
    pthread_join(watch->thread, NULL);
    pthread_cond_destroy(&watch->changed);
    pthread_mutex_destroy(&watch->lock);
    watch->started = false;
}

/* ---- The recording of a group's run: see group.h ------------------------------------------------ */

enum { TAKE_NS = 20000000, KEY = 64 };
#define PASS_NS (JOURNAL_PASS_MS * INT64_C(1000000))

/* REPORT_END */
struct group_record_rank_end {
    int64_t complete, planned, duration_ns;
};

/* The answer of rank 0 to the others: of an opening, and of an end. */
struct answer_mail {
    int32_t status, legal;
    int64_t run, iterations, steps, duration_ns;
    double iteration_ns;
    char text[400]; /* why it failed, or was not legal */
};

struct keeper {
    struct swpipe_group *group;
    struct run *run;
    struct journal *journal;
    int number;                         /* of the run: what is late comes of another */
    struct group_record_rank_end *ends; /* [ranks] */
    bool *ended;
    pthread_t thread;
    bool started;
    atomic_bool closing; /* rank 0 has ended: its patience begins */
};

/* ---- the keeper's thread --------------------------------------------------------------------- */

static void keeper_take(struct keeper *keeper, const struct report *report)
{
    struct report_head head;
    if (report->bytes < sizeof head || report->from >= keeper->group->size)
        return;
    memcpy(&head, report->data, sizeof head);
    const char *data = report->data + sizeof head;
    size_t bytes = report->bytes - sizeof head;
    if (head.kind == REPORT_LOG)
        journal_take(keeper->journal, data, bytes);
    if (head.kind == REPORT_END && head.number == keeper->number && bytes == sizeof *keeper->ends) {
        memcpy(&keeper->ends[report->from], data, bytes);
        keeper->ended[report->from] = true;
    }
}

/* Everything has come that will come. */
static bool group_record_is_through(struct keeper *keeper)
{
    for (int rank = 0; rank < keeper->group->size; rank++)
        if (!keeper->ended[rank] && !broker_is_gone(keeper->group->broker, rank))
            return false;
    return true;
}

static void *keeper_run(void *arg)
{
    struct keeper *keeper = arg;
    const int64_t patience_ns = keeper->group->patience_ns;
    int64_t pass_ns = device_clock_ns(), closing_ns = 0;
    bool good = true;
    while (!group_record_is_through(keeper)) {
        struct report *report = broker_receive(keeper->group->broker, TAKE_NS);
        int64_t now_ns = device_clock_ns();
        if (report)
            keeper_take(keeper, report);
        free(report);
        if (good && now_ns - pass_ns >= PASS_NS) {
            /* Books that cannot be kept end the run. */
            struct diag diag;
            diag_init(&diag);
            journal_pass(keeper->journal, run_now(keeper->run));
            enum status status = journal_status(keeper->journal, &diag);
            if (status)
                run_fail(keeper->run, status, "%s", diag_first_text(&diag));
            diag_fini(&diag);
            good = !status;
            pass_ns = now_ns;
        }
        if (!atomic_load(&keeper->closing))
            continue;
        closing_ns = closing_ns ? closing_ns : now_ns;
        if (patience_ns != RENDEZVOUS_FOREVER && now_ns - closing_ns > patience_ns)
            break;
    }
    for (struct report *more; (more = broker_receive(keeper->group->broker, 0)); free(more))
        keeper_take(keeper, more); /* of a rank that went: the last it said */
    return NULL;
}

/* ---- opening --------------------------------------------------------------------------------- */

static void keeper_free(struct keeper *keeper)
{
    if (!keeper)
        return;
    if (keeper->started) {
        atomic_store(&keeper->closing, true);
        pthread_join(keeper->thread, NULL);
    }
    journal_close(keeper->journal);
    free(keeper->ends);
    free(keeper->ended);
    free(keeper);
}

static enum status keeper_open(struct group_recording *recording, struct run *run,
                               const struct runtime_options *options, const char *device,
                               struct diag *diag)
{
    struct swpipe_group *group = recording->group;
    struct keeper *keeper = calloc(1, sizeof *keeper);
    if (!keeper)
        return diag_no_memory(diag);
    keeper->group = group;
    keeper->run = run;
    keeper->number = recording->number;
    keeper->ends = calloc((size_t)group->size, sizeof *keeper->ends);
    keeper->ended = calloc((size_t)group->size, sizeof *keeper->ended);
    enum status status = keeper->ends && keeper->ended ? STATUS_OK : diag_no_memory(diag);
    if (!status)
        status = journal_open_collecting(run->program, options, device, run_now(run),
                                         &keeper->journal, diag);
    int failed = status ? 0 : quiet_thread_start(&keeper->thread, keeper_run, keeper);
    if (failed)
        status = diag_error(diag, STATUS_SYSTEM, "cannot start a thread: %s", system_words(failed));
    keeper->started = !status;
    recording->keeper = status ? NULL : keeper;
    if (status)
        keeper_free(keeper);
    return status;
}

static void group_record_make_key(const struct group_recording *recording, const char *what,
                                  char out[KEY])
{
    snprintf(out, KEY, "recording %d, %s", recording->number, what);
}

static void keeper_say(const struct group_recording *recording, const char *what,
                       const struct answer_mail *answer)
{
    char key[KEY];
    struct diag ignored; /* a broker that is gone: the others learn of it */
    group_record_make_key(recording, what, key);
    diag_init(&ignored);
    (void)rendezvous_put(recording->group->rendezvous, key, answer, sizeof *answer, &ignored);
    diag_fini(&ignored);
}

/* STATUS_LIMIT becomes one of the system: rank 0 does not answer. */
static enum status keeper_hear(const struct group_recording *recording, const char *what,
                               struct answer_mail *answer, struct diag *diag)
{
    char key[KEY];
    const struct swpipe_group *group = recording->group;
    size_t bytes = sizeof *answer;
    struct diag why;
    group_record_make_key(recording, what, key);
    diag_init(&why);
    enum status status =
        rendezvous_get(group->rendezvous, key, answer, &bytes, group_deadline(group), &why);
    if (status || bytes != sizeof *answer)
        status = diag_error(diag, STATUS_SYSTEM,
                            "rank 0, which keeps the recording, does not answer: %s",
                            why.count ? why.messages[0].text : "all ranks record a run, or none");
    diag_fini(&why);
    return status;
}

static const char *first_text(const struct diag *diag)
{
    return diag->count ? diag->messages[diag->count - 1].text : "out of memory";
}

enum status group_recording_open(struct group_recording *recording, struct swpipe_group *group,
                                 struct run *run, const struct runtime_options *options,
                                 const char *device, struct diag *diag)
{
    struct answer_mail answer = {0};
    *recording = (struct group_recording){.group = group, .number = ++group->recordings};
    enum status status;
    if (group->rank == 0) {
        status = keeper_open(recording, run, options, device, diag);
        answer.status = (int32_t)status;
        snprintf(answer.text, sizeof answer.text, "%s", status ? first_text(diag) : "");
        keeper_say(recording, "opened", &answer);
    } else {
        status = keeper_hear(recording, "opened", &answer, diag);
        if (!status && answer.status)
            status = diag_error(diag, (enum status)answer.status, "rank 0: %s", answer.text);
    }
    if (status)
        recording->group = NULL;
    return status;
}

/* ---- the end --------------------------------------------------------------------------------- */

void group_recording_stop(struct group_recording *recording, bool complete, int64_t planned,
                          int64_t duration_ns)
{
    const struct group_record_rank_end end = {complete, planned, duration_ns};
    (void)rank_report_send(recording->group->rendezvous, REPORT_END, recording->number, &end,
                           sizeof end);
}

static enum status keeper_judge(struct keeper *keeper, struct runtime_result *out,
                                struct diag *diag)
{
    int ranks = keeper->group->size;
    int64_t *ends = calloc((size_t)ranks, sizeof *ends);
    struct journal_end end = {.complete = true, .ends = ends};
    if (!ends)
        return diag_no_memory(diag);
    for (int rank = 0; rank < ranks; rank++) {
        const struct group_record_rank_end *his = &keeper->ends[rank];
        ends[rank] = his->planned;
        end.torn = end.torn || !keeper->ended[rank];
        end.complete = end.complete && keeper->ended[rank] && his->complete;
        end.iterations = his->planned > end.iterations ? his->planned : end.iterations;
        end.duration_ns = his->duration_ns > end.duration_ns ? his->duration_ns : end.duration_ns;
    }
    out->finished = end.complete;
    out->duration_ns = end.duration_ns;
    enum status status = journal_end(keeper->journal, &end, out, diag);
    free(ends);
    return status;
}

static enum status keeper_conclude(struct keeper *keeper, struct runtime_result *out, char *why,
                                   size_t why_bytes, struct diag *diag)
{
    struct diag said;
    atomic_store(&keeper->closing, true);
    pthread_join(keeper->thread, NULL);
    keeper->started = false;
    diag_init(&said);
    enum status status = keeper_judge(keeper, out, &said);
    for (size_t i = 0; status == STATUS_VIOLATED && i < said.count && !why[0]; i++)
        if (said.messages[i].severity == SEVERITY_ERROR)
            snprintf(why, why_bytes, "%s", said.messages[i].text);
    if (status == STATUS_VIOLATED)
        status = STATUS_OK;
    else if (status)
        diag_error(diag, status, "%s", first_text(&said));
    diag_fini(&said);
    return status;
}

static struct answer_mail answer_of(const struct runtime_result *result, const char *why)
{
    struct answer_mail answer = {.legal = (int32_t)result->legal,
                                 .run = result->run,
                                 .iterations = result->iterations,
                                 .steps = result->steps,
                                 .duration_ns = result->duration_ns,
                                 .iteration_ns = result->iteration.mean_ns};
    snprintf(answer.text, sizeof answer.text, "%s", why);
    return answer;
}

enum status group_recording_close(struct group_recording *recording, struct runtime_result *out,
                                  char *why, size_t why_bytes, struct diag *diag)
{
    struct answer_mail answer = {0};
    enum status status;
    if (recording->keeper) {
        status = keeper_conclude(recording->keeper, out, why, why_bytes, diag);
        answer = answer_of(out, status ? first_text(diag) : why);
        answer.status = (int32_t)status;
        keeper_say(recording, "ended", &answer);
    } else {
        status = keeper_hear(recording, "ended", &answer, diag);
        if (!status && answer.status)
            status = diag_error(diag, (enum status)answer.status, "rank 0: %s", answer.text);
        if (!status) {
            out->legal = (enum answer)answer.legal;
            out->run = answer.run;
            out->iterations = answer.iterations;
            out->steps = answer.steps;
            out->duration_ns = answer.duration_ns;
            out->iteration.mean_ns = answer.iteration_ns;
            snprintf(why, why_bytes, "%s", answer.text);
        }
    }
    keeper_free(recording->keeper);
    *recording = (struct group_recording){0};
    return status;
}

void group_recording_drop(struct group_recording *recording)
{
    struct runtime_result unseen = {.run = -1};
    char why[8] = "";
    struct diag ignored; /* the reason is the caller's */
    diag_init(&ignored);
    arena_init(&unseen.arena, 0);
    group_recording_stop(recording, false, 0, 0);
    (void)group_recording_close(recording, &unseen, why, sizeof why, &ignored);
    runtime_result_fini(&unseen);
    diag_fini(&ignored);
}
