"""fusec.compile: its products, its options, and the errors that a new user meets."""
import json
import os
import subprocess
import sys
import tempfile
import threading
import unittest

import fusec
import models


class Products(unittest.TestCase):
    def test_every_product_is_there(self):
        module = models.compiled("gated")
        self.assertIn("__global__", module.source)
        self.assertIn(".version", module.ptx)
        self.assertEqual(module.cubin[:4], b"\x7fELF")
        self.assertEqual(module.manifest["fusec_manifest"], 1)
        self.assertEqual([g["nodes"] for g in module.partition["groups"]], [["act", "y"]])
        self.assertEqual(module.ledger["edges"], [])
        self.assertGreater(len(module.report["groups"]), 0)
        self.assertIn("groups", module.plan)
        self.assertIn("nvrtc", module.stage_seconds)
        self.assertIn("silu", module.ir)
        self.assertIn("one kernel", module.explain("act", "y"))
        module.require_one_kernel("act", "y")

    def test_it_shows_itself(self):
        module = models.compiled("gated")
        self.assertRegex(repr(module), r"^<fusec.Module gated: 2 nodes in 1 groups?;.*\(full, sm_80\)>$")
        self.assertIn("<table>", module._repr_html_())
        self.assertIn("2 inputs", repr(models.gated()))

    def test_strategies_differ(self):
        self.assertEqual(len(fusec.partition(models.gated(), strategy="none")), 2)
        self.assertEqual(len(fusec.partition(models.gated())), 1)

    def test_an_edited_plan_goes_back(self):
        model = models.gated()
        plan = fusec.compile(model, strategy="none", no_nvrtc=True, arch="sm_80").plan
        replayed = fusec.compile(model, strategy="none", plan=plan, no_nvrtc=True, arch="sm_80")
        self.assertEqual(replayed.plan, plan)
        replayed.plan["groups"].clear()
        self.assertEqual(replayed.plan, plan)

    def test_the_name_of_a_model(self):
        for model in (models.prepared(), models.linear()):
            module = fusec.compile(model, no_nvrtc=True, arch="sm_80", name="other")
            self.assertIn("other_0_", module.source)
            self.assertEqual(module.model.name, "other")

    def test_progress_is_told(self):
        told = []
        fusec.compile(models.gated(), arch="sm_80", no_cache=True, progress=lambda p: told.append((p.stage, p.done)))
        self.assertEqual(told[-1], ("nvrtc", 1))
        self.assertIn("fuse", [stage for stage, _ in told])

    def test_progress_may_end_it(self):
        def stop(progress):
            raise KeyboardInterrupt

        with self.assertRaises(KeyboardInterrupt):
            fusec.compile(models.gated(), no_nvrtc=True, progress=stop)

    def test_threads(self):
        sources, threads = [], []
        for _ in range(4):
            threads.append(
                threading.Thread(
                    target=lambda: sources.append(fusec.compile(models.linear(), no_nvrtc=True, arch="sm_80").source)
                )
            )
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(len(set(sources)), 1)
        self.assertEqual(len(sources), 4)

    def test_other_threads_run_meanwhile(self):
        """A pass that calls back into Python would deadlock if the lock were held."""
        seen = []
        fusec.compile(models.gated(), no_nvrtc=True, progress=lambda p: seen.append(threading.get_ident()))
        self.assertTrue(seen)


