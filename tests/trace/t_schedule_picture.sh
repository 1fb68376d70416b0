#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# `swsim render` of rank programs: every pass of the predicted step stands in the picture, where it belongs.
. "${srcdir:-.}/tests/tap.sh"
command -v python3 >/dev/null || skip_all "no python3"
"$SWSIM" generate 1f1b -p4 -m8 >"$dir/1f1b.yaml"
"$SWSIM" render "$srcdir/plans/examples/hello.yaml" -o "$dir/probe.dot" 2>/dev/null || skip_all "no Graphviz"

# drawn OPTION...: the picture is $dir/p.svg
drawn()
{
    exits 0 "$SWSIM" render -o "$dir/p.svg" "$@"
}

# holds EXPRESSION: of `text`, the words of the picture, and `passes`, the boxes with tooltips: (words, left, right, top)
holds()
{
    python3 - "$dir/p.svg" "$1" <<'END2'
import re, sys, xml.dom.minidom
raw = open(sys.argv[1]).read()
svg = xml.dom.minidom.parseString(raw)
text = [t.firstChild.data for t in svg.getElementsByTagName("text") if t.firstChild]
passes = []
for a in svg.getElementsByTagName("a"):
    points = [[float(v) for v in p.split(",")] for p in a.getElementsByTagName("polygon")[0].getAttribute("points").split()]
    passes.append((a.getAttribute("xlink:title"), min(p[0] for p in points), max(p[0] for p in points), min(p[1] for p in points)))
strokes = {}
for line in svg.getElementsByTagName("polyline"):
    strokes.setdefault(line.getAttribute("stroke"), []).append(line.getAttribute("points").split())
curves = [s for s, lines in strokes.items() if any(len(p) > 4 for p in lines)]
at = {words.split(",")[0]: (left, right, top) for words, left, right, top in passes}
if not eval("(" + sys.argv[2] + ")"):
    sys.exit("%s\n%s\n%s" % (sys.argv[2], text[:20], passes[:4]))
END2
}

check "a schedule is drawn" drawn "$dir/1f1b.yaml"
check "with every pass" holds 'len(passes) == 64 and len(at) == 64'
check "a row a rank, rank 0 on top" holds \
    '[at["rank %d: forward of microbatch 0" % r][2] for r in range(4)] ==
     sorted(at["rank %d: forward of microbatch 0" % r][2] for r in range(4)) and
     len({round(top) for words, left, right, top in passes}) == 4'
check "to scale: a backward pass is twice as wide as a forward one" holds \
    'all(abs((at["rank 1: backward of microbatch %d" % m][1] - at["rank 1: backward of microbatch %d" % m][0]) -
         2 * (at["rank 1: forward of microbatch %d" % m][1] - at["rank 1: forward of microbatch %d" % m][0])) < 2.1 for m in range(8))'
check "where the prediction has it" holds \
    'abs(at["rank 3: forward of microbatch 0"][0] - at["rank 0: forward of microbatch 2"][1]) < 1.1 and
     abs(at["rank 0: backward of microbatch 7"][1] - max(p[2] for p in passes)) < 0.1'
check "with its microbatch, a key, the step and the bubble" holds \
    'text.count("3") >= 8 and {"forward", "backward", "bubble", "message", "rank 3"} <= set(text) and
     "4 ranks, 8 microbatches, a step of 33 times F, bubble 27.3% with channel group: all messages of a rank in one order" in text'
check "memory is counted in activations" holds '"activations" in text and "rank 0, the most" in text and "4" in text'
check "on a dark sheet" drawn --theme=dark "$dir/1f1b.yaml"
check "the lines of its key have the colours of the curves" holds \
    'len(curves) == 4 and all(len(strokes.get(s, [])) >= 2 for s in curves)'
check "without messages" drawn --arrows=none "$dir/1f1b.yaml"
check "there is no key for them" holds '"message" not in text'
check "from standard input" sh -c "'$SWSIM' generate zb_h1 -p4 -m8 | '$SWSIM' render - -o '$dir/p.svg'"
check "backward passes in two parts" holds \
    '"backward for weights" in text and "backward" not in text and len(passes) == 96'

