/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_csv.c - PyTorch schedule files: dialects, cells, action text, and the real files.
 *
 * The real files are not part of the project; they are looked for in $SWSIM_SHARED and beside the
 * source tree. Refusals are text cases, see t_parse.c.
 */
#include <stdlib.h>
#include <string.h>

#include "plan/schedules/actions.h"
#include "plan/text/csv.h"
#include "plan/text/parse.h"
#include "tests/harness.h"
#include "tests/tap.h"

static bool read_text(const char *text, struct plan *plan)
{
    struct diag diag;
    diag_init(&diag);
    enum status status = plan_parse_csv("x.csv", text, strlen(text), plan, &diag);
    tap_is_int(status, STATUS_OK, "a schedule of %zu bytes is accepted", strlen(text));
    if (diag.count)
        tap_note("%s", diag.messages[0].text);
    diag_fini(&diag);
    return status == STATUS_OK;
}

/* The actions of a rank with blanks between, "." for an idle cell. */
static const char *row_text(const struct plan *plan, int rank, char *buf, size_t cap)
{
    size_t length = 0;
    const struct rank_program *program = &plan->programs.ranks[rank];
    buf[0] = '\0';
    for (size_t i = 0; i < program->count && length < cap; i++) {
        char text[64];
        bool idle = action_format(&program->actions[i], text, sizeof text) == 0;
        length +=
            (size_t)snprintf(buf + length, cap - length, "%s%s", i ? " " : "", idle ? "." : text);
    }
    return buf;
}

static void is_row(const char *text, const char *want)
{
    struct plan plan;
    char buf[512];
    if (!read_text(text, &plan))
        return;
    tap_is_str(row_text(&plan, 0, buf, sizeof buf), want, "reads as %s", want);
    plan_fini(&plan);
}

static void test_dialects(void)
{
    is_row("0F0,0I0,0W0,0B1\n", "0F0 0I0 0W0 0B1");
    is_row("0F0,0F1,0B0,0BW1\n", "0F0 0F1 0I0 0B1");
    is_row("0F0,0B0,0W0\n", "0F0 0I0 0W0");
    is_row("0F0,0B0\n", "0F0 0B0");
    is_row("(0F1;0BW0)OVERLAP_F_B\n", "(0F1;0B0)OVERLAP_F_B");
}

static void test_cells(void)
{
    is_row("0F0,,0B0,,,\n", "0F0 . 0B0");
    is_row("0F0,0B0\r\n\r\n", "0F0 0B0");
    is_row("0F0,0B0", "0F0 0B0");
    is_row("\xEF\xBB\xBF"
           "0F0,0B0\n",
           "0F0 0B0");
    is_row(" 0F0 ,\"0B0\"\n", "0F0 0B0");
}

static void test_marks(void)
{
    struct plan plan;
    if (!read_text("0F0,0B0\n1F0, 1B0\n", &plan))
        return;
    struct mark mark = plan.programs.ranks[1].actions[1].mark;
    tap_is_int(plan.ranks, 2, "two ranks");
    tap_is_int(plan.form, FORM_PROGRAMS, "rank programs");
    tap_ok(!plan.programs.has_comms, "compute only");
    tap_is_int(mark.line, 2, "the row is the line");
    tap_is_int(mark.col, 6, "the column is that of the cell");
    plan_fini(&plan);
}

/* Every action prints as it was written; a short buffer is cut as by snprintf. */
static void test_action_text(void)
{
    static const char *const texts[] = {
        "0F0",
        "12I3",
        "0W65535",
        "65535B0",
        "0UNSHARD",
        "3RESHARD",
        "1SEND_F2",
        "1RECV_B2",
        "0REDUCE_GRAD",
        "(0F7;7B3)OVERLAP_F_B",
        "1WAIT_SEND_F2",
        "1WAIT_SEND_B0",
        "0WAIT_REDUCE_GRAD",
    };
    struct arena arena;
    arena_init(&arena, 0);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct action action;
        const char *what;
        size_t where, length = strlen(texts[i]);
        char full[64], cut[4];
        bool ok = action_parse(texts[i], length, false, &arena, &action, &what, &where);
        tap_ok(ok, "%s parses", texts[i]);
        if (!ok)
            continue;
        tap_is_int((long long)action_format(&action, full, sizeof full), (long long)length,
                   "%s: length", texts[i]);
        tap_is_str(full, texts[i], "%s: text", texts[i]);
        tap_is_int((long long)action_format(&action, cut, sizeof cut), (long long)length,
                   "%s: length of what did not fit", texts[i]);
        tap_is_int((long long)strlen(cut), 3, "%s: cut", texts[i]);
        tap_is_int((long long)action_format(&action, NULL, 0), (long long)length,
                   "%s: length alone", texts[i]);
    }
    arena_fini(&arena);
}

