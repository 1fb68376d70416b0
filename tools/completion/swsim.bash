# SPDX-License-Identifier: Apache-2.0
# swsim.bash - completion for swsim, swrun and swcheck. It reads the programs' own --help, and so completes
# every verb, option and choice that they accept.

# The --help of the words, each option with all of its words on one line.
_swsim_help()
{
    "$@" --help 2>/dev/null | awk '
        /^ +(-., )?--[a-z]/ { if (entry) print held; held = $0; words = /--[^ ]+  +[^ ]/; entry = 1; next }
        entry && match($0, /[^ ]/) == 31 && !/not with --/ { sub(/^ +/, words ? " " : "  "); held = held $0; words = 1; next }
        { if (entry) print held; entry = 0; print }
        END { if (entry) print held }'
}

# The long options in a --help, one a line, with `=` where a value follows.
_swsim_options()
{
    _swsim_help "$@" | sed -nE 's/^ +(-., )?(--[a-z0-9-]+=?).*/\2/p' | sort -u
}

# The values of option $1 in the --help of the other words: `--color=auto|always|never`, or words behind `LIST`.
_swsim_choices()
{
    local option=$1
    shift
    [[ $option != --schedule ]] || { _swsim_schedules "$1"; return; }
    _swsim_help "$@" | awk -v option="$option" '
        function words(list, separator,   items, n, i) {
            n = split(list, items, separator)
            for (i = 1; i <= n; i++) if (items[i] !~ /^[a-z0-9_.-]+$/) return
            for (i = 1; n > 1 && i <= n; i++) print items[i]
        }
        function explained(text) {
            if (sub(/.*separated by commas: */, "", text)) return words(text, " +")
            sub(/ *\(default.*/, "", text); sub(/.*: /, "", text)
            words(text, ", *")
        }
        match($0, /^ +(-., )?--[a-z0-9-]+/) {
            name = substr($0, RSTART, RLENGTH); sub(/.*--/, "--", name)
            if (name != option) next
            rest = substr($0, RSTART + RLENGTH)
            value = rest; sub(/ .*/, "", value); gsub(/[][=]/, "", value)
            sub(/^[^ ]* */, "", rest)
            if (value == "LIST") explained(rest)
            else { n = split(value, items, "|"); for (i = 1; n > 1 && i <= n; i++) if (items[i] ~ /^[a-z0-9]/) print items[i] }
        }'
}

_swsim_verbs()
{
    "$1" --help 2>/dev/null | sed -n '/^Verbs:/,/^$/ { s/^  \([a-z]*\) .*/\1/p }'
}

# The names of the schedules in the --help of `swsim generate`.
_swsim_schedules()
{
    "$1" generate --help 2>/dev/null | sed -n '/NAME is one of/,/^Options/ { s/^  \([a-z0-9_][a-z0-9_]*\) .*/\1/p }'
}

# The kinds of objects in `swsim schema`.
_swsim_schemas()
{
    "$1" schema 2>/dev/null | sed '1d; s/ .*//'
}

# The words that `swsim explain` knows, those of one word.
_swsim_explained()
{
    "$1" explain 2>/dev/null | sed -n '/^[^ ].* (/ { s/ (.*//; s/, */\n/g; p; }' | grep -v ' '
}

_swsim()
{
    local program=$1 current=$2 word
    local -a command=("$program")
    if [[ ${program##*/} == swsim ]]; then
        for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
            [[ $word == [a-z]* ]] && command+=("$word") && break
        done
    fi
    COMPREPLY=()
    # `=` is a word of its own on the command line: --color = al
    local option=${COMP_WORDS[COMP_CWORD-1]} value=$current
    [[ $option == = ]] && option=${COMP_WORDS[COMP_CWORD-2]}
    [[ $value == = ]] && option=${COMP_WORDS[COMP_CWORD-1]} value=
    if [[ $option == --* && (${COMP_WORDS[COMP_CWORD-1]} == = || $current == =) ]]; then
        local before= # the words of a list that are there
        [[ $value != *,* ]] || before=${value%,*},
        mapfile -t COMPREPLY < <(compgen -P "$before" -W "$(_swsim_choices "$option" "${command[@]}")" -- "${value##*,}")
        [[ ${#COMPREPLY[@]} -gt 0 ]] || mapfile -t COMPREPLY < <(compgen -f -- "$value")
    elif [[ $current == -* ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$(_swsim_options "${command[@]}")" -- "$current")
        [[ ${COMPREPLY[0]-} == *= ]] && compopt -o nospace
    elif [[ ${program##*/} == swsim && ${#command[@]} -eq 1 ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$(_swsim_verbs "$program")" -- "$current")
    elif [[ ${command[1]-} == generate ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$(_swsim_schedules "$program")" -- "$current")
    elif [[ ${command[1]-} == help ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$(_swsim_verbs "$program")" -- "$current")
    elif [[ ${command[1]-} == explain ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$(_swsim_explained "$program")" -- "$current")
    elif [[ ${command[1]-} == schema ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$(_swsim_schemas "$program")" -- "$current")
    else
        compopt -o filenames
        mapfile -t COMPREPLY < <(compgen -f -- "$current")
    fi
}

complete -F _swsim swsim swrun swcheck
