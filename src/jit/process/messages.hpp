// The questions of a node and the answers of a process that compiles for it (process.hpp, serve.hpp), alternating on one socket. A message
// is its length in 8 bytes, and its bytes. Both ends are the same librove-jit.so, which each question checks.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/bytes.hpp"
#include "base/result.hpp"
#include "bitcode/compiled.hpp"
#include "jit/process/generate.hpp"

namespace rove::bitcode {

// Bitcode has 64 MiB at most; names are added to it, and to an object.
inline constexpr std::size_t kQuestionBytesMax = std::size_t{128} << 20;
inline constexpr std::size_t kAnswerBytesMax = 2 * kObjectBytesMax;
// Precedes each question and each answer.
using LengthPrefix = std::uint64_t;

struct Question {
    ByteBuffer bytes;  // contains the request's bitcode
    GenerateRequest request;
    Bounds bounds;
};

// These return messages with their lengths, ready to be sent. The decoders get them without.
[[nodiscard]] ByteBuffer encode_question(const GenerateRequest& request, const Bounds& bounds);
// internal: another build of Rove asked.
[[nodiscard]] Result<Question> decode_question(ByteBuffer bytes);

enum class AnswerKind : std::uint8_t { generated, error, gave_up };

[[nodiscard]] ByteBuffer encode_answer(const Result<Generated>& generated);
// Whether the process that gave it ends.
[[nodiscard]] bool is_last(Bytes answer);
// `name`: of what was compiled, for messages.
[[nodiscard]] Result<Generated> decode_answer(Bytes bytes, std::string_view name);

// False: the other end is closed.
[[nodiscard]] bool send_message(int socket, Bytes message);
// The other end may be slow to take it: `wait_for_room` returns whether to continue.
[[nodiscard]] bool send_message(int socket, Bytes message, const std::function<bool()>& wait_for_room);
// Sends the message with which LLVM gave up. Async-signal-safe.
void send_gave_up(int socket, std::string_view words) noexcept;
// Nothing: the other end was closed before, or the message is longer than that.
[[nodiscard]] std::optional<ByteBuffer> receive_message(int socket, std::size_t bytes_max);

}  // namespace rove::bitcode
