/* A stand-in for the driver's library: two devices, the first of which the second does not reach. */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

int cuInit(unsigned flags) { return flags == 0 ? 0 : 1; }
int cuDriverGetVersion(int* version) { *version = 13010; return 0; }
int cuDeviceGetCount(int* count) { *count = 2; return 0; }
int cuDeviceGet(int* device, int ordinal) { *device = 40 + ordinal; return ordinal < 2 ? 0 : 101; }
int cuDeviceGetName(char* name, int bytes, int device) {
  snprintf(name, (size_t)bytes, "Fake %d", device - 40);
  return 0;
}
int cuDeviceGetAttribute(int* value, int which, int device) {
  (void)device;
  *value = which == 75 ? 9 : which == 76 ? 0 : -1;
  return 0;
}
int cuDeviceTotalMem_v2(size_t* bytes, int device) {
  (void)device;
  *bytes = (size_t)3 << 30;
  return 0;
}
int cuDeviceGetPCIBusId(char* text, int bytes, int device) {
  snprintf(text, (size_t)bytes, "0000:%s:00.0", device == 40 ? "1B" : "5C");
  return 0;
}
int cuDeviceCanAccessPeer(int* yes, int device, int peer) {
  *yes = device == 40 && peer == 41;
  return 0;
}
