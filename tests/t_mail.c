/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_mail.c - what comes over the sockets of a rendezvous and is no mail: from pending_peers at the listener, from a
 * member that lies, from a broker that does. Nothing outside is read or written (which the sanitizers see), and
 * the honest ones go on.
 *
 * All is drawn from SWSIM_SEED (default: the time), which is printed.
 */
#include "gpu/net/mail.h"

#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "harness.h"
#include "random_draw.h"
#include "tap.h"

enum { ROUNDS = 300, HANDSHAKES = 60, MEMBERS = 3 };

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

/* ---- news of the board ----------------------------------------------------------------------- */

/* A board that ends with its last member. */
static void test_news(void)
{
    enum { SIZE = 5 };
    int taken = 0;
    struct board *board = calloc(1, sizeof *board + SIZE * sizeof *board->members);
    for (int round = 0; board && round < 20 * ROUNDS; round++) {
        int count = below(&rng, SIZE + 2);
        size_t bytes = sizeof(struct mail_news) + (size_t)count * sizeof(struct mail_news_member);
        struct mail_news *news = malloc(bytes);
        if (!news)
            abort();
        scribble(news, bytes);
        news->first = rarely(&rng, 3) ? (int32_t)some_number() : below(&rng, SIZE + 1);
        news->count = rarely(&rng, 3) ? (int32_t)some_number() : count;
        if (mail_check_news(news, bytes - (rarely(&rng, 5) ? 1 : 0), SIZE)) {
            mail_read_news(board, news, below(&rng, SIZE));
            taken++;
        }
        free(news);
    }
    free(board);
    tap_ok(taken > 0 && taken < 20 * ROUNDS, "%d of %d news are of members that there are", taken,
           20 * ROUNDS);
}

/* ---- a place --------------------------------------------------------------------------------- */

struct place {
    struct broker *broker;
    struct listener *listener;
    struct meeting_place from; /* as it looks from another machine */
    struct diag diag;
};

static void place_open(struct place *place, int size)
{
    static int number;
    char name[40];
    snprintf(name, sizeof name, "t_mail-%ld-%d", (long)getpid(), number++);
    *place = (struct place){0};
    diag_init(&place->diag);
    if (broker_open(size, &place->broker, &place->diag) ||
        listener_open(name, "127.0.0.1", &place->listener, &place->diag) ||
        broker_open_listener(place->broker, place->listener, 0, &place->diag) ||
        broker_start(place->broker, &place->diag))
        abort();
    place->from = *listener_place(place->listener);
    snprintf(place->from.machine, sizeof place->from.machine, "another");
}

static void place_close(struct place *place)
{
    broker_close(place->broker);
    listener_close(place->listener);
    diag_fini(&place->diag);
}

