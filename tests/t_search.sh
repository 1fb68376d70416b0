#!/bin/sh
# The plain search through the front door: threads, bitstate, limits, the end of memory, SIGINT.
. "${srcdir:-.}/tests/tap.sh"
plans=$srcdir/plans
big=$plans/torchrec/sparse_dist.yaml # about 94,000 states without reduction on one rank

# answers CODE PATTERN COMMAND...: exits with CODE, and a line of its output or messages matches.
answers()
{
    answer=$2 want=$1
    shift 2
    exits "$want" "$@" && said "$answer"
}

# figures OPTION...: verdict, states and transitions of a search for a deadlock.
figures()
{
    "$SWSIM" verify --json --no-reduction --driver=clock --ranks=1 --property=deadlock,drain \
        "$@" "$big" >"$dir/json"
    sed -n 's/.*\("verdict":"[a-z]*"\).*\("states":[0-9]*,"transitions":[0-9]*\).*/\1 \2/p' \
        "$dir/json"
}

same_with_threads()
{
    one=$(figures --threads=1 "$@")
    two=$(figures --threads=2 "$@")
    echo "one thread: $one; two: $two"
    test -n "$one" && test "$one" = "$two"
}

# At most 32 bytes a state is a matter of ten million states; here are few, and all tables are counted.
within_memory()
{
    figures --limit=mem=3MiB >"$dir/figures"
    peak=$(sed -n 's/.*"peak_bytes":\([0-9]*\).*/\1/p' "$dir/json")
    grep '"limit":"memory"' "$dir/json" && test "$peak" -le 3145728 && test "$peak" -gt 2000000
}

check "two threads: the same verdict, states and steps" same_with_threads
check "cut short, they are cut at the same state" same_with_threads --limit=states=30000
check "at least one thread" answers 2 "expected a whole number from 1" \
    "$SWSIM" verify --threads=0 "$big"

check "bitstate finds a deadlock" answers 1 "cycle: " \
    "$SWSIM" verify --bitstate=1MiB "$plans/bugs/nccl_one_slot_same_order_broken.yaml"
check "bitstate proves nothing" answers 4 "undecided *bitstate: about .*% coverage" \
    "$SWSIM" verify --bitstate --limit=mem=32MiB --no-reduction --driver=clock --ranks=1 "$big"
check "nor any single property" answers 4 '"deadlock":"undecided"' \
    "$SWSIM" verify --json --bitstate=1MiB --no-reduction --driver=clock --ranks=1 \
    --property=deadlock "$big"
check "a filter too small says what part it covered" answers 4 "about [0-9.]*% coverage" \
    "$SWSIM" verify --bitstate=8KiB --no-reduction --driver=clock --ranks=1 --property=deadlock "$big"
check "a filter needs a size with a unit" answers 2 "--bitstate: found '5'" \
    "$SWSIM" verify --bitstate=5 "$big"
check "a bitstate search proves no repair" answers 2 "found --fix together with --bitstate: a repair is written only if it is proved" \
    "$SWSIM" verify --bitstate --fix="$dir/fixed.yaml" "$big"
check "bitstate has one thread" answers 2 "--bitstate has one thread" \
    "$SWSIM" verify --bitstate --threads=2 "$big"

check "a memory limit is kept, tables and all" within_memory
check "a memory limit ends with undecided" answers 4 "limit reached: memory" \
    "$SWSIM" verify --no-reduction --driver=clock --limit=mem=3MiB "$big"
check "even one that leaves no room to begin" answers 4 "limit reached: memory" \
    "$SWSIM" verify --no-reduction --driver=clock --limit=mem=1KiB "$big"
check "so does a time limit" answers 4 "limit reached: time" \
    "$SWSIM" verify --no-reduction --driver=clock --limit=time=50ms "$big"

# Less memory than the search wants and than its limit allows. Sanitizers need more to begin with.
if (ulimit -v 100000 && "$SWSIM" --version) >/dev/null 2>&1; then
    out_of_memory()
    {
        (ulimit -v 100000 && "$SWSIM" verify --no-reduction --limit=mem=1TiB --driver=clock "$big")
    }
    check "the end of memory is a message" answers 2 "out of memory" out_of_memory
    check "and what is known is said" grep -q "undecided.*no more memory.*states" "$dir/out"
else
    skip "no address space limit with this build"
    skip "no address space limit with this build"
fi

interrupted()
{
    "$SWSIM" verify --no-reduction "$@" --driver=clock "$big" "$big" >"$dir/out" 2>"$dir/err" &
    pid=$!
    sleep 1
    kill -INT "$pid"
    wait "$pid"
    test $? -eq 4 && grep -q "undecided.*limit reached: interrupted.*states" "$dir/out" &&
        test "$(wc -l <"$dir/out")" -eq 1
}
# A shell without job control starts what is in the background with SIGINT ignored.
if env --default-signal=INT true 2>/dev/null; then
    SWSIM_PLAIN=$SWSIM
    SWSIM="$dir/swsim"
    printf '#!/bin/sh\nexec env --default-signal=INT "%s" "$@"\n' "$SWSIM_PLAIN" >"$SWSIM"
    chmod +x "$SWSIM"
fi
check "SIGINT: what is known so far, undecided, and no further plan" interrupted
check "SIGINT with two threads" interrupted --threads=2
done_testing
