#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "analysis/loads.h"
#include "codegen/emit_expr.h"
#include "codegen/schedules/direct.h"
#include "codegen/schedules/runs.h"
#include "codegen/schedules/vector_access.h"
#include "ir/type.h"

namespace fusec {
namespace {

class RunsEmitter {
 public:
  RunsEmitter(const Graph& graph, const Target& target, const RunPlan& plan)
      : graph_(graph),
        target_(target),
        plan_(plan),
        rows_(plan.rows),
        kernel_(plan.rows.kernel),
        pool_(kernel_.pool),
        dtype_(kernel_.outputs[0].type.dtype),
        total_(point_count(pool_, kernel_.outputs[0].axes)),
        rows_of_thread_((plan.most_rows + plan.threads - 1) / plan.threads),
        writer_(graph, false),
        emitter_(kernel_, writer_) {}

  KernelSource emit() {
    writer_.use("runs");
    writer_.use(dtype_);
    open_block();
    put_constants();
    if (plan_.even) {
      find_lines();
      copy_tensors();
      find_entries();
    } else {
      find_rows();
      find_stretches();
      copy_tensors();
      fill_table();
    }
    writer_.line("wait_for_stretches();");
    find_runs();
    put_together();
    store();
    KernelSource source = writer_.finish(kernel_comment(graph_, kernel_), plan_.threads, 1);
    source.grid[0] = simplify(ceil_div(total_, plan_.block()), pool_.bounds());
    source.dynamic_shared = plan_.shared_bytes();
    return source;
  }

 private:
  // What the text calls a tensor's part in shared memory.
  struct Names {
    std::string low, high, stretch;
  };
  // What a piece of a row is: the number of a tensor, or kConstant and the number of a constant behind it; and where it
  // begins there.
  struct Place {
    std::string of, at;
  };
  static constexpr int kConstant = 64, kFar = 128;
  // Of a piece whose rows lie evenly: its entry and its place in the first row, and what is added for each further one.
  struct Entry {
    std::string first, more, place, more_places;
  };

  int bytes() const { return bits(dtype_) / 8; }
  std::string text(const IndexExpr& e) const { return emitter_.index_text().tight(e); }
  std::string length() const { return text(rows_.length); }
  std::string declared(const std::string& name, const std::string& value, const char* type = "int") {
    const std::string known = writer_.unique(name);
    writer_.line(fmt::format("const {} {} = {};", type, known, value));
    return known;
  }
  std::string open_turns(const std::string& wish, int turns) {
    const std::string turn = writer_.unique(wish);
    writer_.line("#pragma unroll");
    writer_.open(fmt::format("for (int {0} = 0; {0} < {1}; ++{0})", turn, turns));
    return turn;
  }

  // The block's first row and its column there, how many elements and rows it has.
  void open_block() {
    const std::string start = declared("start", fmt::format("blockIdx.x * {}", plan_.block()));
    row0_ = declared("row0", fmt::format("{} / {}", start, length()));
    column0_ = declared("column0", fmt::format("{} - {} * {}", start, row0_, length()));
    elements_ = declared("elements", fmt::format("min({}, {} - {})", plan_.block(), text(total_), start));
    if (plan_.even) return;
    block_rows_ = declared("rows", fmt::format("({} + {} - 1) / {} + 1", column0_, elements_, length()));
    if (rows_.length.is_constant()) return;
    writer_.open(fmt::format("if ({} > {})", block_rows_, plan_.most_rows));
    store_elements(start);
    writer_.line("return;");
    writer_.close();
  }

  // Rows are more than the table has room for: they are much shorter than expected.
  void store_elements(const std::string& start) {
    const std::string e = writer_.unique("e");
    writer_.open(fmt::format("for (int {0} = threadIdx.x; {0} < {1}; {0} += {2})", e, elements_, plan_.threads));
    const ExprEmitter::Mark mark = emitter_.mark();
    bind_flat(emitter_, kernel_.outputs[0].axes, declared("t", fmt::format("{} + {}", start, e)));
    store_scalars(emitter_, {emitter_.emit(kernel_.outputs[0].expr)});
    emitter_.rewind(mark);
    writer_.close();
  }

