"""A compiler driver of icpx's shape: SYCL sources -> libraries with SPIR-V and machine code, by pip and apt alone."""
