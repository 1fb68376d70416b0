#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# `machine: {timeout: ...}`: a prediction names the operation that exceeds its time limit first, in text and JSON.
. "${srcdir:-.}/tests/tap.sh"

plans=$srcdir/plans/reality
predict() { "$SWSIM" predict "$@" >"$dir/out" 2>&1; }
says() { found "$1" "$dir/out" || { cat "$dir/out"; false; }; }

check "a limit that is exceeded: exit code" exits 1 "$SWSIM" predict "$plans/timeout_broken.yaml"
predict "$plans/timeout_broken.yaml"
check "... the operation, how long it takes, and when its watchdog acts" \
    says "TIMEOUT     gather_states of communicator world takes 669 s on rank 1, its watchdog ends the job after 600 s, at 600 s"
predict --json "$plans/timeout_broken.yaml"
check "... as JSON" says '"timeout":{"rank":1,"comm":"world","operation":"gather_states","called_ns":0,"taken_ns":669010000000,"limit_ns":600000000000}'
check "a limit that is not: exit code" exits 0 "$SWSIM" predict "$plans/timeout_fixed.yaml"
predict --json "$plans/timeout_fixed.yaml"
check "... and nothing is said" sh -c "! grep -q '\"timeout\":' '$dir/out'"

# The limit counts from the call, not from the start: the second collective waits behind the first in its stream.
cat >"$dir/queued.yaml" <<'END'
swplan: 1
comms: {c: [0, 1], d: [0, 1]}
machine: {timeout: {d: 5ms}}
threads:
  r0.m: [{launch: k, stream: s, time: 4ms}, {collective: x, comm: d, stream: s, time: 2ms}]
  r1.m: [{collective: x, comm: d, stream: s, time: 2ms}]
END
predict "$dir/queued.yaml"
check "an operation takes from its call on" says "x of communicator d takes 6.00 ms on rank 0, its watchdog ends the job after 5.00 ms"

cat >"$dir/endless.yaml" <<'END'
swplan: 1
comms: {c: [0, 1]}
machine: {timeout: {c: 10ms}}
threads:
  r0.m: [{host: 1ms}, {collective: x, comm: c, stream: s, time: 2ms}]
  r1.m: []
END
predict "$dir/endless.yaml"
check "an operation that never ends" says "x of communicator c takes for ever on rank 0, its watchdog ends the job after 10.0 ms, at 11.0 ms"

# Under --faults any operation that is called may exceed its limit, at any time.
cat >"$dir/faults.yaml" <<'END'
swplan: 1
on_failure: none
comms: {c: [0, 1]}
machine: {timeout: {c: 1s}}
threads:
  r0.m: [{collective: x, comm: c, stream: s}]
  r1.m: [{collective: x, comm: c, stream: s}, {sync: device}]
END
"$SWSIM" verify --faults --no-fix --no-reduction "$dir/faults.yaml" >"$dir/out" 2>&1
check "verify --faults looks at it" says "faults, "
sed 's/on_failure: none/on_failure: group_abort/' "$dir/faults.yaml" >"$dir/safe.yaml"
check "... and finds what survives it" exits 0 "$SWSIM" verify --faults --no-fix --no-reduction "$dir/safe.yaml"

# A task that begins with its collective calls it once, and not when its worker takes it, too.
cat >"$dir/task.yaml" <<'END'
swplan: 1
ranks: 2
machine: {timeout: {dp: 1500us}}
retire: device
schedule:
  A: {stream: s, time: 1ms, work: {collective: all_reduce, comm: dp}}
END
check "each collective of a pipeline has its own call" exits 0 "$SWSIM" predict -n 5 "$dir/task.yaml"

done_testing
