#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What CI systems run, as far as a machine without a network can: the steps of action.yml, the entry of .pre-commit-hooks.yaml on
# the files that it selects, the programs and packages of the Dockerfile.
. "${srcdir:-.}/tests/tap.sh"
srcdir=$(cd "$srcdir" && pwd)
command -v python3 >/dev/null || skip_all "no python3 to read the files"
command -v bash >/dev/null || skip_all "no bash, which a step of an action runs in"

# part FILE KEY...: a value of a YAML file of two levels, as these are written: KEY: VALUE, or KEY: | and a block.
part()
{
    python3 - "$@" <<'END'
import re, sys
text, wanted = open(sys.argv[1]).read(), sys.argv[2]
found = re.findall(r"^( *)(?:- )?%s: (?:\|\n((?:\1 +.*\n|\n)+)|(.*)$)" % re.escape(wanted), text, re.M)
for _, block, line in found:
    print(block if block else line.strip().strip("'"))
END
}

# ---- action.yml: sudo, pip and python3 -m venv are not run, the program is that of this build -----------

mkdir -p "$dir/bin" "$dir/temp/swsim/bin" "$dir/work/plans"
printf '#!/bin/sh\necho "$0" "$@" >>"%s/calls"\n' "$dir" >"$dir/bin/sudo"
cp "$dir/bin/sudo" "$dir/bin/python3"
cp "$dir/bin/sudo" "$dir/temp/swsim/bin/pip"
ln -s "$(cd "$(dirname "$SWSIM")" && pwd)/$(basename "$SWSIM")" "$dir/temp/swsim/bin/swsim"
chmod +x "$dir/bin/sudo" "$dir/bin/python3" "$dir/temp/swsim/bin/pip"
cp "$srcdir/plans/bugs/torchrec_cache_map_broken.yaml" "$dir/work/plans/race.yaml"
cp "$srcdir/plans/examples/hello.yaml" "$dir/work/plans/hello.yaml"
part "$srcdir/action.yml" run >"$dir/steps"
step()
{
    (cd "$dir/work" && PATH="$dir/bin:$PATH" RUNNER_TEMP="$dir/temp" GITHUB_ACTION_PATH="$srcdir" PLANS="$1" OPTIONS="$2" \
        bash -e "$dir/steps" >"$dir/out" 2>"$dir/err")
    code=$?
}
step 'plans/*.yaml' ''
check "the action's steps fail where a plan is violated" test $code -eq 1
check "... and annotate the line of the pull request" grep -q '^::error file=plans/race.yaml,line=17,col=3,title=swsim race::' "$dir/out"
check "... with the package of the action's own source" grep -q "pip install -q $srcdir/python" "$dir/calls"
step 'plans/hello.yaml' ''
check "a proved plan passes" test $code -eq 0
step 'plans/*.yaml' --expect
check "options are those of swsim verify" test $code -eq 0
step 'plans/none.yaml' ''
check "a pattern that no file has fails" test $code -ne 0
missing() { for package in $(grep -o 'lib[a-z0-9]*-dev' "$srcdir/$1" | sort -u); do grep -q "$package" "$srcdir/tools/packages.sh" || echo "$package"; done; }
check "its packages are those of tools/packages.sh" test -z "$(missing action.yml)"

# ---- .pre-commit-hooks.yaml ---------------------------------------------------------------------------

pattern=$(part "$srcdir/.pre-commit-hooks.yaml" files)
selected() { printf '%s\n' "$@" | python3 -c 'import re, sys
sys.stdout.writelines(line for line in sys.stdin if re.search(sys.argv[1], line.rstrip("\n")))' "$pattern"; }
check "the hook selects plans" test "$(selected plans/a.yaml job/plans/b/c.json | wc -l)" -eq 2
check "... and nothing else" test -z "$(selected config.yaml myplans/a.yaml plans/a.txt)"
hook() { (cd "$dir/work" && PATH="$dir/temp/swsim/bin:$PATH" sh -c "$(part "$srcdir/.pre-commit-hooks.yaml" entry) \"\$@\"" sh "$@"); }
check "its entry accepts plans that are as they expect" hook plans/hello.yaml plans/race.yaml
sed -i 's/^expect: .*/expect: {}/' "$dir/work/plans/race.yaml"
refused() { ! hook "$@" >"$dir/out" 2>&1 && grep -q 'race is always, the plan expects no violation' "$dir/out"; }
check "... and refuses one that is not" refused plans/hello.yaml plans/race.yaml

# ---- Dockerfile -----------------------------------------------------------------------------------------

check "the packages of its build are those of tools/packages.sh" test -z "$(missing Dockerfile)"
check "it is for Debian 12, in two stages" test "$(grep -c '^FROM debian:12-slim' "$srcdir/Dockerfile")" -eq 2
check "the program is what it runs" grep -q '^ENTRYPOINT \["swsim"\]$' "$srcdir/Dockerfile"

done_testing
