#include "catena/autograd/computational_graph.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "catena/autograd/function_node.h"
#include "catena/autograd/parameter.h"
#include "catena/core/error.h"

extern char** environ;

namespace catena {
namespace {

// A file in memory. The program reads and writes such files and not pipes, so that neither side
// ever waits for the other.
class MemoryFile {
 public:
  MemoryFile() : descriptor_(::memfd_create("catena-graph", MFD_CLOEXEC)) { require(descriptor_); }
  ~MemoryFile() { ::close(descriptor_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  int descriptor() const { return descriptor_; }
  void write(const std::string& text) {
    for (size_t done = 0; done < text.size();) {
      const ssize_t n = ::write(descriptor_, text.data() + done, text.size() - done);
      if (n > 0) done += size_t(n);
      if (n < 0 && errno != EINTR) require(-1);
    }
    require(::lseek(descriptor_, 0, SEEK_SET));
  }
  std::string read() {
    require(::lseek(descriptor_, 0, SEEK_SET));
    std::string text;
    std::array<char, 65536> part;
    while (true) {
      const ssize_t n = ::read(descriptor_, part.data(), part.size());
      if (n == 0) return text;
      if (n > 0) text.append(part.data(), size_t(n));
      if (n < 0 && errno != EINTR) require(-1);
    }
  }

 private:
  static void require(off_t result) {
    CATENA_CHECK(IoError, result >= 0,
                 "dump: cannot hand the graph to the program dot: ", std::strerror(errno));
  }
  int descriptor_;
};

// Starts `dot -Tsvg` with these standard files; its process, or 0 with errno set.
pid_t start(const MemoryFile& in, const MemoryFile& out, const MemoryFile& errors) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, in.descriptor(), STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, out.descriptor(), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, errors.descriptor(), STDERR_FILENO);
  const char* const arguments[] = {"dot", "-Tsvg", nullptr};
  pid_t process = 0;
  errno = ::posix_spawnp(&process, "dot", &actions, nullptr, const_cast<char* const*>(arguments),
                         environ);
  posix_spawn_file_actions_destroy(&actions);
  return errno == 0 ? process : 0;
}

// Whether the process has ended well; also where the program ignores SIGCHLD, and nobody knows.
bool ends_well(pid_t process) {
  int status = 0;
  pid_t result;
  do {
    result = ::waitpid(process, &status, 0);
  } while (result < 0 && errno == EINTR);
  return result < 0 || (WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

// What `dot -Tsvg` makes of a text in its language. IoError if the program is not installed or
// fails.
std::string svg_of(const std::string& dot) {
  MemoryFile in, out, errors;
  in.write(dot);
  const pid_t process = start(in, out, errors);
  CATENA_CHECK(IoError, process != 0, "dump: drawing as svg needs Graphviz's program dot, which ",
               errno == ENOENT ? std::string("is not in PATH")
                               : message("cannot be started: ", std::strerror(errno)),
               "; install the package graphviz, or use dump(\"dot\") and draw it elsewhere");
  const bool well = ends_well(process);
  const std::string svg = out.read();
  CATENA_CHECK(IoError, well && !svg.empty(), "dump: the program dot failed: ", errors.read());
  return svg;
}

using Kind = ComputationalGraph::Kind;

std::string caption(const VariableNode& v) {
  const std::string form =
      v.shape.empty() ? std::string(name(v.dtype)) : message(v.shape, ", ", v.dtype);
  std::string title = v.parameter ? path_of(*v.parameter) : std::string();
  if (title.empty() && v.parameter) title = v.parameter->name;
  if (title.empty() && v.body) title = v.body->name;
  return title.empty() ? form : title + ": " + form;
}

// The functions that are reachable backward from the outputs, in the order of their calls.
std::vector<const FunctionNode*> functions_behind(const Variables& outputs) {
  std::vector<const FunctionNode*> found;
  std::unordered_set<const FunctionNode*> seen;
  const auto meet = [&](const FunctionNode* f) {
    if (f != nullptr && seen.insert(f).second) found.push_back(f);
  };
  for (const Variable& output : outputs) meet(output.creator());
  for (size_t next = 0; next < found.size(); ++next)
    for (const auto& input : found[next]->inputs()) meet(input->creator.get());
  std::sort(found.begin(), found.end(), [](const FunctionNode* a, const FunctionNode* b) {
    return a->sequence() < b->sequence();
  });
  return found;
}

// Writes down vertices and edges, function by function.
class Builder {
 public:
  Builder(const Variables& outputs, bool remove_split) : remove_split_(remove_split) {
    for (const Variable& output : outputs) {
      CATENA_CHECK(ValueError, output.defined(),
                   "build_computational_graph: got an undefined variable among the outputs");
      ends_.push_back(output.node());
    }
    const auto functions = functions_behind(outputs);
    note_reachable(functions);
    for (const FunctionNode* f : functions) add_function(*f);
    for (const VariableNode* end : ends_) variable(*end);
  }
  ComputationalGraph graph() { return {std::move(nodes_), std::move(edges_)}; }

 private:
  struct Place {
    size_t position = 0;
    size_t split = 0;  // of its Split; 0: none
  };

  // Outputs that nobody reaches are not drawn.
  void note_reachable(const std::vector<const FunctionNode*>& functions) {
    reachable_.insert(ends_.begin(), ends_.end());
    for (const FunctionNode* f : functions)
      for (const auto& input : f->inputs()) reachable_.insert(input.get());
  }
  void add_function(const FunctionNode& f) {
    std::vector<size_t> sources;
    for (const auto& input : f.inputs()) sources.push_back(source(*input));
    const size_t here = add(Kind::kFunction, f.label());
    for (const size_t from : sources) add_edge_once(from, here);
    for (const VariableNode* output : f.outputs())
      if (output != nullptr && reachable_.count(output) != 0)
        edges_.emplace_back(here, variable(*output).position);
  }
  // Where an edge into a function begins: at the variable, or at a fresh copy behind its Split.
  size_t source(const VariableNode& v) {
    Place& place = variable(v);
    if (remove_split_) return place.position;
    if (place.split == 0) {
      place.split = add(Kind::kSplit, "Split");
      edges_.emplace_back(place.position, place.split);
    }
    const size_t copy = add(Kind::kVariable, nodes_[place.position].label);
    edges_.emplace_back(place.split, copy);
    return copy;
  }
  void add_edge_once(size_t from, size_t to) {
    if (last_target_.size() < nodes_.size()) last_target_.resize(nodes_.size(), 0);
    if (last_target_[from] == to) return;
    last_target_[from] = to;
    edges_.emplace_back(from, to);
  }
  Place& variable(const VariableNode& v) {
    const auto [entry, is_new] = places_.try_emplace(&v);
    if (is_new) entry->second.position = add(Kind::kVariable, caption(v));
    return entry->second;
  }
  size_t add(Kind kind, std::string label) {
    nodes_.push_back({kind, std::move(label)});
    return nodes_.size() - 1;
  }

  bool remove_split_;
  std::vector<const VariableNode*> ends_;
  std::unordered_set<const VariableNode*> reachable_;
  std::unordered_map<const VariableNode*, Place> places_;
  std::vector<size_t> last_target_;  // by position; a function is never at 0
  std::vector<ComputationalGraph::Node> nodes_;
  std::vector<ComputationalGraph::Edge> edges_;
};

// A text between quotes in Graphviz's language.
std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    if (c == '\n')
      result += "\\n";
    else
      result += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
  }
  return result + '"';
}

const char* shape_of(Kind kind) {
  return kind == Kind::kVariable ? "oval" : kind == Kind::kFunction ? "box" : "hexagon";
}

}  // namespace

ComputationalGraph::ComputationalGraph(std::vector<Node> nodes, std::vector<Edge> edges)
    : nodes_(std::move(nodes)), edges_(std::move(edges)) {
  for (const Edge& edge : edges_)
    CATENA_CHECK(ValueError, std::max(edge.first, edge.second) < nodes_.size(),
                 "ComputationalGraph: an edge from vertex ", edge.first, " to ", edge.second,
                 ", but there are ", nodes_.size(), " vertices");
}

std::string ComputationalGraph::dump(const std::string& format) const {
  CATENA_CHECK(ValueError, format == "dot" || format == "svg", "dump: expected the format ",
               "\"dot\" or \"svg\", got \"", format, "\"");
  std::string text = "digraph graphname{\n";
  for (size_t i = 0; i < nodes_.size(); ++i)
    text += message(i, " [label=", quoted(nodes_[i].label), ",shape=\"", shape_of(nodes_[i].kind),
                    "\"];\n");
  for (const Edge& edge : edges_) text += message(edge.first, " -> ", edge.second, ";\n");
  text += "}\n";
  return format == "dot" ? text : svg_of(text);
}

ComputationalGraph build_computational_graph(const Variables& outputs, YesNo remove_split) {
  return Builder(outputs, remove_split).graph();
}
ComputationalGraph build_computational_graph(const Variable& output, YesNo remove_split) {
  return build_computational_graph(Variables{output}, remove_split);
}

}  // namespace catena
