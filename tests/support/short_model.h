// Models for tests in a few words:
//
//   short_model("x bfloat16 n,64; w bfloat16 48,64", "y = linear x w; z = softmax y {\"dim\": 1}", "z", "n")
#pragma once

#include <cctype>
#include <sstream>
#include <string>
#include <vector>

#include "ir/read.h"

namespace fusec::test {

inline std::vector<std::string> split_text(const std::string& text, char at) {
  std::vector<std::string> parts;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, at);) {
    while (!part.empty() && part.front() == ' ') part.erase(0, 1);
    while (!part.empty() && part.back() == ' ') part.pop_back();
    if (!part.empty()) parts.push_back(part);
  }
  return parts;
}

// Names in quotes; numbers and null as JSON has them.
inline std::string in_json(const std::string& word) {
  const bool number = std::isdigit(static_cast<unsigned char>(word[0])) || word[0] == '-' || word == "null";
  return number ? word : "\"" + word + "\"";
}

inline std::string json_list(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + in_json(word);
  return "[" + text + "]";
}

// `symbols`: names, or a JSON object.
inline Graph short_model(const std::string& inputs, const std::string& nodes, const std::string& outputs,
                         const std::string& symbols = "") {
  std::string text = R"({"fusec": 1, "symbols": )";
  if (symbols.starts_with("{")) {
    text += symbols;
  } else {
    std::string list;
    for (const std::string& s : split_text(symbols, ' '))
      list += (list.empty() ? "" : ", ") + in_json(s) + R"(: {"hint": 37})";
    text += "{" + list + "}";
  }
  std::string list;
  for (const std::string& input : split_text(inputs, ';')) {
    const std::vector<std::string> words = split_text(input, ' ');
    list += (list.empty() ? "" : ", ") + (R"({"name": ")" + words[0]) + R"(", "dtype": ")" + words[1] +
            R"(", "shape": )" + json_list(words.size() > 2 ? split_text(words[2], ',') : std::vector<std::string>()) +
            "}";
  }
  text += R"(, "inputs": [)" + list + R"(], "nodes": [)";
  list.clear();
  for (const std::string& node : split_text(nodes, ';')) {
    const std::size_t brace = node.find('{');
    std::vector<std::string> words = split_text(node.substr(0, brace), ' ');  // name = op operands
    const std::vector<std::string> operands(words.begin() + 3, words.end());
    list += (list.empty() ? "" : ", ") + (R"({"name": ")" + words[0]) + R"(", "op": ")" + words[2] +
            R"(", "inputs": )" + json_list(operands) +
            (brace == std::string::npos ? "" : ", \"attrs\": " + node.substr(brace)) + "}";
  }
  text += list + R"(], "outputs": )" + json_list(split_text(outputs, ' ')) + "}";
  return read_model_text(text, "test.json", ".");
}

}  // namespace fusec::test
