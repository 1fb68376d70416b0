# SPDX-License-Identifier: Apache-2.0
"""Translates a host program into C, for model checkers of C programs with threads.

c_program(plan, HOW) translates a plan as `swsim export --format=json` prints it. Refused names what C cannot express. Each thread
of the plan becomes a thread. So does each stream to which one thread pushes: it awaits the push of each item, and sets a mark
behind it. HOW is one of two:

    SPINS       atomics and waiting loops; buffers are accessed plainly, and the checker looks for data races
    PTHREADS    mutexes, and condition variables for flags and queues; each access has two halves, and the program asserts
                that no conflicting access comes between them

Buffers are accessed only if ACCESSES is defined. main calls END() when all threads have ended. Written from doc/semantics.md.
"""

import re
from collections import Counter, defaultdict

PLAN_KEYS = set("swplan name about source expect ranks comms queues flags buffers inputs threads".split())
IGNORED = set("time host_time name bytes work".split())
KEYS = {
    **dict.fromkeys("put get lock unlock barrier ticket serve".split(), ""),
    **dict.fromkeys(("host", "compute"), "reads writes"),
    **dict.fromkeys(("launch", "copy"), "stream reads writes"),
    **dict.fromkeys(("record", "wait"), "stream"),
    **{"signal": "add", "await": "at_least", "acquire": "count", "sync": "stream event", "repeat": "body"},
    **{"collective": "comm op stream reads writes dtype count", "group": "comm stream reads writes"},
}
PUSHED = ("launch", "copy", "record", "wait", "collective", "group")

COMMON = """
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#ifndef END
#define END()
#endif
#define RELEASE memory_order_release
#define ACQUIRED memory_order_acquire
#define RELAXED memory_order_relaxed
enum {{ FLAGS = {flag}, MARKS = {mark}, LOCKS = {lock}, NOTES = {note}, BUFFERS = {buffer}, QUEUES = {queues}, PLACES = {places} }};
static const int capacity[QUEUES] = {{ {capacity} }};
static atomic_int mark[MARKS]; /* set once: an item of a stream is pushed or done, a rank has arrived */
static atomic_int noted[NOTES]; /* the mark of the last item of a stream, of the last record of an event */
static int kept[MARKS]; /* what was noted when a wait was called */
static volatile int buffer[BUFFERS];
#define MARK(m) atomic_store_explicit(&mark[m], 1, RELEASE)
#define REACH(m) while (!atomic_load_explicit(&mark[m], ACQUIRED)) {{}}
#define FOLLOW(m) while (!atomic_load_explicit(&mark[m], RELAXED)) {{}} /* gives no happens-before */
#define NOTE(note, m) atomic_store_explicit(&noted[note], m, RELAXED)
#define NOTED(note) atomic_load_explicit(&noted[note], RELAXED)
#define KEEP(m, note) (kept[m] = NOTED(note))
"""

SPINS = """
static atomic_int flag[FLAGS], lock[LOCKS], put[QUEUES], got[QUEUES], full[QUEUES][PLACES], freed[QUEUES][PLACES];
#define SWAP(what, old, new, order) atomic_compare_exchange_strong_explicit(what, &(int){old}, new, order, RELAXED)
#define SET(f) SWAP(&flag[f], 0, 1, RELEASE)
#define ADD(f, n) atomic_fetch_add_explicit(&flag[f], n, memory_order_acq_rel)
#define AWAIT(f, n) while (atomic_load_explicit(&flag[f], ACQUIRED) < n) {}
static void acquire(atomic_int *flag, int n)
{
    int value;
    do
        value = atomic_load_explicit(flag, RELAXED);
    while (value < n || !SWAP(flag, value, value - n, memory_order_acq_rel));
}
#define ACQUIRE(f, n) acquire(&flag[f], n)
#define LOCK(l) while (!SWAP(&lock[l], 0, 1, ACQUIRED)) {}
#define UNLOCK(l) atomic_store_explicit(&lock[l], 0, RELEASE)
/* The n-th get takes what the n-th put left. The n-th put uses the place that get n - capacity made free. */
static void move(atomic_int *number, atomic_int *from, int behind, atomic_int *to)
{
    int n = atomic_fetch_add_explicit(number, 1, RELAXED);
    if (n >= behind)
        while (!atomic_load_explicit(&from[n - behind], ACQUIRED)) {}
    atomic_store_explicit(&to[n], 1, RELEASE);
}
#define PUT(q) move(&put[q], freed[q], capacity[q], full[q])
#define GET(q) move(&got[q], full[q], 0, freed[q])
#define READ(b) ((void)buffer[b])
#define WRITE(b, id) (buffer[b] = id)
#define INITIALISE()
"""

