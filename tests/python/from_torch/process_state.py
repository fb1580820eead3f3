"""What an import leaves as it was: modes of modules, and what belongs to the process."""

import concurrent.futures
from unittest import mock

import fusec
import interfaces
import torch
from comparisons import Folder, compiled


class ProcessState(Folder):
    """What an import leaves as it was."""

    def test_modes_of_submodules(self):
        module = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Dropout(), torch.nn.BatchNorm1d(3)).train()
        module[2].eval()
        call = compiled(fusec.from_torch(module, (torch.ones(2, 3),)))
        self.assertEqual([m.training for m in module.modules()], [True, True, True, False])
        self.run_and_compare(call, module.eval(), (torch.ones(2, 3),))
        with self.assertRaises(fusec.InputError):
            fusec.from_torch(torch.nn.Sequential(interfaces.CallsHelper()).train(), (torch.eye(3),))

    def test_overlapping_imports(self):
        from fusec._torch import program
        from torch.fx.proxy import TracerBase

        def state():
            return torch.backends.mha.get_fastpath_enabled(), vars(TracerBase).get("_filter_traceback_frames")

        before = state()
        changes = program.NO_FUSED_KERNELS, program.LINES_OF_OPERATORS
        for change in changes + changes:  # as two threads enter
            change.__enter__()
        for change in changes:
            change.__exit__()
        self.assertTrue(all(now != then for now, then in zip(state(), before)))
        for change in changes:
            change.__exit__()
        self.assertEqual(state(), before)

    def test_explanations_of_two_threads(self):
        from torch._dynamo.symbolic_convert import InstructionTranslatorBase

        def explained():
            return fusec.explain(interfaces.result_of(interfaces.breaks)()[0], torch.ones(3), options={"no_nvrtc": True})

        before = InstructionTranslatorBase.log_graph_break
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            torch._dynamo.reset()
            alone = explained()
            torch._dynamo.reset()  # which is the process's: before the threads begin
            both = [f.result() for f in [pool.submit(explained) for _ in range(2)]]
        self.assertEqual([len(e.breaks) for e in both], [len(alone.breaks)] * 2)
        self.assertIs(InstructionTranslatorBase.log_graph_break, before)

    def test_a_version_of_pytorch_without_a_private_function(self):
        from fusec._torch import private

        bags = torch.nn.EmbeddingBag(5, 3)
        with mock.patch.dict(private.USED, get_proxy_slot="torch.fx.experimental.proxy_tensor.gone"):
            fusec.from_torch(torch.nn.Linear(3, 3), (torch.ones(2, 3),))
            with self.assertRaisesRegex(fusec.FusecError, r"without torch\.fx\.experimental\.proxy_tensor\.gone"):
                fusec.from_torch(bags, (torch.ones(2, 2, dtype=torch.int64),))
