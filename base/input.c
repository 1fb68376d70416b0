/* SPDX-License-Identifier: Apache-2.0 */
/* input.c - see input.h. */
#include "input.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "system_words.h"

enum { LOOK_MS = 20, LOOKS = 500, PATIENCE_S = LOOK_MS * LOOKS / 1000 };

/* A pipe between two processes, also by a name as /dev/stdin, has had its writer. */
static bool input_has_name(int fd)
{
    struct stat about;
    struct statfs system;
    return fstat(fd, &about) == 0 && S_ISFIFO(about.st_mode) && fstatfs(fd, &system) == 0 &&
           system.f_type != PIPEFS_MAGIC;
}

/* True if a process has opened the pipe for writing. tee(2) copies what is in it, and takes nothing out. */
static bool has_writer(int fd)
{
    int copy[2];
    if (pipe2(copy, O_CLOEXEC) != 0)
        return true; /* the read says more */
    bool there = tee(fd, copy[1], 1, SPLICE_F_NONBLOCK) != 0;
    close(copy[0]);
    close(copy[1]);
    return there;
}

/* 1: there is a writer, or was one; 0: none in time; -1: errno says why it is not known. */
static int await_writer(int fd)
{
    struct pollfd change = {.fd = fd, .events = POLLIN};
    for (int look = 0; look < LOOKS; look++) {
        if (has_writer(fd))
            return 1;
        int changed = poll(&change, 1, LOOK_MS);
        if (changed != 0)
            return changed;
    }
    return 0;
}

static enum status input_make_ready(int fd, const char *path, struct diag *diag)
{
    int there = input_has_name(fd) ? await_writer(fd) : 1;
    if (there == 0)
        return diag_error(diag, STATUS_SYSTEM,
                          "cannot read %s: no process has opened this pipe for writing in %d s",
                          path, PATIENCE_S);
    int flags = fcntl(fd, F_GETFL);
    if (there < 0 || flags < 0 || fcntl(fd, F_SETFL, flags & ~O_NONBLOCK) != 0)
        return diag_error(diag, STATUS_SYSTEM, "cannot open %s: %s", path, system_words(errno));
    return STATUS_OK;
}

int input_open(const char *path, struct diag *diag)
{
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) {
        diag_error(diag, STATUS_SYSTEM, "cannot open %s: %s", *path ? path : "''",
                   system_words(errno));
        return -1;
    }
    if (input_make_ready(fd, path, diag) == STATUS_OK)
        return fd;
    close(fd);
    return -1;
}

FILE *input_open_stream(const char *path, struct diag *diag)
{
    int fd = input_open(path, diag);
    FILE *file = fd < 0 ? NULL : fdopen(fd, "rb");
    if (fd >= 0 && !file) {
        diag_error(diag, STATUS_SYSTEM, "cannot open %s: %s", path, system_words(errno));
        close(fd);
    }
    return file;
}

bool input_is_ordinary(const char *path)
{
    struct stat about;
    return stat(path, &about) == 0 && S_ISREG(about.st_mode);
}

bool input_keep_streams(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/", O_PATH) != fd) /* takes the lowest one */
            return false;
    return true;
}
