#!/bin/sh
# The README's commands do what it shows: every `$ swsim verify plans/...` in it is run and compared, times
# aside; its plan is the one in plans/examples.
. "${srcdir:-.}/tests/tap.sh"
cd "${srcdir:-.}" || exit 1
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT

# Without times, which differ from run to run.
timeless()
{
    sed 's/[0-9.]* [munk]*s$//; s/ *$//'
}

# same_output COMMAND...: the README's block for the command is what it prints.
same_output()
{
    "$SWSIM" "$@" | timeless >"$tmp/got"
    sed -n "/^    \\$ swsim $(echo "$*" | sed 's/[\/.]/\\&/g')\$/,/^\$/p" README.md | sed '1d; $d; s/^    //' |
        timeless >"$tmp/shown"
    diff "$tmp/shown" "$tmp/got"
}

for plan in $(sed -n 's/^    \$ swsim verify \(plans[^ ]*\)$/\1/p' README.md); do
    check "swsim verify $plan" same_output verify "$plan"
done
sed -n '/^```yaml/,/^```$/p' README.md | sed '1d; $d' >"$tmp/plan.yaml"
check "its plan is verified as it expects" "$SWSIM" verify --expect "$tmp/plan.yaml"
sed '/^#/d' plans/examples/hello.yaml >"$tmp/hello.yaml"
check "and is plans/examples/hello.yaml" diff "$tmp/plan.yaml" "$tmp/hello.yaml"
check "its picture is there" test -s doc/sparse_dist.svg
done_testing
