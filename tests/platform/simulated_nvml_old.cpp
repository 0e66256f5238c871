// A management library so old that it knows two GPUs and nothing about them; the second cannot be
// opened.
extern "C" {

int nvmlInit_v2() { return 0; }
int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = 2;
  return 0;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  static int handle = 0;
  *device = &handle;
  return index == 0 ? 0 : 15;
}

}  // extern "C"
