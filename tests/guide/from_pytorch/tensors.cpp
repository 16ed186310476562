// The sections Tensors and Gradients.
#include "catena/array/indexing.h"
#include "catena/array/nested.h"
#include "catena/array/random.h"
#include "catena/array/reduction.h"
#include "catena/autograd/backward.h"
#include "catena/autograd/grad_mode.h"
#include "catena/functions/functions.h"
#include "guide/from_pytorch/page.h"

namespace catena::guide {

namespace F = catena::functions;

void add_tensors(Page& page) {
  page.begin();
  const Array x = page.operand("x", random::normal({2, 3})), y = page.operand("y", ones({3}));
  const Array one = x(0, 1);
  const Array mask = page.operand("mask", x > 0);
  CATENA_ROW("torch.tensor([[1., 2.], [3., 4.]])", array({{1.f, 2.f}, {3.f, 4.f}}))
  CATENA_ROW("torch.randn(2, 3).shape", random::normal({2, 3}, 0, 1, dtype::float32).shape())
  CATENA_ROW("x[0]", x(0))
  CATENA_ROW("x[:, ::2]", x(ellipsis, Slice(none, none, 2)))
  CATENA_ROW("x[mask]", x(mask))
  CATENA_ROW("x.view(3, 2)", x.reshape({3, 2}))
  CATENA_ROW("x.reshape(3, 2)", x.reshape({3, 2}))
  CATENA_ROW("x.cpu()", x.to_cpu())
  CATENA_ROW("x.to(torch.float32)", x.astype(dtype::float32))
  CATENA_STEPS("x = x[0, 1]", "x.item()", x.item<float>(), const Array x = one)
  CATENA_ROW("x.sum(dim=0, keepdim=True)", x.sum(0, true))
  CATENA_STEPS("values = x.tolist()", "values[1][2]", values[1][2],
               const auto values = tolist<float, 2>(x))
  CATENA_STEPS("x[0] = y", "x", x, x(0).assign(y))
}

void add_gradients(Page& page) {
  page.begin();
  const Array array = page.operand("x", random::normal({3}));
  CATENA_STEPS("x.requires_grad_(); (x * x).sum().backward()", "x.grad", x.grad(),
               Variable x(array);
               F::sum(x * x).backward())
  CATENA_STEPS("y = x * 2", "y.requires_grad", y.requires_grad(), const Array x = array;
               const Variable y = F::multiply(x, 2))
  CATENA_STEPS("x.requires_grad_(); y = (x.detach() * x).sum() + x.data.sum(); y.backward()",
               "x.grad", x.grad(), const Variable x(array);
               (F::sum(Variable::constant(x.data()) * x) + x.data().sum()).backward())
  CATENA_STEPS("x.requires_grad_(); y = (x * x).sum(); y.backward(retain_graph=True)", "x.grad",
               x.grad(), const Variable x(array);
               const Variable y = F::sum(x * x); y.backward())
  CATENA_STEPS("x.requires_grad_(); y = x * x; y.retain_grad(); (y * y).sum().backward()", "y.grad",
               y.grad(), const Variable x(array);
               const Variable y = x * x; F::sum(y * y).backward({.retain_grad = true}))
  CATENA_STEPS(
      "x.requires_grad_(); y = (x ** 3).sum(); g, = torch.autograd.grad(y, x, create_graph=True)\n"
      "g.sum().backward()",
      "x.grad", x.grad(), const Variable x(array);
      const Variable y = F::sum(F::pow(x, 3)); y.backward({.create_graph = true});
      F::sum(x.grad_variable()).backward())
  CATENA_STEPS("x.requires_grad_()\nwith torch.no_grad(): y = x * 2", "y.requires_grad",
               y.requires_grad(), const Variable x(array);
               const NoBackprop scope; const Variable y = x * 2)
}

}  // namespace catena::guide
