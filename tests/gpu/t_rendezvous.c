/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_rendezvous.c - members of a rendezvous, here threads of one process: values, barriers, letters, memory,
 * and what is known of members that leave or die.
 */
#include "gpu/net/mail.h"
#include "gpu/net/rendezvous.h"
#include "gpu/net/rendezvous_impl.h"
#include "tests/tap.h"

#include <errno.h>
#include <fcntl.h>

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MEMBERS = 3, ROUNDS = 200 };

static int64_t in_ms(int64_t ms)
{
    return mail_clock_ns() + ms * 1000000;
}

/* ---- a meeting ------------------------------------------------------------------------------- */

struct place {
    char name[40];
    struct broker *broker;
    struct diag diag;
};

static void place_open_name(struct place *place)
{
    static int number;
    *place = (struct place){0};
    snprintf(place->name, sizeof place->name, "t_rendezvous-%ld-%d", (long)getpid(), number++);
    diag_init(&place->diag);
}

static void place_open(struct place *place, int size)
{
    place_open_name(place);
    if (broker_open(size, &place->broker, &place->diag) ||
        broker_listen(place->broker, place->name, &place->diag) ||
        broker_start(place->broker, &place->diag))
        abort();
}

static void place_close(struct place *place)
{
    broker_close(place->broker);
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

/* No member is in round n + 1 while another has not come to the end of round n. */
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
    tap_ok(rendezvous_send(members[2].rendezvous, TO_BROKER, large, RENDEZVOUS_MAX_BYTES),
           "the largest goes to the broker's owner");
    struct report *report = broker_receive(members[0].place->broker, 10000000000);
    tap_ok(report && report->from == 2 && report->bytes == RENDEZVOUS_MAX_BYTES, "its receiver");
    free(report);
    free(large);
}

enum { PASSED = 300, TEXT = 1000 };

/* Letters of some length each: few words, some of them too large for a slot. */
static size_t write_letter(int number, char *letter)
{
    size_t bytes = sizeof number + (number % 7 == 3 ? TEXT : (size_t)(number % 50));
    memset(letter, number & 127, bytes);
    memcpy(letter, &number, sizeof number);
    return bytes;
}

static void hear_passed(void *arg, int from, const void *data, size_t bytes)
{
    struct member *member = arg;
    char letter[sizeof(int) + TEXT];
    int number = atomic_load(&member->last) + 1;
    size_t expected = write_letter(number, letter);
    member->wrong += from != 0 || bytes != expected || memcmp(data, letter, expected) != 0;
    atomic_store(&member->last, number);
}

static void pass_letters(struct member *to, int first, int count)
{
    char letter[sizeof(int) + TEXT];
    for (int i = first; i < first + count; i++) {
        size_t bytes = write_letter(i, letter);
        if (!rendezvous_pass((to - to->rank)->rendezvous, to->rank, letter, bytes, true))
            abort();
    }
}

/* Look and sleep until so many have been heard: each rings. */
static void await_letters(struct member *member, int count)
{
    const int64_t end_ns = in_ms(20000), limit_ns = 20000000000;
    for (;;) {
        unsigned seen = atomic_load(rendezvous_bell(member->rendezvous));
        rendezvous_look(member->rendezvous);
        if (atomic_load(&member->last) >= count - 1 || in_ms(0) > end_ns)
            return;
        rendezvous_sleep(member->rendezvous, seen, limit_ns, NULL, 0);
    }
}

static void *answer_bells(void *arg)
{
    struct member *member = arg;
    for (int i = 1; i <= ROUNDS; i++)
        await_letters(member, PASSED + i);
    return NULL;
}

/* A letter that is passed, short enough for a slot, and one that is sent: the receiver does not look. */
static void send_behind(struct member *to, int first)
{
    const int64_t end_ns = in_ms(20000);
    char letter[sizeof(int) + TEXT];
    pass_letters(to, first, 1);
    size_t bytes = write_letter(first + 1, letter);
    if (!rendezvous_send((to - to->rank)->rendezvous, to->rank, letter, bytes))
        abort();
    while (atomic_load(&to->last) < first + 1 && in_ms(0) < end_ns)
        nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
}

