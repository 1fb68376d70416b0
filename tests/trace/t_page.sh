#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# `swsim render -o x.html`: its data without a browser; what it shows, in Chromium where that is installed.
. "${srcdir:-.}/tests/tap.sh"
command -v python3 >/dev/null || skip_all "no python3"
sed 's/^name: .*/name: "<\/script><b>\&"/' "$srcdir/plans/examples/hello.yaml" >"$dir/hello.yaml"
"$SWSIM" predict -q -n 40 --db="$dir/r.db" "$dir/hello.yaml" >"$dir/out"
"$SWSIM" predict -q -n 5 --db="$dir/r.db" "$dir/hello.yaml" >"$dir/out"

# holds EXPRESSION: of `page`, `data` of its script, `run`, the first one, and `spans`, columns of its spans by name
holds()
{
    python3 - "$dir/p.html" "$1" <<'END2'
import base64, json, re, struct, sys
page = open(sys.argv[1]).read()
scripts = re.findall(r"<script.*?>(.*?)</script>", page, re.S)
data = json.loads(scripts[0])
def column(run, key):
    width, text = run[key].split(":")
    raw, kind = base64.b64decode(text), {"1": "B", "2": "H", "4": "I", "8": "d"}[width]
    return struct.unpack("<%d%s" % (len(raw) // int(width), kind), raw)
def columns(run):
    keys = [k for k in ("starts", "lengths", "names_of", "iterations_of", "causes_of", "others_of") if k in run]
    return [dict(zip([k.split("s_of")[0].rstrip("s") for k in keys], s)) for s in zip(*[column(run, k) for k in keys])]
run = data["runs"][0]
spans = columns(run)
path = [spans[i] for i in run["path"]]
edges = list(zip(column(run, "edges_from"), column(run, "edges_to")))
if not eval("(" + sys.argv[2] + ")"):
    sys.exit("%s\n%s\n%s" % (sys.argv[2], spans[:5], run["agents"]))
END2
}

# A run that is too large for a page: a window around its longest stall.
"$SWSIM" predict -q -n 20000 --db="$dir/large.db" "$dir/hello.yaml" >"$dir/out"
check "a run of 166,663 spans is told to be too large" says "too many for a page: it shows .* around the longest" \
    "$SWSIM" render -o "$dir/p.html" "$dir/large.db"
check "... its page is under 20 MB" test "$(wc -c <"$dir/p.html")" -lt 20000000
check "... and says what it shows, and the ten longest stalls" holds '"around its longest stall; the longest: " in run["about"] and run["about"].count(" on rank ") == 10'
check "a time is what was asked for" says "^0$" sh -c "'$SWSIM' render --time=1s..2s -o '$dir/p.html' '$dir/large.db' 2>&1 | grep -c 'too many'"

check "a run is a page" exits 0 "$SWSIM" render -o "$dir/p.html" "$dir/r.db:1"
check "of one file: nothing is fetched" sh -c "! grep -qE '(src|href)=|https?://|@import|fetch\\(|XMLHttp' '$dir/p.html'"
check "with two scripts, whatever names say" holds 'len(scripts) == 2 and run["title"] == "</script><b>&"'
check "all its spans" holds 'len(spans) > 100 and all(s["length"] >= 0 and s["start"] + s["length"] <= run["end"] for s in spans)'
check "in the order of their starts on each agent" holds \
    'all(a["start"] <= b["start"] for i, (a, b) in enumerate(zip(spans, spans[1:])) if i + 1 not in [g["first"] for g in run["agents"]])'
check "with names, colours and causes" holds \
    'all(0 <= s["name"] < len(run["names"]) and 0 <= s["cause"] <= len(run["causes"]) for s in spans) and
     len(run["names"]) == len(run["color"]) and len(run["causes"]) == len(run["look"]) and
     {run["names"][s["name"]] for s in spans if s["cause"] == 0} >= {"CopyIn", "Compute", "CopyOut"}'
check "edges lead from one span to another" holds 'edges and all(0 <= a < len(spans) and 0 <= b < len(spans) for a, b in edges)'
check "every iteration" holds 'len({i[1] for i in run["iterations"]}) == 40'
check "the critical path goes forward, over work, to the end" holds \
    'len(path) > 40 and all(s["cause"] == 0 for s in path) and all(a["start"] <= b["start"] for a, b in zip(path, path[1:])) and
     path[-1]["start"] + path[-1]["length"] == max(s["start"] + s["length"] for s in spans if s["cause"] == 0)'

# same_path: from the end of the first step of predict's path on, the page's has the same work at the same times
same_path()
{
    rm -f "$dir/c.db"
    "$SWSIM" predict -q -n 12 --driver="$2" --critical-path=11 --json --db="$dir/c.db" "$srcdir/plans/$1.yaml" >"$dir/predicted" || return 1
    "$SWSIM" render -o "$dir/p.html" "$dir/c.db" || return 1
    holds 'any(len(work) > 5 and work == steps for foretold in [json.loads(open(sys.argv[1].replace("p.html", "predicted")).readline())["critical_path"]]
        for begin in [foretold["start_ns"] + foretold["steps"][0]["duration_ns"]]
        for steps in [[(s["task"], s["start_ns"], s["duration_ns"]) for s in foretold["steps"] if s["start_ns"] >= begin]]
        for work in [[(run["names"][s["name"]], s["start"], s["length"]) for s in path if s["start"] >= begin]])'
}
for plan in torchrec/base torchrec/sparse_dist torchrec/pt2 torchrec/semi_sync.ready_first torchrec/prefetch \
    torchrec/sparse_dist.two_groups examples/two_ranks examples/shared_device reference/semi_sync; do
    check "$plan: the path that predict has" same_path $plan clock
done
check "examples/two_ranks, data-flow: the path that predict has" same_path examples/two_ranks dataflow

"$SWSIM" render -o "$dir/p.html" "$dir/r.db:1"
# Ranks alike are embedded once; the path may lead through any of them.
"$SWSIM" predict -q -n 12 --ranks=8 --driver=clock --critical-path=11 --json --db="$dir/eight.db" "$srcdir/plans/torchrec/sparse_dist.yaml" >"$dir/predicted"
check "eight ranks" exits 0 "$SWSIM" render -o "$dir/p.html" "$dir/eight.db"
check "are one, as all do the same" holds '{a["rank"] for a in run["agents"]} == {0} and {a["ranks"] for a in run["agents"]} == {"ranks 0-7 alike:"} and
    {i[0] for i in run["iterations"]} == {0} and edges and all(0 <= a < len(spans) and 0 <= b < len(spans) for a, b in edges)'
check "with the whole path" holds 'sum(s["length"] for s in path) == path[-1]["start"] + path[-1]["length"] - path[0]["start"]'
check "a rank of them is alone" sh -c "'$SWSIM' render --rank=3 -o '$dir/p.html' '$dir/eight.db'"
check "... with its number" holds '{a["rank"] for a in run["agents"]} == {3} and not any("ranks" in a for a in run["agents"])'
"$SWSIM" render -o "$dir/p.html" "$dir/r.db:1"
check "two runs" exits 0 "$SWSIM" render -o "$dir/p.html" "$dir/r.db:1" "$dir/r.db:2" --stream='*'
check "are both there" holds 'len(data["runs"]) == 2 and len(columns(data["runs"][1])) < len(spans)'
check "to standard output" sh -c "'$SWSIM' render --format=html -o - '$dir/r.db' | grep -q '^</html>'"
check "a plan has no times" complains 2 'a plan has no times' "$SWSIM" render -o "$dir/x.json" "$dir/hello.yaml"

# Schedules, of a plan and of a run; the graph of a plan; a counterexample.
"$SWSIM" generate 1f1b -p4 -m8 >"$dir/1f1b.yaml"
"$SWSIM" generate dualpipe -p4 -m8 >"$dir/dualpipe.yaml"
check "the schedule of a plan is a page" exits 0 "$SWSIM" render -o "$dir/p.html" "$dir/1f1b.yaml"
check "a lane for each rank, a box for each pass" holds 'run["form"] == "schedule" and [a["name"] for a in run["agents"]] == ["rank %d" % r for r in range(4)] and
    len(spans) == 4 * 8 * 2 and sorted(run["names"]) == ["backward", "forward"] and {s["iteration"] for s in spans} == set(range(1, 9))'
check "what a rank holds: as many activations as passes ahead" holds \
    'max(column(run["memory"], "bytes")[:run["memory"]["first"][1]]) == 4 * run["memory"]["activation"]'
check "its caption says what decides the bubble" holds '"bubble" in run["about"] and "channel group: all messages of a rank in one order" in run["about"]'
"$SWSIM" predict -q --times=F=1ms,B=2ms --db="$dir/s.db" "$dir/1f1b.yaml" >"$dir/out"
check "that of a run, too" exits 0 "$SWSIM" render -o "$dir/p.html" "$dir/s.db"
check "with its times" holds 'run["form"] == "schedule" and run["unit"] == 0 and {s["length"] for s in spans} == {1000000, 2000000}'
check "as a timeline if asked for" sh -c "'$SWSIM' render --as=timeline -o '$dir/p.html' '$dir/s.db'"
check "... with its streams" holds 'run["form"] == "timeline" and {a["kind"] for a in run["agents"]} >= {"stream"}'
check "two schedules" exits 0 "$SWSIM" render -o "$dir/p.html" "$dir/1f1b.yaml" "$dir/dualpipe.yaml"
check "... on one page" holds 'len(data["runs"]) == 2 and any(s["other"] for s in columns(data["runs"][1]))'
"$SWSIM" generate 1f1b -p64 -m512 | "$SWSIM" render -o "$dir/large.html" -
check "64 ranks and 512 microbatches take less than 3 MB" test "$(wc -c <"$dir/large.html")" -lt 3000000
"$SWSIM" verify -q --witness="$dir/w.db" "$srcdir/plans/bugs/nccl_one_slot_same_order_broken.yaml" >"$dir/out"
check "a counterexample is a page" exits 0 "$SWSIM" render -o "$dir/w.html" "$dir/w.db"
cp "$dir/w.html" "$dir/p.html"
check "with the words of its steps, and its cycle" holds 'run["form"] == "story" and len(run["story"]["steps"]) == 6 and
    run["story"]["steps"][0].startswith("rank 0 thread train pushes") and len(run["story"]["cycle"]) == 4'
if "$SWSIM" render "$srcdir/plans/examples/hello.yaml" -o "$dir/g.html" 2>"$dir/err"; then
    check "the graph of a plan is a page with its picture" sh -c "grep -q '<svg' '$dir/g.html' && grep -q CopyOut '$dir/g.html'"
else
    skip "no Graphviz"
fi

browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome)
if [ -z "$browser" ]; then
    skip "no Chromium"
    done_testing
    exit
