/*
 * hub.c - the hub of a rendezvous: a thread that carries mail and notices who dies; see hub_impl.h.
 *
 *     member 0 --- mail ---> hub --- outbox ---> member 1, 2, ...
 *                             '----- inbox ----> owner
 *
 * Reading from a peer goes on whatever the state of the others, so nobody's send blocks for long; what
 * a peer that does not read is sent waits in its outbox. Only when the owner is INBOX_BYTES behind nobody
 * is read from until it has caught up: so ranks cannot log faster than is stored.
 */
#include "hub_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "door.h"

enum { HELLO_MS = 1000, INBOX_BYTES = 64 << 20 };

/* ---- outboxes -------------------------------------------------------------------------------- */

/* With the lock held. */
void hub_put_in_outbox(struct hub *hub, struct peer *peer, const void *packet, size_t bytes)
{
    struct letter *letter = malloc(sizeof *letter + bytes);
    if (!letter) {
        hub->no_memory =
            true; /* the thread ends, and with it the run: mail is never lost silently */
        return;
    }
    *letter = (struct letter){.sent = peer->partial ? 0 : sizeof letter->length,
                              .bytes = sizeof letter->length + bytes,
                              .length = (uint32_t)bytes};
    memcpy(letter->packet, packet, bytes);
    *peer->last = letter;
    peer->last = &letter->next;
}

void hub_post(struct hub *hub, struct peer *peer, const void *packet, size_t bytes)
{
    if (peer->socket >= 0 && peer->hello)
        hub_put_in_outbox(hub, peer, packet, bytes);
}

static void post_all(struct hub *hub, int except, const void *packet, size_t bytes)
{
    for (int rank = 0; rank < hub->size; rank++)
        if (rank != except)
            hub_post(hub, &hub->peers[rank], packet, bytes);
}

static void empty_outbox(struct peer *peer)
{
    while (peer->first) {
        struct letter *letter = peer->first;
        peer->first = letter->next;
        free(letter);
    }
    peer->last = &peer->first;
}

/* As much as the socket takes now. */
static void write_outbox(struct peer *peer)
{
    while (peer->first) {
        struct letter *letter = peer->first;
        ssize_t sent = send(peer->socket, (char *)&letter->length + letter->sent,
                            letter->bytes - letter->sent, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0)
            return; /* full; an end of the socket is seen when reading */
        letter->sent += (size_t)sent;
        if (letter->sent < letter->bytes)
            continue;
        peer->first = letter->next;
        if (!peer->first)
            peer->last = &peer->first;
        free(letter);
    }
}

/* ---- coming, meeting, going ------------------------------------------------------------------ */

/* The welcome carries the file, so it does not go through the outbox: it is the first packet. Who cannot
   be reached is found to be gone. */
static void welcome_near(const struct hub *hub, int rank)
{
    struct mail mail = {.kind = MAIL_WELCOME, .from = TO_HUB, .to = rank, .number = hub->size};
    struct iovec part = {&mail, sizeof mail};
    union {
        char bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } control = {{0}};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = sizeof control.bytes};
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(header), &hub->memory, sizeof(int));
    (void)sendmsg(hub->peers[rank].socket, &message, MSG_NOSIGNAL);
}

static void welcome_all(struct hub *hub)
{
    if (hub->welcomed)
        return; /* somebody says hello again */
    for (int rank = 0; rank < hub->size; rank++)
        if (!hub->peers[rank].hello)
            return;
    hub->welcomed = true;
    for (int rank = 0; rank < hub->size; rank++)
        atomic_store(&hub->board->members[rank].far, hub->peers[rank].partial != NULL);
    for (int rank = 0; rank < hub->size; rank++)
        if (hub->peers[rank].partial)
            hub_far_welcome(hub, rank);
        else
            welcome_near(hub, rank);
}

