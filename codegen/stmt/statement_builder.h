// Collects the statements of one kernel in the order in which a schedule makes them. `open_...` begins a body, `end` or
// `close` ends it.
//
//   builder.open_for("int", "e", 4, 0);                  #pragma unroll
//   builder.assign(element("sum", "e"), 0);              for (int e = 0; e < 4; ++e) {
//   builder.end();                                         sum[e] = 0;
//                                                        }
//
// `line`, `open`, `close` and `reopen` are for schedules that still print their lines themselves.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "codegen/stmt/statement.h"

namespace fusec {

class StatementBuilder {
 public:
  // Names are taken before (KernelWriter::unique).
  void declare(std::string_view type, std::string_view name, const CExpr& value);
  void declare_array(std::string_view type, std::string_view name, int count);  // count 0: a variable without a value
  void assign(const CExpr& target, const CExpr& value);
  void run(const CExpr& called);
  void stop();  // return;

  void open_if(const CExpr& condition);
  void open_else();  // instead of `end`
  void open_for(std::string_view type, std::string_view name, const CExpr& limit, std::optional<int> unroll = {},
                const CExpr& first = 0);
  void end() { close(""); }

  void line(std::string_view text);
  void open(std::string_view text);  // "for (...)": appends " {" and indents
  void close(std::string_view text = "}");
  void reopen();  // after close("} else {")
  void blank() { line(""); }

  const Statements& statements() const { return root_; }
  bool complete() const { return open_.empty(); }  // every body has ended

 protected:
  Statements root_;

 private:
  void add(Statement statement);
  void begin(Statement statement);

  struct Open {
    Statement statement;
    bool in_else = false;
  };
  std::vector<Open> open_;
};

}  // namespace fusec
