/* SPDX-License-Identifier: Apache-2.0 */
/*
 * broker.c - the broker of a rendezvous: a thread that carries mail and notices deaths; see rendezvous.h.
 *
 *     peers[rank]: socket  ->  read a packet  ->  route: to a peer's outbox, to all, to the inbox
 *                  outbox  ->  written as far as the socket takes it
 *     inbox:       for the owner, broker_receive
 *
 * One lock protects outboxes and inbox; the rest belongs to the broker's thread.
 *
 * The state of one peer never stops the reading from another, so no send blocks for long; mail for a peer
 * that does not read waits in its outbox. Only when the owner is INBOX_BYTES behind, reading stops until it
 * has caught up: so ranks cannot log faster than the owner stores.
 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "mail.h"
#include "base/quiet_thread.h"
#include "base/system_words.h"

enum { HELLO_MS = 1000, REFUSED_MS = 500, INBOX_BYTES = 64 << 20, OUTBOX_BYTES = 1 << 30 };

struct letter {
    struct letter *next;
    size_t bytes;
    char packet[];
};

struct peer {
    int socket;             /* -1: not there, or not any more */
    int others;             /* the end a member inherits, until broker_start; -1: none */
    bool hello, left, gone; /* gone: without goodbye */
    bool in_barrier;
    struct letter *first, **last; /* outbox */
    size_t outbox_bytes;
    int64_t refused_ns; /* since when no packet could be sent to it; 0: they can be */
};

struct broker {
    int size, memory, wake;
    int listener; /* for members that find the broker by its name; -1: none */
    struct board *board;
    struct peer *peers; /* [size] */
    struct pollfd *polls;
    pthread_t thread;
    bool started, welcomed;
    char packet[PACKET_BYTES]; /* being read */

    pthread_mutex_t lock; /* of the rest, and of the outboxes */
    pthread_cond_t arrived;
    bool closing;
    int failure;                       /* errno; the thread ends: mail is never lost silently */
    size_t outbox_bytes, outbox_limit; /* of all peers */
    size_t inbox_bytes;                /* of all reports */
    struct report *reports, **reports_end;
};

#ifdef SWSIM_CHECKS
/* With the lock held: what the counters and ends of the lists say is so. */
static void broker_check(const struct broker *broker)
{
    size_t all = 0, inbox = 0;
    for (int rank = 0; rank < broker->size; rank++) {
        const struct peer *peer = &broker->peers[rank];
        struct letter *const *end = &peer->first;
        size_t bytes = 0;
        for (; *end; end = &(*end)->next)
            bytes += (*end)->bytes;
        assert(peer->last == end && peer->outbox_bytes == bytes);
        assert(!peer->first || (peer->socket >= 0 && peer->hello));
        assert(!(peer->gone && (peer->left || peer->socket >= 0)));
        assert(!peer->hello || peer->socket >= 0 || peer->gone || peer->left);
        all += bytes;
    }
    struct report *const *end = &broker->reports;
    for (; *end; end = &(*end)->next)
        inbox += (*end)->bytes;
    assert(broker->outbox_bytes == all && broker->inbox_bytes == inbox);
    assert(broker->reports_end == end);
}
#else
static void broker_check(const struct broker *broker)
{
    (void)broker;
}
#endif

/* ---- outboxes: with the lock held ------------------------------------------------------------ */

/* For a peer that is there and has said hello. */
static void broker_post(struct broker *broker, struct peer *peer, const void *packet, size_t bytes)
{
    assert(bytes >= sizeof(struct mail) && bytes <= PACKET_BYTES);
    if (peer->socket < 0 || !peer->hello)
        return;
    struct letter *letter = malloc(sizeof *letter + bytes);
    if (!letter) {
        broker->failure = ENOMEM; /* the thread ends, and with it the run */
        return;
    }
    *letter = (struct letter){.bytes = bytes};
    memcpy(letter->packet, packet, bytes);
    *peer->last = letter;
    peer->last = &letter->next;
    peer->outbox_bytes += letter->bytes;
    broker->outbox_bytes += letter->bytes;
}

