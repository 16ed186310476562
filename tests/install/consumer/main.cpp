// Uses the installed library as a project of a user would.
#include <cstdio>
#include <iostream>

#include "catena/array/array.h"
#include "catena/array/creation.h"
#include "catena/array/io.h"
#include "catena/array/math.h"
#include "catena/array/reduction.h"

int main() {
  const catena::Array x = catena::array({1.f, 2.f, 3.f});
  std::cout << "sum of squares " << catena::sum(catena::square(x)).item<double>() << '\n';
  catena::save_npz("consumer.npz", {{"x", x}});
  std::cout << "saved and loaded " << catena::load_npz("consumer.npz").at("x").size() << '\n';
  std::remove("consumer.npz");
}