/* A peer's socket has ended. */
static void bury(struct hub *hub, int rank)
{
    struct peer *peer = &hub->peers[rank];
    struct mail mail = {.kind = MAIL_GONE, .from = rank, .to = TO_ALL};
    close(peer->socket);
    pthread_mutex_lock(&hub->lock);
    peer->socket = -1;
    empty_outbox(peer);
    if (!peer->left) {
        peer->gone = true;
        post_all(hub, rank, &mail, sizeof mail);
    }
    pthread_cond_broadcast(&hub->arrived);
    pthread_mutex_unlock(&hub->lock);
}

static void enter_barrier(struct hub *hub, int from)
{
    struct mail mail = {.kind = MAIL_BARRIER, .from = TO_HUB, .to = TO_ALL};
    hub->peers[from].in_barrier = true;
    for (int rank = 0; rank < hub->size; rank++)
        if (!hub->peers[rank].in_barrier)
            return;
    for (int rank = 0; rank < hub->size; rank++)
        hub->peers[rank].in_barrier = false;
    post_all(hub, -1, &mail, sizeof mail);
}

/* ---- routing: with the lock held ------------------------------------------------------------- */

static void keep_report(struct hub *hub, int from, const char *data, size_t bytes)
{
    struct report *report = malloc(sizeof *report + bytes);
    struct report_node *node = malloc(sizeof *node);
    if (!report || !node) {
        free(report);
        free(node);
        hub->no_memory = true;
        return;
    }
    report->from = from;
    report->bytes = bytes;
    memcpy(report->data, data, bytes);
    *node = (struct report_node){NULL, report};
    *hub->reports_end = node;
    hub->reports_end = &node->next;
    hub->inbox_bytes += bytes;
    pthread_cond_broadcast(&hub->arrived);
}

static void route(struct hub *hub, int from, size_t bytes)
{
    struct mail mail;
    memcpy(&mail, hub->packet, sizeof mail);
    mail.from = from; /* whatever it says */
    memcpy(hub->packet, &mail, sizeof mail);
    switch (mail.kind) {
    case MAIL_PUT: post_all(hub, -1, hub->packet, bytes); break;
    case MAIL_BARRIER: enter_barrier(hub, from); break;
    case MAIL_BYE:
        hub->peers[from].left = true;
        mail.kind = MAIL_LEFT;
        post_all(hub, from, &mail, sizeof mail);
        break;
    case MAIL_BOARD: hub_far_hear_news(hub, from, bytes); break;
    case MAIL_FETCH:
    case MAIL_DATA:
    case MAIL_STORE:
        if (mail.to >= 0 && mail.to < hub->size)
            hub_post(hub, &hub->peers[mail.to], hub->packet, bytes);
        break;
    case MAIL_LETTER:
        if (mail.to == TO_HUB)
            keep_report(hub, from, hub->packet + sizeof mail, bytes - sizeof mail);
        else if (mail.to == TO_ALL)
            post_all(hub, from, hub->packet, bytes);
        else if (mail.to >= 0 && mail.to < hub->size)
            hub_post(hub, &hub->peers[mail.to], hub->packet, bytes);
        break;
    default: break;
    }
}

static ssize_t read_near(struct hub *hub, const struct peer *peer)
{
    ssize_t got = recv(peer->socket, hub->packet, sizeof hub->packet, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    return got < (ssize_t)sizeof(struct mail) ? -1 : got;
}

/* Read one packet of a peer; false: its socket has ended. */
static bool read_peer(struct hub *hub, int rank)
{
    struct peer *peer = &hub->peers[rank];
    ssize_t got = peer->partial ? hub_far_read(hub, peer) : read_near(hub, peer);
    struct mail mail;
    if (got <= 0)
        return got == 0;
    memcpy(&mail, hub->packet, sizeof mail);
    if (mail.kind == MAIL_CLOCK) {
        hub_far_tell_time(hub, peer);
    } else if (mail.kind == MAIL_HELLO) {
        pthread_mutex_lock(&hub->lock);
        peer->hello = true;
        pthread_mutex_unlock(&hub->lock);
        welcome_all(hub);
    } else {
        pthread_mutex_lock(&hub->lock);
        route(hub, rank, (size_t)got);
        pthread_mutex_unlock(&hub->lock);
    }
    return true;
}

/* ---- those who find the hub by name ---------------------------------------------------------- */

static bool same_user(int socket)
{
    struct ucred who;
    socklen_t length = sizeof who;
    return getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &who, &length) == 0 && who.uid == getuid();
}