  // 16 bytes of each, zeros first, and that no runs are listed.
  void put_constants() {
    put_constant(0, "0");
    writer_.line(fmt::format("if (threadIdx.x == 0) *(int*)(dynamic_shared + {}) = 0;", plan_.counter_start));
    for (std::size_t i = 0; i < plan_.constants.size(); ++i) {
      const ExprEmitter::Mark mark = emitter_.mark();
      put_constant(i + 1, emitter_.emit(plan_.constants[i]));
      emitter_.rewind(mark);
    }
  }
  void put_constant(std::size_t i, const std::string& value) {
    writer_.open(fmt::format("if (threadIdx.x == {})", i));
    const std::string words = writer_.unique("words");
    writer_.line(fmt::format("Words<4> {} = {{}};", words));
    if (i > 0) {
      const std::string e = writer_.unique("e");
      writer_.line("#pragma unroll");
      writer_.line(fmt::format("for (int {0} = 0; {0} < {1}; ++{0}) {2}", e, plan_.width,
                               put_text(dtype_, words, e, value, writer_)));
    }
    writer_.line(fmt::format("store_words(dynamic_shared + {}, {});", 16 * i, words));
    writer_.close();
  }

  // A thread's rows: where their pieces are, and what of these the block has.
  void find_rows() {
    for (const RunPlan::Tensor& tensor : plan_.tensors) {
      const std::string name = writer_.wish(tensor.source);
      names_.push_back({writer_.unique(name + "_low"), writer_.unique(name + "_high"), ""});
      writer_.line(fmt::format("unsigned {} = ~0u;", names_.back().low));
      writer_.line(fmt::format("int {} = -1;", names_.back().high));
    }
    of_ = writer_.unique("piece_of"), at_ = writer_.unique("piece_at");
    const std::size_t count = rows_.pieces.size();
    writer_.line(fmt::format("int {0}[{2}][{3}], {1}[{2}][{3}];", of_, at_, rows_of_thread_, count));
    if (plan_.far > 0) find_middle();
    turn_ = open_turns("turn", rows_of_thread_);
    const std::string row = declared("r", fmt::format("{} * {} + threadIdx.x", turn_, plan_.threads));
    for (std::size_t i = 0; i < count; ++i)
      if (!rows_.pieces[i].constant)
        writer_.line(fmt::format("{}[{}][{}] = {}, {}[{}][{}] = 0;", of_, turn_, i, kConstant, at_, turn_, i));
    writer_.open(fmt::format("if ({} < {})", row, block_rows_));
    const ExprEmitter::Mark mark = emitter_.mark();
    bind_flat(emitter_, rows_.rows, declared("row", fmt::format("{} + {}", row0_, row)));
    const std::string from = declared("from", fmt::format("{} * {} - {}", row, length(), column0_));
    for (std::size_t i = 0; i < count; ++i)
      if (!rows_.pieces[i].constant) find_piece(i, from);
    emitter_.rewind(mark);
    writer_.close();
    writer_.close();
  }

  void find_piece(std::size_t i, const std::string& from) {
    const RowPiece& piece = rows_.pieces[i];
    const ExprEmitter::Mark mark = emitter_.mark();
    const Place found = place(piece, kernel_.outputs[0].expr);
    const std::string of = fmt::format("{}[{}][{}]", of_, turn_, i), at = fmt::format("{}[{}][{}]", at_, turn_, i);
    writer_.line(fmt::format("{} = {}, {} = {};", of, found.of, at, found.at));
    emitter_.rewind(mark);
    const std::string begin = declared("begin", fmt::format("max({} + {}, 0)", from, text(piece.begin)));
    const std::string end = declared("end", fmt::format("min({} + {}, {})", from, text(piece.end), elements_));
    const auto place_of = [&](const std::string& point) {
      return stepped(piece.step, at, fmt::format("({} - {} - {})", point, from, text(piece.begin)));
    };
    for (std::size_t t = 0; t < plan_.tensors.size(); ++t) {
      if (!reads(piece, plan_.tensors[t])) continue;
      if (plan_.far > 0)
        writer_.line(fmt::format("if ({0} == {1} && abs({2} - {3} - {4}) >= {5}) {0} = {6};", of, t, place_of(begin),
                                 begin, middles_[t], plan_.far, kFar + t));
      writer_.open(fmt::format("if ({} == {} && {} < {})", of, t, begin, end));
      for (const std::string& one : {begin, end + " - 1"})
        writer_.line(fmt::format("widen_stretch({}, {}, {});", names_[t].low, names_[t].high, place_of(one)));
      writer_.close();
    }
  }

