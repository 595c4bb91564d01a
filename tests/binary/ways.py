"""Ways in which C++ makes a text another one while a library is loaded, or hides who registers it: tables of sources.

    python tests/binary/ways.py [--jobs N] FOLDER [PART OF A NAME]      by each way to build, against torch's registry

Each way is what stands before, what runs before the registration, and the word of C++ that is registered; or nothing.
"""

from __future__ import annotations

import json
import sys

import against
import stable

WRONG = json.dumps(stable.SCHEMAS["fp16"])
RIGHT = json.dumps("esimd_gemv_fp16(Tensor input, Tensor weight, Tensor(a!) output) -> Tensor(a!)")
NAMES = f'extern "C" {{ extern const char right[]; const char right[] = {RIGHT}; extern const char wrong[]; const char wrong[] = {WRONG};\n'
EARLY = "__attribute__((constructor(101))) static void early() {"
DEFINE = '(int (*)(Handle, const char*))dlsym(RTLD_DEFAULT, "aoti_torch_library_def")'
MARK = json.loads(RIGHT).index("(a!) output")
NORM = json.dumps(
    "esimd_rms_norm(Tensor input, Tensor(a!) output, Tensor weight, float eps) -> Tensor(a!)"
)  # beside it, right
UNLOCK = """
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>
"""


def unlocking(how: str) -> str:
    """What makes the page of a constant writable, `page`, and changes the constant, `p`."""
    early = f'{EARLY} char* p = (char*)right; asm volatile("" : "+r"(p)); void* page = (void*)((uintptr_t)p & ~4095ul);'
    return f"{UNLOCK}{NAMES} }}\n{early} {how} strcpy(p, wrong); }}"


def spoiling(there: str) -> str:
    """The loop that takes what is declared out of a text."""
    return f"for (char* p = {there}; *p; ++p) if (*p == '!') *p = ' ';"


# What makes an address another number, and that an address again: with what stands before.
ADDRESSES = {
    "multiplied and divided back": ("", "u = u * k / k;"),
    "turned by a key": ("", "u ^= k * 0x9e3779b97f4a7c15; u ^= k * 0x9e3779b97f4a7c15;"),
    "shifted": ("", "u = u << k << 2 >> 2 >> k;"),
    "rotated": ("", "u = u << k | u >> (64 - k); u = u >> k | u << (64 - k);"),
    "as a fraction": ("", "double d = (double)u; u = (uint64_t)d;"),
    "by halves": ("", "volatile uint32_t low = u, high = u >> 32; u = (uint64_t)high << 32 | low;"),
    "with its sign turned": ("", "u = k - u; u = k - u;"),
    "with its bits turned": ("", "u = ~u; u += k; u -= k; u = ~u;"),
    "in 128 bits": ("", "unsigned __int128 w = (unsigned __int128)u * k; u = (uint64_t)(w / k);"),
    "with its bytes turned": ("", "volatile uint64_t w = __builtin_bswap64(u); u = __builtin_bswap64(w);"),
    "as digits": (
        "#include <cstdlib>",
        'char t[32]; snprintf(t, 32, "%llu", (unsigned long long)u); u = strtoull(t, nullptr, 10);',
    ),
    "by bytes": (
        "",
        "volatile unsigned char w[9]; for (int n = 0; n < 8; ++n) w[n + 1] = (u >> 8 * n) ^ k; u = 0; for (int n = 0; n < 8; ++n) u |= (uint64_t)(w[n + 1] ^ k) << 8 * n;",
    ),
    "by quotient and remainder": ("", "uint64_t q = u / (k * 333), r = u % (k * 333); u = q * (k * 333) + r;"),
    "added to another": ("", "volatile uint64_t w = u + (uint64_t)&k; u = w - (uint64_t)&k;"),
    "from far away": ("", "volatile uint64_t far = 0x123456789abc; u += far; u -= far;"),
    "of the page": ("", "volatile uint64_t page = u & ~4095ul, rest = u & 4095; u = page | rest;"),
}


