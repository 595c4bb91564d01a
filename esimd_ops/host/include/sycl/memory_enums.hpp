// Names for orders, scopes and address spaces. Memory of one host is coherent, so they ask for nothing more here.
#pragma once

namespace sycl {

enum class memory_order { relaxed, acquire, release, acq_rel, seq_cst };
enum class memory_scope { work_item, sub_group, work_group, device, system };

namespace access {
enum class fence_space { local_space, global_space, global_and_local };
enum class address_space { private_space, global_space, constant_space, local_space, generic_space };
enum class decorated { no, yes, legacy };
}  // namespace access

}  // namespace sycl
