"""`python -m esimd_ops check` finds planted defects, each by its own code, and nothing in what is right."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from esimd_ops import parity
from esimd_ops.commands import main
from esimd_ops.parity import supervise
from esimd_ops.table import OPS
from esimd_ops.trials.messages import Request
from schema_patch.schemas import codes as policy

PLANTED = str(Path(__file__).with_name("planted.py"))

# operator of the namespace "planted": the codes that it must be found by, no more and no fewer
DEFECTS = {
    "esimd_gemv_int4": {"PA101"},
    "esimd_gemv_fp16": {"PA101"},
    "esimd_rms_norm": {"PA105"},
    "esimd_gemv_fp8_pern": {"PA104"},
    "esimd_fused_add_rms_norm": {"PA103"},
    "esimd_norm_gemv_norm_fp16": {"PA103", "PA110"},  # writes, and its schema says nothing: the compiled call is gone
    "esimd_moe_silu_mul": {"PA106"},
    "esimd_gdn_conv_fused": {"PA106"},
    "esimd_gemm_fp8_pert": {"PA108", "SP103"},
    "esimd_gemv_int4_fused2": {"PA109", "SP103"},
    "esimd_moe_gather": {"PA101", "PA107"},
    "esimd_moe_scatter": {"PA102"},
    "esimd_moe_gelu_tanh_mul": {"PA102"},
    "esimd_moe_topk": {"PA111"},
    "esimd_norm_add_norm": {"PA112"},
    "q4_0_quantize": set(),
}


def check(capsys, *words):
    """Exit code, report and standard error of a check with --format json."""
    code = main.main(["check", "--format", "json", *map(str, words)])
    out, err = capsys.readouterr()
    return code, json.loads(out) if out else None, err


@pytest.fixture(scope="module")
def planted():
    request = Request(namespace="planted", libraries=(PLANTED,), repeat=4)
    report = supervise.report(request, supervise.check(request))
    codes = {row.op: set() for row in report.checked}
    for finding in report.findings:
        codes[finding.op].add(finding.code)
    return report, codes


def test_every_defect_has_its_own_code(planted):
    report, codes = planted
    assert codes == DEFECTS, [f"{f.op}: {f.code} {f.message}" for f in report.findings]
    assert report.exit_code == 1


def test_what_is_found_is_told_in_words(planted):
    messages = {(finding.op, finding.code): finding.message for finding in planted[0].findings}
    assert "'output': 1 of 64 elements left unwritten" in messages["esimd_rms_norm", "PA105"]
    assert "'output': wrote 1 element past its last element" in messages["esimd_moe_silu_mul", "PA106"]
    assert "'conv_state': wrote 1 element between its rows" in messages["esimd_gdn_conv_fused", "PA106"]
    assert "'weight_scale' was written, and must only be read" in messages["esimd_gemv_fp8_pern", "PA104"]
    assert "'residual' was written, and the schema does not say so" in messages["esimd_fused_add_rms_norm", "PA103"]
    assert "8 results held at once share 1 buffers" in messages["esimd_gemm_fp8_pert", "PA108"]
    assert "1x64: ended by SIGSEGV" in messages["esimd_norm_add_norm", "PA112"]


def test_the_references_themselves_are_clean(capsys):
    code, report, err = check(capsys, "--namespace", "planted_right", "--library", PLANTED, "--quick", "--beyond")
    assert (code, report["findings"], err) == (0, [], "")
    assert {row["op"]: row["verdict"] for row in report["checked"]} == dict.fromkeys(OPS, "right")


def test_a_result_that_depends_on_an_earlier_call():
    request = Request(namespace="planted_more", libraries=(PLANTED,), repeat=2)
    report = supervise.report(request, supervise.check(request))
    assert [(finding.op, finding.code) for finding in report.findings] == [("esimd_gemv_int4", "PA114")]
    assert "with other values at the same addresses" in report.findings[0].message


# As DEFECTS, of what no single call shows.
CALLS = {
    "esimd_gemv_int4": {"PA114"},
    "esimd_gemv_fp16": {"PA114"},
    "esimd_gemv_fp8_pern": {"PA114"},
    "esimd_moe_silu_mul": {"PA114"},
    "esimd_rms_norm_gated": {"PA107"},
    "esimd_moe_gelu_tanh_mul": {"PA107"},
    "esimd_moe_scatter": {"PA111"},
    "esimd_rms_norm": {"PA101"},
    "esimd_gemm_int4_pgrp": {"PA109", "SP103"},
    "esimd_gemm_fp8_blockscale": {"PA109", "SP103"},
}


def test_what_no_single_call_shows():
    request = Request(namespace="planted_calls", libraries=(PLANTED,), repeat=5)
    report = supervise.report(request, supervise.check(request))
    codes = {operator: {f.code for f in report.findings if f.op == operator} for operator in CALLS}
    assert codes == CALLS, [f"{f.op}: {f.code} {f.message}" for f in report.findings]


@pytest.mark.parametrize(("effort", "codes"), [("usual", set()), ("severe", {"PA101"})])
def test_severe_is_every_check_with_every_sample(effort, codes):
    request = Request(namespace="planted_late", libraries=(PLANTED,), repeat=2, effort=effort)
    report = supervise.report(request, supervise.check(request))
    assert {finding.code for finding in report.findings} == codes


def test_an_operator_that_does_not_answer_is_a_finding():
    request = Request(namespace="planted_slow", libraries=(PLANTED,), repeat=2)
    report = supervise.report(request, supervise.check(request, step_s=3))
    assert [(finding.op, finding.code) for finding in report.findings] == [("esimd_rms_norm", "PA112")]
    assert "no answer in time" in report.findings[0].message


def test_a_library_that_dies_while_it_loads(capsys, tmp_path):
    library = tmp_path / "dying.py"
    library.write_text("import os, signal\nos.kill(os.getpid(), signal.SIGILL)\n")
    code, report, _ = check(capsys, "--namespace", "planted", "--library", library)
    assert code == 1
    assert [(finding["code"], finding["message"]) for finding in report["findings"]] == [
        ("PA112", "loading: ended by SIGILL")
    ]


@pytest.mark.long
def test_record_and_compare(capsys, tmp_path):
    record = tmp_path / "bits.json"
    words = ("--library", PLANTED, "--repeat", 2)
    right = ("--namespace", "planted_right", "--ops", "esimd_gemv_int4,q4_0_quantize,esimd_rms_norm", *words)
    assert check(capsys, *right, "--record", record)[0] == 0
    assert check(capsys, *right, "--against", record)[0] == 0
    code, report, _ = check(
        capsys, "--namespace", "planted", "--ops", "esimd_gemv_int4,q4_0_quantize", *words, "--against", record
    )
    assert code == 1
    told = {(f["op"], f["severity"]) for f in report["findings"] if f["code"] == "PA113"}
    assert told == {("esimd_gemv_int4", "error"), ("esimd_rms_norm", "warning")}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--namespace", "no_such_namespace"), "name what registers the operators with --library"),
        (("--library", "/nowhere/lib.so"), "/nowhere/lib.so"),
        (("--namespace", "empty_namespace", "--library", "math"), ""),
        (("--ops", "esimd_rms_nrom"), "did you mean esimd_rms_norm?"),
        (("--against", "/nowhere/bits.json"), "No such file or directory"),
        (("--device", "xpu"), "this torch sees no XPU device"),
        (("--namespace", "planted_slow", "--library", PLANTED, "--ops", "topk_v2"), "topk_v2 is not registered"),
    ],
)
def test_nothing_checked_is_exit_code_2(capsys, words, message):
    code, _, err = check(capsys, *words)
    assert code == 2
    assert message in err


def test_a_record_that_is_none(capsys, tmp_path):
    path = tmp_path / "bits.json"
    path.write_text("[]")
    code, _, err = check(capsys, "--against", path)
    assert (code, "not a record of this check" in err) == (2, True)


def test_every_code_is_documented():
    package = Path(parity.__file__).parents[1]
    texts = (path.read_text() for path in (*package.glob("parity/*.py"), *package.glob("trials/*.py")))
    used = {code for text in texts for code in re.findall(r'"(PA\d{3})"', text)}
    assert used == {code for code in policy.load() if code.startswith("PA")}
    assert used == {code for told in DEFECTS.values() for code in told if code.startswith("PA")} | {"PA113", "PA114"}


def test_help_loads_no_torch():
    program = "import sys; from esimd_ops.commands import main as cli; cli.main(['check', '--help']); sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, check=False).returncode == 0