/* Letters that the receiver looks for: more than a queue holds, while it does not look, then one by one. */
static void test_passed(struct member *members)
{
    struct member *to = &members[1];
    atomic_store(&to->last, -1);
    rendezvous_listen(to->rendezvous, hear_passed, to);
    pass_letters(to, 0, PASSED);
    await_letters(to, PASSED);
    tap_is_int(atomic_load(&to->last), PASSED - 1, "letters that are passed, in order");
    pthread_create(&to->thread, NULL, answer_bells, to);
    const int64_t end_ns = in_ms(20000);
    for (int i = 0; i < ROUNDS; i++) {
        pass_letters(to, PASSED + i, 1);
        while (i % 10 == 0 && atomic_load(&to->last) < PASSED + i && in_ms(0) < end_ns)
            nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
    }
    pthread_join(to->thread, NULL);
    tap_is_int(atomic_load(&to->last), PASSED + ROUNDS - 1, "each wakes its receiver");
    pass_letters(to, PASSED + ROUNDS, 1);
    await_letters(to, PASSED + ROUNDS + 1);
    send_behind(to, PASSED + ROUNDS + 1);
    tap_is_int(atomic_load(&to->last), PASSED + ROUNDS + 2, "one by mail is heard behind them");
    tap_is_int(to->wrong, 0, "and says what was said");
    tap_is_int(rendezvous_gone(to->rendezvous), -1, "and none is gone");
    rendezvous_listen(to->rendezvous, NULL, NULL);
}

