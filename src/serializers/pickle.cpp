#include "serializers/pickle.h"

#include <bit>
#include <cstring>

#include "catena/core/error.h"

namespace catena::serializers {
namespace {

constexpr uint64_t kMemoBytes = 48;  // of an entry of a hash table

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
  kBinString = 'T',  // texts of Python 2
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
  kEmptySet = 0x8f,
  kAddItems = 0x90,
  kFrozenSet = 0x91,
  kNewObjEx = 0x92,
  kStackGlobal = 0x93,
  kMemoize = 0x94,
  kFrame = 0x95,
  kByteArray8 = 0x96,
};

}  // namespace

std::string_view name_of(PickleKind kind) {
  switch (kind) {
    case PickleKind::kNone: return "None";
    case PickleKind::kBool: return "bool";
    case PickleKind::kInt:
    case PickleKind::kLongInt: return "int";
    case PickleKind::kFloat: return "float";
    case PickleKind::kText: return "text";
    case PickleKind::kBytes: return "bytes";
    case PickleKind::kTuple: return "tuple";
    case PickleKind::kList: return "list";
    case PickleKind::kDict: return "dict";
    case PickleKind::kObject: return "object";
    case PickleKind::kStorage: return "storage";
    case PickleKind::kTensor: return "tensor";
    case PickleKind::kGlobal:
    case PickleKind::kOther: break;
  }
  return "constant";
}

PickleMachine::PickleMachine(std::string name, std::string_view bytes, bool script,
                             ReadBudget& budget)
    : name_(std::move(name)), bytes_(bytes), script_(script), budget_(budget) {}

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

void PickleMachine::push(PickleValue& value) {
  budget_.charge_bytes(sizeof(PickleValue*));
  stack_.push_back(&value);
}

PickleValue& PickleMachine::make(PickleKind kind) {
  budget_.charge_bytes(sizeof(PickleValue));
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
  add_items(tuple, items);
  push(tuple);
}

void PickleMachine::remember(uint64_t slot) {
  budget_.charge_bytes(kMemoBytes);
  memo_[slot] = &top();
}

void PickleMachine::recall(uint64_t slot) {
  const auto found = memo_.find(slot);
  if (found == memo_.end()) bad(message("value ", slot, " is not known: the file is damaged"));
  push(*found->second);
}

const PickleValue& PickleMachine::run() {
  stack_.clear();
  marks_.clear();
  memo_.clear();
  uint8_t opcode = 0;
  do {
    budget_.charge_steps(1);
    opcode_at_ = at_;
    opcode = static_cast<uint8_t>(number(1));
  } while (step(opcode));
  return pop();
}

bool PickleMachine::step(uint8_t opcode) {
  switch (opcode) {
    case kStop: return false;
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
    case kReduce: reduce(); return true;
    case kNewObjEx:
      pop();  // arguments by name
      new_object();
      return true;
    case kNewObj: new_object(); return true;
    case kBuild: build(); return true;
    case kBinPersId: persistent(); return true;
    default:
      if (!constant(opcode) && !container(opcode)) memory(opcode);
      return true;
  }
}

// Opcodes that push a constant. false: it is another.
bool PickleMachine::constant(uint8_t opcode) {
  switch (opcode) {
    case kNoneOpcode: push(make(PickleKind::kNone)); return true;
    case kNewTrue:
    case kNewFalse:
      push(make(PickleKind::kBool));
      top().integer = opcode == kNewTrue;
      return true;
    case kBinInt: push_int(static_cast<int32_t>(number(4))); return true;
    case kBinInt1: push_int(static_cast<int64_t>(number(1))); return true;
    case kBinInt2: push_int(static_cast<int64_t>(number(2))); return true;
    case kLong1: push_long(number(1)); return true;
    case kLong4: push_long(number(4)); return true;
    case kBinFloat:
      take(8);
      push(make(PickleKind::kFloat));
      return true;
    case kBinUnicode: push_text(PickleKind::kText, take(number(4))); return true;
    case kShortBinUnicode: push_text(PickleKind::kText, take(number(1))); return true;
    case kBinUnicode8: push_text(PickleKind::kText, take(number(8))); return true;
    case kBinString: push_text(PickleKind::kText, take(number(4))); return true;
    case kShortBinString: push_text(PickleKind::kText, take(number(1))); return true;
    case kBinBytes: push_text(PickleKind::kBytes, take(number(4))); return true;
    case kShortBinBytes: push_text(PickleKind::kBytes, take(number(1))); return true;
    case kBinBytes8:
    case kByteArray8: push_text(PickleKind::kBytes, take(number(8))); return true;
    default: return false;
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
      const auto items = pop_marked();
      PickleValue& tuple = make(PickleKind::kTuple);
      add_items(tuple, items);
      push(tuple);
      return true;
    }
    case kEmptyList: push(make(PickleKind::kList)); return true;
    case kEmptyDict: push(make(PickleKind::kDict)); return true;
    case kEmptySet: push(make_other("set")); return true;
    case kAddItems: pop_marked(); return true;
    case kFrozenSet:
      pop_marked();
      push(make_other("frozenset"));
      return true;
    case kAppend: append({&pop()}); return true;
    case kAppends: append(pop_marked()); return true;
    case kSetItem: {
      PickleValue &value = pop(), &key = pop();
      set_items({&key, &value});
      return true;
    }
    case kSetItems: set_items(pop_marked()); return true;
    default: return false;
  }
}

// Opcodes of the stack and the memo; any other is an error.
void PickleMachine::memory(uint8_t opcode) {
  switch (opcode) {
    case kMark:
      budget_.charge_bytes(sizeof(size_t));
      marks_.push_back(stack_.size());
      return;
    case kPop: pop(); return;
    case kPopMark: pop_marked(); return;
    case kDup: push(top()); return;
    case kBinPut: return remember(number(1));
    case kLongBinPut: return remember(number(4));
    case kMemoize: return remember(memo_.size());
    case kBinGet: return recall(number(1));
    case kLongBinGet: return recall(number(4));
    default:
      bad(message("opcode ", int{opcode},
                  ", which state dicts of tensors do not need; nothing was executed"));
  }
}

void PickleMachine::add_items(PickleValue& container, const std::vector<PickleValue*>& items) {
  budget_.charge_bytes(items.size() * sizeof(PickleValue*));
  container.items.insert(container.items.end(), items.begin(), items.end());
}

PickleValue& PickleMachine::make_other(std::string_view maker) {
  PickleValue& other = make(PickleKind::kOther);
  other.text = maker;
  return other;
}

void PickleMachine::append(const std::vector<PickleValue*>& items) {
  PickleValue& list = top();
  if (list.kind == PickleKind::kOther) return;
  if (list.kind != PickleKind::kList)
    bad(message("items are added to a ", name_of(list.kind), ", expected a list"));
  add_items(list, items);
}

void PickleMachine::set_items(const std::vector<PickleValue*>& items) {
  PickleValue& dict = top();
  if (dict.kind == PickleKind::kOther) return;
  if (dict.kind != PickleKind::kDict || items.size() % 2 != 0)
    bad(message(items.size(), " keys and values are added to a ", name_of(dict.kind),
                ", expected a dict and pairs"));
  add_items(dict, items);
}

}  // namespace catena::serializers
