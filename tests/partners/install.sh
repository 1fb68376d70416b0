#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# install.sh DIR - install in DIR what versions.txt beside this script names, or add what is missing of it: the environment
# `main` is DIR itself, another one DIR/PLACE, a library DIR/PARTNER/VERSION. SWSIM_PARTNERS_ALL=1 adds the level `all`.
# A package that cannot be installed is reported, and its tests skip. Exit status 0 unless there is no Python to make `main` with;
# SWSIM_PYTHON names one.
set -u
versions=$(cd "$(dirname "$0")" && pwd)/versions.txt
main=$1
list=$(mktemp) || exit 1
trap 'rm -f "$list"' EXIT

environment()
{
    for python in ${SWSIM_PYTHON:-python3.11 python3.12 python3.13 python3}; do
        test -x "$1/bin/python" && return
        command -v "$python" >/dev/null && "$python" -m venv "$1" && return
        rm -rf "$1"
    done
    test -x "$1/bin/python"
}

# pip_install PYTHON ARGUMENT...
pip_install()
{
    python=$1
    shift
    "$python" -m pip install --quiet --no-deps --no-compile --disable-pip-version-check "$@"
}

# install_in DIR PARTNER: the list, which is kept there once done, so that a second call has nothing to do.
install_in()
{
    environment "$1" || return
    cmp -s "$list" "$1/$2.txt" && return
    pip_install "$1/bin/python" -r "$list" && cp "$list" "$1/$2.txt"
}

# install_versions PARTNER: of the list each in a folder, which is there once done.
install_versions()
{
    while read -r package; do
        folder=$main/$1/${package##*==}
        test -d "$folder" && continue
        if pip_install "$main/bin/python" --target "$folder.new" "$package" </dev/null; then
            mv "$folder.new" "$folder"
        else
            rm -rf "$folder.new"
            echo "partner $package: could not be installed; its tests skip" >&2
        fi
    done <"$list"
}

if ! environment "$main"; then
    echo "no partners: no Python here makes a virtual environment (SWSIM_PYTHON names one)" >&2
    exit 1
fi
sed -n 's/^\[\(.*\)\]$/\1/p' "$versions" | while read -r level place partner; do
    test "$level" = default || test "${SWSIM_PARTNERS_ALL:-0}" != 0 || continue
    awk -v head="[$level $place $partner]" '/^\[/ { on = $0 == head } on && /^[A-Za-z]/' "$versions" >"$list"
    echo "partner $partner ($place)"
    case $place in
    libraries) install_versions "$partner" ;;
    main) install_in "$main" "$partner" </dev/null ;;
    *) install_in "$main/$place" "$partner" </dev/null ;;
    esac || echo "partner $partner ($place): could not be installed; its tests skip" >&2
done
