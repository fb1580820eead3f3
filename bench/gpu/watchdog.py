"""Runs commands that may hang or leave the device unusable.

A command is killed when it has been silent for too long or its deadline has come. A command of many cases prints a line of
JSON before each, {"begins": NAME}, and one after it, its row. It ends with status 0 after the last, and with START_AGAIN
after a case that failed, since the device may be unusable in that process. It is then started anew with --skip=N, as it is
after a case that killed it or made it hang."""
import collections
import dataclasses
import json
import os
import select
import signal
import subprocess
import time

START_AGAIN = 3
MOST_STARTS = 4  # of one command


@dataclasses.dataclass
class Ended:
    status: int | None  # None: killed
    killed: str  # why, or ""
    tail: str  # of its output
    in_time: bool = True  # not killed by the deadline

    def reason(self):
        return self.killed or f"exit status {self.status}: {self.tail}"


def kill(process):
    try:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(timeout=5)
    except ProcessLookupError:
        pass
    except subprocess.TimeoutExpired:
        return ", and it cannot be killed"
    return ""


def watch(command, silence, deadline, on_line=lambda line: None, **environment):
    """Calls on_line with each line of the command's output. `deadline` is a time of time.monotonic()."""
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                               start_new_session=True, env={**os.environ, **environment})
    pending, tail, heard, over = b"", collections.deque(maxlen=4), time.monotonic(), False
    while True:
        left = min(heard + silence, deadline) - time.monotonic()
        if left <= 0:
            in_time = time.monotonic() < deadline
            why = (f"killed after {silence:g} s of silence" if in_time else "killed: no time left") + kill(process)
            return Ended(None, why, "; ".join(tail), in_time)
        if not select.select([process.stdout], [], [], 0 if over else min(left, 0.5))[0]:
            if over:
                break  # a process that it left behind has the pipe
            over = process.poll() is not None
            continue
        block = os.read(process.stdout.fileno(), 1 << 16)
        heard = time.monotonic()
        *lines, pending = (pending + block).split(b"\n")
        if not block and pending:
            lines, pending = [pending], b""
        for line in lines:
            text = line.decode("utf-8", "replace").rstrip()
            if text and not text.startswith("{"):
                tail.append(text[:300])
            on_line(text)
        if not block:
            break
    try:
        process.wait(timeout=max(0.1, deadline - time.monotonic()))
        why = ""
    except subprocess.TimeoutExpired:
        why = "its output ended, it did not"
    why += kill(process)  # and what it left behind
    return Ended(None if why else process.returncode, why, "; ".join(tail))


def watch_cases(command, silence, deadline, on_row, **environment):
    """Calls on_row with each row, whose "name" says which case; one that made no row has "failed" or "skipped" and why."""
    done, begun = 0, []

    def line(text):
        nonlocal done
        try:
            row = json.loads(text) if text.startswith("{") else {}
        except ValueError:
            return
        if "begins" in row:
            begun.append(row["begins"])
        elif "name" in row:
            begun.clear()
            done += 1
            on_row(row)

    for _ in range(MOST_STARTS):
        ended = watch([*command, f"--skip={done}"], silence, deadline, line, **environment)
        if begun:
            done += 1
            on_row({"name": begun.pop(), "failed" if ended.in_time else "skipped": ended.reason()})
        elif ended.status not in (0, START_AGAIN):
            on_row({"name": "the rest", "failed" if ended.in_time else "skipped": ended.reason()})
            return
        if ended.status == 0 or not ended.in_time:
            return
    on_row({"name": "the rest", "failed": f"started {MOST_STARTS} times"})
