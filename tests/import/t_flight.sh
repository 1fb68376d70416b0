#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Dumps of the flight recorder: random jobs with one rank that does something else, whose dumps must lead to the
# verdict that an explorer of its own (tests/flight_jobs.py) finds for the job; and what import says of dumps that do
# not tell all. SWSIM_LONG=1 tries more.
. "${srcdir:-.}/tests/tap.sh"
command -v python3 >/dev/null || skip_all "no python3 to write dumps"

# ---- random jobs ----------------------------------------------------------------------------------

jobs()
{
    python3 "$srcdir/tests/flight_jobs.py" "$SWSIM" "$dir/jobs" "$1" "$2" >"$dir/out" 2>&1
    code=$?
    cat "$dir/out"
    return $code
}
first=${SWSIM_SEED:-1}
count=40
test -z "${SWSIM_LONG:-}" || count=1500
check "dumps of $count random jobs, seeds from $first: the verdict is that of the job" jobs "$first" "$count"
sed 's/^/# /' "$dir/out"

# ---- what a dump does not tell --------------------------------------------------------------------

# entry NUMBER STATE [RECORD]: an all-reduce of group 0.
entry()
{
    echo "{\"record_id\": ${3:-$1}, \"process_group\": [\"0\", \"\"], \"collective_seq_id\": $1, \"p2p_seq_id\": 0, \"profiling_name\": \"nccl:all_reduce\", \"input_sizes\": [[8]], \"input_dtypes\": [\"Float\"], \"state\": \"$2\", \"is_p2p\": false}"
}
# dump RANK RANKS ENTRY...
dump()
{
    out=$dir/nccl_trace_rank_$1 ranks=$2
    shift 2
    {
        echo "{\"version\": \"2.9\", \"pg_config\": {\"0\": {\"name\": \"0\", \"desc\": \"\", \"ranks\": \"$ranks\"}}, \"entries\": ["
        printf '%s\n' "$@" | sed '$!s/$/,/'
        echo ']}'
    } >"$out"
}
imports()
{
    "$SWSIM" import -o "$dir/plan.yaml" "$@" 2>"$dir/err"
    cat "$dir/err"
}
# Of 24 ranks one has two of 600 calls in another order.
python3 - "$dir/large" <<'END'
import json, os, sys
ranks, entries, at = 24, 600, 360
os.makedirs(sys.argv[1])
for rank in range(ranks):
    calls = [("all_reduce" if i % 5 else "all_gather", 1024 + i * 7 % 640) for i in range(entries)]
    if rank == 17:
        calls[at], calls[at + 1] = calls[at + 1], calls[at]
    records = [{"record_id": i, "process_group": ["0", ""], "collective_seq_id": i + 1, "p2p_seq_id": 0,
                "profiling_name": "nccl:" + name, "input_sizes": [[size]], "input_dtypes": ["Float"],
                "state": "completed" if i < at else "scheduled", "is_p2p": False}
               for i, (name, size) in enumerate(calls)]
    with open(f"{sys.argv[1]}/nccl_trace_rank_{rank}", "w") as file:
        json.dump({"version": "2.9", "pg_config": {"0": {"name": "0", "desc": "", "ranks": str(list(range(ranks)))}},
                   "entries": records}, file)
END
imports "$dir/large" >/dev/null
check "one of 24 ranks swaps two of 600 calls: the repair is found" prints 1 \
    "Fix (proved): rank 17 thread main: collective all_gather of pg0 (operation 3) before collective all_reduce" \
    "$SWSIM" verify --limit=time=120s "$dir/plan.yaml"
rm -r "$dir/large"

dump 0 "[0, 1, 2, 3]" "$(entry 1 completed 0)" "$(entry 2 started 1)"
dump 3 "[0, 1, 2, 3]" "$(entry 1 completed 0)" "$(entry 2 scheduled 1)"
imports "$dir"/nccl_trace_rank_? >/dev/null
check "the report tells the calls of a rank" prints 0 "^rank 0, .*: 2 calls, 1 over; not over: all_reduce, number 2" \
    "$SWSIM" import --report "$dir"/nccl_trace_rank_0 "$dir"/nccl_trace_rank_3
