#!/bin/sh
# python.sh TEST [ARGUMENT...] - run a test of this folder in the Python environment that SWSIM_PARTNERS names (default:
# partners/ in the folder of the build). Without one the test skips.
python=${SWSIM_PARTNERS:-partners}/bin/python
if ! test -x "$python"; then
    echo "ok 1 # SKIP no partners in ${SWSIM_PARTNERS:-partners}: make check-partners installs them"
    echo "1..1"
    exit
fi
PYTHONDONTWRITEBYTECODE=1 exec "$python" -W ignore "$@"