/* Somebody came: of the right user, with a hello of a rank that is missing. */
static void admit(struct hub *hub)
{
    struct mail mail;
    struct timeval patience = {.tv_sec = HELLO_MS / 1000};
    int socket = accept4(hub->listener, NULL, NULL, SOCK_CLOEXEC);
    if (socket < 0)
        return;
    setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    bool good = same_user(socket) && recv(socket, &mail, sizeof mail, 0) == sizeof mail &&
                mail.kind == MAIL_HELLO && mail.from >= 0 && mail.from < hub->size &&
                hub->peers[mail.from].socket < 0 && !hub->peers[mail.from].hello;
    if (!good) {
        close(socket);
        return;
    }
    pthread_mutex_lock(&hub->lock);
    hub->peers[mail.from].socket = socket;
    hub->peers[mail.from].hello = true;
    pthread_mutex_unlock(&hub->lock);
    welcome_all(hub);
}

/* ---- the thread ------------------------------------------------------------------------------ */

/* polls: 0 the wake-up, 1 the listener, then the peers, the door and who stands there. */
static void prepare_polls(struct hub *hub)
{
    hub->polls[0] = (struct pollfd){.fd = hub->wake, .events = POLLIN};
    hub->polls[1] = (struct pollfd){.fd = hub->welcomed ? -1 : hub->listener, .events = POLLIN};
    hub_far_prepare(hub, &hub->polls[2 + hub->size]);
    pthread_mutex_lock(&hub->lock);
    short reads = hub->inbox_bytes < INBOX_BYTES ? POLLIN : 0;
    for (int rank = 0; rank < hub->size; rank++) {
        struct peer *peer = &hub->peers[rank];
        if (peer->socket >= 0)
            write_outbox(peer);
        hub->polls[2 + rank] = (struct pollfd){
            .fd = peer->socket, .events = (short)(reads | (peer->first ? POLLOUT : 0))};
    }
    pthread_mutex_unlock(&hub->lock);
}

static bool goes_on(struct hub *hub)
{
    pthread_mutex_lock(&hub->lock);
    bool on = !hub->closing && !hub->no_memory;
    pthread_mutex_unlock(&hub->lock);
    return on;
}

static void *serve(void *arg)
{
    struct hub *hub = arg;
    pthread_setname_np(pthread_self(), "hub");
    while (goes_on(hub)) {
        prepare_polls(hub);
        if (poll(hub->polls, (nfds_t)hub->size + 2 + DOOR_POLLS, hub->door ? NEWS_MS : -1) < 0)
            continue; /* interrupted */
        uint64_t count;
        if (hub->polls[0].revents && read(hub->wake, &count, sizeof count) < 0)
            continue;
        if (hub->polls[1].revents)
            admit(hub);
        if (hub->door)
            hub_far_attend(hub, &hub->polls[2 + hub->size]);
        for (int rank = 0; rank < hub->size; rank++) {
            int socket = hub->polls[2 + rank].fd;
            if (socket >= 0 && (hub->polls[2 + rank].revents & (POLLIN | POLLHUP | POLLERR)) &&
                !read_peer(hub, rank))
                bury(hub, rank);
        }
    }
    for (int rank = 0; rank < hub->size; rank++)
        if (hub->peers[rank].socket >= 0)
            shutdown(hub->peers[rank].socket, SHUT_RDWR);
    return NULL;
}

