/* SPDX-License-Identifier: Apache-2.0 */
/*
 * promela_drivers.c - the two drivers in Promela: machine/driver.c, clock.c and dataflow.c.
 */
#include <inttypes.h>

#include "promela.h"

void promela_put_arm_slot(const struct model *m, int rank, int task, const char *iteration)
{
    int first = (rank * m->p->tasks + task) * m->p->slots;
    promela_put(m, "event_stream[%d + (%s) %% %d] = 0; event_pos[%d + (%s) %% %d] = 0; ", first,
                iteration, m->p->slots, first, iteration, m->p->slots);
    promela_put(m, "flag[%d + (%s) %% %d] = 0", first, iteration, m->p->slots);
}

/* inline admit_R(k): give iteration k its context. */
static void put_admit(const struct model *m, int rank)
{
    const struct program *p = m->p;
    int64_t first = rank * m->iterations;
    promela_put(m,
                "inline admit_%d(k) {\n"
                "  submit_left[%" PRId64 " + k] = %d; device_left[%" PRId64
                " + k] = %d; last_left[%" PRId64 " + k] = 1;\n",
                rank, first, p->tasks, first, p->tasks, first);
    for (int task = 0; task < p->tasks && p->plan->pipeline.slot_reset == SLOT_RESET_ADMIT;
         task++) {
        promela_put(m, "  ");
        promela_put_arm_slot(m, rank, task, "k");
        promela_put(m, ";\n");
    }
    promela_put(m, "  admitted[%d] = k + 1\n}\n", rank);
}

/* "the dependence of iteration k is submitted, as far as the driver remembers": `submitted` in
   dataflow.c. */
static void put_submitted(const struct model *m, int rank, const struct edge *edge)
{
    const struct program *p = m->p;
    int64_t at = (rank * p->tasks + edge->task) * m->iterations - edge->distance;
    promela_put(m, "(k < %d || (k - %d < admitted[%d] && ", edge->distance, edge->distance, rank);
    if (p->plan->pipeline.forget_done == FORGET_AT_RETIRE)
        promela_put(m, "k - %d >= oldest[%d] && submitted[%" PRId64 " + k]))", edge->distance, rank,
                    at);
    else
        promela_put(m,
                    "((k - %d < oldest[%d] && k - %d + %d < admitted[%d]) || submitted[%" PRId64
                    " + k])))",
                    edge->distance, rank, edge->distance, p->window, rank, at);
}

/* inline pass_R(): the turns of iterations that do not exist are over: pass_void_turns in dataflow.c. served[R] is the turn that has
   come. */
static void put_pass_turns(const struct model *m, int rank)
{
    const struct program *p = m->p;
    const int ordered = p->ordered_tasks[rank];
    const int64_t last = (p->ends[rank] + p->last_turn_stage) * ordered;
    promela_put(m, "inline pass_%d() {\n  do\n", rank);
    for (int k = 0; k < ordered; k++) {
        const int stage = p->turn_stage[p->turn_task[rank * p->tasks + k]];
        promela_put(m,
                    "  :: served[%d] < %" PRId64 " && served[%d] %% %d == %d && (served[%d] / %d < "
                    "%d || served[%d] / %d >= %" PRId64 ") -> served[%d]++\n",
                    rank, last, rank, ordered, k, rank, ordered, stage, rank, ordered,
                    p->ends[rank] + stage, rank);
    }
    promela_put(m, "  :: else -> break\n  od\n}\n");
}

/* inline turn_R(): fire the instance whose turn has come, if all else allows: fire_turn in dataflow.c. */
static void put_fire_turn(const struct model *m, int rank)
{
    const struct program *p = m->p;
    const int ordered = p->ordered_tasks[rank];
    promela_put(m, "inline turn_%d() {\n  if\n", rank);
    for (int k = 0; k < ordered; k++) {
        const int task = p->turn_task[rank * p->tasks + k];
        promela_put(
            m,
            "  :: served[%d] %% %d == %d && served[%d] / %d >= %d -> fire_%d_%d((served[%d] "
            "/ %d - %d))\n",
            rank, ordered, k, rank, ordered, p->turn_stage[task], rank, task, rank, ordered,
            p->turn_stage[task]);
    }
    promela_put(m, "  :: else\n  fi\n}\n");
}

