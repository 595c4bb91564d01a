// From here on the device that the sources ask for is the CPU. torch's own headers do not survive this: those that come
// later take it back while they are read (see extension.h).
#define kXPU kCPU
#define is_xpu is_cpu
#define XPU CPU
