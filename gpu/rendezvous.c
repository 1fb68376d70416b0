/*
 * rendezvous.c - a member's end of a rendezvous: a thread reads its mail; see rendezvous.h.
 *
 * What the others do that this member may wait for (values, barriers, deaths) the reader writes down
 * under `lock` and wakes whoever waits. Letters go to the listener under `listening`, so that one that
 * is being taken away is not running any more. Lock order: listening before any lock of the listener's.
 *
 * Of a far member the reader also tells the hub what the board says of it, and gives others the bytes
 * of its memory they ask for.
 */
#include "gpu/mail.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "gpu/door.h"

#ifndef FALLOC_FL_KEEP_SIZE
#include <linux/falloc.h>
#endif

enum { TRY_AGAIN_NS = 20000000, LOOK_NS = 50000000, CONNECT_MS = 3000, BYE_MS = 3000, CLOCKS = 8 };
enum { RANGE_BYTES = RENDEZVOUS_MAX_BYTES - (int)sizeof(struct mail_range) };

struct value {
    struct value *next;
    size_t bytes; /* of key, 0 and data */
    char text[];
};

struct mapping {
    struct mapping *next;
    int64_t offset;
    size_t bytes;
    void *address;
};

/* Bytes that have been asked for. */
struct fetch {
    struct fetch *next;
    uint64_t id;
    char *to;
    size_t bytes, have;
    bool refused;
};

struct rendezvous {
    int rank, size, socket, memory;
    bool far;                /* from the hub */
    pthread_mutex_t sending; /* far: a packet is being written */
    atomic_bool leaving;
    struct board *board;
    pthread_t reader;
    bool started;
    atomic_int wish, counted;
    atomic_bool located;       /* it has said on which machine it is */
    char packet[PACKET_BYTES]; /* being read */

    pthread_mutex_t listening;
    rendezvous_listener *listener;
    void *listener_arg;

    pthread_mutex_t lock; /* of the rest */
    pthread_cond_t changed;
    struct value *values;
    struct mapping *mappings;
    struct fetch *fetches; /* under way */
    uint64_t fetched;      /* so far: the last id */
    uint64_t barriers;     /* that all were in */
    int gone, left;        /* the first; -1: nobody */
};

/* ---- sending --------------------------------------------------------------------------------- */

static bool send_near(const struct rendezvous *r, const struct mail *mail, const void *data,
                      size_t bytes)
{
    struct iovec parts[] = {{(void *)(uintptr_t)mail, sizeof *mail},
                            {(void *)(uintptr_t)data, bytes}};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = bytes ? 2 : 1};
    ssize_t sent;
    do
        sent = sendmsg(r->socket, &message, MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    return sent >= 0;
}

static bool send_far(struct rendezvous *r, const struct mail *mail, const void *data, size_t bytes)
{
    struct {
        uint32_t length;
        struct mail mail;
    } head = {(uint32_t)(sizeof *mail + bytes), *mail};
    pthread_mutex_lock(&r->sending);
    bool sent = mail_write(r->socket, &head, sizeof head) && mail_write(r->socket, data, bytes);
    pthread_mutex_unlock(&r->sending);
    return sent;
}

static bool send_mail(struct rendezvous *r, const struct mail *mail, const void *data, size_t bytes)
{
    if (bytes > RENDEZVOUS_MAX_BYTES)
        return false;
    return r->far ? send_far(r, mail, data, bytes) : send_near(r, mail, data, bytes);
}

/* ---- memory that is not mapped --------------------------------------------------------------- */

static bool send_range(struct rendezvous *r, enum mail_kind kind, int to,
                       const struct mail_range *range, const void *data)
{
    const struct mail mail = {.kind = (int32_t)kind, .from = r->rank, .to = to};
    size_t bytes = kind == MAIL_FETCH ? 0 : (size_t)range->bytes;
    char packet[RENDEZVOUS_MAX_BYTES];
    memcpy(packet, range, sizeof *range);
    if (data && bytes > 0)
        memcpy(packet + sizeof *range, data, bytes);
    return send_mail(r, &mail, packet, sizeof *range + bytes);
}

/* Is there memory of this member at all of the range? */
static bool has_range(const struct rendezvous *r, const struct mail_range *range)
{
    return range->offset >= (int64_t)mail_board_bytes(r->size) && range->bytes >= 0 &&
           range->bytes <= atomic_load(&r->board->used_bytes) - range->offset;
}

