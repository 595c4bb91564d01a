"""Every operator in Python, computed by its reference, under namespaces of their own: one right, the others with defects.

Loaded by `python -m esimd_ops check --namespace ... --library planted.py`, in a child process.
"""

import os
import signal
import threading
import time

import torch

from esimd_ops import samples
from esimd_ops.reference.parts import int4_weight
from esimd_ops.table import OPS

libraries = []  # a library that is collected takes its operators with it


def schema(name, declared, returns):
    """The operator's schema, with the given arguments declared as written."""
    types = {int: "int", float: "float", bool: "bool"}
    words = []
    for argument, value in samples.make(name).arguments.items():
        mark = f"(a{len(words)}!)" if argument in declared else ""
        kind = f"Tensor{mark}" if isinstance(value, torch.Tensor) else types[type(value)]
        words.append(f"{kind} {argument}")
    return f"{name}({', '.join(words)}) -> {returns}"


def right(name):
    """What the operator should do: everything in `values` that it writes is written."""

    def run(values):
        for argument, value in OPS[name].reference(**values).items():
            values[argument].copy_(value)

    return run


def register(namespace, name, run=None, declared=None, returns="()"):
    """`run(values)` does the work on the arguments by name."""
    library = torch.library.Library(namespace, "FRAGMENT")
    run = run or right(name)
    declared = OPS[name].writes if declared is None else declared

    def implementation(*args):
        return run(dict(zip(OPS[name].arguments, args, strict=True)))

    library.define(schema(name, declared, returns))
    library.impl(name, implementation, "CPU")
    libraries.append(library)


def nibbles_swapped(values):
    weight = int4_weight(values["weight"] >> 4 | values["weight"] << 4, values["weight_scale"], torch.float32)
    values["output"].copy_(values["input"].float() @ weight.T)


def sum_without_its_tail(values):
    values["output"].copy_(values["input"][:, :-1].float() @ values["weight"][:, :-1].float().T)


def last_column_forgotten(values):
    expected = OPS["esimd_rms_norm"].reference(**values)["output"]
    values["output"][..., :-1] = expected[..., :-1]


def weight_scale_scribbled_on(values):
    right("esimd_gemv_fp8_pern")(values)
    values["weight_scale"][0] += 1


def one_past_the_end(values):
    right("esimd_moe_silu_mul")(values)
    output = values["output"]
    output.as_strided((1,), (1,), output.storage_offset() + output.numel()).fill_(1)


def one_between_the_rows(values):
    right("esimd_gdn_conv_fused")(values)
    state = values["conv_state"]
    if not state.is_contiguous():
        state.as_strided((1,), (1,), state.storage_offset() + state[0].numel()).fill_(1)


SUMS = {}


def cached_by_address(values):
    right("esimd_gemv_int4")(values)
    output = SUMS.setdefault(values["weight"].data_ptr(), values["output"].clone())
    values["output"].copy_(output)


def cached_in_one_size(name, argument, shape):
    def run(values):
        right(name)(values)
        if values[argument].shape == shape:
            output = SUMS.setdefault(values[argument].data_ptr(), values["output"].clone())
            values["output"].copy_(output)

    return run


def cached_by_address_and_version(values):
    """An allocator that hands memory out again gives both again."""
    right("esimd_gemv_fp16")(values)
    weight = values["weight"]
    values["output"].copy_(SUMS.setdefault((weight.data_ptr(), weight._version), values["output"].clone()))


def cached_from_the_third_call_on(values):
    right("esimd_gemv_fp8_pern")(values)
    calls = SUMS.setdefault((values["weight"].data_ptr(), "calls"), [])
    calls.append(values["output"].clone())
    values["output"].copy_(calls[2] if len(calls) > 2 else calls[-1])


def kept_where_it_is_a_number(values):
    """As fmax() and accumulating kernels do: poison does not show it."""
    old = values["output"].clone()
    right("esimd_moe_silu_mul")(values)
    values["output"].copy_(torch.where(old.isnan(), values["output"], old))


SCRATCH = {}


def through_memory_of_all_threads(values):
    output = values["output"].clone()
    right("esimd_rms_norm_gated")(values | {"output": output})
    SCRATCH["output"] = output
    time.sleep(0.001)  # as a kernel without Python's lock
    if SCRATCH["output"].shape == output.shape:
        output = SCRATCH["output"]
    values["output"].copy_(output)


def wrong_on_other_threads(values):
    right("esimd_moe_gelu_tanh_mul")(values)
    if threading.current_thread() is not threading.main_thread():
        values["output"][0, 0] += len(CALLS) % 2
        CALLS.append(None)


