# SPDX-License-Identifier: Apache-2.0
# packages.sh - the packages that the build needs on Debian; sourced by quickstart and runtests.
#
# packages_require ensures all parts in the table below. It searches for each part itself instead of
# asking the package manager: so the network is not used if no part is missing, and a system other than
# Debian passes if it has the parts.

# Debian package    purpose
packages_table='
gcc                 command  gcc
libc6-dev           header   stdio.h
make                command  make
autoconf            command  autoreconf
automake            command  automake
pkg-config          command  pkg-config
libyaml-dev         module   yaml-0.1
libsqlite3-dev      module   sqlite3
zlib1g-dev          module   zlib
libgraphviz-dev     module   libgvc
graphviz            command  dot
librandom123-dev    header   Random123/philox.h
'

# packages_has KIND PART: succeeds if the part is installed.
packages_has()
{
    case $1 in
    command) command -v "$2" ;;
    module) pkg-config --exists "$2" ;;
    header) echo "#include <$2>" | "${CC:-cc}" -E - ;;
    esac >/dev/null 2>&1
}

# Print the packages that are missing, on one line.
packages_missing()
{
    echo "$packages_table" | while read -r package kind thing; do
        test -z "$package" || packages_has "$kind" "$thing" || echo "$package"
    done | xargs
}

# packages_install PACKAGE...: as root, or through sudo (which asks only on a terminal).
# Returns 2 when neither is possible.
packages_install()
{
    if [ "$(id -u)" -eq 0 ]; then
        packages_sudo=
    elif command -v sudo >/dev/null && [ -t 0 ]; then
        packages_sudo=sudo
    elif command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
        packages_sudo="sudo -n"
    else
        return 2
    fi
    # A failed update is not fatal: the install shows whether its list is sufficient.
    $packages_sudo apt-get update </dev/null ||
        echo "apt-get update failed; trying with the lists that are there"
    $packages_sudo env DEBIAN_FRONTEND=noninteractive \
        apt-get install -y --no-install-recommends "$@" </dev/null
}

# packages_require LOG: all parts are installed afterwards, or the script ends with a message: exit
# status 2 if the user must install packages, 1 if installing failed.
packages_require()
{
    packages_list=$(packages_missing)
    test -n "$packages_list" || return 0
    echo "Missing, by their Debian names: $packages_list"
    command -v apt-get >/dev/null || exit 2
    packages_status=0
    # shellcheck disable=SC2086
    packages_install $packages_list >>"$1" 2>&1 || packages_status=$?
    if [ "$packages_status" -eq 2 ]; then
        echo "Installing needs root. Type this, then start again:" >&2
        echo "    su -c 'apt-get update && apt-get install -y $packages_list'" >&2
        exit 2
    fi
    packages_list=$(packages_missing)
    if [ -n "$packages_list" ]; then
        tail -n 20 "$1" >&2
        echo "Could not install: $packages_list (whole log: $1)" >&2
        exit 1
    fi
}
