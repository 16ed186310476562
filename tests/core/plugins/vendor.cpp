// In place of a vendor's library that a plug-in is linked to.
extern "C" int catena_test_vendor_version() { return 1; }