fi
"$SWSIM" render -o "$dir/p.html" "$dir/r.db:1"
# seen HASH PATTERN: the page, opened at #HASH, says this of itself
seen()
{
    HOME=$dir timeout 120 "$browser" --headless=new --no-sandbox --disable-gpu --disable-dev-shm-usage --window-size=1200,600 \
        --user-data-dir="$dir/browser" --dump-dom "file://$dir/p.html#$1" 2>"$dir/err" >"$dir/dom"
    tr '\n' ' ' <"$dir/dom" | grep -o '<body[^>]*>' >"$dir/body"
    cat "$dir/body"
    grep -qE "$2" "$dir/body"
}
check "it opens in Chromium" seen '' 'data-boxes="[0-9]{3,}" data-lanes="[2-9]" data-form="timeline" data-wrong="0" data-drawn="[0-9]{2,}"'
check "it finds a name" seen 'q=Compute' 'data-found="[0-9]{2,}"'
check "it shows a part, and the path" seen 'path&from=1000000&to=9000000' 'data-start="1000000" data-end="9000000"'
check "it shows iterations" seen 'steps' 'data-drawn="[0-9]{2,}"'
check "it tells what is under the pointer" seen 'at=0,100000' 'data-words="[^"]*rank 0'
check "it has no wrong parts in its address" seen 'path' 'data-wrong="0"'
check "... and says so where it has" seen 'zoo=1&from=x' 'data-wrong="2"'
check "names are texts" sh -c "grep -q '&lt;/script&gt;&lt;b&gt;' '$dir/dom'"


