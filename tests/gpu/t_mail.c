/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_mail.c - what comes over the sockets of a rendezvous and is no mail: from strangers, from a member that lies,
 * from a broker that does. Nothing outside is read or written (which the sanitizers see), and the honest ones go on.
 *
 * All is drawn from SWSIM_SEED (default: the time), which is printed.
 */
#include "gpu/net/mail.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "tests/harness.h"
#include "tests/random_draw.h"
#include "tests/tap.h"

enum { ROUNDS = 300, STRANGERS = 60, MEMBERS = 3 };

static struct random rng;

static int64_t in_ms(int64_t ms)
{
    return mail_clock_ns() + ms * 1000000;
}

static void scribble(void *memory, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        ((unsigned char *)memory)[i] = (unsigned char)below(&rng, 256);
}

/* Small, at a limit, or anything. */
static int64_t some_number(void)
{
    static const int64_t limits[] = {-1,        0,         INT64_MIN, INT64_MAX, INT32_MIN,
                                     INT32_MAX, 1ll << 40, -4096,     4096};
    if (rarely(&rng, 3))
        return below(&rng, 8192);
    if (rarely(&rng, 2))
        return limits[below(&rng, (int)(sizeof limits / sizeof *limits))];
    return (int64_t)hash_mix((uint64_t)below(&rng, 1 << 30));
}

/* ---- a place --------------------------------------------------------------------------------- */

struct place {
    char name[40];
    struct broker *broker;
    struct diag diag;
};

