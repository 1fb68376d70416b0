/* SPDX-License-Identifier: Apache-2.0 */
/*
 * t_states.c - what a search keeps its states in: budget, array, numbers for values, tree, states
 * with parents, edges. Equal states and equal roots are the same thing; nothing is lost when memory
 * is refused; threads that share a table agree.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "check/difference.h"
#include "check/cycle.h"
#include "check/states.h"
#include "check/tree.h"
#include "tests/tap.h"

static uint64_t draw(uint64_t *seed)
{
    return hash_mix(*seed += UINT64_C(0x9e3779b97f4a7c15));
}

static struct budget plenty(void)
{
    struct budget budget;
    budget_init(&budget, (size_t)1 << 30);
    return budget;
}

/* ---- budget and array ------------------------------------------------------------------------- */

static void test_budget(void)
{
    struct budget budget;
    void *a = NULL, *b = NULL;
    budget_init(&budget, 1000);
    tap_is_int(budget_alloc(&budget, 600, &a), STATUS_OK, "memory within the limit");
    tap_is_int(budget_alloc(&budget, 401, &b), STATUS_LIMIT, "none beyond it");
    tap_is_int(budget_resize(&budget, &a, 600, 1001), STATUS_LIMIT, "nor by resizing");
    atomic_store(&budget.fails_in, 1);
    tap_is_int(budget_alloc(&budget, 400, &b), STATUS_SYSTEM, "the system may refuse");
    tap_is_int(budget_alloc(&budget, 400, &b), STATUS_OK, "what was refused is not charged");
    tap_is_int((long long)atomic_load(&budget.peak_bytes), 1000, "the peak is known");
    budget_free(&budget, a, 600);
    budget_free(&budget, b, 400);
    tap_is_int((long long)atomic_load(&budget.used_bytes), 0, "all is given back");
    tap_is_int(budget_alloc(&budget, SIZE_MAX, &b), STATUS_LIMIT, "sums do not wrap around");
}

static void test_chunked(void)
{
    enum { COUNT = 200000 };
    struct budget budget = plenty();
    struct chunked array;
    chunked_open(&array, sizeof(uint32_t), &budget);
    int wrong = 0;
    const uint32_t *first = NULL;
    for (uint32_t i = 0; i < COUNT; i++) {
        wrong += chunked_push(&array, &i) != STATUS_OK;
        first = i == 0 ? chunked_at(&array, 0, sizeof i) : first;
    }
    for (uint32_t i = 0; i < COUNT; i++)
        wrong += *(uint32_t *)chunked_at(&array, i, sizeof i) != i;
    tap_ok(wrong == 0 && first == chunked_at(&array, 0, sizeof *first), "items of a array stay");
    chunked_close(&array);
    tap_is_int((long long)atomic_load(&budget.used_bytes), 0, "and are given back");
}

static void test_compare(void)
{
    enum { LINES = 75 };
    static _Alignas(64) unsigned char a[LINES * COMPARE_LINE], b[LINES * COMPARE_LINE];
    uint64_t none[2] = {0, 0}, differs[2];
    int wrong = 0;
    for (size_t byte = 0; byte < sizeof a; byte++) {
        uint64_t expected[2] = {0, 0};
        size_t other = byte * 7919 % sizeof a; /* another one, anywhere */
        b[byte] ^= 0x10;
        b[other] ^= 0x21;
        expected[byte / COMPARE_LINE / 64] |= UINT64_C(1) << (byte / COMPARE_LINE % 64);
        expected[other / COMPARE_LINE / 64] |= UINT64_C(1) << (other / COMPARE_LINE % 64);
        compare_lines(a, b, LINES, differs);
        wrong += memcmp(differs, expected, sizeof differs) != 0;
        b[byte] = b[other] = 0;
    }
    compare_lines(a, b, LINES, differs);
    tap_ok(wrong == 0 && memcmp(differs, none, sizeof none) == 0,
           "differences are found, wherever they are");
}

/* ---- numbers for values ---------------------------------------------------------------------- */

