// What Python asks of the extension besides its operators: which device runs them, what was compiled for it, and what
// the guard puts into the dispatcher.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "autograd.h"
#include "replacement.h"
#include "runtime.h"
#include "trampoline.h"

PYBIND11_MODULE(_C, module) {
  module.doc() = "Operators of the namespace esimd_ops; importing this module registers them.";
  module.attr("build_mode") = esimd_ops::build_mode();
  module.attr("kernel_sources_digest") = ESIMD_OPS_KERNEL_SOURCES_DIGEST;
  module.def(
      "device",
      [] {
        const esimd_ops::DeviceFacts facts = esimd_ops::device_facts();
        pybind11::dict result;
        result["name"] = facts.name;
        result["driver_version"] = facts.driver_version;
        result["platform"] = facts.platform;
        result["sub_group_sizes"] = facts.sub_group_sizes;
        result["local_memory_bytes"] = facts.local_memory_bytes;
        return result;
      },
      "Facts of the device that runs the kernels, as a dict.");
  module.def("kernels", &esimd_ops::kernel_facts,
             "Kernels this process has used, with the seconds each took to compile or to read from the cache.");
  pybind11::enum_<esimd_ops::Result>(module, "Result", "What becomes of a result of the operator that a twin calls.")
      .value("DROP", esimd_ops::Result::kDrop)
      .value("KEEP", esimd_ops::Result::kKeep)
      .value("CLONE", esimd_ops::Result::kClone);
  module.def("implement_twin", &esimd_ops::implement_twin,
             "Implements the operator `twin`, which is defined, by a call of `op`; says what becomes of each result.");
  pybind11::class_<esimd_ops::Registration>(module, "Registration", "What is registered as long as this lives.");
  module.def("give_versions", &esimd_ops::give_versions,
             "Raises the version of what `op` writes, and refuses arguments that require grad, as long as the result lives.");
  pybind11::class_<esimd_ops::Replacement>(module, "Replacement", "An operator of ours in the place of another.")
      .def(pybind11::init<const std::string&, const std::string&, int64_t>())
      .def_property_readonly("replaced", &esimd_ops::Replacement::replaced)
      .def_property_readonly("passed", &esimd_ops::Replacement::passed)
      .def_property_readonly("why", &esimd_ops::Replacement::why)
      .def("remove", &esimd_ops::Replacement::remove);
}