static int connect_to(const struct meeting_place *place)
{
    struct sockaddr_in where = {.sin_family = AF_INET,
                                .sin_port = place->port,
                                .sin_addr = {.s_addr = place->addresses[0]}};
    struct timeval limit = {.tv_sec = 10};
    int far = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    setsockopt(far, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    if (far < 0 || connect(far, (struct sockaddr *)&where, sizeof where) != 0)
        abort();
    return far;
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
    const struct meeting_place *where =
        member->rank == 0 ? listener_place(member->place->listener) : &member->place->from;
    diag_init(&member->diag);
    if (rendezvous_reach(where, 0, member->rank, in_ms(20000), &member->rendezvous, &member->diag))
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

/* The value comes, although the member has been told that a peer is gone, or that values it stores for
   others are lost: a later wait fails at once. */
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

/* ---- pending_peers ------------------------------------------------------------------------------- */

/* A handshake with some of its bytes others, or missing, or too many; it knows the secret, but for one byte. */
static void handshake_wrongly(const struct place *place)
{
    struct {
        struct handshake handshake;
        char more[40];
    } words = {.handshake = {.magic = HANDSHAKE_MAGIC, .rank = 1}};
    char *bytes = (char *)&words;
    int far = connect_to(&place->from);
    memcpy(words.handshake.secret, place->from.secret, sizeof words.handshake.secret);
    words.handshake.secret[below(&rng, MEETING_SECRET)] ^= (char)(1 + below(&rng, 255));
    if (rarely(&rng, 3))
        scribble(&words, sizeof words);
    if (rarely(&rng, 3))
        words.handshake.rank = (int32_t)some_number();
    for (int left = below(&rng, (int)sizeof words), some; left > 0; left -= some, bytes += some) {
        some = 1 + below(&rng, left);
        if (send(far, bytes, (size_t)some, MSG_NOSIGNAL) < 0)
            break; /* turned away already */
    }
    close(far);
}

static void test_knocks(void)
{
    struct place place;
    struct member members[2];
    place_open(&place, 2);
    start(&members[0], &place, 0);
    for (int i = 0; i < HANDSHAKES; i++)
        handshake_wrongly(&place);
    start(&members[1], &place, 1);
    for (int i = 0; i < 2; i++)
        pthread_join(members[i].thread, NULL);
    tap_ok(!broker_is_gone(place.broker, 1), "%d wrong handshakes, and the right one is heard",
           HANDSHAKES);
    for (int i = 0; i < 2; i++)
        part(&members[i]);
    place_close(&place);
}

/* ---- packets --------------------------------------------------------------------------------- */

/* One of any kind, of which more or less is right. Returns its bytes. */
static size_t draw_packet(char *packet, int first_kind)
{
    struct mail mail = {.kind = first_kind + below(&rng, MAIL_STORE + 2 - first_kind),
                        .from = rarely(&rng, 2) ? 1 : (int32_t)some_number(),
                        .to = rarely(&rng, 4) ? (int32_t)some_number() : below(&rng, 5) - 2,
                        .number = (int32_t)some_number()};
    size_t bytes = (size_t)below(&rng, rarely(&rng, 20) ? RENDEZVOUS_MAX_BYTES : 200);
    char *payload = packet + sizeof mail;
    struct mail_range range = {.id = (uint64_t)below(&rng, 4), .offset = some_number()};
    range.bytes = rarely(&rng, 2) ? some_number() : (int64_t)(bytes - sizeof range);
    scribble(payload, bytes);
    if (mail.kind >= MAIL_FETCH && bytes >= sizeof range)
        memcpy(payload, &range, sizeof range);
    if (mail.kind == MAIL_PUT && bytes > 8 && rarely(&rng, 2))
        memcpy(payload, "key", 4);
    memcpy(packet, &mail, sizeof mail);
    return sizeof mail + bytes;
}

/* A member through the listener that knows the secret, and nothing of manners. */
static int come_in(const struct place *place, int rank)
{
    struct handshake handshake = {.magic = HANDSHAKE_MAGIC, .rank = rank};
    struct handshake_answer answer;
    struct {
        uint32_t length;
        struct mail mail;
    } hello = {sizeof hello.mail, {.kind = MAIL_HELLO, .from = rank, .to = TO_BROKER}};
    int far = connect_to(&place->from);
    memcpy(handshake.secret, place->from.secret, sizeof handshake.secret);
    if (!mail_write(far, &handshake, sizeof handshake) || !mail_read(far, &answer, sizeof answer) ||
        !mail_write(far, &hello, sizeof hello))
        abort();
    return far;
}

/* Mail from the broker is dropped. */
static void forget_news(int far)
{
    char bytes[4096];
    while (recv(far, bytes, sizeof bytes, MSG_DONTWAIT) > 0)
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
    int far = come_in(&place, 1);
    for (int i = 0; i < 2; i++)
        pthread_join(members[i].thread, NULL);
    for (int round = 0; round < ROUNDS; round++) {
        uint32_t length = (uint32_t)draw_packet(packet, MAIL_HELLO);
        struct mail mail;
        memcpy(&mail, packet, sizeof mail);
        if (mail.kind == MAIL_BYE)
            continue;
        if (!mail_write(far, &length, sizeof length) || !mail_write(far, packet, length))
            abort();
        forget_news(far);
    }
    bool sent = rendezvous_put(members[1].rendezvous, "true", "yes", 4, &members[1].diag) == 0;
    tap_ok(sent && hears(members[0].rendezvous, "true", "yes"),
           "%d packets of a liar, and the others understand each other", ROUNDS);
    tap_ok(!broker_is_gone(place.broker, 1), "a peer with right lengths stays");
    close(far);
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

static void drain(int broker)
{
    static char packet[PACKET_BYTES];
    while (recv(broker, packet, sizeof packet, MSG_DONTWAIT) > 0)
        continue;
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
    test_news();
    test_knocks();
    test_liar();
    test_lying_broker();
    return tap_done();
}