static void test_looks_like(void)
{
    tap_ok(csv_looks_like("0F0,", 4), "a stage");
    tap_ok(csv_looks_like("\n ,0F0", 6), "an empty cell");
    tap_ok(csv_looks_like("(0F0", 4), "a composite");
    tap_ok(!csv_looks_like("swplan: 1", 9), "a key");
    tap_ok(!csv_looks_like("{\"swplan\"", 9), "JSON");
    tap_ok(!csv_looks_like("# 0F0", 5), "a comment");
    tap_ok(!csv_looks_like("", 0), "nothing");
}

/* A row is a rank: none is dropped in silence. */
static void test_empty_rows(void)
{
    static const struct {
        const char *text;
        enum status status;
        unsigned line;
        const char *said;
    } rows[] = {
        {"0F0\n\n0B0\n", STATUS_INPUT, 2, "rank 1"},
        {"\n0F0\n", STATUS_INPUT, 1, "rank 0"},
        {"0F0,0B0\n,,\n", STATUS_INPUT, 2, "rank 1"},
        {"0F0,0B0\n\n", STATUS_OK, 2, "row 2 is empty"},
        {"0F0,0B0\r\n\r\n \t\n", STATUS_OK, 2, "row 2 is empty"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct plan plan;
        struct diag diag;
        diag_init(&diag);
        enum status status =
            plan_parse_csv("x.csv", rows[i].text, strlen(rows[i].text), &plan, &diag);
        tap_is_int(status, rows[i].status, "an empty row: the status");
        tap_is_int((long long)diag.count, 1, "one message");
        tap_ok(diag.count == 1 && diag.messages[0].mark.line == rows[i].line &&
                   strstr(diag.messages[0].text, rows[i].said),
               "which names %s", rows[i].said);
        if (status == STATUS_OK)
            plan_fini(&plan);
        diag_fini(&diag);
    }
}

/* ---- the real files -------------------------------------------------------------------------- */

static bool read_real(const char *name, struct plan *plan)
{
    const char *path = path_shared(name);
    if (!has_shared(path))
        return false;
    bool good = plan_of_file(path, plan);
    if (good)
        tap_ok(1, "%s is accepted", name);
    return good;
}

static bool same_rows(const struct plan *a, const struct plan *b, int rank)
{
    const struct rank_program *first = &a->programs.ranks[rank], *second = &b->programs.ranks[rank];
    bool same = first->count == second->count;
    for (size_t i = 0; same && i < first->count; i++)
        same = first->actions[i].kind == second->actions[i].kind &&
               first->actions[i].stage == second->actions[i].stage &&
               first->actions[i].microbatch == second->actions[i].microbatch;
    return same;
}

static void test_real_dialects(void)
{
    struct plan today, old;
    if (!read_real("data/pytorch/zb1p_2rank_2stagep_compute.csv", &today))
        return;
    if (read_real("data/pytorch/zb1p_2rank_2stagep_compute.olddialect.csv", &old)) {
        tap_ok(same_rows(&today, &old, 0) && same_rows(&today, &old, 1),
               "both dialects say the same");
        plan_fini(&old);
    }
    tap_is_int(today.ranks, 2, "two ranks");
    tap_ok(!today.programs.has_comms, "compute only");
    tap_is_int(today.programs.ranks[0].actions[3].kind, ACTION_IDLE, "rank 0 idles in slot 3");
    plan_fini(&today);
}

static void test_real_comms(void)
{
    struct plan plan;
    if (!read_real("data/pytorch/zb1p_2rank_2stagep_comms.csv", &plan))
        return;
    size_t sends = 0, receives = 0;
    for (int rank = 0; rank < plan.ranks; rank++) {
        for (size_t i = 0; i < plan.programs.ranks[rank].count; i++) {
            enum action_kind kind = plan.programs.ranks[rank].actions[i].kind;
            sends += kind == ACTION_SEND_F || kind == ACTION_SEND_B;
            receives += kind == ACTION_RECV_F || kind == ACTION_RECV_B;
        }
    }
    tap_ok(plan.programs.has_comms, "compute and communication");
    tap_is_int((long long)sends, 48, "3 boundaries, 8 microbatches, 2 directions");
    tap_is_int((long long)receives, 48, "as many receives");
    plan_fini(&plan);
}

int main(void)
{
    test_dialects();
    test_cells();
    test_marks();
    test_action_text();
    test_looks_like();
    test_empty_rows();
    test_real_dialects();
    test_real_comms();
    return tap_done();
}
