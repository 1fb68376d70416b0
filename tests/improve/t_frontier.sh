#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# `swsim tune` of rank programs: every candidate is proved and costs what predict says of its plan; the frontier is
# what nothing beats.
. "${srcdir:-.}/tests/tap.sh"
command -v python3 >/dev/null || skip_all "no python3"

cat >"$dir/stack.yaml" <<'END'
swplan: 1
name: stack
layers: {count: 16, F: 1ms, I: 1ms, W: 1ms, activation: 64MiB, input: 8MiB, weights: 100MiB, state: 200MiB,
    embedding: {F: 1ms, B: 1ms, weights: 500MiB}, head: {F: 2ms, B: 4ms, weights: 500MiB}}
p2p: {bytes: 8MiB, bandwidth: 25GB/s, latency: 10us}
generate: {schedule: 1f1b, ranks: 4, microbatches: 8}
END

# tuned OPTION...: the JSON goes to $dir/out.json
tuned()
{
    "$SWSIM" tune --json "$@" >"$dir/out.json" 2>"$dir/err" || { cat "$dir/err"; false; }
}

# holds EXPRESSION: of `all`, the candidates, `front`, the frontier, and dir
holds()
{
    python3 - "$dir" "$1" <<'END'
import json, sys
dir = sys.argv[1]
said = json.load(open(dir + "/out.json"))
all = said["candidates"]
front = [c for c in all if c["frontier"]]
if not eval("(" + sys.argv[2] + ")"):
    sys.exit("%s\nfrontier: %s" % (sys.argv[2], front))
END
}

check "a stack of layers is tuned" tuned "$dir/stack.yaml"
check "every schedule that trains is tried" holds \
    '{"gpipe", "1f1b", "interleaved_1f1b", "zb_h1", "zbv", "dualpipe_v"} <= {c["schedule"] for c in all}'
check "one without backward passes is not" holds '"forward_only" not in {c["schedule"] for c in all}'
check "nothing beats the frontier" holds \
    'not any(a["microbatch_ns"] <= f["microbatch_ns"] and a["bytes"] < f["bytes"] or
             a["microbatch_ns"] < f["microbatch_ns"] and a["bytes"] <= f["bytes"]
             for a in all if a["verdict"] == "proved" for f in front)'
check "nothing was left out but what cannot be" holds 'said["complete"] and said["impossible"] > 0 and said["untried"] == said["refused"] == 0'
check "something on the frontier is as good as every other" holds \
    'not [a for a in all if a["verdict"] == "proved" and not
        [f for f in front if f["microbatch_ns"] <= a["microbatch_ns"] and f["bytes"] <= a["bytes"]]]'
check "it goes from little memory to short times" holds \
    'front == sorted(front, key=lambda c: (c["bytes"], -c["step_ns"])) and
     all[:len(front)] == front and len(front) >= 3'

# The fastest within a limit, read again: what verify and predict say of it.
few=gpipe,1f1b,zb_h1,zb_h2,zb_2p
limited()
{
    "$SWSIM" tune --memory=2GiB --schedule="$few" -o "$dir/best.yaml" "$dir/stack.yaml" >"$dir/text" &&
        tuned --memory=2GiB --schedule="$few" "$dir/stack.yaml" &&
        "$SWSIM" verify --no-fix "$dir/best.yaml" >"$dir/verdict" &&
        "$SWSIM" predict --json "$dir/best.yaml" >"$dir/predicted.json"
}
check "within memory: the plan that is written is proved" limited
check "it takes the time that was said" holds \
    'json.load(open(dir + "/predicted.json"))["makespan_ns"] == front[-1]["step_ns"]'
check "and no more than the limit" holds \
    'all and max(c["bytes"] for c in all if c["verdict"] == "proved") <= 2 << 30 and
     [c for c in all if c["verdict"] == "beyond memory"]'