# A CSV of PyTorch's, of another channel, with times.
"$SWSIM" generate dualpipe_v -p4 -m10 >"$dir/v.yaml"
"$SWSIM" export -f csv -o "$dir/v.csv" "$dir/v.yaml"
check "a CSV is drawn" drawn --p2p=edge --times=F=1ms,B=2ms,I=1ms,W=1ms,OVERLAP_F_B=3ms --palette=dualpipe "$dir/v.csv"
check "overlapped pairs have two numbers" holds \
    '"forward and backward at once" in text and "4+0" in text and "chunks 0 and 1" in text and
     "4 ranks, 10 microbatches, a step of 66.0 ms, bubble 9.1% with channel edge: the messages of each edge in one order" in text'
check "palettes have colours of their own" sh -c "
    for palette in pytorch dualpipe zero-bubble; do
        '$SWSIM' render --palette=\$palette -o '$dir/p.svg' '$dir/v.yaml' && md5sum <'$dir/p.svg'
    done | sort -u | wc -l | grep -qx 3"
check "a model in two directions" drawn --p2p=edge --title='two <&"\\ ways' "$dir/v.yaml"
check "titles are text" holds "'two <&\"\\\\\\\\ ways' in text"

# Bytes, a limit, an optimizer.
cat >"$dir/bytes.yaml" <<'END'
swplan: 1
name: bytes
machine: {memory: 700MiB}
stages: {F: 2ms, B: 4ms, optimizer: 5ms, activation: 64MiB, weights: 300MiB}
p2p: {bytes: 1MiB, latency: 1ms}
generate: {schedule: 1f1b, ranks: 4, microbatches: 8}
END
check "bytes are drawn" drawn "$dir/bytes.yaml"
check "with peak, limit and optimizer" holds \
    '"limit 700 MiB" in text and "memory" in text and "optimizer" in text and text.count("opt") == 4 and
     any(re.fullmatch("5.. MiB", t) for t in text)'

# Many passes are merged.
"$SWSIM" generate 1f1b -p64 -m512 >"$dir/big.yaml"
check "64 ranks and 512 microbatches are drawn" drawn "$dir/big.yaml"
check "in blocks with their ranges" holds 'len(raw) < 250000 and "F 0–63" in text and "rank 63" in text'
if command -v dot >/dev/null; then
    check "the graph of a picture" exits 0 "$SWSIM" render "$dir/1f1b.yaml" -o "$dir/p.dot"
    check "is drawn by plain dot" exits 0 dot -Tsvg -o "$dir/p.svg" "$dir/p.dot"
    check "alike" holds 'len(passes) == 64 and "rank 3" in text'
else
    skip "no dot"
fi

# Runs: what was predicted, and what host threads did.
cat >"$dir/run.yaml" <<'END'
swplan: 1
name: run
stages: {F: 4ms, I: 4ms, W: 4ms, activation: 64MiB, weights: 300MiB}
machine: {memory: 900MiB}
p2p: {bytes: 1MiB, latency: 1ms}
generate: {schedule: zb_h1, ranks: 4, microbatches: 8}
END
check "a prediction is stored" exits 0 "$SWSIM" predict --db="$dir/run.db" "$dir/run.yaml"
check "and drawn as a schedule" drawn "$dir/run.db"
check "with all passes, where the plan's own picture has them" sh -c "
    grep -o 'rank [0-3]: [a-z ]* of microbatch [^\"]*' '$dir/p.svg' | sort >'$dir/stored' &&
    '$SWSIM' render -o '$dir/plan.svg' '$dir/run.yaml' &&
    grep -o 'rank [0-3]: [a-z ]* of microbatch [^\"]*' '$dir/plan.svg' | sort | cmp - '$dir/stored'"
check "and the same memory" holds '"limit 900 MiB" in text and "561 MiB" in text and
    any(t.startswith("simulated: 4 ranks, 8 microbatches") for t in text)'
check "a run on threads" exits 0 "$SWRUN" --db="$dir/run.db" "$dir/run.yaml"
check "is drawn as a schedule" drawn --palette=zero-bubble "$dir/run.db"
check "with its own times" holds 'len(passes) == 96 and "561 MiB" in text and "message" in text and
    any(t.startswith("measured on host: 4 ranks") for t in text)'
check "or as streams" drawn --as=timeline "$dir/run.db"
check "which have names" holds '"compute" in text and "p2p" in text'
check "chunks have shades there, too" exits 0 "$SWSIM" predict --p2p=edge --times=F=1ms,B=2ms,I=1ms,W=1ms --db="$dir/v.db" "$dir/v.yaml"
check "with overlapped pairs" drawn "$dir/v.db"
check "of two numbers" holds '"4+0" in text and "chunks 0 and 1" in text'
"$SWSIM" predict -q --db="$dir/hello.db" "$srcdir/plans/examples/hello.yaml" >"$dir/out"
check "other runs have no passes" complains 3 'no work of the run is named as a pass' \
    "$SWSIM" render --as=schedule -o "$dir/h.svg" "$dir/hello.db"