static void free_first(struct broker *broker, struct peer *peer)
{
    struct letter *letter = peer->first;
    assert(letter && peer->outbox_bytes >= letter->bytes);
    assert(broker->outbox_bytes >= peer->outbox_bytes);
    peer->first = letter->next;
    if (!peer->first)
        peer->last = &peer->first;
    peer->outbox_bytes -= letter->bytes;
    broker->outbox_bytes -= letter->bytes;
    free(letter);
}

static void broker_post_all(struct broker *broker, int except, const void *packet, size_t bytes)
{
    for (int rank = 0; rank < broker->size; rank++)
        if (rank != except)
            broker_post(broker, &broker->peers[rank], packet, bytes);
}

static void empty_outbox(struct broker *broker, struct peer *peer)
{
    while (peer->first)
        free_first(broker, peer);
}

/* A socket that is full takes more when its peer has read. Refused for another reason, such as the lack of memory, a packet is
   tried again for a while; then the peer hears that the broker is gone, and what it still says is read. */
static void note_refusal(struct broker *broker, struct peer *peer, int error)
{
    int64_t now_ns = mail_clock_ns();
    if (error == EAGAIN || error == EWOULDBLOCK)
        return;
    if (peer->refused_ns == 0)
        peer->refused_ns = now_ns;
    if (error != EPIPE && now_ns - peer->refused_ns < REFUSED_MS * INT64_C(1000000))
        return;
    shutdown(peer->socket, SHUT_WR);
    empty_outbox(broker, peer);
}

/* As much as the socket takes now. */
static void write_outbox(struct broker *broker, struct peer *peer)
{
    while (peer->first) {
        struct letter *letter = peer->first;
        ssize_t sent =
            send(peer->socket, letter->packet, letter->bytes, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0) {
            note_refusal(broker, peer, errno);
            return;
        }
        peer->refused_ns = 0;
        assert((size_t)sent == letter->bytes); /* these sockets keep packets whole */
        free_first(broker, peer);
    }
}

/* ---- coming, meeting, going ------------------------------------------------------------------ */

/* A peer's socket has ended. */
static void broker_bury(struct broker *broker, int rank)
{
    struct peer *peer = &broker->peers[rank];
    struct mail mail = {.kind = MAIL_GONE, .from = rank, .to = TO_ALL};
    assert(peer->socket >= 0 && !peer->gone);
    close(peer->socket);
    pthread_mutex_lock(&broker->lock);
    peer->socket = -1;
    empty_outbox(broker, peer);
    if (!peer->left) {
        peer->gone = true;
        broker_post_all(broker, rank, &mail, sizeof mail);
    }
    pthread_cond_broadcast(&broker->arrived);
    pthread_mutex_unlock(&broker->lock);
}

static void welcome_all(struct broker *broker)
{
    if (broker->welcomed)
        return; /* a second hello */
    for (int rank = 0; rank < broker->size; rank++)
        if (!broker->peers[rank].hello || broker->peers[rank].gone)
            return;
    broker->welcomed = true;
    for (int rank = 0; rank < broker->size; rank++) {
        /* The welcome carries the file, so it does not go through the outbox: it is the first packet. A peer that
           it cannot be sent to would wait for it forever. */
        const int socket = broker->peers[rank].socket;
        const struct mail mail = {
            .kind = MAIL_WELCOME, .from = TO_BROKER, .to = rank, .number = broker->size};
        if (socket >= 0 && !mail_send_file(socket, &mail, broker->memory))
            broker_bury(broker, rank);
    }
}

/* It is here, and hears of those that went before it came. */
static void broker_greet(struct broker *broker, int rank)
{
    struct mail mail = {.kind = MAIL_GONE, .to = rank};
    pthread_mutex_lock(&broker->lock);
    broker->peers[rank].hello = true;
    for (mail.from = 0; mail.from < broker->size; mail.from++)
        if (broker->peers[mail.from].gone)
            broker_post(broker, &broker->peers[rank], &mail, sizeof mail);
    pthread_mutex_unlock(&broker->lock);
    welcome_all(broker);
}

/* Mail for members that do not read is kept up to a limit, so that no member can use up the memory here:
   beyond it the one with the most is given up. */
