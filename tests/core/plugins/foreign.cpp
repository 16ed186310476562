// A shared library that is no plug-in of catena, under the name of one.
extern "C" __attribute__((visibility("default"))) int foreign() { return 1; }
