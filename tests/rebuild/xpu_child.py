"""Runs setup.py's build_ext in xpu mode on a torch without XPU, as a process of its own: xpu_child.py SETUP_PY SYCL_HOME.

What this torch lacks is put in its place: cpp_extension.SYCL_HOME, and the facts that setup.py would find on a machine
with icpx. All that follows is torch's own SyclExtension and BuildExtension.
"""

import importlib.util
import os
import sys

from setuptools import setup
from torch.utils import cpp_extension

path, sycl_home = sys.argv[1:]
spec = importlib.util.spec_from_file_location("setup_py", path)
setup_py = importlib.util.module_from_spec(spec)
spec.loader.exec_module(setup_py)
os.chdir(setup_py.ROOT)
cpp_extension.SYCL_HOME = sycl_home

found = setup_py.inspect_machine()
plan = setup_py.build_plan(found._replace(torch_has_xpu=True, forced="xpu", sycl_library=f"{sycl_home}/lib"))
sys.argv = ["setup.py", "build_ext"]
setup(name="kit", packages=[], **setup_py.extension_arguments(plan))
