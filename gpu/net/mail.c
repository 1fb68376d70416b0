/* SPDX-License-Identifier: Apache-2.0 */
/* mail.c - see mail.h. */
#include "mail.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

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