# driven NAME PATTERN FILE COMMAND...: what the commands of browser.py print, on one line, has this
driven()
{
    pattern=$1 file=$2
    shift 2
    HOME=$dir timeout 120 python3 "$srcdir/tests/trace/browser.py" "$browser" "file://$file" "$@" >"$dir/out" 2>"$dir/err"
    cat "$dir/out" "$dir/err"
    tr '\n' ' ' <"$dir/out" | grep -q "$pattern"
}
"$SWSIM" render -o "$dir/p.html" "$dir/r.db:1"
check "? shows the keys" driven 'true false' "$dir/p.html" 'eval byId("help").hidden' 'key ?' 'eval byId("help").hidden'
check "w zooms in, and the address has it" driven 'from=[0-9]*&to=[0-9]' "$dir/p.html" 'key w' 'until location.hash' 'eval location.hash'
check "a group folds, and the address has it" driven '3 .*fold=0.0s' "$dir/p.html" 'eval fold(rows[0].key), lanes[0].height' 'until location.hash' 'eval location.hash'
check "lanes grow with the window" driven 'true' "$dir/p.html" 'size 1400,340' 'until sheetHeight < 300' 'eval window.low = lanes[0].height' 'size 1400,900' 'until sheetHeight > 600' 'eval lanes[0].height > low'
check "an address opens what it holds" driven '1000000 true' "$dir/p.html#from=1000000&to=9000000&fold=0.0s" 'eval view.start' 'eval view.folded.has("0.0s")'
check "64 ranks fit the window, with a legend" driven 'true 64 true "forwardbackwardbubble"' "$dir/large.html" 'eval bar.hidden' \
    'eval lanes.length' 'eval lanes[63].y + lanes[63].height < sheetHeight - memoryHeight()' 'eval byId("legend").textContent'
