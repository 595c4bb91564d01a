"""The operators in a process: it ends well, threads and forks may use them, trouble is told and not waited for."""

import os
import subprocess
import sys
import threading

import pytest
import torch

from esimd_ops import registry, samples
from esimd_ops.table import OPS

PROGRAM = """
import os, threading
import torch
from esimd_ops import native, samples
native.load()
ops = torch.ops.esimd_ops
def run(operator="esimd_rms_norm", sizes=None):
    arguments = samples.make(operator, sizes).arguments
    getattr(ops, operator)(*arguments.values())
    assert arguments["output"].isfinite().all()
def in_child(times=1):
    for _ in range(times):
        child = os.fork()
        if child == 0:
            code = 1
            try:
                run()
                run("esimd_gemv_int4")
                code = 0
            except RuntimeError as error:
                print(str(error).splitlines()[0], flush=True)
                code = 3
            finally:
                os._exit(code)
        print("child", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


@pytest.fixture
def run(extension):
    def run(program, **environment):
        command = [sys.executable, "-c", PROGRAM + program]
        return subprocess.run(command, capture_output=True, text=True, timeout=120, env={**os.environ, **environment})

    return run


def test_the_process_ends_with_zero(run):
    result = run("run()\nprint('done')")
    assert (result.returncode, result.stdout) == (0, "done\n"), result.stderr


def test_a_child_may_use_the_device_first(run):
    result = run("in_child()\nrun()")
    assert (result.returncode, result.stdout) == (0, "child 0\n"), result.stderr


def test_children_may_use_the_device_after_their_parent(run):
    result = run("run()\nin_child(5)\nrun()")
    assert (result.returncode, result.stdout) == (0, "child 0\n" * 5), result.stderr


def test_a_child_forked_in_the_middle_of_a_call_is_refused(run):
    result = run(
        """
stop = False
def busy():
    arguments = samples.make("esimd_gemm_int4_pgrp", (256, 4096, 4096)).arguments
    while not stop:
        ops.esimd_gemm_int4_pgrp(*arguments.values())
        started.set()
started = threading.Event()
thread = threading.Thread(target=busy)
thread.start()
started.wait()
in_child()
stop = True
thread.join()
"""
    )
    assert result.returncode == 0, result.stderr
    assert "forked while another thread of its parent was running an operator" in result.stdout
    assert "child 3" in result.stdout


def test_a_missing_device_is_named(run):
    result = run("run()", OCL_ICD_FILENAMES="/nowhere/libintelocl.so", OCL_ICD_VENDORS="/nowhere")
    assert result.returncode == 1
    assert "no SYCL CPU device with fp16" in result.stderr
    assert "intel-opencl-rt" in result.stderr


def test_eight_threads(ops):
    operators = registry.names("esimd_ops")
    failures = []

    def work(seed):
        for operator in operators[seed:] + operators[:seed]:
            arguments = samples.make(operator).arguments
            entry = OPS[operator]
            expected = entry.comparable(entry.reference(**arguments))
            getattr(ops, operator)(*arguments.values())
            got = entry.comparable({name: arguments[name] for name in entry.writes})
            for name, value in expected.items():
                if not torch.allclose(got[name].float(), value.float(), rtol=8e-3, atol=8e-3, equal_nan=True):
                    failures.append((seed, operator, name))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_facts(ops, extension):
    ops.esimd_rms_norm(*samples.make("esimd_rms_norm").arguments.values())
    device = extension.device()
    assert device["name"]
    assert 16 in device["sub_group_sizes"]
    assert any(name.startswith("norm/rms_norm") and seconds > 0 for name, seconds in extension.kernels().items())
    assert extension.build_mode in {"host", "xpu"}