/* Somebody wants bytes of ours: pieces of them, or an empty one if they are not to be had. An end of the
   connection is noticed elsewhere. */
static void give(struct rendezvous *r, int to, const struct mail_range *range)
{
    char piece[RANGE_BYTES];
    struct mail_range part = {.id = range->id, .offset = 0};
    bool good = has_range(r, range);
    while (good && part.offset < range->bytes) {
        int64_t left = range->bytes - part.offset;
        part.bytes = left < RANGE_BYTES ? left : RANGE_BYTES;
        good = pread(r->memory, piece, (size_t)part.bytes, (off_t)(range->offset + part.offset)) ==
                   part.bytes &&
               send_range(r, MAIL_DATA, to, &part, piece);
        part.offset += part.bytes;
    }
    part.bytes = 0;
    if (!good)
        (void)send_range(r, MAIL_DATA, to, &part, piece);
}

/* Somebody has computed bytes of ours. */
static void keep(struct rendezvous *r, const struct mail_range *range, const char *data)
{
    if (!has_range(r, range) ||
        pwrite(r->memory, data, (size_t)range->bytes, (off_t)range->offset) != range->bytes) {
        pthread_mutex_lock(&r->lock);
        if (r->gone < 0)
            r->gone = r->size; /* what was computed is lost, and with it the run */
        pthread_cond_broadcast(&r->changed);
        pthread_mutex_unlock(&r->lock);
    }
}

/* Bytes that were asked for; with the lock held. Who asked may have given up. */
static void take_data(struct rendezvous *r, const struct mail_range *range, const char *data)
{
    for (struct fetch *at = r->fetches; at; at = at->next) {
        if (at->id != range->id)
            continue;
        if (range->bytes == 0 || range->offset != (int64_t)at->have ||
            (size_t)range->bytes > at->bytes - at->have) {
            at->refused = true;
            return;
        }
        memcpy(at->to + at->have, data, (size_t)range->bytes);
        at->have += (size_t)range->bytes;
    }
}

/* ---- the reader ------------------------------------------------------------------------------ */

static void keep_value(struct rendezvous *r, const char *text, size_t bytes)
{
    struct value *value = malloc(sizeof *value + bytes);
    if (!value)
        return; /* who asks for it runs into its deadline */
    value->bytes = bytes;
    memcpy(value->text, text, bytes);
    value->next = r->values;
    r->values = value;
}

static void note_end(struct rendezvous *r, int *which, int who)
{
    if (*which < 0)
        *which = who;
    pthread_cond_broadcast(&r->changed);
}

static void hear(struct rendezvous *r, const struct mail *mail, const char *data, size_t bytes)
{
    pthread_mutex_lock(&r->listening);
    if (r->listener)
        r->listener(r->listener_arg, mail->from, data, bytes);
    pthread_mutex_unlock(&r->listening);
}

/* Bytes from member to member; false: it is no such mail. */
static bool take_range(struct rendezvous *r, const struct mail *mail, const char *data,
                       size_t bytes)
{
    struct mail_range range;
    if (mail->kind != MAIL_FETCH && mail->kind != MAIL_DATA && mail->kind != MAIL_STORE)
        return false;
    if (bytes < sizeof range)
        return true;
    memcpy(&range, data, sizeof range);
    bool whole = range.bytes >= 0 && (size_t)range.bytes == bytes - sizeof range;
    if (mail->kind == MAIL_FETCH)
        give(r, mail->from, &range);
    else if (mail->kind == MAIL_STORE && whole)
        keep(r, &range, data + sizeof range);
    else if (whole) {
        pthread_mutex_lock(&r->lock);
        take_data(r, &range, data + sizeof range);
        pthread_cond_broadcast(&r->changed);
        pthread_mutex_unlock(&r->lock);
    }
    return true;
}

static void take_news(struct rendezvous *r, const char *data, size_t bytes)
{
    union {
        struct mail_news news;
        char room[sizeof(struct mail_news) + NEWS_MEMBERS * sizeof(struct mail_news_member)];
    } all;
    if (!r->far || bytes > sizeof all)
        return;
    memcpy(&all, data, bytes);
    if (mail_check_news(&all.news, bytes, r->size))
        mail_read_news(r->board, &all.news, r->rank);
}