static void bound_outboxes(struct broker *broker)
{
    int slowest = 0;
    pthread_mutex_lock(&broker->lock);
    bool full = broker->outbox_bytes > broker->outbox_limit;
    for (int rank = 1; full && rank < broker->size; rank++)
        if (broker->peers[rank].outbox_bytes > broker->peers[slowest].outbox_bytes)
            slowest = rank;
    pthread_mutex_unlock(&broker->lock);
    if (full)
        broker_bury(broker, slowest);
}

static void enter_barrier(struct broker *broker, int from)
{
    struct mail mail = {.kind = MAIL_BARRIER, .from = TO_BROKER, .to = TO_ALL};
    broker->peers[from].in_barrier = true;
    for (int rank = 0; rank < broker->size; rank++)
        if (!broker->peers[rank].in_barrier)
            return;
    for (int rank = 0; rank < broker->size; rank++)
        broker->peers[rank].in_barrier = false;
    broker_post_all(broker, -1, &mail, sizeof mail);
}

/* ---- routing: with the lock held ------------------------------------------------------------- */

static void keep_report(struct broker *broker, int from, const char *data, size_t bytes)
{
    struct report *report = malloc(sizeof *report + bytes);
    if (!report) {
        broker->failure = ENOMEM;
        return;
    }
    *report = (struct report){.from = from, .bytes = bytes};
    memcpy(report->data, data, bytes);
    *broker->reports_end = report;
    broker->reports_end = &report->next;
    broker->inbox_bytes += bytes;
    pthread_cond_broadcast(&broker->arrived);
}

static void broker_route(struct broker *broker, int from, size_t bytes)
{
    struct mail mail;
    memcpy(&mail, broker->packet, sizeof mail);
    mail.from = from; /* whatever it says */
    memcpy(broker->packet, &mail, sizeof mail);
    switch (mail.kind) {
    case MAIL_PUT: broker_post_all(broker, -1, broker->packet, bytes); break;
    case MAIL_BARRIER: enter_barrier(broker, from); break;
    case MAIL_BYE:
        broker->peers[from].left = true;
        mail.kind = MAIL_LEFT;
        broker_post_all(broker, from, &mail, sizeof mail);
        break;
    case MAIL_QUEUE:
    case MAIL_PASSED:
        if (mail.to >= 0 && mail.to < broker->size)
            broker_post(broker, &broker->peers[mail.to], broker->packet, bytes);
        break;
    case MAIL_LETTER:
        if (mail.to == TO_BROKER)
            keep_report(broker, from, broker->packet + sizeof mail, bytes - sizeof mail);
        else if (mail.to == TO_ALL)
            broker_post_all(broker, from, broker->packet, bytes);
        else if (mail.to >= 0 && mail.to < broker->size)
            broker_post(broker, &broker->peers[mail.to], broker->packet, bytes);
        break;
    default: break;
    }
}

/* Read one packet of a peer; false: its socket has ended. */
static bool read_peer(struct broker *broker, int rank)
{
    ssize_t got =
        recv(broker->peers[rank].socket, broker->packet, sizeof broker->packet, MSG_DONTWAIT);
    struct mail mail;
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return true;
    if (got < (ssize_t)sizeof mail)
        return false;
    memcpy(&mail, broker->packet, sizeof mail);
    if (mail.kind == MAIL_HELLO) {
        broker_greet(broker, rank);
    } else {
        pthread_mutex_lock(&broker->lock);
        broker_route(broker, rank, (size_t)got);
        pthread_mutex_unlock(&broker->lock);
    }
    return true;
}

/* ---- members that find the broker by name ------------------------------------------------------- */

/* A new connection: accepted from the same user, with a hello of a missing rank. */
static void broker_admit(struct broker *broker)
{
    struct mail mail;
    unsigned user;
    struct timeval patience = {.tv_sec = HELLO_MS / 1000};
    int socket = accept4(broker->listener, NULL, NULL, SOCK_CLOEXEC);
    if (socket < 0)
        return;
    setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    bool good = mail_same_user(socket, &user) &&
                recv(socket, &mail, sizeof mail, 0) == sizeof mail && mail.kind == MAIL_HELLO &&
                mail.from >= 0 && mail.from < broker->size && broker->peers[mail.from].socket < 0 &&
                !broker->peers[mail.from].hello;
    if (!good) {
        close(socket);
        return;
    }
    pthread_mutex_lock(&broker->lock);
    broker->peers[mail.from].socket = socket;
    pthread_mutex_unlock(&broker->lock);
    broker_greet(broker, mail.from);
}

