"""What the checks of this folder share: the programs, the stand-in of NVRTC, calls that fail."""
import argparse, os, subprocess, sys, tempfile

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
MODEL = os.path.join(TESTS, "golden", "linear_gelu.json")


def parse(description, **options):
    parser = argparse.ArgumentParser(description=description)
    for name in ("fusec", "fusec_run", "stand_in", "fail_calls"):
        parser.add_argument(name, type=os.path.abspath)
    for name, value in options.items():
        parser.add_argument("--" + name, type=int, default=value)
    return parser.parse_args()


class Failures(list):
    def expect(self, good, what):
        if not good:
            self.append(what)

    def finish(self):
        for failure in self:
            print(failure)
        print(f"{len(self)} failures" if self else "all good")
        sys.exit(1 if self else 0)


class World:
    """A folder of its own with a home, a cache and the log of the stand-in."""

    def __init__(self, options):
        self.options = options
        self.holder = tempfile.TemporaryDirectory(prefix="fusec_environment_")
        self.folder = self.holder.name
        self.cache, self.log = self.path("cache"), self.path("log")
        self.environment = {"PATH": os.environ["PATH"], "HOME": self.path("home"), "FUSEC_NVRTC": options.stand_in,
                            "STAND_IN_LOG": self.log}
        for name in ("LD_LIBRARY_PATH", "ASAN_OPTIONS", "TSAN_OPTIONS"):
            if name in os.environ:
                self.environment[name] = os.environ[name]

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def run(self, *arguments, program=None, more={}, timeout=120, **options):
        settings = dict(stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, cwd=self.folder)
        settings.update(options)
        environment = {name: value for name, value in {**self.environment, **more}.items() if value is not None}
        return subprocess.run([program or self.options.fusec, *arguments], env=environment, timeout=timeout, **settings)

    def failing(self, call, how="full", unnamed=False):
        """The environment in which the call with this number fails."""
        more = {"LD_PRELOAD": self.options.fail_calls, "FAIL_AT": str(call), "FAIL_HOW": how}
        return {**more, "FAIL_UNNAMED": "1"} if unnamed else more

    def calls(self, *arguments, unnamed=False, **options):
        """How many calls a run makes of those that can fail."""
        count = self.path("count")
        self.run(*arguments, more={**self.failing(0, unnamed=unnamed), "FAIL_COUNT": count}, **options)
        with open(count, encoding="utf-8") as file:
            return int(file.read())

    def logged(self, word):
        if not os.path.exists(self.log):
            return 0
        with open(self.log, encoding="utf-8") as file:
            return sum(line.startswith(word) for line in file)


def read(path):
    if not os.path.exists(path):
        return None
    with open(path, "rb") as file:
        return file.read()


def write(path, content):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(content)


def can_preload(options):
    """Sanitizers want to be the first library that is loaded."""
    probe = subprocess.run([options.fusec, "--version"], env={"LD_PRELOAD": options.fail_calls}, capture_output=True)
    return probe.returncode == 0 and b"fusec" in probe.stdout
