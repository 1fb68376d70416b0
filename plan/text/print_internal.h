/* SPDX-License-Identifier: Apache-2.0 */
/*
 * print_internal.h - shared by the files of the printer.
 *
 *     print.c           the whole, and the sections all forms share
 *     print_emit.c      libyaml events; keys and values
 *     print_pipeline.c  schedule, dependences, overrides; work
 *     print_programs.c  rank programs
 *     print_threads.c   host programs
 *
 * Once an event fails all later ones are skipped, so no call needs a check: plan_print reports the
 * reason at the end.
 */
#ifndef SWSIM_PRINT_INTERNAL_H
#define SWSIM_PRINT_INTERNAL_H

#include <stdio.h>
#include <yaml.h>

#include "plan/plan.h"

enum print_layout { BLOCK, FLOW };

struct printer {
    yaml_emitter_t emitter;
    const struct plan *plan;
    FILE *out;
    bool kept; /* with the lists of a schedule that is found */
    struct arena scratch;
    int default_stream, default_group; /* of PLAN_IMPLICIT_STREAM and _GROUP, -1: not in use */
    bool failed;
    int write_errno; /* why the file refused, 0: it did not */
};

/* ---- print_emit.c: nodes --------------------------------------------------------------------- */

/* Hand an event to the emitter; `made` says whether it got its memory. */
void emit(struct printer *printer, int made, yaml_event_t *event);
void open_map(struct printer *printer, enum print_layout layout);
void close_map(struct printer *printer);
void open_list(struct printer *printer, enum print_layout layout);
void close_list(struct printer *printer);

/* A text in a style of one's own; NULL means that an arena is full. */
void put_scalar(struct printer *printer, const char *text, yaml_scalar_style_t style);
/* A keyword, a number, a value with a unit. */
void put_word(struct printer *printer, const char *text);
/* A name or a text of the author's: quoted where a YAML reader would take it for something else. */
void put_text(struct printer *printer, const char *text);
void put_number(struct printer *printer, int64_t number);
void put_time(struct printer *printer, int64_t ns);
void put_bytes(struct printer *printer, int64_t bytes);

/* ---- print_emit.c: a key and its value, left out where equal to `otherwise` -- */

void put_pair_word(struct printer *printer, const char *key, const char *word);
void put_pair_text(struct printer *printer, const char *key, const char *text);
void put_pair_number(struct printer *printer, const char *key, int64_t number, int64_t otherwise);
void put_pair_bool(struct printer *printer, const char *key, bool value, bool otherwise);
void put_pair_time(struct printer *printer, const char *key, int64_t ns, int64_t otherwise);
void put_pair_bytes(struct printer *printer, const char *key, int64_t bytes, int64_t otherwise);
void put_pair_rate(struct printer *printer, const char *key, int64_t bytes_per_s);
void put_pair_keyword(struct printer *printer, const char *key, const char *const *words,
                      unsigned value, unsigned otherwise);
void put_pair_name(struct printer *printer, const char *key, const struct names *names, int index,
                   int otherwise);
void put_pair_dist(struct printer *printer, const char *key, const struct dist *dist,
                   const struct dist *otherwise);
void put_pair_buffers(struct printer *printer, const char *key, const struct index_list *list,
                      const struct index_list *otherwise);
void put_pair_locks(struct printer *printer, const char *key, const struct index_list *list,
                    const struct index_list *otherwise);

void put_pair_share(struct printer *printer, const char *key, const struct share *share);
void put_pair_shares(struct printer *printer, const char *key, const struct shares *shares,
                     const struct shares *otherwise);

bool same_shares(const struct shares *a, const struct shares *b);
bool same_dist(struct printer *printer, const struct dist *a, const struct dist *b);
bool same_list(const struct index_list *a, const struct index_list *b);

/* ---- sections -------------------------------------------------------------------------------- */

void print_comms(struct printer *printer);
void print_streams(struct printer *printer);
void print_queues(struct printer *printer);
void print_buffers(struct printer *printer);
void print_inputs(struct printer *printer);
void print_staleness(struct printer *printer);
void print_machine(struct printer *printer);
void put_work(struct printer *printer, const struct work *work);
void print_pipeline(struct printer *printer);
void print_programs(struct printer *printer);
void print_threads(struct printer *printer);

/* print_costs.c: the pairs of `p2p:` about links; are there any? */
bool has_links(const struct links *links);
/* One value for all, or a list of one each; none: nothing. */
void put_cost(struct printer *printer, const char *key, const struct cost_list *list, bool is_time);
void put_links(struct printer *printer, const struct links *links);
void put_link_pairs(struct printer *printer, const struct link *link);
void put_link(struct printer *printer, const char *key, const struct link *link);
void print_stages(struct printer *printer);

/* A list of actions; `parallel:` (print_parallel.c). */
void put_program(struct printer *printer, const struct rank_program *program);
void print_parallel(struct printer *printer);

#endif
