// Meanings of the names in a pickle: dicts, storages, tensors and modules. Calls only gather their
// arguments.
#include <algorithm>
#include <string_view>

#include "catena/core/error.h"
#include "serializers/pickle.h"

namespace catena::serializers {

// What a global may do.
enum class PickleMachine::Role : uint8_t {
  kInert,            // is an argument of others
  kDict,             // collections.OrderedDict and its like
  kTensorOf4,        // storage, offset, size, stride and what is not needed here
  kTensorWithDtype,  // the same with a dtype as seventh argument
  kFirst,            // its first argument
  kFromType,         // function, type, its arguments
  kIgnored,          // a class or function whose values nobody asks for
};

struct PickleMachine::Global {
  std::string_view name;
  Role role;
  bool script = false;  // in TorchScript's archives alone
};

namespace {

bool is_class_of_script(std::string_view name) { return name.starts_with("__torch__."); }

// torch.FloatStorage, torch.storage.UntypedStorage, torch.cuda.HalfStorage
bool is_storage(std::string_view name) {
  return name.starts_with("torch.") && name.ends_with("Storage");
}

// Values of Python and NumPy that checkpoints keep beside tensors. `__builtin__` is `builtins` up
// to protocol 2.
bool is_plain_value(std::string_view name) {
  static constexpr std::string_view kNames[] = {"argparse.Namespace",      "collections.deque",
                                                "copy_reg._reconstructor", "copyreg._reconstructor",
                                                "decimal.Decimal",         "fractions.Fraction",
                                                "types.SimpleNamespace",   "uuid.UUID"};
  static constexpr std::string_view kBuiltins[] = {
      "bool", "bytearray", "bytes", "complex", "dict",  "float", "frozenset", "int",     "list",
      "long", "object",    "range", "set",     "slice", "str",   "tuple",     "unicode", "xrange"};
  static constexpr std::string_view kNumpy[] = {"multiarray.scalar", "multiarray._reconstruct",
                                                "numeric._frombuffer"};
  const auto is_in = [](const auto& names, std::string_view one) {
    return std::find(std::begin(names), std::end(names), one) != std::end(names);
  };
  for (const std::string_view module : {"builtins.", "__builtin__."})
    if (name.starts_with(module)) return is_in(kBuiltins, name.substr(module.size()));
  for (const std::string_view module : {"datetime.", "pathlib.", "numpy.dtypes."})
    if (name.starts_with(module)) return name.find('.', module.size()) == name.npos;
  for (const std::string_view module : {"numpy.core.", "numpy._core."})
    if (name.starts_with(module)) return is_in(kNumpy, name.substr(module.size()));
  return name == "numpy.dtype" || name == "numpy.ndarray" || is_in(kNames, name);
}

// torch.float32: lower-case letters, digits and underscores behind the first point.
bool is_dtype(std::string_view name) {
  if (!name.starts_with("torch.")) return false;
  for (const char* kind :
       {"float", "bfloat", "int", "uint", "bool", "complex", "bcomplex", "bits"}) {
    const std::string_view start(kind), rest = name.substr(6);
    if (rest.starts_with(start) &&
        rest.find_first_not_of("0123456789_efmnuzx", start.size()) == rest.npos)
      return true;
  }
  return false;
}

}  // namespace

void PickleMachine::global(std::string_view module, std::string_view name) {
  static constexpr Global kKnown[] = {
      {"collections.OrderedDict", Role::kDict},
      {"collections.Counter", Role::kDict},
      {"collections.defaultdict", Role::kDict},
      {"torch._utils._rebuild_tensor", Role::kTensorOf4},
      {"torch._utils._rebuild_tensor_v2", Role::kTensorOf4},
      {"torch._utils._rebuild_tensor_v3", Role::kTensorWithDtype},
      {"torch._utils._rebuild_parameter", Role::kFirst},
      {"torch._utils._rebuild_parameter_with_state", Role::kFirst},
      {"torch._tensor._rebuild_from_type_v2", Role::kFromType},
      {"torch.Size", Role::kFirst},
      {"torch.device", Role::kIgnored},
      {"_codecs.encode", Role::kIgnored},  // bytes in protocol 2
      {"torch.Tensor", Role::kInert},
      {"torch.nn.parameter.Parameter", Role::kInert},
      {"torch.nn.parameter.Buffer", Role::kInert},
      {"torch.jit._pickle.build_intlist", Role::kFirst, true},
      {"torch.jit._pickle.build_doublelist", Role::kFirst, true},
      {"torch.jit._pickle.build_boollist", Role::kFirst, true},
      {"torch.jit._pickle.build_tensorlist", Role::kFirst, true},
      {"torch.jit._pickle.restore_type_tag", Role::kFirst, true},
      {"torch.jit._pickle.build_tensor_from_id", Role::kIgnored, true},
  };
  budget_.charge_bytes(module.size() + name.size());
  budget_.check_name(name);
  std::string joined(module);
  joined += '.';
  joined += name;
  Role role = Role::kInert;
  bool known = is_storage(joined) || is_dtype(joined) || (script_ && is_class_of_script(joined));
  if (is_plain_value(joined)) {
    role = Role::kIgnored;
    known = true;
  }
  for (const Global& entry : kKnown) {
    if (entry.name != joined || (entry.script && !script_)) continue;
    role = entry.role;
    known = true;
  }
  if (!known && joined.starts_with("torch._utils._rebuild_"))
    bad("it refers to '" + joined +
        "': a sparse, quantized or otherwise special tensor, which is not read; save a plain one, "
        "in Python: x.to_dense(), x.dequantize() or x.detach().clone()");
  if (!known)
    bad("it refers to '" + joined +
        "', which is not one of the names that tensors need; nothing was executed. Save a state "
        "dict of tensors, in Python: torch.save(model.state_dict(), path)");
  PickleValue& value = make(PickleKind::kGlobal);
  names_.push_back(std::move(joined));
  value.text = names_.back();
  value.integer = static_cast<int64_t>(role);
  push(value);
}

void PickleMachine::reduce() {
  const PickleValue &arguments = pop(), &function = pop();
  if (arguments.kind != PickleKind::kTuple || function.kind != PickleKind::kGlobal)
    bad("a call of what is not a function: the file is damaged");
  push(call(function, arguments.items));
}

PickleValue& PickleMachine::call(const PickleValue& function,
                                 const std::vector<PickleValue*>& arguments) {
  const auto expect = [&](bool fits) {
    if (!fits)
      bad(message("'", function.text, "' with ", arguments.size(),
                  " arguments that are not those of a tensor; nothing was executed"));
  };
  switch (static_cast<Role>(function.integer)) {
    case Role::kDict: return make_dict(arguments);
    case Role::kTensorOf4: return make_tensor(arguments, 0);
    case Role::kTensorWithDtype: return make_tensor(arguments, 6);
    case Role::kFirst: expect(!arguments.empty()); return *arguments[0];
    case Role::kFromType: {
      expect(arguments.size() >= 3 && arguments[0]->kind == PickleKind::kGlobal &&
             arguments[2]->kind == PickleKind::kTuple);
      const auto inner = static_cast<Role>(arguments[0]->integer);
      expect(inner != Role::kFromType);
      return call(*arguments[0], arguments[2]->items);
    }
    case Role::kIgnored: return make_other(function.text);
    case Role::kInert: break;
  }
  bad(message("it calls '", function.text, "', which tensors do not need; nothing was executed"));
}

// OrderedDict(), OrderedDict([(key, value), ...]) of Python 2, Counter({key: count}),
// defaultdict(list), whose items follow.
PickleValue& PickleMachine::make_dict(const std::vector<PickleValue*>& arguments) {
  PickleValue& dict = make(PickleKind::kDict);
  const bool is_empty = arguments.empty() || arguments[0]->kind == PickleKind::kGlobal;
  if (is_empty) return dict;
  if (arguments.size() == 1 && arguments[0]->kind == PickleKind::kDict) return *arguments[0];
  if (arguments.size() > 1 || arguments[0]->kind != PickleKind::kList)
    bad("an OrderedDict of something else than pairs");
  for (const PickleValue* pair : arguments[0]->items) {
    const bool is_pair = (pair->kind == PickleKind::kTuple || pair->kind == PickleKind::kList) &&
                         pair->items.size() == 2;
    if (!is_pair) bad("an OrderedDict of something else than pairs");
    budget_.charge_steps(1);
    add_items(dict, pair->items);
  }
  return dict;
}

PickleValue& PickleMachine::make_tensor(const std::vector<PickleValue*>& arguments,
                                        size_t dtype_at) {
  const bool fits =
      arguments.size() > std::max<size_t>(dtype_at, 3) &&
      arguments[0]->kind == PickleKind::kStorage && arguments[1]->kind == PickleKind::kInt &&
      arguments[2]->kind == PickleKind::kTuple && arguments[3]->kind == PickleKind::kTuple &&
      (dtype_at == 0 || arguments[dtype_at]->kind == PickleKind::kGlobal);
  if (!fits) bad("a tensor without storage, offset, size, stride and dtype: the file is damaged");
  // What the elements are not as stored: {"neg": True} or {"conj": True}.
  const size_t marks_at = dtype_at > 0 ? dtype_at + 1 : 6;
  if (arguments.size() > marks_at)
    for (const PickleValue* mark : arguments[marks_at]->items)
      if (mark->kind == PickleKind::kBool && mark->integer != 0)
        bad("a tensor that is a negated or conjugated view; save its values, in Python: "
            "x.resolve_neg().resolve_conj()");
  PickleValue& tensor = make(PickleKind::kTensor);
  tensor.items.assign(arguments.begin(), arguments.begin() + 4);
  if (dtype_at > 0) tensor.items.push_back(arguments[dtype_at]);
  return tensor;
}

// TorchScript's modules, a class without arguments, whose attributes follow; and plain values.
void PickleMachine::new_object() {
  const PickleValue &arguments = pop(), &type = pop();
  const bool is_ignored =
      type.kind == PickleKind::kGlobal && static_cast<Role>(type.integer) == Role::kIgnored;
  if (is_ignored) return push(make_other(type.text));
  const bool fits = type.kind == PickleKind::kGlobal && is_class_of_script(type.text) &&
                    arguments.kind == PickleKind::kTuple;
  if (!fits) bad("an object of a class that tensors do not need; nothing was executed");
  push(make(PickleKind::kObject));
}

// Attributes of an object. State dicts have some as well, which say nothing of tensors.
void PickleMachine::build() {
  const PickleValue& state = pop();
  PickleValue& object = top();
  if (object.kind == PickleKind::kDict || object.kind == PickleKind::kTensor ||
      object.kind == PickleKind::kOther)
    return;
  if (object.kind != PickleKind::kObject)
    bad(message("attributes of a ", name_of(object.kind), "; nothing was executed"));
  if (state.kind != PickleKind::kDict) return;
  add_items(object, state.items);
}

void PickleMachine::persistent() {
  const PickleValue& id = pop();
  const auto is = [&](size_t i, PickleKind kind) { return id.items[i]->kind == kind; };
  const bool fits = id.kind == PickleKind::kTuple && id.items.size() >= 5 &&
                    is(0, PickleKind::kText) && id.items[0]->text == "storage" &&
                    is(1, PickleKind::kGlobal) && is_storage(id.items[1]->text) &&
                    is(2, PickleKind::kText) && is(4, PickleKind::kInt);
  if (!fits) bad("a stored object that is not a tensor's storage: the file is damaged");
  PickleValue& storage = make(PickleKind::kStorage);
  storage.items.assign(id.items.begin() + 1, id.items.begin() + 5);
  if (id.items.size() > 5 && !is(5, PickleKind::kNone))
    bad("a storage that is a part of another one, as PyTorch made them before 0.4; save it again, "
        "in Python: torch.save(torch.load(path, map_location='cpu'), path)");
  storages_.push_back(&storage);
  push(storage);
}

}  // namespace catena::serializers
