/* SPDX-License-Identifier: Apache-2.0 */
/*
 * swcheck.c - whether a certificate of `swsim verify --certificate` is a proof of a plan.
 *
 * A program of its own: of this project it has the plan's parser and lowering, the machine's steps for one kind of
 * certificate, and proof/. It has no part of the search.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "improve/found.h"
#include "plan/coverage.h"
#include "base/input.h"
#include "base/json.h"
#include "plan/text/parse.h"
#include "base/system_words.h"
#include "check/proof/proof.h"

#define CERTIFICATE_BYTES ((size_t)2 << 30)

static const char help[] =
    "Usage: swcheck [OPTION] PLAN CERTIFICATE\n\n"
    "Say whether CERTIFICATE, a file of 'swsim verify --certificate', proves PLAN, and what:\n"
    "in time linear in both, without a search. `-` is standard input.\n\n"
    "  -q, --quiet    print nothing; the exit code tells\n"
    "      --json     print an object for each certificate, one a line\n"
    "      --help     show this help and exit\n"
    "      --version  show the version and exit\n\n"
    "Exit codes: 0 yes, 1 no, 2 wrong use or the system refused, 3 a bad plan.\n";

/* The words for a property that is proved. */
static const char *const holds[PROPERTY_COUNT] = {
    [PROPERTY_MESSAGE] = "every message has a partner",
    [PROPERTY_DEADLOCK] = "deadlock-free",
    [PROPERTY_MISMATCH] = "in collective order",
    [PROPERTY_RACE] = "race-free",
    [PROPERTY_LIFETIME] = "memory used while it lives",
    [PROPERTY_VALUE] = "values written before they are read",
    [PROPERTY_SERIAL] = "in serial order",
    [PROPERTY_SLOT] = "slots safe",
    [PROPERTY_BOUND] = "within its bounds",
    [PROPERTY_DRAIN] = "drains",
    [PROPERTY_FAULTS] = "survives faults",
};

static void print_yes(const struct plan *plan, const struct proof_result *result)
{
    const char *comma = "";
    char text[COVERAGE_TEXT];
    printf("yes: ");
    for (int p = 0; p < PROPERTY_COUNT; p++)
        if (result->proves & 1u << p) {
            printf("%s%s", comma, holds[p]);
            comma = ", ";
        }
    if (plan->form == FORM_PIPELINE && result->options.iterations < 0)
        printf("; for any number of iterations");
    else if (plan->form == FORM_PIPELINE)
        printf("; for %lld iterations", (long long)result->options.iterations);
    if (plan->form == FORM_PIPELINE)
        printf(", driver %s", driver_key(result->options.driver));
    if (result->options.max_depth > 0)
        printf(", max_depth %d", result->options.max_depth);
    printf(", %d rank%s; by %s", result->ranks, result->ranks == 1 ? "" : "s",
           proof_key(result->kind));
    for (size_t i = 0; i < plan->unrecorded_count; i++)
        printf("%s %s", i ? "," : "; except", coverage_unrecorded(&plan->unrecorded[i], text));
    putchar('\n');
}

static void swcheck_print_object(const struct plan *plan, const struct proof_result *result)
{
    const struct program_options *options = &result->options;
    const bool good = result->good, pipeline = good && plan->form == FORM_PIPELINE;
    char text[COVERAGE_TEXT];
    struct json json;
    json_open(&json, stdout);
    json_begin_document(&json, DOCUMENT_PROOF);
    json_put_string(&json, "plan", plan->name);
    json_put_bool(&json, "holds", good);
    json_put_string(&json, "why", good ? NULL : result->why);
    json_begin_array_at(&json, "proves");
    for (int p = 0; good && p < PROPERTY_COUNT; p++)
        if (result->proves & 1u << p)
            json_string(&json, property_key((enum property)p));
    json_end_array(&json);
    json_put_string(&json, "by", good ? proof_key(result->kind) : NULL);
    json_put_string(&json, "driver", pipeline ? driver_key(options->driver) : NULL);
    json_put_known(&json, "iterations", options->iterations, pipeline && options->iterations >= 0);
    json_put_known(&json, "max_depth", options->max_depth, pipeline && options->max_depth > 0);
    json_put_known(&json, "ranks", result->ranks, good);
    json_begin_array_at(&json, "unrecorded");
    for (size_t i = 0; i < plan->unrecorded_count; i++)
        json_string(&json, coverage_unrecorded(&plan->unrecorded[i], text));
    json_end_array(&json);
    json_end_object(&json);
}

enum form { WORDS, QUIET, JSON };

static void swcheck_print(const struct plan *plan, const struct proof_result *result,
                          enum form form)
{
    if (form == JSON)
        swcheck_print_object(plan, result);
    else if (form == WORDS && result->good)
        print_yes(plan, result);
    else if (form == WORDS)
        printf("no: %s\n", result->why);
}