/* inline fire_R_T(k): hand (T, k) to its worker if its dependences allow: try_fire in dataflow.c. */
static void put_fire(const struct model *m, int rank, int task)
{
    const struct program *p = m->p;
    int index = rank * p->tasks + task, position = p->ticket_position[index];
    bool at_fire = p->plan->pipeline.ticket_at == TICKET_AT_FIRE;
    int64_t at = index * m->iterations;
    promela_put(m,
                "inline fire_%d_%d(k) {\n  if\n"
                "  :: k >= oldest[%d] && k < admitted[%d] && !fired[%" PRId64 " + k]",
                rank, task, rank, rank, at);
    if (program_ends_turn(p, rank, task))
        promela_put(m, " &&\n     served[%d] == (k + %d) * %d + %d", rank, p->turn_stage[task],
                    p->ordered_tasks[rank], position);
    for (int e = 0; e < p->depends[task].count; e++) {
        promela_put(m,
                    " &&\n     "); /* SPIN ends an expression at the end of a line where it can */
        put_submitted(m, rank, &p->depends[task].items[e]);
    }
    promela_put(m, " ->\n     fired[%" PRId64 " + k] = 1; work_%d!%d,k,", at, p->worker[index],
                task);
    if (position < 0 || program_fires_by_turn(p))
        promela_put(m, "0\n");
    else if (at_fire)
        promela_put(m, "next_ticket[%d]; next_ticket[%d]++\n", rank, rank);
    else
        promela_put(m, "(k) * %d + %d\n", p->ordered_tasks[rank], position);
    promela_put(m, "  :: else\n  fi\n}\n");
}

static void put_sweep(const struct model *m, int rank)
{
    promela_put(m, "inline sweep_%d(k) {\n", rank);
    if (program_fires_by_turn(m->p) && m->p->ordered_tasks[rank] > 0)
        promela_put(m, "  pass_%d();\n", rank);
    for (int k = 0; k < m->p->tasks; k++)
        promela_put(m, "  fire_%d_%d(k)%s\n", rank, m->p->order[rank][k],
                    k + 1 < m->p->tasks ? ";" : "");
    promela_put(m, "}\n");
}

/* inline enqueue_R(): one period of the clock, clock_enqueue in clock.c. */
static void put_enqueue(const struct model *m, int rank)
{
    const struct program *p = m->p;
    promela_put(m,
                "inline enqueue_%d() {\n  if\n"
                "  :: period - %d < %" PRId64
                " && period - %d >= admitted[%d] -> admit_%d(period - %d)\n"
                "  :: else\n  fi;\n",
                rank, p->min_stage, p->ends[rank], p->min_stage, rank, rank, p->min_stage);
    for (int k = 0; k < p->tasks; k++) {
        int task = p->order[rank][k], stage = plan_task(p->plan, rank, task)->stage;
        bool ordered = p->ticket_position[rank * p->tasks + task] >= 0;
        promela_put(
            m, "  if\n  :: period >= %d && period - %d < admitted[%d] -> work_%d!%d,period - %d,",
            stage, stage, rank, p->worker[rank * p->tasks + task], task, stage);
        if (ordered)
            promela_put(m, "next_ticket[%d]; next_ticket[%d]++", rank, rank);
        else
            promela_put(m, "0");
        promela_put(m, "\n  :: else\n  fi;\n");
    }
    promela_put(m, "  period++\n}\n");
}

/* The place of the window that the next iteration needs is free: has_room in driver.c. */
static void put_has_room(const struct model *m, int rank)
{
    int64_t first = rank * m->iterations - m->p->window;
    promela_put(m, "(admitted[%d] < %d", rank, m->p->window);
    promela_put(m,
                " ||\n      (submit_left[%" PRId64 " + admitted[%d]] == 0 && device_left[%" PRId64
                " + admitted[%d]] == 0))",
                first, rank, first, rank);
}