/* Queues that hold no letters, after one that does: how many words were written, and the first slot's number, bytes. */
static void test_bad_queues(void)
{
    static const uint64_t written[] = {1, 1, 64, UINT64_MAX, 1};
    static const uint64_t slots[][2] = {{0, 241}, {0, UINT64_MAX}, {0, 4}, {0, 4}, {0, 4}};
    for (size_t i = 0; i < sizeof written / sizeof *written; i++) {
        struct place place;
        struct member members[2];
        bool good = i == 4;
        place_open(&place, 2);
        gather(members, 2, &place);
        struct mail mail = {.kind = MAIL_QUEUE, .from = 0, .to = 1};
        int64_t offset;
        uint64_t *queue = rendezvous_alloc(members[0].rendezvous, 16384, &offset, &members[0].diag);
        if (!queue)
            abort();
        queue[0] = written[i];
        memcpy(&queue[16], slots[i], sizeof *slots); /* behind two lines of counters */
        rendezvous_listen(members[1].rendezvous, hear_passed, &members[1]);
        if (!rendezvous_send_mail(members[0].rendezvous, &mail, &offset, sizeof offset))
            abort();
        int64_t end_ns = in_ms(10000);
        while (rendezvous_gone(members[1].rendezvous) < 0 && atomic_load(&members[1].last) < 0 &&
               in_ms(0) < end_ns)
            rendezvous_look(members[1].rendezvous);
        tap_is_int(rendezvous_gone(members[1].rendezvous), good ? -1 : 0,
                   good ? "a queue with a letter" : "its sender is as good as gone");
        tap_is_int(atomic_load(&members[1].last), good ? 0 : -1, "letters that are heard");
        part(&members[1]);
        part(&members[0]);
        place_close(&place);
    }
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

/* Memory that others may still look at is given back later. */
static void test_late_memory(struct member *members)
{
    int64_t offset;
    char *mine = rendezvous_alloc(members[0].rendezvous, 100, &offset, &members[0].diag);
    char *seen = rendezvous_map(members[1].rendezvous, offset, 100);
    tap_ok(mine && seen, "memory that another one looks at");
    if (!mine || !seen)
        return;
    mine[99] = 'x';
    rendezvous_free_late(members[0].rendezvous, mine, 100, offset);
    tap_is_int(seen[99], 'x', "is there when it is freed late");
    rendezvous_age(members[0].rendezvous);
    tap_is_int(seen[99], 'x', "and a while on");
    rendezvous_age(members[0].rendezvous);
    tap_is_int(seen[99], 0, "and gone then");
}

/* ---- the end --------------------------------------------------------------------------------- */

/* A member that sends may find out that the broker is gone before its reader does. */
static void test_cut_off(void)
{
    int known = 0, told = 0;
    enum { TIMES = 40 };
    for (int i = 0; i < TIMES; i++) {
        struct place place;
        struct member members[2];
        const char *how;
        place_open(&place, 2);
        gather(members, 2, &place);
        broker_close(place.broker);
        while (rendezvous_send(members[1].rendezvous, 0, "x", 1))
            continue;
        known += rendezvous_lost(members[1].rendezvous, &how) == 2;
        told += rendezvous_barrier(members[0].rendezvous, in_ms(10000), &members[0].diag) ==
                    STATUS_VIOLATED &&
                strstr(members[0].diag.messages[0].text, "process that connects the ranks");
        part(&members[0]);
        part(&members[1]);
        diag_fini(&place.diag);
    }
    tap_is_int(known, TIMES, "mail that cannot be sent: the broker is gone");
    tap_is_int(told, TIMES, "so it is said");
}

static void test_limits(struct member *members)
{
    char value[4];
    size_t bytes = sizeof value;
    struct member *one = &members[1];
    is_status(rendezvous_get(one->rendezvous, "never", value, &bytes, in_ms(30), &one->diag),
              STATUS_LIMIT, "a value that is never put", &one->diag);
    broker_wish(one->place->broker, 7);
    for (int i = 0; i < 1000 && atomic_load(rendezvous_wish(one->rendezvous)) != 7; i++)
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    tap_is_int(atomic_load(rendezvous_wish(one->rendezvous)), 7, "a wish reaches the members");
}

static void test_leaving(struct member *members)
{
    part(&members[2]);
    is_status(rendezvous_barrier(members[0].rendezvous, in_ms(10000), &members[0].diag),
              STATUS_VIOLATED, "no member waits for one that left", &members[0].diag);
    tap_is_int(rendezvous_gone(members[0].rendezvous), -1,
               "a member that said goodbye is not gone");
    broker_close(members[0].place->broker);
    for (int i = 0; i < 1000 && rendezvous_gone(members[1].rendezvous) < 0; i++)
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    tap_is_int(rendezvous_gone(members[1].rendezvous), MEMBERS,
               "that the broker is gone is noticed");
}

static bool comes_to_nothing(struct member *member)
{
    pthread_join(member->thread, NULL);
    bool told = member->wrong && strstr(member->diag.messages[0].text, "ended before it connected");
    diag_fini(&member->diag);
    return told;
}

/* Another member said hello and hung up; those that came before and those that come later hear of it. */
static void test_gone_before(void)
{
    struct place place;
    struct sockaddr_un address;
    socklen_t length;
    const struct mail hello = {.kind = MAIL_HELLO, .from = 1, .to = TO_BROKER};
    place_open(&place, MEMBERS);
    struct member early = {.place = &place, .rank = 0}, late = {.place = &place, .rank = 2};
    pthread_create(&early.thread, NULL, find, &early);
    int other = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (!mail_address(place.name, &address, &length) ||
        connect(other, (struct sockaddr *)&address, length) != 0 ||
        send(other, &hello, sizeof hello, 0) != sizeof hello)
        abort();
    close(other);
    tap_ok(comes_to_nothing(&early), "a member that waits hears that another one is gone");
    pthread_create(&late.thread, NULL, find, &late);
    tap_ok(comes_to_nothing(&late), "so does a member that comes later");
    place_close(&place);
}

/* A failure is no end: the others must not wait for what the member would have done. */
static void test_failing(void)
{
    struct place place;
    struct member members[MEMBERS];
    const char *how;
    place_open(&place, MEMBERS);
    gather(members, MEMBERS, &place);
    part(&members[2]);
    while (rendezvous_left(members[0].rendezvous) < 0)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    tap_is_int(rendezvous_lost(members[0].rendezvous, &how), -1,
               "a member that said goodbye is not lost");
    rendezvous_leave_failed(members[1].rendezvous);
    diag_fini(&members[1].diag);
    int64_t end_ns = in_ms(10000);
    while (rendezvous_lost(members[0].rendezvous, &how) < 0 && in_ms(0) < end_ns)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    tap_is_int(rendezvous_lost(members[0].rendezvous, &how), 1, "one that failed is");
    tap_is_str(how, "has failed", "and how");
    part(&members[0]);
    place_close(&place);
}

static void test_names(void)
{
    struct place place;
    struct rendezvous *none = NULL;
    struct broker *second = NULL;
    place_open(&place, 1);
    if (broker_open(1, &second, &place.diag))
        abort();
    is_status(broker_listen(second, place.name, &place.diag), STATUS_SYSTEM, "a name is taken",
              &place.diag);
    broker_close(second);
    is_status(rendezvous_find("t_rendezvous-none", 0, in_ms(50), &none, &place.diag), STATUS_LIMIT,
              "no broker is there", &place.diag);
    is_status(rendezvous_find("", 0, in_ms(50), &none, &place.diag), STATUS_USAGE,
              "no name is none", &place.diag);
    place_close(&place);
}

/* ---- brokers that are none --------------------------------------------------------------------- */

/* A socket that listens under the name of a place of this user's. */
static int impostor(const char *name)
{
    struct sockaddr_un address;
    socklen_t length;
    int listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (listener < 0 || !mail_address(name, &address, &length) ||
        bind(listener, (struct sockaddr *)&address, length) != 0)
        abort();
    return listener;
}

/* Another user takes the name first: the credentials are those of the process that listens. */
static void test_other_user(void)
{
    struct rendezvous *none = NULL;
    struct diag diag;
    char name[60], ready;
    int pipes[2], listener;
    if (getuid() != 0) {
        tap_skip("only root can act for another user");
        return;
    }
    diag_init(&diag);
    snprintf(name, sizeof name, "t_rendezvous-other-%ld", (long)getpid());
    listener = impostor(name);
    if (pipe(pipes) != 0)
        abort();
    pid_t other = fork();
    if (other == 0) {
        if (setresuid(65534, 65534, 65534) != 0 || listen(listener, 1) != 0 ||
            write(pipes[1], "", 1) != 1)
            _exit(1);
        pause();
    }
    if (read(pipes[0], &ready, 1) != 1)
        abort();
    is_status(rendezvous_find(name, 0, in_ms(1000), &none, &diag), STATUS_SYSTEM,
              "another user's broker is none", &diag);
    kill(other, SIGKILL);
    waitpid(other, NULL, 0);
    close(listener);
    close(pipes[0]);
    close(pipes[1]);
    diag_fini(&diag);
}

/* Welcome a member with this file. */
static void welcome_with(int socket, int file)
{
    const struct mail mail = {.kind = MAIL_WELCOME, .from = TO_BROKER, .number = 1};
    if (!mail_send_file(socket, &mail, file))
        abort();
}

/* A file that is too short, or could be made so, would end the member with SIGBUS later. */
static void test_common_memory(void)
{
    static const char *const what[] = {"memory that may shrink is refused", "an empty one, too"};
    for (int empty = 0; empty < 2; empty++) {
        int ends[2], file = memfd_create("t_rendezvous", MFD_CLOEXEC | MFD_ALLOW_SEALING);
        struct rendezvous *none = NULL;
        struct diag diag;
        diag_init(&diag);
        if (file < 0 || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0 ||
            (!empty && ftruncate(file, (off_t)mail_board_bytes(1)) != 0) ||
            (empty && fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK) != 0))
            abort();
        welcome_with(ends[1], file);
        is_status(rendezvous_join(ends[0], 0, in_ms(1000), &none, &diag), STATUS_SYSTEM,
                  what[empty], &diag);
        close(ends[1]);
        close(file);
        diag_fini(&diag);
    }
    struct board *board;
    int file = -1;
    if (mail_open_board(1, 0, &file, &board) != 0)
        abort();
    tap_ok(ftruncate(file, 0) != 0, "the broker's own cannot shrink");
    tap_ok(!mail_check_file(file, 0, mail_board_bytes(1) + 1) && !mail_check_file(file, -1, 1) &&
               !mail_check_file(file, INT64_MAX, 1),
           "what lies outside is not mapped");
    munmap(board, mail_board_bytes(1));
    close(file);
}

