/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rendezvous.c - a member's end of a rendezvous; see rendezvous_impl.h.
 */
#include "rendezvous_impl.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "base/quiet_thread.h"
#include "base/system_words.h"

#ifndef FALLOC_FL_KEEP_SIZE
#include <linux/falloc.h>
#endif

enum { VALUE_BYTES = 256 << 20, PIECE_BYTES = 256 << 10, MOST_WAIT_MS = 1000000 };
enum { MEETING_RETRY_MS = 20 }; /* while the broker is not there yet */

/* ---- sending --------------------------------------------------------------------------------- */

bool rendezvous_send_mail(struct rendezvous *r, const struct mail *mail, const void *data,
                          size_t bytes)
{
    if (bytes > RENDEZVOUS_MAX_BYTES)
        return false;
    struct iovec parts[] = {{(void *)(uintptr_t)mail, sizeof *mail},
                            {(void *)(uintptr_t)data, bytes}};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = bytes ? 2 : 1};
    ssize_t sent;
    do
        sent = sendmsg(r->socket, &message, MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    if (sent < 0 && (errno == EPIPE || errno == ECONNRESET || errno == ENOTCONN))
        atomic_store(&r->cut_off, true);
    return sent >= 0;
}

/* ---- the reader ------------------------------------------------------------------------------ */

static void rendezvous_keep_value(struct rendezvous *r, const char *text, size_t bytes)
{
    if (!memchr(text, '\0', bytes))
        return; /* no key */
    r->value_bytes += bytes;
    if (r->value_bytes > VALUE_BYTES)
        return; /* no run has so many; the asking call runs into its deadline */
    struct common_value *value = malloc(sizeof *value + bytes);
    if (!value)
        return; /* the asking call runs into its deadline */
    value->bytes = bytes;
    memcpy(value->text, text, bytes);
    value->next = r->values;
    r->values = value;
}

static void note_end(struct rendezvous *r, int *which, int rank)
{
    if (*which < 0)
        *which = rank;
    pthread_cond_broadcast(&r->changed);
}

static void take_mail(struct rendezvous *r, const struct mail *mail, const char *data, size_t bytes)
{
    if (mail->kind == MAIL_LETTER) {
        pthread_mutex_lock(&r->listening);
        queue_take_older(r, mail->from);
        if (r->listener)
            r->listener(r->listener_arg, mail->from, data, bytes);
        pthread_mutex_unlock(&r->listening);
        return;
    }
    if (queue_take(r, mail, data, bytes))
        return;
    pthread_mutex_lock(&r->lock);
    switch (mail->kind) {
    case MAIL_PUT: rendezvous_keep_value(r, data, bytes); break;
    case MAIL_BARRIER: r->barriers++; break;
    case MAIL_WISH: atomic_store(&r->wish, mail->number); break;
    case MAIL_LEFT:
        if (mail->number)
            note_end(r, &r->failed, mail->from);
        note_end(r, &r->left, mail->from);
        break;
    case MAIL_GONE: note_end(r, &r->gone, mail->from); break;
    default: break;
    }
    pthread_cond_broadcast(&r->changed);
    pthread_mutex_unlock(&r->lock);
}

void rendezvous_lose(struct rendezvous *r, int rank)
{
    pthread_mutex_lock(&r->lock);
    note_end(r, &r->gone, rank);
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
        take_mail(r, &mail, r->packet + sizeof mail, (size_t)got - sizeof mail);
    }
    rendezvous_lose(r, r->size); /* the broker */
    return NULL;
}

/* ---- join ------------------------------------------------------------------------------------ */

/* Says that `what` was refused, and why: errno. */
static enum status rendezvous_refused(struct diag *diag, int rank, const char *what)
{
    return diag_error(diag, STATUS_SYSTEM, "rank %d cannot reach the other ranks: %s: %s", rank,
                      what, system_words(errno));
}