/* Every certificate of the file. */
static enum status swcheck_check(const struct plan *plan, const char *text, size_t length,
                                 enum form form, struct diag *diag)
{
    enum status verdict = STATUS_OK;
    struct proof_result result = {0};
    for (size_t left = length; left > 0 && verdict == STATUS_OK;) {
        enum status status = proof_check(plan, text + (length - left), &left, &result, diag);
        if (status != STATUS_OK)
            return status;
        swcheck_print(plan, &result, form);
        verdict = result.good ? STATUS_OK : STATUS_VIOLATED;
    }
    if (length == 0)
        swcheck_print(plan, &(struct proof_result){.why = "the certificate is empty"}, form);
    return length == 0 ? STATUS_VIOLATED : verdict;
}

/* The whole file, which the caller frees; NULL with a message on failure. */
static char *swcheck_read_file(const char *path, size_t *length, struct diag *diag)
{
    FILE *file = strcmp(path, "-") == 0 ? stdin : input_open_stream(path, diag);
    char *text = NULL;
    size_t cap = 0, got = 1;
    *length = 0;
    bool is_text = true; /* a byte 0 is no word of any certificate; nothing behind it is read */
    if (!file)
        return NULL;
    errno = 0;
    while (got > 0 && is_text && cap < CERTIFICATE_BYTES) {
        cap = cap ? 2 * cap : (size_t)1 << 16;
        char *grown = realloc(text, cap);
        if (!grown)
            break;
        text = grown;
        got = fread(text + *length, 1, cap - *length, file);
        if (memchr(text + *length, '\0', got))
            is_text = false;
        *length += got;
    }
    bool whole = !is_text || (!ferror(file) && got == 0);
    if (!whole) {
        diag_error(diag, STATUS_SYSTEM, "cannot read %s: %s", path,
                   errno ? system_words(errno) : "it is too long");
        free(text);
        text = NULL;
    }
    if (file != stdin)
        fclose(file);
    return text;
}

static enum status check_files(char **paths, enum form form, struct diag *diag)
{
    struct plan plan;
    size_t length;
    if (strcmp(paths[0], "-") == 0 && strcmp(paths[1], "-") == 0)
        return diag_error(diag, STATUS_USAGE, "only one of the two can be standard input");
    enum status status = plan_read(paths[0], &plan, diag);
    if (status != STATUS_OK)
        return status;
    char *text = swcheck_read_file(paths[1], &length, diag);
    status = text ? found_resolve(&plan, &plan.arena, diag) : STATUS_SYSTEM;
    if (status == STATUS_OK)
        status = swcheck_check(&plan, text, length, form, diag);
    free(text);
    plan_fini(&plan);
    return status;
}

/* True: the command line asked for a text, which is printed. */
static bool swcheck_tell(const char *option)
{
    if (strcmp(option, "--help") == 0)
        return fputs(help, stdout) >= 0;
    if (strcmp(option, "--version") == 0)
        return printf("swcheck %s\n", PACKAGE_VERSION) >= 0;
    return false;
}

static enum status swcheck_run(int argc, char **argv, enum form *form, struct diag *diag)
{
    bool options = true;
    char *paths[2];
    int count = 0;
    for (int i = 1; i < argc; i++) {
        if (options && swcheck_tell(argv[i]))
            return STATUS_OK;
        bool option = options && argv[i][0] == '-' && argv[i][1] != '\0';
        if (option && strcmp(argv[i], "--") == 0)
            options = false;
        else if (option && (strcmp(argv[i], "-q") == 0 || strcmp(argv[i], "--quiet") == 0))
            *form = QUIET;
        else if (option && strcmp(argv[i], "--json") == 0)
            *form = JSON;
        else if (option)
            return diag_error(diag, STATUS_USAGE, "unknown option '%s'; see swcheck --help",
                              argv[i]);
        else if (count == 2)
            return diag_error(diag, STATUS_USAGE, "too many arguments: swcheck PLAN CERTIFICATE");
        else
            paths[count++] = argv[i];
    }
    if (count < 2)
        return diag_error(diag, STATUS_USAGE, "missing argument: swcheck PLAN CERTIFICATE");
    return check_files(paths, *form, diag);
}

int main(int argc, char **argv)
{
    struct diag diag;
    bool kept = input_keep_streams();
    int error = errno;
    diag_init(&diag);
    enum form form = WORDS;
    enum status status =
        kept ? swcheck_run(argc, argv, &form, &diag)
             : diag_error(&diag, STATUS_SYSTEM, "cannot replace a closed standard stream: %s",
                          system_words(error));
    if (form == JSON && diag_has_error(&diag))
        json_write_errors(&diag, stdout);
    if (fflush(stdout) != 0 || ferror(stdout))
        status = diag_error(&diag, STATUS_SYSTEM, "cannot write standard output");
    diag_print(&diag, "swcheck", false, stderr);
    diag_fini(&diag);
    return status_exit_code(status);
}
