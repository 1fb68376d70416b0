#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Errors in the lists of a CSV: row, column and the rule that is broken, several at once.
. "${srcdir:-.}/tests/tap.sh"

# lists ROW...: a schedule of these rows; the verdict in out, warnings in err.
lists()
{
    printf '%s\n' "$@" >"$dir/lists.csv"
    "$SWSIM" verify -q --no-fix "$dir/lists.csv" >"$dir/verdict" 2>"$dir/refused"
    "$SWSIM" verify --no-fix "$dir/lists.csv" >"$dir/out" 2>"$dir/err"
    cat "$dir/verdict" "$dir/err"
}
# tells TEXT ROW...: a warning, or a refusal, begins or goes on so.
tells()
{
    text=$1
    shift
    lists "$@"
    grep -qF -- "$text" "$dir/err"
}
# warnings COUNT ROW...
warnings()
{
    count=$1
    shift
    lists "$@"
    test "$(grep -c ': warning: ' "$dir/err")" -eq "$count"
}
verdict() { grep -qF -- "$1" "$dir/verdict"; }

send=0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1
receive=1RECV_F0,1F0,1RECV_F1,1F1,1B0,1SEND_B0,1B1,1SEND_B1
check "a right schedule has no warning" warnings 0 "$send" "$receive"

check "unpaired: a receive" tells "lists.csv:2:14: warning: 1RECV_F1 (row 2, column 3) has no 0SEND_F1 in row 1: every message has a send and a receive" \
    0F0,0SEND_F0,0F1,0RECV_B0,0B0,0RECV_B1,0B1 "$receive"
check "the verdict says it, too" verdict "message, always: 1RECV_F1 "
check "and nothing else is told" warnings 1 0F0,0SEND_F0,0F1,0RECV_B0,0B0,0RECV_B1,0B1 "$receive"
check "unpaired: a send" tells "0SEND_F1 (row 1, column 4) has no 1RECV_F1 in row 2" "$send" 1RECV_F0,1F0,1F1,1B0,1SEND_B0,1B1,1SEND_B1
check "the pass that needs it is another" grep -qF "1F1 (row 2, column 3) has no 1RECV_F1: a pass comes behind what brings its input" "$dir/err"

check "doubled: a send" tells "0SEND_F0 (row 1, column 3) is there a second time, first at column 2: every message is sent and received once" \
    0F0,0SEND_F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1 "$receive"
check "the verdict does not call it unpaired" verdict "message, always: 0SEND_F0 (row 1, column 3) is there a second time, after the first (row 1, column 2)"
check "doubled: a receive" tells "1RECV_F0 (row 2, column 2) is there a second time" "$send" "1RECV_F0,$receive"
check "doubled: a pass" tells "1:5: error: found 0F0 a second time (first at 1:1), expected it once" 0F0,0F0,0B0
check "a refused list tells its other mistakes, too" tells "1:18: warning: 0SEND_F1 (row 1, column 4) has no 0F1: a message comes behind the pass that makes it" \
    0F0,0F0,0SEND_F0,0SEND_F1,0RECV_B0,0B0 1RECV_F0,1F0,1B0,1SEND_B0
check "each of them" grep -qF "0SEND_F1 (row 1, column 4) has no 1RECV_F1 in row 2" "$dir/err"
check "a cell that is no action" tells '1:10: error: found "Z0", expected F, I, W, B,' 0F0,0F1,0Z0,0B1 1F0,1B0,1F1 2B0,2F0,2F1,2B1
check "does not hide an order" grep -qF "2B0 (row 3, column 1) comes before 2F0" "$dir/err"
check "nor what another row lacks" grep -qF "row 2 has no 1B1" "$dir/err"
check "its own row may have all" warnings 2 0F0,0F1,0Z0,0B1 1F0,1B0,1F1 2B0,2F0,2F1,2B1
check "nor another refusal" tells "2:13: error: found 1B0 a second time (first at 2:9)" 0F0,0F1,0B0,0BX 1F0,1F1,1B0,1B0
check "a message may be in it" warnings 0 "$send" 1RECV_F0,1F0,1RECV_FX,1F1,1B0,1SEND_B0,1B1,1SEND_B1
check "with it the list has no other mistake" test "$(grep -c ' error: ' "$dir/err")" = 1
check "doubled: B beside I" tells "1:9: error: found 0I0 beside 0B0 (at 1:5), expected either B or I and W" 0F0,0B0,0I0
check "doubled: B beside W" tells "1:17: error: found 0W0 beside 0B0 (at 1:13)" 0F1,0I1,0F0,0B0,0W0
check "doubled: B behind I" tells "1:9: error: found 0B0 beside 0I0 (at 1:5)" 0F0,0I0,0B0

