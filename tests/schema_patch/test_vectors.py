"""What instructions on vectors do to a text, followed, against this processor: each moves a schema that is then changed
where nothing was moved."""

from __future__ import annotations

import ctypes
import json
from pathlib import Path

import pytest
from elf_files import VOID, build

from schema_patch.elf import reader

# From %0, where the text is, to %1, where its first characters are others.
MOVES = {
    "halves": "movups 16(%0),%%xmm1; movlps (%0),%%xmm1; movhps 8(%0),%%xmm1; movups %%xmm1,(%1)",
    "halves stored": "movups (%0),%%xmm1; movlps %%xmm1,(%1); movhps %%xmm1,8(%1)",
    "halves of AVX": "vmovups (%0),%%ymm2; vmovlps (%0),%%xmm2,%%xmm1; vmovhps 8(%0),%%xmm1,%%xmm1; vmovups %%xmm1,(%1)",
    "a half of AVX clears": "vmovups (%0),%%ymm1; vmovlps (%0),%%xmm1,%%xmm1; vmovups %%ymm1,(%1)",
    "low words": "movq (%0),%%xmm1; movq 8(%0),%%xmm2; punpcklqdq %%xmm2,%%xmm1; movdqu %%xmm1,(%1)",
    "low words of AVX": "vmovq (%0),%%xmm1; vmovq 8(%0),%%xmm2; vpunpcklqdq %%xmm2,%%xmm1,%%xmm4; vmovdqu %%xmm4,(%1)",
    "inserted": "movups (%0),%%xmm1; pinsrq $0,(%0),%%xmm1; pinsrq $1,8(%0),%%xmm1; movups %%xmm1,(%1)",
    "inserting by AVX clears": "vmovups (%0),%%ymm5; vpinsrq $1,8(%0),%%xmm5,%%xmm5; vmovups %%ymm5,(%1)",
    "zeros of SSE": "vmovups (%0),%%ymm1; xorps %%xmm1,%%xmm1; vmovups %%ymm1,(%1)",
    "zeros of AVX": "vmovups (%0),%%ymm1; vmovups %%ymm1,(%1); vpxor %%xmm1,%%xmm1,%%xmm1; vmovups %%ymm1,(%1)",
    "numbers": "movd (%0),%%xmm1; movd %%xmm1,(%1); movss 4(%0),%%xmm1; movss %%xmm1,4(%1); movsd 8(%0),%%xmm1; movsd %%xmm1,8(%1)",
    "a number clears": "movups 8(%0),%%xmm1; movq (%0),%%xmm1; movups %%xmm1,(%1)",
}  # fmt: skip
SOURCE = """
#include <stdint.h>
#include <string.h>
char given[300];
int aoti_torch_library_init_def(const char *, const char *, uint32_t, void **) __attribute__((weak));
int aoti_torch_library_def(void *, const char *) __attribute__((weak));
static const char TEXT[192] = %s;
__attribute__((constructor)) static void registers(void) {
  void *library;
  char text[300];
  memcpy(text, TEXT, sizeof TEXT);
  if (aoti_torch_library_init_def) aoti_torch_library_init_def("mine", "x.cpp", 1, &library);
  text[0] = text[9] = '?';
  __asm__ volatile("%s" :: "r"(TEXT), "r"(text) : "memory", "xmm1", "xmm2", "xmm4", "xmm5");
  if (aoti_torch_library_def) aoti_torch_library_def(library, text);
  memcpy(given, text, sizeof text);
}
"""


@pytest.mark.parametrize("moves", MOVES)
def test_what_a_vector_holds_is_what_the_processor_has_in_it(tmp_path: Path, moves: str) -> None:
    if "avx2" not in Path("/proc/cpuinfo").read_text():
        pytest.skip("a processor without AVX2")
    path = build(tmp_path, more=SOURCE % (json.dumps(VOID), MOVES[moves]), flags=("-O1", "-mavx2", "-w"))
    given = (ctypes.c_char * 300).in_dll(ctypes.CDLL(str(path)), "given").value.decode()
    facts = reader.read(path)
    told = [found.text for found in facts.schemas] + [found.known for found in facts.unread if found.damaged]
    assert told + [found.name for found in facts.named] == [given]
