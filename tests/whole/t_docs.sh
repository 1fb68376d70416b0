#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The documents show what the program prints: every command of their examples is typed, in order, and
# its output compared. An example is an indented or fenced block with a `$ ` in front of each command; lines
# of a block in front of its first command are shell too. A command goes on after a line that ends in `|` or `\`.
# `...` stands for any lines, and where no output is shown the command only has to do its work
# (exit status 0 or 1). Times the tool itself takes are left out of the comparison, and of a real run all
# figures. The plan in the README is the one in plans/examples, and the man pages have the options of --help.
#
#     SWSIM_UPDATE_DOCS=1 tests/whole/t_docs.sh     writes what the program prints now into the documents
. "${srcdir:-.}/tests/tap.sh"
[ -x "$SWSIM" ] || { echo "Bail out! SWSIM is to name the program swsim"; exit 1; }
programs=$(cd "$(dirname "$SWSIM")" && pwd) || exit 1
cd "${srcdir:-.}" || exit 1
ln -s "$PWD/plans" "$PWD/doc" "$dir"
PATH=$programs:$programs/doc/examples/dlrm:$PATH

# tagged FILE: its lines, each behind a letter: D text, S shell in front of a command, C a command or the rest
# of one, O output; and behind each command's output a line E with what output lines begin with.
tagged()
{
    awk '
    function finish() { if (in_command) print "E" indent; in_command = 0; goes_on = 0 }
    /^```/ { finish(); fenced = !fenced; block = 0; print "D" $0; next }
    {
        indent = fenced ? "" : "    "
        if (!fenced && !/^    / && !(/^$/ && block)) { finish(); block = 0; print "D" $0; next }
        block = 1
        text = substr($0, length(indent) + 1)
        if (text ~ /^\$ /) { finish(); in_command = 1; goes_on = 1 }
        if (goes_on) { print "C" $0; goes_on = text ~ /[|\\]$/ }
        else print (in_command ? "O" text : "S" $0)
    }
    END { finish() }' "$1"
}

# Output as it is compared: without the tool's own times; where the command runs or lists real runs,
# without figures.
comparable()
{
    awk '/  found a violation in .*; still searching$/ { early = 1; next } /^[^ ]/ { early = 0 } !early' | # of a slow machine
    sed -E 's/^(.*  (proved|violated|undecided) .*[^ ]) +[0-9.]+ [mun]?s$/\1/
            s/^(  [0-9]+ tasks simulated in )[0-9.]+ [mun]?s/\1/' |
        if grep -qE 'swrun|swsim (runs|compare)' "$dir/command"; then
            if grep -q 'swrun.* broken.yaml' "$dir/command"; then # its race may go either way
                sed -E '/^  (race|value|results) |^swrun: note: rank|^swrun: error: hello: the results differ/d'
            else
                cat
            fi | sed -E 's/[0-9]+(\.[0-9]+)?( ?([mun]?s|%)|x)?|[0-9]{4}-[0-9-]+ [0-9:]+/N/g; s/[#.]{5,}//; s/^(  step +)[^ ]*/\1/; s/ +/ /g'
        else
            cat
        fi | sed -E -e 's/ +$//' -e :a -e '/^\n*$/{$d;N;ba' -e '}'
}

# matches WANT GOT: equal, where a line `...` of WANT stands for any number of lines.
matches()
{
    comparable <"$1" >"$dir/want.lines"
    comparable <"$2" >"$dir/got.lines"
    awk '
    function here(w, g) {
        while (w <= n_want && want[w] !~ /^ *\.\.\.$/)
            if (g > n_got || want[w++] != got[g++]) return 0
        if (w > n_want) return g > n_got
        for (; g <= n_got + 1; g++) if (here(w + 1, g)) return 1
        return 0
    }
    FILENAME == ARGV[1] { want[++n_want] = $0; next }
    { got[++n_got] = $0 }
    END { exit !here(1, 1) }' "$dir/want.lines" "$dir/got.lines" && return
    diff "$dir/want.lines" "$dir/got.lines"
}

# The command in $dir/command, typed behind those before it, prints what $dir/want says, messages too.
status=0
try()
{
    if grep -q '^sqlite3 ' "$dir/command" && ! command -v sqlite3 >/dev/null; then
        skip "$doc: no sqlite3 here"
        sed "s/^\(.\)/$indent\1/" "$dir/want" >>"$dir/new"
        return
    fi
    { cat "$dir/before"; echo "(exit $status)"; cat "$dir/command"; } >"$dir/shell"
    (cd "$dir" && bash "$dir/shell") >"$dir/got" 2>&1 </dev/null
    status=$?
    : >"$dir/difference"
    if [ ! -s "$dir/want" ]; then
        [ "$status" -le 1 ] || { echo "exit status $status"; cat "$dir/got"; } >"$dir/difference"
    elif matches "$dir/want" "$dir/got" >"$dir/difference"; then
        sed "s/^\(.\)/$indent\1/" "$dir/want" >>"$dir/new"
    else
        sed "s/^\(.\)/$indent\1/" "$dir/got" >>"$dir/new"
        [ -z "$(tail -n 1 "$dir/want")" ] && echo >>"$dir/new"
    fi
    check "$doc: $(head -n 1 "$dir/command" | cut -c 1-90)" same
}

same()
{
    cat "$dir/difference"
    test ! -s "$dir/difference"
}

for doc in README.md doc/tour.md doc/hangs.md doc/stalls.md doc/architecture.md doc/tutorial.md doc/tutorial-plans.md doc/tutorial-run.md doc/predict.md doc/predict-shared.md doc/tuning.md doc/repairs.md \
    doc/coming-from.md doc/pipeline-parallel.md; do
    : >"$dir/before" >"$dir/command" >"$dir/want" >"$dir/new"
    while IFS= read -r line; do
        raw=${line:1}
        text=${raw#    }
        case $line in
        O*) printf '%s\n' "$raw" >>"$dir/want" ;;
        E*)
            indent=$raw
            try
            : >"$dir/command" >"$dir/want"
            ;;
        *)
            printf '%s\n' "$raw" >>"$dir/new"
            [[ $line = S* && $text =~ ^[a-z_]+= ]] && printf '%s\n' "$text" >>"$dir/before"
            [[ $line = C* ]] && printf '%s\n' "${text#\$ }" >>"$dir/command"
            ;;
        esac
    done < <(tagged "$doc")
    [ -z "${SWSIM_UPDATE_DOCS-}" ] || cp "$dir/new" "$doc"
done

# Every name of C that the page for newcomers has is in a header, and every plan of its tables is there.
names_exist()
{
    missing=
    for name in $(grep -oE '\b(swpipe_[a-z_]*[a-z]|SWPIPE_[A-Z]+)\b' doc/coming-from.md | sort -u); do
        grep -qw "$name" gpu/lib/swpipe*.h || missing="$missing $name"
    done
    for plan in $(awk -F'|' '/^## / { here = /TorchRec/ } here && NF > 3 { print $3 }' doc/coming-from.md |
        grep -oE '`[a-z_]+`' | tr -d '`'); do
        [ -f "plans/torchrec/$plan.yaml" ] || missing="$missing $plan"
    done
    echo "$missing"
    [ -z "$missing" ]
}
check "doc/coming-from.md: its names exist" names_exist

