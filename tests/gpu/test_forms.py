"""The programs that check and measure on a GPU refuse a form that computes something else; here on a CPU, by tapes."""

from functools import partial
from unittest import mock

import graph_checks
import measure
import pytest
import torch
from tape import TapeRecorder, refuse

from pipeline.training.captured_steps import CapturedSteps


class Taped(CapturedSteps):
    """Captured steps; a tape stands in for a CUDA graph."""

    def __init__(self, spec, model, optimiser, group, device, grid, recorder):
        tape = TapeRecorder(lambda: [*model.parameters(), *model.buffers(), *optimiser.tensors().values()])
        super().__init__(spec, model, optimiser, group, device, grid, tape if recorder == "tape" else recorder)


class Doubled(Taped):
    """Steps with the same loss and twice its gradients."""

    def _backward(self, batch):
        self.scale.mul_(2)
        return super()._backward(batch)


class Unsmoothed(Taped):
    """Steps of another loss."""

    def _backward(self, batch):
        plain = self.spec.training.model_copy(update={"label_smoothing": 0.0})
        with mock.patch.object(self, "spec", self.spec.model_copy(update={"training": plain})):
            return super()._backward(batch)


class Growing(Taped):
    """Steps that the host computes with another factor each time, which a graph does not see."""

    calls = 0

    def _backward(self, batch):
        Growing.calls += 1
        self.scale.mul_(Growing.calls)
        return super()._backward(batch)


class Stuck(Taped):
    """Steps that cannot be recorded any more once all graphs were dropped."""

    def forget(self):
        super().forget()
        self.graphs.recorder.fail = refuse


def exit_status(program, monkeypatch, *arguments) -> object:
    """Run a program on a CPU with the one case "small"."""
    monkeypatch.setattr("sys.argv", ["program", "--only", "small", *arguments])
    monkeypatch.setattr(program, "CASES", {"small": measure.Case("anchors/tiny-transformer", 8, 4, 4)})
    monkeypatch.setattr(program, "choose_device", lambda *_, **__: torch.device("cpu"))
    monkeypatch.setattr(program, "CudaRecorder", lambda _: "tape")
    monkeypatch.setattr("trainings.WORDS", 50)
    with pytest.raises(SystemExit) as end:
        program.main()
    return end.value.code


@pytest.mark.slow
@pytest.mark.parametrize(
    "check, refusal",
    [
        (partial(graph_checks.check_form, "form", capturing=Taped), None),
        (partial(graph_checks.check_form, "form", capturing=Doubled), "form computes other gradient norms than plain"),
        (partial(graph_checks.check_form, "form", capturing=Unsmoothed), "form computes other losses than plain"),
        (partial(graph_checks.check, capturing=Growing), "eager steps end in other weights than captured ones"),
        (partial(graph_checks.check, capturing=Stuck), "steps recorded again were not captured: RuntimeError"),
    ],
    ids=["equal", "gradients", "losses", "weights", "stuck"],
)
def test_a_check_refuses_a_form_that_differs(monkeypatch, capsys, check, refusal):
    monkeypatch.setattr(graph_checks, "CHECKS", {"small": check})
    assert exit_status(graph_checks, monkeypatch) == bool(refusal)
    assert ("failed" in (printed := capsys.readouterr().out)) == bool(refusal) and (refusal or "") in printed


@pytest.mark.slow
@pytest.mark.parametrize("form", [Taped, Doubled])
def test_a_form_that_differs_has_no_time(monkeypatch, capsys, form):
    ways = {"small": measure.train, "small, graphs": partial(measure.train_by_graphs, capturing=form)}
    monkeypatch.setattr(measure, "ways", lambda *_: ways)
    assert exit_status(measure, monkeypatch, "--only-graphs", "--block", "1") == (form is Doubled)
    *_, line = capsys.readouterr().out.splitlines()
    refused = "failed: ValueError: small, graphs computes other gradient norms than small: relative distance"
    assert line.startswith(f"| small, graphs | {' | 0 |' if form is Taped else refused}")
