/* SPDX-License-Identifier: Apache-2.0 */
/*
 * diag.h - messages for the user: the position, the found text, the expected text.
 *
 * A `struct diag` collects messages; nothing below cmd/ prints. It owns copies of everything it is
 * given. When memory runs out while a message is being added, the diag remembers that instead and
 * diag_print says so: a failure is never silent. An error without a position that is there already is not
 * added again. Errors about one file are in the order of its lines, and so are warnings.
 */
#ifndef SWSIM_DIAG_H
#define SWSIM_DIAG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "status.h"

/* A position in an input file; line and column count from 1, 0 means unknown. */
struct mark {
    uint32_t line, col;
};

enum severity { SEVERITY_ERROR, SEVERITY_WARNING, SEVERITY_NOTE };

struct diag_message {
    enum severity severity;
    char *file; /* NULL: not about a file */
    struct mark mark;
    char *text;   /* one sentence, no final newline */
    char *source; /* the input line the mark points into, or the piece around it; NULL if unknown */
    uint32_t source_col; /* the mark's column in it */
};

struct diag {
    struct diag_message *messages;
    size_t count, cap;
    size_t errors;
    size_t limit;  /* errors beyond this many are counted, not kept; 0: 20 */
    bool too_many; /* the reader of a file gave up: there may be more than those counted */
    bool out_of_memory;
    int stdout_errno; /* why standard output could not be written; 0: it could, as far as is known */
};

void diag_init(struct diag *diag);
void diag_fini(struct diag *diag);

/* Add a message without position. Returns `status`, so that a caller can `return diag_error(...)`.
 */
enum status diag_error(struct diag *diag, enum status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void diag_warn(struct diag *diag, const char *format, ...) __attribute__((format(printf, 2, 3)));
void diag_note(struct diag *diag, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Add an error at a position; `source` is the whole text of the file (or NULL), from which the line
   under the caret is taken. Returns STATUS_INPUT. */
enum status diag_error_at(struct diag *diag, const char *file, const char *source, struct mark mark,
                          const char *format, ...) __attribute__((format(printf, 5, 6)));

enum status diag_verror_at(struct diag *diag, const char *file, const char *source,
                           struct mark mark, const char *format, va_list args)
    __attribute__((format(printf, 5, 0)));

/* The same for a warning, which is no error. */
void diag_warn_at(struct diag *diag, const char *file, const char *source, struct mark mark,
                  const char *format, ...) __attribute__((format(printf, 5, 6)));

/* Append the messages of `from` to `into`; `from` is empty afterwards. */
void diag_take(struct diag *into, struct diag *from);

/* Its errors become notes. */
void diag_soften(struct diag *diag);

/* True if there is an error, or memory ran out. */
bool diag_has_error(const struct diag *diag);

/* The first error as one line, with its place: for a caller that hands on a text instead of a diag. Cut at `bytes`. */
void diag_first_error(const struct diag *diag, char *text, size_t bytes);

/* Remember that memory ran out. Returns STATUS_SYSTEM. */
enum status diag_no_memory(struct diag *diag);

/* Flush `out`; STATUS_SYSTEM where it or an earlier write failed. The message says "cannot write WHAT"; only standard
   output's failure is remembered instead, for the program to say once, at its end. */
enum status diag_flush(struct diag *diag, FILE *out, const char *what);

/* Print all messages, `program: file:line:col: error: text`, the source line and a caret. */
void diag_print(const struct diag *diag, const char *program, bool color, FILE *out);

#endif
