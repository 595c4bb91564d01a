// Takes back what cpu_for_xpu.h says.
#undef kXPU
#undef is_xpu
#undef XPU
