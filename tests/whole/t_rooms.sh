#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The table of rooms in doc/architecture.md is true: every room of the source has a row, no room includes a header of a
# room that its row does not name. The list of files in doc/files.md is current.
. "${srcdir:-.}/tests/tap.sh"
map=$srcdir/doc/architecture.md

# A line for each room: its folder, then the folders it may include. Rows look like
# | `room/` | what it holds | `room` `room` |
rows()
{
    sed -n 's/^| `\([a-z/]*\)\/` |[^|]*|\(.*\)|$/\1 \2/p' "$map" | tr -d '`'
}

# includes_only ROOM ALLOWED...: the files of ROOM include headers of these rooms and its own. Prints each
# line that does not and fails when there is one.
includes_only()
{
    known=$(echo "$@" | tr ' ' '|')
    offences=$(cd "$srcdir" && find "$1" -maxdepth 1 -name '*.[ch]' -o -maxdepth 1 -name '*.cu' | sort |
        xargs -r grep -HnE '^[[:space:]]*#[[:space:]]*include[[:space:]]*".*/' /dev/null |
        grep -vE "\"($known)/[^/]*\"")
    printf '%s' "$offences"
    test -z "$offences"
}

# Every folder with source has a row.
no_room_is_missing()
{
    missing=0
    for room in $(cd "$srcdir" && find base plan machine trace sim check improve api gpu cmd -name '*.c' |
        sed 's|/[^/]*$||' | sort -u); do
        rows | grep -q "^$room " && continue
        missing=1
        echo "$room has no row"
    done
    test "$missing" -eq 0
}

# doc/files.md is what the first sentences of the files say, and each file has one.
map_is_current()
{
    "$srcdir/tools/file_map.sh" | diff "$srcdir/doc/files.md" -
}
each_file_says_what_it_is()
{
    silent=$(awk -F'|' '/^## / { room = $0 } /^\| `/ && $3 ~ /^ *$/ { print room $2 }' "$srcdir/doc/files.md")
    printf '%s' "$silent"
    test -z "$silent"
}

# The files that doc/architecture.md names exist: those in its tables stand in the folder of their heading.
named_files()
{
    sed -nE 's/^##+ ([a-z_/]+): .*/room \1/p; t
             /^#|^\| `/s/`([a-z_]+\.(c|h|cu|inc))`/\nfile \1\n/gp' "$map" |
        awk '$1 == "room" { room = $2 } $1 == "file" && room { print room "/" $2 }'
    grep -oE '`[a-z_]+/[a-z_/0-9]+\.(c|h|cu|inc|sh|yaml)`' "$map" | tr -d '`'
}
no_file_is_gone()
{
    gone=$(named_files | sort -u | while read -r file; do
        [ -e "$srcdir/$file" ] || echo "$file"
    done)
    printf '%s' "$gone"
    test -z "$gone"
}

# A switch over the kinds of operations without a default: the compiler names what a new one lacks.
no_operation_by_default()
{
    # shellcheck disable=SC2046
    defaults=$(cd "$srcdir" && find $(source_folders) -name '*.c' -exec awk '
        /switch \(/ { ops = 0 }
        /case OP_/ { ops = 1 }
        /default:/ && ops { print FILENAME ":" FNR }' {} +)
    printf '%s' "$defaults"
    test -z "$defaults"
}

# The files at the top of a clone are these: a test that writes into its working folder leaves no file there.
top_files='.clang-format .gitignore .pre-commit-hooks.yaml AUTHORS CITATION.cff CONTRIBUTING.md Dockerfile LICENSE Makefile.am
    NEWS README README.md REUSE.toml action.yml SECURITY.md autogen.sh configure.ac libswsim.pc.in quickstart runtests swpipe.pc.in'
top_is_known()
{
    # shellcheck disable=SC2086
    strangers=$(git -C "$srcdir" ls-files | grep -v / | grep -vxF "$(printf '%s\n' $top_files)")
    printf '%s' "$strangers"
    test -z "$strangers"
}

# A breakpoint, a backtrace and an index of the source mean one function, and one struct.
names_are_unique()
{
    # shellcheck disable=SC2046
    twice=$(cd "$srcdir" && find $(source_folders) -name '*.[ch]' -exec awk '
        { gsub(/__attribute__\(\(.*\)\) ?/, "") }
        /^static [^=;(]*[ *][a-z_0-9]+\(/ && !/;$/ { sub(/\(.*/, ""); sub(/.*[ *]/, ""); print "function " $0, FILENAME }
        /^struct [a-z_0-9]+ \{/ { print "struct " $2, FILENAME }' {} + | sort -u | awk '
        $1 " " $2 == last { print $1, $2 ": " file " and " $3 }
        { last = $1 " " $2; file = $3 }')
    printf '%s' "$twice"
    test -z "$twice"
}

# A newcomer sees the product first: a folder at the top is one that nothing else can hold.
# python/ is not counted among the fourteen: it is the package that pip builds.
top_folders='api base check cmd doc gpu improve machine plan plans python sim tests tools trace'
top_folders_are_known()
{
    # shellcheck disable=SC2086
    strangers=$(git -C "$srcdir" ls-files | sed -n 's|/.*||p' | sort -u | grep -vxF -e .ci -e "$(printf '%s\n' $top_folders)")
    printf '%s' "$strangers"
    test -z "$strangers"
}

check "every room has a row" no_room_is_missing
while read -r room allowed; do
    # shellcheck disable=SC2086
    check "$room includes what it may" includes_only "$room" $allowed
done <<EOF
$(rows)
EOF
check "doc/files.md is current: make file-map" map_is_current
check "each file says in its first sentence what it is" each_file_says_what_it_is
check "doc/architecture.md names no file that is not there" no_file_is_gone
check "no switch over enum op_kind has a default" no_operation_by_default
check "each static function and each struct has a name of its own" names_are_unique
if [ -e "$srcdir/.git" ]; then
    check "every file at the top of the clone is known" top_is_known
    check "and every folder" top_folders_are_known
else
    skip "every file at the top is known: no git clone"
fi
done_testing