check "the table says so" found 'tried [0-9]* candidates: [0-9]* proved, [0-9]* beyond memory' "$dir/text"
# gpipe has one chunk a rank; the given 1f1b is a candidate, too.
few_choices() { "$SWSIM" tune -q --schedule=gpipe,interleaved_1f1b --chunks=1,2 --balance=even --checkpoint=never "$dir/stack.yaml" >"$dir/text"; }
check "a table of few choices" few_choices
check "it says how many were tried" found '^tried 4 candidates: 4 proved$' "$dir/text"
check "... left out" found '^left out 1 combination that the schedule cannot have$' "$dir/text"
check "... and that the frontier is complete" found '^the frontier is complete over these values$' "$dir/text"
check "too little memory is a failure" exits 1 "$SWSIM" tune --memory=1MiB --schedule="$few" "$dir/stack.yaml"
check "with the reason" found 'no candidate is proved' "$dir/out"
check "and the candidate that lacks least" found 'GiB  beyond memory, by [0-9.]* GiB' "$dir/out"

drawn()
{
    exits 0 "$SWSIM" tune --quiet --checkpoint=never --schedule=zbv,1f1b,zb_h2 --memory=4GiB --picture="$dir/frontier.svg" "$dir/stack.yaml" &&
        python3 - "$dir/frontier.svg" <<'END'
import re, sys, xml.dom.minidom
text = xml.dom.minidom.parse(sys.argv[1]).toxml()
for word in "zbv", "most bytes of a rank", "chunks 2, group 0", ">limit<":
    assert word in text, word
assert len(re.findall(">[abc]<", text)) >= 6, "a letter at each point and in the legend"
ticks = [float(t) for t in re.findall(">([0-9.]+) [GM]iB<", text)]
steps = {float("%.6g" % (b - a)) for a, b in zip(ticks, ticks[1:])}
assert len(ticks) >= 3 and len(steps) == 1 and ("%e" % steps.pop())[:8] in ("1.000000", "2.000000", "5.000000"), ticks
END
}
check "a picture has every schedule, and round ticks" drawn
check "its format is that of the extension" complains 2 'frontier.jpeg' \
    "$SWSIM" tune --picture="$dir/frontier.jpeg" "$dir/stack.yaml"

check "the words there are stand beside one that is none" complains 2 \
    "balance: found 'evn', expected all, even or found; did you mean 'even'" "$SWSIM" tune --balance=evn "$dir/stack.yaml"
check "a value that no schedule can have is told" complains 0 'group: found 3, but no schedule' \
    "$SWSIM" tune --schedule=interleaved_1f1b,1f1b --chunks=2 --group=3 --checkpoint=never "$dir/stack.yaml"
check "one that some can have is not" exits 0 \
    "$SWSIM" tune --schedule=interleaved_1f1b,1f1b --chunks=1,2 --group=4 --checkpoint=never "$dir/stack.yaml"
check "and nothing is said" sh -c "! grep 'no schedule' '$dir/err'"
# Times of the command line go before those of layers.
slower()
{
    exits 0 "$SWSIM" predict --json --times=F=100ms,I=1ms,W=1ms,B=2ms "$dir/stack.yaml" && grep -q '"makespan_ns":11[0-9]\{8\}[,.]' "$dir/out"
}
check "--times goes before layers" slower

# Each candidate beside a plan made by hand.
by_hand()
{
    sed "s/^generate:.*/generate: {schedule: $1, ranks: 4, microbatches: $3, chunks: $2}/" \
        "$dir/stack.yaml" >"$dir/hand.yaml" &&
        printf 'balance: %s\ncheckpoint: %s\n' "$4" "$5" >>"$dir/hand.yaml" &&
        "$SWSIM" predict --json "$dir/hand.yaml" >"$dir/predicted.json" &&
        tuned --schedule="$1" --chunks="$2" --microbatches="$3" --balance="$4" --checkpoint="$5" \
            "$dir/stack.yaml" &&
        holds 'json.load(open(dir + "/predicted.json"))["makespan_ns"] in [c["step_ns"] for c in all]'
}
for choice in "gpipe 1 8 even never" "interleaved_1f1b 2 16 found always" "zbv 2 12 even except_last" \
    "dualpipe 2 12 found never"; do
    # shellcheck disable=SC2086
    check "$choice takes what its plan takes" by_hand $choice