static void take(struct rendezvous *r, const struct mail *mail, const char *data, size_t bytes)
{
    if (mail->kind == MAIL_LETTER) {
        hear(r, mail, data, bytes);
        return;
    }
    if (take_range(r, mail, data, bytes))
        return;
    pthread_mutex_lock(&r->lock);
    switch (mail->kind) {
    case MAIL_PUT: keep_value(r, data, bytes); break;
    case MAIL_BARRIER: r->barriers++; break;
    case MAIL_WISH: atomic_store(&r->wish, mail->number); break;
    case MAIL_LEFT: note_end(r, &r->left, mail->from); break;
    case MAIL_GONE: note_end(r, &r->gone, mail->from); break;
    case MAIL_BOARD: take_news(r, data, bytes); break;
    default: break;
    }
    pthread_cond_broadcast(&r->changed);
    pthread_mutex_unlock(&r->lock);
}

static ssize_t read_near(struct rendezvous *r)
{
    ssize_t got;
    do
        got = recv(r->socket, r->packet, sizeof r->packet, 0);
    while (got < 0 && errno == EINTR);
    return got;
}

static ssize_t read_far(struct rendezvous *r)
{
    uint32_t length;
    if (!mail_read(r->socket, &length, sizeof length) || length > sizeof r->packet ||
        !mail_read(r->socket, r->packet, length))
        return -1;
    return (ssize_t)length;
}

/* What the board says of this member. */
static void tell_news(struct rendezvous *r)
{
    const struct mail mail = {.kind = MAIL_BOARD, .from = r->rank, .to = TO_HUB};
    union {
        struct mail_news news;
        char room[sizeof(struct mail_news) + sizeof(struct mail_news_member)];
    } own;
    mail_write_news(r->board, r->rank, 1, &own.news);
    (void)send_mail(r, &mail, &own, sizeof own); /* its end is seen when reading */
}

/* Until there is something to read, news every few milliseconds. After the goodbye the hub has so long
   to say its own; false: it has not. */
static bool await_mail(struct rendezvous *r)
{
    int64_t told_ns = 0, bye_ns = 0;
    for (;;) {
        struct pollfd mail = {.fd = r->socket, .events = POLLIN};
        int64_t now_ns = mail_clock_ns();
        bool leaving = atomic_load(&r->leaving);
        if (leaving && bye_ns == 0)
            bye_ns = now_ns;
        if (leaving && now_ns - bye_ns > BYE_MS * INT64_C(1000000))
            return false;
        if (!leaving && now_ns - told_ns >= NEWS_MS * INT64_C(1000000)) {
            tell_news(r);
            told_ns = now_ns;
        }
        if (poll(&mail, 1, NEWS_MS) > 0)
            return true;
    }
}

static void *read_mail(void *arg)
{
    struct rendezvous *r = arg;
    struct mail mail;
    pthread_setname_np(pthread_self(), "rendezvous");
    while (!r->far || await_mail(r)) {
        ssize_t got = r->far ? read_far(r) : read_near(r);
        if (got < (ssize_t)sizeof mail)
            break;
        memcpy(&mail, r->packet, sizeof mail);
        take(r, &mail, r->packet + sizeof mail, (size_t)got - sizeof mail);
    }
    pthread_mutex_lock(&r->lock);
    note_end(r, &r->gone, r->size);
    pthread_mutex_unlock(&r->lock);
    return NULL;
}

/* ---- join and leave -------------------------------------------------------------------------- */

static enum status refused(struct diag *diag, int rank, const char *what)
{
    return diag_error(diag, STATUS_SYSTEM, "rank %d cannot meet the others: %s: %s", rank, what,
                      strerror(errno));
}