  bool reads(const RowPiece& piece, const RunPlan::Tensor& tensor) const {
    return std::ranges::any_of(piece.leaves, [&](ExprId leaf) {
      return pool_[leaf].op == ExprOp::kLoad && pool_[leaf].source == tensor.source;
    });
  }
  static std::string stepped(int step, const std::string& at, const std::string& columns) {
    return step == 0 ? at : fmt::format("{} {} {}", at, step > 0 ? "+" : "-", columns);
  }

  // By how much what the block's middle row reads lies behind its points.
  void find_middle() {
    const ExprEmitter::Mark mark = emitter_.mark();
    const std::string row = declared("middle_row", fmt::format("{} / 2", block_rows_));
    bind_flat(emitter_, rows_.rows, declared("row", fmt::format("{} + {}", row0_, row)));
    for (const RunPlan::Tensor& tensor : plan_.tensors) {
      const RowPiece& piece = rows_.pieces[tensor.main];
      const auto load = std::ranges::find_if(piece.leaves, [&](ExprId leaf) {
        return pool_[leaf].op == ExprOp::kLoad && pool_[leaf].source == tensor.source;
      });
      middles_.push_back(declared(
          "middle", fmt::format("{} - ({} * {} - {} + {})", emitter_.index(place_in_piece(rows_, piece, graph_, *load)),
                                row, length(), column0_, text(piece.begin))));
    }
    emitter_.rewind(mark);
  }

  Place place(const RowPiece& piece, ExprId value) {
    const ExprNode& n = pool_[value];
    const auto chosen = [&](ExprId condition, const auto& a, const auto& b) -> Place {
      const auto known = known_in_piece(rows_, piece, condition);
      if (known) return *known ? a() : b();
      const std::string holds = declared("holds", condition_text(piece, condition), "bool");
      const Place one = a(), other = b();
      return {fmt::format("({} ? {} : {})", holds, one.of, other.of),
              fmt::format("({} ? {} : {})", holds, one.at, other.at)};
    };
    if (n.op == ExprOp::kSelect)
      return chosen(
          n.args[0], [&] { return place(piece, n.args[1]); }, [&] { return place(piece, n.args[2]); });
    if (n.op == ExprOp::kConstant) {
      const auto i = std::ranges::find(plan_.constants, value) - plan_.constants.begin();
      return {std::to_string(kConstant + 1 + i), "0"};
    }
    const auto loaded = [&] {
      const auto of = std::ranges::find(plan_.tensors, n.source, &RunPlan::Tensor::source) - plan_.tensors.begin();
      return Place{std::to_string(of), emitter_.index(place_in_piece(rows_, piece, graph_, value))};
    };
    if (n.args[0] == kNoExpr) return loaded();
    return chosen(n.args[0], loaded, [&] { return Place{std::to_string(kConstant), "0"}; });
  }

  // Without what the piece alone decides.
  std::string condition_text(const RowPiece& piece, ExprId condition) {
    const ExprNode& n = pool_[condition];
    if (const auto known = known_in_piece(rows_, piece, condition)) return *known ? "true" : "false";
    if (n.op == ExprOp::kNot) return "!" + condition_text(piece, n.args[0]);
    if (n.op == ExprOp::kAnd || n.op == ExprOp::kOr)
      return fmt::format("({} {} {})", condition_text(piece, n.args[0]), n.op == ExprOp::kAnd ? "&&" : "||",
                         condition_text(piece, n.args[1]));
    return "(" + emitter_.emit(condition) + ")";
  }

  void find_stretches() {
    const int warps = plan_.threads / 32;
    const auto ends = [&](std::size_t i) {
      return fmt::format("(int*)(dynamic_shared + {})",
                         plan_.ends_start + plan_.ends_bytes() * static_cast<std::int64_t>(i));
    };
    for (std::size_t i = 0; i < names_.size(); ++i)
      writer_.line(fmt::format("put_ends_of_stretch<{}>({}, {}, {});", warps, ends(i), names_[i].low, names_[i].high));
    writer_.line("__syncthreads();");
    for (std::size_t i = 0; i < names_.size(); ++i)
      declare_stretch(
          i, fmt::format("stretch_between<{}, {}, {}>({})", bits(dtype_), warps, plan_.tensors[i].most, ends(i)));
  }

