#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tables with names that are wide, or have accents of their own, stand as those with names of as many letters:
# their output, with the names put in, is that of a plan with these letters.
. "${srcdir:-.}/tests/tap.sh"

accent=$(printf 'e\314\201') # e, and an accent that joins it
sed "s/é/$accent/g" >"$dir/wide.yaml" <<'END'
swplan: 1
name: 推薦🚀
ranks: 2
driver: clock
schedule:
  复制输入: {stage: 0, stream: 内存, thread_group: 读写, time: 300us, host_time: 5us, writes: [ids], work: {copy: h2d, bytes: 64KiB}}
  échange🚀: {stage: 1, stream: dist, thread_group: dist, globally_ordered: true, time: 200us, reads: [ids], writes: [mine], work: {collective: all_to_all, comm: dp, bytes: 16KiB}}
  Train: {stage: 2, stream: main, thread_group: train, time: 500us, reads: [mine, weights], writes: [weights]}
intra_iter_deps: [[échange🚀, 复制输入], [Train, échange🚀]]
inter_iter_deps: [[Train, Train]]
buffers: {weights: {scope: shared}}
END
narrow() # of as many columns, in the same order; times and places are none of the matter
{
    sed -e 's/推薦🚀/Recome/g; s/复制输入/zopyinps/g; s/内存/hbmm/g; s/读写/inou/g' \
        -e "s/${accent}change🚀/echangerk/g; s/:[0-9]*:[0-9]*:/:PLACE:/; s/[0-9.]* [mun]*s$/TIME/; s/simulated in .*/TIME/"
}
narrow <"$dir/wide.yaml" >"$dir/narrow.yaml"
same() # same COMMAND...: with wide.yaml, as with narrow.yaml
{
    "$@" "$dir/wide.yaml" >"$dir/out.wide" 2>&1
    wide_rc=$?
    "$@" "$dir/narrow.yaml" >"$dir/out.narrow" 2>&1
    narrow_rc=$?
    narrow <"$dir/out.wide" | sed "s|$dir/wide|$dir/narrow|g" >"$dir/out.put"
    narrow <"$dir/out.narrow" >"$dir/out.want"
    [ -s "$dir/out.want" ] && [ $wide_rc -eq $narrow_rc ] && diff "$dir/out.want" "$dir/out.put"
}
check "the names differ" test "$(grep -c 复制输入 "$dir/narrow.yaml")" -eq 0
check "verify" same "$SWSIM" verify
check "schedule" same "$SWSIM" schedule
check "stages" same "$SWSIM" stages
check "predict" same "$SWSIM" predict --critical-path
check "cores that are shared" same "$SWSIM" predict --quiet --jitter=Train=gamma'(cv=.1)' --seed=1
# Options name tasks, so each plan has its own.
"$SWSIM" predict --quiet --what-if=复制输入=2x --what-if="${accent}change🚀=3x" "$dir/wide.yaml" | narrow >"$dir/out.put"
"$SWSIM" predict --quiet --what-if=zopyinps=2x --what-if=echangerk=3x "$dir/narrow.yaml" | narrow >"$dir/out.want"
check "what if" sh -c "grep -q 'zopyinps=2x' '$dir/out.want' && diff '$dir/out.want' '$dir/out.put'"
for plan in wide narrow; do
    sed -i 's/\(intra_iter_deps: .*\), \[Train.*/\1]/' "$dir/$plan.yaml"
done
check "a story" same "$SWSIM" verify --no-fix
for plan in wide narrow; do
    sed -i 's/{stage: 0, stream/{stage: 0, strem/' "$dir/$plan.yaml"
done
check "the caret of a message" same "$SWSIM" verify

done_testing
