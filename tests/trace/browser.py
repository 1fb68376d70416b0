#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""browser.py CHROMIUM URL COMMAND... - a page in headless Chromium, driven through DevTools' pipe; prints what is asked for.

    key a            press a key; a name such as ArrowRight, too
    click X,Y        press the mouse there
    wheel X,Y,DELTA  turn its wheel
    size W,H         the window
    wait S           so many seconds
    until EXPRESSION until it is true, for at most 30 seconds
    eval EXPRESSION  print its value
    frames S         zoom and move for so long; print the frames a second, the longest frame and the CPU time of the page's
                     main thread for each, in milliseconds
    shot FILE        a picture of the window
"""
import base64
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

# Each frame zooms in or out a little around a place that moves on, as a hand at the wheel does.
FRAMES = """new Promise((done) => {
    const from = performance.now(), times = [];
    const next = (now) => {
        times.push(now);
        const phase = (now - from) / 1000;
        zoom(extent() * (0.5 + 0.4 * Math.sin(phase)), Math.sin(phase * 2) > 0 ? 0.97 : 1 / 0.97);
        move(0.01 * Math.cos(phase));
        if (now - from < SECONDS * 1000) requestAnimationFrame(next);
        else done({frames: times.length, frames_per_s: (times.length - 1) * 1000 / (times[times.length - 1] - times[0]),
            longest_ms: Math.max(...times.slice(1).map((t, i) => t - times[i])), drawn: document.body.dataset.drawn});
    };
    requestAnimationFrame(next);
})"""
KEYS = {"ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40, "Escape": 27, "Enter": 13}


class Browser:
    """One page. Its messages end with a zero byte, on descriptors 3 and 4 of the browser."""

    def __init__(self, program, url):
        self.home = tempfile.mkdtemp()
        to_browser, self.out = os.pipe()
        self.inward, from_browser = os.pipe()
        flags = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--remote-debugging-pipe",
                 "--window-size=1400,900", "--user-data-dir=" + self.home, url]

        def descriptors():
            to, back = os.dup(to_browser), os.dup(from_browser)
            os.dup2(to, 3)
            os.dup2(back, 4)

        self.process = subprocess.Popen([program, *flags], preexec_fn=descriptors, close_fds=False,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_browser)
        os.close(from_browser)
        self.rest, self.number, self.session = b"", 0, None
        deadline = time.time() + 60
        while time.time() < deadline:
            pages = [t for t in self.call("Target.getTargets")["targetInfos"] if t["type"] == "page" and t["url"].startswith(url)]
            if pages:
                break
            time.sleep(0.1)
        else:
            raise RuntimeError("the page did not open")
        self.session = self.call("Target.attachToTarget", targetId=pages[0]["targetId"], flatten=True)["sessionId"]
        # A page may have written what it shows into its address already.
        while not self.value("document.URL.startsWith(%s) && document.readyState == 'complete'" % json.dumps(url)):
            time.sleep(0.05)

    def receive(self):
        while b"\0" not in self.rest:
            piece = os.read(self.inward, 1 << 16)
            if not piece:
                raise RuntimeError("the browser has left")
            self.rest += piece
        line, self.rest = self.rest.split(b"\0", 1)
        return json.loads(line)

    def call(self, method, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.receive()
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(answer["error"]["message"])
                return answer["result"]

    def frames(self, seconds):
        """How fast frames come, and the CPU time of the thread with the most, which is the page's main one."""
        page, self.session = self.session, None
        self.call("Tracing.start", traceConfig={"includedCategories": ["toplevel"]})
        self.session = page
        seen = self.value(FRAMES.replace("SECONDS", seconds))
        self.session = None
        self.call("Tracing.end")
        self.session = page
        threads = {}
        while (message := self.receive()).get("method") != "Tracing.tracingComplete":
            for event in message.get("params", {}).get("value", []):
                if event.get("ph") == "X" and event["name"].endswith("RunTask"):
                    thread = event["pid"], event["tid"]
                    threads[thread] = threads.get(thread, 0) + event.get("tdur", 0) / 1000
        return {**seen, "work_ms": max(threads.values()) / seen["frames"]}

    def value(self, expression):
        result = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in result:
            raise RuntimeError(result["exceptionDetails"].get("exception", {}).get("description", "an exception"))
        return result["result"].get("value")

    def key(self, name):
        text = name if len(name) == 1 else ""
        for kind in "keyDown", "keyUp":
            self.call("Input.dispatchKeyEvent", type=kind, key=name, text=text if kind == "keyDown" else "",
                      windowsVirtualKeyCode=KEYS.get(name, ord(name[0])))

    def mouse(self, kind, x, y, **more):
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def do(self, command):
        verb, _, rest = command.partition(" ")
        if verb == "key":
            self.key(rest)
        elif verb == "click":
            x, y = map(float, rest.split(","))
            for kind in "mouseMoved", "mousePressed", "mouseReleased":
                self.mouse(kind, x, y, button="left", clickCount=1)
        elif verb == "wheel":
            x, y, delta = map(float, rest.split(","))
            self.mouse("mouseWheel", x, y, deltaX=0, deltaY=delta)
        elif verb == "size":
            width, height = map(int, rest.split(","))
            self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        elif verb == "wait":
            time.sleep(float(rest))
        elif verb == "until":
            deadline = time.time() + 30
            while not self.value(rest) and time.time() < deadline:
                time.sleep(0.05)
        elif verb == "eval":
            print(json.dumps(self.value(rest)))
        elif verb == "frames":
            print(json.dumps(self.frames(rest)))
        elif verb == "shot":
            with open(rest, "wb") as file:
                file.write(base64.b64decode(self.call("Page.captureScreenshot")["data"]))
        else:
            sys.exit("browser.py: what is '%s'?" % command)

    def close(self):
        self.process.terminate()
        self.process.wait()
        shutil.rmtree(self.home, ignore_errors=True)


def main():
    browser = Browser(sys.argv[1], sys.argv[2])
    try:
        for command in sys.argv[3:]:
            browser.do(command)
    finally:
        browser.close()


if __name__ == "__main__":
    main()