  void declare_stretch(std::size_t i, const std::string& value) {
    names_[i].stretch = declared(writer_.wish(plan_.tensors[i].source) + "_stretch", value, "Stretch");
  }

  void copy_tensors() {
    for (std::size_t i = 0; i < names_.size(); ++i) {
      const RunPlan::Tensor& tensor = plan_.tensors[i];
      const IndexExpr count = element_count(writer_.tensor_type(tensor.source).shape).value_or(0);
      const bool whole = proves_multiple_of(count, plan_.width, pool_.bounds());
      writer_.line(fmt::format("copy_between_zeros<{}, {}, {}, {}>(dynamic_shared + {}, {}, {}, {});", bits(dtype_),
                               plan_.threads, tensor.most, whole, tensor.start, writer_.input(tensor.source),
                               emitter_.index(count), names_[i].stretch));
    }
    shared_ = declared("shared", "(int)shared_address(dynamic_shared)");
  }

  // The first element of an even piece in a row.
  std::string line_at(const RowPiece& piece, const std::string& row) {
    const ExprEmitter::Mark mark = emitter_.mark();
    if (!rows_.rows.empty()) emitter_.bind(rows_.rows[0], row);
    const std::string at = emitter_.index(place_in_piece(rows_, piece, graph_, piece.line));
    emitter_.rewind(mark);
    return rows_.rows.empty() ? fmt::format("{} + {} * {}", at, row, text(piece.apart)) : at;
  }

  // What the block's rows, which lie evenly, have of each tensor: from where its first row goes on, or the next one
  // begins, to where its last one ends, or the one before.
  void find_lines() {
    const std::string end = declared("end", fmt::format("{} + {}", column0_, elements_));
    const std::string rows = declared("whole_rows", fmt::format("{} / {}", end, length()));
    const std::string column = declared("end_column", fmt::format("{} - {} * {}", end, rows, length()));
    const std::string last = declared("last_row", fmt::format("{} + {}", row0_, rows));
    lines_.assign(rows_.pieces.size(), "");
    for (const RunPlan::Tensor& tensor : plan_.tensors) {
      const std::string name = writer_.wish(tensor.source);
      names_.push_back({writer_.unique(name + "_low"), writer_.unique(name + "_high"), ""});
      writer_.line(fmt::format("int {} = 0x7fffffff, {} = 0;", names_.back().low, names_.back().high));
      for (std::size_t i = 0; i < rows_.pieces.size(); ++i)
        if (reads(rows_.pieces[i], tensor)) add_line(i, last, column);
      declare_stretch(names_.size() - 1, fmt::format("stretch_of<{}, {}>({}, {})", bits(dtype_), tensor.most,
                                                     names_.back().low, names_.back().high));
    }
  }

  void add_line(std::size_t i, const std::string& last_row, const std::string& end_column) {
    const RowPiece& piece = rows_.pieces[i];
    const std::string begin = text(piece.begin), apart = text(piece.apart);
    const IndexExpr count = simplify(piece.end - piece.begin, pool_.bounds());
    lines_[i] = declared("line", line_at(piece, row0_));
    const std::string last = declared("last", line_at(piece, last_row));
    const std::string low = declared("low", fmt::format("{0} >= {1} ? {2} + {3} : {2} + max({0} - {4}, 0)", column0_,
                                                        text(piece.end), lines_[i], apart, begin));
    const std::string high = declared("high", fmt::format("{0} <= {1} ? {2} - {3} + {4} : {2} + min({0} - {1}, {4})",
                                                          end_column, begin, last, apart, text(count)));
    writer_.line(fmt::format("if ({0} < {1}) {2} = min({2}, {0}), {3} = max({3}, {1});", low, high, names_.back().low,
                             names_.back().high));
  }

