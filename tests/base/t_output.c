/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_output.c - a file is written whole, whenever a signal ends the process, and nothing is left beside it.
 *
 * The C library's rename and fsync are replaced here: each first raises a signal that ends the process.
 */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/diag.h"
#include "base/output.h"
#include "tests/tap.h"

static const char NEW_TEXT[] = "the new text";
static int signal_at_fsync, signal_at_rename;

int fsync(int file)
{
    (void)file;
    if (signal_at_fsync)
        raise(signal_at_fsync);
    return 0;
}

int rename(const char *from, const char *to)
{
    if (signal_at_rename)
        raise(signal_at_rename);
    return renameat(AT_FDCWD, from, AT_FDCWD, to);
}

/* Writes the file in a process of its own; returns how that ended, as waitpid() says it. */
static int write_file(const char *path)
{
    int how = 0;
    pid_t child = fork();
    if (child == 0) {
        struct diag diag;
        diag_init(&diag);
        _exit(output_write(path, NEW_TEXT, strlen(NEW_TEXT), &diag) == STATUS_OK ? 0 : 1);
    }
    waitpid(child, &how, 0);
    return how;
}

static bool holds_new_text(const char *path)
{
    char text[100] = "";
    FILE *file = fopen(path, "r");
    bool read = file && fgets(text, sizeof text, file);
    if (file)
        fclose(file);
    return read && strcmp(text, NEW_TEXT) == 0;
}

static int files_in(const char *folder)
{
    int count = 0;
    DIR *files = opendir(folder);
    for (struct dirent *at; files && (at = readdir(files));)
        count += strcmp(at->d_name, ".") != 0 && strcmp(at->d_name, "..") != 0;
    if (files)
        closedir(files);
    return count;
}

static void test_signal(const char *folder, const char *path, int signal, const char *when)
{
    int how = write_file(path);
    tap_ok(WIFSIGNALED(how) && WTERMSIG(how) == signal, "signal %d at %s ends the process", signal,
           when);
    tap_ok(holds_new_text(path), "... once the file is whole");
    tap_is_int(files_in(folder), 1, "... and nothing is beside it");
    unlink(path);
}

int main(void)
{
    char folder[] = "/tmp/t_output.XXXXXX", path[sizeof folder + 10];
    if (!mkdtemp(folder))
        return tap_ok(false, "a folder for temporary files can be made"), tap_done();
    snprintf(path, sizeof path, "%s/out.txt", folder);

    tap_is_int(write_file(path), 0, "without a signal");
    tap_ok(holds_new_text(path), "... the file is whole");
    unlink(path);
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
        signal(signals[i], SIG_DFL); /* nohup starts programs without SIGHUP */
        signal_at_fsync = signals[i];
        test_signal(folder, path, signals[i], "fsync");
        signal_at_fsync = 0;
        signal_at_rename = signals[i];
        test_signal(folder, path, signals[i], "rename");
        signal_at_rename = 0;
    }
    rmdir(folder);
    return tap_done();
}