static void wake_thread(struct hub *hub)
{
    uint64_t one = 1;
    ssize_t written = write(hub->wake, &one, sizeof one);
    (void)written; /* full: then it is awake */
}

/* ---- the owner ------------------------------------------------------------------------------- */

static enum status refused(struct diag *diag, const char *what)
{
    return diag_error(diag, STATUS_SYSTEM, "cannot make %s for the ranks to meet: %s", what,
                      strerror(errno));
}

enum status hub_open(int size, struct hub **out, struct diag *diag)
{
    struct hub *hub = calloc(1, sizeof *hub);
    if (!hub)
        return diag_no_memory(diag);
    hub->size = size;
    hub->memory = hub->listener = hub->wake = -1;
    hub->reports_end = &hub->reports;
    enum status status = STATUS_OK;
    errno = mail_init_condition(&hub->arrived);
    if (errno) {
        free(hub);
        return refused(diag, "a condition");
    }
    pthread_mutex_init(&hub->lock, NULL); /* with default attributes it cannot fail */
    hub_far_init(hub);
    hub->peers = calloc((size_t)size, sizeof *hub->peers);
    hub->polls = calloc((size_t)size + 2 + DOOR_POLLS, sizeof *hub->polls);
    for (int rank = 0; hub->peers && rank < size; rank++)
        hub->peers[rank] = (struct peer){.socket = -1, .others = -1};
    for (int rank = 0; hub->peers && rank < size; rank++)
        hub->peers[rank].last = &hub->peers[rank].first;
    if (!hub->peers || !hub->polls)
        status = diag_no_memory(diag);
    if (!status) {
        errno = mail_open_board(size, mail_clock_ns(), &hub->memory, &hub->board);
        status = errno ? refused(diag, "memory") : STATUS_OK;
    }
    if (!status) {
        hub->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        status = hub->wake < 0 ? refused(diag, "an eventfd") : STATUS_OK;
    }
    if (status) {
        hub_close(hub);
        return status;
    }
    *out = hub;
    return STATUS_OK;
}

enum status hub_invite(struct hub *hub, int rank, struct diag *diag)
{
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
        return refused(diag, "a socket");
    hub->peers[rank].socket = ends[0];
    hub->peers[rank].others = ends[1];
    return STATUS_OK;
}

enum status hub_listen(struct hub *hub, const char *name, struct diag *diag)
{
    struct sockaddr_un address;
    socklen_t length;
    if (!mail_address(name, &address, &length))
        return diag_error(diag, STATUS_USAGE,
                          "'%s' is no name to meet under: expected 1 to %d characters", name,
                          RENDEZVOUS_MAX_NAME);
    hub->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (hub->listener < 0 || bind(hub->listener, (struct sockaddr *)&address, length) != 0 ||
        listen(hub->listener, SOMAXCONN) != 0)
        return errno == EADDRINUSE
                   ? diag_error(diag, STATUS_SYSTEM,
                                "another run meets under the name '%s' already", name)
                   : refused(diag, "a socket");
    return STATUS_OK;
}

enum status hub_open_door(struct hub *hub, const struct door *door, int run, struct diag *diag)
{
    char name[RENDEZVOUS_MAX_NAME + 1];
    hub->door = door;
    door_run_name(door_place(door), run, name);
    return hub_listen(hub, name, diag);
}

int hub_inherit(struct hub *hub, int mine)
{
    int socket = hub->peers[mine].others;
    for (int rank = 0; rank < hub->size; rank++) {
        if (hub->peers[rank].socket >= 0)
            close(hub->peers[rank].socket);
        if (hub->peers[rank].others >= 0 && rank != mine)
            close(hub->peers[rank].others);
    }
    if (hub->listener >= 0)
        close(hub->listener);
    close(hub->wake);
    close(hub->memory);
    munmap(hub->board, mail_board_bytes(hub->size));
    free(hub->peers);
    free(hub->polls);
    free(hub);
    return socket;
}