  // What a table would have: of each piece in the block's first row, and how much more from row to row.
  void find_entries() {
    entries_.assign(rows_.pieces.size(), {});
    for (std::size_t i = 0; i < rows_.pieces.size(); ++i)
      for (std::size_t t = 0; t < plan_.tensors.size(); ++t) {
        const RowPiece& piece = rows_.pieces[i];
        if (piece.constant || !reads(piece, plan_.tensors[t])) continue;
        const std::string stretch = names_[t].stretch;
        const std::string place =
            declared("place", fmt::format("{} + ({} - {})", lines_[i], column0_, text(piece.begin)));
        const std::string more =
            declared("more", fmt::format("{}", emitter_.index(simplify(piece.apart - rows_.length, pool_.bounds()))));
        entries_[i] = {
            declared("entry",
                     fmt::format("{0}.vectors > 0 ? {1} + {2} + ({3} - {0}.first * {4}) * {5} : kFarRun - {6}", stretch,
                                 shared_, plan_.tensors[t].start + 16, place, plan_.width, bytes(), t)),
            declared("more", fmt::format("{}.vectors > 0 ? {} * {} : 0", stretch, more, bytes())), place, more};
      }
  }

  // For each piece of each row the place from which its elements are taken, were they those of the block from its first
  // on: in shared memory in the first table, in the tensor in the second.
  void fill_table() {
    const std::string table = writer_.unique("table");
    writer_.line(fmt::format("int* const {} = (int*)(dynamic_shared + {});", table, plan_.table_start));
    const std::string turn = open_turns("turn", rows_of_thread_);
    const std::string row = declared("r", fmt::format("{} * {} + threadIdx.x", turn, plan_.threads));
    writer_.open(fmt::format("if ({} < {})", row, plan_.most_rows));
    const std::string from = declared("from", fmt::format("{} * {} - {}", row, length(), column0_));
    for (std::size_t i = 0; i < rows_.pieces.size(); ++i) {
      const RowPiece& piece = rows_.pieces[i];
      if (piece.constant) continue;
      const std::string of = fmt::format("{}[{}][{}]", of_, turn, i), at = fmt::format("{}[{}][{}]", at_, turn, i);
      const std::string before = stepped(-piece.step, at, fmt::format("({} + {})", from, text(piece.begin)));
      const std::string place = declared("place", before);
      std::string entry = fmt::format("kConstantRun + {} + 16 * ({} - {})", shared_, of, kConstant);
      for (std::size_t t = 0; t < plan_.tensors.size(); ++t) {
        if (!reads(piece, plan_.tensors[t])) continue;
        const std::string near =
            fmt::format("({}.vectors > 0 ? {} + {} + ({} - {}.first * {}) * {} : kFarRun - {})", names_[t].stretch,
                        shared_, plan_.tensors[t].start + 16, place, names_[t].stretch, plan_.width, bytes(), t);
        entry = fmt::format("{} == {} ? {} : {}", of, t, near, entry);
        if (plan_.far > 0) entry = fmt::format("{} == {} ? kFarRun - {} : {}", of, kFar + t, t, entry);
      }
      const std::string slot = fmt::format("{}[{} * {} + {}", table, row, plan_.row_words(), slot_of(i));
      writer_.line(fmt::format("{}] = {};", slot, entry));
      writer_.line(fmt::format("{} + {}] = {};", slot, plan_.table_words(), place));
    }
    writer_.close();
    writer_.close();
  }