check "missing: a forward" tells "1B1 (row 2, column 3) has no 1F1: a backward pass comes behind the forward pass of its stage" \
    0F0,0F1,0B0,0B1 1F0,1B0,1B1
check "the verdict has the column of the file" verdict "value, always: 1B1 (row 2, column 3) has no 1F1"
check "missing: a backward" tells "row 1 has no 0B1: every microbatch passes every stage forward and backward" 0F0,0F1,0B0 1F0,1B0,1F1,1B1
check "missing: a W" tells "row 1 has no 0W0: I is one half of a backward pass, W the other" 0F0,0I0
check "missing: both passes" tells "row 1 has no 0F1: every microbatch" 0F0,0B0 1F0,1B0,1F1,1B1
check "missing: I of a W" tells "0W0 (row 1, column 2) has no 0I0: the weights' part" 0F0,0W0
check "missing: the pass that makes a message" tells "0SEND_F0 (row 1, column 1) has no 0F0: a message comes behind the pass that makes it" \
    0SEND_F0,0RECV_B0,0B0 1RECV_F0,1F0,1B0,1SEND_B0
check "only forwards are complete" warnings 0 0F0,0F1 1F0,1F1

check "order: W before I" tells "0W0 (row 1, column 3) comes before 0I0: the weights' part of a backward pass comes behind that of the input" \
    0F0,0F1,0W0,0I0,0I1,0W1 1F0,1I0,1W0,1F1,1I1,1W1
check "the verdict says it with the same column" verdict "value, always: 0W0 (row 1, column 3) comes before 0I0"
check "order: B before F" tells "1B0 (row 2, column 2) comes before 1F0" 0F0,0F1,0B0,0B1 1F1,1B0,1F0,1B1
check "order: a send before its pass" tells "0SEND_F0 (row 1, column 1) comes before 0F0: a message comes behind the pass that makes it" \
    0SEND_F0,0F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1 "$receive"
check "order: a pass before its receive" tells "1F0 (row 2, column 1) comes before 1RECV_F0: a pass comes behind what brings its input" \
    "$send" 1F0,1RECV_F0,1RECV_F1,1F1,1B0,1SEND_B0,1B1,1SEND_B1
check "order: two stages of a rank" tells "1F0 (row 1, column 1) comes before 0F0: a pass comes behind what brings its input" 1F0,0F0,1B0,0B0
check "order: a composite" tells "0B1 (row 1, column 2) comes before 0F1" '0F0,(0F2;0B1)OVERLAP_F_B,0F1,0B0,0B2'
check "an idle cell counts as a column" tells "0B1 (row 1, column 4) comes before 0F1" 0F0,,0B0,0B1,0F1

check "several at once" warnings 3 0F0,0SEND_F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1 1RECV_F0,1F0,1RECV_F1,1B1,1F1,1B0,1SEND_B0
check "in the order of the file" sh -c "sed -n 's/.*warning: \([^ ]*\) .*/\1/p' '$dir/err' | tr '\n' ' ' | grep -qx '0SEND_F0 0RECV_B1 1B1 '"
check "counted from 1 there are many" tells "more like it (missing); this is the last" 0F1,0F2,0F3,0F4,0F5,0B1,0B2,0B3,0B4,0B5 1F1,1F2,1F3,1F4,1F5
check "but not one by one" test "$(grep -c ': warning: ' "$dir/err")" -eq 7
check "in JSON" prints 1 '{"kind":"out_of_order","file":".*lists.csv","line":1,"column":5,"text":"0W0 (row 1' \
    sh -c "printf '0F0,0W0,0I0\n' >'$dir/lists.csv'; '$SWSIM' verify --json --no-fix '$dir/lists.csv'"

# A place far to the right is shown with what stands around it.
"$SWSIM" generate 1f1b -p 4 -m 200 --comms | "$SWSIM" export --format=csv - | sed '2s/,1B150,/,/; 2s/,1B149,/,1B149,1B150,/' >"$dir/long.csv"
check "a long row is cut around the place" sh -c "'$SWSIM' verify --no-fix '$dir/long.csv' 2>&1 >'$dir/out' | tee '$dir/err' |
    grep -q '^  [.][.][.].*1B149,1B150,.*[.][.][.]\$'"
done_testing