/* A wait for the socket; a far one is read by the byte. */
static void limit_reading(const struct rendezvous *r, int64_t deadline_ns)
{
    int64_t left_ns = deadline_ns == RENDEZVOUS_FOREVER ? 0 : deadline_ns - mail_clock_ns();
    if (deadline_ns != RENDEZVOUS_FOREVER && left_ns < 1000)
        left_ns = 1000; /* 0 would be forever */
    struct timeval limit = {.tv_sec = left_ns / 1000000000, .tv_usec = left_ns / 1000 % 1000000};
    setsockopt(r->socket, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
}

/* The hub's first mail; with it, near, comes the file. */
static ssize_t receive_welcome(struct rendezvous *r, struct mail *mail)
{
    struct iovec part = {mail, sizeof *mail};
    union {
        char bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } control;
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = sizeof control.bytes};
    uint32_t length;
    if (r->far)
        return mail_read(r->socket, &length, sizeof length) && length == sizeof *mail &&
                       mail_read(r->socket, mail, sizeof *mail)
                   ? (ssize_t)sizeof *mail
                   : -1;
    ssize_t got = recvmsg(r->socket, &message, MSG_CMSG_CLOEXEC);
    struct cmsghdr *header = got == (ssize_t)sizeof *mail ? CMSG_FIRSTHDR(&message) : NULL;
    if (header && header->cmsg_type == SCM_RIGHTS)
        memcpy(&r->memory, CMSG_DATA(header), sizeof(int));
    return got;
}

/* The welcome, or why there is none. */
static enum status await_welcome(struct rendezvous *r, int64_t deadline_ns, struct diag *diag)
{
    struct mail mail = {0};
    limit_reading(r, deadline_ns);
    errno = 0;
    ssize_t got = receive_welcome(r, &mail);
    int error = errno;
    limit_reading(r, RENDEZVOUS_FOREVER);
    if (got < 0 && (error == EAGAIN || error == EWOULDBLOCK))
        return diag_error(diag, STATUS_LIMIT, "rank %d: not all ranks came in time", r->rank);
    if (got == sizeof mail && mail.kind == MAIL_GONE)
        return diag_error(diag, STATUS_VIOLATED, "rank %d is gone before it came", mail.from);
    if (got != sizeof mail || mail.kind != MAIL_WELCOME || (!r->far && r->memory < 0))
        return diag_error(diag, STATUS_SYSTEM, "rank %d: whoever started the ranks is gone",
                          r->rank);
    r->size = mail.number;
    return STATUS_OK;
}

/* The common file, or one of its own with the same time 0. */
static enum status open_board(struct rendezvous *r, int64_t base_ns, struct diag *diag)
{
    if (r->far) {
        errno = mail_open_board(r->size, base_ns, &r->memory, &r->board);
        return errno ? refused(diag, r->rank, "memory") : STATUS_OK;
    }
    void *board =
        mmap(NULL, mail_board_bytes(r->size), PROT_READ | PROT_WRITE, MAP_SHARED, r->memory, 0);
    if (board == MAP_FAILED)
        return refused(diag, r->rank, "mmap");
    r->board = board;
    return STATUS_OK;
}

/* Time 0 of the hub's board on the clock of this machine: of a few questions the one that was answered
   fastest says it best, halfway between asking and answer (Cristian 1989). */
static bool ask_time(struct rendezvous *r, int64_t *base_ns)
{
    const struct mail question = {.kind = MAIL_CLOCK, .from = r->rank, .to = TO_HUB};
    int64_t fastest_ns = INT64_MAX;
    struct {
        uint32_t length;
        struct mail mail;
        struct mail_moment moment;
    } __attribute__((packed)) answer;
    for (int i = 0; i < CLOCKS; i++) {
        int64_t asked_ns = mail_clock_ns();
        if (!send_mail(r, &question, NULL, 0) || !mail_read(r->socket, &answer, sizeof answer) ||
            answer.mail.kind != MAIL_CLOCK)
            return false;
        int64_t took_ns = mail_clock_ns() - asked_ns;
        if (took_ns >= fastest_ns)
            continue;
        fastest_ns = took_ns;
        *base_ns = asked_ns + took_ns / 2 - answer.moment.since_base_ns;
    }
    return true;
}

/* Without a socket yet. */
static enum status make(int rank, struct rendezvous **out, struct diag *diag)
{
    struct rendezvous *r = calloc(1, sizeof *r);
    if (!r)
        return diag_no_memory(diag);
    r->rank = rank;
    r->socket = r->memory = r->gone = r->left = -1;
    errno = mail_init_condition(&r->changed);
    if (errno) {
        free(r);
        return refused(diag, rank, "a condition");
    }
    pthread_mutex_init(&r->lock, NULL); /* with default attributes these cannot fail */
    pthread_mutex_init(&r->listening, NULL);
    pthread_mutex_init(&r->sending, NULL);
    *out = r;
    return STATUS_OK;
}

