// A management library whose kernel module is of another version: the state after an update of the
// driver without a reboot.
extern "C" {

int nvmlInit_v2() { return 18; }
const char* nvmlErrorString(int code) {
  return code == 18 ? "Driver/library version mismatch" : "wrong code";
}

}  // extern "C"