/* ---- the thread ------------------------------------------------------------------------------ */

/* polls: 0 the wake-up, 1 the listener, then the peers. False: the thread ends. */
static bool prepare_polls(struct broker *broker)
{
    broker->polls[0] = (struct pollfd){.fd = broker->wake, .events = POLLIN};
    broker->polls[1] =
        (struct pollfd){.fd = broker->welcomed ? -1 : broker->listener, .events = POLLIN};
    pthread_mutex_lock(&broker->lock);
    broker_check(broker);
    bool on = !broker->closing && !broker->failure;
    short reads = broker->inbox_bytes < INBOX_BYTES ? POLLIN : 0;
    for (int rank = 0; on && rank < broker->size; rank++) {
        struct peer *peer = &broker->peers[rank];
        if (peer->socket >= 0)
            write_outbox(broker, peer);
        broker->polls[2 + rank] = (struct pollfd){
            .fd = peer->socket, .events = (short)(reads | (peer->first ? POLLOUT : 0))};
    }
    pthread_mutex_unlock(&broker->lock);
    return on;
}

static void *broker_serve(void *arg)
{
    struct broker *broker = arg;
    pthread_setname_np(pthread_self(), "broker");
    while (prepare_polls(broker)) {
        bool came = poll(broker->polls, (nfds_t)broker->size + 2, -1) >= 0;
        int error = errno;
        if (!came && error != EINTR) {
            pthread_mutex_lock(&broker->lock);
            broker->failure = error;
            pthread_mutex_unlock(&broker->lock);
        }
        if (!came)
            continue;
        uint64_t count;
        if (broker->polls[0].revents && read(broker->wake, &count, sizeof count) < 0)
            continue;
        if (broker->polls[1].revents)
            broker_admit(broker);
        for (int rank = 0; rank < broker->size; rank++) {
            int socket = broker->polls[2 + rank].fd;
            if (socket >= 0 && (broker->polls[2 + rank].revents & (POLLIN | POLLHUP | POLLERR)) &&
                socket == broker->peers[rank].socket && !read_peer(broker, rank))
                broker_bury(broker, rank);
            bound_outboxes(broker);
        }
    }
    for (int rank = 0; rank < broker->size; rank++)
        if (broker->peers[rank].socket >= 0)
            shutdown(broker->peers[rank].socket, SHUT_RDWR);
    return NULL;
}

static void broker_wake_thread(struct broker *broker)
{
    uint64_t one = 1;
    ssize_t written = write(broker->wake, &one, sizeof one);
    (void)written; /* full: then it is awake */
}

/* ---- the owner ------------------------------------------------------------------------------- */

static enum status broker_refused(struct diag *diag, const char *what)
{
    return diag_error(diag, STATUS_SYSTEM, "cannot make %s for the rendezvous of the ranks: %s",
                      what, system_words(errno));
}

enum status broker_open(int size, struct broker **out, struct diag *diag)
{
    struct broker *broker = calloc(1, sizeof *broker);
    if (!broker)
        return diag_no_memory(diag);
    broker->size = size;
    broker->outbox_limit = OUTBOX_BYTES;
    broker->memory = broker->listener = broker->wake = -1;
    broker->reports_end = &broker->reports;
    enum status status = STATUS_OK;
    errno = mail_init_condition(&broker->arrived);
    if (errno) {
        free(broker);
        return broker_refused(diag, "a condition");
    }
    pthread_mutex_init(&broker->lock, NULL); /* with default attributes it cannot fail */
    broker->peers = calloc((size_t)size, sizeof *broker->peers);
    broker->polls = calloc((size_t)size + 2, sizeof *broker->polls);
    for (int rank = 0; broker->peers && rank < size; rank++)
        broker->peers[rank] = (struct peer){.socket = -1, .others = -1};
    for (int rank = 0; broker->peers && rank < size; rank++)
        broker->peers[rank].last = &broker->peers[rank].first;
    if (!broker->peers || !broker->polls)
        status = diag_no_memory(diag);
    if (!status) {
        errno = mail_open_board(size, mail_clock_ns(), &broker->memory, &broker->board);
        status = errno ? broker_refused(diag, "memory") : STATUS_OK;
    }
    if (!status) {
        broker->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        status = broker->wake < 0 ? broker_refused(diag, "an eventfd") : STATUS_OK;
    }
    if (status) {
        broker_close(broker);
        return status;
    }
    *out = broker;
    return STATUS_OK;
}