/* The socket is there: come to the meeting. */
static enum status meet(struct rendezvous *r, int64_t deadline_ns, struct rendezvous **out,
                        struct diag *diag)
{
    const struct mail hello = {.kind = MAIL_HELLO, .from = r->rank, .to = TO_HUB};
    int64_t base_ns = 0;
    enum status status = STATUS_OK;
    limit_reading(r, deadline_ns);
    if ((r->far && !ask_time(r, &base_ns)) || !send_mail(r, &hello, NULL, 0))
        status = refused(diag, r->rank, "send");
    if (!status)
        status = await_welcome(r, deadline_ns, diag);
    if (!status)
        status = open_board(r, base_ns, diag);
    if (!status) {
        errno = mail_start_thread(&r->reader, read_mail, r);
        r->started = !errno;
        status = errno ? refused(diag, r->rank, "a thread") : STATUS_OK;
    }
    if (status) {
        rendezvous_leave(r);
        return status;
    }
    *out = r;
    return STATUS_OK;
}

enum status rendezvous_join(int socket, int rank, int64_t deadline_ns, struct rendezvous **out,
                            struct diag *diag)
{
    struct rendezvous *r;
    enum status status = make(rank, &r, diag);
    if (status) {
        close(socket);
        return status;
    }
    r->socket = socket;
    return meet(r, deadline_ns, out, diag);
}

enum status rendezvous_find(const char *name, int rank, int64_t deadline_ns,
                            struct rendezvous **out, struct diag *diag)
{
    struct sockaddr_un address;
    socklen_t length;
    if (!mail_address(name, &address, &length))
        return diag_error(diag, STATUS_USAGE,
                          "'%s' is no name to meet under: expected 1 to %d characters", name,
                          RENDEZVOUS_MAX_NAME);
    int socket_ = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (socket_ < 0)
        return refused(diag, rank, "a socket");
    while (connect(socket_, (struct sockaddr *)&address, length) != 0) {
        if (errno != ECONNREFUSED && errno != ENOENT && errno != EINTR && errno != EAGAIN) {
            close(socket_);
            return refused(diag, rank, name);
        }
        if (mail_clock_ns() > deadline_ns) {
            close(socket_);
            return diag_error(diag, STATUS_LIMIT,
                              "rank %d: rank 0 did not come to the meeting place '%s' in time",
                              rank, name);
        }
        nanosleep(&(struct timespec){.tv_nsec = TRY_AGAIN_NS}, NULL);
    }
    return rendezvous_join(socket_, rank, deadline_ns, out, diag);
}

/* ---- from another machine -------------------------------------------------------------------- */