static void place_open(struct place *place, int size)
{
    static int number;
    *place = (struct place){0};
    snprintf(place->name, sizeof place->name, "t_mail-%ld-%d", (long)getpid(), number++);
    diag_init(&place->diag);
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

static int connect_to(const struct place *place)
{
    struct sockaddr_un where;
    socklen_t length;
    int socket_ = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (socket_ < 0 || !mail_address(place->name, &where, &length) ||
        connect(socket_, (struct sockaddr *)&where, length) != 0)
        abort();
    return socket_;
}

struct member {
    const struct place *place;
    int rank;
    pthread_t thread;
    struct rendezvous *rendezvous;
    struct diag diag;
};

static void *come(void *arg)
{
    struct member *member = arg;
    diag_init(&member->diag);
    if (rendezvous_find(member->place->name, member->rank, in_ms(20000), &member->rendezvous,
                        &member->diag))
        abort();
    return NULL;
}

static void start(struct member *member, const struct place *place, int rank)
{
    *member = (struct member){.place = place, .rank = rank};
    if (pthread_create(&member->thread, NULL, come, member) != 0)
        abort();
}

static void part(struct member *member)
{
    rendezvous_leave(member->rendezvous);
    diag_fini(&member->diag);
}

/* The value comes, although the member has been told that a peer is gone: a later wait fails at once. */
static bool hears(struct rendezvous *rendezvous, const char *key, const char *want)
{
    char value[8] = "";
    struct diag diag;
    enum status status = STATUS_VIOLATED;
    diag_init(&diag);
    for (int i = 0; i < 2000 && status == STATUS_VIOLATED; i++) {
        size_t bytes = sizeof value;
        status = rendezvous_get(rendezvous, key, value, &bytes, in_ms(20000), &diag);
        if (status == STATUS_VIOLATED)
            nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
    diag_fini(&diag);
    return status == STATUS_OK && strcmp(value, want) == 0;
}

/* ---- packets --------------------------------------------------------------------------------- */

/* One of any kind, of which more or less is right. Returns its bytes. */
static size_t draw_packet(char *packet, int first_kind)
{
    struct mail mail = {.kind = first_kind + below(&rng, MAIL_PASSED + 2 - first_kind),
                        .from = rarely(&rng, 2) ? 1 : (int32_t)some_number(),
                        .to = rarely(&rng, 4) ? (int32_t)some_number() : below(&rng, 5) - 2,
                        .number = (int32_t)some_number()};
    size_t bytes = (size_t)below(&rng, rarely(&rng, 20) ? RENDEZVOUS_MAX_BYTES : 200);
    char *payload = packet + sizeof mail;
    int64_t number = rarely(&rng, 2) ? below(&rng, 4) : some_number(); /* or an offset */
    scribble(payload, bytes);
    if (mail.kind >= MAIL_QUEUE && bytes >= sizeof number)
        memcpy(payload, &number, sizeof number);
    if (mail.kind == MAIL_PUT && bytes > 8 && rarely(&rng, 2))
        memcpy(payload, "key", 4);
    memcpy(packet, &mail, sizeof mail);
    return sizeof mail + bytes;
}

/* Connections whose first packet is no hello of a missing rank. */
static void test_strangers(void)
{
    static char packet[PACKET_BYTES];
    struct place place;
    struct member members[2];
    place_open(&place, 2);
    start(&members[0], &place, 0);
    for (int i = 0; i < STRANGERS; i++) {
        int stranger = connect_to(&place);
        size_t bytes = draw_packet(packet, rarely(&rng, 2) ? MAIL_HELLO : MAIL_WELCOME);
        struct mail mail;
        memcpy(&mail, packet, sizeof mail);
        if (mail.kind == MAIL_HELLO && (mail.from == 0 || mail.from == 1))
            mail.from = 2; /* rank 0 may still be on its way, too */
        memcpy(packet, &mail, sizeof mail);
        (void)send(stranger, packet, bytes, MSG_NOSIGNAL);
        close(stranger);
    }
    start(&members[1], &place, 1);
    for (int i = 0; i < 2; i++)
        pthread_join(members[i].thread, NULL);
    tap_ok(!broker_is_gone(place.broker, 1), "%d strangers, and the right one is heard", STRANGERS);
    for (int i = 0; i < 2; i++)
        part(&members[i]);
    place_close(&place);
}

/* A member that says hello, and knows nothing of manners. */
static int come_in(const struct place *place, int rank)
{
    const struct mail hello = {.kind = MAIL_HELLO, .from = rank, .to = TO_BROKER};
    int liar = connect_to(place);
    if (send(liar, &hello, sizeof hello, MSG_NOSIGNAL) != sizeof hello)
        abort();
    return liar;
}

/* Mail from the other end is dropped. */
static void drain(int socket)
{
    static char packet[PACKET_BYTES];
    while (recv(socket, packet, sizeof packet, MSG_DONTWAIT) > 0)
        continue;
}

static void test_liar(void)
{
    static char packet[PACKET_BYTES];
    struct place place;
    struct member members[2];
    place_open(&place, MEMBERS);
    start(&members[0], &place, 0);
    start(&members[1], &place, 2);
    int liar = come_in(&place, 1);
    for (int i = 0; i < 2; i++)
        pthread_join(members[i].thread, NULL);
    for (int round = 0; round < ROUNDS; round++) {
        size_t length = draw_packet(packet, MAIL_HELLO);
        struct mail mail;
        memcpy(&mail, packet, sizeof mail);
        if (mail.kind == MAIL_BYE)
            continue;
        if (send(liar, packet, length, MSG_NOSIGNAL) < 0)
            abort();
        drain(liar);
    }
    bool sent = rendezvous_put(members[1].rendezvous, "true", "yes", 4, &members[1].diag) == 0;
    tap_ok(sent && hears(members[0].rendezvous, "true", "yes"),
           "%d packets of a liar, and the others understand each other", ROUNDS);
    tap_ok(!broker_is_gone(place.broker, 1), "a peer whose packets are long enough stays");
    close(liar);
    for (int i = 0; i < 1000 && !broker_is_gone(place.broker, 1); i++)
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    tap_ok(broker_is_gone(place.broker, 1), "until it hangs up");
    for (int i = 0; i < 2; i++)
        part(&members[i]);
    place_close(&place);
}

/* ---- a broker that lies ------------------------------------------------------------------------- */

/* A member whose other end is `*broker`. `number`: what the welcome says of the members. */
static enum status join(int number, int *broker, struct rendezvous **out, struct diag *diag)
{
    int ends[2], file;
    struct board *board;
    struct mail welcome = {.kind = MAIL_WELCOME, .number = number};
    struct iovec part_ = {&welcome, sizeof welcome};
    union {
        char bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } control = {{0}};
    struct msghdr message = {.msg_iov = &part_,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = sizeof control.bytes};
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0 ||
        mail_open_board(MEMBERS, mail_clock_ns(), &file, &board) != 0)
        abort();
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(header), &file, sizeof file);
    if (sendmsg(ends[0], &message, 0) < 0)
        abort();
    munmap(board, mail_board_bytes(MEMBERS));
    close(file);
    *broker = ends[0];
    return rendezvous_join(ends[1], 1, in_ms(20000), out, diag);
}

static void test_lying_broker(void)
{
    static char packet[PACKET_BYTES];
    struct rendezvous *member = NULL;
    struct diag diag;
    int broker;
    diag_init(&diag);
    for (int number = -1; number <= 1; number++) {
        tap_is_int(join(number, &broker, &member, &diag), STATUS_SYSTEM,
                   "rank 1 is no member of %d", number);
        close(broker);
    }
    if (join(MEMBERS, &broker, &member, &diag) != STATUS_OK)
        abort();
    for (int round = 0; round < ROUNDS; round++) {
        size_t length = draw_packet(packet, MAIL_PUT);
        if (send(broker, packet, length, MSG_NOSIGNAL) < 0)
            break; /* a packet too short is the end */
        drain(broker);
    }
    struct mail mail = {.kind = MAIL_PUT};
    memcpy(packet, &mail, sizeof mail);
    memcpy(packet + sizeof mail, "last\0word", 10);
    tap_ok(send(broker, packet, sizeof mail + 10, MSG_NOSIGNAL) > 0, "%d packets of a lying broker",
           ROUNDS);
    tap_ok(hears(member, "last", "word"), "the member still hears");
    drain(broker);
    close(broker);
    rendezvous_leave(member);
    diag_fini(&diag);
}

int main(void)
{
    rng.seed = env_seed();
    test_strangers();
    test_liar();
    test_lying_broker();
    return tap_done();
}