done

# Microbatches of another size: half as many, each twice the work, memory and message.
sed -e "s/F: 1ms, I: 1ms, W: 1ms, activation: 64MiB, input: 8MiB/F: 2ms, I: 2ms, W: 2ms, activation: 128MiB, input: 16MiB/" \
    -e "s/{F: 2ms, B: 4ms,/{F: 4ms, B: 8ms,/" -e "s/{F: 1ms, B: 1ms,/{F: 2ms, B: 2ms,/" -e "s/bytes: 8MiB/bytes: 16MiB/" \
    -e "s/microbatches: 8/microbatches: 4/" "$dir/stack.yaml" >"$dir/hand.yaml"
plain="--chunks=1 --balance=even --checkpoint=never"
# shellcheck disable=SC2086
check "microbatches of other sizes" tuned --schedule=1f1b $plain --size=1,2,3 "$dir/stack.yaml"
check "a step keeps its samples; what is left over is no size" holds \
    '{(c["size"], c["microbatches"]) for c in all} == {(1, 8), (2, 4)}'
sized()
{
    "$SWSIM" predict --json "$dir/hand.yaml" >"$dir/predicted.json" &&
        holds 'json.load(open(dir + "/predicted.json"))["makespan_ns"] in [c["step_ns"] for c in all if c["size"] == 2] and
            not [c for c in all if c["sample_ns"] != c["step_ns"] / 8]'
}
check "one of two samples takes what its plan takes" sized
# shellcheck disable=SC2086
check "half of the best speed at one sample" tuned --schedule=1f1b $plain --size=2 --half-size=1 "$dir/stack.yaml"
check "makes two samples three quarters as long" holds \
    'abs([c["step_ns"] for c in all if c["size"] == 2][0] / json.load(open(dir + "/predicted.json"))["makespan_ns"] - 0.75) < 0.01'

# Found schedules with other numbers of activations.
# shellcheck disable=SC2086
check "activations of a found schedule" tuned --schedule=zb_2p,gpipe $plain --held=3,6 "$dir/stack.yaml"
check "each is tried" holds \
    '{(c["schedule"], c["held"]) for c in all} == {("1f1b", 0), ("gpipe", 0), ("zb_2p", 0), ("zb_2p", 3), ("zb_2p", 6)}'
check "fewer take less memory" holds \
    'sorted([c["bytes"], c["held"]] for c in all if c["schedule"] == "zb_2p")[0][1] == 3'
# shellcheck disable=SC2086
check "as many as fit" tuned --schedule=zb_2p $plain --memory=2800MiB "$dir/stack.yaml"
check "are within memory, and so is the schedule's own number, lowered" holds \
    '{c["verdict"] for c in all if c["schedule"] == "zb_2p"} == {"proved"} and
     not [c for c in all if c["bytes"] + c["left_bytes"] != 2800 << 20]'
# shellcheck disable=SC2086
check "a number that is given is not" tuned --schedule=zb_2p $plain --held=7 --memory=2800MiB "$dir/stack.yaml"
check "lowered" holds '{c["verdict"] for c in all if c["held"] == 7} == {"beyond memory"}'

# A limit of the command line is the machine's: for tune, and in the plan that is printed.
as_machine()
{
    tuned $plain --schedule="$few" --memory=2800MiB "$dir/stack.yaml" && cp "$dir/out.json" "$dir/option.json" &&
        { cat "$dir/stack.yaml" && echo 'machine: {memory: 2800MiB}'; } >"$dir/limited.yaml" &&
        tuned $plain --schedule="$few" "$dir/limited.yaml" && cmp "$dir/option.json" "$dir/out.json"
}
# shellcheck disable=SC2086
check "--memory tunes as machine: {memory} does" as_machine

