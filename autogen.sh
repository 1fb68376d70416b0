#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Make ./configure out of configure.ac and Makefile.am (needed once in a fresh checkout).
set -eu
cd "$(dirname "$0")"
exec autoreconf --install "$@"
