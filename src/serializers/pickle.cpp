#include "serializers/pickle.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "catena/core/error.h"

namespace catena::serializers {
namespace {

constexpr size_t kMostValues = 8'000'000;

// Opcodes by their names in Python's pickle.py.
enum Opcode : uint8_t {
  kMark = '(',
  kStop = '.',
  kPop = '0',
  kPopMark = '1',
  kDup = '2',
  kBinFloat = 'G',
  kBinInt = 'J',
  kBinInt1 = 'K',
  kBinInt2 = 'M',
  kNoneOpcode = 'N',
  kBinPersId = 'Q',
  kReduce = 'R',
  kBinString = 'T',
  kShortBinString = 'U',
  kBinUnicode = 'X',
  kBinBytes = 'B',
  kShortBinBytes = 'C',
  kAppend = 'a',
  kBuild = 'b',
  kGlobalOpcode = 'c',
  kAppends = 'e',
  kBinGet = 'h',
  kLongBinGet = 'j',
  kBinPut = 'q',
  kLongBinPut = 'r',
  kSetItem = 's',
  kTuple = 't',
  kSetItems = 'u',
  kEmptyList = ']',
  kEmptyDict = '}',
  kEmptyTuple = ')',
  kProto = 0x80,
  kNewObj = 0x81,
  kTuple1 = 0x85,
  kTuple2 = 0x86,
  kTuple3 = 0x87,
  kNewTrue = 0x88,
  kNewFalse = 0x89,
  kLong1 = 0x8a,
  kLong4 = 0x8b,
  kShortBinUnicode = 0x8c,
  kBinUnicode8 = 0x8d,
  kBinBytes8 = 0x8e,
  kStackGlobal = 0x93,
  kMemoize = 0x94,
  kFrame = 0x95,
};

std::string printable(std::string_view text) {
  std::string shown(text.substr(0, 100));
  for (char& c : shown)
    if (c >= 0 && c < 32) c = '?';
  return text.size() > 100 ? shown + "..." : shown;
}

}  // namespace

const char* name_of(PickleKind kind) {
  switch (kind) {
    case PickleKind::kNone:
      return "None";
    case PickleKind::kBool:
      return "bool";
    case PickleKind::kInt:
    case PickleKind::kLongInt:
      return "int";
    case PickleKind::kFloat:
      return "float";
    case PickleKind::kText:
      return "text";
    case PickleKind::kBytes:
      return "bytes";
    case PickleKind::kTuple:
      return "tuple";
    case PickleKind::kList:
      return "list";
    case PickleKind::kDict:
      return "dict";
    case PickleKind::kObject:
      return "object";
    case PickleKind::kStorage:
      return "storage";
    case PickleKind::kTensor:
      return "tensor";
    case PickleKind::kGlobal:
    case PickleKind::kOther:
      break;
  }
  return "constant";
}

// What a global may do.
enum class PickleMachine::Role : uint8_t {
  kInert,            // is an argument of others
  kDict,             // collections.OrderedDict
  kTensorOf4,        // storage, offset, size, stride and what is not needed here
  kTensorWithDtype,  // the same with a dtype as seventh argument
  kFirst,            // its first argument
  kFromType,         // function, type, its arguments
  kIgnored,          // a value that nobody asks for
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

PickleMachine::PickleMachine(std::string name, std::string_view bytes, bool script)
    : name_(std::move(name)), bytes_(bytes), script_(script) {}

void PickleMachine::bad(const std::string& what) const {
  fail<IoError>("reading ", name_, ": at offset ", opcode_at_, " of the pickle: ", what);
}

std::string_view PickleMachine::take(uint64_t bytes) {
  if (bytes > bytes_.size() - at_)
    bad(message(bytes, " bytes expected, but ", bytes_.size() - at_,
                " follow: the file is damaged"));
  at_ += bytes;
  return bytes_.substr(at_ - bytes, bytes);
}

uint64_t PickleMachine::number(int bytes) {
  static_assert(std::endian::native == std::endian::little);
  uint64_t value = 0;
  std::memcpy(&value, take(static_cast<uint64_t>(bytes)).data(), static_cast<size_t>(bytes));
  return value;
}

std::string_view PickleMachine::line() {
  const size_t end = bytes_.find('\n', at_);
  if (end == bytes_.npos) bad("a line without an end: the file is damaged");
  const std::string_view text = take(end - at_);
  ++at_;
  return text;
}

// Adds to a counter of what takes memory.
void PickleMachine::count(size_t& counter, size_t more) const {
  counter += more;
  if (counter > kMostValues)
    bad(message("more than ", kMostValues, " values, which no state dict of tensors has"));
}

void PickleMachine::push(PickleValue& value) {
  size_t size = stack_.size();
  count(size, 1);
  stack_.push_back(&value);
}

PickleValue& PickleMachine::make(PickleKind kind) {
  size_t size = values_.size();
  count(size, 1);
  values_.emplace_back().kind = kind;
  return values_.back();
}

void PickleMachine::push_int(int64_t value) {
  PickleValue& made = make(PickleKind::kInt);
  made.integer = value;
  push(made);
}

void PickleMachine::push_text(PickleKind kind, std::string_view text) {
  PickleValue& made = make(kind);
  made.text = text;
  push(made);
}

// A whole number of any size, little-endian, in two's complement.
void PickleMachine::push_long(uint64_t bytes) {
  const std::string_view digits = take(bytes);
  if (bytes > 8) return push(make(PickleKind::kLongInt));
  uint64_t value = bytes > 0 && (digits.back() & 0x80) != 0 ? ~uint64_t{0} : 0;
  if (bytes > 0) std::memcpy(&value, digits.data(), bytes);
  push_int(static_cast<int64_t>(value));
}

PickleValue& PickleMachine::top() {
  if (stack_.size() <= (marks_.empty() ? 0 : marks_.back()))
    bad("a value is missing: the file is damaged");
  return *stack_.back();
}

PickleValue& PickleMachine::pop() {
  PickleValue& value = top();
  stack_.pop_back();
  return value;
}

std::vector<PickleValue*> PickleMachine::pop_marked() {
  if (marks_.empty()) bad("a mark is missing: the file is damaged");
  std::vector<PickleValue*> items(stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back()),
                                  stack_.end());
  stack_.resize(marks_.back());
  marks_.pop_back();
  return items;
}

void PickleMachine::push_tuple(size_t count) {
  std::vector<PickleValue*> items(count);
  for (size_t i = count; i-- > 0;) items[i] = &pop();
  PickleValue& tuple = make(PickleKind::kTuple);
  tuple.items = std::move(items);
  push(tuple);
}

void PickleMachine::remember(uint64_t slot) {
  size_t size = memo_.size();
  count(size, 1);
  memo_[slot] = &top();
}

void PickleMachine::recall(uint64_t slot) {
  const auto found = memo_.find(slot);
  if (found == memo_.end()) bad(message("value ", slot, " is not known: the file is damaged"));
  push(*found->second);
}

const PickleValue& PickleMachine::run() {
  uint8_t opcode = 0;
  do {
    opcode_at_ = at_;
    opcode = static_cast<uint8_t>(number(1));
  } while (step(opcode));
  return pop();
}

bool PickleMachine::step(uint8_t opcode) {
  switch (opcode) {
    case kStop:
      return false;
    case kProto:
      if (const uint64_t version = number(1); version < 2 || version > 5)
        bad(message("protocol ", version, ", expected 2 to 5"));
      return true;
    case kFrame:
      number(8);  // a hint for reading ahead
      return true;
    case kGlobalOpcode: {
      const std::string_view module = line();
      global(module, line());
      return true;
    }
    case kStackGlobal: {
      PickleValue &name = pop(), &module = pop();
      if (name.kind != PickleKind::kText || module.kind != PickleKind::kText)
        bad("a name that is not a text: the file is damaged");
      global(module.text, name.text);
      return true;
    }
    case kReduce:
      reduce();
      return true;
    case kNewObj:
      new_object();
      return true;
    case kBuild:
      build();
      return true;
    case kBinPersId:
      persistent();
      return true;
    default:
      if (!constant(opcode) && !container(opcode)) memory(opcode);
      return true;
  }
}

// Opcodes that push a constant. false: it is another.
bool PickleMachine::constant(uint8_t opcode) {
  switch (opcode) {
    case kNoneOpcode:
      push(make(PickleKind::kNone));
      return true;
    case kNewTrue:
    case kNewFalse:
      push(make(PickleKind::kBool));
      top().integer = opcode == kNewTrue;
      return true;
    case kBinInt:
      push_int(static_cast<int32_t>(number(4)));
      return true;
    case kBinInt1:
      push_int(static_cast<int64_t>(number(1)));
      return true;
    case kBinInt2:
      push_int(static_cast<int64_t>(number(2)));
      return true;
    case kLong1:
      push_long(number(1));
      return true;
    case kLong4:
      push_long(number(4));
      return true;
    case kBinFloat:
      take(8);
      push(make(PickleKind::kFloat));
      return true;
    case kBinUnicode:
      push_text(PickleKind::kText, take(number(4)));
      return true;
    case kShortBinUnicode:
      push_text(PickleKind::kText, take(number(1)));
      return true;
    case kBinUnicode8:
      push_text(PickleKind::kText, take(number(8)));
      return true;
    case kBinString:
    case kBinBytes:
      push_text(PickleKind::kBytes, take(number(4)));
      return true;
    case kShortBinString:
    case kShortBinBytes:
      push_text(PickleKind::kBytes, take(number(1)));
      return true;
    case kBinBytes8:
      push_text(PickleKind::kBytes, take(number(8)));
      return true;
    default:
      return false;
  }
}

// Opcodes of tuples, lists and dicts. false: it is another.
bool PickleMachine::container(uint8_t opcode) {
  switch (opcode) {
    case kEmptyTuple:
    case kTuple1:
    case kTuple2:
    case kTuple3:
      push_tuple(opcode == kEmptyTuple ? 0 : static_cast<size_t>(opcode - kTuple1 + 1));
      return true;
    case kTuple: {
      auto items = pop_marked();
      PickleValue& tuple = make(PickleKind::kTuple);
      tuple.items = std::move(items);
      push(tuple);
      return true;
    }
    case kEmptyList:
      push(make(PickleKind::kList));
      return true;
    case kEmptyDict:
      push(make(PickleKind::kDict));
      return true;
    case kAppend:
      append({&pop()});
      return true;
    case kAppends:
      append(pop_marked());
      return true;
    case kSetItem: {
      PickleValue &value = pop(), &key = pop();
      set_items({&key, &value});
      return true;
    }
    case kSetItems:
      set_items(pop_marked());
      return true;
    default:
      return false;
  }
}

// Opcodes of the stack and the memo; any other is an error.
void PickleMachine::memory(uint8_t opcode) {
  switch (opcode) {
    case kMark: {
      size_t size = marks_.size();
      count(size, 1);
      marks_.push_back(stack_.size());
      return;
    }
    case kPop:
      pop();
      return;
    case kPopMark:
      pop_marked();
      return;
    case kDup:
      push(top());
      return;
    case kBinPut:
      return remember(number(1));
    case kLongBinPut:
      return remember(number(4));
    case kMemoize:
      return remember(memo_.size());
    case kBinGet:
      return recall(number(1));
    case kLongBinGet:
      return recall(number(4));
    default:
      bad(message("opcode ", int{opcode},
                  ", which state dicts of tensors do not need; nothing was executed"));
  }
}

void PickleMachine::global(std::string_view module, std::string_view name) {
  static constexpr Global kKnown[] = {
      {"collections.OrderedDict", Role::kDict},
      {"torch._utils._rebuild_tensor", Role::kTensorOf4},
      {"torch._utils._rebuild_tensor_v2", Role::kTensorOf4},
      {"torch._utils._rebuild_tensor_v3", Role::kTensorWithDtype},
      {"torch._utils._rebuild_parameter", Role::kFirst},
      {"torch._utils._rebuild_parameter_with_state", Role::kFirst},
      {"torch._tensor._rebuild_from_type_v2", Role::kFromType},
      {"torch.Size", Role::kFirst},
      {"torch.device", Role::kIgnored},
      {"_codecs.encode", Role::kIgnored},  // bytes in protocol 2
      {"builtins.set", Role::kIgnored},
      {"builtins.complex", Role::kIgnored},
      {"builtins.bytearray", Role::kIgnored},
      {"__builtin__.set", Role::kIgnored},  // the same up to protocol 2
      {"__builtin__.complex", Role::kIgnored},
      {"__builtin__.bytearray", Role::kIgnored},
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
  std::string joined(module);
  joined += '.';
  joined += name;
  Role role = Role::kInert;
  bool known = is_storage(joined) || is_dtype(joined) || (script_ && is_class_of_script(joined));
  for (const Global& entry : kKnown) {
    if (entry.name != joined || (entry.script && !script_)) continue;
    role = entry.role;
    known = true;
  }
  if (!known && joined.starts_with("torch._utils._rebuild_"))
    bad("it refers to '" + printable(joined) +
        "': a sparse, quantized or otherwise special tensor, which is not read; save a plain one, "
        "in Python: x.to_dense(), x.dequantize() or x.detach().clone()");
  if (!known)
    bad("it refers to '" + printable(joined) +
        "', which is not one of the names that tensors need; nothing was executed. Save a state "
        "dict of tensors, in Python: torch.save(model.state_dict(), path)");
  PickleValue& value = make(PickleKind::kGlobal);
  names_.push_back(std::move(joined));
  value.text = names_.back();
  value.integer = static_cast<int64_t>(role);
  push(value);
}

void PickleMachine::append(const std::vector<PickleValue*>& items) {
  PickleValue& list = top();
  if (list.kind != PickleKind::kList)
    bad(message("items are added to a ", name_of(list.kind), ", expected a list"));
  list.items.insert(list.items.end(), items.begin(), items.end());
}

void PickleMachine::set_items(const std::vector<PickleValue*>& items) {
  PickleValue& dict = top();
  if (dict.kind != PickleKind::kDict || items.size() % 2 != 0)
    bad(message(items.size(), " keys and values are added to a ", name_of(dict.kind),
                ", expected a dict and pairs"));
  dict.items.insert(dict.items.end(), items.begin(), items.end());
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
      bad(message("'", printable(function.text), "' with ", arguments.size(),
                  " arguments that are not those of a tensor; nothing was executed"));
  };
  switch (static_cast<Role>(function.integer)) {
    case Role::kDict:
      return make_dict(arguments);
    case Role::kTensorOf4:
      return make_tensor(arguments, 0);
    case Role::kTensorWithDtype:
      return make_tensor(arguments, 6);
    case Role::kFirst:
      expect(!arguments.empty());
      return *arguments[0];
    case Role::kFromType: {
      expect(arguments.size() >= 3 && arguments[0]->kind == PickleKind::kGlobal &&
             arguments[2]->kind == PickleKind::kTuple);
      const auto inner = static_cast<Role>(arguments[0]->integer);
      expect(inner != Role::kFromType);
      return call(*arguments[0], arguments[2]->items);
    }
    case Role::kIgnored:
      return make(PickleKind::kOther);
    case Role::kInert:
      break;
  }
  bad("it calls '" + printable(function.text) +
      "', which tensors do not need; nothing was executed");
}

// OrderedDict(), or OrderedDict([(key, value), ...]) of Python 2.
PickleValue& PickleMachine::make_dict(const std::vector<PickleValue*>& arguments) {
  PickleValue& dict = make(PickleKind::kDict);
  if (arguments.empty()) return dict;
  if (arguments.size() > 1 || arguments[0]->kind != PickleKind::kList)
    bad("an OrderedDict of something else than pairs");
  for (const PickleValue* pair : arguments[0]->items) {
    const bool is_pair = (pair->kind == PickleKind::kTuple || pair->kind == PickleKind::kList) &&
                         pair->items.size() == 2;
    if (!is_pair) bad("an OrderedDict of something else than pairs");
    count(copied_, 2);
    dict.items.insert(dict.items.end(), pair->items.begin(), pair->items.end());
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

// TorchScript's modules: a class without arguments, whose attributes follow.
void PickleMachine::new_object() {
  const PickleValue &arguments = pop(), &type = pop();
  const bool fits = type.kind == PickleKind::kGlobal && is_class_of_script(type.text) &&
                    arguments.kind == PickleKind::kTuple;
  if (!fits) bad("an object of a class that tensors do not need; nothing was executed");
  push(make(PickleKind::kObject));
}

// Attributes of an object. State dicts have some as well, which say nothing of tensors.
void PickleMachine::build() {
  const PickleValue& state = pop();
  PickleValue& object = top();
  if (object.kind == PickleKind::kDict || object.kind == PickleKind::kTensor) return;
  if (object.kind != PickleKind::kObject)
    bad(message("attributes of a ", name_of(object.kind), "; nothing was executed"));
  if (state.kind != PickleKind::kDict) return;
  count(copied_, state.items.size());
  object.items.insert(object.items.end(), state.items.begin(), state.items.end());
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
  push(storage);
}

}  // namespace catena::serializers