enum status broker_invite(struct broker *broker, int rank, struct diag *diag)
{
    int ends[2];
    assert(!broker->started && rank >= 0 && rank < broker->size && broker->peers[rank].socket < 0);
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
        return broker_refused(diag, "a socket");
    broker->peers[rank].socket = ends[0];
    broker->peers[rank].others = ends[1];
    return STATUS_OK;
}

int broker_invited(const struct broker *broker, int rank)
{
    return broker->peers[rank].others;
}

enum status broker_listen(struct broker *broker, const char *name, struct diag *diag)
{
    struct sockaddr_un address;
    socklen_t length;
    if (!mail_address(name, &address, &length))
        return diag_error(diag, STATUS_USAGE, "rendezvous name '%s': expected 1 to %d characters",
                          name, RENDEZVOUS_MAX_NAME);
    broker->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (broker->listener < 0 || bind(broker->listener, (struct sockaddr *)&address, length) != 0 ||
        listen(broker->listener, SOMAXCONN) != 0)
        return errno == EADDRINUSE ? diag_error(diag, STATUS_SYSTEM,
                                                "another run has the rendezvous '%s' already", name)
                                   : broker_refused(diag, "a socket");
    return STATUS_OK;
}

int broker_inherit(struct broker *broker, int mine)
{
    int socket = broker->peers[mine].others;
    assert(!broker->started && socket >= 0);
    for (int rank = 0; rank < broker->size; rank++) {
        if (broker->peers[rank].socket >= 0)
            close(broker->peers[rank].socket);
        if (broker->peers[rank].others >= 0 && rank != mine)
            close(broker->peers[rank].others);
    }
    if (broker->listener >= 0)
        close(broker->listener);
    close(broker->wake);
    close(broker->memory);
    munmap(broker->board, mail_board_bytes(broker->size));
    free(broker->peers);
    free(broker->polls);
    free(broker);
    return socket;
}

enum status broker_start(struct broker *broker, struct diag *diag)
{
    assert(!broker->started);
    for (int rank = 0; rank < broker->size; rank++) {
        if (broker->peers[rank].others >= 0)
            close(broker->peers[rank].others);
        broker->peers[rank].others = -1;
    }
    int failed = quiet_thread_start(&broker->thread, broker_serve, broker);
    if (failed)
        return diag_error(diag, STATUS_SYSTEM, "cannot start a thread: %s", system_words(failed));
    broker->started = true;
    return STATUS_OK;
}

void broker_close(struct broker *broker)
{
    if (!broker)
        return;
    pthread_mutex_lock(&broker->lock);
    broker->closing = true;
    pthread_mutex_unlock(&broker->lock);
    if (broker->started) {
        broker_wake_thread(broker);
        pthread_join(broker->thread, NULL);
    }
    for (int rank = 0; broker->peers && rank < broker->size; rank++) {
        empty_outbox(broker, &broker->peers[rank]);
        if (broker->peers[rank].socket >= 0)
            close(broker->peers[rank].socket);
        if (broker->peers[rank].others >= 0)
            close(broker->peers[rank].others);
    }
    while (broker->reports) {
        struct report *report = broker->reports;
        broker->reports = report->next;
        free(report);
    }
    if (broker->listener >= 0)
        close(broker->listener);
    if (broker->wake >= 0)
        close(broker->wake);
    if (broker->board)
        munmap(broker->board, mail_board_bytes(broker->size));
    if (broker->memory >= 0)
        close(broker->memory);
    pthread_cond_destroy(&broker->arrived);
    pthread_mutex_destroy(&broker->lock);
    free(broker->peers);
    free(broker->polls);
    free(broker);
}

