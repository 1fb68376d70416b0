# SPDX-License-Identifier: Apache-2.0
# executed.py - what ScheduleGPipe and Schedule1F1B do when they run: they have no file of messages, so the calls of their
# _step_microbatches are recorded on a stage that computes nothing and messages that go nowhere.
import types

from pipelining import schedules, stage


def message(calls, ops):
    if ops:
        calls.append(list(ops))
    return []


class Recorder:
    def __init__(self, ranks, rank):
        self.calls = []  # a word is a pass, a list of words messages that are started together
        self.__dict__.update(vars(stage(rank, ranks, ranks, rank)))
        is_last = rank == ranks - 1
        for name, word, has in (("get_fwd_recv_ops", "RECV_F", rank > 0), ("get_fwd_send_ops", "SEND_F", not is_last),
                                ("get_bwd_recv_ops", "RECV_B", not is_last), ("get_bwd_send_ops", "SEND_B", rank > 0)):
            setattr(self, name, lambda m, word=word, has=has: [f"{rank}{word}{m}"] if has else [])
        self.forward_one_chunk = lambda m, *_, **__: self.calls.append(f"{rank}F{m}")
        self.backward_one_chunk = lambda m, *_, **__: self.calls.append(f"{rank}B{m}")

    def __getattr__(self, name):  # what else is called of a stage does nothing here
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *_, **__: None


# The calls of a rank. Raises ValueError where the class does not take these numbers.
def calls_of(cls, ranks, rank, microbatches):
    recorder = Recorder(ranks, rank)
    schedule = cls(recorder, microbatches)
    schedule._stage_initialized = schedule._stage_forward_initialized = schedule._stage_backward_initialized = True
    schedule._check_inputs = lambda *_, **__: ([()] * microbatches, [{}] * microbatches)
    for name in ("_maybe_compute_loss", "_maybe_get_loss", "_update_losses", "_initialize_stage"):
        setattr(schedule, name, lambda *_, **__: None)
    kept = {name: getattr(schedules, name) for name in ("_batch_p2p", "_sorted_batch_p2p", "_wait_batch_p2p")
            if hasattr(schedules, name)}
    schedules._batch_p2p = lambda ops, *_, **__: message(recorder.calls, ops)
    schedules._sorted_batch_p2p = lambda ops, *_, **__: types.SimpleNamespace(values=lambda: [message(recorder.calls, ops)])
    schedules._wait_batch_p2p = lambda *_, **__: None
    try:
        schedule._step_microbatches([()] * microbatches, [{}] * microbatches)
    finally:
        for name, function in kept.items():
            setattr(schedules, name, function)
    return recorder.calls


# As a row of a file: the messages one after the other.
def row(calls):
    return [word for call in calls for word in (call if isinstance(call, list) else [call])]
