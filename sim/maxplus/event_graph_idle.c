/* SPDX-License-Identifier: Apache-2.0 */
/*
 * event_graph_idle.c - why streams are idle before each piece of their work: the reasons, in the order in
 * which they pass; see event_graph.h. They are told from what the walk noted of threads and streams.
 */
#include "event_graph_internal.h"

static const struct event_ref no_ref = {EVENT_NONE, 0, false};

static void add_idle(struct builder *b, struct event_ref until, struct event_ref pushed, int owner,
                     int height, struct stall why)
{
    if (b->out.idle_count == EVENT_MOST_IDLES)
        return; /* it is refused in the end */
    if (!arena_grow(&b->out.arena, (void **)&b->out.idles, (size_t)b->out.idle_count, &b->idle_cap,
                    sizeof *b->out.idles))
        return;
    b->out.idles[b->out.idle_count++] =
        (struct event_idle){until, pushed, {owner, height, false}, NONE, NONE, why};
}

/* The event added last waits for the last one of a FIFO. */
static void set_lane(struct builder *b, int lane)
{
    if (!b->out.arena.failed && b->out.idle_count > 0)
        b->out.idles[b->out.idle_count - 1].lane = lane;
}

/* The event added last waits for a place in a stream. */
static void set_place(struct builder *b, int item)
{
    if (!b->out.arena.failed && b->out.idle_count > 0)
        b->out.idles[b->out.idle_count - 1].place = item;
}

static struct event_ref earlier(struct event_ref ref, int height)
{
    ref.height += height;
    return ref;
}

/* The turn of T: those of the other ordered tasks come first, from the one after T's last turn on. */
static void add_turns(struct builder *b, int rank, const struct note *note)
{
    const struct program *p = b->p;
    int own = b->positions[rank * p->tasks + note->task];
    for (int k = 1; k < p->tasks; k++) {
        int position = (own + k) % p->tasks, task = p->order[rank][position];
        struct event_ref served = b->serves[rank * p->tasks + task];
        if (served.event == EVENT_NONE)
            continue;
        add_idle(b, earlier(served, position > own), no_ref, note->begin, 0,
                 (struct stall){STALL_HEAD_OF_LINE, task});
    }
}

/* The reason that held up the thread, seen from a stream that waits for a push of task `next`: an instance in
   front of it, or its own. */
static void add_note(struct builder *b, int rank, const struct note *note, int height, bool own)
{
    struct stall why = {STALL_HEAD_OF_LINE, note->task};
    if (note->kind == NOTE_HOST)
        why.cause = STALL_HOST;
    else if (own && note->kind == NOTE_AWAIT)
        why = (struct stall){STALL_DEPENDENCE, note->on};
    else if (own && note->kind == NOTE_PLACE)
        why = stall_for_resource(HELD_FULL, program_stream_agent(b->p, note->on));
    if (own && note->kind == NOTE_TICKET) {
        add_turns(b, rank, note);
        return;
    }
    add_idle(b, earlier(note->until, height), no_ref, note->begin, height, why);
    if (note->kind == NOTE_TICKET)
        set_lane(b, b->slot_served + rank);
    if (note->kind == NOTE_PLACE)
        set_place(b, note->item);
}

/* Where the list of one piece of work is. */
struct telling {
    int rank, thread, driver;
    const struct item *work;
    size_t noted; /* notes of the thread told so far, of this period or the one before */
    int height;   /* of those notes: 1 while it is the one before */
};

static void tell_notes(struct builder *b, struct telling *telling, size_t up_to, int height)
{
    const struct notes *notes = &b->notes[telling->thread];
    while (telling->height > height || telling->noted < up_to) {
        if (telling->noted == notes->count) {
            telling->noted = 0;
            telling->height--;
            continue;
        }
        const struct note *note = &notes->items[telling->noted++];
        add_note(b, telling->rank, note, telling->height, note->begin == telling->work->begin);
    }
}

