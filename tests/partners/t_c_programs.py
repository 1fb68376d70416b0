# SPDX-License-Identifier: Apache-2.0
# Host programs translated into C (c_program.py), for two stateless model checkers of C programs with threads. GenMC gets atomics,
# waiting loops and plain accesses, and looks for data races itself. Nidhugg gets mutexes and condition variables; with
# -sc -optimal it counts Mazurkiewicz traces. Each verdict on deadlock (proved, some or always) and race (proved or violated) must
# be that of `swsim verify`, for the plans of the zoo and of plans/ that C can express and for random programs of the oracle.
# doc/partners.md tells how to build the checkers; the test skips one that is not in PATH.
#
# Two things are not compared. After a mismatch the plan's run ends and the C program goes on. And a rank's calls on one
# communicator follow one another across streams without happens-before, which Nidhugg's assertions cannot see.
#
#   SWSIM_PLANS=N    how many random programs (40)      SWSIM_SEED=S    the first seed that is tried (1)
#   SWSIM_TABLE=1    a line for each plan: deadlock, race, our states, transitions and ms, then for each checker the
#                    executions that end, those that hang, and seconds
import glob, json, os, re, shutil, subprocess, time
from collections import Counter

from c_program import PTHREADS, SPINS, Refused, c_program
from random_host import RandomHost
from tap import check, comment, done, folder, here, skip, swsim

if "SWSIM_PARTNERS_PLACE" in os.environ:  # once is enough: no module of a partner is used
    done()
WORDS = "repeat barrier queue lock ticket group collective sync flags values events inputs host".split()
LIMIT = 20  # seconds of a checker for one question


def lockers(threads, times, locks=1):
    taken = lambda number: [{"lock": f"l{number % locks}"}, {"unlock": f"l{number % locks}"}]
    return {f"r0.t{number}": taken(number) * times for number in range(threads)}


# Plans with a known number of Mazurkiewicz traces: one for each order in which the locks are taken.
KNOWN = {
    "two threads take a lock twice": (lockers(2, 2), 6),
    "three threads take a lock": (lockers(3, 1), 6),
    "three threads take a lock twice": (lockers(3, 2), 90),
    "four threads take a lock twice": (lockers(4, 2), 2520),
    "four threads and two locks, twice": (lockers(4, 2, 2), 36),
    "three threads with a lock each": (lockers(3, 3, 3), 1),
}


def run(*command):
    """What the command prints; None if it reached the limit."""
    ran = subprocess.run(["timeout", str(LIMIT), *command], capture_output=True, text=True, errors="replace", cwd=folder)
    return None if ran.returncode == 124 else ran.stdout + ran.stderr


def number_of(what, text):
    found = re.search(rf"^{what}\D*: (\d+)", text, re.MULTILINE)
    return int(found[1]) if found else 0


def outcome(ended, hung):
    return "proved" if not hung else "some" if ended else "always"


class GenMC:
    how, command = SPINS, "genmc"

    def ask(self, *options):
        text = run("genmc", "--disable-estimation", *options, "program.c")
        if text and not re.search("No errors|violation|race!", text):
            raise RuntimeError(text)
        return text

    def deadlock(self):
        text = self.ask("--sc", "--check-liveness")
        hangs = text and "Liveness violation" in text
        text = self.ask("--sc") if hangs else text
        if not text:
            return None, ("open", "")
        ended, blocked = (number_of(f"Number of {what}", text) for what in ("complete", "blocked"))
        return outcome(ended, hangs), (ended, blocked)

    def race(self):
        """In the memory model of C: with --sc a relaxed load gives happens-before, too."""
        text = self.ask("--rc11", "--", "-DACCESSES")
        return text and ("violated" if "race!" in text else "proved")


class Nidhugg:
    how, command = PTHREADS, "nidhuggc"

    def ask(self, *definitions):
        text = run("nidhuggc", *definitions, "--", "-sc", "-optimal", "program.c")
        if text and "Trace count" not in text:
            raise RuntimeError(text)
        return text

    def deadlock(self):
        """The second answer does not count traces that reach the end of main, where an assumption stops them."""
        whole, cut = self.ask(), self.ask("-DEND()=__VERIFIER_assume(0)")
        if not whole or not cut:
            return None, ("open", "")
        hung = number_of("Trace count", cut)
        ended = number_of("Trace count", whole) - hung
        hung += number_of("Await-blocked trace count", whole)
        return outcome(ended, hung), (ended, hung)

    def race(self):
        text = self.ask("-DACCESSES")
        return text and ("violated" if "Error detected" in text else "proved")


