/* SPDX-License-Identifier: Apache-2.0 */
/* mail.c - see mail.h. */
#include "mail.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* A silent peer is asked after IDLE_S, every INTERVAL_S, and gone after PROBES without an answer. */
enum { IDLE_S = 2, INTERVAL_S = 1, PROBES = 4, UNSENT_MS = 6000 };

bool mail_address(const char *name, struct sockaddr_un *out, socklen_t *length)
{
    *out = (struct sockaddr_un){.sun_family = AF_UNIX};
    int written = snprintf(out->sun_path + 1, sizeof out->sun_path - 1, "swrun-%u-%s",
                           (unsigned)getuid(), name);
    *length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)written);
    return *name && strlen(name) <= RENDEZVOUS_MAX_NAME && written < (int)sizeof out->sun_path - 1;
}

bool mail_send_file(int socket, const struct mail *mail, int file)
{
    struct iovec part = {(void *)mail, sizeof *mail};
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
    memcpy(CMSG_DATA(header), &file, sizeof(int));
    return sendmsg(socket, &message, MSG_NOSIGNAL) == (ssize_t)sizeof *mail;
}

bool mail_same_user(int socket, unsigned *other)
{
    struct ucred owner;
    socklen_t length = sizeof owner;
    if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &owner, &length) != 0)
        return false;
    *other = owner.uid;
    return owner.uid == getuid();
}

size_t mail_board_bytes(int size)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t bytes = sizeof(struct board) + (size_t)size * sizeof(struct board_member);
    return (bytes + page - 1) / page * page;
}

int64_t mail_clock_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* ---- what both ends begin with --------------------------------------------------------------- */

int mail_open_board(int size, int64_t base_ns, int *file, struct board **board)
{
    size_t bytes = mail_board_bytes(size);
    int memory = memfd_create("swrun", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (memory < 0)
        return errno;
    void *mapped = MAP_FAILED;
    if (ftruncate(memory, (off_t)bytes) == 0 &&
        fcntl(memory, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_SEAL) == 0)
        mapped = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
    if (mapped == MAP_FAILED) {
        int error = errno;
        close(memory);
        return error;
    }
    *file = memory;
    *board = mapped;
    (*board)->base_ns = base_ns;
    atomic_store(&(*board)->used_bytes, (int64_t)bytes);
    return 0;
}

bool mail_check_file(int file, int64_t offset, size_t bytes)
{
    struct stat status;
    int seals = fcntl(file, F_GET_SEALS);
    return seals >= 0 && (seals & F_SEAL_SHRINK) && fstat(file, &status) == 0 && offset >= 0 &&
           offset <= status.st_size && bytes <= (uint64_t)(status.st_size - offset);
}

int mail_init_condition(pthread_cond_t *condition)
{
    pthread_condattr_t clock;
    int error = pthread_condattr_init(&clock);
    if (error)
        return error;
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    error = pthread_cond_init(condition, &clock);
    pthread_condattr_destroy(&clock);
    return error;
}

/* ---- streams --------------------------------------------------------------------------------- */

bool mail_read(int socket, void *data, size_t bytes)
{
    char *at = data;
    while (bytes > 0) {
        ssize_t got = recv(socket, at, bytes, 0);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        at += got;
        bytes -= (size_t)got;
    }
    return true;
}

bool mail_write(int socket, const void *data, size_t bytes)
{
    const char *at = data;
    while (bytes > 0) {
        ssize_t sent = send(socket, at, bytes, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0)
            return false;
        at += sent;
        bytes -= (size_t)sent;
    }
    return true;
}

/* An option that is refused only makes it slower. */
static void set(int socket, int level, int name, int value)
{
    (void)setsockopt(socket, level, name, &value, sizeof value);
}

void mail_set_up_far(int socket)
{
    set(socket, IPPROTO_TCP, TCP_NODELAY, 1);
    set(socket, SOL_SOCKET, SO_KEEPALIVE, 1);
    set(socket, IPPROTO_TCP, TCP_KEEPIDLE, IDLE_S);
    set(socket, IPPROTO_TCP, TCP_KEEPINTVL, INTERVAL_S);
    set(socket, IPPROTO_TCP, TCP_KEEPCNT, PROBES);
    set(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, UNSENT_MS);
}

bool mail_same_secret(const char *a, const char *b)
{
    unsigned different = 0;
    for (int i = 0; i < MEETING_SECRET; i++)
        different |= (unsigned char)(a[i] ^ b[i]);
    return different == 0;
}

/* ---- news of the board ----------------------------------------------------------------------- */

void mail_write_news(const struct board *board, int first, int count, struct mail_news *out)
{
    *out = (struct mail_news){.first = first, .count = count, .hung = atomic_load(&board->hung)};
    for (int i = 0; i < count; i++) {
        const struct board_member *member = &board->members[first + i];
        int64_t beat_ns = atomic_load(&member->beat_ns);
        out->members[i] =
            (struct mail_news_member){.progress = atomic_load(&member->progress),
                                      .beat_ns = beat_ns ? beat_ns - board->base_ns : 0,
                                      .wanted = atomic_load(&member->wanted)};
    }
}

/* Of foreign numbers: it wraps. */
static int64_t sum(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a + (uint64_t)b);
}

void mail_read_news(struct board *board, const struct mail_news *news, int except)
{
    if (news->hung)
        atomic_store(&board->hung, true);
    for (int i = 0; i < news->count; i++) {
        const struct mail_news_member *from = &news->members[i];
        struct board_member *member = &board->members[news->first + i];
        if (news->first + i == except)
            continue;
        atomic_store(&member->progress, from->progress);
        atomic_store(&member->beat_ns, from->beat_ns ? sum(from->beat_ns, board->base_ns) : 0);
        atomic_store(&member->wanted, from->wanted);
    }
}

bool mail_check_news(const struct mail_news *news, size_t bytes, int size)
{
    return bytes >= sizeof *news && news->count >= 0 && news->count <= NEWS_MEMBERS &&
           news->first >= 0 && news->first <= size && news->count <= size - news->first &&
           bytes == sizeof *news + (size_t)news->count * sizeof *news->members;
}
