// Functions that move elements.
#include "catena/functions/array.h"

#include "oracle/functions/functions.h"

namespace catena::oracle {
namespace {
namespace F = catena::functions;

PadMode pad_mode(const std::string& name) {
  if (name == "reflect") return PadMode::kReflect;
  if (name == "edge") return PadMode::kEdge;
  if (name == "wrap") return PadMode::kWrap;
  return name == "symmetric" ? PadMode::kSymmetric : PadMode::kConstant;
}

Variables padded(const Inputs& in) {
  PadWidths widths;
  for (const Value& v : in->parameter("widths").list)
    widths.emplace_back(v.list.at(0).integer, v.list.at(1).integer);
  return {F::pad(in[0], widths, pad_mode(in.text("mode")), in.real("value", 0))};
}

F::Extent2D extent(const Inputs& in, const char* name) {
  const Dims two = in->dims(name);
  return {two[0], two[two.size() - 1]};
}

Variables resized(const Inputs& in) {
  F::ResizeImagesOptions options;
  options.mode = in.text("mode") == "nearest" ? F::ResizeMode::kNearest : F::ResizeMode::kBilinear;
  options.align_corners = in->flag("align_corners");
  return {F::resize_images(in[0], extent(in, "size"), options)};
}

Variables item(const Inputs& in) {
  std::vector<Index> indices;
  for (const Value& v : in->parameter("indices").list) indices.push_back(index_of(v));
  return {F::get_item(in[0], indices)};
}

}  // namespace

void add_arrays(Functions& f) {
  f["broadcast_to"] = [](const Inputs& in) {
    return Variables{F::broadcast_to(in[0], in->dims("shape"))};
  };
  f["broadcast"] = [](const Inputs& in) { return F::broadcast(in.from(0)); };
  f["cast"] = [](const Inputs& in) { return Variables{F::cast(in[0], *in->dtype())}; };
  f["concat"] = [](const Inputs& in) {
    return Variables{F::concat(in.from(0), in->integer("axis"))};
  };
  f["flip"] = [](const Inputs& in) {
    return Variables{F::flip(in[0], AxisList(in->dims("axes")))};
  };
  f["roll"] = [](const Inputs& in) {
    return Variables{F::roll(in[0], in->integer("shift"), in->optional_integer("axis"))};
  };
  f["get_item"] = item;
  f["one_hot"] = [](const Inputs& in) {
    return Variables{F::one_hot(in[0], in->integer("classes"), *in->dtype())};
  };
  f["pad"] = padded;
  f["repeat"] = [](const Inputs& in) {
    return Variables{F::repeat(in[0], in->integer("count"), in->optional_integer("axis"))};
  };
  f["tile"] = [](const Inputs& in) { return Variables{F::tile(in[0], in->dims("repetitions"))}; };
  f["reshape"] = [](const Inputs& in) { return Variables{F::reshape(in[0], in->dims("shape"))}; };
  f["expand_dims"] = [](const Inputs& in) {
    return Variables{F::expand_dims(in[0], in->integer("axis"))};
  };
  f["squeeze"] = [](const Inputs& in) {
    return Variables{F::squeeze(in[0], AxisList(in->dims("axes")))};
  };
  f["resize_images"] = resized;
  f["upsampling_nearest"] = [](const Inputs& in) {
    return Variables{F::upsampling_nearest(in[0], extent(in, "scale"))};
  };
  f["select_item"] = [](const Inputs& in) { return Variables{F::select_item(in[0], in[1])}; };
  f["separate"] = [](const Inputs& in) { return F::separate(in[0], in->integer("axis")); };
  f["split_axis"] = [](const Inputs& in) {
    if (in->has("sections"))
      return F::split_axis(in[0], in->integer("sections"), in->integer("axis"));
    return F::split_axis(in[0], Axes(in->dims("positions")), in->integer("axis"));
  };
  f["stack"] = [](const Inputs& in) {
    return Variables{F::stack(in.from(0), in->integer("axis"))};
  };
  f["hstack"] = [](const Inputs& in) { return Variables{F::hstack(in.from(0))}; };
  f["vstack"] = [](const Inputs& in) { return Variables{F::vstack(in.from(0))}; };
  f["dstack"] = [](const Inputs& in) { return Variables{F::dstack(in.from(0))}; };
  f["column_stack"] = [](const Inputs& in) { return Variables{F::column_stack(in.from(0))}; };
  f["block"] = [](const Inputs& in) {
    const auto first = size_t(in->integer("first"));
    return Variables{F::block({in.between(0, first), in.from(first)})};
  };
  f["take"] = [](const Inputs& in) {
    return Variables{F::take(in[0], in[1], in->optional_integer("axis"))};
  };
  f["take_along_axis"] = [](const Inputs& in) {
    return Variables{F::take_along_axis(in[0], in[1], in->integer("axis"))};
  };
  f["transpose"] = [](const Inputs& in) {
    return Variables{F::transpose(in[0], Axes(in->dims("axes")))};
  };
  f["swapaxes"] = [](const Inputs& in) {
    return Variables{F::swapaxes(in[0], in->integer("axis1"), in->integer("axis2"))};
  };
  f["moveaxis"] = [](const Inputs& in) {
    return Variables{
        F::moveaxis(in[0], AxisList(in->dims("sources")), AxisList(in->dims("destinations")))};
  };
  f["rollaxis"] = [](const Inputs& in) {
    return Variables{F::rollaxis(in[0], in->integer("axis"), in->integer("start"))};
  };
  f["rot90"] = [](const Inputs& in) {
    return Variables{F::rot90(in[0], in->integer("times"), Axes(in->dims("axes")))};
  };
  f["flipud"] = [](const Inputs& in) { return Variables{F::flipud(in[0])}; };
  f["fliplr"] = [](const Inputs& in) { return Variables{F::fliplr(in[0])}; };
  f["tril"] = [](const Inputs& in) { return Variables{F::tril(in[0], in->integer("k"))}; };
  f["triu"] = [](const Inputs& in) { return Variables{F::triu(in[0], in->integer("k"))}; };
  f["diagonal"] = [](const Inputs& in) {
    return Variables{
        F::diagonal(in[0], in->integer("offset"), in->integer("axis1"), in->integer("axis2"))};
  };
  f["trace"] = [](const Inputs& in) {
    return Variables{
        F::trace(in[0], in->integer("offset"), in->integer("axis1"), in->integer("axis2"))};
  };
  f["sort"] = [](const Inputs& in) {
    return Variables{F::sort(in[0], in->optional_integer("axis"))};
  };
}

}  // namespace catena::oracle
