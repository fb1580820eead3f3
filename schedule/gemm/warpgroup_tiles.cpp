#include "schedule/gemm/warpgroup_tiles.h"

#include <fmt/format.h>

#include <algorithm>

namespace fusec {

std::int64_t box_bytes(const WarpgroupGemmForm& form) {
  std::int64_t bytes = 0;
  for (std::size_t i = 0; i < form.stores.size(); ++i)
    if (form.stores_boxes_of(i)) bytes += WarpgroupStore::kLines * WarpgroupStore::kLine;
  return bytes;
}

namespace {

template <class Is>
bool any_operand(const WarpgroupLoop& loop, const Is& is) {
  return std::ranges::any_of(loop.left, is) || std::ranges::any_of(loop.right, is);
}

// The most bytes of several forms.
template <class Bytes>
std::int64_t most_of(std::span<const WarpgroupGemmForm> forms, const Bytes& bytes) {
  std::int64_t most = 0;
  for (const WarpgroupGemmForm& form : forms) most = std::max(most, bytes(form));
  return most;
}

}  // namespace

bool WarpgroupLoop::scaled() const {
  return any_operand(*this, [](const WarpgroupOperand& o) { return !o.scales.empty(); });
}

bool WarpgroupLoop::has_gathered_columns() const {
  return std::ranges::any_of(right, [](const WarpgroupOperand& o) { return o.gathered.has_value(); });
}

bool WarpgroupLoop::has_gathered_rows() const {
  return any_operand(*this, [](const WarpgroupOperand& o) { return o.gathered.has_value(); });
}

bool WarpgroupLoop::computes() const {
  return any_operand(*this, [](const WarpgroupOperand& o) { return o.transformed.has_value(); });
}

const WarpgroupOperand* WarpgroupLoop::image() const {
  for (const auto* side : {&left, &right})
    for (const WarpgroupOperand& o : *side)
      if (o.image) return &o;
  return nullptr;
}

bool WarpgroupLoop::has_image_boxes() const {
  return any_operand(*this, [](const WarpgroupOperand& o) { return o.boxes.has_value(); });
}

bool WarpgroupGemmForm::scales_in_stages() const {
  return std::ranges::any_of(loops, [](const WarpgroupLoop& loop) { return loop.block != 0; });
}

std::int64_t stage_bytes(const WarpgroupGemmForm& form) {
  constexpr std::int64_t kSwizzled = 1024;  // period of the swizzle, bytes
  std::int64_t most = 0;
  for (const WarpgroupLoop& loop : form.loops) {
    std::int64_t tiles = 0, scales = 0;
    for (const bool left : {true, false})
      for (const WarpgroupOperand& operand : left ? loop.left : loop.right) {
        const int across = left ? form.tiles.rows() : form.tiles.columns;
        tiles += std::int64_t{across} * WarpgroupTiles::kLineBytes;
        if (loop.block != 0 && !operand.scales.empty()) scales += std::int64_t{across} * 4;
      }
    most = std::max(most, tiles + (scales + kSwizzled - 1) / kSwizzled * kSwizzled);
  }
  return most;
}

std::int64_t copied_bytes(const WarpgroupGemmForm& form) {
  std::int64_t most = 0;
  for (const WarpgroupLoop& loop : form.loops) {
    std::int64_t bits_deep = 0;  // per step of K
    for (const bool left : {true, false})
      for (const WarpgroupOperand& operand : left ? loop.left : loop.right)
        if (operand.transformed) bits_deep += bits_copied(operand) * (left ? form.tiles.rows() : form.tiles.columns);
    most = std::max(most, bits_deep * form.k() / 8);
  }
  return most;
}

bool WarpgroupGemmForm::takes_offsets() const {
  return std::ranges::any_of(loops, [](const WarpgroupLoop& loop) {
    return std::ranges::any_of(loop.left, [](const WarpgroupOperand& o) { return o.zero_point != kNoExpr; });
  });
}

std::int64_t staged_bytes(const WarpgroupGemmForm& form) {
  if (form.tiles.split_k > 1)
    return form.takes_offsets() ? WarpgroupTiles::kOffsetBytes / (4 * WarpgroupTiles::kConsumers) : 0;
  return 16ll * (form.tiles.staged_columns + 8) * 4 * form.accumulators;
}

std::int64_t stage_bytes(std::span<const WarpgroupGemmForm> forms) {
  return most_of(forms, [](const WarpgroupGemmForm& form) { return stage_bytes(form); });
}

std::int64_t copied_bytes(std::span<const WarpgroupGemmForm> forms) {
  return most_of(forms, [](const WarpgroupGemmForm& form) { return copied_bytes(form); });
}

std::int64_t staged_bytes(std::span<const WarpgroupGemmForm> forms) {
  return most_of(forms, [](const WarpgroupGemmForm& form) { return staged_bytes(form); });
}

std::int64_t box_bytes(std::span<const WarpgroupGemmForm> forms) {
  return most_of(forms, [](const WarpgroupGemmForm& form) { return box_bytes(form); });
}

std::int64_t group_bytes(const WarpgroupGemmForm& form) {
  return 2ll * 4 * form.matrices;
}

std::int64_t table_entries(const WarpgroupGemmForm& form) {
  constexpr std::int64_t kOfTile = WarpgroupTiles::kLineBytes / 16;
  const WarpgroupLoop& loop = form.loops[0];  // an image has one loop
  return loop.image() ? (loop.image()->image->k + form.k() - 1) / form.k() * kOfTile : 0;
}

std::int64_t table_bytes(const WarpgroupGemmForm& form) {
  const WarpgroupOperand* const image = form.loops[0].image();
  if (!image) return 0;
  const ConvolutionOperand& convolution_operand = image->image->convolution_operand;
  return 8 * table_entries(form) +
         (convolution_operand.has_position_table ? 4 * (convolution_operand.places + 1) * kPositionTableStride : 0);
}

std::int64_t shared_bytes(std::span<const WarpgroupGemmForm> forms) {
  return forms[0].tiles.stages * (stage_bytes(forms) + 16) +
         (box_bytes(forms) + staged_bytes(forms)) * 4 * WarpgroupTiles::kConsumers + group_bytes(forms[0]) +
         copied_bytes(forms) * WarpgroupTiles::kCopiesAhead + table_bytes(forms[0]);
}

std::string name_of(const WarpgroupTiles& t) {
  return fmt::format("{}x{} by warpgroups, {} stages, {}{}", t.rows(), t.columns, t.stages,
                     t.cluster == 1 ? "single blocks" : fmt::format("{} blocks of a cluster", t.cluster),
                     t.split_k > 1 ? fmt::format(", {} shares of the depth", t.split_k) : "");
}

}  // namespace fusec