  // `values`, one for each piece, chosen by the column.
  std::string by_column(const std::string& column, const std::vector<std::string>& values) const {
    std::string chosen = values.back();
    for (std::size_t i = values.size() - 1; i-- > 0;)
      if (values[i] != chosen)
        chosen = fmt::format("{} < {} ? {} : {}", column, text(rows_.pieces[i].end), values[i], chosen);
    return chosen;
  }
  template <class Value>
  std::string of_pieces(const std::string& column, Value value) const {
    std::vector<std::string> values;
    for (std::size_t i = 0; i < rows_.pieces.size(); ++i) values.push_back(value(i));
    return by_column(column, values);
  }
  // Pieces before it that are no constants.
  std::size_t slot_of(std::size_t i) const {
    const auto end = rows_.pieces.begin() + static_cast<std::ptrdiff_t>(i);
    return static_cast<std::size_t>(
        std::count_if(rows_.pieces.begin(), end, [](const RowPiece& p) { return !p.constant; }));
  }
  // The address of a piece's word in the table, of constants that of some other's; and what stands there, or would.
  std::string slot_at(const std::string& row, const std::string& column) {
    const std::size_t last = slot_of(rows_.pieces.size()) - 1;
    const std::string slot =
        of_pieces(column, [&](std::size_t i) { return std::to_string(4 * std::min(slot_of(i), last)); });
    return declared(
        "slot", fmt::format("{} + {} + {} * {} + ({})", shared_, plan_.table_start, row, 4 * plan_.row_words(), slot));
  }
  std::string entry_at(const std::string& row, const std::string& column, const std::string& slot) {
    const std::string word = plan_.even ? "" : declared("word", fmt::format("shared_word({})", slot));
    const auto entry = [&](std::size_t i, bool more) -> std::string {
      if (!rows_.pieces[i].constant) return !plan_.even ? word : more ? entries_[i].more : entries_[i].first;
      if (more) return "0";
      const ExprId leaf = rows_.pieces[i].leaves.empty() ? kNoExpr : rows_.pieces[i].leaves[0];
      const auto constant = std::ranges::find(plan_.constants, leaf) - plan_.constants.begin() + 1;
      return fmt::format("kConstantRun + {} + {}", shared_, leaf == kNoExpr ? 0 : 16 * constant);
    };
    const std::string first = of_pieces(column, [&](std::size_t i) { return entry(i, false); });
    if (!plan_.even) return declared("entry", first);
    return declared("entry", fmt::format("({}) + {} * ({})", first, row,
                                         of_pieces(column, [&](std::size_t i) { return entry(i, true); })));
  }
  // The place in its tensor, as an entry is one in shared memory.
  std::string place_at(const std::string& row, const std::string& column, const std::string& slot) const {
    if (!plan_.even) return fmt::format("shared_word({} + {})", slot, 4 * plan_.table_words());
    const auto chosen = [&](auto value) {
      return of_pieces(column, [&](std::size_t i) { return rows_.pieces[i].constant ? "0" : value(entries_[i]); });
    };
    return fmt::format("({}) + {} * ({})", chosen([](const Entry& e) { return e.place; }), row,
                       chosen([](const Entry& e) { return e.more_places; }));
  }

  // One constant at the end of a row and at the beginning of the next is one piece, if that is short: columns are ints.
  bool goes_on() const {
    const RowPiece &first = rows_.pieces.front(), &last = rows_.pieces.back();
    return rows_.pieces.size() > 1 && range_of(first.end, pool_.bounds()).max <= plan_.block() && first.constant &&
           last.constant && first.leaves == last.leaves;
  }
  std::string end_at(const std::string& column, bool forwards) const {
    return of_pieces(column, [&](std::size_t i) -> std::string {
      const RowPiece& piece = rows_.pieces[i];
      if (forwards && piece.step != 1) return "0";
      const IndexExpr more = i + 1 == rows_.pieces.size() && goes_on() ? rows_.pieces[0].end : IndexExpr(0);
      return text(simplify(piece.end + more, pool_.bounds()));
    });
  }

  // Of a thread's runs what they are taken from, or that they have to be put together.
  void find_runs() {
    from_ = writer_.unique("run_from"), places_ = writer_.unique("place");
    writer_.line(fmt::format("int {}[{}];", from_, plan_.turns));
    writer_.line(fmt::format("PlaceOfRun {}[{}];", places_, plan_.turns));
    const std::string first = declared("first", fmt::format("{} + threadIdx.x * {}", column0_, plan_.width));
    const std::string row = writer_.unique("row"), column = writer_.unique("column");
    writer_.line(fmt::format("int {} = (unsigned){} / (unsigned){};", row, first, length()));
    writer_.line(fmt::format("int {} = {} - {} * {};", column, first, row, length()));
    const int step = plan_.threads * plan_.width;
    const std::string rows = declared("more_rows", fmt::format("{} / {}", step, length()));
    const std::string columns = declared("more_columns", fmt::format("{} - {} * {}", step, rows, length()));
    const std::string turn = open_turns("turn", plan_.turns);
    writer_.line(fmt::format("{}[{}] = {{{}, {}}};", places_, turn, row, column));
    writer_.line(fmt::format("{}[{}] = 0;", from_, turn));
    const std::string e = declared("e", fmt::format("({} * {} + threadIdx.x) * {}", turn, plan_.threads, plan_.width));
    writer_.open(fmt::format("if ({} < {})", e, elements_));
    const std::string entry = entry_at(row, column, plan_.even ? "" : slot_at(row, column));
    writer_.line(fmt::format("{}[{}] = {} >= kConstantRun ? {} - kConstantRun : {} + {} * {};", from_, turn, entry,
                             entry, entry, e, bytes()));
    writer_.line(
        fmt::format("if (({}) - {} < {}) {}[{}] = -1;", end_at(column, true), column, plan_.width, from_, turn));
    writer_.close();
    writer_.line(fmt::format("{} += {}, {} += {};", row, rows, column, columns));
    writer_.line(fmt::format("if ({0} >= {1}) {0} -= {1}, ++{2};", column, length(), row));
    writer_.close();
  }