enum status hub_start(struct hub *hub, struct diag *diag)
{
    for (int rank = 0; rank < hub->size; rank++) {
        if (hub->peers[rank].others >= 0)
            close(hub->peers[rank].others);
        hub->peers[rank].others = -1;
    }
    int failed = mail_start_thread(&hub->thread, serve, hub);
    if (failed)
        return diag_error(diag, STATUS_SYSTEM, "cannot start a thread: %s", strerror(failed));
    hub->started = true;
    return STATUS_OK;
}

static void free_reports(struct hub *hub)
{
    while (hub->reports) {
        struct report_node *node = hub->reports;
        hub->reports = node->next;
        free(node->report);
        free(node);
    }
}

void hub_close(struct hub *hub)
{
    if (!hub)
        return;
    pthread_mutex_lock(&hub->lock);
    hub->closing = true;
    pthread_mutex_unlock(&hub->lock);
    if (hub->started) {
        wake_thread(hub);
        pthread_join(hub->thread, NULL);
    }
    for (int rank = 0; hub->peers && rank < hub->size; rank++) {
        empty_outbox(&hub->peers[rank]);
        free(hub->peers[rank].partial);
        if (hub->peers[rank].socket >= 0)
            close(hub->peers[rank].socket);
        if (hub->peers[rank].others >= 0)
            close(hub->peers[rank].others);
    }
    hub_far_fini(hub);
    free_reports(hub);
    if (hub->listener >= 0)
        close(hub->listener);
    if (hub->wake >= 0)
        close(hub->wake);
    if (hub->board)
        munmap(hub->board, mail_board_bytes(hub->size));
    if (hub->memory >= 0)
        close(hub->memory);
    pthread_cond_destroy(&hub->arrived);
    pthread_mutex_destroy(&hub->lock);
    free(hub->peers);
    free(hub->polls);
    free(hub);
}

void hub_wish(struct hub *hub, int wish)
{
    struct mail mail = {.kind = MAIL_WISH, .from = TO_HUB, .to = TO_ALL, .number = wish};
    pthread_mutex_lock(&hub->lock);
    post_all(hub, -1, &mail, sizeof mail);
    pthread_mutex_unlock(&hub->lock);
    wake_thread(hub);
}

const struct board *hub_board(const struct hub *hub)
{
    return hub->board;
}

int hub_ended(struct hub *hub)
{
    int ended = 0;
    pthread_mutex_lock(&hub->lock);
    for (int rank = 0; rank < hub->size; rank++)
        ended += hub->peers[rank].left || hub->peers[rank].gone;
    pthread_mutex_unlock(&hub->lock);
    return ended;
}

bool hub_is_gone(struct hub *hub, int rank)
{
    pthread_mutex_lock(&hub->lock);
    bool gone = hub->peers[rank].gone;
    pthread_mutex_unlock(&hub->lock);
    return gone;
}

struct report *hub_receive(struct hub *hub, int64_t timeout_ns)
{
    int64_t until_ns = mail_clock_ns() + timeout_ns;
    struct timespec until = {.tv_sec = until_ns / 1000000000, .tv_nsec = until_ns % 1000000000};
    struct report *report = NULL;
    bool caught_up = false;
    pthread_mutex_lock(&hub->lock);
    if (!hub->reports && timeout_ns > 0)
        pthread_cond_timedwait(&hub->arrived, &hub->lock, &until);
    struct report_node *node = hub->reports;
    if (node) {
        hub->reports = node->next;
        if (!hub->reports)
            hub->reports_end = &hub->reports;
        report = node->report;
        caught_up = hub->inbox_bytes >= INBOX_BYTES;
        hub->inbox_bytes -= report->bytes;
        caught_up = caught_up && hub->inbox_bytes < INBOX_BYTES;
    }
    pthread_mutex_unlock(&hub->lock);
    free(node);
    if (caught_up)
        wake_thread(hub);
    return report;
}
