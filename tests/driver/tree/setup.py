from setuptools import setup
from torch.utils.cpp_extension import BuildExtension, SyclExtension

setup(
    name="small",
    version="0.1.0",
    packages=["small"],
    ext_modules=[
        SyclExtension(
            name="small._C",
            sources=["csrc/ops.cc", "csrc/kernels.sycl"],
            extra_compile_args={"cxx": ["-O1"], "sycl": ["-ffast-math", "-fsycl-device-code-split=per_kernel"]},
        )
    ],
    cmdclass={"build_ext": BuildExtension.with_options(use_ninja=True)},
)
