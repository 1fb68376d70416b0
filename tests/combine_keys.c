/* SPDX-License-Identifier: Apache-2.0 */
/*
 * combine_keys.c - keys of plans beside each other, and without a value worth the name.
 *
 *     combine_keys FILE    plans, each behind a line `---`: those of tests/plan/t_keys.sh, which has each key of the parser
 *     SWSIM_PLANS=N        combinations that are drawn; else 4000, 400000 with SWSIM_LONG
 *     SWSIM_SEED=N         their seed; else 1
 *
 * A plan is a list of sections: a key at the top with what follows it. In each plan each section is left out and gets
 * each of a few empty values; the section that makes the form gets the place of those of other plans; and sections of
 * other plans come beside those of a plan, with emptied lists and changed numbers in them. Each text goes to the fuzz
 * targets `plan` and `whole` (tests/fuzz/targets.h), which look for what the product says twice, and differently. An
 * input that ends this program is printed.
 */
#include <ctype.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "plan/text/parse.h"
#include "tests/fuzz/targets.h"
#include "harness.h"
#include "random_draw.h"

enum {
    MOST_SECTIONS = 16, /* of a plan */
    MOST_PLANS = 4096,
    MOST_KINDS = 8, /* of keys that make a form */
    MOST_FORMS = 4, /* of each: they take the place of a plan's own */
    MOST_TEXT = FUZZ_MOST_whole,
    MOST_SECONDS = 60 /* of an input: milliseconds, where nothing hangs */
};

struct section {
    const char *text; /* with its line breaks */
    size_t length, key_length;
};

struct sections {
    struct section items[MOST_SECTIONS];
    size_t count;
};

/* The shortest sections of one key. */
struct forms {
    struct section items[MOST_FORMS];
    size_t count;
};

struct corpus {
    struct sections plans[MOST_PLANS];
    size_t plan_count;
    struct forms kinds[MOST_KINDS];
    size_t kind_count;
};

static const char *const empty_values[] = {"[]", "[[]]", "[[], []]", "{}", "0", "1", "''", "~"};
static const char *const numbers[] = {"0", "1", "-1", "2147483647", "9223372036854775807"};
enum {
    EMPTY = sizeof empty_values / sizeof *empty_values,
    NUMBERS = sizeof numbers / sizeof *numbers
};

/* ---- one text -------------------------------------------------------------------------------- */

/* The input being tried, for the handler of signals. */
static struct text {
    char data[MOST_TEXT];
    size_t size;
} now;
static long tried;

static void show_input(int signal_number)
{
    ssize_t written = write(STDERR_FILENO, now.data, now.size);
    (void)written;
    signal(signal_number, SIG_DFL);
    raise(signal_number);
}

static void add_text(const char *text, size_t length)
{
    if (length > MOST_TEXT - now.size)
        length = MOST_TEXT - now.size;
    memcpy(now.data + now.size, text, length);
    now.size += length;
}

static void add_word(const char *word)
{
    add_text(word, strlen(word));
}

static void begin_text(void)
{
    now.size = 0;
    add_word("swplan: 1\n");
}

/* Was this text tried lately? Different plans give many alike. */
static bool is_known(void)
{
    static uint64_t known[1 << 16];
    uint64_t hash = hash_bytes(now.data, now.size), *place = &known[hash % (1 << 16)];
    bool same = *place == hash;
    *place = hash;
    return same;
}

static void try_text(void)
{
    if (is_known())
        return;
    alarm(MOST_SECONDS);
    fuzz_plan((const uint8_t *)now.data, now.size);
    fuzz_whole((const uint8_t *)now.data, now.size);
    tried++;
}

/* ---- sections -------------------------------------------------------------------------------- */

/* A line that begins with a letter is a key at the top. */
static void split_sections(const char *text, const char *end, struct sections *out)
{
    out->count = 0;
    while (text < end) {
        const char *line_end = memchr(text, '\n', (size_t)(end - text));
        line_end = line_end ? line_end + 1 : end;
        const char *colon = memchr(text, ':', (size_t)(line_end - text));
        bool begins = isalpha((unsigned char)*text) && colon;
        if (begins && out->count < MOST_SECTIONS)
            out->items[out->count++] = (struct section){text, 0, (size_t)(colon - text)};
        if (out->count > 0)
            out->items[out->count - 1].length += (size_t)(line_end - text);
        text = line_end;
    }
}

