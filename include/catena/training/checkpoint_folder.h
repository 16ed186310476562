// CheckpointFolder: checkpoints that all ranks write together, each its own part, and that any
// number of ranks reads.
//
//   serializers::Checkpoint state;
//   state.add("model", model);
//   state.add("optimizer", optimizer.actual_optimizer());
//   training::CheckpointFolder folder("run/checkpoints", comm.get());
//   if (folder.has_checkpoint()) step = folder.load(state);
//   for (; step < steps; ++step) {
//     if (step % 100 == 0) folder.save_async(state, step);      // written behind training
//     ...
//   }
//   folder.wait();
//
// docs/guide/checkpoints.md explains what is saved, layouts, restarts and errors.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "catena/comm/communicator.h"
#include "catena/serializers/checkpoint.h"

namespace catena::parallel::pipeline {
class Pipeline;
}

namespace catena::training {

// What a save does while the one before it is still being written.
enum class WhenBusy : uint8_t { kWait, kSkip };

// How many checkpoints a folder keeps, and for what its saves wait.
struct CheckpointFolderOptions {
  int keep = 2;  // complete checkpoints that stay; a save removes older ones
  WhenBusy when_busy = WhenBusy::kWait;  // what save_async does then
  double timeout = 600;  // seconds for which ranks wait while none writes anything or ends
};

// A folder has a folder for each checkpoint, "step-000000000100", which appears with everything in
// it or not at all: it is written under another name, flushed to the disk and renamed. So a process
// that is killed at any moment leaves the checkpoint before it.
//
// Files have slices of tensors by their global names, which do not depend on the ranks: parameters
// and states by the names of the model, those of pipelines included, and as slices where their
// layers have placed them so (Parameter::place). Of values and states that are spread over ranks
// (parallel::Sharding) each rank writes and reads what it keeps. What several ranks have is written
// once, by all of them in shares. Entries of serializers::Checkpoint other than models, optimizers
// and pipelines are rank 0's. All ranks get what they need from the files, which must be on a file
// system that they share.
//
// All ranks make one of the same path and call save, save_async, wait, load and has_checkpoint
// together, with the same steps, checkpoints of the same entries and the same options (ValueError
// that says which rank gave what). An error of one rank is an error of all of them. One folder at a
// time saves to a path: an IoError names the process that is saving to it already, and what another
// one has removed while it was written.
class CheckpointFolder {
 public:
  // Makes the folder when something is saved. Null: one process. The communicator must outlive the
  // folder. ValueError for an empty path, keep < 1 and timeout <= 0.
  explicit CheckpointFolder(const std::string& path, Communicator* comm = nullptr,
                            const CheckpointFolderOptions& options = {});
  // Waits until what this rank writes is written; an error is logged. Rank 0 waits for the others,
  // which do not wait for it: for a long save call wait() before. In a job that has failed it gives
  // up a rank that writes nothing for five seconds.
  ~CheckpointFolder();
  CheckpointFolder(const CheckpointFolder&) = delete;
  CheckpointFolder& operator=(const CheckpointFolder&) = delete;

  // As it was given.
  const std::string& path() const;

  // Saves, and returns when the checkpoint is complete. A checkpoint of this step is replaced.
  // The first saves of the object, of two steps, also compare what several ranks hold as the same
  // tensor: parameters, states that are not spread and arrays declared OverRanks::kEqual. They read
  // these on their devices, wait for that, and exchange 16 bytes a tensor; later saves do not.
  // ValueError, on all ranks, with the first tensor whose bits differ and the ranks.
  //
  // ValueError for step < 0, for tensors that the ranks name or lay out differently, and where
  // there is a checkpoint of a later step, of another run perhaps: load() it to go on from it, or
  // the one to go back to, whose next save then removes later ones, or clear(). IoError, on all
  // ranks, with the rank, the file and the system's reason; the checkpoints before it stay.
  void save(const serializers::Checkpoint& state, int64_t step);
  // Copies the state to host memory and returns; a thread writes it. Arrays may be written again at
  // once: copies of those on the CPU are done, and the streams of GPUs wait for copies to
  // page-locked memory on a side stream. The host waits for a GPU once, to read the count of
  // updates, and in the first two saves for the comparison of the ranks. Host memory of that size
  // is kept for the next save, which reserve() prepares. While a save is being written the next one
  // waits, or is left out (WhenBusy): false then, on all ranks.
  // Throws the error of the save before it, as wait() does. Not during the capture of a graph.
  bool save_async(const serializers::Checkpoint& state, int64_t step);
  // Waits until the last checkpoint is complete, however long that takes: the ranks exchange a few
  // bytes four times a second, so that a save may be longer than the limit of the job for calls
  // (catena-run --timeout). IoError, once, on all ranks, if it could not be written, or if no rank
  // has written anything or ended for .timeout seconds; it names the rank that is late. A thread
  // whose disk does not answer is then left behind with its copy of the state. Rank 0's keeps its
  // folder locked until it ends: a save before that throws that this process is still saving.
  void wait();
  // Takes the host memory that the first save_async() would, and touches it. Waits for a save.
  void reserve(const serializers::Checkpoint& state);

  // Whether there is a complete checkpoint. IoError for a folder that cannot be read.
  bool has_checkpoint() const;
  // The steps of those with the mark of a complete save, in ascending order, as this rank sees
  // them.
  std::vector<int64_t> steps() const;
  // Loads the newest one that is whole, and returns its step; warnings say which newer ones are not
  // and why: the save that did not end, the file that is missing or truncated, or the file and the
  // tensor whose bytes have another checksum than they were written with. All bytes are read and
  // checked for that, by the ranks in shares, before anything is loaded. IoError, on all ranks,
  // that lists them when there is none; and that lists all entries and tensors that are missing,
  // unknown, or of another shape or dtype. Nothing was loaded then. What goes wrong later, such as
  // an entry of your own that throws, is an error that says that a part was loaded.
  int64_t load(const serializers::Checkpoint& state);
  // The same for one step. IoError for one that is not whole; nothing was loaded then.
  void load(const serializers::Checkpoint& state, int64_t step);

  // Removes all checkpoints, those of saves that did not end included. All ranks call it. Waits for
  // a save as wait() does, whose error counts only where a rank is late. IoError for one that
  // cannot be removed.
  void clear();

  // Of the last save, on this rank.
  struct Times {
    double blocked = 0;  // seconds for which save_async kept the caller
    double written = 0;  // seconds from there until its file, on rank 0 the checkpoint, was done
    int64_t bytes = 0;   // of its file
  };
  // Zero seconds written: it is being written.
  Times times() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// What a pipeline's random numbers depend on besides units and micro-batches.
struct PipelineState {
  int64_t steps = 0;
  uint64_t seed = 0;
};

// Adds the model, the optimizers of the stages and the state of a pipeline that is set up, as
// "model", "optimizer" and "pipeline". Names are those of the whole model, so that another cut and
// other ranks load them; a program without a pipeline too, which adds its model, its optimizer and
// a PipelineState by these names. Weights that units share are saved once. The pipeline must
// outlive the checkpoint. In a grid average running statistics over the replicas before a save:
// pipeline.average_persistents().
void add_pipeline(serializers::Checkpoint& checkpoint, parallel::pipeline::Pipeline& pipeline);

}  // namespace catena::training
