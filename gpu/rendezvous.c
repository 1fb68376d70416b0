/*
 * rendezvous.c - a member's end of a rendezvous: a thread reads its mail; see rendezvous.h.
 *
 * What the others do that this member may wait for (values, barriers, deaths) the reader writes down
 * under `lock` and wakes whoever waits. Letters go to the listener under `listening`, so that one that
 * is being taken away is not running any more. Lock order: listening before any lock of the listener's.
 */
#include "gpu/mail.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#ifndef FALLOC_FL_KEEP_SIZE
#include <linux/falloc.h>
#endif

enum { TRY_AGAIN_NS = 20000000 };

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

struct rendezvous {
    int rank, size, socket, memory;
    struct board *board;
    pthread_t reader;
    bool started;
    atomic_int wish, counted;
    char packet[PACKET_BYTES]; /* being read */

    pthread_mutex_t listening;
    rendezvous_listener *listener;
    void *listener_arg;

    pthread_mutex_t lock; /* of the rest */
    pthread_cond_t changed;
    struct value *values;
    struct mapping *mappings;
    uint64_t barriers; /* that all were in */
    int gone, left;    /* the first; -1: nobody */
};

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

static void take(struct rendezvous *r, const struct mail *mail, const char *data, size_t bytes)
{
    if (mail->kind == MAIL_LETTER) {
        hear(r, mail, data, bytes);
        return;
    }
    pthread_mutex_lock(&r->lock);
    switch (mail->kind) {
    case MAIL_PUT: keep_value(r, data, bytes); break;
    case MAIL_BARRIER: r->barriers++; break;
    case MAIL_WISH: atomic_store(&r->wish, mail->number); break;
    case MAIL_LEFT: note_end(r, &r->left, mail->from); break;
    case MAIL_GONE: note_end(r, &r->gone, mail->from); break;
    default: break;
    }
    pthread_cond_broadcast(&r->changed);
    pthread_mutex_unlock(&r->lock);
}

static void *read_mail(void *arg)
{
    struct rendezvous *r = arg;
    struct mail mail;
    pthread_setname_np(pthread_self(), "rendezvous");
    for (;;) {
        ssize_t got = recv(r->socket, r->packet, sizeof r->packet, 0);
        if (got < 0 && errno == EINTR)
            continue;
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

static bool send_mail(const struct rendezvous *r, const struct mail *mail, const void *data,
                      size_t bytes)
{
    struct iovec parts[] = {{(void *)(uintptr_t)mail, sizeof *mail},
                            {(void *)(uintptr_t)data, bytes}};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = bytes ? 2 : 1};
    ssize_t sent;
    if (bytes > RENDEZVOUS_MAX_BYTES)
        return false;
    do
        sent = sendmsg(r->socket, &message, MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    return sent >= 0;
}

static enum status refused(struct diag *diag, int rank, const char *what)
{
    return diag_error(diag, STATUS_SYSTEM, "rank %d cannot meet the others: %s: %s", rank, what,
                      strerror(errno));
}

/* The welcome with the file, or why there is none. */
static enum status await_welcome(struct rendezvous *r, int64_t deadline_ns, struct diag *diag)
{
    struct mail mail;
    struct iovec part = {&mail, sizeof mail};
    union {
        char bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } control;
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = sizeof control.bytes};
    int64_t left_ns = deadline_ns == RENDEZVOUS_FOREVER ? 0 : deadline_ns - mail_clock_ns();
    struct timeval limit = {.tv_sec = left_ns / 1000000000, .tv_usec = left_ns / 1000 % 1000000};
    setsockopt(r->socket, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    ssize_t got = recvmsg(r->socket, &message, MSG_CMSG_CLOEXEC);
    limit = (struct timeval){0};
    setsockopt(r->socket, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
        return diag_error(diag, STATUS_LIMIT, "rank %d: not all ranks came in time", r->rank);
    if (got == sizeof mail && mail.kind == MAIL_GONE)
        return diag_error(diag, STATUS_VIOLATED, "rank %d is gone before it came", mail.from);
    struct cmsghdr *header = got == sizeof mail ? CMSG_FIRSTHDR(&message) : NULL;
    if (!header || header->cmsg_type != SCM_RIGHTS || mail.kind != MAIL_WELCOME)
        return diag_error(diag, STATUS_SYSTEM, "rank %d: whoever started the ranks is gone",
                          r->rank);
    memcpy(&r->memory, CMSG_DATA(header), sizeof(int));
    r->size = mail.number;
    return STATUS_OK;
}

static enum status map_board(struct rendezvous *r, struct diag *diag)
{
    void *board =
        mmap(NULL, mail_board_bytes(r->size), PROT_READ | PROT_WRITE, MAP_SHARED, r->memory, 0);
    if (board == MAP_FAILED)
        return refused(diag, r->rank, "mmap");
    r->board = board;
    return STATUS_OK;
}

static enum status init_locking(struct rendezvous *r, struct diag *diag)
{
    pthread_condattr_t clock;
    errno = pthread_condattr_init(&clock);
    if (errno)
        return refused(diag, r->rank, "a condition");
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    errno = pthread_cond_init(&r->changed, &clock);
    pthread_condattr_destroy(&clock);
    if (errno)
        return refused(diag, r->rank, "a condition");
    pthread_mutex_init(&r->lock, NULL); /* with default attributes these cannot fail */
    pthread_mutex_init(&r->listening, NULL);
    return STATUS_OK;
}

static enum status start_reader(struct rendezvous *r, struct diag *diag)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    errno = pthread_create(&r->reader, NULL, read_mail, r);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    r->started = !errno;
    return errno ? refused(diag, r->rank, "a thread") : STATUS_OK;
}

enum status rendezvous_join(int socket, int rank, int64_t deadline_ns, struct rendezvous **out,
                            struct diag *diag)
{
    struct mail hello = {.kind = MAIL_HELLO, .from = rank, .to = TO_HUB};
    struct rendezvous *r = calloc(1, sizeof *r);
    if (!r) {
        close(socket);
        return diag_no_memory(diag);
    }
    r->rank = rank;
    r->socket = socket;
    r->memory = r->gone = r->left = -1;
    enum status status = init_locking(r, diag);
    if (status) {
        close(socket);
        free(r);
        return status;
    }
    if (!send_mail(r, &hello, NULL, 0))
        status = refused(diag, rank, "send");
    if (!status)
        status = await_welcome(r, deadline_ns, diag);
    if (!status)
        status = map_board(r, diag);
    if (!status)
        status = start_reader(r, diag);
    if (status) {
        rendezvous_leave(r);
        return status;
    }
    *out = r;
    return STATUS_OK;
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

void rendezvous_leave(struct rendezvous *r)
{
    if (!r)
        return;
    struct mail bye = {.kind = MAIL_BYE, .from = r->rank, .to = TO_HUB};
    if (r->started) {
        (void)send_mail(r, &bye, NULL, 0); /* else it is gone, which is as well */
        shutdown(r->socket, SHUT_RD);
        pthread_join(r->reader, NULL);
    }
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
