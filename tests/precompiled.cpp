// Gives the targets of precompiled headers a file. Those headers are their only product, but
// programs that reuse them wait until they are linked.
int main() {}
