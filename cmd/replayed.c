/* SPDX-License-Identifier: Apache-2.0 */
/* replayed.c - see replayed.h. */
#include "replayed.h"

#include <inttypes.h>
#include <string.h>

#include "measured.h"

#include "base/columns.h"
#include "plan/ops.h"
#include "base/printable.h"
#include "base/list_key.h"

/* ---- outcome --------------------------------------------------------------------------------- */

/* The reason why an agent was blocked at the end of the run; NULL: it was not. */
static const char *really_waits(const struct runtime_result *result, const char *agent)
{
    for (size_t i = 0; i < result->blocked_count; i++)
        if (strcmp(result->blocked[i].agent, agent) == 0)
            return result->blocked[i].waits_for;
    return NULL;
}

static bool replayed_is_same(const struct runtime_result *result,
                             const struct trace_blocked *blocked)
{
    const char *waits_for = really_waits(result, blocked->agent);
    return waits_for && strcmp(waits_for, blocked->waits_for) == 0;
}

static bool witness_has_rank(const struct trace_witness *witness, int rank)
{
    for (size_t i = 0; i < witness->blocked_count; i++)
        if (witness->blocked[i].rank == rank)
            return true;
    return false;
}

/* A witness may be of a rank that hangs without the others: they go on freely, and may hang, too. */
static bool same_blocked(const struct replayed *replayed)
{
    const struct trace_witness *witness = replayed->witness;
    const struct runtime_result *result = replayed->result;
    size_t expected = 0;
    for (size_t i = 0; i < result->blocked_count; i++)
        expected += witness_has_rank(witness, result->blocked[i].rank);
    bool same = witness->blocked_count == expected;
    for (size_t i = 0; i < witness->blocked_count && same; i++)
        same = replayed_is_same(result, &witness->blocked[i]);
    return same;
}

/* True if the violation is in the trace of the run, as the machine sees it. */
static bool replayed_is_seen(const struct replayed *replayed)
{
    for (int p = 0; p < PROPERTY_COUNT; p++)
        if (strcmp(replayed->witness->property, property_key((enum property)p)) == 0)
            return replayed->result->violations[p] != NULL;
    return false;
}

enum replayed_outcome replayed_outcome(const struct replayed *replayed)
{
    const struct runtime_result *result = replayed->result;
    if (result->interrupted)
        return REPLAYED_INTERRUPTED;
    if (result->forced < result->to_force)
        return REPLAYED_STRAYED;
    if (result->legal == ANSWER_NO)
        return REPLAYED_ILLEGAL;
    if (replayed->witness->blocked_count == 0)
        return replayed_is_seen(replayed) ? REPLAYED_HAPPENED : REPLAYED_UNSEEN;
    if (!result->hung)
        return REPLAYED_NO_HANG;
    return same_blocked(replayed) ? REPLAYED_SAME_HANG : REPLAYED_OTHER_HANG;
}

bool replayed_confirms(enum replayed_outcome outcome)
{
    return outcome == REPLAYED_SAME_HANG || outcome == REPLAYED_HAPPENED;
}

/* ---- text ------------------------------------------------------------------------------------ */

/* The data loader's answers are known before the run starts, so they have been given. */
static void replayed_print_steps(const struct replayed *replayed, FILE *out)
{
    const struct runtime_result *result = replayed->result;
    size_t all = replayed->witness->move_count, answers = all - result->to_force;
    if (result->forced == result->to_force && answers == 0)
        fprintf(out, "  steps       all %zu, in the witness's order\n", all);
    else if (result->forced == result->to_force)
        fprintf(out, "  steps       all %zu, in the witness's order; %zu are the data loader's\n",
                all, answers);
    else
        fprintf(out, "  steps       %zu of %zu were taken, then it was the turn of %s\n",
                result->forced, result->to_force,
                result->forced_agent ? result->forced_agent : "no agent");
}