class Errors(unittest.TestCase):
    def check(self, kind, text, call):
        with self.assertRaises(kind) as caught:
            call()
        self.assertIn(text, str(caught.exception))
        return caught.exception

    def test_model(self):
        error = self.check(fusec.InputError, "nothere.json", lambda: fusec.compile("nothere.json"))
        self.assertIsInstance(error, ValueError)
        self.check(TypeError, "fusec.from_torch", lambda: fusec.compile(object()))
        text = json.dumps({"fusec": 1, "inputs": [{"name": "x", "dtype": "flaot32", "shape": []}], "nodes": [],
                           "outputs": ["x"]})
        error = self.check(fusec.InputError, "did you mean", lambda: fusec.Model.parse(text))
        self.assertEqual(error.pointer, "/inputs/0/dtype")
        self.assertEqual((error.line, error.column), (1, text.index('"flaot32"') + 1))
        self.assertIn("flaot32", error.found)
        self.assertIn("float32", error.hint)

    def test_unknown_op(self):
        b = fusec.ModelBuilder("m")
        b.output(b.op("swoosh", b.input("x", "float32", [4])))
        self.check(fusec.InputError, "swoosh", b.build)

    def test_options(self):
        model = models.gated()
        self.check(TypeError, "did you mean 'strategy'", lambda: fusec.compile(model, stratgy="none"))
        self.check(fusec.UsageError, "none, tvm or full", lambda: fusec.compile(model, strategy="best"))
        self.check(fusec.UsageError, "sm_1", lambda: fusec.compile(model, arch="sm_1"))
        self.check(fusec.UsageError, "option jobs", lambda: fusec.compile(model, jobs="many"))
        self.check(fusec.UsageError, "cache_size", lambda: fusec.compile(model, cache_size="big"))
        self.check(fusec.UsageError, "pass", lambda: fusec.compile(model, disable_pass=["fuze"]))
        self.check(fusec.UsageError, "found 90, expected str", lambda: fusec.compile(model, arch=90))
        self.check(fusec.UsageError, "expected Mapping[str, int]", lambda: fusec.compile(model, symbol={"n": "few"}))

    def test_options_are_spelled_as_in_python(self):
        model = models.gated()
        error = self.check(fusec.InputError, "(hint: timeout=SECONDS raises it)",
                           lambda: fusec.compile(model, timeout=1e-9, no_nvrtc=True))
        self.assertEqual(error.hint, "timeout=SECONDS raises it")
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            file.write(model.to_json())
            file.flush()
            self.check(fusec.InputError, 'limit={"symbols": VALUE} raises it',
                       lambda: fusec.compile(file.name, limit={"symbols": 0}, no_nvrtc=True))
        self.check(fusec.UsageError, "without no_nvrtc", lambda: fusec.compile(model, no_nvrtc=True).ptx)
        apart = fusec.compile(model, strategy="none", no_nvrtc=True)
        self.assertIn('strategy="tvm" or strategy="full"', apart.explain("act", "y"))

    def test_every_value_is_checked(self):
        model, nan = models.gated(), float("nan")
        wrong = {
            "strategy": [3], "name": [3, ""], "arch": [90, None, "\ud800"], "target": [3, b"a"], "tuning_db": [3],
            "symbol": ["tokens=32", "n", {"tokens": 1.5}, {3: 3}, {"tokens": 2**70}], "limit": ["values=9", {"rank": True}],
            "max_fused_ops": [0, 2**40, 3.0], "max_args": [-1, "3"], "jobs": [-1, True],
            "no_fuse": ["add", [3], 3], "patterns": ["mine.patterns", [3], 3], "disable_pass": [None], "gemm": [True],
            "plan": [True, 1, 1.5, b"{}", None, {"a": {1}}],
            "timeout": [-1, nan, "3", None, True, float("inf")], "plan_deadline": [-1, nan, "3"],
            "max_memory": [None, 1.5, [], -1, "1.5G", "-1M", "12KK", 2**63], "cache_size": ["big", []], "max_file_size": [""],
            "cache_dir": [3, None], "no_cache": [object(), 1], "no_nvrtc": ["no", None], "precise_math": [1],
            "progress": [3], "device": ["emu", 3],
        }
        for name, values in wrong.items():
            for value in values:
                with self.subTest(name=name, value=value):
                    options = {"no_nvrtc": True, **{name: value}}
                    error = self.check(fusec.UsageError, name, lambda: fusec.compile(model, **options))
                    self.assertEqual(error.found, repr(value))
        self.check(TypeError, "unexpected option 3", lambda: fusec._options.core_options({3: 4}))
        fusec.compile(model, no_nvrtc=True, max_memory="512 MiB", cache_size="2g", max_file_size=0, timeout=100)

    def test_a_plan_is_not_read_from_a_file_descriptor(self):
        read, write = os.pipe()
        self.addCleanup(os.close, read)
        self.check(fusec.UsageError, "option plan", lambda: fusec.compile(models.gated(), plan=write, no_nvrtc=True))
        os.close(write)  # which is still open

    def test_the_file_of_a_plan_is_named(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "bad.json")
            for call in (fusec.compile, fusec.partition):
                self.check(fusec.InputError, "cannot be read", lambda: call(models.gated(), plan=path + "x"))
                with open(path, "w") as file:
                    file.write("{\n x}")
                error = self.check(fusec.InputError, path + ": not JSON", lambda: call(models.gated(), plan=path))
                self.assertEqual((error.file, error.line, error.column), (path, 2, 2))
        self.check(fusec.InputError, "plan: missing key", lambda: fusec.partition(models.gated(), plan={}))

    def test_the_options_are_listed(self):
        for name in fusec.CompileOptions.__annotations__:
            self.assertRegex(fusec.CompileOptions.__doc__, rf"\n{name}: .*\n    [^ ]")
        for attribute in vars(fusec.FusecError()):
            self.assertIn(f"``{attribute}``", fusec.FusecError.__doc__)

    def test_limits(self):
        self.check(fusec.InputError, "time", lambda: fusec.compile(models.linear(), timeout=1e-9, no_nvrtc=True))

    def test_missing_nvrtc(self):
        code = "import fusec, models; fusec.compile(models.gated(), no_cache=True)"
        env = {**os.environ, "FUSEC_NVRTC": "/nowhere/libnvrtc.so.13"}
        ran = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True,
                             cwd=os.path.dirname(__file__))
        self.assertIn("PlatformError", ran.stderr)
        self.assertIn("/nowhere/libnvrtc.so.13", ran.stderr)
        self.assertIn("pip install nvidia-cuda-nvrtc", ran.stderr)
        self.assertIn("no_nvrtc=True", ran.stderr)

    def test_view(self):
        module = fusec.compile(models.gated(), no_nvrtc=True)
        page = module.view()
        self.addCleanup(os.unlink, page.path)
        with open(page, encoding="utf-8") as file:
            self.assertIn("<!doctype html>", file.read(100).lower())
        self.assertIn("srcdoc", page._repr_html_())
        self.assertEqual(module.view(page.path).path, page.path)

    def test_not_one_kernel(self):
        module = fusec.compile(models.gated(), strategy="none", no_nvrtc=True)
        self.check(fusec.InputError, "not one kernel", lambda: module.require_one_kernel("act", "y"))


