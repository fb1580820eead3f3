// Which convolutions warpgroups make of an image whose rows threads copy, and what that asks of layouts.
#include <doctest/doctest.h>

#include <string>

#include "ir/text.h"
#include "schedule/lowering/lower_group.h"
#include "schedule/plan/kernel_planner.h"

namespace fusec::test {
namespace {

struct Layer {
  std::string dtype = "float16";
  int images = 64, channels = 64, size = 28, outputs = 128, kernel = 3;
  std::string attributes = "padding=[1, 1]";
  int results = 28;  // along each side
  bool channels_last = true;
  bool results_last = channels_last;
  bool weights_last = true;
};

std::string shape(const Layer& l, int images, int height, int width, int channels, bool last) {
  const std::string c = std::to_string(channels), i = std::to_string(images);
  const std::string sides = std::to_string(height) + ", " + std::to_string(width);
  return l.dtype + "[" + i + ", " + (last ? sides + ", " + c : c + ", " + sides) + "]";
}

Graph graph_of(const Layer& l) {
  const bool last = l.channels_last, weights_last = l.weights_last;
  std::string text = "model \"m\"\ninput x: " + shape(l, l.images, l.size, l.size, l.channels, last) +
                     "\ninput w: " + shape(l, l.outputs, l.kernel, l.kernel, l.channels, weights_last) + "\n";
  const std::string image = last ? "i" : "x", weights = weights_last ? "v" : "w";
  if (last)
    text += "i: " + shape(l, l.images, l.size, l.size, l.channels, false) + " = permute(x, dims=[0, 3, 1, 2])\n";
  if (weights_last)
    text += "v: " + shape(l, l.outputs, l.kernel, l.kernel, l.channels, false) + " = permute(w, dims=[0, 3, 1, 2])\n";
  text += "p: " + shape(l, l.images, l.results, l.results, l.outputs, false) + " = conv2d(" + image + ", " + weights +
          ", " + l.attributes + ")\n";
  if (l.results_last)
    text += "y: " + shape(l, l.images, l.results, l.results, l.outputs, true) + " = permute(p, dims=[0, 2, 3, 1])\n";
  return parse_graph_text(text + "return " + (l.results_last ? "y" : "p") + "\n");
}

// Of the layer's one kernel; `as_gemm`: its factors are copied as they lie.
struct Found {
  bool as_gemm = false;
  std::optional<WarpgroupGemms> wide;
};

Found find(const Layer& layer, const Target& target = target_for("sm_90a")) {
  const Graph graph = graph_of(layer);
  std::vector<NodeId> nodes;
  for (NodeId n = 0; n < graph.nodes.size(); ++n) nodes.push_back(n);
  const std::vector<LoweredUnit> units = lower_group(graph, nodes, graph.outputs);
  REQUIRE(units.size() == 1);
  REQUIRE(units[0].form->contraction);
  const KernelPlanner planner(units[0].kernel, *units[0].form, graph, target);
  REQUIRE(planner.kind_of_tiles() != KernelKind::kContraction);
  const WarpgroupGemms* wide = planner.best_warpgroups();
  return {planner.gemm() != nullptr, wide ? std::optional(*wide) : std::nullopt};
}

const WarpgroupOperand& image_of(const Found& found) {
  return found.wide->forms.at(0).loops.at(0).left.at(0);
}

}  // namespace

TEST_CASE("a convolution by warpgroups: an image by a table, weights by TMA") {
  const Target target = target_for("sm_90a");
  const Found found = find({});
  REQUIRE(found.wide);
  CHECK(!found.as_gemm);
  const WarpgroupGemmForm& form = found.wide->forms[0];
  REQUIRE(form.loops.size() == 1);
  CHECK(form.loops[0].has_gathered_rows());
  REQUIRE(form.loops[0].image());
  CHECK(image_of(found).image->k == 3 * 3 * 64);
  CHECK(image_of(found).image->convolution_operand.taps.size() == 2);
  CHECK(table_entries(form) == 3 * 3 * 64 / 8);
  CHECK(!form.loops[0].right.at(0).gathered);
  CHECK(form.loops[0].right.at(0).stride.is(3 * 3 * 64));
  CHECK(shared_bytes(found.wide->forms) <= target.shared_bytes_per_block);
}

TEST_CASE("a convolution by warpgroups: steps beyond the depth are in the table") {
  const Found found = find({.channels = 40});
  REQUIRE(found.wide);
  CHECK(table_entries(found.wide->forms[0]) == (3 * 3 * 40 + 63) / 64 * 8);
  CHECK(table_bytes(found.wide->forms[0]) == 8 * table_entries(found.wide->forms[0]));
}

TEST_CASE("a convolution by warpgroups: points of a strided image are rows without taps") {
  const Found found =
      find({.channels = 256, .outputs = 512, .kernel = 1, .attributes = "stride=[2, 2]", .results = 14});
  CHECK(found.as_gemm);
  REQUIRE(found.wide);
  CHECK(image_of(found).gathered);
  CHECK(!image_of(found).image);
  CHECK(table_bytes(found.wide->forms[0]) == 0);
}

TEST_CASE("a convolution by warpgroups: none where rows are in no pieces, or there is no wgmma") {
  CHECK(!find({.channels = 36}).wide);
  CHECK(!find({.size = 32, .results = 32, .channels_last = false, .weights_last = false}).wide);
  CHECK(!find({}, target_for("sm_80")).wide);
  CHECK(!find({.images = 1, .size = 8, .results = 8}).wide);
  // Of tiles that would be empty but for a quarter, warps make narrower ones.
  CHECK(!find({.outputs = 16}).wide);
}

TEST_CASE("a convolution by warpgroups: an image's planes in boxes of TMA, a tap's channels in whole tiles") {
  const Found found = find({.channels = 72, .size = 32, .results = 32, .channels_last = false});
  CHECK(!found.as_gemm);
  REQUIRE(found.wide);
  const WarpgroupGemmForm& form = found.wide->forms[0];
  REQUIRE(form.loops[0].has_image_boxes());
  CHECK(!form.loops[0].has_gathered_rows());
  CHECK(form.loops[0].padded_k == 3 * 3 * 128);
  REQUIRE(form.contraction);
  CHECK(form.contraction->batch.size() == 1);
  const WarpgroupOperand& image = form.loops[0].right[0];
  CHECK(!image.k_major);
  CHECK(image.boxes->pixels == 32);
  CHECK(image.boxes->channels == 2);
  REQUIRE(image.boxes->dimensions.size() == 4);
  CHECK(image.boxes->dimensions[1].stride.is(32));
  CHECK(image.boxes->taps.size() == 2);
  REQUIRE(form.loops[0].left[0].k_segments);
  CHECK(form.loops[0].left[0].k_segments->count.is(9));
  CHECK(form.loops[0].left[0].k_segments->stride.is(72));
  REQUIRE(form.stores[0]);
  CHECK(form.stores[0]->stride.is(32 * 32));
}

TEST_CASE("a convolution by warpgroups: boxes of an image whose channels lie last, where its tiles are full") {
  const Found last = find({.size = 32, .results = 32});
  REQUIRE(last.wide);
  CHECK(last.wide->forms[0].loops[0].has_image_boxes());
  CHECK(!last.wide->forms[0].loops[0].has_gathered_rows());
  const WarpgroupOperand& image = image_of(last);
  CHECK(image.k_major);
  CHECK(image.boxes->pixels == 32);
  CHECK(image.boxes->channels == 0);
  CHECK(image.boxes->neighbours == 1);
  // Each tap of 72 channels would be two tiles of 64.
  CHECK(find({.channels = 72, .size = 32, .results = 32}).wide->forms[0].loops[0].has_gathered_rows());
  CHECK(find({.channels = 120, .size = 32, .results = 32}).wide->forms[0].loops[0].has_image_boxes());
  CHECK(find({.size = 28}).wide->forms[0].loops[0].has_gathered_rows());
}

TEST_CASE("a convolution by warpgroups: results may lie otherwise than images do") {
  const Found to_last = find({.size = 32, .results = 32, .channels_last = false, .results_last = true});
  REQUIRE(to_last.wide);
  const WarpgroupGemmForm& rows_of_pixels = to_last.wide->forms[0];
  REQUIRE(rows_of_pixels.loops[0].left[0].boxes);
  CHECK(!rows_of_pixels.loops[0].left[0].k_major);
  CHECK(rows_of_pixels.loops[0].left[0].boxes->neighbours == 0);
  CHECK(rows_of_pixels.loops[0].right[0].k_segments);
  REQUIRE(rows_of_pixels.stores[0]);
  CHECK(rows_of_pixels.stores[0]->stride.is(128));
  const Found to_first = find({.size = 32, .results = 32, .channels_last = true, .results_last = false});
  REQUIRE(to_first.wide);
  const WarpgroupGemmForm& columns_of_pixels = to_first.wide->forms[0];
  REQUIRE(columns_of_pixels.loops[0].right[0].boxes);
  CHECK(columns_of_pixels.loops[0].right[0].k_major);
  REQUIRE(columns_of_pixels.stores[0]);
  CHECK(columns_of_pixels.stores[0]->stride.is(32 * 32));
}

TEST_CASE("a convolution by warpgroups: points of planes are a product of matrices for each image") {
  const Found found = find({.size = 28, .kernel = 1, .attributes = "padding=[0, 0]", .channels_last = false});
  REQUIRE(found.wide);
  const WarpgroupGemmForm& form = found.wide->forms[0];
  CHECK(!form.loops[0].has_image_boxes());
  CHECK(form.loops[0].padded_k == 0);
  REQUIRE(form.contraction);
  CHECK(form.contraction->batch.size() == 1);
  CHECK(form.loops[0].right[0].stride.is(28 * 28));
}

TEST_CASE("a convolution by warpgroups: boxes only where rows are in pieces and neighbours are neighbours there") {
  const auto in_boxes = [](Layer layer) {
    layer.channels_last = false;
    return find(layer).wide.has_value();
  };
  CHECK(in_boxes({.size = 16, .results = 16}));
  CHECK(in_boxes({.size = 48, .attributes = "padding=[2, 2], dilation=[2, 2]", .results = 48}));
  CHECK(!in_boxes({.size = 28}));                                                 // strides of 56 bytes
  CHECK(!in_boxes({.size = 32, .attributes = "padding=[0, 0]", .results = 30}));  // rows of results in no eights
  CHECK(!in_boxes({.size = 64, .attributes = "padding=[1, 1], stride=[2, 2]", .results = 32}));
  CHECK(!in_boxes({.dtype = "float32", .size = 32, .results = 32}));
}

}  // namespace fusec::test
