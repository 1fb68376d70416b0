/* SPDX-License-Identifier: Apache-2.0 */
/* output.c - see output.h. */
#include "output.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "system_words.h"

enum { MAX_LINKS = 40, MAX_NAMES = 1000, NAME_TAIL = 32, PIPE_LOOKS = 500 };

/* One file to be written. */
struct target {
    char path[PATH_MAX];               /* behind all links */
    char beside[PATH_MAX + NAME_TAIL]; /* the file that is renamed to it */
    struct stat old;
    bool exists;
};

/* `path` becomes what the link there names; a relative name counts from the link's folder. */
static bool output_follow(char path[PATH_MAX])
{
    char name[PATH_MAX], folder[PATH_MAX];
    ssize_t length = readlink(path, name, sizeof name - 1);
    if (length < 0)
        return false;
    name[length] = '\0';
    memcpy(folder, path, PATH_MAX);
    int size = name[0] == '/' ? snprintf(path, PATH_MAX, "%s", name)
                              : snprintf(path, PATH_MAX, "%s/%s", dirname(folder), name);
    errno = ENAMETOOLONG;
    return size < PATH_MAX;
}

/* Where a chain of links ends, which need not exist. */
static bool find_end(const char *path, char out[PATH_MAX])
{
    struct stat about;
    errno = ENAMETOOLONG;
    if (snprintf(out, PATH_MAX, "%s", path) >= PATH_MAX)
        return false;
    for (int links = 0; lstat(out, &about) == 0 && S_ISLNK(about.st_mode); links++) {
        errno = ELOOP;
        if (links == MAX_LINKS || !output_follow(out))
            return false;
    }
    return true;
}

static bool output_write_all(int file, const char *data, size_t bytes)
{
    for (ssize_t done; bytes > 0; bytes -= (size_t)done, data += done) {
        done = write(file, data, bytes);
        if (done < 0 && errno == EINTR)
            done = 0;
        if (done < 0)
            return false;
    }
    return true;
}

/* Close the file, which holds all if `written`; errno is that of the first failure. */
static bool close_after(int file, bool written)
{
    int error = errno;
    bool closed = close(file) == 0;
    errno = written ? errno : error;
    return written && closed;
}

/* A pipe that no process reads is waited for; errno is ENXIO where none comes. */
static int open_directly(const char *path, bool is_pipe)
{
    const struct timespec look = {.tv_nsec = 20000000};
    int file = -1, flags;
    for (int looks = 0; looks < PIPE_LOOKS; looks++) {
        file = open(path, O_WRONLY | O_TRUNC | O_NONBLOCK | O_CLOEXEC);
        if (file >= 0 || errno != ENXIO || !is_pipe || nanosleep(&look, NULL) != 0)
            break;
    }
    if (file < 0)
        return -1;
    flags = fcntl(file, F_GETFL);
    if (flags >= 0 && fcntl(file, F_SETFL, flags & ~O_NONBLOCK) == 0)
        return file;
    (void)close_after(file, false);
    return -1;
}

/* Its reader may leave: that is an error, and no signal. */
static bool write_directly(const struct target *target, const char *data, size_t bytes)
{
    const struct timespec now = {0};
    sigset_t pipe, before;
    int file = open_directly(target->path, S_ISFIFO(target->old.st_mode));
    if (file < 0)
        return false;
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe, &before); /* cannot fail with these arguments */
    bool written = output_write_all(file, data, bytes);
    int error = errno;
    if (!written && error == EPIPE)
        (void)sigtimedwait(&pipe, NULL, &now);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = error;
    return close_after(file, written);
}

/* True if `name` is one that create_beside makes for `of`, left by a process that was killed while it wrote. In a
   folder that machines or containers share the process may live elsewhere, so that the file must be old, too. */
