/* SPDX-License-Identifier: Apache-2.0 */
/*
 * commands.h - the commands that t_injected.c lets fail: a row each, and what a reader of its results may rely on.
 *
 * `before` names the files that are there when the command begins, separated by spaces: old:FILE is a file with a
 * line of text, which stays or is replaced as a whole; PLAN:FILE is a copy of the plan tests/faults/PLAN.yaml;
 * runs:FILE, witness:FILE and certificate:FILE have been written by a command. In `line`, $P is plans/ and $F tests/faults/;
 * `libraries` is library_user.c, a program with libswsim and libswpipe.
 */
#ifndef SWSIM_TESTS_COMMANDS_H
#define SWSIM_TESTS_COMMANDS_H

enum command_flags {
    REAL_RUN = 1, /* its figures differ from run to run: only its verdict is compared */
    SEVERAL = 2,  /* several plans or processes may each say what happened to them */
    SLOW = 4,     /* fewer faults in a quick test */
};

struct command {
    const char *line, *before;
    unsigned flags;
};

static const struct command commands[] = {
    {"swsim --help", "", 0},
    {"swsim verify $F/small.yaml", "", 0},
    {"swsim verify --json $F/small.yaml $F/small_broken.yaml", "", SEVERAL},
    {"swsim verify $F/small_broken.yaml", "", 0},
    {"swsim verify --no-fix $P/bugs/nccl_send_send_broken.yaml", "", 0},
    {"swsim verify --expect $P/deadlocks/scenario1_broken.yaml", "", 0},
    {"swsim verify --no-reduction --driver=dataflow --max-depth=1 $F/small.yaml", "", 0},
    {"swsim verify --no-reduction --threads=2 --driver=dataflow --max-depth=1 $F/small.yaml", "",
     0},
    {"swsim verify --bitstate=1MiB --no-reduction --driver=dataflow --max-depth=1 $F/small.yaml",
     "", 0},
    {"swsim verify --faults $P/faults/lock_broken.yaml", "", 0},
    {"swsim verify --fix plan.yaml", "small_broken:plan.yaml", 0},
    {"swsim verify --fix=new.yaml $F/small_broken.yaml", "old:new.yaml", 0},
    {"swsim verify --no-fix --witness=w.txt $F/small_broken.yaml", "old:w.txt", 0},
    {"swsim verify --no-fix --witness=w.json $F/small_broken.yaml", "old:w.json", 0},
    {"swsim verify --no-fix --witness=w.svg $F/small_broken.yaml", "old:w.svg", SLOW},
    {"swsim verify --no-fix --witness=w.dot $F/small_broken.yaml", "old:w.dot", SLOW},
    {"swsim verify --no-fix --witness=w.db $F/small_broken.yaml", "", 0},
    {"swsim verify --certificate=c.txt $F/small.yaml", "old:c.txt", 0},
    {"libraries verify $F/small.yaml", "", 0},
    {"libraries verify $F/small_broken.yaml", "", 0},
    {"libraries predict $F/small.yaml", "", 0},
    {"libraries tune $F/small.yaml", "", 0},
    {"libraries render $F/small.yaml plan.dot", "old:plan.dot", 0},
    {"libraries run $F/small.yaml", "", REAL_RUN},
    {"libraries run $F/small.yaml runs.db", "runs:runs.db", REAL_RUN},
    {"swcheck $F/small.yaml c.txt", "certificate:c.txt", 0},
    {"swcheck $F/ranks.yaml c.txt", "certificate:c.txt", 0},
    {"swsim predict -n 20 $F/small.yaml", "", 0},
    {"swsim predict -n 20 --json --driver=dataflow $F/ranks.yaml", "", 0},
    {"swsim predict -n 20 --replications=4 --threads=2 --jitter=*=normal(cv=0.1) $F/small.yaml", "",
     0},
    {"swsim predict -n 20 --critical-path $F/small.yaml", "", 0},
    {"swsim predict -n 20 --what-if=Work=0.5x $F/small.yaml", "", 0},
    {"swsim predict -n 20 --sweep=max_depth=1..3 --driver=dataflow $F/small.yaml", "", 0},
    {"swsim predict $P/examples/host_program.yaml", "", 0},
    {"swsim predict --hardware=h100-sxm --operators=$F/operators.csv "
     "--operators=$F/trace.json $P/examples/host_program.yaml",
     "", 0},
    {"swsim predict -n 20 --profile=runs.db:1 $F/small.yaml", "runs:runs.db", 0},
    {"swsim predict -n 5 --db=p.db $F/small.yaml", "", 0},
    {"swsim predict -n 5 --db=runs.db $F/small.yaml", "runs:runs.db", 0},
    {"swsim render -o plan.dot $F/small.yaml", "old:plan.dot", 0},
    {"swsim render -o plan.svg $F/small.yaml", "old:plan.svg", SLOW},
    {"swsim render -o run.dot runs.db", "runs:runs.db old:run.dot", 0},
    {"swsim render -o run.svg runs.db", "runs:runs.db", SLOW},
    {"swsim render -o run.png --from=1 --to=2 runs.db", "runs:runs.db", SLOW},
    {"swsim render -o w.svg w.db", "witness:w.db", SLOW},
    {"swsim render -o run.html runs.db", "runs:runs.db old:run.html", 0},
    {"swsim render -o w.html w.db", "witness:w.db old:w.html", 0},
    {"swsim render -o plan.html $P/examples/one_f_one_b.yaml", "old:plan.html", 0},
    {"swsim schedule $F/small.yaml", "", 0},
    {"swsim stages --json $F/small.yaml", "", 0},
    {"swsim lower $F/ranks.yaml", "", 0},
    {"swsim generate 1f1b -p2 -m4 --comms", "", 0},
    {"swsim export -o new.yaml $F/small.yaml", "old:new.yaml", 0},
    {"swsim export --format=json -o new.json $F/small.yaml", "", 0},
    {"swsim export --format=csv -o new.csv $P/examples/one_f_one_b.yaml", "old:new.csv", 0},
    {"swsim export --format=csv --pytorch=2.15 --comms=timed --merge -o new.csv "
     "$P/examples/one_f_one_b.yaml",
     "old:new.csv", 0},
    {"swsim export --format=json $F/small.yaml", "", 0},
    {"swsim compare runs.db", "runs:runs.db", 0},
    {"swsim compare --json runs.db", "runs:runs.db", 0},
    {"swsim runs runs.db", "runs:runs.db", 0},
    {"swsim runs --json runs.db", "runs:runs.db", 0},
    {"swsim schema --json", "", 0},
    {"swsim schema --json verdict", "", 0},
    {"swsim schema store", "", 0},
    {"swsim import $F/trace.json", "", 0},
    {"swsim import --db=new.db -o new.yaml $F/trace.json", "old:new.yaml", 0},
    {"swsim import --db=runs.db --report -o new.yaml $F/trace.json", "runs:runs.db", 0},
    {"swsim import -o new.yaml $F/hang.json", "old:new.yaml", 0},
    {"swsim import --host-waits -o new.yaml $F/../fuzz/corpus/dump/collectives", "old:new.yaml", 0},
    {"swsim import --form=pipeline -o new.yaml $F/trace.json", "old:new.yaml", 0},
    {"swsim import -o new.yaml $F/accesses.json $F/accesses_et.json", "old:new.yaml", 0},
    {"swsim import -o new.yaml $F/../fuzz/corpus/chakra/gpu", "old:new.yaml", 0},
    {"swsim import -o new.yaml $F/hang.json $F/../fuzz/corpus/stand/spy", "old:new.yaml", 0},
    {"swsim import -o new.yaml $F/../fuzz/corpus/stand/ras", "old:new.yaml", 0},
    {"swsim why $F/trace.json", "", 0},
    {"swsim export --format=chakra -o new $P/bugs/nccl_send_send_broken.yaml", "old:new.0.et", 0},
    {"swsim groups --json $P/examples/groups.yaml", "", 0},
    {"swsim verify --no-fix $P/reality/groups_reduce_broken.yaml", "", 0},
    {"swsim verify --faults --certificate=c.txt $P/faults/lock_fixed.yaml", "old:c.txt", 0},
    {"swsim generate zb_1p -p3 -m6 --times=F=3ms,I=3ms,W=2ms --comms", "", 0},
    {"swsim generate 1f1b -p2 -m4 --megatron=batch --json", "", 0},
    {"swsim predict --json $P/examples/one_f_one_b.yaml", "", 0},
    {"swsim render -o plan.dot $P/examples/one_f_one_b.yaml", "old:plan.dot", 0},
    {"swsim tune --budget=20 -o new.yaml $F/small.yaml", "old:new.yaml", 0},
    {"swrun -n 3 $F/small.yaml", "", REAL_RUN},
    {"swrun -n 3 --json $F/small.yaml", "", REAL_RUN},
    {"swrun -n 3 --driver=dataflow --stats $F/small.yaml", "", REAL_RUN},
    {"swrun -n 3 --db=new.db $F/small.yaml", "", REAL_RUN},
    {"swrun -n 3 --db=runs.db $F/small.yaml", "runs:runs.db", REAL_RUN},
    {"swrun -n 3 --serial $F/small.yaml", "", REAL_RUN},
    {"swrun -n 3 --graph $F/small.yaml", "", REAL_RUN},
    {"swrun -n 3 --profile $F/small.yaml", "", REAL_RUN | SLOW},
    {"swrun -n 3 --shortcut=Load $F/small.yaml", "", REAL_RUN},
    {"swrun -n 3 $F/ranks.yaml", "", REAL_RUN},
    {"swrun $P/examples/arithmetic.yaml", "", REAL_RUN | SLOW},
    {"swrun -n 3 --processes $F/ranks.yaml", "", REAL_RUN | SEVERAL},
    {"swrun -n 3 --processes --db=new.db $F/ranks.yaml", "", REAL_RUN | SEVERAL},
    {"swrun --replay=w.db", "witness:w.db", REAL_RUN},
};

enum { COMMANDS = sizeof commands / sizeof *commands };

#endif