PTHREADS = """
void __VERIFIER_assume(int);
static struct monitor { pthread_mutex_t mutex; pthread_cond_t changed; int value; } flag[FLAGS], queue[QUEUES];
static pthread_mutex_t lock[LOCKS];
static void change(struct monitor *monitor, int least, int most, int by, int set)
{
    pthread_mutex_lock(&monitor->mutex);
    while (monitor->value < least || monitor->value > most)
        pthread_cond_wait(&monitor->changed, &monitor->mutex);
    monitor->value = set ? set : monitor->value + by;
    if (set || by)
        pthread_cond_broadcast(&monitor->changed);
    pthread_mutex_unlock(&monitor->mutex);
}
enum { MANY = 1 << 30 };
#define SET(f) change(&flag[f], -MANY, MANY, 0, 1)
#define ADD(f, n) change(&flag[f], -MANY, MANY, n, 0)
#define AWAIT(f, n) change(&flag[f], n, MANY, 0, 0)
#define ACQUIRE(f, n) change(&flag[f], n, MANY, -(n), 0)
#define LOCK(l) pthread_mutex_lock(&lock[l])
#define UNLOCK(l) pthread_mutex_unlock(&lock[l])
#define PUT(q) change(&queue[q], -MANY, capacity[q] - 1, 1, 0)
#define GET(q) change(&queue[q], 1, MANY, -1, 0)
#define READ(b) do { int before = buffer[b]; assert(before == buffer[b]); } while (0)
#define WRITE(b, id) do { buffer[b] = id; assert(buffer[b] == id); } while (0)
static void start(struct monitor *monitors, int count)
{
    for (int i = 0; i < count; i++)
        pthread_mutex_init(&monitors[i].mutex, 0), pthread_cond_init(&monitors[i].changed, 0);
}
static void start_all(void)
{
    start(flag, FLAGS), start(queue, QUEUES);
    for (int i = 0; i < LOCKS; i++)
        pthread_mutex_init(&lock[i], 0);
}
#define INITIALISE() start_all()
"""

WITHOUT_ACCESSES = """
#ifndef ACCESSES
#undef READ
#undef WRITE
#define READ(b)
#define WRITE(b, id)
#endif
"""


class Refused(Exception):
    """The plan has something that the C programs cannot express."""


def refuse_unless(possible, what):
    if not possible:
        raise Refused(what)


class Thread:
    """The thread of C for a thread of the plan or for a stream."""

    def __init__(self):
        self.lines, self.held = [], []

    def add(self, macro, *arguments):
        self.lines.append(f"{macro}({', '.join(map(str, arguments))});")

    def meet(self, mine, theirs):
        for mark in mine:
            self.add("MARK", mark)
        for mark in theirs:
            self.add("REACH", mark)


