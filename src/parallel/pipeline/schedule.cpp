#include "catena/parallel/pipeline/schedule.h"

#include "catena/core/error.h"

namespace catena::parallel::pipeline {

std::string to_string(const Action& action) {
  constexpr char kLetters[] = "FBIW><}{RU";
  const auto kind = static_cast<size_t>(action.kind);
  const std::string letter(1, kind < sizeof kLetters - 1 ? kLetters[kind] : '?');
  if (action.kind == Kind::kReduce || action.kind == Kind::kUpdate)
    return letter + std::to_string(action.stage);
  return letter + std::to_string(action.stage) + "." + std::to_string(action.micro_batch);
}

std::string to_string(const Schedule& schedule) {
  std::string text;
  for (size_t rank = 0; rank < schedule.actions.size(); ++rank) {
    text += "rank " + std::to_string(rank) + ":";
    for (const Action& action : schedule.actions[rank]) text += " " + to_string(action);
    text += '\n';
  }
  return text;
}

bool is_message(Kind kind) { return kind >= Kind::kSendOutput && kind <= Kind::kRecvGradient; }

bool is_send(Kind kind) { return kind == Kind::kSendOutput || kind == Kind::kSendGradient; }

int peer_stage(const Action& message) {
  switch (message.kind) {
    case Kind::kSendOutput:
    case Kind::kRecvGradient: return message.stage + 1;
    case Kind::kRecvInput:
    case Kind::kSendGradient: return message.stage - 1;
    default: fail<ValueError>("peer_stage: ", to_string(message), " is not a send or a receive");
  }
}

}  // namespace catena::parallel::pipeline