class CommandLine(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.model = self.path("m.json")
        with open(self.model, "w") as file:
            file.write(models.gated().to_json())

    def path(self, name):
        return os.path.join(self.folder, name)

    def run_fusec(self, *arguments, **environment):
        return subprocess.run(
            [sys.executable, "-m", "fusec", *arguments], capture_output=True, text=True, env={**os.environ, **environment}
        )

    def compiled(self, *arguments, **environment):
        """The exit status and standard error of a compilation, and the files that it wrote."""
        before = set(os.listdir(self.folder))
        ran = self.run_fusec("compile", self.model, *arguments, **environment)
        return ran.returncode, ran.stderr, sorted(set(os.listdir(self.folder)) - before)

    def test_outputs(self):
        ran = self.run_fusec("compile", self.model, "--emit=plan", "--emit=report=" + self.path("r.json"), "--name=other")
        self.assertEqual((ran.returncode, json.loads(ran.stdout)["model"]), (0, "other"))
        with open(self.path("r.json")) as file:
            self.assertIn("fusec_report", json.load(file))
        for wrong, told in {
            ("--emit=plan", "--emit=report"): "standard output",
            ("--emit=header",): "the program fusec writes C headers",
            ("-o", self.path("o.h")): "the program fusec writes C headers",
            ("-o", self.path("o.xyz")): "expected .cu, .ptx",
            ("-o", self.model): "is read, and would be overwritten",
            ("-o", self.path("o.cu"), "--emit=cu=" + self.path("o.cu")): "would be written twice",
            ("--emit=module",): "-o model.fusec",
            ("--emit=plan=",): "has no file",
            ("--jobs=-1",): "option jobs",
            ("--symbol=tokens=--5",): "NAME=VALUE",
        }.items():
            status, text, written = self.compiled(*wrong)
            self.assertEqual((status, written), (2, []), wrong)
            self.assertIn(told, text)
        status, text, _ = self.compiled("--no-nvrtc", "-o", self.path("nodir/o.cu"))
        self.assertEqual((status, text), (3, f"error: {self.path('nodir/o.cu')}: the output cannot be written: "
                                             "No such file or directory\n"))

    def test_without_nvrtc(self):
        missing = {"FUSEC_NVRTC": "/nowhere/libnvrtc.so.13"}
        status, text, written = self.compiled("-o", self.path("o.cu"), **missing)
        self.assertEqual((status, written), (0, ["o.cu"]))
        self.assertIn("warning: the source is not proven to compile", text)
        self.assertIn("pip install nvidia-cuda-nvrtc", text)
        status, text, written = self.compiled("-o", self.path("o.txt"), **missing)
        self.assertEqual((status, written), (0, ["o.txt"]))
        self.assertNotIn("warning", text)
        status, text, written = self.compiled("-o", self.path("o.ptx"), **missing)
        self.assertEqual((status, written), (3, []))
        self.assertIn("--no-nvrtc emits source alone", text)

    def test_every_option_is_taken(self):
        help = self.run_fusec("compile", "--help").stdout
        for name, option in fusec._options.OPTIONS.items():
            if name != "progress":
                self.assertIn("--" + name.replace("_", "-"), help)
                self.assertIn(" ".join(option.text.split()[:3]), " ".join(help.split()))
        numbers = ["--plan-deadline", "5", "--timeout", "50", "--jobs", "1", "--max-args", "8", "--max-memory", "2G"]
        self.assertEqual(self.compiled(*numbers, "--no-nvrtc", "-o", self.path("o.cu"))[::2], (0, ["o.cu"]))

    def test_words(self):
        path, out = self.model, self.path("out.cu")
        ran = self.run_fusec("compile", path, "-o", out, "--no-nvrtc", "--arch=sm_90a", "--symbol", "tokens=8")
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertIn("sm_90a", ran.stderr)
        with open(out) as file:
            self.assertIn("__global__", file.read())
        self.assertIn("one kernel", self.run_fusec("explain", path, "act", "y").stdout)
        self.assertTrue(json.loads(self.run_fusec("explain", path, "act", "y", "--json").stdout)["one_kernel"])
        self.assertIn("--strategy=full", self.run_fusec("explain", path, "act", "y", "--strategy=none").stdout)
        self.assertIn("--timeout=SECONDS", self.run_fusec("compile", path, "--timeout=1e-9").stderr)
        self.assertEqual(self.run_fusec("compile", "nothere.json").returncode, 1)
        self.assertEqual(self.run_fusec("compile", "nothere.json", "--strategy=best").returncode, 1)
        self.assertEqual(self.run_fusec("compil").returncode, 2)

    def test_doctor(self):
        ran = self.run_fusec("doctor", "--json")
        findings = {f["subject"]: f for f in json.loads(ran.stdout)}
        self.assertEqual(findings["NVRTC"]["state"], "good")
        self.assertEqual(ran.returncode, 0)
        self.assertIn("CUDA driver", findings)
        if findings["CUDA driver"]["state"] != "good":
            self.assertIn("emulator", findings["CUDA driver"]["advice"])


if __name__ == "__main__":
    unittest.main()