/* -1: nobody is there. */
static int connect_to(uint32_t address, uint16_t port)
{
    const struct sockaddr_in where = {
        .sin_family = AF_INET, .sin_port = port, .sin_addr = {.s_addr = address}};
    struct timeval limit = {.tv_sec = CONNECT_MS / 1000};
    int far = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (far < 0)
        return -1;
    mail_set_up_far(far);
    setsockopt(far, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit); /* of connect, too */
    setsockopt(far, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    if (connect(far, (const struct sockaddr *)&where, sizeof where) == 0)
        return far;
    close(far);
    return -1;
}

/* Say the secret and hear that it is the right hub. */
static bool knock(int far, const struct meeting_place *place, int rank)
{
    struct knock words = {.magic = KNOCK_MAGIC, .rank = rank};
    struct knock_answer answer;
    struct timeval forever = {0};
    memcpy(words.secret, place->secret, sizeof words.secret);
    if (!mail_write(far, &words, sizeof words) || !mail_read(far, &answer, sizeof answer) ||
        !mail_same_secret(answer.secret, place->answer))
        return false;
    setsockopt(far, SOL_SOCKET, SO_SNDTIMEO, &forever, sizeof forever);
    return true;
}

/* One of the hub's addresses can be reached from here; it may not open before it has done with an
   earlier run. */
static int reach(const struct meeting_place *place, int rank, int64_t deadline_ns)
{
    do {
        for (int i = 0; i < place->address_count && i < MEETING_ADDRESSES; i++) {
            int far = connect_to(place->addresses[i], place->port);
            if (far >= 0 && knock(far, place, rank))
                return far;
            if (far >= 0)
                close(far);
        }
        nanosleep(&(struct timespec){.tv_nsec = TRY_AGAIN_NS}, NULL);
    } while (mail_clock_ns() < deadline_ns);
    return -1;
}

enum status rendezvous_reach(const struct meeting_place *place, int run, int rank,
                             int64_t deadline_ns, struct rendezvous **out, struct diag *diag)
{
    char name[RENDEZVOUS_MAX_NAME + 1], machine[sizeof place->machine];
    struct rendezvous *r;
    door_machine(machine);
    if (strcmp(machine, place->machine) == 0) {
        door_run_name(place, run, name);
        return rendezvous_find(name, rank, deadline_ns, out, diag);
    }
    enum status status = make(rank, &r, diag);
    if (status)
        return status;
    r->far = true;
    r->socket = reach(place, rank, deadline_ns);
    if (r->socket >= 0)
        return meet(r, deadline_ns, out, diag);
    rendezvous_leave(r);
    return diag_error(diag, STATUS_LIMIT,
                      "rank %d: the machine of rank 0 was not reached in time at any of its %d "
                      "addresses, port %d",
                      rank, (int)place->address_count, ntohs(place->port));
}

/* ---- leave ----------------------------------------------------------------------------------- */

/* A near reader stops at once. A far one goes on until the hub has heard the goodbye and hangs up: bytes
   that nobody reads any more would take back those that were sent. */
static void say_goodbye(struct rendezvous *r)
{
    struct mail bye = {.kind = MAIL_BYE, .from = r->rank, .to = TO_HUB};
    (void)send_mail(r, &bye, NULL, 0); /* else it is gone, which is as well */
    atomic_store(&r->leaving, true);
    shutdown(r->socket, r->far ? SHUT_WR : SHUT_RD);
    pthread_join(r->reader, NULL);
}

void rendezvous_leave(struct rendezvous *r)
{
    if (!r)
        return;
    if (r->started)
        say_goodbye(r);
    if (r->socket >= 0)
        close(r->socket);
    while (r->values) {
        struct value *value = r->values;
        r->values = value->next;
        free(value);
    }
    while (r->mappings) {
        struct mapping *mapping = r->mappings;
        r->mappings = mapping->next;
        munmap(mapping->address, mapping->bytes);
        free(mapping);
    }
    if (r->board)
        munmap(r->board, mail_board_bytes(r->size));
    if (r->memory >= 0)
        close(r->memory);
    pthread_cond_destroy(&r->changed);
    pthread_mutex_destroy(&r->lock);
    pthread_mutex_destroy(&r->listening);
    pthread_mutex_destroy(&r->sending);
    free(r);
}

/* ---- who is here ----------------------------------------------------------------------------- */

int rendezvous_rank(const struct rendezvous *r)
{
    return r->rank;
}

int rendezvous_size(const struct rendezvous *r)
{
    return r->size;
}

struct board *rendezvous_board(const struct rendezvous *r)
{
    return r->board;
}

const atomic_int *rendezvous_wish(const struct rendezvous *r)
{
    return &r->wish;
}

int rendezvous_gone(struct rendezvous *r)
{
    pthread_mutex_lock(&r->lock);
    int gone = r->gone;
    pthread_mutex_unlock(&r->lock);
    return gone;
}

int rendezvous_count(struct rendezvous *r)
{
    return atomic_fetch_add(&r->counted, 1) + 1;
}

/* Wait for a change; with the lock held. */
static enum status await_change(struct rendezvous *r, const char *what, int64_t deadline_ns,
                                struct diag *diag)
{
    struct timespec until = {.tv_sec = deadline_ns / 1000000000,
                             .tv_nsec = deadline_ns % 1000000000};
    if (r->gone == r->size)
        return diag_error(diag, STATUS_VIOLATED, "rank %d: whoever started the ranks is gone",
                          r->rank);
    if (r->gone >= 0 || r->left >= 0)
        return diag_error(diag, STATUS_VIOLATED, "rank %d: %s: rank %d %s", r->rank, what,
                          r->gone >= 0 ? r->gone : r->left, r->gone >= 0 ? "is gone" : "has ended");
    if (deadline_ns == RENDEZVOUS_FOREVER)
        pthread_cond_wait(&r->changed, &r->lock);
    else if (pthread_cond_timedwait(&r->changed, &r->lock, &until) == ETIMEDOUT)
        return diag_error(diag, STATUS_LIMIT, "rank %d: %s: time limit", r->rank, what);
    return STATUS_OK;
}

/* ---- values and barriers --------------------------------------------------------------------- */

enum status rendezvous_put(struct rendezvous *r, const char *key, const void *data, size_t bytes,
                           struct diag *diag)
{
    const struct mail mail = {.kind = MAIL_PUT, .from = r->rank, .to = TO_ALL};
    size_t key_bytes = strlen(key) + 1;
    char *packet = malloc(key_bytes + bytes);
    if (!packet)
        return diag_no_memory(diag);
    memcpy(packet, key, key_bytes);
    memcpy(packet + key_bytes, data, bytes);
    bool sent = send_mail(r, &mail, packet, key_bytes + bytes);
    free(packet);
    return sent ? STATUS_OK : refused(diag, r->rank, key);
}

static const struct value *find_value(const struct rendezvous *r, const char *key)
{
    for (const struct value *at = r->values; at; at = at->next)
        if (strcmp(at->text, key) == 0)
            return at;
    return NULL;
}

enum status rendezvous_get(struct rendezvous *r, const char *key, void *data, size_t *bytes,
                           int64_t deadline_ns, struct diag *diag)
{
    enum status status = STATUS_OK;
    const struct value *value;
    pthread_mutex_lock(&r->lock);
    while (!(value = find_value(r, key)) && !status)
        status = await_change(r, key, deadline_ns, diag);
    if (!status) {
        size_t skip = strlen(key) + 1, has = value->bytes - skip;
        if (has > *bytes)
            status = diag_error(diag, STATUS_INPUT, "%s has %zu bytes, expected up to %zu", key,
                                has, *bytes);
        else
            memcpy(data, value->text + skip, has);
        *bytes = has;
    }
    pthread_mutex_unlock(&r->lock);
    return status;
}

/* Every member says once on which machine it is. */
enum status rendezvous_neighbours(struct rendezvous *r, int *index, int *count, struct diag *diag)
{
    char key[40], mine[sizeof((struct meeting_place *)0)->machine], theirs[sizeof mine];
    enum status status = STATUS_OK;
    door_machine(mine);
    snprintf(key, sizeof key, "machine of %d", r->rank);
    if (!atomic_exchange(&r->located, true))
        status = rendezvous_put(r, key, mine, sizeof mine, diag);
    *index = *count = 0;
    for (int rank = 0; rank < r->size && !status; rank++) {
        size_t bytes = sizeof theirs;
        snprintf(key, sizeof key, "machine of %d", rank);
        status = rendezvous_get(r, key, theirs, &bytes, RENDEZVOUS_FOREVER, diag);
        bool same = !status && memcmp(mine, theirs, sizeof mine) == 0;
        *count += same;
        *index += same && rank < r->rank;
    }
    return status;
}

bool rendezvous_all_near(const struct rendezvous *r)
{
    bool near = !r->far;
    for (int rank = 0; rank < r->size && near; rank++)
        near = !atomic_load(&r->board->members[rank].far);
    return near;
}

enum status rendezvous_barrier(struct rendezvous *r, int64_t deadline_ns, struct diag *diag)
{
    const struct mail mail = {.kind = MAIL_BARRIER, .from = r->rank, .to = TO_HUB};
    enum status status = STATUS_OK;
    pthread_mutex_lock(&r->lock);
    uint64_t before = r->barriers;
    if (!send_mail(r, &mail, NULL, 0))
        status = refused(diag, r->rank, "send");
    while (r->barriers == before && !status)
        status = await_change(r, "the ranks do not come together", deadline_ns, diag);
    pthread_mutex_unlock(&r->lock);
    return status;
}

/* ---- letters --------------------------------------------------------------------------------- */

bool rendezvous_send(struct rendezvous *r, int to, const void *data, size_t bytes)
{
    const struct mail mail = {.kind = MAIL_LETTER, .from = r->rank, .to = to};
    return send_mail(r, &mail, data, bytes);
}

void rendezvous_listen(struct rendezvous *r, rendezvous_listener *listener, void *arg)
{
    pthread_mutex_lock(&r->listening);
    r->listener = listener;
    r->listener_arg = arg;
    pthread_mutex_unlock(&r->listening);
}

/* ---- memory ---------------------------------------------------------------------------------- */

static size_t whole_pages(size_t bytes)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    return (bytes + page - 1) / page * page;
}