static void test_intern(size_t words)
{
    enum { COUNT = 60000 };
    struct budget budget = plenty();
    struct intern table;
    int wrong = intern_open(&table, words, false, &budget) != STATUS_OK;
    for (int pass = 0; pass < 2; pass++)
        for (uint32_t i = 0; i < COUNT; i++) {
            uint64_t value[8] = {i % 251, 0, 0, i / 251};
            value[words - 1] += (uint64_t)(i / 251) << 32;
            uint32_t number;
            bool is_new;
            wrong += intern_number(&table, value, words, &number, &is_new) != STATUS_OK;
            wrong += number != i || is_new != (pass == 0);
        }
    tap_ok(wrong == 0 && intern_count(&table) == COUNT,
           "values of %zu words: dense numbers, the same again", words);
    intern_close(&table);
    tap_is_int((long long)atomic_load(&budget.used_bytes), 0, "all is given back");
}

enum { TEAM = 4, TEAM_VALUES = 20000 };
struct member {
    struct intern *table;
    uint64_t first;
    uint32_t numbers[TEAM_VALUES];
    int wrong;
};

static void *intern_all(void *arg)
{
    struct member *member = arg;
    for (uint64_t i = 0; i < TEAM_VALUES; i++) { /* each begins somewhere else */
        uint64_t key = (member->first + i) % TEAM_VALUES, value[4] = {key, ~key, 7, key << 40};
        bool is_new;
        member->wrong +=
            intern_number(member->table, value, 4, &member->numbers[key], &is_new) != STATUS_OK;
        const uint64_t *kept = intern_value(member->table, member->numbers[key], 4);
        member->wrong += kept[0] != key || kept[1] != ~key;
    }
    return NULL;
}

static void test_shared(void)
{
    struct budget budget = plenty();
    struct intern table;
    struct member *team = calloc(TEAM, sizeof *team);
    pthread_t threads[TEAM];
    int wrong = !team || intern_open(&table, 4, true, &budget) != STATUS_OK, started = 0;
    for (; !wrong && started < TEAM; started++) {
        team[started].table = &table;
        team[started].first = (uint64_t)started * TEAM_VALUES / TEAM;
        if (pthread_create(&threads[started], NULL, intern_all, &team[started]) != 0)
            break;
    }
    for (int i = 0; i < started; i++) {
        pthread_join(threads[i], NULL);
        wrong += team[i].wrong;
    }
    for (int i = 1; i < started; i++)
        wrong += memcmp(team[0].numbers, team[i].numbers, sizeof team[0].numbers) != 0;
    tap_ok(wrong == 0 && started == TEAM && intern_count(&table) == TEAM_VALUES,
           "threads that share a table agree on every number");
    intern_close(&table);
    free(team);
    tap_is_int((long long)atomic_load(&budget.used_bytes), 0, "outgrown indexes are given back");
}

/* ---- trees ----------------------------------------------------------------------------------- */

enum { MOST_LEAVES = 700, KEPT = 300 };

struct grove {
    struct budget budget;
    struct program program;
    struct tree tree;
    struct cursor cursor;
    struct tree_order order;
    uint32_t leaves[MOST_LEAVES];
    uint64_t seed;
};

/* Leaves in random order, divided anywhere. */
static enum status open_grove(struct grove *grove, size_t bytes, size_t first_half, bool ranked)
{
    grove->program = (struct program){.at.bytes = bytes};
    size_t count = tree_leaves(&grove->program);
    grove->order = (struct tree_order){grove->leaves, count, first_half, ranked};
    for (size_t i = 0; i < count; i++) {
        size_t at = draw(&grove->seed) % (i + 1);
        grove->leaves[i] = grove->leaves[at];
        grove->leaves[at] = (uint32_t)i;
    }
    enum status status =
        tree_open(&grove->tree, &grove->program, &grove->order, false, &grove->budget);
    return status == STATUS_OK ? cursor_open(&grove->cursor, &grove->tree) : status;
}

static void close_grove(struct grove *grove)
{
    cursor_close(&grove->cursor);
    tree_close(&grove->tree);
}