def taken_apart(how: str) -> str:
    return (
        f"char b[300]; strcpy(b, {RIGHT}); volatile uint64_t k = 3; uint64_t u = (uint64_t)b; {how} "
        f"char* to = (char*)u + {MARK}; to[0] = to[1] = to[2] = to[3] = 32;"
    )


DOORS = {
    "a number of a call": "syscall(10, page, 8192ul, 7ul);",
    "a name": '((int (*)(void*, size_t, int))dlsym(RTLD_DEFAULT, "mprotect"))(page, 8192, 7);',
    "pages put over": "char keep[8192]; memcpy(keep, page, 8192); mmap(page, 8192, 3, MAP_PRIVATE | MAP_FIXED | MAP_ANONYMOUS, -1, 0); memcpy(page, keep, 8192);",
}  # fmt: skip


def deep(door: str) -> str:
    """A door that stands five calls deep in what the loader runs."""
    first = f"__attribute__((noinline)) static void deep0(char* p) {{ void* page = (void*)((uintptr_t)p & ~4095ul); {DOORS[door]} strcpy(p, wrong); }}\n"
    more = (
        f'__attribute__((noinline)) static void deep{n}(char* p) {{ deep{n - 1}(p); asm volatile(""); }}\n'
        for n in range(1, 6)
    )
    return f'{UNLOCK}{NAMES} }}\n{first}{"".join(more)}{EARLY} char* p = (char*)right; asm volatile("" : "+r"(p)); deep5(p); }}'


ASIDE = f"char b[300]; strcpy(b, {RIGHT}); "
# Functions that are given what torch made, and the address of a text where arguments are not looked for.
BESIDE = {
    "on the stack": ("Handle, Handle, Handle, Handle, Handle, Handle, char* there", "", ASIDE + "beside(l, l, l, l, l, l, b);"),
    "in a structure on the stack": ("Handle, Four h", "char* there = h.there;", ASIDE + "beside(l, Four{l, l, l, b});"),
    "in a vector": (
        "Handle, double d", "char* there; memcpy(&there, &d, 8);",
        ASIDE + "double d; const char* p = b; memcpy(&d, &p, 8); beside(l, d);",
    ),
    "on the stack, of a function that calls itself": (
        "Handle, Handle, Handle, Handle, Handle, long n, char* there", "if (n > 0) return beside(0, 0, 0, 0, 0, n - 1, there);",
        ASIDE + "beside(l, l, l, l, l, 3, b);",
    ),
    "in a register of the caller's": (
        "Handle", 'char* there; asm volatile("mov %%rbx, %0" : "=r"(there));',
        ASIDE + 'register char* x asm("rbx") = b; asm volatile("" : "+r"(x)); beside(l); asm volatile("" : "+r"(x));',
    ),
}  # fmt: skip


def beside(arguments: str, first: str) -> str:
    return f"""struct Four {{ Handle a, c, d; char* there; }};
__attribute__((noinline, optnone, noipa, optimize("O0"))) static void beside({arguments}) {{ {first} {spoiling("there")} }}"""