void broker_limit_outboxes(struct broker *broker, size_t bytes)
{
    broker->outbox_limit = bytes;
}

void broker_wish(struct broker *broker, int wish)
{
    struct mail mail = {.kind = MAIL_WISH, .from = TO_BROKER, .to = TO_ALL, .number = wish};
    pthread_mutex_lock(&broker->lock);
    broker_post_all(broker, -1, &mail, sizeof mail);
    pthread_mutex_unlock(&broker->lock);
    broker_wake_thread(broker);
}

const struct board *broker_board(const struct broker *broker)
{
    return broker->board;
}

int broker_ended(struct broker *broker)
{
    int ended = 0;
    pthread_mutex_lock(&broker->lock);
    for (int rank = 0; rank < broker->size; rank++)
        ended += broker->peers[rank].left || broker->peers[rank].gone;
    pthread_mutex_unlock(&broker->lock);
    return ended;
}

bool broker_is_gone(struct broker *broker, int rank)
{
    pthread_mutex_lock(&broker->lock);
    bool gone = broker->peers[rank].gone;
    pthread_mutex_unlock(&broker->lock);
    return gone;
}

int broker_failure(struct broker *broker)
{
    pthread_mutex_lock(&broker->lock);
    int failure = broker->failure;
    pthread_mutex_unlock(&broker->lock);
    return failure;
}

enum { MISSING_SPANS = 8, MISSING_BYTES = 200 };

/* Of the members that have not come their number and their ranks, such as "1, 4-7"; of many the first ones. */
static int broker_missing(struct broker *broker, char names[MISSING_BYTES])
{
    int missing = 0, named = 0, spans = 0;
    size_t used = 0;
    names[0] = '\0';
    pthread_mutex_lock(&broker->lock);
    for (int rank = 0, end; rank < broker->size; rank = end + 1) {
        for (end = rank; end < broker->size && !broker->peers[end].hello;)
            end++;
        missing += end - rank;
        if (end == rank || spans == MISSING_SPANS)
            continue;
        used += (size_t)snprintf(names + used, MISSING_BYTES - used,
                                 end - rank > 1 ? "%s%d-%d" : "%s%d", spans++ > 0 ? ", " : "", rank,
                                 end - 1);
        named += end - rank;
    }
    pthread_mutex_unlock(&broker->lock);
    if (missing > named)
        snprintf(names + used, MISSING_BYTES - used, " and %d more", missing - named);
    return missing;
}

bool broker_tell_missing(struct broker *broker, enum status status, struct diag *diag)
{
    char names[MISSING_BYTES];
    int missing = broker_missing(broker, names);
    if (missing > 0)
        diag_error(diag, status, "the ranks did not come together in time: rank%s %s %s missing",
                   missing == 1 ? "" : "s", names, missing == 1 ? "is" : "are");
    return missing > 0;
}

struct report *broker_receive(struct broker *broker, int64_t timeout_ns)
{
    int64_t until_ns = mail_clock_ns() + timeout_ns;
    struct timespec until = {.tv_sec = until_ns / 1000000000, .tv_nsec = until_ns % 1000000000};
    bool caught_up = false;
    pthread_mutex_lock(&broker->lock);
    if (!broker->reports && timeout_ns > 0)
        pthread_cond_timedwait(&broker->arrived, &broker->lock, &until);
    struct report *report = broker->reports;
    if (report) {
        broker->reports = report->next;
        if (!broker->reports)
            broker->reports_end = &broker->reports;
        assert(broker->inbox_bytes >= report->bytes);
        caught_up = broker->inbox_bytes >= INBOX_BYTES;
        broker->inbox_bytes -= report->bytes;
        caught_up = caught_up && broker->inbox_bytes < INBOX_BYTES;
    }
    pthread_mutex_unlock(&broker->lock);
    if (caught_up)
        broker_wake_thread(broker);
    return report;
}
