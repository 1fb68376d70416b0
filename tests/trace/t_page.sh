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
def column(run, key, kind):
    raw = base64.b64decode(run[key])
    return struct.unpack("<%d%s" % (len(raw) // struct.calcsize(kind), kind), raw)
def columns(run):
    return [dict(zip(("start", "length", "name", "iteration", "cause"), s)) for s in zip(
        column(run, "starts", "d"), column(run, "lengths", "d"), column(run, "names_of", "i"),
        column(run, "iterations_of", "i"), column(run, "causes_of", "i"))]
run = data["runs"][0]
spans = columns(run)
path = [spans[i] for i in run["path"]]
edges = list(zip(column(run, "edges_from", "i"), column(run, "edges_to", "i")))
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
check "a plan has no times" complains 2 'a plan has no times' "$SWSIM" render -o "$dir/x.html" "$dir/hello.yaml"

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
check "it opens in Chromium" seen '' 'data-boxes="[0-9]{3,}" data-lanes="[2-9]" data-drawn="[0-9]{2,}"'
check "it finds a name" seen 'q=Compute' 'data-found="[0-9]{2,}"'
check "it shows a part, and the path" seen 'path&from=1000000&to=9000000' 'data-start="1000000" data-end="9000000"'
check "it shows iterations" seen 'steps' 'data-drawn="[0-9]{2,}"'
check "it tells what is under the pointer" seen 'at=0,100000' 'data-words="[^"]*rank 0'
check "names are texts" sh -c "grep -q '&lt;/script&gt;&lt;b&gt;' '$dir/dom'"

done_testing