static bool is_key(const struct section *section, const char *key)
{
    return section->key_length == strlen(key) &&
           memcmp(section->text, key, section->key_length) == 0;
}

static bool same_key(const struct section *a, const struct section *b)
{
    return a->key_length == b->key_length && memcmp(a->text, b->text, a->key_length) == 0;
}

/* The parser says whether a plan of this section alone has a form. */
static bool makes_form(const struct section *section)
{
    struct diag diag;
    struct plan plan;
    begin_text();
    add_text(section->text, section->length);
    diag_init(&diag);
    if (plan_parse("form.yaml", now.data, now.size, &plan, &diag) == STATUS_OK)
        plan_fini(&plan);
    bool form = !diag_says(&diag, "found no form of a plan");
    diag_fini(&diag);
    return form;
}

static void add_section(const struct section *section)
{
    add_text(section->text, section->length);
}

static void add_value(const struct section *section, const char *value)
{
    add_text(section->text, section->key_length);
    add_word(": ");
    add_word(value);
    add_word("\n");
}

/* ---- the corpus ------------------------------------------------------------------------------ */

/* The forms of this key; NULL: there are too many keys. */
static struct forms *forms_of(struct corpus *corpus, const struct section *form)
{
    size_t kind = 0;
    while (kind < corpus->kind_count && !same_key(&corpus->kinds[kind].items[0], form))
        kind++;
    corpus->kind_count += kind == corpus->kind_count && kind < MOST_KINDS;
    return kind < MOST_KINDS ? &corpus->kinds[kind] : NULL;
}

static bool same_text(const struct section *a, const struct section *b)
{
    return a->length == b->length && memcmp(a->text, b->text, a->length) == 0;
}

/* Kept in ascending order of length, each text once. */
static void keep_form(struct corpus *corpus, const struct section *form)
{
    struct forms *forms = forms_of(corpus, form);
    size_t at = 0;
    if (!forms)
        return;
    while (at < forms->count && forms->items[at].length < form->length)
        at++;
    for (size_t i = at; i < forms->count; i++)
        if (same_text(&forms->items[i], form))
            return;
    if (at == MOST_FORMS)
        return;
    forms->count += forms->count < MOST_FORMS;
    memmove(&forms->items[at + 1], &forms->items[at],
            (forms->count - at - 1) * sizeof *forms->items);
    forms->items[at] = *form;
}

static void keep_plan(struct corpus *corpus, const char *text, const char *end)
{
    struct sections *plan = &corpus->plans[corpus->plan_count];
    if (corpus->plan_count == MOST_PLANS)
        return;
    split_sections(text, end, plan);
    while (plan->count > 0 && is_key(&plan->items[0], "swplan"))
        memmove(plan->items, plan->items + 1, --plan->count * sizeof *plan->items);
    corpus->plan_count += plan->count > 0;
    for (size_t i = 0; i < plan->count; i++)
        if (makes_form(&plan->items[i]))
            keep_form(corpus, &plan->items[i]);
}

static void read_corpus(char *text, struct corpus *corpus)
{
    static const char mark[] = "---\n";
    while (text) {
        char *next = strstr(text, mark);
        keep_plan(corpus, text, next ? next : text + strlen(text));
        text = next ? next + strlen(mark) : NULL;
    }
}

/* ---- each section of a plan ------------------------------------------------------------------ */

/* The plan with `value` in the place of what section `at` has; NULL: without it. */
static void try_value(const struct sections *plan, size_t at, const char *value)
{
    begin_text();
    for (size_t i = 0; i < plan->count; i++)
        if (i != at)
            add_section(&plan->items[i]);
        else if (value)
            add_value(&plan->items[i], value);
    try_text();
}

/* The plan with another form in the place of section `at`: `form`, or its key with `value`. */
static void try_form(const struct sections *plan, size_t at, const struct section *form,
                     const char *value)
{
    begin_text();
    if (value)
        add_value(form, value);
    else
        add_section(form);
    for (size_t i = 0; i < plan->count; i++)
        if (i != at)
            add_section(&plan->items[i]);
    try_text();
}

