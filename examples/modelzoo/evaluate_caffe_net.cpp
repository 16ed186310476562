// Evaluates a model that was trained with Caffe, on one device, or on the ranks that catena-run
// started.
#include <cstdio>

#include "caffe_mean.h"
#include "catena/comm/run_main.h"
#include "common/command_line.h"
#include "common/picture_dataset.h"
#include "common/training_run.h"
#include "evaluation.h"

namespace modelzoo {
namespace {

namespace ds = catena::datasets;

struct Options {
  std::string dataset, type, model;
  std::string basepath = "/", mean;
  int64_t batch = 100;  // over all ranks
  int64_t threads = 8;
  examples::RunOptions run;
};

Options parse_options(int argc, char** argv) {
  Options o;
  examples::CommandLine line("Evaluates a model of Caffe on labelled pictures.");
  line.add_text("dataset", o.dataset,
                "list of pictures, a path and a label in each line; or arrays x and t (.npz)")
      .required();
  line.add_text("model_type", o.type, "the network").required().one_of(names_of_model_types());
  line.add_text("model", o.model, "the .caffemodel").required();
  line.add_text("-b,--basepath", o.basepath, "folder that paths in the list start from");
  line.add_text("-m,--mean", o.mean,
                "mean picture (.npy), or mean pixel as blue,green,red [ilsvrc_2012_mean.npy; of "
                "googlenet and resnet their pixels]");
  line.add_count("-B,--batchsize", o.batch, "pictures of one step, over all ranks");
  line.add_count("-j,--loaderjob", o.threads, "threads that decode pictures");
  examples::add_device_options(line, o.run);
  line.parse(argc, argv);
  if (o.mean.empty()) o.mean = model_type(o.type).mean;
  return o;
}

int body(int argc, char** argv) {
  const Options options = parse_options(argc, argv);
  const ModelType& type = model_type(options.type);
  const catena::CommunicatorPtr comm = examples::make_communicator(options.run);
  const catena::DeviceScope device(comm->device());
  CaffeFunction model = open_model(options.model, type);
  model.to(comm->device());
  const int64_t classes = classes_of(model, type);
  const catena::Array mean = load_mean(options.mean, type.insize);
  const auto data = std::make_shared<examples::PictureDataset>(
      open_pictures(options.dataset, options.basepath, classes), mean,
      examples::PictureOptions{.insize = type.insize,
                               .crops = examples::Crops::kCentre,
                               .channels = examples::Channels::kBgr,
                               .divisor = 1,
                               .threads = options.threads});
  ds::PrefetchIterator batches(data, ds::SerialIterator(data->size(), options.batch),
                               comm->device(), {comm->rank(), comm->size()}, {.background = true});
  const Evaluation found = evaluate(model, type, batches, *comm);
  if (comm->rank() != 0) return 0;
  std::printf("%s: %zu layers, %lld weights, %lld classes\n", options.model.c_str(),
              model.layers().size(), static_cast<long long>(model.parameter_count()),
              static_cast<long long>(classes));
  std::printf("%lld pictures, of which %lld were skipped\n", static_cast<long long>(found.pictures),
              static_cast<long long>(found.skipped));
  std::printf("mean loss      %.4f\ntop-1 accuracy %.4f\ntop-5 accuracy %.4f\n", found.loss,
              found.top1, found.top5);
  return 0;
}

}  // namespace
}  // namespace modelzoo

int main(int argc, char** argv) { return catena::run_main(argc, argv, modelzoo::body); }