class Program:
    def __init__(self, plan):
        for key in plan:
            refuse_unless(key in PLAN_KEYS, f"the key {key}")
        for keys in [*plan.get("flags", {}).values(), *plan.get("buffers", {}).values()]:
            refuse_unless(set(keys) <= {"value", "bytes", "scope"}, "a key of a flag or buffer")
        self.plan, self.numbers = plan, defaultdict(dict)
        self.number("mark", None)  # reached from the beginning
        self.places, self.setters, self.calls, self.writes, self.items = Counter(), Counter(), Counter(), 0, 0
        self.threads, self.streams, self.last = [], {}, {}
        self.follows = False  # True if a communicator orders two calls without happens-before
        self.steps = {name: list(self.unrolled(steps, None)) for name, steps in plan["threads"].items()}
        self.notice_users()
        for self.name, steps in self.steps.items():
            self.rank, self.uses, self.thread = int(self.name[1 : self.name.index(".")]), Counter(), Thread()
            self.threads.append(self.thread)
            for step in steps:
                getattr(self, "c_" + next(iter(step)))(step)

    def unrolled(self, steps, iteration):
        """The steps without repeats, each with the iteration that it belongs to."""
        iterations = 0
        for step in steps:
            kind = next(iter(step))
            refuse_unless(kind in KEYS, f"the operation {kind}")
            for key in set(step) - {kind} - IGNORED - set(KEYS[kind].split()):
                raise Refused(f"{key} of {kind}")
            if kind != "repeat":
                yield {**step, "iteration": iteration}
                continue
            for _ in range(step["repeat"]):
                yield from self.unrolled(step["body"], iterations)
                iterations += 1

    def notice_users(self):
        """Finds the thread that uses each stream and communicator (only one may), who meets at a barrier, what changes a flag."""
        self.users, self.barriers = {}, defaultdict(list)
        for name, steps in self.steps.items():
            refuse_unless(re.match(r"r\d+\.", name), "a list for all ranks")
            rank = int(name[1 : name.index(".")])
            for step in steps:
                kind = next(iter(step))
                names = [step.get("event"), step[kind], *step.get("reads", []), *step.get("writes", [])]
                refuse_unless(not any(re.match(r"r([-+]?\d+)?\.", str(one)) for one in names), "a name of another rank")
                users = [("stream", rank, step.get("stream", "main"))] if kind in PUSHED else []
                users += [("comm", rank, step["comm"])] if "comm" in step else []
                for user in users:
                    refuse_unless(self.users.setdefault(user, name) == name, f"a {user[0]} that two threads use")
                if kind in ("signal", "acquire"):
                    self.setters[self.flag(step, kind), kind == "acquire" or "add" in step] += 1
                if kind == "barrier" and name not in self.barriers[step[kind]]:
                    self.barriers[step[kind]].append(name)

    def number(self, kind, *name):
        return self.numbers[kind].setdefault(name, len(self.numbers[kind]))

    # ---- flags, queues, locks ------------------------------------------------------------------------

    def flag(self, step, kind):
        """The number of the flag; with `scope: iteration` each iteration has its own."""
        own = self.plan.get("flags", {}).get(step[kind], {}).get("scope") == "iteration"
        return self.number("flag", "flag", step[kind], step["iteration"] if own else None)

    def change(self, macro, step, kind, key):
        value = step.get(key, 1)
        refuse_unless(isinstance(value, int) and value > 0, f"{key} that is no number above 0")
        self.thread.add(macro, self.flag(step, kind), value)

    def c_signal(self, step):
        flag = self.flag(step, "signal")
        refuse_unless(not (self.setters[flag, True] and self.setters[flag, False]), "a flag that is set and added to")
        if "add" in step:
            return self.change("ADD", step, "signal", "add")
        refuse_unless(not self.plan.get("flags", {}).get(step["signal"], {}).get("value"), "a flag set again")
        return self.thread.add("SET", flag)

    def c_await(self, step):
        self.change("AWAIT", step, "await", "at_least")

    def c_acquire(self, step):
        self.change("ACQUIRE", step, "acquire", "count")

    def c_ticket(self, step):
        self.thread.add("AWAIT", self.number("flag", "turn", self.rank), step["ticket"])

    def c_serve(self, step):
        self.thread.add("ADD", self.number("flag", "turn", self.rank), 1)

    def c_put(self, step, kind="put"):
        self.places[step[kind], kind] += 1
        self.thread.add(kind.upper(), list(self.plan["queues"]).index(step[kind]))

    def c_get(self, step):
        self.c_put(step, "get")

    def c_lock(self, step):
        self.thread.held.append(step["lock"])
        self.thread.add("LOCK", self.number("lock", self.rank, step["lock"]))

    def c_unlock(self, step):
        refuse_unless(step["unlock"] in self.thread.held, "an unlock of what the thread does not hold")
        self.thread.held.remove(step["unlock"])
        self.thread.add("UNLOCK", self.number("lock", self.rank, step["unlock"]))

    def c_barrier(self, step):
        name = step["barrier"]
        self.uses[name] += 1
        mark = lambda thread: self.number("mark", "barrier", name, self.uses[name], thread)
        self.thread.meet([mark(self.name)], [mark(other) for other in self.barriers[name] if other != self.name])

    # ---- work, and streams ---------------------------------------------------------------------------

    def access(self, thread, step):
        for name in step.get("reads", []):
            thread.add("READ", self.number("buffer", self.rank, name))
        for name in step.get("writes", []):
            self.writes += 1
            thread.add("WRITE", self.number("buffer", self.rank, name), self.writes)

    def c_host(self, step):
        self.access(self.thread, step)

    c_compute = c_host

    def push(self, step, before=None, meeting=((), ()), event=None):
        """Pushes an item, which awaits `before` and then the marks of those that it meets. Returns the mark of its end."""
        note = ("stream", self.rank, step.get("stream", "main"))
        stream = self.streams.setdefault(note, Thread())
        self.items += 1
        pushed, done = self.number("mark", "pushed", self.items), self.number("mark", "done", self.items)
        for what in [note, ("event", self.rank, event)][: 1 + (event is not None)]:
            self.thread.add("NOTE", self.number("note", *what), done)
        self.thread.add("MARK", pushed)
        stream.add("REACH", pushed)
        if before:
            stream.add(*before)
        self.access(stream, step)
        stream.meet(*meeting)
        stream.add("MARK", done)
        return done

    def c_launch(self, step):
        self.push(step)

    c_copy = c_launch

    def c_record(self, step):
        self.push(step, event=step["record"])

    def c_wait(self, step):
        kept = self.number("mark", "kept", self.items)
        self.thread.add("KEEP", kept, self.number("note", "event", self.rank, step["wait"]))
        self.push(step, ("REACH", f"kept[{kept}]"))

    def c_sync(self, step):
        """What is waited for is read before the wait begins."""
        notes = {
            "event": [("event", self.rank, step.get("event"))],
            "stream": [("stream", self.rank, step.get("stream", "main"))],
            "device": [note for note in self.users if note[:2] == ("stream", self.rank)],
        }[step["sync"]]
        first = len(self.thread.lines)
        marks = [f"m{first + place}" for place in range(len(notes))]
        self.thread.lines += [f"int {mark} = NOTED({self.number('note', *note)});" for mark, note in zip(marks, notes)]
        self.thread.meet([], marks)

    # ---- communicators -------------------------------------------------------------------------------

    def call(self, step, mine, theirs):
        """A call starts behind the rank's previous call, which may be on another stream; that gives no happens-before."""
        here = step.get("stream", "main")
        stream, done = self.last.get((self.name, step["comm"]), (here, 0))
        self.follows |= stream != here
        done = self.push(step, ("FOLLOW", done) if stream != here else None, (mine, theirs))
        self.last[self.name, step["comm"]] = here, done

    def c_collective(self, step):
        refuse_unless(step.get("op") != "broadcast", "a broadcast")
        comm, key = step["comm"], (self.rank, step["comm"])
        self.calls[key] += 1
        mark = lambda rank: self.number("mark", "arrived", comm, self.calls[key], rank)
        self.call(step, [mark(self.rank)], [mark(rank) for rank in self.plan["comms"][comm] if rank != self.rank])

    def c_group(self, step):
        ends = []
        for part in step["group"]:
            refuse_unless(set(part) <= {"send", "recv", "peer", "bytes", "dtype", "count"}, "a group of more than messages")
            send = "send" in part
            way = (self.rank, part["peer"]) if send else (part["peer"], self.rank)
            self.calls[step["comm"], way, send] += 1
            number = self.calls[step["comm"], way, send]
            ends.append([self.number("mark", "message", step["comm"], way, number, end) for end in (send, not send)])
        self.call(step, *zip(*ends))

    # ---- the whole -----------------------------------------------------------------------------------

    def text(self, how):
        queues, kinds = self.plan.get("queues", {}), ("flag", "mark", "lock", "note", "buffer")
        counts = {kind: max(1, len(self.numbers[kind])) for kind in kinds}
        counts |= {"queues": max(1, len(queues)), "places": max([1, *self.places.values()])}
        out = [COMMON.format(capacity=", ".join(map(str, queues.values())) or 0, **counts) + how + WITHOUT_ACCESSES]
        threads = [*self.threads, *self.streams.values()]
        for number, thread in enumerate(threads):
            lines = "\n    ".join([*thread.lines, "return nothing;"])
            out.append(f"static void *t{number}(void *nothing)\n{{\n    {lines}\n}}")
        out += [f"int main(void)\n{{\n    pthread_t thread[{len(threads)}];\n    INITIALISE();\n    mark[0] = 1;"]
        for (kind, *name), flag in self.numbers["flag"].items():
            begins = self.plan.get("flags", {}).get(name[0], {}).get("value") if kind == "flag" else None
            out += [f"    flag[{flag}]{'.value' * (how is PTHREADS)} = {begins};"] if begins else []
        out += [f"    pthread_create(&thread[{number}], 0, t{number}, 0);" for number in range(len(threads))]
        out += [f"    pthread_join(thread[{number}], 0);" for number in range(len(threads))]
        return "\n".join([*out, "    END();\n    return 0;\n}", ""])


def c_program(plan, how):
    """The text, and True if its races are those of the plan: the assertions cannot see an order without happens-before."""
    program = Program(plan)
    return program.text(how), how is SPINS or not program.follows
