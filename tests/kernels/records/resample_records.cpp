// Record of the slot of resampling.
#include "catena/kernels/resample.h"

#include "catena/array/creation.h"
#include "kernels/resample_case.h"
#include "kernels/slot_record.h"

namespace catena {
namespace {

using testing::ResampleCase;

std::vector<ResampleCase> cases() {
  std::vector<ResampleCase> all;
  for (const bool adjoint : {false, true}) {
    ResampleCase window;
    window.rows = {AxisRule::kWindow, 8, 4, 3, 2, 1};
    window.columns = {AxisRule::kWindow, 10, 4, 2, 3, 1};
    window.divisor = 6, window.adjoint = adjoint;
    all.push_back(window);
    for (const AxisRule rule :
         {AxisRule::kBins, AxisRule::kNearest, AxisRule::kAligned, AxisRule::kCentered}) {
      ResampleCase c;
      c.rows = {rule, 5, 8}, c.columns = {rule, 7, 3}, c.adjoint = adjoint;
      all.push_back(c);
    }
  }
  return all;
}

Results run(Device device) {
  Results results;
  for (const ResampleCase& c : cases()) {
    const Array x = data(device, c.in()), y = zeros(c.out(), {x.dtype(), device});
    kernels::resample(device, {&x, &y, c.rows, c.columns, c.divisor, c.adjoint});
    results.push_back(y);
  }
  return results;
}

}  // namespace

CATENA_SLOT_RECORDS(resample) { return {{"resample", run}}; }

}  // namespace catena