check "+ makes them higher, with a scrollbar, and the address has it" driven 'true false .*tall=[0-9.]*' "$dir/large.html" 'eval window.low = lanes[0].height' \
    'key +' 'key +' 'key +' 'until location.hash' 'eval lanes[0].height > 1.8 * low' 'eval bar.hidden' 'eval location.hash'
# What a frame costs is the boxes that it fills: a millisecond for about 5,000.
drawn='(view.start = 0, view.end = extent() / PART, draw(), drawn < 8000 && drawn > 100 ? "few" : drawn)'
check "a frame of 64 ranks and 512 microbatches fills few boxes, however it is zoomed" driven '^"few" "few" "few" "few" $' "$dir/large.html" \
    "eval $(echo "$drawn" | sed s/PART/1/)" "eval $(echo "$drawn" | sed s/PART/4/)" "eval $(echo "$drawn" | sed s/PART/10/)" \
    'key +' 'key +' 'key +' "eval $(echo "$drawn" | sed s/PART/10/)"
check "a bubble stays one, though a node of its lane spans it" driven '^true true true $' "$dir/large.html" 'eval window.grey = (rank, f) => {
    const lane = lanes[rank], seen = paint.getImageData(xOf(f * data.runs[0].unit), lane.y + lane.height - 2, 1, 1).data;
    return Math.abs(seen[0] - seen[2]) < 30; }, grey(20, 100)' 'eval grey(33, 90)' 'eval grey(57, 69)'
check "a schedule has no empty views" driven 'true true' "$dir/large.html" 'eval byId("steps").hidden' 'eval byId("path").hidden'
check "a counterexample goes step by step" driven '"the end" "step 6 of 6" .*step=6' "$dir/w.html" \
    'eval byId("at").textContent' 'key ArrowLeft' 'eval byId("at").textContent' 'until location.hash.includes("=6")' 'eval location.hash'
check "... to its end, and all ranks have their streams in one order" driven '"step 6 the end" "dp_comm tp_comm train dp_comm tp_comm train"' "$dir/w.html" \
    'eval time(5) + " " + time(6) + time(7)' 'eval lanes.map((l) => l.agent.name).join(" ")'
done_testing
