/* SPDX-License-Identifier: Apache-2.0 */
/* certify.c - see certify.h. */
#include "certify.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/text_stream.h"

void certify_why_not(const struct certifier *certifier, const char *why)
{
    snprintf(certifier->why_not, sizeof((struct certified *)0)->why_not, "%s", why);
}

/* ---- one certificate --------------------------------------------------------------------------- */

static void certify_write_head(const struct program_options *options, uint64_t hash,
                               unsigned proves, enum proof_kind kind, FILE *out)
{
    fprintf(out, "swcert %d\nplan %016" PRIx64 "\noptions %s %d %d %" PRId64 "\nproves",
            PROOF_VERSION, hash, driver_key(options->driver), options->ranks, options->max_depth,
            options->iterations);
    for (int p = 0; p < PROPERTY_COUNT; p++)
        if (proves & 1u << p)
            fprintf(out, " %s", property_key((enum property)p));
    fprintf(out, "\nby %s\n", proof_key(kind));
}

/* The text behind the head, in memory that the caller frees. */
static enum status certify_write_body(const struct plan *plan,
                                      const struct program_options *options, enum proof_kind kind,
                                      unsigned asked, size_t most_states,
                                      struct search_watch *watch, struct certified *certified,
                                      char **body, unsigned *proves, struct diag *diag)
{
    static certify_kind *const kinds[PROOF_KINDS] = {
        [PROOF_RUN] = certify_run,       [PROOF_STRUCTURE] = certify_structure,
        [PROOF_STATES] = certify_states, [PROOF_REDUCED_STATES] = certify_reduced,
        [PROOF_TEAMS] = certify_teams,   [PROOF_FAULTY_STATES] = certify_states,
    };
    struct program *program;
    struct text_stream stream;
    *body = NULL;
    enum status status = proof_program(plan, kind, asked, options, &program, diag);
    if (status != STATUS_OK)
        return status;
    bool opened = text_open(&stream);
    struct certifier certifier = {.program = program,
                                  .watch = watch,
                                  .out = opened ? stream.out : NULL,
                                  .asked = asked,
                                  .most_states = most_states,
                                  .proves = proves,
                                  .before = certified->covers,
                                  .why_not = certified->why_not};
    status = opened ? kinds[kind](&certifier, diag) : diag_no_memory(diag);
    program_close(program);
    if (opened)
        *body = text_close(&stream, status == STATUS_OK, NULL);
    return status == STATUS_OK && !*body ? diag_no_memory(diag) : status;
}

/* A text is added if swcheck's own code accepts it. */
static enum status add_checked(const struct plan *plan, const struct program_options *options,
                               const char *text, FILE *out, struct certified *certified,
                               struct diag *diag)
{
    struct proof_result result = {.good = true, .options = *options, .proves = certified->covers};
    size_t length = strlen(text);
    enum status status = proof_check(plan, text, &length, &result, diag);
    if (status != STATUS_OK)
        return status;
    if (!result.good) {
        snprintf(certified->why_not, sizeof certified->why_not, "%s", result.why);
        return STATUS_OK;
    }
    fputs(text, out);
    certified->covers |= result.proves;
    return STATUS_OK;
}

static enum status add_kind(const struct plan *plan, const struct program_options *options,
                            enum proof_kind kind, unsigned asked, size_t most_states,
                            struct search_watch *watch, FILE *out, struct certified *certified,
                            struct diag *diag)
{
    struct text_stream whole;
    char *body, *text = NULL;
    uint64_t hash;
    unsigned proves = 0;
    enum status status = certify_write_body(plan, options, kind, asked, most_states, watch,
                                            certified, &body, &proves, diag);
    if (status == STATUS_OK && proves)
        status = proof_hash(plan, &hash, diag);
    if (status == STATUS_OK && proves) {
        if (text_open(&whole)) {
            certify_write_head(options, hash, proves, kind, whole.out);
            fputs(body, whole.out);
            fputs("end\n", whole.out);
            text = text_close(&whole, true, NULL);
        }
        status =
            text ? add_checked(plan, options, text, out, certified, diag) : diag_no_memory(diag);
    }
    free(body);
    free(text);
    return status;
}

/* A reason is told once, and whole. */
static void add_reason(struct certified *certified, const char *why)
{
    size_t length = strlen(certified->why_not), room = sizeof certified->why_not - length;
    const char *between = length ? "; " : "";
    if (*why && !strstr(certified->why_not, why) && strlen(between) + strlen(why) < room)
        snprintf(certified->why_not + length, room, "%s%s", between, why);
}

/* The properties that other kinds have left. The reasons of all are told. */
static enum status add_left(const struct plan *plan, const struct program_options *options,
                            enum proof_kind kind, unsigned left, size_t most_states,
                            struct search_watch *watch, FILE *out, struct certified *certified,
                            struct diag *diag)
{
    struct certified one = {.covers = certified->covers};
    if (!left)
        return STATUS_OK;
    enum status status = add_kind(plan, options, kind, left, most_states, watch, out, &one, diag);
    certified->covers = one.covers;
    add_reason(certified, one.why_not);
    return status;
}

/* ---- the whole --------------------------------------------------------------------------------- */

/* A reduced set asks for belief in the reduction, so a set that is not much larger than need be is listed whole; and so
   is a larger one for what a reduced set cannot prove. */
enum { PLAIN_SHARE = 10 };

enum status certify_plan(const struct plan *plan, const struct program_options *options,
                         unsigned proved, size_t most_states, struct search_watch *watch,
                         struct certified *out, struct diag *diag)
{
    struct text_stream stream;
    *out = (struct certified){0};
    if (!text_open(&stream))
        return diag_no_memory(diag);
    FILE *file = stream.out;
    const unsigned faults = 1u << PROPERTY_FAULTS, serial = 1u << PROPERTY_SERIAL;
    const struct {
        enum proof_kind kind;
        unsigned asks;
        size_t most;
    } kinds[] = {{plan->form == FORM_PIPELINE ? PROOF_STRUCTURE : PROOF_RUN, ~faults, 0},
                 {PROOF_STATES, ~faults & ~serial, most_states / PLAIN_SHARE},
                 {PROOF_STATES, serial, most_states / PLAIN_SHARE},
                 {PROOF_REDUCED_STATES, ~faults & ~serial, most_states},
                 {PROOF_REDUCED_STATES, serial, most_states},
                 {PROOF_STATES, ~faults & ~serial, most_states},
                 {PROOF_STATES, serial, most_states},
                 {PROOF_TEAMS, faults, 0},
                 {PROOF_FAULTY_STATES, faults, most_states}};
    enum status status = STATUS_OK;
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds && status == STATUS_OK; k++)
        status = add_left(plan, options, kinds[k].kind, proved & ~out->covers & kinds[k].asks,
                          kinds[k].most, watch, file, out, diag);
    bool any = status == STATUS_OK && out->covers != 0;
    out->text = text_close(&stream, any, NULL);
    return any && !out->text ? diag_no_memory(diag) : status;
}