  // These, by each thread of the block one at a time.
  void put_together() {
    const std::string list = writer_.unique("list"), count = writer_.unique("count"), made = writer_.unique("made");
    writer_.line(fmt::format("PlaceOfRun* const {} = (PlaceOfRun*)(dynamic_shared + {});", list, plan_.list_start));
    writer_.line(fmt::format("const int {} = {} + {};", made, shared_, plan_.made_start));
    writer_.line(fmt::format("const int {} = list_of_block({}, (int*)(dynamic_shared + {}), {}, {}, {});", count, list,
                             plan_.counter_start, made, places_, from_));
    const std::string i = writer_.unique("i");
    writer_.line("#pragma unroll 1");
    writer_.open(fmt::format("for (int {0} = threadIdx.x; {0} < {1}; {0} += {2})", i, count, plan_.threads));
    const std::string row = writer_.unique("row"), column = writer_.unique("column"), done = writer_.unique("done");
    const std::string words = writer_.unique("words");
    writer_.line(fmt::format("int {} = {}[{}].row, {} = {}[{}].column, {} = 0;", row, list, i, column, list, i, done));
    const std::string first = declared("first", fmt::format("{} * {} + {} - {}", row, length(), column, column0_));
    writer_.line(fmt::format("Words<4> {} = {{}};", words));
    const bool whole = proves_multiple_of(total_, plan_.width, pool_.bounds());
    const std::string wanted = whole
                                   ? std::to_string(plan_.width)
                                   : declared("wanted", fmt::format("min({}, {} - {})", plan_.width, elements_, first));
    writer_.line("#pragma unroll 1");
    writer_.open("do");
    add_piece(words, row, column, first, done);
    writer_.close(fmt::format("}} while ({} < {});", done, wanted));
    writer_.line(fmt::format("store_words(dynamic_shared + ({} - {} + 16 * {}), {});", made, shared_, i, words));
    writer_.close();
    writer_.line("__syncthreads();");
  }

  void add_piece(const std::string& words, const std::string& row, const std::string& column, const std::string& first,
                 const std::string& done) {
    const auto steps = [&](int step) {
      return std::ranges::any_of(rows_.pieces, [&](const RowPiece& piece) { return piece.step == step; });
    };
    const std::string slot = plan_.even ? "" : slot_at(row, column), entry = entry_at(row, column, slot);
    const std::string end = declared("end", end_at(column, false));
    std::string step = "1", before = first;
    if (steps(-1) || steps(0)) {
      step = declared("step", of_pieces(column, [&](std::size_t i) { return std::to_string(rows_.pieces[i].step); }));
      // Backwards, the last of the 16 bytes is where the first one would be.
      before =
          declared("before", fmt::format("{0} > 0 ? {1} : {0} < 0 ? -{1} - {2} : 0", step, first, plan_.width - 1));
    }
    const std::string run = writer_.unique("run");
    writer_.line(fmt::format("Words<4> {};", run));
    writer_.open(fmt::format("if ({} > kFarRun)", entry));
    writer_.line(fmt::format("{} = run_at<{}>({} >= kConstantRun ? {} - kConstantRun : {} + ({}) * {});", run,
                             bits(dtype_), entry, entry, entry, before, bytes()));
    writer_.close("} else {");
    writer_.reopen();
    read_far(run, entry, fmt::format("{} + {}", place_at(row, column, slot), before));
    writer_.close();
    if (steps(-1)) writer_.line(fmt::format("if ({} < 0) {} = backwards<{}>({});", step, run, bits(dtype_), run));
    if (steps(0)) writer_.line(fmt::format("if ({} == 0) {} = repeated<{}>({});", step, run, bits(dtype_), run));
    writer_.line(fmt::format("go_on_with({}, {}, {} * {});", words, run, done, bytes()));
    writer_.line(fmt::format("{} += {} - {}, {} = {};", done, end, column, column, end));
    writer_.line(fmt::format("if ({0} >= {1}) {0} -= {1}, ++{2};", column, length(), row));
  }