static void limit_reading(const struct rendezvous *r, int64_t deadline_ns)
{
    int64_t left_ns = deadline_ns == RENDEZVOUS_FOREVER ? 0 : deadline_ns - mail_clock_ns();
    if (deadline_ns != RENDEZVOUS_FOREVER && left_ns < 1000)
        left_ns = 1000; /* 0 would be forever */
    struct timeval limit = {.tv_sec = left_ns / 1000000000, .tv_usec = left_ns / 1000 % 1000000};
    setsockopt(r->socket, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
}

static int left_ms(int64_t deadline_ns)
{
    int64_t left_ns = deadline_ns - mail_clock_ns();
    return left_ns <= 0                                ? 0
           : left_ns > MOST_WAIT_MS * INT64_C(1000000) ? MOST_WAIT_MS
                                                       : (int)(left_ns / 1000000) + 1;
}

/* false: nothing has come in time. A signal to the program neither ends the wait nor makes it longer. */
static bool await_reading(const struct rendezvous *r, int64_t deadline_ns)
{
    struct pollfd mail = {.fd = r->socket, .events = POLLIN};
    for (;;) {
        int ms = left_ms(deadline_ns);
        int came = poll(&mail, 1, ms);
        if (came > 0 || (came < 0 && errno != EINTR))
            return true;
        if (came == 0 && ms == 0)
            return false;
    }
}

/* The broker's first mail; with it comes the file. */
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
    ssize_t got = recvmsg(r->socket, &message, MSG_CMSG_CLOEXEC);
    struct cmsghdr *header = got == (ssize_t)sizeof *mail ? CMSG_FIRSTHDR(&message) : NULL;
    if (header && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS &&
        header->cmsg_len == CMSG_LEN(sizeof(int)))
        memcpy(&r->memory, CMSG_DATA(header), sizeof(int));
    return got;
}

/* The welcome, or why there is none. */
static enum status await_welcome(struct rendezvous *r, int64_t deadline_ns, struct diag *diag)
{
    struct mail mail = {0};
    if (!await_reading(r, deadline_ns))
        return diag_error(diag, STATUS_LIMIT, "rank %d: not all ranks came in time", r->rank);
    limit_reading(r, deadline_ns);
    errno = 0;
    ssize_t got = receive_welcome(r, &mail);
    int error = errno;
    limit_reading(r, RENDEZVOUS_FOREVER);
    if (got < 0 && (error == EAGAIN || error == EWOULDBLOCK))
        return diag_error(diag, STATUS_LIMIT, "rank %d: not all ranks came in time", r->rank);
    if (got == sizeof mail && mail.kind == MAIL_GONE)
        return diag_error(diag, STATUS_VIOLATED, "rank %d ended before it connected", mail.from);
    if (got != sizeof mail || mail.kind != MAIL_WELCOME || mail.number <= r->rank ||
        mail.number > RENDEZVOUS_MAX_MEMBERS || r->memory < 0)
        return diag_error(diag, STATUS_SYSTEM,
                          "rank %d was refused: the process that connects the ranks has ended, "
                          "or has a rank %d",
                          r->rank, r->rank);
    r->size = mail.number;
    return STATUS_OK;
}

static enum status open_board(struct rendezvous *r, struct diag *diag)
{
    if (!mail_check_file(r->memory, 0, mail_board_bytes(r->size)))
        return diag_error(diag, STATUS_SYSTEM,
                          "rank %d: the common memory is too small, or could be made so", r->rank);
    void *board =
        mmap(NULL, mail_board_bytes(r->size), PROT_READ | PROT_WRITE, MAP_SHARED, r->memory, 0);
    if (board == MAP_FAILED)
        return rendezvous_refused(diag, r->rank, "mmap");
    r->board = board;
    return STATUS_OK;
}

static enum status rendezvous_make(int rank, struct rendezvous **out, struct diag *diag)
{
    struct rendezvous *r = calloc(1, sizeof *r);
    if (!r)
        return diag_no_memory(diag);
    assert(rank >= 0);
    r->rank = rank;
    r->socket = r->memory = r->gone = r->left = r->failed = -1;
    errno = mail_init_condition(&r->changed);
    if (errno) {
        free(r);
        return rendezvous_refused(diag, rank, "a condition");
    }
    pthread_mutex_init(&r->lock, NULL); /* with default attributes these cannot fail */
    pthread_mutex_init(&r->listening, NULL);
    pthread_mutex_init(&r->passing, NULL);
    *out = r;
    return STATUS_OK;
}