# documented TAG PAGE: the long options behind TAG in the OPTIONS of a man page, one a line.
documented()
{
    awk -v tag="$1" '/^\.Sh /{ inside = /OPTIONS|RANK PROGRAMS/ } inside && index($0, tag) == 1' \
        "doc/$2" | grep -oE ' -[a-z][a-z0-9-]+' | sed 's/^ /-/'
}

# offered COMMAND...: those that its --help lists.
offered()
{
    "$@" --help | grep -oE '^ +(-[a-zA-Z], )?--[a-z0-9-]+' | grep -oE -- '--[a-z0-9-]+'
}

# A verb's page describes the options that it has, and no others; NAME and swsim.1 have the words of `swsim --help`.
for verb in $(swsim --help | sed -n '/^Verbs:/,/^$/ { s/^  \([a-z]*\) .*/\1/p }'); do
    [ "$verb" != help ] || continue
    page=swsim-$verb.1
    case $verb in record | dry | watch | mcp) unlimited=--limit ;; *) unlimited=none ;; esac
    check "$page: the options of $verb" diff <({ documented .It swsim.1 | grep -vx -- "$unlimited"; documented .It "$page"; } | sort -u) \
        <(offered swsim "$verb" | sort -u)
    check "$page: what it is for" diff <(sed -n 's/^\.Nd //p' "doc/$page") <(swsim --help | sed -n "s/^  $verb  *[A-Z|.]*  *//p")
    check "swsim.1: $verb" diff <(sed -n 's/^\.Nd //p' "doc/$page") <(sed -n "/^\.It Xr swsim-$verb 1/ { n; p; }" doc/swsim.1)
    check "swsim help $verb" diff <(swsim help "$verb") <(swsim "$verb" --help)
done
check "swrun.1: its options" diff <(documented .It swrun.1 | sort -u) <(offered swrun | sort -u)

# The README's plan is a file, and its pictures are there.
sed -n '/^```yaml/,/^```$/p' README.md | sed '1d; $d' >"$dir/plan.yaml"
check "README.md: its plan is verified as it expects" swsim verify --expect "$dir/plan.yaml"
sed '/^#/d' plans/examples/hello.yaml >"$dir/hello.yaml"
check "README.md: and is plans/examples/hello.yaml" diff "$dir/plan.yaml" "$dir/hello.yaml"
for picture in $(sed -n 's/^!\[.*(\(.*\))$/\1/p' README.md); do
    check "README.md: $picture is there" test -s "$picture"
done

# The repairs of all broken plans are listed.
unlisted()
{
    for plan in plans/*/*_broken.yaml; do
        name=${plan#plans/}
        grep -qE "^\|.* ?${name%.yaml}\b" doc/repairs.md || echo "$name"
    done
}
check "doc/repairs.md: a row for every broken plan" test -z "$(unlisted)"
done_testing