/* Until the period of the work has come, or a wait has been pushed in front of it. */
static void tell_period(struct builder *b, struct telling *telling, struct event_ref pushed)
{
    add_idle(b, ref_at(telling->driver), pushed, EVENT_NONE, 0,
             (struct stall){STALL_CLOCK, STALL_ON_NONE});
}

/* A wait in front of the work, pushed `height` periods before it. */
static void tell_wait(struct builder *b, struct telling *telling, const struct item *item,
                      int height)
{
    struct event_ref pushed = earlier(item->pushed, height);
    tell_period(b, telling, pushed);
    tell_notes(b, telling, item->noted, height);
    add_idle(b, earlier(item->until, height), pushed, item->begin, height,
             (struct stall){STALL_DEPENDENCE, item->on});
}

/* Items first .. last of a stream, the last one being work; they may begin in the period before. */
static void tell_work(struct builder *b, int stream, int first, int last)
{
    const struct items *items = &b->pushes[stream];
    const int count = (int)items->count;
    const struct item *work = &items->items[last % count];
    int rank = b->p->streams[stream].rank, before = (first + count - 1) % count;
    int periods = last / count;
    struct telling telling = {.rank = rank,
                              .thread = b->stream_threads[stream],
                              .driver = b->out.drivers[rank],
                              .work = work,
                              .noted = items->items[before].noted,
                              .height = periods - (first - 1) / count};
    for (int k = first; k < last; k++)
        if (items->items[k % count].kind == ITEM_WAIT)
            tell_wait(b, &telling, &items->items[k % count], periods - k / count);
    tell_period(b, &telling, no_ref);
    tell_notes(b, &telling, work->noted, 0);
    if (work->member.event == EVENT_NONE)
        return;
    struct event_ref joint = work->until;
    joint.end = false;
    add_idle(b, work->member, no_ref, work->begin, 0, stall_for_resource(HELD_COMM, work->comm));
    set_lane(b, work->lane);
    add_idle(b, joint, no_ref, work->begin, 0, (struct stall){STALL_PEER, STALL_ON_NONE});
}

static bool has_work(const struct items *items)
{
    for (size_t i = 0; i < items->count; i++)
        if (items->items[i].kind == ITEM_WORK)
            return true;
    return false;
}

/* A push that the stream is idle for: work, and a record behind its task's CPU work; records alone where the
   stream has no work. */
static bool is_awaited(const struct item *item, bool work)
{
    return item->kind == (work ? ITEM_WORK : ITEM_RECORD) || item->kind == ITEM_LATE_RECORD;
}

/* The work of a stream; the first one's list begins behind the last one. */
static void tell_stream(struct builder *b, int stream)
{
    const struct items *items = &b->pushes[stream];
    const int count = (int)items->count;
    bool work = has_work(items);
    int last = NONE;
    for (int k = 0; k < count; k++)
        if (is_awaited(&items->items[k], work))
            last = k - count;
    for (int k = 0; k < count && !b->out.arena.failed; k++) {
        const struct item *item = &items->items[k];
        if (!is_awaited(item, work))
            continue;
        int first = b->out.idle_count;
        tell_work(b, stream, last + 1 + count, k + count);
        b->out.works[b->out.work_count++] = (struct event_work){
            stream, item->until, item->kind == ITEM_WORK, first, b->out.idle_count - first};
        last = k;
    }
}

void event_graph_tell(struct builder *b)
{
    size_t most = 0;
    for (int s = 0; s < b->p->stream_count; s++)
        most += b->pushes[s].count;
    b->out.works = ARENA_ARRAY(&b->out.arena, most, struct event_work);
    for (int s = 0; b->out.works && s < b->p->stream_count; s++)
        tell_stream(b, s);
    if (b->out.idle_count >= EVENT_MOST_IDLES)
        event_graph_refuse(b, "the plan is too large");
}