/* The socket is there: come to the meeting. Takes `r`: a failure ends it. */
static enum status rendezvous_meet(struct rendezvous *r, int64_t deadline_ns,
                                   struct rendezvous **out, struct diag *diag)
{
    const struct mail hello = {.kind = MAIL_HELLO, .from = r->rank, .to = TO_BROKER};
    assert(r->socket >= 0 && !r->started);
    enum status status = STATUS_OK;
    limit_reading(r, deadline_ns);
    if (!rendezvous_send_mail(r, &hello, NULL, 0))
        status = rendezvous_refused(diag, r->rank, "send");
    if (!status)
        status = await_welcome(r, deadline_ns, diag);
    if (!status)
        status = open_board(r, diag);
    if (!status) {
        r->outgoing = calloc((size_t)r->size, sizeof *r->outgoing);
        r->incoming = calloc((size_t)r->size, sizeof *r->incoming);
        r->senders = calloc((size_t)r->size, sizeof *r->senders);
        if (!r->outgoing || !r->incoming || !r->senders)
            status = diag_no_memory(diag);
    }
    if (!status) {
        errno = quiet_thread_start(&r->reader, read_mail, r);
        r->started = !errno;
        status = errno ? rendezvous_refused(diag, r->rank, "a thread") : STATUS_OK;
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
    struct rendezvous *r = NULL;
    enum status status = rendezvous_make(rank, &r, diag);
    if (status) {
        close(socket);
        return status;
    }
    r->socket = socket;
    return rendezvous_meet(r, deadline_ns, out, diag);
}

enum status rendezvous_find(const char *name, int rank, int64_t deadline_ns,
                            struct rendezvous **out, struct diag *diag)
{
    struct sockaddr_un address;
    socklen_t length;
    unsigned owner = (unsigned)-1;
    if (!mail_address(name, &address, &length))
        return diag_error(diag, STATUS_USAGE, "rendezvous name '%s': expected 1 to %d characters",
                          name, RENDEZVOUS_MAX_NAME);
    int socket_ = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (socket_ < 0)
        return rendezvous_refused(diag, rank, "a socket");
    while (connect(socket_, (struct sockaddr *)&address, length) != 0) {
        if (errno != ECONNREFUSED && errno != ENOENT && errno != EINTR && errno != EAGAIN) {
            close(socket_);
            return rendezvous_refused(diag, rank, name);
        }
        if (mail_clock_ns() > deadline_ns) {
            close(socket_);
            return diag_error(diag, STATUS_LIMIT,
                              "rank %d: rank 0 did not open the rendezvous '%s' in time", rank,
                              name);
        }
        nanosleep(&(struct timespec){.tv_nsec = MEETING_RETRY_MS * 1000000L}, NULL);
    }
    if (!mail_same_user(socket_, &owner)) {
        close(socket_);
        return diag_error(diag, STATUS_SYSTEM,
                          "rank %d: the rendezvous '%s' belongs to another user (uid %u), "
                          "expected one of uid %u",
                          rank, name, owner, (unsigned)getuid());
    }
    return rendezvous_join(socket_, rank, deadline_ns, out, diag);
}

/* ---- leave ----------------------------------------------------------------------------------- */

static void rendezvous_end(struct rendezvous *r, bool failed)
{
    if (!r)
        return;
    if (r->started) {
        struct mail bye = {.kind = MAIL_BYE, .from = r->rank, .to = TO_BROKER, .number = failed};
        (void)rendezvous_send_mail(r, &bye, NULL, 0); /* else it is gone, which is as well */
        shutdown(r->socket, SHUT_RD);                 /* the reader stops */
        pthread_join(r->reader, NULL);
    }
    if (r->socket >= 0)
        close(r->socket);
    while (r->values) {
        struct common_value *value = r->values;
        r->values = value->next;
        free(value);
    }
    while (r->mappings) {
        struct mapping *mapping = r->mappings;
        r->mappings = mapping->next;
        munmap(mapping->address, mapping->bytes);
        free(mapping);
    }
    while (r->late) { /* the file keeps them */
        struct late_memory *late = r->late;
        r->late = late->next;
        free(late);
    }
    queues_close(r);
    if (r->board)
        munmap(r->board, mail_board_bytes(r->size));
    if (r->memory >= 0)
        close(r->memory);
    pthread_cond_destroy(&r->changed);
    pthread_mutex_destroy(&r->lock);
    pthread_mutex_destroy(&r->listening);
    pthread_mutex_destroy(&r->passing);
    free(r);
}

void rendezvous_leave(struct rendezvous *r)
{
    rendezvous_end(r, false);
}

void rendezvous_leave_failed(struct rendezvous *r)
{
    rendezvous_end(r, true);
}

/* ---- members --------------------------------------------------------------------------------- */

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

/* A sender may know before the reader that the broker is gone. With the lock. */
static int first_gone(struct rendezvous *r)
{
    return r->gone < 0 && atomic_load(&r->cut_off) ? r->size : r->gone;
}

int rendezvous_gone(struct rendezvous *r)
{
    pthread_mutex_lock(&r->lock);
    int gone = first_gone(r);
    pthread_mutex_unlock(&r->lock);
    return gone;
}

int rendezvous_left(struct rendezvous *r)
{
    pthread_mutex_lock(&r->lock);
    int left = r->left;
    pthread_mutex_unlock(&r->lock);
    return left;
}

int rendezvous_lost(struct rendezvous *r, const char **how)
{
    pthread_mutex_lock(&r->lock);
    int gone = first_gone(r), failed = r->failed;
    pthread_mutex_unlock(&r->lock);
    *how = gone >= 0 ? "is gone" : "has failed";
    return gone >= 0 ? gone : failed;
}

int rendezvous_count(struct rendezvous *r)
{
    return atomic_fetch_add(&r->counted, 1) + 1;
}

static enum status broker_has_ended(const struct rendezvous *r, struct diag *diag)
{
    return diag_error(diag, STATUS_VIOLATED,
                      "rank %d: the process that connects the ranks has ended", r->rank);
}

/* Why mail could not be sent. */
static enum status rendezvous_unsent(struct rendezvous *r, const char *what, struct diag *diag)
{
    return atomic_load(&r->cut_off) ? broker_has_ended(r, diag)
                                    : rendezvous_refused(diag, r->rank, what);
}

/* Wait for a change; with the lock held. */
static enum status await_change(struct rendezvous *r, const char *what, int64_t deadline_ns,
                                struct diag *diag)
{
    struct timespec until = {.tv_sec = deadline_ns / 1000000000,
                             .tv_nsec = deadline_ns % 1000000000};
    int gone = first_gone(r);
    if (gone == r->size)
        return broker_has_ended(r, diag);
    if (gone >= 0 || r->left >= 0)
        return diag_error(diag, STATUS_VIOLATED, "rank %d: %s: rank %d %s", r->rank, what,
                          gone >= 0 ? gone : r->left, gone >= 0 ? "is gone" : "has ended");
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
    bool sent = rendezvous_send_mail(r, &mail, packet, key_bytes + bytes);
    free(packet);
    return sent ? STATUS_OK : rendezvous_unsent(r, key, diag);
}

static const struct common_value *rendezvous_find_value(const struct rendezvous *r, const char *key)
{
    for (const struct common_value *at = r->values; at; at = at->next)
        if (strcmp(at->text, key) == 0)
            return at;
    return NULL;
}

enum status rendezvous_get(struct rendezvous *r, const char *key, void *data, size_t *bytes,
                           int64_t deadline_ns, struct diag *diag)
{
    enum status status = STATUS_OK;
    const struct common_value *value;
    pthread_mutex_lock(&r->lock);
    while (!(value = rendezvous_find_value(r, key)) && !status)
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
    const struct mail mail = {.kind = MAIL_BARRIER, .from = r->rank, .to = TO_BROKER};
    assert(r->started);
    enum status status = STATUS_OK;
    pthread_mutex_lock(&r->lock);
    uint64_t before = r->barriers;
    if (!rendezvous_send_mail(r, &mail, NULL, 0))
        status = rendezvous_unsent(r, "send", diag);
    while (r->barriers == before && !status)
        status = await_change(r, "the ranks did not connect to each other", deadline_ns, diag);
    pthread_mutex_unlock(&r->lock);
    return status;
}

/* ---- letters --------------------------------------------------------------------------------- */

bool rendezvous_send(struct rendezvous *r, int to, const void *data, size_t bytes)
{
    const struct mail mail = {.kind = MAIL_LETTER, .from = r->rank, .to = to};
    assert(to >= TO_BROKER && to < r->size);
    return rendezvous_send_mail(r, &mail, data, bytes);
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

/* In pieces: a signal to the program undoes the piece it comes into, and no more. */
static bool take_pages(const struct rendezvous *r, int64_t offset, size_t length)
{
    for (size_t done = 0; done < length;) {
        size_t piece = length - done < PIECE_BYTES ? length - done : PIECE_BYTES;
        if (fallocate(r->memory, 0, (off_t)offset + (off_t)done, (off_t)piece) == 0)
            done += piece;
        else if (errno != EINTR)
            return false;
    }
    return true;
}

void *rendezvous_alloc(struct rendezvous *r, size_t bytes, int64_t *offset, struct diag *diag)
{
    size_t length = whole_pages(bytes);
    assert(r->board && bytes <= PTRDIFF_MAX);
    int64_t at = atomic_fetch_add(&r->board->used_bytes, (int64_t)length);
    void *address = MAP_FAILED;
    if (take_pages(r, at, length))
        address = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED, r->memory, (off_t)at);
    if (address == MAP_FAILED) {
        diag_error(diag, STATUS_SYSTEM, "rank %d: no memory for a buffer of %zu bytes: %s", r->rank,
                   bytes, system_words(errno));
        return NULL;
    }
    *offset = at;
    return address;
}

/* Refused, it only stays in use until the run is over. */
static void rendezvous_give_back(const struct rendezvous *r, int64_t offset, size_t length)
{
    assert(offset >= (int64_t)mail_board_bytes(r->size)); /* not the board itself */
    (void)fallocate(r->memory, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)offset,
                    (off_t)length);
}

