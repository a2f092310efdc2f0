"""Opens a page in headless Chromium at a width, waits until its title says that it is done, and keeps a picture of it:
`chromium_page.py URL WIDTH PICTURE.png FOLDER`.

Speaks the DevTools protocol by two pipes. Any certificate is taken: the page is a test's own. Prints one line of JSON with what is on the
page; ends with 1 and a sentence where it fails.
"""
import base64
import json
import os
import subprocess
import sys
import time

LIMIT_S = 240
FACTS = """JSON.stringify({
  title: document.title, width: innerWidth, content_width: document.documentElement.scrollWidth,
  headings: Array.from(document.querySelectorAll('h1, h2'), function (one) { return one.textContent; }),
  sentences: Array.from(document.querySelectorAll('#words li'), function (one) { return one.textContent; }),
  curves: document.querySelectorAll('.chart canvas').length, rows: document.querySelectorAll('#table tr').length,
  height: document.documentElement.scrollHeight,
  elsewhere: performance.getEntriesByType('resource').map(function (one) { return new URL(one.name).hostname; })
    .filter(function (host) { return host !== location.hostname; }) })"""


class Browser:
    """A Chromium that is driven by pipes at its descriptors 3 and 4."""

    def __init__(self, folder):
        read_end, self.to_browser = os.pipe()
        self.from_browser, write_end = os.pipe()
        words = ["chromium", "--headless=new", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--hide-scrollbars",
                 "--ignore-certificate-errors", "--user-data-dir=" + folder, "--remote-debugging-pipe", "about:blank"]
        if os.geteuid() == 0:
            words.insert(1, "--no-sandbox")
        shell = ["sh", "-c", f'exec "$@" 3<&{read_end} 4>&{write_end}', "sh", *words]
        self.process = subprocess.Popen(shell, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                        pass_fds=(read_end, write_end), env={**os.environ, "HOME": folder})
        os.close(read_end)
        os.close(write_end)
        self.number, self.buffer = 0, b""

    def call(self, method, session=None, **parameters):
        """Sends a command and waits for its answer."""
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        os.write(self.to_browser, json.dumps(message).encode() + b"\0")
        while True:
            while b"\0" not in self.buffer:
                piece = os.read(self.from_browser, 1 << 20)
                if not piece:
                    sys.exit("chromium ended")
                self.buffer += piece
            text, self.buffer = self.buffer.split(b"\0", 1)
            answer = json.loads(text)
            if answer.get("id") == self.number:
                if "error" in answer:
                    sys.exit(f"{method}: {answer['error']}")
                return answer["result"]


def main(url, width, picture, folder):
    browser = Browser(folder)
    try:
        target = browser.call("Target.createTarget", url="about:blank")["targetId"]
        session = browser.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        browser.call("Emulation.setDeviceMetricsOverride", session, width=int(width), height=900, deviceScaleFactor=1,
                     mobile=int(width) < 600)
        browser.call("Page.navigate", session, url=url)

        def evaluate(expression):
            return browser.call("Runtime.evaluate", session, expression=expression, returnByValue=True)["result"].get("value")

        until = time.monotonic() + LIMIT_S
        while not (evaluate("document.title") or "").startswith("evener: "):
            if time.monotonic() > until:
                sys.exit("the page is not done")
            time.sleep(0.1)
        facts = evaluate(FACTS)
        clip = {"x": 0, "y": 0, "width": int(width), "height": json.loads(facts)["height"], "scale": 1}
        shot = browser.call("Page.captureScreenshot", session, captureBeyondViewport=True, clip=clip)["data"]
        with open(picture, "wb") as file:
            file.write(base64.b64decode(shot))
        print(facts)
    finally:
        browser.process.kill()
        browser.process.wait()


if __name__ == "__main__":
    main(*sys.argv[1:])
