"""Signals are noted while a training runs, and act as ever before and after."""

import os
import signal
import threading

import pytest

from pipeline.training.ownership import StopRequest


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGTERM, 75), (signal.SIGUSR2, 75), (signal.SIGINT, 130)], ids=["TERM", "USR2", "INT"]
)
def test_signal_is_recorded_with_its_conventional_exit_code(number, code):
    before = signal.getsignal(number)
    with StopRequest() as stop:
        assert stop.signal is None
        os.kill(os.getpid(), number)
        assert (stop.signal, stop.exit_code) == (number, code)
    assert signal.getsignal(number) is before


def test_only_a_second_sigint_interrupts_immediately():
    with StopRequest() as stop:
        os.kill(os.getpid(), signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGINT)
        assert stop.signal == signal.SIGINT
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)


def test_signal_handlers_are_not_set_in_a_thread():
    faults = []

    def enter():
        try:
            with StopRequest():
                pass
        except ValueError as error:
            faults.append(error)

    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    assert not faults