void rendezvous_free(struct rendezvous *r, void *address, size_t bytes, int64_t offset)
{
    munmap(address, whole_pages(bytes));
    rendezvous_give_back(r, offset, whole_pages(bytes));
}

void rendezvous_free_late(struct rendezvous *r, void *address, size_t bytes, int64_t offset)
{
    struct late_memory *late = malloc(sizeof *late);
    assert(address && offset >= (int64_t)mail_board_bytes(r->size));
    munmap(address, whole_pages(bytes));
    if (!late)
        return; /* as if refused */
    pthread_mutex_lock(&r->lock);
    *late = (struct late_memory){.next = r->late, .offset = offset, .bytes = whole_pages(bytes)};
    r->late = late;
    pthread_mutex_unlock(&r->lock);
}

void rendezvous_age(struct rendezvous *r)
{
    pthread_mutex_lock(&r->lock);
    for (struct late_memory **at = &r->late; *at;) {
        struct late_memory *late = *at;
        if (!late->aged) {
            late->aged = true;
            at = &late->next;
            continue;
        }
        rendezvous_give_back(r, late->offset, late->bytes);
        *at = late->next;
        free(late);
    }
    pthread_mutex_unlock(&r->lock);
}

static void *map_new(struct rendezvous *r, int64_t offset, size_t bytes)
{
    struct mapping *mapping =
        mail_check_file(r->memory, offset, whole_pages(bytes)) ? malloc(sizeof *mapping) : NULL;
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
        if (at->offset == offset && at->bytes >= bytes)
            address = at->address;
    if (!address)
        address = map_new(r, offset, bytes);
    pthread_mutex_unlock(&r->lock);
    return address;
}
