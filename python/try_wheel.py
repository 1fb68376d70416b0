# SPDX-License-Identifier: Apache-2.0
"""What a wheel must do where nothing but it is installed: python try_wheel.py SOURCES, with the Python it is installed in.

build_wheel.sh runs it in an empty environment, without the programs and libraries of a build, and without Graphviz.
"""
import pathlib
import subprocess
import sys
import tempfile

import swsim

SOURCES = pathlib.Path(sys.argv[1])
RACE, HELLO = SOURCES / "plans/bugs/torchrec_cache_map_broken.yaml", SOURCES / "plans/examples/hello.yaml"


def main():
    """An assertion fails, or an exception is raised, where something does not work."""
    assert str(pathlib.Path(swsim.program()).parent) == str(pathlib.Path(sys.executable).parent), swsim.program()
    verdict = swsim.verify(RACE)
    assert verdict.violation == "race" and verdict.repair and swsim.verify(verdict.repair), verdict
    assert "<svg" in verdict._repr_html_() and "line 17" in str(verdict)
    prediction = swsim.predict(HELLO, driver="clock")[0]
    assert prediction.iteration_ns["mean"] == 4e6 and "<svg" in prediction._repr_html_()
    assert "<html" in prediction.timeline("html").lower()
    with tempfile.TemporaryDirectory() as folder:
        job = swsim.import_trace(SOURCES / "plans/traces/recommender", db=f"{folder}/job.db")
        assert swsim.verify(job.plan) and swsim.runs(f"{folder}/job.db")[0].ledger() is not None
        subprocess.run([swsim.program("swrun"), "-q", "-n", "20", f"--db={folder}/run.db", HELLO], check=True, stdout=subprocess.DEVNULL)
        subprocess.run([swsim.program("swsim"), "verify", "-q", f"--certificate={folder}/proof", "--driver=clock", HELLO], check=True,
                       stdout=subprocess.DEVNULL)
        subprocess.run([swsim.program("swcheck"), HELLO, f"{folder}/proof"], check=True, stdout=subprocess.DEVNULL)
        said = subprocess.run([swsim.program(), "record", "--device=none", f"--output={folder}/nothing.swr", "--", "true"],
                              capture_output=True, text=True, check=False).stderr
        assert "made no call" in said and "neither beside" not in said, said  # the recorder is found
    assert swsim.from_torchrec(type("TrainPipelineSparseDist", (), {})())["schedule"]
    done = subprocess.run([sys.executable, SOURCES / "doc/examples/pipeline.py"], check=True, capture_output=True, text=True)
    assert "as the plan allows" in done.stdout, done.stdout
    print("the wheel works")


main()
