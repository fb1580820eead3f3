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

    def test_limits(self):
        self.check(fusec.InputError, "time", lambda: fusec.compile(models.linear(), timeout=1e-9, no_nvrtc=True))

    def test_missing_nvrtc(self):
        code = "import fusec, models; fusec.compile(models.gated(), no_cache=True)"
        env = {**os.environ, "FUSEC_NVRTC": "/nowhere/libnvrtc.so.13"}
        ran = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True,
                             cwd=os.path.dirname(__file__))
        self.assertIn("PlatformError", ran.stderr)
        self.assertIn("/nowhere/libnvrtc.so.13", ran.stderr)

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
    def run_fusec(self, *arguments):
        return subprocess.run([sys.executable, "-m", "fusec", *arguments], capture_output=True, text=True)

    def test_words(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "m.json")
            with open(path, "w") as file:
                file.write(models.gated().to_json())
            out = os.path.join(folder, "out.cu")
            ran = self.run_fusec("compile", path, "-o", out, "--no-nvrtc", "--arch=sm_90a", "--symbol", "tokens=8")
            self.assertEqual(ran.returncode, 0, ran.stderr)
            self.assertIn("sm_90a", ran.stderr)
            with open(out) as file:
                self.assertIn("__global__", file.read())
            self.assertIn("one kernel", self.run_fusec("explain", path, "act", "y").stdout)
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