def refusing_on_other_threads(values):
    if threading.current_thread() is not threading.main_thread():
        raise RuntimeError("no device is set on this thread")
    right("esimd_moe_scatter")(values)


def output_before_the_input_is_read_in_one_size(values):
    if values["out"].shape[-1] == 2816:
        values["out"].zero_()
    right("esimd_norm_add_norm")(values)


def output_before_the_input_is_read(values):
    values["output"][:1].zero_()
    right("esimd_rms_norm")(values)


def fresh_for_many_rows(values):
    right("esimd_gemm_int4_pgrp")(values)
    return values["output"].clone() if len(values["output"]) > 60 else values["output"]


SEEN = []


def fresh_when_called_again(values):
    right("esimd_gemm_fp8_blockscale")(values)
    again = any(torch.equal(values["input"], earlier) for earlier in SEEN)
    SEEN.append(values["input"].clone())
    return values["output"].clone() if again else values["output"]


KEPT = {}


def kept_buffer(values):
    right("esimd_gemm_fp8_pert")(values)
    output = values["output"]
    return KEPT.setdefault(output.shape, torch.empty_like(output)).copy_(output)


def fresh_result(values):
    right("esimd_gemv_int4_fused2")(values)
    return values["o0"].clone()


CALLS = []


def last_bit_by_turns(values):
    right("esimd_moe_gather")(values)
    if threading.current_thread() is threading.main_thread():
        CALLS.append(None)
    if len(CALLS) % 3 == 0:
        values["final_hidden"].view(torch.int16)[0, 0] ^= 1


def one_bit_of_a_copy(values):
    right("esimd_moe_scatter")(values)
    values["scattered_hidden"].view(torch.int16)[0, 5] ^= 1


def too_many_rows(values):
    right("esimd_moe_gelu_tanh_mul")(values)
    values["output"][values["total_rows"] :] = 0


def refusing(values):
    raise RuntimeError("esimd_moe_topk: argument 'T': expected something else, found this")


def crashing(values):
    os.kill(os.getpid(), signal.SIGSEGV)


def hanging(values):
    time.sleep(3600)


for _name in OPS:
    register("planted_right", _name)

register("planted", "esimd_gemv_int4", nibbles_swapped)
register("planted", "esimd_gemv_fp16", sum_without_its_tail)
register("planted", "esimd_rms_norm", last_column_forgotten)
register("planted", "esimd_gemv_fp8_pern", weight_scale_scribbled_on)
register("planted", "esimd_fused_add_rms_norm", declared=("hidden_states",))
register("planted", "esimd_norm_gemv_norm_fp16", declared=())
register("planted", "esimd_moe_silu_mul", one_past_the_end)
register("planted", "esimd_gdn_conv_fused", one_between_the_rows)
register("planted", "esimd_gemm_fp8_pert", kept_buffer, returns="Tensor")
register("planted", "esimd_gemv_int4_fused2", fresh_result, returns="Tensor")
register("planted", "esimd_moe_gather", last_bit_by_turns)
register("planted", "esimd_moe_scatter", one_bit_of_a_copy)
register("planted", "esimd_moe_gelu_tanh_mul", too_many_rows)
register("planted", "esimd_moe_topk", refusing)
register("planted", "esimd_norm_add_norm", crashing)
register("planted", "q4_0_quantize")

register("planted_more", "esimd_gemv_int4", cached_by_address)

register("planted_late", "esimd_norm_add_norm", output_before_the_input_is_read_in_one_size)

register("planted_calls", "esimd_gemv_int4", cached_in_one_size("esimd_gemv_int4", "weight", (1040, 2560 // 2)))
register("planted_calls", "esimd_gemv_fp16", cached_by_address_and_version)
register("planted_calls", "esimd_gemv_fp8_pern", cached_from_the_third_call_on)
register("planted_calls", "esimd_moe_silu_mul", kept_where_it_is_a_number)
register("planted_calls", "esimd_rms_norm_gated", through_memory_of_all_threads)
register("planted_calls", "esimd_moe_gelu_tanh_mul", wrong_on_other_threads)
register("planted_calls", "esimd_moe_scatter", refusing_on_other_threads)
register("planted_calls", "esimd_rms_norm", output_before_the_input_is_read)
register("planted_calls", "esimd_gemm_int4_pgrp", fresh_for_many_rows, returns="Tensor")
register("planted_calls", "esimd_gemm_fp8_blockscale", fresh_when_called_again, returns="Tensor")

register("planted_slow", "esimd_rms_norm", hanging)