static bool is_left_over(int folder, const char *name, const char *of)
{
    enum { OLD_S = 60 };
    struct stat about;
    char stem[NAME_MAX + 1], *end;
    const int length = snprintf(stem, sizeof stem, ".%.200s.", of);
    if (strncmp(name, stem, (size_t)length) != 0)
        return false;
    const long process = strtol(name + length, &end, 10);
    if (process <= 0 || *end != '-' || end[1 + strspn(end + 1, "0123456789")] != '\0')
        return false;
    return kill((pid_t)process, 0) != 0 && errno == ESRCH &&
           fstatat(folder, name, &about, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(about.st_mode) &&
           time(NULL) - about.st_mtime > OLD_S;
}

/* Nothing depends on it: what cannot be removed stays. */
static void remove_left_over(const char *in, const char *of)
{
    DIR *folder = opendir(in);
    for (struct dirent *entry = folder ? readdir(folder) : NULL; entry; entry = readdir(folder))
        if (is_left_over(dirfd(folder), entry->d_name, of))
            (void)unlinkat(dirfd(folder), entry->d_name, 0);
    if (folder)
        closedir(folder);
}

/* A new file with a name of its own. It is hidden, and its name ends in that of the process. */
static int create_beside(struct target *target)
{
    char folder[PATH_MAX], name[PATH_MAX];
    memcpy(folder, target->path, PATH_MAX);
    memcpy(name, target->path, PATH_MAX);
    const char *in = dirname(folder), *of = basename(name);
    int file = -1;
    remove_left_over(in, of);
    for (int i = 0; i < MAX_NAMES && file < 0; i++) {
        snprintf(target->beside, sizeof target->beside, "%s/.%.200s.%ld-%d", in, of, (long)getpid(),
                 i);
        file = open(target->beside, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (file < 0 && errno != EEXIST)
            break;
    }
    return file;
}

/* Owner and group stay where the system lets them, so a failure of fchown is none; the mode must stay. */
static bool keep_permissions(const struct target *target, int file)
{
    if (!target->exists)
        return true;
    bool ours = target->old.st_uid == geteuid() && target->old.st_gid == getegid();
    if (!ours && fchown(file, target->old.st_uid, target->old.st_gid) != 0)
        errno = 0;
    return fchmod(file, target->old.st_mode & 07777) == 0;
}

static bool no_file_can_be_made(int error)
{
    return error == EACCES || error == EPERM || error == EROFS;
}

static bool replace(struct target *target, const char *data, size_t bytes)
{
    int file = create_beside(target);
    if (file < 0)
        return target->exists && no_file_can_be_made(errno) && write_directly(target, data, bytes);
    bool written =
        output_write_all(file, data, bytes) && keep_permissions(target, file) && fsync(file) == 0;
    if (close_after(file, written) && rename(target->beside, target->path) == 0)
        return true;
    int error = errno;
    (void)unlink(target->beside); /* the message is about what failed first */
    errno = error;
    return false;
}

/* Signals that end the process wait until the file beside is renamed or removed. */
static bool replace_undisturbed(struct target *target, const char *data, size_t bytes)
{
    sigset_t ends, before;
    sigemptyset(&ends);
    sigaddset(&ends, SIGINT);
    sigaddset(&ends, SIGTERM);
    sigaddset(&ends, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &ends, &before); /* cannot fail with these arguments */
    bool replaced = replace(target, data, bytes);
    int error = errno;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = error;
    return replaced;
}

/* A file that its owner protected is not replaced, though its folder would allow it. */
static bool write_to(struct target *target, const char *data, size_t bytes)
{
    target->exists = stat(target->path, &target->old) == 0;
    if (!target->exists && errno != ENOENT)
        return false;
    if (target->exists && access(target->path, W_OK) != 0)
        return false;
    return target->exists && !S_ISREG(target->old.st_mode)
               ? write_directly(target, data, bytes)
               : replace_undisturbed(target, data, bytes);
}

enum status output_write(const char *path, const char *data, size_t bytes, struct diag *diag)
{
    struct target target;
    if (find_end(path, target.path) && write_to(&target, data, bytes))
        return STATUS_OK;
    if (errno == ENXIO)
        return diag_error(diag, STATUS_SYSTEM, "cannot write %s: no process reads from it", path);
    return diag_error(diag, STATUS_SYSTEM, "cannot write %s: %s", path, system_words(errno));
}
