#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Predictions of host programs: a host that is blocked in a sync is told from one that is slow, and a plan that may hang is
# said to.
. "${srcdir:-.}/tests/tap.sh"

cat >"$dir/sync.yaml" <<'PLAN'
swplan: 1
inputs: [request]
threads:
  r0.loop:
    - repeat: 20
      body:
        - {host: 1ms, name: schedule}
        - {copy: h2d, stream: copies, time: 500us, reads: [request], writes: [x]}
        - {sync: stream, stream: copies}
        - {launch: forward, stream: main, time: 4ms, host_time: 2ms, reads: [x], writes: [logits]}
        - {record: done, stream: main}
        - {wait: done, stream: copies}
PLAN
check "a host that was blocked in a sync comes late" prints 0 'main .*host waits in sync of stream copies' "$SWSIM" predict "$dir/sync.yaml"
check "in JSON" prints 0 '"sync":0[.]' "$SWSIM" predict --json "$dir/sync.yaml"
sed 's/{sync: stream, stream: copies}/{record: in, stream: copies}/; s/- {launch: forward/- {wait: in, stream: main}\n        &/' "$dir/sync.yaml" >"$dir/wait.yaml"
check "a stream that waits does not block the host" sh -c "'$SWSIM' predict '$dir/wait.yaml' >'$dir/out' && ! grep 'in sync' '$dir/out'"

cat >"$dir/locks.yaml" <<'PLAN'
swplan: 1
threads:
  r0.a: [{lock: x}, {host: 1us}, {lock: y}, {unlock: y}, {unlock: x}]
  r0.b: [{host: 1ms}, {lock: y}, {lock: x}, {unlock: x}, {unlock: y}]
PLAN
check "a run that ends of a plan that may hang" complains 0 'another order of its steps has a deadlock' "$SWSIM" predict "$dir/locks.yaml"
sed 's/{lock: y}, {lock: x}, {unlock: x}, {unlock: y}/{lock: x}, {unlock: x}/' "$dir/locks.yaml" >"$dir/well.yaml"
check "of one that does not" sh -c "'$SWSIM' predict '$dir/well.yaml' 2>&1 | grep -c deadlock | grep -qx 0"
done_testing