class Comparison:
    def __init__(self, checkers):
        self.checkers, self.executions, self.seen, self.refused, self.wrong = checkers, {}, Counter(), Counter(), []

    def compare(self, name, path):
        """Returns True if the plan was compared."""
        exported = swsim("export", "--format=json", path)
        plan = json.loads(exported.stdout) if exported.returncode == 0 else {}
        try:
            programs = {checker: c_program(plan, checker.how) for checker in self.checkers} if "threads" in plan else None
        except Refused as refused:
            self.refused[str(refused)] += 1
            return False
        told = swsim("verify", "--json", "--no-fix", "--property=deadlock,mismatch,race", path) if programs else None
        told = told and json.loads(told.stdout.splitlines()[0])
        if not programs or told["properties"]["mismatch"] != "proved":
            self.refused["a mismatch" if programs else "another form of plans"] += 1
            return False
        race = told["properties"]["race"]
        ours = {"deadlock": told["properties"]["deadlock"], "race": "violated" if race in ("some", "always") else race}
        row = [name, *ours.values(), told["states"], told["transitions"], f"{told['seconds'] * 1000:.1f}"]
        for checker, (text, races) in programs.items():
            (folder / "program.c").write_text(text)
            start = time.monotonic()
            answer, executions = checker.deadlock()
            row += [*executions, f"{time.monotonic() - start:.1f}"]
            self.executions[name, checker.command] = executions
            theirs = {"deadlock": answer, **({"race": checker.race()} if races and "    WRITE(" in text else {})}
            for what, answer in theirs.items():
                self.seen[checker.command, what, answer or "open"] += 1
                if answer and answer != ours[what]:
                    told = f"{answer} for {checker.command}, {ours[what]} for swsim"
                    self.wrong.append(f"{name}: {what} is {told}: {json.dumps(plan)}")
        if "SWSIM_TABLE" in os.environ:
            comment(" | ".join(map(str, row)))
        return True

    def judge(self, what):
        check(f"{what}: the verdicts are equal", not self.wrong, "\n".join(self.wrong[:3]))
        comment(", ".join(f"{' '.join(key)}: {count}" for key, count in sorted(self.seen.items())))
        comment("not compared: " + ", ".join(f"{count} for {why}" for why, count in self.refused.most_common()))
        self.refused, self.wrong = Counter(), []


def main():
    checkers = [checker for checker in (GenMC(), Nidhugg()) if shutil.which(checker.command)]
    for checker in (GenMC, Nidhugg):
        if not shutil.which(checker.command):
            skip(f"no {checker.command} in PATH: doc/partners.md says how it is built")
    if not checkers:
        done()
    plans, seed = int(os.environ.get("SWSIM_PLANS", 40)), int(os.environ.get("SWSIM_SEED", 1))
    comment(f"SWSIM_PLANS={plans} SWSIM_SEED={seed}")
    comparison, path = Comparison(checkers), folder / "plan.json"
    for name, (threads, traces) in KNOWN.items():
        path.write_text(json.dumps({"swplan": 1, "threads": threads}))
        comparison.compare(name, path)
        for checker in checkers:
            found = comparison.executions[name, checker.command]
            check(f"{checker.command}: {name}: {traces} traces", found == (traces, 0), found)
    comparison.judge("plans whose traces are known")
    shared = os.environ.get("SWSIM_SHARED", here.parent.parent.parent / "shared")
    for what, files in (("the zoo", f"{shared}/zoo/*.yaml"), ("plans", f"{here.parent.parent}/plans/*/*.yaml")):
        found = sorted(glob.glob(files))
        for file in found:
            comparison.compare(os.path.basename(file), file)
        comparison.judge(what) if found else skip("no further plans in $SWSIM_SHARED")
    compared = 0
    while compared < plans:
        path.write_text(json.dumps(RandomHost(seed, WORDS).made()))
        compared += comparison.compare(f"seed {seed}", path)
        seed += 1
    comparison.judge(f"{plans} random programs, the last of seed {seed - 1}")
    for checker in checkers:
        for what in "deadlock proved", "deadlock some", "deadlock always", "race proved", "race violated":
            check(f"{checker.command}: {what} occurs", comparison.seen[(checker.command, *what.split())])
    done()


main()