check "... and of its groups" found "^  group 0  *4 ranks: 2 calls, 1 over" "$dir/out"
check "... as JSON" prints 0 '"rank":3,"lost_entries":false,"calls":2,"over":1,.*"groups":\[{"group":"0","ranks":\[0,1,2,3\]' \
    "$SWSIM" import --report --json "$dir"/nccl_trace_rank_0 "$dir"/nccl_trace_rank_3
check "ranks without a dump are named" found "no dump of ranks 1 and 2" "$dir/err"
check "... in the hypotheses, too" found "ranks 1 and 2 without a dump have called what the others called" "$dir/plan.yaml"
check "the plan numbers ranks as the job does" found "r3.main:" "$dir/plan.yaml"
check "... and is proved if they called all" says "proved" "$SWSIM" verify "$dir/plan.yaml"
dump 3 "[0, 1, 2, 3]" "$(entry 1 completed 0)"
imports "$dir"/nccl_trace_rank_? >/dev/null
check "a rank that did not come is named by its number in the job" says "waits for rank 3" "$SWSIM" verify --no-fix "$dir/plan.yaml"
rm "$dir"/nccl_trace_rank_?

dump 0 "[0, 1]" "$(entry 1 completed 0)" "$(entry 2 started 1)"
dump 1 "[0, 1]" "$(entry 4 started 3)" "$(entry 5 scheduled 4)"
imports "$dir"/nccl_trace_rank_? >/dev/null
check "a ring that has lost what another rank is still in" found \
    "rank 0 has not completed all_reduce, number 2 of process group 0, and the ring of another rank has lost it" "$dir/err"

# A rank without a dump: the verdict says so as well.
rm "$dir"/nccl_trace_rank_?
dump 0 "[0, 1]" "$(entry 1 completed)"
imports "$dir"/nccl_trace_rank_? >/dev/null
check "a rank without a dump is in the verdict" says "except rank 1: no dump" "$SWSIM" verify "$dir/plan.yaml"
rm "$dir"/nccl_trace_rank_?

# ---- where all stand -------------------------------------------------------------------------------

# framed NUMBER STATE LINE: an all-reduce of group 0 that is called in a program; PyTorch's own frames are in front.
framed()
{
    entry "$1" "$2" | sed "s|}\$|, \"frames\": [{\"name\": \"all_reduce\", \"filename\": \"/opt/lib/python3.11/site-packages/torch/distributed/distributed_c10d.py\", \"line\": 2501}, {\"name\": \"step\", \"filename\": \"/home/me/train.py\", \"line\": $3}, {\"name\": \"<module>\", \"filename\": \"/home/me/train.py\", \"line\": 90}]}|"
}
for rank in 0 1 2; do
    dump $rank "[0, 1, 2, 3]" "$(framed 1 completed 40)" "$(framed 2 completed 40)" "$(framed 3 scheduled 41)"
done
imports "$dir"/nccl_trace_rank_? >/dev/null
check "one rank without a dump while all others stand in one call is the answer" found \
    "rank 3 has no dump, and all others of process group 0 stand in all_reduce, number 3, train.py:41" "$dir/err"
check "... and in the verdict, with the program's line and the dump's number" says \
    "is in train.py:41#3 all_reduce of communicator pg0, waits for rank 3 thread main" "$SWSIM" verify --no-fix "$dir/plan.yaml"
check "... in every order" says "deadlock, always" "$SWSIM" verify --no-fix "$dir/plan.yaml"
check "... in a line for all that wait so" says "the same on 2 more ranks: 1, 2" "$SWSIM" verify --no-fix "$dir/plan.yaml"
dump 3 "[0, 1, 2, 3]" "$(framed 1 completed 40)" "$(framed 2 completed 40)"
sed -i 's/"desc": ""/"desc": "dp5"/' "$dir"/nccl_trace_rank_?
imports "$dir"/nccl_trace_rank_? >/dev/null
check "calls that are over everywhere are told no more, but for the last" sh -c \
    "[ \$(grep -c 'train.py:40#2' '$dir/plan.yaml') = 4 ] && ! grep 'train.py:40#1' '$dir/plan.yaml'"
