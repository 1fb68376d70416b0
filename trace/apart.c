/* SPDX-License-Identifier: Apache-2.0 */
/*
 * apart.c - see apart.h.
 *
 * Result, standard error and the child's own report are files in memory that both processes know, so that the parent
 * has only to wait for the child's end. The report is written last: without it the child did not finish.
 */
#include "apart.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/system_words.h"

enum { MAX_SAID = 400 };

/* The message that the child sends at its end. */
struct report {
    enum status status;
    bool no_memory;
    char error[MAX_SAID];
};

struct shared {
    int result, said, report; /* descriptors of files in memory */
};

struct child {
    pid_t pid; /* -1: it was not started, or has ended */
    struct shared shared;
    char said[MAX_SAID]; /* the first line on its standard error, known after its end */
};

#define NO_CHILD                                                                                   \
    {                                                                                              \
        .pid = -1, .shared = { -1, -1, -1 }                                                        \
    }

static void forget(struct shared *shared)
{
    if (shared->result >= 0)
        close(shared->result);
    if (shared->said >= 0)
        close(shared->said);
    if (shared->report >= 0)
        close(shared->report);
}

static bool share(struct shared *out)
{
    *out = (struct shared){memfd_create("swsim-result", MFD_CLOEXEC),
                           memfd_create("swsim-said", MFD_CLOEXEC),
                           memfd_create("swsim-report", MFD_CLOEXEC)};
    return out->result >= 0 && out->said >= 0 && out->report >= 0;
}

/* ---- the child ------------------------------------------------------------------------------- */

static bool write_all(int file, const void *data, size_t bytes)
{
    const char *from = data;
    for (ssize_t done; bytes > 0; bytes -= (size_t)done, from += done)
        if ((done = write(file, from, bytes)) < 0)
            return false;
    return true;
}

/* Ends without the exit functions of the parent, whose streams it has copies of. */
_Noreturn static void work_and_end(apart_work *work, void *context, unsigned limit_s,
                                   const struct shared *shared)
{
    struct report report = {0};
    struct diag diag;
    char *data = NULL;
    size_t bytes = 0;
    diag_init(&diag);
    signal(SIGALRM, SIG_DFL);
    alarm(limit_s);
    prctl(PR_SET_PDEATHSIG, (unsigned long)SIGKILL, 0UL, 0UL, 0UL);
    if (dup2(shared->said, STDERR_FILENO) < 0)
        _exit(1);
    report.status = work(context, &data, &bytes, &diag);
    report.no_memory = diag.out_of_memory;
    if (diag.count > 0)
        strncpy(report.error, diag.messages[0].text, MAX_SAID - 1);
    bool whole = report.status != STATUS_OK || write_all(shared->result, data, bytes);
    _exit(whole && write_all(shared->report, &report, sizeof report) ? 0 : 1);
}

/* ---- the parent ------------------------------------------------------------------------------ */

/* False: errno says why. */
static bool start(struct child *child, apart_work *work, void *context, unsigned limit_s)
{
    child->pid = share(&child->shared) ? fork() : -1;
    if (child->pid == 0)
        work_and_end(work, context, limit_s, &child->shared);
    return child->pid > 0;
}

/* Also of a child whose result is not needed any more. */
static void end(struct child *child)
{
    if (child->pid > 0) {
        kill(child->pid, SIGKILL);
        while (waitpid(child->pid, NULL, 0) < 0 && errno == EINTR)
            ;
    }
    forget(&child->shared);
}

/* A whole file in memory, with a zero behind it. */
static char *read_all(int file, size_t *bytes)
{
    struct stat about;
    if (fstat(file, &about) != 0)
        return NULL;
    char *data = malloc((size_t)about.st_size + 1);
    size_t done = 0;
    for (ssize_t got = 1; data && got > 0 && done < (size_t)about.st_size; done += (size_t)got)
        if ((got = pread(file, data + done, (size_t)about.st_size - done, (off_t)done)) < 0)
            break;
    if (data && done < (size_t)about.st_size) {
        free(data);
        return NULL;
    }
    if (data)
        data[done] = '\0';
    *bytes = done;
    return data;
}

