// Gives the target precompiled_tests a file, whose only product is the precompiled header.