# The plan that is printed is the one that was judged, whatever `found` looks at: layers of unequal bytes, where stages
# are divided by what the schedule holds.
cat >"$dir/unequal.yaml" <<'END'
swplan: 1
name: unequal
layers: {count: 8, F: 1ms, I: 1ms, W: 1ms, activation: [90MiB, 90MiB, 90MiB, 10MiB, 10MiB, 10MiB, 10MiB, 10MiB],
    weights: 20MiB}
generate: {schedule: 1f1b, ranks: 2, microbatches: 8}
END
printed()
{
    for schedule in zb_1p v_half; do
        "$SWSIM" tune --quiet --memory=560MiB --schedule=$schedule --balance=found -o "$dir/best.yaml" "$dir/unequal.yaml" \
            >/dev/null 2>"$dir/err"
        case $? in 0) ;; 1) continue ;; *) cat "$dir/err"; return 1 ;; esac
        tuned --memory=560MiB --schedule=$schedule --balance=found "$dir/unequal.yaml" &&
            "$SWSIM" verify --no-fix "$dir/best.yaml" >"$dir/verdict" &&
            "$SWSIM" predict --json "$dir/best.yaml" >"$dir/predicted.json" &&
            holds '(lambda p: p["makespan_ns"] == front[-1]["step_ns"] and
                max(r["memory"]["most_bytes"] for r in p["pipeline"]["ranks"]) == front[-1]["bytes"])(
                json.load(open(dir + "/predicted.json")))' || { cat "$dir/best.yaml" "$dir/verdict"; return 1; }
    done
}
check "what is printed is what was judged" printed

# Times of the command line, and of a run.
cat >"$dir/bare.yaml" <<'END'
swplan: 1
name: bare
generate: {schedule: 1f1b, ranks: 2, microbatches: 4}
END
check "times of passes" tuned --schedule=1f1b --chunks=1 --times=F=2ms,B=4ms "$dir/bare.yaml"
check "are those that were given" holds 'not said["assumed_times"] and front[0]["step_ns"] == 30000000'
cat >"$dir/ran.yaml" <<'END'
swplan: 1
name: ran
stages: {F: [6ms, 3ms], B: [9ms, 6ms], activation: 1MiB}
p2p: {bytes: 1MiB, latency: 1ms}
generate: {schedule: 1f1b, ranks: 2, microbatches: 4}
END
ran()
{
    exits 0 "${SWSIM%swsim}swrun" -q --db="$dir/ran.db" "$dir/ran.yaml" &&
        "$SWSIM" predict --json "$dir/ran.yaml" >"$dir/predicted.json" &&
        sed -e '/^stages/d' -e '/^p2p/d' "$dir/ran.yaml" >"$dir/bare.yaml" &&
        "$SWSIM" tune -q --profile="$dir/ran.db" --schedule=1f1b --chunks=1 -o "$dir/best.yaml" "$dir/bare.yaml" >"$dir/out" &&
        tuned --profile="$dir/ran.db" --schedule=1f1b,zb_h1 --chunks=1 "$dir/bare.yaml"
}
check "times of a run" ran
check "are at least those of its plan, of the passes and the messages" holds \
    'not said["assumed_times"] and
     [c["step_ns"] for c in all if c["schedule"] == "1f1b"][0] >= 0.97 * json.load(open(dir + "/predicted.json"))["makespan_ns"]'
check "the plan has them by stage and link" found 'edges: .{from: 0, to: 1, latency' "$dir/best.yaml"
check "a store without such a run is refused" complains 3 'no finished run of stack' \
    "$SWSIM" predict --profile="$dir/ran.db" "$dir/stack.yaml"