/* A few bytes of `work` change; few different values, so that states recur. */
static void change_work(struct grove *grove)
{
    unsigned char *bytes = (unsigned char *)grove->cursor.work.cells;
    for (uint64_t i = draw(&grove->seed) % 4; i > 0; i--)
        bytes[draw(&grove->seed) % 8 * grove->program.at.bytes / 8] =
            (unsigned char)(draw(&grove->seed) % 3);
}

static int check_grove(struct grove *grove, unsigned char *kept, uint64_t *roots)
{
    size_t bytes = grove->program.at.bytes;
    int wrong = 0;
    for (int i = 0; i < KEPT; i++) {
        if (i > 0)
            cursor_load(&grove->cursor, roots[draw(&grove->seed) % (uint64_t)i]);
        change_work(grove);
        memcpy(kept + (size_t)i * bytes, grove->cursor.work.cells, bytes);
        wrong += cursor_store(&grove->cursor, &roots[i]) != STATUS_OK;
        wrong += memcmp(grove->cursor.work.cells, grove->cursor.node.cells, bytes) != 0;
    }
    for (int i = 0; i < KEPT; i++) {
        const unsigned char *state = kept + (size_t)i * bytes;
        cursor_load(&grove->cursor, roots[i]);
        wrong += memcmp(grove->cursor.node.cells, state, bytes) != 0;
        for (int k = 0; k < i; k++)
            wrong +=
                (roots[i] == roots[k]) != (memcmp(state, kept + (size_t)k * bytes, bytes) == 0);
    }
    return wrong;
}

static void test_tree(size_t bytes, size_t first_half, bool ranked)
{
    struct grove *grove = calloc(1, sizeof *grove);
    unsigned char *kept = malloc(KEPT * bytes);
    uint64_t *roots = calloc(KEPT, sizeof *roots);
    int wrong = 1;
    if (grove && kept && roots) {
        grove->budget = plenty();
        grove->seed = bytes;
        wrong = open_grove(grove, bytes, first_half, ranked) != STATUS_OK;
        wrong = wrong ? wrong : check_grove(grove, kept, roots);
        close_grove(grove);
        wrong += atomic_load(&grove->budget.used_bytes) != 0;
    }
    tap_ok(wrong == 0, "%zu bytes, %zu leaves in the first half%s: equal roots, equal states",
           bytes, first_half, ranked ? ", ranked" : "");
    free(grove);
    free(kept);
    free(roots);
}

/* Whichever request the system refuses, nothing is lost: tried again it works, with the root it would
   have had. */
static void test_refused(void)
{
    struct grove *grove = calloc(1, sizeof *grove);
    uint64_t first, again;
    int wrong = grove == NULL, refused = 0;
    for (int n = 1; grove && n < 40; n++) {
        budget_init(&grove->budget, SIZE_MAX);
        atomic_store(&grove->budget.fails_in, n);
        if (open_grove(grove, 5000, 40, true) == STATUS_OK) {
            for (int i = 0; i < 3000; i++) {
                memset(grove->cursor.work.cells, 1 + i % 200, 1000);
                grove->cursor.work.cells[1000] = i;
                enum status status = cursor_store(&grove->cursor, &first);
                refused += status == STATUS_SYSTEM;
                wrong += memcmp(grove->cursor.work.cells, grove->cursor.node.cells, 5000) != 0;
                memset(grove->cursor.work.cells, 1 + i % 200, 1000);
                grove->cursor.work.cells[1000] = i;
                wrong += cursor_store(&grove->cursor, &again) != STATUS_OK;
                wrong += status == STATUS_OK && first != again;
                cursor_load(&grove->cursor, again);
                wrong += grove->cursor.node.cells[1000] != i;
            }
        } else {
            refused++;
        }
        close_grove(grove);
        wrong += atomic_load(&grove->budget.used_bytes) != 0;
    }
    tap_ok(wrong == 0 && refused >= 25, "a refusal loses nothing");
    free(grove);
}

/* ---- states ---------------------------------------------------------------------------------- */

