/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inject.c - the preloaded library of inject.h.
 *
 * Each function of a kind is defined here under its own name, asks `fails` and else calls the next definition, which
 * is the C library's or a sanitizer's. Streams that a program writes through are made with fopencookie, so
 * that what the C library writes from inside (printf, fclose, exit) is a call of this file too; fileno and freopen
 * know these streams. A read of a stream fails by its error flag.
 */
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <unistd.h>

#include "inject.h"

enum { MAX_STREAMS = 16 };

static struct inject_counts *counts;
static int wanted = -1, stacks = -1;
static uint64_t first;
static const char *from; /* NULL: anywhere */
static bool lasting;
static __thread bool busy __attribute__((tls_model("initial-exec")));

static const char *const kind_names[] = {
#define X(name, error) #name,
    INJECT_LIST(X)
#undef X
};
static const int kind_errors[] = {
#define X(name, error) error,
    INJECT_LIST(X)
#undef X
};

/* POSIX lets a function's address travel through void *; the language does not. */
static void find(void *pointer, const char *name)
{
    void *address = dlsym(RTLD_NEXT, name);
    memcpy(pointer, &address, sizeof address);
}

#define NEXT(name)                                                                                 \
    ({                                                                                             \
        static __typeof__(name) *next;                                                             \
        if (!next)                                                                                 \
            find(&next, #name);                                                                    \
        next;                                                                                      \
    })

/* ---- which call fails ------------------------------------------------------------------------ */

static void note_place(void)
{
    void *frames[INJECT_FRAMES];
    const char *path = getenv("SWSIM_INJECT_TRACE");
    int file = path ? NEXT(open)(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600) : -1;
    if (file < 0)
        return;
    backtrace_symbols_fd(frames, backtrace(frames, INJECT_FRAMES), file);
    NEXT(close)(file);
}

/* FNV-1a over the return addresses. */
static void note_stack(enum inject_kind kind, uint64_t call)
{
    void *frames[INJECT_FRAMES];
    struct inject_stack stack = {kind, call, UINT64_C(14695981039346656037)};
    busy = true;
    int count = backtrace(frames, INJECT_FRAMES);
    for (int i = 0; i < count; i++)
        stack.callers = (stack.callers ^ (uint64_t)(uintptr_t)frames[i]) * UINT64_C(1099511628211);
    if (NEXT(write)(stacks, &stack, sizeof stack) != sizeof stack)
        abort();
    busy = false;
}

static bool is_of(const void *frame, const char *name)
{
    Dl_info about;
    if (!dladdr(frame, &about))
        return false;
    const char *folder = strrchr(about.dli_fname, '/');
    const char *file = folder ? folder + 1 : about.dli_fname;
    return strncmp(file, name, strlen(name)) == 0 ||
           (about.dli_sname && strcmp(about.dli_sname, name) == 0);
}

/* Some function on the stack is the one that was named, or of the library. */
static bool comes_from(const char *name)
{
    void *frames[INJECT_FRAMES];
    bool found = false;
    busy = true;
    for (int i = 0, count = backtrace(frames, INJECT_FRAMES); i < count && !found; i++)
        found = is_of(frames[i], name);
    busy = false;
    return found;
}

static bool fails(enum inject_kind kind)
{
    if (!counts || busy || (from && !comes_from(from)))
        return false;
    uint64_t call = atomic_fetch_add(&counts->calls[kind], 1) + 1;
    if (stacks >= 0)
        note_stack(kind, call);
    if ((int)kind != wanted || call < first || (call > first && !lasting))
        return false;
    busy = true;
    if (atomic_fetch_add(&counts->failed, 1) == 0)
        note_place();
    busy = false;
    errno = kind_errors[kind];
    return true;
}

static void parse(const char *text)
{
    const char *colon = strchr(text, ':');
    for (int kind = 0; colon && kind < INJECT_KINDS; kind++)
        if (strlen(kind_names[kind]) == (size_t)(colon - text) &&
            strncmp(text, kind_names[kind], (size_t)(colon - text)) == 0)
            wanted = kind;
    char *end;
    first = colon ? strtoull(colon + 1, &end, 10) : 0;
    lasting = colon && *end == '+';
}

static struct inject_counts *map_counts(void)
{
    const char *path = getenv("SWSIM_INJECT_COUNTS");
    int file = path ? NEXT(open)(path, O_RDWR | O_CLOEXEC) : -1;
    void *memory = NEXT(mmap)(NULL, sizeof(struct inject_counts), PROT_READ | PROT_WRITE,
                              MAP_SHARED | (file < 0 ? MAP_ANONYMOUS : 0), file, 0);
    if (file >= 0)
        NEXT(close)(file);
    return memory == MAP_FAILED ? NULL : memory;
}

static int open_stacks(void)
{
    const char *path = getenv("SWSIM_INJECT_STACKS");
    return path ? NEXT(open)(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600) : -1;
}

/* ---- streams --------------------------------------------------------------------------------- */

struct stream {
    FILE *file;
    int fd;
};
static struct stream streams[MAX_STREAMS];

static struct stream *stream_of(FILE *file)
{
    for (int i = 0; i < MAX_STREAMS; i++)
        if (file && streams[i].file == file)
            return &streams[i];
    return NULL;
}

static ssize_t stream_write(void *cookie, const char *data, size_t bytes)
{
    ssize_t written = write(((struct stream *)cookie)->fd, data, bytes);
    return written < 0 ? 0 : written;
}

static int stream_close(void *cookie)
{
    struct stream *stream = cookie;
    stream->file = NULL;
    return NEXT(close)(stream->fd);
}

static FILE *stream_open(int fd)
{
    const cookie_io_functions_t functions = {.write = stream_write, .close = stream_close};
    struct stream *stream = NULL;
    for (int i = 0; i < MAX_STREAMS; i++)
        if (!streams[i].file)
            stream = &streams[i];
    FILE *file = stream ? fopencookie(stream, "w", functions) : NULL;
    if (file)
        *stream = (struct stream){file, fd};
    return file;
}

int fileno(FILE *file)
{
    const struct stream *stream = stream_of(file);
    return stream ? stream->fd : NEXT(fileno)(file);
}

FILE *freopen(const char *path, const char *mode, FILE *file)
{
    struct stream *stream = stream_of(file);
    if (!stream)
        return NEXT(freopen)(path, mode, file);
    (void)fflush(file);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return NULL;
    dup3(fd, stream->fd, 0);
    NEXT(close)(fd);
    return file;
}

/* ---- beginning and end ----------------------------------------------------------------------- */

__attribute__((constructor)) static void begin(void)
{
    const char *text = getenv("SWSIM_INJECT");
    void *frame;
    if (!text)
        return;
    backtrace(&frame, 1); /* it loads a library at its first call */
    parse(text);
    stdout = stream_open(STDOUT_FILENO);
}

/* Calls of libraries before main are not the program's to answer for. */
static int (*program_main)(int, char **, char **);

static int main_with_counts(int argc, char **argv, char **environment)
{
    if (getenv("SWSIM_INJECT")) {
        stacks = open_stacks();
        from = getenv("SWSIM_INJECT_FROM");
        counts = map_counts();
    }
    return program_main(argc, argv, environment);
}

typedef int start_main(int (*)(int, char **, char **), int, char **, void (*)(void), void (*)(void),
                       void (*)(void), void *);
int __libc_start_main(int (*main)(int, char **, char **), int argc, char **argv, void (*init)(void),
                      void (*fini)(void), void (*rtld_fini)(void), void *stack_end);

int __libc_start_main(int (*main)(int, char **, char **), int argc, char **argv, void (*init)(void),
                      void (*fini)(void), void (*rtld_fini)(void), void *stack_end)
{
    start_main *next;
    find(&next, "__libc_start_main");
    program_main = main;
    return next(main_with_counts, argc, argv, init, fini, rtld_fini, stack_end);
}

__attribute__((destructor)) static void end(void)
{
    const char *text = getenv("SWSIM_INJECT");
    if (!text || !counts || strcmp(text, "count") != 0)
        return;
    busy = true;
    for (int kind = 0; kind < INJECT_KINDS; kind++)
        dprintf(STDERR_FILENO, "%s%s %" PRIu64, kind ? ", " : "inject: ", kind_names[kind],
                atomic_load(&counts->calls[kind]));
    dprintf(STDERR_FILENO, "\n");
}

/* ---- the calls ------------------------------------------------------------------------------- */

#define WRAP(kind, failed, result, name, parameters, ...)                                          \
    result name parameters                                                                         \
    {                                                                                              \
        return fails(INJECT_##kind) ? (failed) : NEXT(name)(__VA_ARGS__);                          \
    }

WRAP(memory, NULL, void *, malloc, (size_t bytes), bytes)
WRAP(memory, NULL, void *, calloc, (size_t count, size_t bytes), count, bytes)
WRAP(memory, NULL, void *, realloc, (void *old, size_t bytes), old, bytes)
WRAP(memory, NULL, void *, reallocarray, (void *old, size_t count, size_t bytes), old, count, bytes)
WRAP(memory, NULL, void *, aligned_alloc, (size_t align, size_t bytes), align, bytes)
WRAP(memory, NULL, void *, memalign, (size_t align, size_t bytes), align, bytes)
WRAP(memory, ENOMEM, int, posix_memalign, (void **out, size_t align, size_t bytes), out, align,
     bytes)

/* `mode` is there or not, as of open. */
#define WRAP_OPEN(name, parameters, ...)                                                           \
    int name parameters                                                                            \
    {                                                                                              \
        va_list args;                                                                              \
        va_start(args, flags);                                                                     \
        mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(args, mode_t) : 0;                    \
        va_end(args);                                                                              \
        return fails(INJECT_open) ? -1 : NEXT(name)(__VA_ARGS__, flags, mode);                     \
    }

WRAP_OPEN(open, (const char *path, int flags, ...), path)
WRAP_OPEN(open64, (const char *path, int flags, ...), path)
WRAP_OPEN(openat, (int folder, const char *path, int flags, ...), folder, path)
WRAP_OPEN(openat64, (int folder, const char *path, int flags, ...), folder, path)
WRAP(open, -1, int, mkstemp, (char *path), path)
WRAP(open, -1, int, mkstemp64, (char *path), path)
WRAP(open, -1, int, memfd_create, (const char *name, unsigned flags), name, flags)
WRAP(open, -1, int, shm_open, (const char *name, int flags, mode_t mode), name, flags, mode)

static FILE *open_stream(const char *path, const char *mode)
{
    if (!strchr("wa", *mode))
        return NEXT(fopen)(path, mode);
    int fd = NEXT(open)(path, O_WRONLY | O_CREAT | (*mode == 'w' ? O_TRUNC : O_APPEND), 0666);
    return fd < 0 ? NULL : stream_open(fd);
}

FILE *fopen(const char *path, const char *mode)
{
    return fails(INJECT_open) ? NULL : open_stream(path, mode);
}

FILE *fopen64(const char *path, const char *mode)
{
    return fails(INJECT_open) ? NULL : open_stream(path, mode);
}

FILE *fdopen(int fd, const char *mode)
{
    return *mode == 'w' ? stream_open(fd) : NEXT(fdopen)(fd, mode);
}

/* A stream keeps the failure, as after a failed read of its own. */
static bool read_fails(FILE *file)
{
    enum { ERROR_SEEN = 0x20 };
    if (!fails(INJECT_read))
        return false;
    file->_flags |= ERROR_SEEN;
    return true;
}

size_t fread(void *data, size_t size, size_t count, FILE *file)
{
    return read_fails(file) ? 0 : NEXT(fread)(data, size, count, file);
}

char *fgets(char *line, int bytes, FILE *file)
{
    return read_fails(file) ? NULL : NEXT(fgets)(line, bytes, file);
}

ssize_t getline(char **line, size_t *bytes, FILE *file)
{
    return read_fails(file) ? -1 : NEXT(getline)(line, bytes, file);
}

/* A disk fails; a pipe, a socket or an eventfd has no disk. Standard output is whatever it is. */
static bool has_disk(int fd)
{
    struct stat about;
    return fd == STDOUT_FILENO || (fstat(fd, &about) == 0 && S_ISREG(about.st_mode));
}

#define WRAP_READ(result, name, parameters, ...)                                                   \
    result name parameters                                                                         \
    {                                                                                              \
        return has_disk(fd) && fails(INJECT_read) ? -1 : NEXT(name)(__VA_ARGS__);                  \
    }

WRAP_READ(ssize_t, read, (int fd, void *data, size_t bytes), fd, data, bytes)
WRAP_READ(ssize_t, pread, (int fd, void *data, size_t bytes, off_t at), fd, data, bytes, at)
WRAP_READ(ssize_t, pread64, (int fd, void *data, size_t bytes, off64_t at), fd, data, bytes, at)

#define WRAP_WRITE(result, name, parameters, ...)                                                  \
    result name parameters                                                                         \
    {                                                                                              \
        return has_disk(fd) && fails(INJECT_write) ? -1 : NEXT(name)(__VA_ARGS__);                 \
    }

WRAP_WRITE(ssize_t, write, (int fd, const void *data, size_t bytes), fd, data, bytes)
WRAP_WRITE(ssize_t, pwrite, (int fd, const void *data, size_t bytes, off_t at), fd, data, bytes, at)
WRAP_WRITE(ssize_t, pwrite64, (int fd, const void *data, size_t bytes, off64_t at), fd, data, bytes,
           at)
WRAP_WRITE(ssize_t, writev, (int fd, const struct iovec *parts, int count), fd, parts, count)
WRAP_WRITE(int, ftruncate, (int fd, off_t bytes), fd, bytes)
WRAP_WRITE(int, ftruncate64, (int fd, off64_t bytes), fd, bytes)
WRAP_WRITE(int, fallocate, (int fd, int mode, off_t at, off_t bytes), fd, mode, at, bytes)
WRAP_WRITE(int, fallocate64, (int fd, int mode, off64_t at, off64_t bytes), fd, mode, at, bytes)

int posix_fallocate(int fd, off_t at, off_t bytes)
{
    return fails(INJECT_write) ? ENOSPC : NEXT(posix_fallocate)(fd, at, bytes);
}

WRAP(sync, -1, int, fsync, (int fd), fd)
WRAP(sync, -1, int, fdatasync, (int fd), fd)
WRAP(sync, -1, int, msync, (void *memory, size_t bytes, int flags), memory, bytes, flags)

WRAP(rename, -1, int, rename, (const char *from, const char *to), from, to)
WRAP(rename, -1, int, link, (const char *from, const char *to), from, to)
WRAP(rename, -1, int, fchmod, (int fd, mode_t mode), fd, mode)

WRAP(map, MAP_FAILED, void *, mmap,
     (void *where, size_t bytes, int access, int flags, int fd, off_t at), where, bytes, access,
     flags, fd, at)
WRAP(map, MAP_FAILED, void *, mmap64,
     (void *where, size_t bytes, int access, int flags, int fd, off64_t at), where, bytes, access,
     flags, fd, at)

WRAP(process, -1, pid_t, fork, (void))
WRAP(process, EAGAIN, int, posix_spawn,
     (pid_t * out, const char *path, const posix_spawn_file_actions_t *actions,
      const posix_spawnattr_t *attributes, char *const *argv, char *const *environment),
     out, path, actions, attributes, argv, environment)
WRAP(process, EAGAIN, int, posix_spawnp,
     (pid_t * out, const char *path, const posix_spawn_file_actions_t *actions,
      const posix_spawnattr_t *attributes, char *const *argv, char *const *environment),
     out, path, actions, attributes, argv, environment)

WRAP(thread, EAGAIN, int, pthread_create,
     (pthread_t * out, const pthread_attr_t *attributes, void *(*start)(void *), void *context),
     out, attributes, start, context)

WRAP(socket, -1, int, socket, (int domain, int type, int protocol), domain, type, protocol)
WRAP(socket, -1, int, socketpair, (int domain, int type, int protocol, int pair[2]), domain, type,
     protocol, pair)
WRAP(socket, -1, int, bind, (int fd, const struct sockaddr *address, socklen_t bytes), fd, address,
     bytes)
WRAP(socket, -1, int, listen, (int fd, int waiting), fd, waiting)
WRAP(socket, -1, int, connect, (int fd, const struct sockaddr *address, socklen_t bytes), fd,
     address, bytes)
WRAP(socket, -1, int, accept, (int fd, struct sockaddr *address, socklen_t *bytes), fd, address,
     bytes)
WRAP(socket, -1, int, accept4, (int fd, struct sockaddr *address, socklen_t *bytes, int flags), fd,
     address, bytes, flags)
WRAP(socket, -1, int, setsockopt, (int fd, int level, int name, const void *value, socklen_t bytes),
     fd, level, name, value, bytes)
WRAP(socket, -1, int, getsockopt, (int fd, int level, int name, void *value, socklen_t *bytes), fd,
     level, name, value, bytes)
WRAP(socket, -1, ssize_t, send, (int fd, const void *data, size_t bytes, int flags), fd, data,
     bytes, flags)
WRAP(socket, -1, ssize_t, sendmsg, (int fd, const struct msghdr *message, int flags), fd, message,
     flags)
WRAP(socket, -1, ssize_t, recv, (int fd, void *data, size_t bytes, int flags), fd, data, bytes,
     flags)
WRAP(socket, -1, ssize_t, recvmsg, (int fd, struct msghdr *message, int flags), fd, message, flags)
WRAP(socket, -1, int, pipe, (int ends[2]), ends)
WRAP(socket, -1, int, pipe2, (int ends[2], int flags), ends, flags)
WRAP(socket, -1, int, eventfd, (unsigned value, int flags), value, flags)
WRAP(socket, -1, int, timerfd_create, (int clock, int flags), clock, flags)
WRAP(socket, -1, int, epoll_create1, (int flags), flags)
WRAP(socket, -1, int, epoll_ctl, (int fd, int what, int of, struct epoll_event *event), fd, what,
     of, event)
