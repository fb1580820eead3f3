#include "codegen/stmt/statement_builder.h"

#include "ir/error.h"

namespace fusec {

void StatementBuilder::add(Statement statement) {
  Statements& body = open_.empty()          ? root_
                     : open_.back().in_else ? open_.back().statement.otherwise
                                            : open_.back().statement.body;
  body.push_back(std::move(statement));
}

void StatementBuilder::begin(Statement statement) {
  open_.push_back({std::move(statement)});
}

void StatementBuilder::declare(std::string_view type, std::string_view name, const CExpr& value) {
  add({.kind = Statement::Kind::kDeclare, .text = std::string(type), .name = std::string(name), .operands = {value}});
}

void StatementBuilder::declare_array(std::string_view type, std::string_view name, int count) {
  add({.kind = Statement::Kind::kDeclare, .text = std::string(type), .name = std::string(name), .count = count});
}

void StatementBuilder::assign(const CExpr& target, const CExpr& value) {
  add({.kind = Statement::Kind::kAssign, .operands = {target, value}});
}

void StatementBuilder::run(const CExpr& called) {
  add({.kind = Statement::Kind::kRun, .operands = {called}});
}

void StatementBuilder::stop() {
  add({.kind = Statement::Kind::kReturn});
}

void StatementBuilder::open_if(const CExpr& condition) {
  begin({.kind = Statement::Kind::kIf, .operands = {condition}});
}

void StatementBuilder::open_else() {
  open_.back().in_else = true;
}

void StatementBuilder::open_for(std::string_view type, std::string_view name, const CExpr& limit,
                                std::optional<int> unroll, const CExpr& first) {
  begin({.kind = Statement::Kind::kFor,
         .text = std::string(type),
         .name = std::string(name),
         .operands = {first, limit},
         .unroll = unroll});
}

void StatementBuilder::line(std::string_view text) {
  add({.kind = Statement::Kind::kText, .text = std::string(text)});
}

void StatementBuilder::open(std::string_view text) {
  begin({.kind = Statement::Kind::kBlock, .text = text.empty() ? "{" : std::string(text) + " {"});
}

void StatementBuilder::close(std::string_view text) {
  if (open_.empty()) throw InternalError("a body of statements ends that did not begin");
  Statement closed = std::move(open_.back().statement);
  open_.pop_back();
  if (closed.kind == Statement::Kind::kBlock) closed.end = text;
  add(std::move(closed));
}

void StatementBuilder::reopen() {
  begin({.kind = Statement::Kind::kBlock});
}

}  // namespace fusec