static void print_outcome(enum replayed_outcome outcome, FILE *out)
{
    static const char *const sentences[] = {
        [REPLAYED_SAME_HANG] = "hangs as the witness says:",
        [REPLAYED_OTHER_HANG] = "hangs, but NOT as the witness says:",
        [REPLAYED_NO_HANG] = "DOES NOT HANG, but the witness says so. Model and runtime disagree",
        [REPLAYED_HAPPENED] = "really happened, and the trace shows the violation",
        [REPLAYED_UNSEEN] = "the steps happened, but their trace DOES NOT show the violation",
        [REPLAYED_STRAYED] = "DID NOT follow the witness. Model and runtime disagree",
        [REPLAYED_ILLEGAL] =
            "was NOT LEGAL: the machine cannot do this. Model and runtime disagree",
        [REPLAYED_INTERRUPTED] = "interrupted before anything could be seen",
    };
    fprintf(out, "  replay      %s\n", sentences[outcome]);
}

static int replayed_agent_width(const struct runtime_result *result)
{
    int width = 0;
    for (size_t i = 0; i < result->blocked_count; i++)
        columns_widen(&width, result->blocked[i].agent);
    return width;
}

/* A star: part of the cycle. */
static void replayed_print_blocked(const struct replayed *replayed, FILE *out)
{
    const struct runtime_result *result = replayed->result;
    const struct trace_witness *witness = replayed->witness;
    for (size_t i = 0; i < result->blocked_count; i++) {
        bool cycle = false;
        for (size_t k = 0; k < witness->blocked_count && !cycle; k++)
            cycle = witness->blocked[k].in_cycle &&
                    strcmp(witness->blocked[k].agent, result->blocked[i].agent) == 0;
        const char *agent = result->blocked[i].agent;
        fprintf(out, "    %c  %s%*s  %s\n", cycle ? '*' : ' ', agent,
                columns_fill(agent, replayed_agent_width(result)), "",
                result->blocked[i].waits_for);
    }
}

void replayed_print(const struct replayed *replayed, FILE *out)
{
    enum replayed_outcome outcome = replayed_outcome(replayed);
    const struct run_info *info = replayed->info;
    fputs(info->plan_name, out);
    if (info->driver != RUN_DRIVER_NONE)
        fprintf(out, ", %s driver", run_driver_text(info->driver));
    fprintf(out, ": witness %" PRId64 " of ", replayed->run);
    printable_put(replayed->path, false, out);
    fprintf(out, ", on %s\n\n", replayed->result->device);
    fprintf(out, "  violates    %s\n", info->note);
    replayed_print_steps(replayed, out);
    /* A race may change the results of a run, or may not. */
    if (replayed->result->matches_serial != ANSWER_UNKNOWN)
        fprintf(out, "  results     %s those of a serial run\n",
                replayed->result->matches_serial == ANSWER_YES ? "this time the same as"
                                                               : "DIFFERENT from");
    print_outcome(outcome, out);
    replayed_print_blocked(replayed, out);
    if (outcome == REPLAYED_OTHER_HANG || outcome == REPLAYED_NO_HANG) {
        const struct trace_witness *witness = replayed->witness;
        fputs("\n  the witness says:\n", out);
        for (size_t i = 0; i < witness->blocked_count; i++)
            fprintf(out, "    %s  %s\n", witness->blocked[i].agent, witness->blocked[i].waits_for);
    }
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static const char *outcome_text(enum replayed_outcome outcome)
{
    static const char *const keys[] = {REPLAYED_LIST(LIST_KEY)};
    return keys[outcome];
}

void replayed_write(const struct replayed *replayed, struct json *json)
{
    enum replayed_outcome outcome = replayed_outcome(replayed);
    const struct runtime_result *result = replayed->result;
    json_begin_document(json, DOCUMENT_REPLAYED);
    json_put_string(json, "plan", replayed->info->plan_name);
    json_put_string(json, "driver", run_driver_text(replayed->info->driver));
    json_put_string(json, "store", replayed->path);
    json_put_int(json, "witness", replayed->run);
    json_put_string(json, "property", replayed->witness->property);
    json_put_string(json, "sentence", replayed->info->note);
    json_put_int(json, "steps", (int64_t)result->to_force);
    json_put_int(json, "steps_taken", (int64_t)result->forced);
    json_put_string(json, "outcome", outcome_text(outcome));
    json_put_bool(json, "confirmed", replayed_confirms(outcome));
    measured_put_answer(json, "results_match_serial", result->matches_serial);
    measured_write_blocked(result, json);
    json_end_object(json);
}