/* Member 1 comes and never reads; member 0 writes to it without end. */
static void test_outboxes(void)
{
    static char letter[RENDEZVOUS_MAX_BYTES];
    struct place place;
    place_open_name(&place);
    struct sockaddr_un address;
    socklen_t length;
    const struct mail hello = {.kind = MAIL_HELLO, .from = 1, .to = TO_BROKER};
    int deaf = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (broker_open(2, &place.broker, &place.diag) ||
        broker_listen(place.broker, place.name, &place.diag))
        abort();
    broker_limit_outboxes(place.broker, 4 << 20);
    if (broker_start(place.broker, &place.diag) || !mail_address(place.name, &address, &length) ||
        connect(deaf, (struct sockaddr *)&address, length) != 0 ||
        send(deaf, &hello, sizeof hello, 0) < 0)
        abort();
    struct member member;
    gather(&member, 1, &place);
    for (int i = 0; i < 4000 && !broker_is_gone(place.broker, 1); i++)
        if (!rendezvous_send(member.rendezvous, 1, letter, sizeof letter))
            break;
    for (int k = 0; k < 500 && !broker_is_gone(place.broker, 1); k++)
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    tap_ok(broker_is_gone(place.broker, 1), "a member that does not read its mail is given up");
    tap_ok(!broker_is_gone(place.broker, 0), "the other one is not");
    part(&member);
    close(deaf);
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
    test_passed(members);
    test_memory(members);
    test_late_memory(members);
    test_limits(members);
    test_leaving(members);
    part(&members[0]);
    part(&members[1]);
    diag_fini(&place.diag);
    test_cut_off();
    test_gone_before();
    test_failing();
    test_names();
    test_other_user();
    test_common_memory();
    test_outboxes();
    test_bad_queues();
    return tap_done();
}