sed -e 's/ranks: 2/ranks: 1/' -e 's/^stages.*/times: {F: 1ms, B: 2ms}/' "$dir/ran.yaml" >"$dir/short.yaml"
imported()
{
    "$SWSIM" import -o "$dir/job.yaml" --db="$dir/job.db" "$srcdir/plans/traces/recommender/rank0.json" >"$dir/out" 2>&1 &&
        sed "s/^name: .*/$(grep '^name: ' "$dir/job.yaml")/" "$dir/stack.yaml" >"$dir/named.yaml" &&
        complains 3 'imported, has no passes and messages of rank programs' \
            "$SWSIM" tune --profile="$dir/job.db" "$dir/named.yaml"
}
check "an import without passes is refused" imported
check "and its plan declares no accesses" complains 1 'all work of host programs that are tuned declares' "$SWSIM" tune "$dir/job.yaml"
check "and one of more stages" complains 3 'found stage 1, expected those of ran: 1 of them' \
    "$SWSIM" predict --profile="$dir/ran.db" "$dir/short.yaml"

# Stages without layers are divided: the same work in all.
cat >"$dir/stages.yaml" <<'END'
swplan: 1
name: stages
stages: {F: [4ms, 2ms], B: [8ms, 4ms], activation: [40MB, 20MB]}
generate: {schedule: 1f1b, ranks: 2, microbatches: 1}
END
check "stages are divided" tuned --schedule=gpipe,looped_bfs,interleaved_1f1b --chunks=1,2 \
    "$dir/stages.yaml"
check "one microbatch takes as long in any number of them" holds 'all and {c["step_ns"] for c in all} == {18000000}'

# A list of actions without times and bytes.
"$SWSIM" generate 1f1b --ranks=4 --microbatches=8 >"$dir/list.yaml"
check "a list of actions is a candidate" tuned --schedule=gpipe,zb_h2 --chunks=1 "$dir/list.yaml"
check "beside those that were asked for" holds \
    '{c["schedule"] for c in all} == {"as given", "gpipe", "zb_h2"} and said["assumed_times"]'
check "memory is counted in activations" holds \
    '{c["schedule"]: c["activations"] for c in all} == {"as given": 4, "gpipe": 8, "zb_h2": 7}'
check "which the plan that is written does not have" sh -c \
    "'$SWSIM' tune -o - '$dir/list.yaml' 2>/dev/null | { ! grep activation; }"
check "times are warned of" found 'gives no times' "$dir/err"

# A plan that hangs is no candidate: the first rank sends to a rank that sends to it.
cat >"$dir/hangs.yaml" <<'END'
swplan: 1
name: hangs
times: {F: 1ms, B: 2ms}
programs: ["0F0 0SEND_F0 0F1 0RECV_B0 0SEND_F1 0B0 0RECV_B1 0B1", "1RECV_F0 1F0 1B0 1RECV_F1 1F1 1SEND_B0 1B1 1SEND_B1"]
END
check "a plan that hangs is tuned" tuned --schedule=1f1b "$dir/hangs.yaml"
check "it is violated, and another is proved" holds \
    '{c["schedule"]: c["verdict"] for c in all} == {"as given": "violated", "1f1b": "proved"}'

# The two copies of DualPipe are the whole model each: its passes are as long as those of 1F1B.
busy()
{
    sed "s/^generate:.*/generate: {schedule: $1, ranks: 4, microbatches: 8}/" "$dir/stack.yaml" >"$dir/hand.yaml" &&
        "$SWSIM" predict --json "$dir/hand.yaml" | grep -o '"busy_ns":[0-9]*' | cut -d: -f2 | awk '{ n += $1 } END { print n }'
}
check "a bidirectional schedule does the same work" test "$(busy 1f1b)" = "$(busy dualpipe)"

# The schedule says how many copies there are.
cat >"$dir/copies.yaml" <<'END'
swplan: 1
copies: 2
times: {F: 1ms, B: 2ms}
programs: [0F0 3F0 3B0 0B0, 1F0 2F0 1B0 2B0]
END
one_copy()
{
    "$SWSIM" tune -q --schedule=1f1b --chunks=1 --microbatches=2 -o "$dir/one.yaml" "$dir/copies.yaml" &&
        exits 0 "$SWSIM" lower "$dir/one.yaml" && found 'schedule: 1f1b' "$dir/one.yaml"
}
check "lists of two copies are tuned to a schedule of one" one_copy