static void try_forms(const struct corpus *corpus, const struct sections *plan, size_t at)
{
    for (size_t kind = 0; kind < corpus->kind_count; kind++) {
        const struct forms *forms = &corpus->kinds[kind];
        for (size_t i = 0; i < forms->count; i++)
            try_form(plan, at, &forms->items[i], NULL);
        for (int value = 0; value < EMPTY; value++)
            try_form(plan, at, &forms->items[0], empty_values[value]);
    }
}

static void try_sections(const struct corpus *corpus, const struct sections *plan)
{
    for (size_t at = 0; at < plan->count; at++) {
        try_value(plan, at, NULL);
        for (int value = 0; value < EMPTY; value++)
            try_value(plan, at, empty_values[value]);
        if (makes_form(&plan->items[at]))
            try_forms(corpus, plan, at);
    }
}

/* ---- drawn combinations ---------------------------------------------------------------------- */

/* The end of the bracket that opens at `at`; 0: it has none. */
static size_t bracket_end(size_t at)
{
    int depth = 0;
    for (size_t i = at; i < now.size; i++) {
        depth += now.data[i] == '[' || now.data[i] == '{';
        depth -= now.data[i] == ']' || now.data[i] == '}';
        if (depth == 0)
            return i;
    }
    return 0;
}

static void replace_text(size_t from, size_t to, const char *by)
{
    char rest[MOST_TEXT];
    size_t length = now.size - to;
    memcpy(rest, now.data + to, length);
    now.size = from;
    add_word(by);
    add_text(rest, length);
}

/* Empty a list or mapping, or change a number, at a place that is drawn. */
static void change_inside(struct random *random)
{
    size_t at = (size_t)below(random, (int)now.size), end;
    while (at < now.size && !strchr("[{0123456789", now.data[at]))
        at++;
    if (at == now.size || !now.data[at])
        return;
    if (!isdigit((unsigned char)now.data[at])) {
        end = bracket_end(at);
        if (end > at)
            replace_text(at + 1, end, "");
        return;
    }
    for (end = at; end < now.size && isdigit((unsigned char)now.data[end]); end++)
        ;
    replace_text(at, end, one_of(random, numbers, NUMBERS));
}

static void try_drawn(const struct corpus *corpus, struct random *random)
{
    struct sections plan = corpus->plans[below(random, (int)corpus->plan_count)];
    for (int more = 1 + below(random, 2); more > 0; more--) {
        const struct sections *other = &corpus->plans[below(random, (int)corpus->plan_count)];
        const struct section *section = &other->items[below(random, (int)other->count)];
        size_t at = 0;
        while (at < plan.count && !same_key(&plan.items[at], section))
            at++;
        if (at < MOST_SECTIONS)
            plan.items[at] = *section;
        plan.count += at == plan.count && at < MOST_SECTIONS;
    }
    begin_text();
    for (size_t i = 0; i < plan.count; i++)
        add_section(&plan.items[i]);
    for (int changes = below(random, 3); changes > 0; changes--)
        change_inside(random);
    try_text();
}

int main(int argc, char **argv)
{
    static struct corpus corpus;
    struct random random = {.seed = env_number("SWSIM_SEED", 1)};
    char *text = argc == 2 ? file_text(argv[1]) : NULL;
    if (!text) {
        fprintf(stderr, "combine_keys: expected a file of plans\n");
        return EXIT_FAILURE;
    }
    signal(SIGABRT, show_input);
    signal(SIGSEGV, show_input);
    signal(SIGALRM, show_input);
    read_corpus(text, &corpus);
    for (size_t i = 0; i < corpus.plan_count; i++)
        try_sections(&corpus, &corpus.plans[i]);
    for (int i = env_plans(4000, 400000); corpus.plan_count && i > 0; i--)
        try_drawn(&corpus, &random);
    printf("# %zu plans, %zu keys of forms: %ld texts\n", corpus.plan_count, corpus.kind_count,
           tried);
    free(text);
    return corpus.plan_count > 0 && corpus.kind_count > 1 ? EXIT_SUCCESS : EXIT_FAILURE;
}
