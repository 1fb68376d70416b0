# SPDX-License-Identifier: Apache-2.0
# tap.py - the Test Anything Protocol for the tests with partners, and what they share.
#
#   needs("torch", ...)        the test skips, with the reason, when a module cannot be imported
#   check(what, passed, told)  one case; the lines of `told` appear as comments when it did not pass
#   skip(why)                  one case that could not be tried here
#   done()                     print the plan and exit
#
#   swsim(*arguments, stdin="")   run swsim: an object with returncode, stdout, stderr
#   folder                        a Path that is removed when the test exits
import atexit, importlib, os, pathlib, shutil, subprocess, sys, tempfile

folder = pathlib.Path(tempfile.mkdtemp(prefix="partners."))
atexit.register(shutil.rmtree, folder, ignore_errors=True)
here = pathlib.Path(__file__).resolve().parent
_cases = _failures = 0


def comment(text):
    for line in str(text).splitlines():
        print("#", line, flush=True)


def check(what, passed, told=""):
    global _cases, _failures
    _cases += 1
    print("ok" if passed else "not ok", _cases, "-", what, flush=True)
    if not passed:
        _failures += 1
        comment(told)
    return passed


def skip(why):
    global _cases
    _cases += 1
    print("ok", _cases, "# SKIP", why, flush=True)


def done():
    print(f"1..{_cases}", flush=True)
    sys.exit(1 if _failures else 0)


def needs(*modules):
    for module in modules:
        try:
            importlib.import_module(module)
        except Exception as error:  # a library that does not load raises what it likes
            if "SWSIM_PARTNERS_PLACE" in os.environ:  # an environment for some of the tests
                done()
            skip(f"the partners' Python does not import {module}: {str(error).splitlines()[0]}")
            done()


def swsim(*arguments, stdin=""):
    command = [os.environ.get("SWSIM", "./swsim"), *map(str, arguments)]
    return subprocess.run(command, input=stdin, capture_output=True, text=True)