check "... which the hypotheses say" found "calls that are over on all ranks are left out" "$dir/plan.yaml"
check "a group has the name that the program gave it" found "comms: {pg0_dp5: " "$dir/plan.yaml"
check "the repair names the line behind which the call is missing" says \
    "Fix (proved): rank 3 thread main: add collective all_reduce of pg0_dp5 (32 bytes) at the end, behind train.py:40#2" \
    "$SWSIM" verify "$dir/plan.yaml"
dump 3 "[0, 1, 2, 3]" "$(framed 1 completed 40)" "$(framed 2 completed 40 | sed 's/Float/Int/')"
imports "$dir"/nccl_trace_rank_? >/dev/null
check "a call that is over and differs is told" says "all_reduce:Int meets train.py:40#2 all_reduce:Float" "$SWSIM" verify --no-fix "$dir/plan.yaml"
dump 3 "[0, 1, 2, 3]" "$(framed 1 completed 40)" "$(framed 2 completed 40)" "$(framed 3 started 41)"
imports "$dir"/nccl_trace_rank_? >/dev/null
check "whose device has not begun what that of another has is said" found \
    "ranks 0, 1 and 2: the device has not begun all_reduce, number 3 of process group 0 (scheduled), as that of rank 3 has (started)" "$dir/err"
dump 3 "[0, 1, 2, 3]" "$(framed 1 completed 40)" "$(framed 2 completed 40)" "$(framed 3 completed 41)"
imports "$dir"/nccl_trace_rank_? >/dev/null
check "a rank that is past a call in which others stand is said" found "rank 3 is past all_reduce, number 3" "$dir/err"
check "... and no proof covers it" says "except all_reduce, number 3 of pg0_dp5: some ranks are past it" "$SWSIM" verify "$dir/plan.yaml"
rm "$dir"/nccl_trace_rank_?