void *rendezvous_alloc(struct rendezvous *r, size_t bytes, int64_t *offset, struct diag *diag)
{
    size_t length = whole_pages(bytes);
    int64_t at = atomic_fetch_add(&r->board->used_bytes, (int64_t)length);
    void *address = MAP_FAILED;
    if (fallocate(r->memory, 0, (off_t)at, (off_t)length) == 0)
        address = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED, r->memory, (off_t)at);
    if (address == MAP_FAILED) {
        diag_error(diag, STATUS_SYSTEM, "rank %d: no memory for a buffer of %zu bytes: %s", r->rank,
                   bytes, strerror(errno));
        return NULL;
    }
    *offset = at;
    return address;
}

void rendezvous_free(struct rendezvous *r, void *address, size_t bytes, int64_t offset)
{
    size_t length = whole_pages(bytes);
    munmap(address, length);
    /* Refused, it only stays in use until the run is over. */
    (void)fallocate(r->memory, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)offset,
                    (off_t)length);
}

static void *map_new(struct rendezvous *r, int64_t offset, size_t bytes)
{
    struct mapping *mapping = malloc(sizeof *mapping);
    if (!mapping)
        return NULL;
    *mapping = (struct mapping){.next = r->mappings, .offset = offset, .bytes = whole_pages(bytes)};
    mapping->address =
        mmap(NULL, mapping->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, r->memory, (off_t)offset);
    if (mapping->address == MAP_FAILED) {
        free(mapping);
        return NULL;
    }
    r->mappings = mapping;
    return mapping->address;
}

