#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""measure.py PAGE [WORD...] - runs the commands of a page of measurements and writes what they print into it.

    make measurements                       # all of doc/measurements.md
    make measurements ARGS='schedules SPIN' # the sections whose heading has one of these words

A command stands behind "$ " in a block that begins with ```console. It runs in the build folder, with $srcdir; all that the block has
below it is replaced, and the line below the block becomes that of this machine, day and load. A command that fails changes nothing.
"""
import datetime
import os
import re
import subprocess
import sys

BLOCK = re.compile(r"```console\n\$ (?P<command>(?:.*[\\|]\n)*.*)\n(?P<output>(?s:.*?))```\n\n(?P<machine>\*Measured .*\*\n)")


def machine(load):
    with open("/proc/cpuinfo") as file:
        names = re.findall(r"model name\s*: (.*?)(?: \d+-Core Processor| Processor| CPU.*)?\n", file.read())
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return (f"*Measured {datetime.date.today()} on {len(names)} cores of {names[0]}, {memory:.0f} GiB, "
            f"load {load:.0f} before and {os.getloadavg()[0]:.0f} after.*\n")


def measured(block):
    load = os.getloadavg()[0]
    command = block["command"]
    print("$", command, file=sys.stderr)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MAKE") and name not in ("MFLAGS", "ARGS")}
    done = subprocess.run(["bash", "-euo", "pipefail", "-c", command], env=environment, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True)
    if done.returncode not in (0, 1, 4):  # 1, 4: a plan is violated, or undecided within its limit
        print(f"measure.py: exit status {done.returncode}: {done.stdout}", file=sys.stderr)
        return block[0]
    output = "".join(line.rstrip() + "\n" for line in done.stdout.splitlines() if not re.match(r"  (CC|CCLD|AR|GEN) ", line))
    return f"```console\n$ {command}\n{output}```\n\n{machine(load)}"


def main():
    page, words = sys.argv[1], [word.lower() for word in sys.argv[2:]]
    with open(page) as file:
        sections = re.split(r"(?m)^(?=##+ )", file.read())
    for at, section in enumerate(sections):
        heading = section.partition("\n")[0].lower()
        if not words or any(word in heading for word in words):
            sections[at] = BLOCK.sub(measured, section)
            with open(page, "w") as file:
                file.write("".join(sections))


main()
