// One MNIST training step (784-1000-1000-10, batch 100, Adam) on a device, then the end: the script
// tests/benchmarks/startup times the whole process. Prints how long each part took.
#include <cstdio>

#include "timing.h"
#include "workloads.h"

int main(int argc, char** argv) {
  return bench::run(
      [](int count, char** arguments) {
        const double start = bench::now();
        const catena::Device device(count > 1 ? arguments[1] : "cpu:0");
        catena::require_device(device);
        const double ready = bench::now();
        bench::MnistStep mnist(device, 100, 1000);
        const auto optimizer = bench::make_rule("Adam");
        optimizer->setup(mnist.model());
        catena::synchronize(device);
        const double prepared = bench::now();
        mnist.step(*optimizer);
        const double loss = mnist.last_loss();  // waits for the device
        std::printf("%s: device %.3f s, model and data %.3f s, step %.3f s, loss %.3f\n",
                    device.name().c_str(), ready - start, prepared - ready, bench::now() - prepared,
                    loss);
        return 0;
      },
      argc, argv);
}