# Traces of jobs: passes are where annotations name them, without the waits for messages.
# imported NAMES RANKS MICROBATCHES [SHAPE]; $edit is a script for sed, of the traces.
edit=
imported()
{
    mkdir "$dir/job" && python3 "$srcdir/tests/pipeline_traces.py" "$dir/job" "$@" >"$dir/passes" &&
        sed -i "$edit" "$dir"/job/rank*.json && exits 0 "$SWSIM" import --db="$dir/job.db" "$dir/job" && drawn "$dir/job.db" || return
    rm -r "$dir/job" "$dir/job.db"
}
check "a trace with PyTorch's actions is a schedule" imported actions 4 8
check "with its passes" holds 'len(passes) == 64 and any(t.startswith("measured on profiler: 4 ranks, 8 microbatches, a step of 3.84 ms") for t in text)'
check "... messages of the job have no arrows" holds '"message" not in text and "rank 0, the most" in text'
edit='s/"PP:\([0-9]*\)B\([0-9]*\)"/"PP:\1I\2"/g'
check "backward passes for inputs alone" imported actions 2 4
check "are so named" holds '"backward for inputs" in text and "backward" not in text and len(passes) == 16'
edit='s/"PP:0F1"/"0F1_W0_is_no_action"/g; s/"PP:\([0-9]*\)B\([0-3]\)"/"PP:\1W\2"/g'
check "and for weights alone, beside a name that is no action" imported actions 2 4
check "are so named, too" holds '"backward for weights" in text and "backward" not in text and len(passes) == 15'
edit='s/"PP:\([0-9]*\)F\([1-3]\)"/"PP:(\1F\2;\1B0)OVERLAP_F_B"/g'
check "a forward and a backward pass at once" imported actions 2 4
check "have two numbers" holds '"forward and backward at once" in text and "3+0" in text'
edit=
check "and one without calls, by the device's annotations" imported actions 4 8 device
check "as long" holds 'len(passes) == 64 and any("a step of 3.84 ms" in t for t in text)'
check "and one with ScheduleGPipe's names" imported gpipe 2 3
check "of two ranks" holds 'len(passes) == 12 and any("2 ranks, 3 microbatches, a step of 1.36 ms" in t for t in text)'
mkdir "$dir/none" && python3 "$srcdir/tests/pipeline_traces.py" "$dir/none" none 2 3
"$SWSIM" import -q --db="$dir/none.db" "$dir/none" 2>"$dir/err"
mkdir "$dir/one" && python3 "$srcdir/tests/pipeline_traces.py" "$dir/one" actions 3 4 >"$dir/passes"
sed -i 's/"PP:1/"work 1/g; s/"PP:2/"work 2/g' "$dir/one/rank1.json" "$dir/one/rank2.json"
"$SWSIM" import -q --db="$dir/one.db" "$dir/one" 2>"$dir/err"
check "ranks without such names are said to be empty" complains 0 \
    '2 of 3 ranks, rank 1 first, have no work that is named as a pass' "$SWSIM" render -o "$dir/p.svg" "$dir/one.db"
check "the others are drawn" holds 'len(passes) == 8 and "rank 2" in text'
check "other names are no passes" complains 3 'no work of the run is named as a pass' \
    "$SWSIM" render --as=schedule -o "$dir/h.svg" "$dir/none.db"

# Plans that cannot be drawn.
cat >"$dir/hangs.yaml" <<'END'
swplan: 1
name: hangs
times: {F: 1ms, B: 2ms}
programs: ["0F0 0SEND_F0 0F1 0RECV_B0 0SEND_F1 0B0 0RECV_B1 0B1", "1RECV_F0 1F0 1B0 1RECV_F1 1F1 1SEND_B0 1B1 1SEND_B1"]
END
check "a schedule that hangs has no picture" complains 1 'the schedule hangs' "$SWSIM" render -o "$dir/h.svg" "$dir/hangs.yaml"
check "other plans have no palette" complains 2 'found --palette' \
    "$SWSIM" render --palette=pytorch -o "$dir/h.svg" "$srcdir/plans/examples/hello.yaml"
check "an unknown format" complains 2 'h.gif' "$SWSIM" render -o "$dir/h.gif" "$dir/1f1b.yaml"

done_testing
