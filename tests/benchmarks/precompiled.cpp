// Gives the target precompiled_benchmarks a file, whose only product is the precompiled header.
int main() {}
