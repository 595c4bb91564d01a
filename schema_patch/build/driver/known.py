"""The options of icpx that the driver knows, each with the part of a build that it is for. Data only."""

from __future__ import annotations

from enum import Enum


class For(Enum):
    """Which part of the build an option is for."""

    BOTH = "front end and host compiler"
    HOST = "host compiler"
    DEVICE = "front end"
    LINK = "linker"
    DRIVER = "driver"


# Options that are one word, by the whole word; and those whose value is a word of its own, or is joined to them.
ONE = (
    (For.BOTH, r"-std=.*|-[DUI].+|-isystem.+|-include.+|-w|-W(?!l,|a,|p,|no-deprecated-sycl).*|"
               r"-pedantic(-errors)?|-ansi"),
    (For.BOTH, r"-f(no-)?(fast-math|math-errno|finite-math-only|associative-math|reciprocal-math|signed-zeros|"
               r"trapping-math|approx-func|honor-nans|honor-infinities|unsafe-math-optimizations|rounding-math|"
               r"char8_t|wrapv|strict-aliasing|strict-overflow|signed-char|unsigned-char|exceptions|"
               r"delete-null-pointer-checks|unroll-loops|inline|inline-functions|builtin)"),
    (For.BOTH, r"-ffp-(contract|model)=.*|-f(file|macro|debug)-prefix-map=.*|-ftemplate-(depth|backtrace-limit)=.*|"
               r"-fconstexpr-(steps|depth|loop-limit)=.*|-fbracket-depth=.*|-ferror-limit=.*|-f(no-)?diagnostics-.*|"
               r"-f(no-)?(color-diagnostics|caret-diagnostics|show-column)|-fclang-abi-compat=.*|-fms-extensions|"
               r"-f(no-)?declspec|"
               r"-fp-model[=].*|-fno-gnu-unique|-f(no-)?rtti"),
    (For.HOST, r"-f(pic|PIC|pie|PIE|no-pic|no-PIC|no-pie|no-PIE)|-fvisibility.*|-pthread|-O.*|-g.*|-m.*|-fopenmp.*|"
               r"-f(no-)?(stack-protector.*|stack-clash-protection|plt|semantic-interposition|common|"
               r"(asynchronous-)?unwind-tables|omit-frame-pointer|lto(=.*)?|function-sections|data-sections|"
               r"cf-protection(=.*)?|threadsafe-statics|trapv|use-cxa-atexit|integrated-as|abi-version=.*)|-pipe|"
               r"-Wa,.*|-Wp,.*|-D_FORTIFY_SOURCE=.*|-stdlib=libstdc\+\+"),
    (For.DEVICE, r"-fsycl-device-code-split(=(off|auto|per_kernel|per_source))?|-sycl-std=.*|"
                 r"-f(no-)?sycl-(early-optimizations|dead-args-optimization|id-queries-fit-in-int|unnamed-lambda|"
                 r"rdc|esimd-force-stateless-mem|optimize-non-user-code|force-inline-kernel-lambda|"
                 r"decompose-functor|allow-func-ptr|add-default-spec-consts-image|instrument-device-code)|"
                 r"-fsycl-(range-rounding|id-queries-range|fp32-prec-sqrt|fp64-conv-emu).*|-f(no-)?fp32-prec-sqrt|"
                 r"-fsycl-allow-device-image-dependencies|-fgpu-inline-threshold=.*|"
                 r"-f(no-)?sycl-device-lib(-jit-link)?(=.*)?|-foffload-fp32-prec-(sqrt|div)|"
                 r"-fno-offload-fp32-prec-(sqrt|div)|-Wno-deprecated-sycl"),
    (For.LINK, r"-shared|-static-lib(gcc|stdc\+\+)|-rdynamic|-fuse-ld=.*|-[Ll].+|-Wl,.*|-no-pie|-pie|-s|-nostartfiles|"
               r"-shared-libgcc|-B.+|-nodefaultlibs|-nostdlib"),
    (For.DRIVER, r"-c|-fsycl|-fsycl-link(=image)?|-fsycl-targets=.*|--?offload-compress|--?no-offload-compress|"
                 r"--?offload-compression-level=\d+|-fsycl-host-compiler=.*|-fsycl-host-compiler-options=.*|"
                 r"-fsycl-max-parallel-link-jobs=\d+|-M|-MM|-MD|-MMD|-MP|--version|-v|-###|-Qunused-arguments|"
                 r"-xc\+\+|-o.+|-Xs(?!ycl|pirv)[a-z-].*|-dpcpp|--driver-mode=g\+\+|-flink-huge-device-code|-no-ftz"),
)  # fmt: skip
TWO = (
    (For.BOTH, ("-D", "-U", "-I", "-isystem", "-iquote", "-idirafter", "-include", "-imacros")),
    (For.LINK, ("-L", "-l", "-B", "-Xlinker", "-z", "-u", "-T")),
    (For.DEVICE, ("-Xsycl-target-frontend",)),
    (For.DRIVER, ("-o", "-x", "-Xs", "-MF", "-MT", "-MQ", "-Xsycl-target-backend", "-Xsycl-target-linker",
                 "-Xspirv-translator")),
)  # fmt: skip
# Known, and not ours: what they ask for would be left out, so they are refused with the reason.
REFUSED = {
    "-E": "preprocessing alone is the host compiler's work: call clang++",
    "-S": "the device side has no assembly file: `ocloc disasm` shows machine code",
    "-M": "dependencies are written while compiling: -MD -MF FILE",
    "-MM": "dependencies are written while compiling: -MMD -MF FILE",
    "-fintelfpga": "there is no back end for an FPGA here",
    "-fiopenmp": "OpenMP offloading is not SYCL",
    "-qopenmp": "write -fopenmp for OpenMP on the host",
    "-T": "a linker script would move the sections of device code",
    "-fsycl-rdc": "device functions are not linked across files here",
}
