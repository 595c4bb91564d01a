"""A binary -> ElfFacts. The only package that knows ELF, Level Zero images and SYCL's tables in them."""