  void read_far(const std::string& run, const std::string& entry, const std::string& place) {
    for (std::size_t t = 0; t < plan_.tensors.size(); ++t) {
      const IndexExpr count = element_count(writer_.tensor_type(plan_.tensors[t].source).shape).value_or(0);
      const std::string read = fmt::format("{} = run_of_tensor<{}>({}, {}, {});", run, bits(dtype_),
                                           writer_.input(plan_.tensors[t].source), emitter_.index(count), place);
      const bool last = t + 1 == plan_.tensors.size();
      writer_.line(last ? read : fmt::format("if ({} == kFarRun - {}) {} else", entry, t, read));
    }
  }

  void store() {
    const std::string turn = open_turns("turn", plan_.turns);
    const std::string e = declared("e", fmt::format("({} * {} + threadIdx.x) * {}", turn, plan_.threads, plan_.width));
    writer_.open(fmt::format("if ({} < {})", e, elements_));
    const std::string from = fmt::format("{}[{}]", from_, turn);
    const std::string words = declared(
        "words", fmt::format("{0} < 0 ? shared_vector(-{0}) : run_at<{1}>({0})", from, bits(dtype_)), "Words<4>");
    const std::string output = writer_.output(kernel_.outputs[0].value);
    const bool stream = bytes_at_hint(kernel_.outputs[0].type, graph_.symbols) >= target_.l2_bytes;
    if (stream) writer_.use("stream_words");
    const std::string to = fmt::format("{} + blockIdx.x * {} + {}", output, plan_.block(), e);
    const std::string stored = fmt::format("{}({}, {});", stream ? "stream_words_out" : "store_words", to, words);
    if (proves_multiple_of(total_, plan_.width, pool_.bounds())) {
      writer_.line(stored);
    } else {
      writer_.open(fmt::format("if ({} + {} <= {})", e, plan_.width, elements_));
      writer_.line(stored);
      writer_.close("} else {");
      writer_.reopen();
      const std::string i = writer_.unique("i");
      writer_.line("#pragma unroll");
      writer_.open(fmt::format("for (int {0} = 0; {0} < {1}; ++{0})", i, plan_.width));
      writer_.line(fmt::format("if ({} + {} < {}) ({})[{}] = {};", e, i, elements_, to, i,
                               narrow(dtype_, element_text(dtype_, words, i, writer_))));
      writer_.close();
      writer_.close();
    }
    writer_.close();
    writer_.close();
  }

  const Graph& graph_;
  const Target& target_;
  const RunPlan& plan_;
  const RowPieces& rows_;
  const Kernel& kernel_;
  const ExprPool& pool_;
  const DType dtype_;
  const IndexExpr total_;
  const int rows_of_thread_;
  KernelWriter writer_;
  ExprEmitter emitter_;
  std::string row0_, column0_, elements_, block_rows_;  // of the block
  std::vector<Names> names_;                            // of each tensor
  std::string turn_, of_, at_;                          // of a thread's rows, by piece: what and where
  std::vector<std::string> middles_;                    // of each tensor, where that is asked for
  std::vector<std::string> lines_;                      // by piece: where the first row's begins, where rows lie evenly
  std::vector<Entry> entries_;
  std::string shared_, from_, places_;
};

}  // namespace

KernelSource emit_runs(const Graph& graph, const Target& target, const RunPlan& plan) {
  return RunsEmitter(graph, target, plan).emit();
}

}  // namespace fusec
