// The section Modules: models, their parameters and start values.
#include "catena/array/linalg.h"
#include "catena/array/math.h"
#include "catena/array/random.h"
#include "catena/array/reduction.h"
#include "catena/autograd/test_scope.h"
#include "catena/functions/functions.h"
#include "catena/serializers/npz.h"
#include "guide/from_pytorch/page.h"

namespace catena::guide {
namespace {

namespace F = catena::functions;

// A declaration, and its text.
#define CATENA_DECLARE(text, ...) \
  __VA_ARGS__;                    \
  const char* const text = #__VA_ARGS__;
CATENA_DECLARE(
    kNet, struct Net
    : FunctionSet {
      F::Linear l1{4, 16};
      CATENA_FUNCTIONS(l1)
    })

double deviation(const Array& a) { return sqrt(mean(square(a))).item<double>(); }

void add_start_values(Page& page) {
  page.begin();
  CATENA_DRAWS("l = nn.Linear(200, 300); nn.init.kaiming_normal_(l.weight)", "l.weight.std()",
               deviation(l.W.data()),
               const F::Linear l(200, 300, {.initialW = initializers::HeNormal()}))
  CATENA_DRAWS("l = nn.Linear(200, 300); nn.init.xavier_uniform_(l.weight)", "l.weight.std()",
               deviation(l.W.data()),
               const F::Linear l(200, 300, {.initialW = initializers::GlorotUniform()}))
  CATENA_STEPS("l = nn.Linear(20, 10); nn.init.orthogonal_(l.weight)", "l.weight @ l.weight.T",
               matmul(l.W.data(), l.W.data().T()),
               const F::Linear l(20, 10, {.initialW = initializers::Orthogonal(1)}))
}

void add_use(Page& page) {
  page.begin();
  using Model = Net;
  using Net = F::Linear;
  Net net(4, 3);
  const Array x = page.operand("x", random::normal({5, 4}));
  page.operand("W", net.W.data());
  page.operand("b", net.b.data());
  int64_t elements = 0;
  for (const Parameter& p : Model().parameters()) elements += p.data().size();
  page.add(
      "class Net(nn.Module):\n  def __init__(self):\n    super().__init__()\n"
      "    self.l1 = nn.Linear(4, 16)",
      "sum(p.numel() for p in Net().parameters())", kNet, results(elements));
  CATENA_STEPS("net = linear(W, b); count = len(list(net.parameters()))",
               "[count, len(list(net.named_parameters()))]",
               (Shape{int64_t(net.parameters().size()), int64_t(net.named_parameters().size())}), )
  CATENA_STEPS(
      "net = linear(W, b); net.train(); states = [net.training]; net.eval(); states += "
      "[net.training]",
      "[int(s) for s in states]", (Shape{before, net.training()}), net.train();
      const bool before = net.training(); net.eval())
  CATENA_STEPS(
      "net = linear(W, b); net.eval(); state = net.training; net.train()",
      "[int(state), int(net.training)]", (Shape{state, net.training()}), bool state = true;
      net.train(); {
        const TestScope test(net);
        state = net.training();
      })
  CATENA_STEPS("net = linear(W, b); other = copy.deepcopy(net); other.weight.data.zero_()",
               "net(x)", net(x), Net copy = net;
               copy.W.data().fill(0))
  CATENA_STEPS(
      "wte, head = nn.Linear(4, 3), linear(W, b); head.weight = wte.weight; "
      "wte.weight.data.zero_()",
      "head.weight", head.W.data(), Net wte(4, 3);
      Net head = net; head.W.tie_to(wte.W); wte.W.data().fill(0))
  CATENA_STEPS(
      "net = linear(W, b); p = file\ntorch.save(net.state_dict(), p)\n"
      "other = nn.Linear(4, 3); other.load_state_dict(torch.load(p))",
      "other(x)", other(x), serializers::save("net.npz", net);
      Net other(4, 3); serializers::load("net.npz", other))
  CATENA_STEPS("net = nn.Conv2d(3, 4, 3); net.to(memory_format=torch.channels_last)",
               "[4 * s for s in net.weight.stride()]", Shape(net.W.data().strides()),
               F::Convolution2D net(3, 4, 3);
               F::channels_last(net))
}

}  // namespace

void add_models(Page& page) {
  add_start_values(page);
  add_use(page);
}

}  // namespace catena::guide