# A model by its numbers.
cat >"$dir/model.yaml" <<'END'
swplan: 1
name: model
model: {layers: 8, hidden: 1024, heads: 16, sequence: 1024, microbatch: 1, vocab: 32000, rate: 100TFLOPS}
generate: {schedule: 1f1b, ranks: 4, microbatches: 8}
END
check "a model is tuned" tuned --schedule=1f1b,gpipe --chunks=1 "$dir/model.yaml"
check "its microbatches have its samples" complains 2 '"model" says' "$SWSIM" tune --samples=2 --size=2 "$dir/model.yaml"
check "with bytes and times, by balance and recomputation" holds \
    'not said["assumed_times"] and {c["checkpoint"] for c in all} == {"never", "except_last", "always"} and
     {c["balance"] for c in all} == {"even", "found"} and min(c["bytes"] for c in all) > 0'

# Several processes, with more of them than there are candidates, too.
OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe
export OMPI_ALLOW_RUN_AS_ROOT OMPI_ALLOW_RUN_AS_ROOT_CONFIRM OMPI_MCA_rmaps_base_oversubscribe PRTE_MCA_rmaps_default_mapping_policy
# Memory that parts of MPI leave behind has no name any more when they are unloaded.
ASAN_OPTIONS="detect_leaks=0:${ASAN_OPTIONS-}"
export ASAN_OPTIONS
shared()
{
    "$SWSIM" tune --schedule=1f1b,gpipe,zbv "$@" >"$dir/one" &&
        mpirun -n 3 "$SWSIM" tune --schedule=1f1b,gpipe,zbv "$@" >"$dir/three" && diff "$dir/one" "$dir/three"
}
if mpirun -n 2 true >/dev/null 2>&1 &&
    ! mpirun -n 2 "$SWSIM" tune --schedule=1f1b "$dir/stages.yaml" 2>&1 >/dev/null | grep -q 'works alone'; then
    check "three processes find what one does" shared "$dir/stack.yaml"
    check "with nothing left for one of them" shared --chunks=1 --schedule=1f1b --json "$dir/stages.yaml"
else
    skip "no mpirun that works"
fi

# The command line.
check "an unknown schedule is refused" complains 2 "found '1f1'.*1f1b" "$SWSIM" tune --schedule=1f1 "$dir/stack.yaml"
check "options of the pipeline form are refused" complains 2 'found --keep, but' \
    "$SWSIM" tune --keep=stage "$dir/stack.yaml"
check "an option that tune does not have is refused" complains 2 "unknown option .--min-gain" \
    "$SWSIM" tune --min-gain=3 "$dir/stack.yaml"
check "and those of rank programs" complains 2 'found --chunks, but' \
    "$SWSIM" tune --chunks=2 "$srcdir/plans/examples/hello.yaml"

# The given plan keeps its name where none is better.
sed 's/^generate.*/generate: {schedule: zb_h2, ranks: 4, microbatches: 8}/' "$dir/stack.yaml" >"$dir/best_given.yaml"
keeps_name()
{
    "$SWSIM" tune --schedule=zb_h2 --chunks=1 --balance=even --checkpoint=never -o "$dir/same.yaml" "$dir/best_given.yaml" \
        >"$dir/out" && grep -qx 'name: stack' "$dir/same.yaml" && ! grep -q 'other schedules' "$dir/out"
}
check "where nothing is better the plan keeps its name" keeps_name
renamed()
{
    "$SWSIM" tune -q --schedule=zb_h2,gpipe --chunks=1 --balance=even --checkpoint=never -o "$dir/other.yaml" \
        "$dir/stack.yaml" >"$dir/out" && grep -qx 'name: stack_tuned' "$dir/other.yaml"
}
check "... and a better one has another" renamed
done_testing
