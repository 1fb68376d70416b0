/* SPDX-License-Identifier: Apache-2.0 */
/*
 * status.h - the result of a function that can fail.
 *
 * Zero is good. The first function to detect a failure describes it in a `struct diag`; the ones
 * above pass the status up. The commands map a status to an exit code through STATUS_LIST.
 */
#ifndef SWSIM_STATUS_H
#define SWSIM_STATUS_H

/*            name      exit code   in words */
#define STATUS_LIST(X)                                                                             \
    X(OK, 0, "holds or done")                                                                      \
    X(VIOLATED, 1, "violated, or a run failed")                                                    \
    X(USAGE, 2, "wrong use of the command")                                                        \
    X(SYSTEM, 2, "the system refused: file, memory, database, device")                             \
    X(INPUT, 3, "a bad plan or another bad input")                                                 \
    X(LIMIT, 4, "a limit was reached, undecided")

enum status {
#define X(name, code, words) STATUS_##name,
    STATUS_LIST(X)
#undef X
};

/* The process exit code of a status. */
static inline int status_exit_code(enum status status)
{
    static const int codes[] = {
#define X(name, code, words) code,
        STATUS_LIST(X)
#undef X
    };
    return codes[status];
}

static inline const char *status_words(enum status status)
{
    static const char *const texts[] = {
#define X(name, code, words) words,
        STATUS_LIST(X)
#undef X
    };
    return texts[status];
}

#endif