static int insert_all(struct states *states, uint32_t count, bool again)
{
    int wrong = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct transition by = {(int)(i % 40000), (int)(i % 256)};
        uint32_t id;
        bool is_new;
        uint64_t root = hash_mix(i);
        wrong += states_insert(states, root, i / 2, by, &id, &is_new) != STATUS_OK;
        wrong += id != i || is_new == again || states_root(states, i) != root;
    }
    return wrong;
}

static void test_states(void)
{
    enum { COUNT = 100000 };
    struct budget budget = plenty();
    struct program program = {.agent_count = 40000};
    struct states states;
    int wrong = states_open(&states, &program, &budget) != STATUS_OK;
    wrong += insert_all(&states, COUNT, false) + insert_all(&states, COUNT, true);
    tap_ok(wrong == 0 && states_count(&states) == COUNT, "each state is kept once");
    for (uint32_t i = 0; i < COUNT; i++) {
        struct transition by = states_step(&states, i);
        wrong += by.agent != (int)(i % 40000) || by.choice != (int)(i % 256) ||
                 states_parent(&states, i) != i / 2;
    }
    tap_ok(wrong == 0, "with its parent and the step from there, however many agents");
    states_close(&states);
    tap_is_int((long long)atomic_load(&budget.used_bytes), 0, "all is given back");
}

static void test_states_refused(void)
{
    struct budget budget;
    struct program program = {.agent_count = 10};
    struct states states;
    uint32_t id, count = 0;
    bool is_new;
    enum status status = STATUS_OK;
    budget_init(&budget, 2 << 20);
    bool opened = states_open(&states, &program, &budget) == STATUS_OK;
    while (opened && status == STATUS_OK && count < 10000000)
        status =
            states_insert(&states, hash_mix(count++), 0, (struct transition){1, 0}, &id, &is_new);
    tap_is_int(status, STATUS_LIMIT, "the memory limit is kept");
    tap_ok(states_count(&states) == count - 1 && count > (2 << 20) / 32,
           "and reached with 32 bytes a state or less");
    tap_ok(states_insert(&states, hash_mix(0), 0, (struct transition){1, 0}, &id, &is_new) ==
                   STATUS_OK &&
               !is_new && id == 0,
           "what is in is still found");
    states_close(&states);
}

/* ---- cycles ---------------------------------------------------------------------------------- */

/* `text`: for each node the digits of those its edges lead to, and a comma. */
static void test_cycle(const char *text, bool expected)
{
    struct budget budget = plenty();
    struct edges edges;
    uint32_t nodes = 1;
    bool cycle = !expected;
    edges_open(&edges, &budget);
    bool ok = edges_begin(&edges) == STATUS_OK;
    for (const char *at = text; *at; at++)
        if (*at == ',') {
            ok &= edges_begin(&edges) == STATUS_OK;
            nodes++;
        } else {
            ok &= edges_add(&edges, (uint32_t)(*at - '0')) == STATUS_OK;
        }
    ok &= edges_have_cycle(&edges, nodes, &cycle) == STATUS_OK;
    tap_ok(ok && cycle == expected, "edges %s: %s", text, expected ? "a cycle" : "no cycle");
    edges_close(&edges);
    tap_is_int((long long)atomic_load(&budget.used_bytes), 0, "all is given back");
}

int main(void)
{
    test_budget();
    test_chunked();
    test_compare();
    test_intern(1);
    test_intern(4);
    test_intern(8);
    test_shared();
    for (int ranked = 0; ranked < 2; ranked++) {
        test_tree(64, 1, ranked);
        test_tree(64, 0, ranked);
        test_tree(72, 1, ranked);
        test_tree(640, 9, ranked);
        test_tree(1500, 23, ranked);
        test_tree(4336, 34, ranked);
        test_tree(40000, 600, ranked);
    }
    test_refused();
    test_states();
    test_states_refused();
    test_cycle("1,2,3,", false);
    test_cycle("1,2,0", true);
    test_cycle("12,3,3,", false);
    test_cycle("12,3,1,3", true);
    test_cycle("12,,1,", false);
    test_cycle("0", true);
    return tap_done();
}
