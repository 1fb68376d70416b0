/* SPDX-License-Identifier: Apache-2.0 */
/* t_flow_lines.c - lines of operations that our own reader reads mean what libyaml says. */
#include <stdio.h>
#include <string.h>

#include "plan/text/parse.h"
#include "plan/text/print.h"
#include "tests/same_tree.h"
#include "tests/tap.h"

#define HEAD       "swplan: 1\nthreads:\n  r0.a:\n"
#define FOUR(line) line line line line
#define LAUNCH     "  - {launch: k, stream: s7, time: 1.5us}\n"

/* Both readings give one tree. `lines`: how many our own reader can read, also those that libyaml then reads as
   a part of a text; 0 where it has no tree. */
static const struct {
    const char *what, *text;
    size_t lines;
} cases[] = {
    {"lines of a thread", HEAD FOUR(LAUNCH), 4},
    {"three are too few", HEAD LAUNCH LAUNCH LAUNCH, 0},
    {"two runs, a comment between them", HEAD FOUR(LAUNCH) "  # more\n" FOUR(LAUNCH) "name: x\n",
     8},
    {"a line in quotes between them", HEAD FOUR(LAUNCH) "  - {launch: \"k\"}\n" FOUR(LAUNCH), 8},
    {"lists and maps in lines",
     HEAD FOUR("  - {group: [{send: a, peer: 1}, {recv: b, peer: 1}], comm: w, reads: [x, y]}\n"),
     4},
    {"names of C++", HEAD FOUR("  - {launch: at::native::add<float>, stream: s}\n"), 4},
    {"texts with spaces", HEAD FOUR("  - {copy: h2d, name: Memcpy HtoD (Pinned -> Device)}\n"), 4},
    {"lines of a repeat's body",
     HEAD "  - repeat: 2\n    body:\n" FOUR("    - {launch: k, time: [1us, 2us]}\n") LAUNCH, 4},
    {"lines of a task list", "swplan: 1\nschedule:\n" FOUR("  - {name: t, stream: s}\n"), 4},
    {"a repeat of one line is libyaml's", HEAD FOUR("  - {repeat: 2, body: [{host: 1us}]}\n"), 0},
    {"a key twice is libyaml's", HEAD FOUR("  - {host: 1us, host: 2us}\n"), 0},
    {"a text in quotes is libyaml's", HEAD FOUR("  - {host: '1us'}\n"), 0},
    {"a comment behind the line is libyaml's", HEAD FOUR("  - {host: 1us} # c\n"), 0},
    {"lines of a block text", "swplan: 1\nabout: |\n" FOUR("  - {host: 1us}\n") "name: x\n", 4},
    {"lines of a folded text", "swplan: 1\nabout: >\n" FOUR("  - {host: 1us}\n") "name: x\n", 4},
    {"lines in quotes", "swplan: 1\nabout: \"\n" FOUR("  - {host: 1us}\n") "  \"\nname: x\n", 4},
    {"lines in a text without quotes", "swplan: 1\nabout: a\n" FOUR("  - {host: 1us}\n"), 0},
    {"lines in a flow list", "swplan: 1\nthreads: [\n" FOUR("  - {host: 1us}\n") "]\n", 0},
    {"lines where a map is expected", "swplan: 1\nthreads:\n  a: b\n" FOUR(LAUNCH), 0},
    {"lines that go on deeper", HEAD FOUR(LAUNCH) "    more\n", 0},
    {"lines that go on as a key", HEAD FOUR(LAUNCH) "    more: 1\n", 0},
    {"lines less deep than the list", HEAD "    - {host: 1us}\n" FOUR("   - {host: 1us}\n"), 0},
    {"lines deeper than the list", HEAD "  - {host: 1us}\n" FOUR("   - {host: 1us}\n"), 0},
    {"a second document behind them", HEAD FOUR(LAUNCH) "---\nx\n", 0},
    {"an anchor behind them", HEAD FOUR(LAUNCH) "name: &a x\n", 4},
    {"bad YAML behind them", HEAD FOUR(LAUNCH) "name: [\n", 0},
    {"a bad byte behind them", HEAD FOUR(LAUNCH) "name: \xff\n", 0},
    {"a key twice behind them", HEAD FOUR(LAUNCH) "name: x\nname: y\n", 4},
    {"the last line without its end", HEAD FOUR(LAUNCH) "  - {host: 1us}", 4},
    {"carriage returns", HEAD FOUR("  - {host: 1us}\r\n"), 0},
    {"tabs", HEAD FOUR("  - {host:\t1us}\n"), 0},
    {"a word that stands for lines", HEAD "  - lines\n" FOUR(LAUNCH), 4},
    {"nothing but lines", FOUR("- {host: 1us}\n"), 4},
};

static void messages_know_lines(void)
{
    static const char text[] =
        HEAD FOUR(LAUNCH) "  - {launch: k, strem: s}\n" FOUR(LAUNCH) "nme: x\n";
    struct plan plan;
    struct diag diag;
    diag_init(&diag);
    tap_is_int(plan_parse("a.yaml", text, strlen(text), &plan, &diag), STATUS_INPUT, "a wrong key");
    tap_is_int((long long)diag.count, 2, "two mistakes");
    tap_is_int(diag.messages[0].mark.line, 8, "... the first one's line");
    tap_is_int(diag.messages[1].mark.line, 13, "... the second one's line");
    tap_is_int(diag.messages[0].mark.col, 17, "... and column");
    tap_is_str(diag.messages[0].source, "  - {launch: k, strem: s}", "... and what stands there");
    diag_fini(&diag);
}

int main(void)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t lines = 0;
        tap_ok(same_tree(cases[i].text, strlen(cases[i].text), &lines), "%s: the same tree",
               cases[i].what);
        tap_is_int((long long)lines, (long long)cases[i].lines, "%s: its lines", cases[i].what);
    }
    messages_know_lines();
    return tap_done();
}
