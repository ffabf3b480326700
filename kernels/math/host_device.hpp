#pragma once
// Marks a function that the host and the device run alike. Plain C++ where no device compiler is at
// work. Thread: any.

#ifdef __CUDACC__
#define MOETIER_HOST_DEVICE __host__ __device__
#else
#define MOETIER_HOST_DEVICE
#endif
