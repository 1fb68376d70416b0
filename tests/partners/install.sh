#!/bin/sh
# install.sh DIR - make the Python environment of the partners in DIR, or add to it what is missing: for each
# requirements-PARTNER.txt beside this script its packages in the versions it names, without what they require besides
# (the files name all that is needed). A partner that cannot be installed is reported, and its tests skip. Exit
# status 0 unless there is no Python to make the environment with; SWSIM_PYTHON names one.
set -u
here=$(cd "$(dirname "$0")" && pwd)
venv=$1

for python in ${SWSIM_PYTHON:-python3.11 python3.12 python3.13 python3}; do
    test -x "$venv/bin/python" && break
    command -v "$python" >/dev/null && "$python" -m venv "$venv" && break
    rm -rf "$venv"
done
if ! test -x "$venv/bin/python"; then
    echo "no partners: no Python here makes a virtual environment (SWSIM_PYTHON names one)" >&2
    exit 1
fi

# install FILE: kept beside the environment once done, so that a second call has nothing to do.
install()
{
    cmp -s "$1" "$venv/${1##*/}" && return
    "$venv/bin/python" -m pip install --quiet --no-deps --no-compile --disable-pip-version-check -r "$1" &&
        cp "$1" "$venv/"
}

for file in "$here"/requirements-*.txt; do
    name=${file##*/requirements-}
    echo "partner ${name%.txt}"
    install "$file" || echo "partner ${name%.txt}: could not be installed; its tests skip" >&2
done
