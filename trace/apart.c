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

/* The message that the child sends at its end. */
struct apart_report {
    enum status status;
    bool no_memory;
    char error[400];
};

enum shared_file { SHARED_RESULT, SHARED_SAID, SHARED_REPORT, SHARED_FILES };

/* ---- the child ------------------------------------------------------------------------------- */

static bool apart_write_all(int file, const void *data, size_t bytes)
{
    const char *from = data;
    for (ssize_t done; bytes > 0; bytes -= (size_t)done, from += done)
        if ((done = write(file, from, bytes)) < 0)
            return false;
    return true;
}

/* Ends without the exit functions of the parent, whose streams it has copies of. */
_Noreturn static void work_and_end(apart_work *work, void *context, unsigned limit_s,
                                   const int shared[SHARED_FILES])
{
    struct apart_report report = {0};
    struct diag diag;
    char *data = NULL;
    size_t bytes = 0;
    diag_init(&diag);
    signal(SIGALRM, SIG_DFL);
    alarm(limit_s);
    prctl(PR_SET_PDEATHSIG, (unsigned long)SIGKILL, 0UL, 0UL, 0UL);
    if (dup2(shared[SHARED_SAID], STDERR_FILENO) < 0)
        _exit(1);
    report.status = work(context, &data, &bytes, &diag);
    report.no_memory = diag.out_of_memory;
    if (diag.count > 0)
        strncpy(report.error, diag.messages[0].text, sizeof report.error - 1);
    bool whole = report.status != STATUS_OK || apart_write_all(shared[SHARED_RESULT], data, bytes);
    _exit(whole && apart_write_all(shared[SHARED_REPORT], &report, sizeof report) ? 0 : 1);
}

/* ---- the parent ------------------------------------------------------------------------------ */

/* A whole file in memory, with a zero behind it. */
static char *apart_read_all(int file, size_t *bytes)
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

static enum status describe_end(int ended, const char *said, const char *subject, struct diag *diag)
{
    if (WIFSIGNALED(ended) && WTERMSIG(ended) == SIGALRM)
        return diag_error(diag, STATUS_SYSTEM,
                          "%s cannot be drawn: the graphics libraries did not end in time",
                          subject);
    const char *how = WIFSIGNALED(ended) ? system_signal_words(WTERMSIG(ended)) : "it gave up";
    said += strspn(said, "\n\r\t ");
    const int line = (int)strcspn(said, "\r\n");
    return diag_error(diag, STATUS_SYSTEM,
                      "%s cannot be drawn: the graphics libraries failed: %.*s", subject,
                      line ? line : (int)strlen(how), line ? said : how);
}

static enum status wait_and_take(pid_t child, const int shared[SHARED_FILES], const char *subject,
                                 struct apart_result *out, struct diag *diag)
{
    struct apart_report report;
    int ended = 0;
    while (waitpid(child, &ended, 0) < 0)
        if (errno != EINTR)
            return diag_error(diag, STATUS_SYSTEM, "%s cannot be drawn: %s", subject,
                              system_words(errno));
    const ssize_t said = pread(shared[SHARED_SAID], out->said, sizeof out->said - 1, 0);
    out->said[said > 0 ? said : 0] = '\0';
    if (ended != 0 || pread(shared[SHARED_REPORT], &report, sizeof report, 0) != sizeof report)
        return describe_end(ended, out->said, subject, diag);
    if (report.status != STATUS_OK && !report.no_memory)
        return diag_error(diag, report.status, "%s", report.error);
    out->data = report.no_memory ? NULL : apart_read_all(shared[SHARED_RESULT], &out->bytes);
    return out->data ? STATUS_OK : diag_no_memory(diag);
}

enum status apart_run(apart_work *work, void *context, const char *subject, unsigned limit_s,
                      struct apart_result *out, struct diag *diag)
{
    const int shared[SHARED_FILES] = {[SHARED_RESULT] = memfd_create("swsim-result", MFD_CLOEXEC),
                                      [SHARED_SAID] = memfd_create("swsim-said", MFD_CLOEXEC),
                                      [SHARED_REPORT] = memfd_create("swsim-report", MFD_CLOEXEC)};
    bool ready = true;
    for (int i = 0; i < SHARED_FILES; i++)
        ready &= shared[i] >= 0;
    fflush(NULL); /* tools that watch the child would write what it has copies of once more */
    const pid_t child = ready ? fork() : -1;
    if (child == 0)
        work_and_end(work, context, limit_s, shared);
    enum status status = child > 0 ? wait_and_take(child, shared, subject, out, diag)
                                   : diag_error(diag, STATUS_SYSTEM,
                                                "%s cannot be drawn: no process can be started: %s",
                                                subject, system_words(errno));
    for (int i = 0; i < SHARED_FILES; i++)
        if (shared[i] >= 0)
            close(shared[i]);
    return status;
}