/* machine_iteration_over in driver.c. */
static void put_iteration_over(const struct model *m, int rank)
{
    int64_t first = rank * m->iterations;
    promela_put(m, "oldest[%d] < admitted[%d] && ", rank, rank);
    switch (m->p->plan->pipeline.retire) {
    case RETIRE_SUBMIT:
        promela_put(m, "submit_left[%" PRId64 " + oldest[%d]] == 0", first, rank);
        break;
    case RETIRE_LAST_TASK:
        promela_put(m, "last_left[%" PRId64 " + oldest[%d]] == 0", first, rank);
        break;
    case RETIRE_DEVICE:
        promela_put(m,
                    "submit_left[%" PRId64 " + oldest[%d]] == 0 && device_left[%" PRId64
                    " + oldest[%d]] == 0",
                    first, rank, first, rank);
        break;
    }
}

/* The phases of driver_step and driver_settle, in their order. */
static void put_clock_phases(const struct model *m, int rank)
{
    const struct program *p = m->p;
    promela_put(m, "  short period;\nadmit:\n  atomic {\n    ");
    put_has_room(m, rank);
    promela_put(m,
                " ->\n    enqueue_%d();\n    if\n    :: period < %d -> goto admit\n"
                "    :: period >= %d && admitted[%d] >= %" PRId64 " && oldest[%d] >= %" PRId64
                " -> goto over\n    :: else\n    fi\n  };\n",
                rank, p->periods, p->periods, rank, p->ends[rank], rank, p->ends[rank]);
    promela_put(m, "  atomic {\n    ");
    put_iteration_over(m, rank);
    promela_put(m,
                " ->\n    oldest[%d]++;\n    if\n    :: admitted[%d] >= %" PRId64
                " && oldest[%d] >= %" PRId64
                "\n    :: else -> goto admit\n    fi\n  };\nover:\n  skip\n",
                rank, rank, p->ends[rank], rank, p->ends[rank]);
}

static void put_dataflow_phases(const struct model *m, int rank)
{
    const struct program *p = m->p;
    promela_put(m,
                "  short k;\nsettle:\n  if\n"
                "  :: admitted[%d] >= %" PRId64 " && oldest[%d] >= %" PRId64 " -> goto over\n"
                "  :: else\n  fi;\n  if\n",
                rank, p->ends[rank], rank, p->ends[rank]);
    promela_put(m,
                "  :: admitted[%d] >= %" PRId64
                " || admitted[%d] - oldest[%d] >= %d -> goto retire\n"
                "  :: else\n  fi;\n  atomic {\n    ",
                rank, p->ends[rank], rank, rank, p->depth);
    put_has_room(m, rank);
    promela_put(m,
                " ->\n    k = admitted[%d]; admit_%d(k); sweep_%d(k); k = 0; goto settle\n  };\n"
                "retire:\n  atomic {\n    ",
                rank, rank, rank);
    put_iteration_over(m, rank);
    promela_put(
        m,
        " ->\n    oldest[%d]++; k = oldest[%d];\n"
        "    do\n    :: k < admitted[%d] -> sweep_%d(k); k++\n    :: else -> break\n    od;\n"
        "    k = 0; goto settle\n  };\nover:\n  skip\n",
        rank, rank, rank, rank);
}

void promela_put_driver_inlines(const struct model *m)
{
    for (int rank = 0; promela_is_pipeline(m) && rank < m->p->ranks; rank++) {
        promela_put(m, "\n/* the driver of rank %d */\n", rank);
        put_admit(m, rank);
        if (m->p->driver == DRIVER_CLOCK) {
            put_enqueue(m, rank);
            continue;
        }
        for (int task = 0; task < m->p->tasks; task++)
            put_fire(m, rank, task);
        if (program_fires_by_turn(m->p) && m->p->ordered_tasks[rank] > 0) {
            put_pass_turns(m, rank);
            put_fire_turn(m, rank);
        }
        put_sweep(m, rank);
    }
}

void promela_put_driver(const struct model *m, int rank)
{
    if (m->p->driver == DRIVER_CLOCK)
        put_clock_phases(m, rank);
    else
        put_dataflow_phases(m, rank);
}