/* The first line of what the libraries said; empty: nothing. */
static void first_line(int file, char out[MAX_SAID])
{
    ssize_t length = pread(file, out, MAX_SAID - 1, 0);
    out[length > 0 ? length : 0] = '\0';
    size_t blank = strspn(out, "\n\r\t ");
    memmove(out, out + blank, strlen(out + blank) + 1);
    out[strcspn(out, "\r\n")] = '\0';
}

static enum status describe_end(int ended, const char *said, const char *subject, struct diag *diag)
{
    if (WIFSIGNALED(ended) && WTERMSIG(ended) == SIGALRM)
        return diag_error(diag, STATUS_SYSTEM,
                          "%s cannot be drawn: the graphics libraries did not end in time",
                          subject);
    const char *how = WIFSIGNALED(ended) ? system_signal_words(WTERMSIG(ended)) : "it gave up";
    return diag_error(diag, STATUS_SYSTEM, "%s cannot be drawn: the graphics libraries failed: %s",
                      subject, *said ? said : how);
}

static enum status take_result(const struct child *child, const struct report *report, char **data,
                               size_t *bytes, struct diag *diag)
{
    if (report->no_memory)
        return diag_no_memory(diag);
    if (report->status != STATUS_OK)
        return diag_error(diag, report->status, "%s", report->error);
    char *result = read_all(child->shared.result, bytes);
    if (!result)
        return diag_no_memory(diag);
    *data = result;
    return STATUS_OK;
}

static enum status wait_and_take(struct child *child, const char *subject, char **data,
                                 size_t *bytes, struct diag *diag)
{
    struct report report;
    int ended = 0;
    while (waitpid(child->pid, &ended, 0) < 0)
        if (errno != EINTR)
            return diag_error(diag, STATUS_SYSTEM, "%s cannot be drawn: %s", subject,
                              system_words(errno));
    child->pid = -1;
    first_line(child->shared.said, child->said);
    if (ended != 0 || pread(child->shared.report, &report, sizeof report, 0) != sizeof report)
        return describe_end(ended, child->said, subject, diag);
    return take_result(child, &report, data, bytes, diag);
}

/* The second child's result serves to judge the first one's. */
static enum status compare(struct child *second, apart_same *same, const char *subject, char *data,
                           size_t bytes, struct diag *diag)
{
    char *again = NULL;
    size_t again_bytes = 0;
    enum status status = wait_and_take(second, subject, &again, &again_bytes, diag);
    if (status == STATUS_OK && !same(data, bytes, again, again_bytes))
        status = diag_error(diag, STATUS_SYSTEM,
                            "%s cannot be drawn: the graphics libraries drew it twice, and the two "
                            "pictures differ%s%s",
                            subject, *second->said ? ": " : "", second->said);
    free(again);
    return status;
}

static enum status take_and_compare(struct child children[2], apart_same *same, const char *subject,
                                    char **data, size_t *bytes, struct diag *diag)
{
    char *result = NULL;
    enum status status = wait_and_take(&children[0], subject, &result, bytes, diag);
    if (status == STATUS_OK && same)
        status = compare(&children[1], same, subject, result, *bytes, diag);
    if (status != STATUS_OK) {
        free(result);
        return status;
    }
    if (*children[0].said)
        diag_warn(diag, "%s: the graphics libraries say: %s", subject, children[0].said);
    *data = result;
    return STATUS_OK;
}

enum status apart_run(apart_work *work, void *context, const char *subject, unsigned limit_s,
                      apart_same *same, char **data, size_t *bytes, struct diag *diag)
{
    struct child children[2] = {NO_CHILD, NO_CHILD};
    fflush(NULL); /* tools that watch the child would write what it has copies of once more */
    bool started = start(&children[0], work, context, limit_s) &&
                   (!same || start(&children[1], work, context, limit_s));
    enum status status = started ? take_and_compare(children, same, subject, data, bytes, diag)
                                 : diag_error(diag, STATUS_SYSTEM,
                                              "%s cannot be drawn: no process can be started: %s",
                                              subject, system_words(errno));
    end(&children[0]);
    end(&children[1]);
    return status;
}
