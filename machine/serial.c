/* SPDX-License-Identifier: Apache-2.0 */
/* serial.c - see serial.h. */
#include "serial.h"

#include "base/sort.h"

static int32_t *made_cell(const struct work_state *w, int rank, int task)
{
    return w->c + w->p->at.made + rank * w->p->tasks + task;
}

static bool lists(const struct index_list *list, int buffer)
{
    for (size_t i = 0; i < list->count; i++)
        if (list->items[i] == buffer)
            return true;
    return false;
}

/* How many of the iterations before `end` use the instance of this one, but for a number that depends on it alone. */
static int64_t turns_before(int64_t end, int64_t iteration, int period)
{
    int64_t distance = end - 1 - iteration, rest = distance % period;
    return (distance - (rest < 0 ? rest + period : rest)) / period;
}

/* How many writes of `writer` to the instance lag behind those of a serial run; negative: they are ahead.
   Only those of its own iteration count where a buffer has an instance an iteration. */
static int64_t find_lag(const struct work_state *w, const struct op *op, int rank,
                        int64_t iteration, int writer, int period)
{
    const int *place = w->p->serial_place;
    int64_t serial = iteration + (place[writer] < place[op->task]);
    int64_t made = *made_cell(w, rank, writer);
    if (period == 0)
        return (serial > iteration) - (made > iteration);
    return turns_before(serial, iteration, period) - turns_before(made, iteration, period);
}

static void serial_report(struct work_state *w, const struct access *access, int64_t serial,
                          int64_t lag, int writer)
{
    if (w->e->violated & (1u << PROPERTY_SERIAL))
        return;
    w->e->violated |= 1u << PROPERTY_SERIAL;
    w->e->serial =
        (struct order_change){access->buffer, !access->write, writer, serial, serial - lag};
}

/* All writers must lag alike: the own writes of a task never do. */
static void serial_check(struct work_state *w, const struct op *op, const struct access *access,
                         int rank, int64_t iteration)
{
    const struct program *p = w->p;
    const struct buffer_desc *desc = &p->buffers[access->buffer];
    const struct buffer *buffer = &p->plan->buffers[desc->plan_buffer];
    const struct task *tasks = plan_tasks(p->plan, rank);
    int64_t allowed = access->write ? 0 : buffer->staleness, common = -1;
    for (int t = 0; t < p->tasks; t++) {
        if (!lists(&tasks[t].writes, desc->plan_buffer))
            continue;
        int64_t lag = t == op->task ? 0 : find_lag(w, op, rank, iteration, t, desc->period);
        if (lag < 0 || lag > allowed || (common >= 0 && lag != common))
            serial_report(w, access, iteration + (p->serial_place[t] < p->serial_place[op->task]),
                          lag * max_int(desc->period, 1), t);
        else if (lag > 0)
            w->e->stale = true;
        common = lag;
    }
}

void serial_access(struct work_state *w, const struct op *op, int rank, int64_t iteration)
{
    if (!w->p->options.serial || op->task < 0 || op->access_count == 0)
        return;
    for (int k = 0; k < op->access_count; k++)
        serial_check(w, op, &w->p->accesses[op->access_first + k], rank, iteration);
    if (plan_task(w->p->plan, rank, op->task)->writes.count > 0)
        *made_cell(w, rank, op->task) = (int32_t)iteration + 1;
}
