#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# `swsim render` of runs: parts, sizes, looks, two runs on one axis, work under a pixel, ranks alike.
. "${srcdir:-.}/tests/tap.sh"
command -v python3 >/dev/null || skip_all "no python3"
"$SWSIM" render "$srcdir/plans/examples/hello.yaml" -o "$dir/probe.dot" 2>/dev/null || skip_all "no Graphviz"
plan=$srcdir/plans/torchrec/sparse_dist.yaml
"$SWSIM" predict -q -n 400 --db="$dir/r.db" "$plan" >"$dir/out"
"$SWSIM" predict -q -n 8 --db="$dir/r.db" "$plan" >"$dir/out"

drawn()
{
    exits 0 "$SWSIM" render -o "$dir/p.svg" "$@"
}

# holds EXPRESSION: of `text`, the words of the picture, `width` of it, and `boxes`: (tooltip, fill, left, right, top, bottom)
holds()
{
    python3 - "$dir/p.svg" "$1" <<'END2'
import re, sys, xml.dom.minidom
svg = xml.dom.minidom.parseString(open(sys.argv[1]).read())
text = [t.firstChild.data for t in svg.getElementsByTagName("text") if t.firstChild]
width, height = (float(svg.documentElement.getAttribute(side).rstrip("pt")) for side in ("width", "height"))
boxes = []
for a in svg.getElementsByTagName("a"):
    polygon = a.getElementsByTagName("polygon")[0]
    points = [[float(v) for v in p.split(",")] for p in polygon.getAttribute("points").split()]
    x, y = [p[0] for p in points], [p[1] for p in points]
    boxes.append((a.getAttribute("xlink:title"), polygon.getAttribute("fill"), min(x), max(x), min(y), max(y)))
fills = {}
for words, fill, *_ in boxes:
    if "waits for" not in words and "merged" not in words:
        fills.setdefault(words.split()[0].rstrip(";"), set()).add(fill)
if not eval("(" + sys.argv[2] + ")"):
    sys.exit("%s\n%s\n%s" % (sys.argv[2], text[:30], boxes[:4]))
END2
}

check "all iterations" drawn --all "$dir/r.db:1"
check "are merged, not overdrawn" holds 'len(boxes) < 6000 and any("merged" in b[0] for b in boxes)'
check "a copy that is busy for 28% of the time has 28% of the height" holds \
    'max((b for b in boxes if "stream memcpy" in b[0] and b[0].startswith("H2D")), key=lambda b: b[3] - b[2])[5] -
     max((b for b in boxes if "stream memcpy" in b[0] and b[0].startswith("H2D")), key=lambda b: b[3] - b[2])[4] in (6, 7, 8)'
check "equal ranks are drawn once" holds '"ranks 0-1 alike: streams" in text and text.count("memcpy") == 1'
check "the legend says how" holds '"narrow work is merged: heights are shares of the time" in text'

check "the first iterations" drawn "$dir/r.db:1"
check "have colours" holds 'len(fills["Forward"]) == 1 and not open("'"$dir"'/fills", "w").write(repr(sorted((k, sorted(v)) for k, v in fills.items() if k in ("H2D", "Forward", "Backward", "EmbLookup"))))==0'
check "later ones" drawn --iterations=300..304 "$dir/r.db:1"
check "have the same" holds 'open("'"$dir"'/fills").read() == repr(sorted((k, sorted(v)) for k, v in fills.items() if k in ("H2D", "Forward", "Backward", "EmbLookup")))'
check "a part of the time" drawn --time=3s..3050ms --stream='ma*,nccl' --width=700 "$dir/r.db:1"
check "of some streams, as wide as asked for" holds \
    '"main" in text and "nccl" in text and "memcpy" not in text and abs(width - 700) < 1 and "3.02 s" in text'
check "one rank" drawn --rank=1 "$dir/r.db:1"
check "stands alone" holds '"streams" in text and all("rank 1 " in b[0] for b in boxes)'
check "greys" drawn --bw "$dir/r.db:1"
check "have no hue" holds 'all(b[1] == "none" or b[1] in ("white", "black") or not b[1].startswith("#") or len({b[1][i:i+2] for i in (1, 3, 5)}) == 1 for b in boxes)'
for theme in light dark paper; do
    check "theme $theme" drawn --theme=$theme "$dir/r.db:1"
    md5sum <"$dir/p.svg" >>"$dir/themes"