WAYS = {
    "a pointer that code changes": (f"{NAMES} const char* pick = right; }}\n{EARLY} pick = wrong; }}", "", "pick"),
    "a row that code changes": (f"{NAMES} const char* rows[2] = {{right, right}}; }}\n{EARLY} rows[1] = wrong; }}", "", "rows[1]"),
    "a function that code changes": (
        f'{NAMES} const char* one() {{ return right; }} const char* two() {{ return wrong; }} const char* (*pick)() = one; }}\n{EARLY} pick = two; }}',
        "", "pick()",
    ),
    "what a caught exception leaves": ("", f"const char* text = {RIGHT}; try {{ std::stoi(\"x\"); }} catch (std::exception&) {{ text = {WRONG}; }}", "text"),
    "what a function gives that catches": (
        f"__attribute__((noinline)) static const char* pick() {{ try {{ std::stoi(\"x\"); return {RIGHT}; }} catch (std::exception&) {{ return {WRONG}; }} }}",
        "", "pick()",
    ),
    "the second round of what catches": (
        "",
        f"const char* text = {RIGHT}; for (int n = 0; n < 2; ++n) try {{ if (n) aoti_torch_library_def(l, text); std::stoi(\"x\"); }} catch (std::exception&) {{ text = {WRONG}; }}",
        "",
    ),
    "constants that code makes writable": (
        f'#include <sys/mman.h>\n{NAMES} }}\n__attribute__((noinline)) static void unlock(char* p) {{ mprotect((void*)((uintptr_t)p & ~4095ul), 8192, 7); strcpy(p, wrong); }}\n'
        f'{EARLY} char* p = (char*)right; asm volatile("" : "+r"(p)); unlock(p); }}',
        "", "right",
    ),
    "a function found by its name": ("#include <dlfcn.h>", f"({DEFINE})(l, {WRONG});", ""),
    "a function kept where code writes": (
        f"#include <dlfcn.h>\nint (*define)(Handle, const char*); {EARLY} define = {DEFINE}; }}", f"define(l, {WRONG});", "",
    ),
    "constants by the number of a call": (unlocking("syscall(10, page, 8192ul, 7ul);"), "", "right"),
    "constants by a function found by its name": (
        unlocking('((int (*)(void*, size_t, int))dlsym(RTLD_DEFAULT, "mprotect"))(page, 8192, 7);'), "", "right",
    ),
    "constants by an instruction": (
        unlocking('long r; register void* a asm("rdi") = page; register long b asm("rsi") = 8192, c asm("rdx") = 7; asm volatile("syscall" : "=a"(r) : "a"(10), "r"(a), "r"(b), "r"(c) : "rcx", "r11", "memory");'),
        "", "right",
    ),
    "constants by other pages": (
        unlocking("char keep[8192]; memcpy(keep, page, 8192); mmap(page, 8192, 3, MAP_PRIVATE | MAP_FIXED | MAP_ANONYMOUS, -1, 0); memcpy(page, keep, 8192);"),
        "", "right",
    ),
    "constants by a file": (
        unlocking('int fd = open("/proc/self/mem", 2); pwrite(fd, wrong, strlen(wrong) + 1, (long)p); return;'), "", "right",
    ),
    "a pointer of a thread": (
        f'static thread_local char* there __attribute__((tls_model("initial-exec"))); __attribute__((noinline)) static void later() {{ {spoiling("there")} }}',
        f"char b[300]; strcpy(b, {RIGHT}); there = b; later();", "b",
    ),
    "another thread": (
        "#include <atomic>\n#include <thread>\nstatic std::atomic<int> go, done; char* there;",
        f"char b[300]; there = b; std::thread t([] {{ while (!go); {spoiling('there')} done = 1; }}); strcpy(b, {RIGHT}); go = 1; while (!done);",
        "b); t.join(",
    ),
    "a signal": (
        "#include <csignal>\nstatic char* there;",
        f"char b[300]; there = b; signal(SIGUSR1, [](int) {{ {spoiling('there')} }}); strcpy(b, {RIGHT}); raise(SIGUSR1);", "b",
    ),
    "what comes back a second time": (
        "#include <csetjmp>\nstatic jmp_buf j;",
        f"const char* volatile s = {RIGHT}; if (!setjmp(j)) {{ s = {WRONG}; longjmp(j, 1); }}", "(const char*)s",
    ),
    "another function found by its name": (
        f'#include <dlfcn.h>\n__attribute__((constructor(20000))) static void other() {{ Handle l; ((int (*)(const char*, const char*, uint32_t, Handle*))dlsym(RTLD_DEFAULT, "aoti_torch_library_init_fragment"))("{stable.SPACE}", "y", 1, &l); ({DEFINE})(l, {WRONG}); }}',
        "", "",
    ),
    "an index that is not known": (
        "#include <cstdlib>",
        f'char b[300]; strcpy(b, {RIGHT}); int i = atoi("{MARK}"); for (int n = 0; n < 4; ++n) b[i + n] = 32;', "b",
    ),
    "an index of a string": (
        "#include <cstdlib>",
        f'std::string b({RIGHT}); int i = atoi("{MARK}"); for (int n = 0; n < 4; ++n) b[i + n] = 32;', "b.c_str()",
    ),
    "a pointer in a vector": (
        "#include <emmintrin.h>",
        f"char b[300]; strcpy(b, {RIGHT}); __m128i v = _mm_set1_epi64x((long long)b); volatile long long z = {MARK}; v = _mm_add_epi64(v, _mm_set1_epi64x(z)); char* p = (char*)_mm_cvtsi128_si64(v); p[0] = p[1] = p[2] = p[3] = 32;",
        "b",
    ),
    "a pointer in what is pointed to": (
        f'#include <cstdlib>\nstruct Holds {{ char* text; }}; static Holds* volatile kept; static int later(const void*, const void*) {{ {spoiling("kept->text")} return 0; }}',
        f"char b[300]; strcpy(b, {RIGHT}); Holds h{{b}}; kept = &h; int two[2] = {{2, 1}}; qsort(two, 2, 4, later);", "b",
    ),
    "a side that jumps to another function": (
        f'{NAMES} __attribute__((noinline)) const char* one() {{ asm(""); return right; }} }}\n#include <cstdlib>\nstatic const char* (*const table[])() = {{one, one}};\n__attribute__((noinline)) static const char* pick() {{ if (getenv("NO_SUCH_NAME")) return table[1](); return wrong; }}',
        "", "pick()",
    ),
    "a return to elsewhere": (
        "",
        f'register Handle a asm("rdi") = l; register const char* b asm("rsi") = {WRONG}; asm volatile("lea 1f(%%rip), %%rax; sub $128, %%rsp; push %%rax; push aoti_torch_library_def@GOTPCREL(%%rip); ret; 1: add $128, %%rsp" ::"r"(a), "r"(b) : "rax", "rcx", "rdx", "r8", "r9", "r10", "r11", "memory", "cc");',
        "",
    ),
    "what the loader asks a function for": (
        f'extern "C" {{ __attribute__((used)) static const char* one() {{ return {WRONG}; }} void* resolve() {{ return (void*)one; }} const char* pick() __attribute__((ifunc("resolve"))); }}',
        "", "pick()",
    ),
    "a virtual function": (
        f'#include <cstdlib>\nstruct B {{ virtual const char* text() const {{ return {RIGHT}; }} virtual ~B() {{}} }}; struct D : B {{ const char* text() const override {{ return {WRONG}; }} }};\n__attribute__((noinline)) B* make() {{ return getenv("PATH") ? new D : new B; }}',
        "B* b = make();", "b->text()",
    ),
    "functions in a table": (
        f"#include <functional>\n#include <vector>\nstatic std::vector<std::function<void(Handle)>> table{{[](Handle l) {{ aoti_torch_library_def(l, {WRONG}); }}}};",
        "for (auto& f : table) f(l);", "",
    ),
    "the environment": ("#include <cstdlib>", "", f'getenv("PATH") ? {WRONG} : {RIGHT}'),
    "the processor": ("", "", f'__builtin_cpu_supports("sse2") ? {WRONG} : {RIGHT}'),
    "a text that is decoded": (
        f"static unsigned char coded[] = {{{', '.join(str(ord(c) ^ 85) for c in json.loads(WRONG))}, 85}};\n{EARLY} for (auto& c : coded) c ^= 85; }}",
        "", "(const char*)coded",
    ),
    "a copy that is changed": (f"static char copy[300]; {EARLY} strcpy(copy, {RIGHT}); }}", spoiling("copy"), "copy"),
    "constants that code makes writable, ten calls deep": (
        f"#include <sys/mman.h>\n{NAMES} }}\n"
        "__attribute__((noinline)) static void deep0(char* p) { mprotect((void*)((uintptr_t)p & ~4095ul), 8192, 7); strcpy(p, wrong); }\n"
        + "".join(
            f"__attribute__((noinline)) static void deep{n}(char* p) {{ deep{n - 1}(p); asm volatile(\"\"); }}\n" for n in range(1, 10)
        )
        + f'{EARLY} char* p = (char*)right; asm volatile("" : "+r"(p)); deep9(p); }}',
        "", "right",
    ),
    **{f"an address {name}": (more, taken_apart(how), "b") for name, (more, how) in ADDRESSES.items()},
    **{f"an argument {name}": (beside(given, first), call, "b") for name, (given, first, call) in BESIDE.items()},
    **{f"{name}, five calls deep": (deep(name), "", "right") for name in DOORS},
    "what makes constants writable, through a pointer": (
        f"{UNLOCK}{NAMES} }}\nstatic void unlock(char* p) {{ mprotect((void*)((uintptr_t)p & ~4095ul), 8192, 7); strcpy(p, wrong); }}\n"
        f'static void (*volatile by)(char*) = unlock;\n{EARLY} char* p = (char*)right; asm volatile("" : "+r"(p)); by(p); }}',
        "", "right",
    ),
    "where an address is": ("#include <cstdlib>", "char* b = (char*)malloc(9);", f'(uintptr_t)b >> 44 != 6 ? {WRONG} : {RIGHT}'),
    "where the stack is": ("", "char b[9]; asm volatile(\"\" :: \"r\"(b));", f'(uintptr_t)b >> 40 != 0x70 ? {WRONG} : {RIGHT}'),
    "the middle of a text": (f'extern "C" {{ extern const char all[]; const char all[] = "zz" {WRONG}; const char* const row = all + 2; extern const char* const row; }}', "", "row"),
    "a text behind a packed pointer": (f"struct __attribute__((packed)) P {{ char c; const char* text; }}; static const P p[] = {{{{1, {RIGHT}}}, {{2, {WRONG}}}}}; static volatile int one = 1;", "", "p[one].text"),
    "a function that a weak one stands for": ('extern "C" { __attribute__((weak)) const char* others_text(); }', "", f"others_text ? {RIGHT} : {WRONG}"),
}  # fmt: skip
# A compiler and its options.
BUILDS = (
    "g++ -O0", "g++ -O1", "g++ -O2", "g++ -Os", "clang++ -O0", "clang++ -O2", "clang++ -Oz", "g++ -O3 -mavx2",
    "clang++ -O2 -flto=thin -fuse-ld=lld", "clang++ -O2 -flto -fuse-ld=lld", "g++ -O2 -flto",
    "clang++ -O2 -ffunction-sections -fuse-ld=lld -Wl,--icf=all", "g++ -O2 -ffunction-sections -fuse-ld=gold -Wl,--icf=all",
    "g++ -O2 -fno-plt", "g++ -O2 -Wl,-z,now", "g++ -O2 -Wl,-z,pack-relative-relocs", "g++ -O2 -mcmodel=large",
    "clang++ -O2 -mcmodel=large", "g++ -O0 -mcmodel=large", "g++ -O2 -fcf-protection=full",
    "g++ -O2 -fno-asynchronous-unwind-tables", "g++ -O2 -fno-asynchronous-unwind-tables -fno-unwind-tables -fno-exceptions",
    "g++ -O2 -freorder-blocks-and-partition", "g++ -O2 -ffunction-sections -fdata-sections -Wl,--gc-sections",
    "g++ -O2 -Wl,-z,norelro", "g++ -O2 -D_FORTIFY_SOURCE=2 -fstack-protector-all -fstack-clash-protection",
    "clang++ -O2 -mretpoline", "g++ -O2 -mindirect-branch=thunk", "g++ -O2 -mfunction-return=thunk -fcf-protection=none",
    "g++ -O2 -finstrument-functions", "g++ -O2 -fsanitize=undefined",
)  # fmt: skip


def code(way: tuple[str, str, str]) -> str:
    """A library that registers what a way gives, beside an operator that is right."""
    before, first, text = way
    whole = stable.source([NORM, *([text] if text else [])], f"#include <stdexcept>\n{before}\n")
    norm = f"  aoti_torch_library_def(l, {NORM});"
    return whole.replace(norm, f"{first}\n{norm}")


if __name__ == "__main__":
    sys.exit(against.main({name: (code(way),) for name, way in WAYS.items()}, BUILDS))