void *rendezvous_map(struct rendezvous *r, int64_t offset, size_t bytes)
{
    void *address = NULL;
    pthread_mutex_lock(&r->lock);
    for (struct mapping *at = r->mappings; at && !address; at = at->next)
        if (at->offset == offset)
            address = at->address;
    if (!address)
        address = map_new(r, offset, bytes);
    pthread_mutex_unlock(&r->lock);
    return address;
}

bool rendezvous_shares(const struct rendezvous *r, int rank)
{
    return rank == r->rank || (!r->far && !atomic_load(&r->board->members[rank].far));
}

/* Until it is there, or cannot come any more; with the lock held. */
static bool await_fetch(struct rendezvous *r, int rank, const struct fetch *fetch,
                        const atomic_bool *stop)
{
    while (fetch->have < fetch->bytes) {
        int64_t until_ns = mail_clock_ns() + LOOK_NS;
        struct timespec until = {.tv_sec = until_ns / 1000000000, .tv_nsec = until_ns % 1000000000};
        if (fetch->refused || r->gone == rank || r->gone == r->size || r->left == rank ||
            atomic_load(stop))
            return false;
        pthread_cond_timedwait(&r->changed, &r->lock, &until);
    }
    return true;
}

bool rendezvous_fetch(struct rendezvous *r, int rank, int64_t offset, void *to, size_t bytes,
                      const atomic_bool *stop)
{
    struct fetch fetch = {.to = to, .bytes = bytes};
    struct mail_range range = {.offset = offset, .bytes = (int64_t)bytes};
    if (bytes == 0)
        return true;
    pthread_mutex_lock(&r->lock);
    range.id = fetch.id = ++r->fetched;
    fetch.next = r->fetches;
    r->fetches = &fetch;
    pthread_mutex_unlock(&r->lock);
    bool good = send_range(r, MAIL_FETCH, rank, &range, NULL);
    pthread_mutex_lock(&r->lock);
    good = good && await_fetch(r, rank, &fetch, stop);
    struct fetch **at = &r->fetches;
    while (*at != &fetch)
        at = &(*at)->next;
    *at = fetch.next;
    pthread_mutex_unlock(&r->lock);
    return good;
}

bool rendezvous_store(struct rendezvous *r, int rank, int64_t offset, const void *from,
                      size_t bytes)
{
    const char *at = from;
    struct mail_range range = {.offset = offset};
    while (bytes > 0) {
        range.bytes = bytes < RANGE_BYTES ? (int64_t)bytes : RANGE_BYTES;
        if (!send_range(r, MAIL_STORE, rank, &range, at))
            return false;
        at += range.bytes;
        range.offset += range.bytes;
        bytes -= (size_t)range.bytes;
    }
    return true;
}