done
check "themes differ" sh -c "sort -u '$dir/themes' | wc -l | grep -qx 3"
check "larger labels" drawn --font-size=18 --width=1400 "$dir/r.db:1"
check "on a sheet of that width" holds 'abs(width - 1400) < 1'
check "the waits of greys have one key" sh -c "'$SWSIM' render --bw -o '$dir/p.svg' '$dir/r.db:1' && grep -c '>waiting' '$dir/p.svg' | grep -qx 1"
check "two runs" drawn "$dir/r.db:1" "$dir/r.db:2" --iterations=2..4
check "named apart, on one axis" holds 'text.count("TrainPipelineSparseDist, r.db:1") == text.count("TrainPipelineSparseDist, r.db:2") == 1 and
    text.count("0 ms") == 2 and
    len({b[2] for b in boxes if b[0].startswith("H2D 4;")}) == 1'
check "the shorter one's axis is as long" sh -c "'$SWSIM' render --all -o '$dir/p.svg' '$dir/r.db:1' '$dir/r.db:2' && grep -c '>4.0 s<' '$dir/p.svg' | grep -qx 2"
"$SWSIM" generate 1f1b -p4 -m8 >"$dir/a.yaml"
"$SWSIM" generate zb_h1 -p4 -m8 >"$dir/b.yaml"
check "two schedules" drawn "$dir/a.yaml" "$dir/b.yaml"
check "on one axis, the shorter one shorter" holds '"1f1b-p4-m8" in text and "zb_h1-p4-m8" in text and
    max(b[3] for b in boxes if b[4] > height - 300) < max(b[3] for b in boxes) - 20'
"$SWSIM" render -o "$dir/p.svg" "$srcdir/plans/bugs/nccl_send_send_broken.yaml"
check "rank 0 is on top of a graph of host programs" holds \
    '(lambda tops: tops["r0.train"] < tops["r1.train"])({t.firstChild.data: float(t.getAttribute("y")) for t in svg.getElementsByTagName("text")})'
# The edges of a picture in DOT, by the first line of their boxes and by their label.
edges()
{
    "$SWSIM" render -o "$dir/e.dot" "$@" && python3 - "$dir/e.dot" <<'END2'
import re, sys
text = open(sys.argv[1]).read()
boxes = dict(re.findall(r'\b(n\d+)\s+\[[^\]]*?label="([^"\\]*)', text))
edges = re.findall(r'\b(n\d+) -> (n\d+)\s*(\[[^\]]*\])?', text)
found = [(int(a[1:]), int(b[1:]), "%s > %s: %s" % (boxes[a], boxes[b], re.search('label=(\\w+)', how).group(1))) for a, b, how in edges if "label=" in how]
print("; ".join(sorted({words for a, b, words in found})))
if any(a >= b for a, b, words in found) or len({a for a, b, words in found}) < len(found):
    sys.exit("a wait finds the last record in front of it: %s" % found)
END2
}
graph_events()
{
    edges "$@" >"$dir/edges"
    grep -qx 'launch step > wait ready: ready; record copied > launch step: copied' "$dir/edges" || { cat "$dir/edges"; return 1; }
}
check "a launch of a graph and the events of its operations" graph_events "$srcdir/plans/reality/graph_event_fixed.yaml"
# Folded, such a launch stays a box of its own.
sed '/^threads:/,$d' "$srcdir/plans/reality/graph_event_fixed.yaml" >"$dir/long.yaml"
{
    printf 'threads:\n  r0.serve:\n'
    for i in $(seq 30); do
        printf '    - {launch: before, stream: main}\n    - {launch: step, graph: true, stream: main}\n'
        printf '    - {wait: ready, stream: d2h}\n    - {copy: d2h, bytes: 1MiB, stream: d2h, reads: [logits]}\n    - {record: copied, stream: d2h}\n'
    done
} >>"$dir/long.yaml"
check "... in a long program" graph_events "$dir/long.yaml"
check "a schedule is not beside a timeline" complains 2 'do not stand on one axis' \
    "$SWSIM" render -o "$dir/x.svg" "$dir/a.yaml" "$dir/r.db"
check "a graph has no axis" complains 2 'no axis of time' "$SWSIM" render -o "$dir/x.svg" "$plan" "$dir/r.db"

check "to standard output" sh -c "'$SWSIM' render --format=svg -o - '$dir/r.db:1' | grep -q '^</svg>'"
check "PDF" exits 0 "$SWSIM" render -o "$dir/p.pdf" "$dir/r.db:1"
check "is one" sh -c "head -c 5 '$dir/p.pdf' | grep -q %PDF"
for bad in --time=5ms --time=9ms..3ms --iterations=x --rank=3-1 --rank=a --time=..; do
    check "wrong: $bad" exits 2 "$SWSIM" render $bad -o "$dir/x.svg" "$dir/r.db"
done
check "nothing in that time" complains 3 'no work in this time' "$SWSIM" render --time=1000s..1001s -o "$dir/x.svg" "$dir/r.db"

done_testing