# 16 ranks, 1,500 steps of a collective in a row and one in a column; rank 13 leaves the last one out.
python3 - "$dir/rows" <<'END'
import json, os, sys
ranks, width, steps = 16, 4, 1500
os.makedirs(sys.argv[1])
groups = {str(r): [i for i in range(ranks) if i // width == r] for r in range(width)}
groups |= {str(width + c): [i for i in range(ranks) if i % width == c] for c in range(width)}
config = {name: {"name": name, "desc": "", "ranks": str(members)} for name, members in groups.items()}
for rank in range(ranks):
    records = []
    for step in range(steps):
        for group in (rank // width, width + rank % width):
            last = step == steps - 1
            if not (last and rank == 13 and group >= width):
                records.append({"record_id": len(records), "process_group": [str(group), ""], "collective_seq_id": step + 1,
                                "p2p_seq_id": 0, "profiling_name": "nccl:all_reduce", "input_sizes": [[8]], "input_dtypes": ["Float"],
                                "state": "scheduled" if last and group >= width else "completed", "is_p2p": False})
    with open(f"{sys.argv[1]}/nccl_trace_rank_{rank}", "w") as file:
        json.dump({"version": "2.9", "pg_config": config, "entries": records}, file)
END
imports "$dir/rows" >/dev/null
check "what can only hang does so always, however long the job ran" says "deadlock, always" "$SWSIM" verify --no-fix "$dir/plan.yaml"
check "... in a story of the group alone that stands, on one screen" sh -c \
    "'$SWSIM' verify '$dir/plan.yaml' | awk '/starts/ { other += !/pg5/ } END { exit other > 0 || NR > 40 }'"
check "... and is repaired" says "Fix (proved): rank 13 thread main: add collective all_reduce of pg5" "$SWSIM" verify "$dir/plan.yaml"
rm -r "$dir/rows"

# ---- types, and messages in no batch --------------------------------------------------------------

dump 0 "[0, 1]" "$(entry 1 scheduled)" "$(entry 2 scheduled)"
dump 1 "[0, 1]" "$(entry 1 scheduled)" "$(entry 2 scheduled | sed 's/Float/Int/')"
imports "$dir"/nccl_trace_rank_? >/dev/null
check "tensors of as many bytes and another type differ" \
    says "all_reduce:Int meets all_reduce:Float at the same position" "$SWSIM" verify "$dir/plan.yaml"

for name in Float float32 torch.float32; do
    dump 0 "[0, 1]" "$(entry 1 scheduled | sed "s/Float/$name/")"
    dump 1 "[0, 1]" "$(entry 1 scheduled | sed "s/Float/$name/")"
    imports "$dir"/nccl_trace_rank_? >/dev/null
    check "8 elements of $name are 32 bytes" found "bytes: 32B" "$dir/plan.yaml"
done
rm "$dir"/nccl_trace_rank_?

# message NUMBER NAME: a send or receive of group 0.
message()
{
    entry "$1" scheduled | sed "s/collective_seq_id\": $1, \"p2p_seq_id\": 0/collective_seq_id\": 0, \"p2p_seq_id\": $1/
        s/nccl:all_reduce/nccl:$2/; s/\"is_p2p\": false/\"output_sizes\": [[8]], \"output_dtypes\": [\"Float\"], \"is_p2p\": true/"
}
for rank in 0 1 2; do
    next=$(((rank + 1) % 3)) before=$(((rank + 2) % 3))
    dump $rank "[0, 1, 2]" "$(message 1 "send $rank->$next")" "$(message 2 "recv $rank<-$before")"
done
imports "$dir"/nccl_trace_rank_? >/dev/null
check "sends around a ring on the stream of the group" says "violated" "$SWSIM" verify --no-fix "$dir/plan.yaml"
imports --pair-streams "$dir"/nccl_trace_rank_? >/dev/null
check "... and on streams of their own" says "proved" "$SWSIM" verify "$dir/plan.yaml"
check "... which is among the hypotheses" found "but for those in no batch, which have one for each two ranks" "$dir/plan.yaml"
rm "$dir"/nccl_trace_rank_?

# Does `export` print what is not recorded, and what it prints again?
prints_again()
{
    "$SWSIM" export "$1" >"$dir/again.yaml" && "$SWSIM" export --json "$dir/again.yaml" >"$dir/again.json" &&
        grep -q '^  messages: gloo' "$dir/again.yaml" &&
        grep -q '"unrecorded":{"messages":"gloo' "$dir/again.json" && "$SWSIM" verify "$dir/again.json" |
        grep -F "except messages: gloo"
}

# ---- dumps of gloo, as PyTorch 2.9.1 wrote them (tests/partners/hangs.py) ------------------------------------------

# They do not name the members of a group, `retired` tells the end of a call, and sends and receives have no entries.
imports "$srcdir"/tests/dumps/gloo_halves/nccl_trace_rank_? >/dev/null
check "gloo: the members of a group are the ranks that called it" \
    found "pg0: [[]0, 1, 2, 3[]], pg1: [[]0, 1[]], pg2: [[]2, 3[]]" "$dir/plan.yaml"
check "... and verify names the rank that did not come" says "pg2, waits for rank 3" "$SWSIM" verify --no-fix "$dir/plan.yaml"
imports "$srcdir"/tests/dumps/gloo_sends/rank_?.json >/dev/null
check "gloo: that messages have no entry is said" found "gloo records no sends and receives" "$dir/err"
check "... in the plan" found "messages: gloo records no sends and receives" "$dir/plan.yaml"
check "... and in the verdict, which is not plain" \
    says "except messages: gloo records no sends and receives" "$SWSIM" verify "$dir/plan.yaml"
check "... as JSON" says '"but_for":."messages: gloo records no sends and receives"' "$SWSIM" verify --json "$dir/plan.yaml"
! "$SWSIM" verify -q --werror "$dir/plan.yaml"
check "... for --werror an error" test $? -eq 0
certified()
{
    "$SWSIM" verify -q --certificate="$dir/cert" "$dir/plan.yaml" && "$SWCHECK" "$dir/plan.yaml" "$dir/cert"
}
check "... in what swcheck says" says "by run; except messages: gloo records no sends and receives" certified
check "... in a copy, YAML and JSON" prints_again "$dir/plan.yaml"
check "... for a prediction a warning" says "not covered: messages" "$SWSIM" predict "$dir/plan.yaml"
check "... in the hypotheses, too" found "sends and receives, which gloo does not record, end" "$dir/plan.yaml"
done_testing
