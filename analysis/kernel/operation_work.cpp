#include "analysis/kernel/operation_work.h"

#include <algorithm>

namespace fusec {

OperationWork operation_work(const ExprNode& node) {
  switch (node.op) {
    case ExprOp::kConstant:
    case ExprOp::kLoad:
    case ExprOp::kIndex:
    case ExprOp::kConvert:
    case ExprOp::kRound:
    case ExprOp::kBitcast:
    case ExprOp::kSelect:
    case ExprOp::kNot:
    case ExprOp::kAnd:
    case ExprOp::kOr:
    case ExprOp::kEq:
    case ExprOp::kNe:
    case ExprOp::kLt:
    case ExprOp::kLe:
    case ExprOp::kGt:
    case ExprOp::kGe:
    case ExprOp::kIsNan:
    case ExprOp::kIsInf:
      return {};
    case ExprOp::kExp2:
      return {1, 0, 1};
    case ExprOp::kExp:
    case ExprOp::kLog:
    case ExprOp::kLog2:
    case ExprOp::kSqrt:
    case ExprOp::kRsqrt:
    case ExprOp::kReciprocal:
      return {1, 2, 1};
    case ExprOp::kSigmoid:
      return {2, 3, 2};
    case ExprOp::kTanh:
      return {1, 6, 2};
    case ExprOp::kDiv:
    case ExprOp::kFloorDiv:
    case ExprOp::kFloorMod:
    case ExprOp::kFmod:
      return {1, 8, 1};
    case ExprOp::kFma:
      return {2, 2, 0};
    case ExprOp::kExpm1:
    case ExprOp::kLog10:
    case ExprOp::kLog1p:
    case ExprOp::kSin:
    case ExprOp::kCos:
    case ExprOp::kTan:
    case ExprOp::kAsin:
    case ExprOp::kAcos:
    case ExprOp::kAtan:
    case ExprOp::kSinh:
    case ExprOp::kCosh:
    case ExprOp::kAsinh:
    case ExprOp::kAcosh:
    case ExprOp::kAtanh:
    case ExprOp::kErf:
    case ExprOp::kPow:
    case ExprOp::kAtan2:
      return {1, 24, 1};
    default:
      return {1, 1, 0};
  }
}

int instruction_count(const ExprNode& node) {
  switch (node.op) {
    case ExprOp::kConstant:
    case ExprOp::kIndex:
      return 0;
    case ExprOp::kSin:  // code for large arguments (argument reduction digit by digit)
    case ExprOp::kCos:
    case ExprOp::kTan:
      return 75;
    case ExprOp::kPow:
      return 55;
    case ExprOp::kFmod:
    case ExprOp::kFloorMod:
      return 40;
    case ExprOp::kAsinh:
    case ExprOp::kAcosh:
    case ExprOp::kAtanh:
    case ExprOp::kAtan2:
      return 20;
    case ExprOp::kLog:
    case ExprOp::kLog2:
      return 11;
    case ExprOp::kSqrt:
    case ExprOp::kReciprocal:
      return 8;
    default: {
      constexpr double kFunction = 13;
      const OperationWork work = operation_work(node);
      return static_cast<int>(std::clamp(work.arithmetic + work.special, 1.0, kFunction));
    }
  }
}

}  // namespace fusec
