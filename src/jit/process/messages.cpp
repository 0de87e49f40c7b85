#include "jit/process/messages.hpp"

#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <span>

#include "base/made_once.hpp"
#include "base/own_library.hpp"

namespace rove::bitcode {
namespace {

const std::string& own_build() {
    static constinit MadeOnce<const std::string> build;
    return build.get([] { return new const std::string(build_of(reinterpret_cast<const void*>(&own_build))); });
}

void put(Writer& out, std::string_view text) {
    out.number<std::uint64_t>(text.size());
    out.bytes(as_bytes(text));
}
void put(Writer& out, const std::vector<std::string>& texts) {
    out.number<std::uint64_t>(texts.size());
    for (const std::string& each : texts) put(out, each);
}
Bytes take_bytes(Reader& in) {
    const auto bytes = in.number<std::uint64_t>();
    return in.take(bytes);
}
std::string take_text(Reader& in) {
    return std::string(as_text(take_bytes(in)));
}
std::vector<std::string> take_texts(Reader& in) {
    std::vector<std::string> texts;
    for (auto left = in.number<std::uint64_t>(); left > 0 && in.ok(); --left) texts.push_back(take_text(in));
    return texts;
}

tl::unexpected<Error> garbled() {
    return fail(ErrorCode::internal, "Rove's compiler and its node do not understand one another");
}

Writer begin_message() {
    Writer out;
    out.number<LengthPrefix>(0);
    return out;
}
ByteBuffer end_message(Writer&& out) {
    ByteBuffer message = out.take();
    const LengthPrefix bytes = message.size() - sizeof bytes;
    std::memcpy(message.data(), &bytes, sizeof bytes);
    return message;
}

// A socket may take, or return, less at once than requested.
template <typename WaitForRoom>
bool send_all(int socket, Bytes message, int flags, const WaitForRoom& wait_for_room) {
    while (!message.empty()) {
        const ssize_t sent = send(socket, message.data(), message.size(), MSG_NOSIGNAL | flags);
        if (sent < 0 && errno == EINTR) continue;
        if (sent < 0 && errno == EAGAIN && wait_for_room()) continue;
        if (sent <= 0) return false;
        message = message.subspan(static_cast<std::size_t>(sent));
    }
    return true;
}
bool receive_all(int socket, void* data, std::size_t bytes) {
    auto* next = static_cast<std::byte*>(data);
    while (bytes > 0) {
        const ssize_t got = recv(socket, next, bytes, MSG_WAITALL);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return false;
        next += got;
        bytes -= static_cast<std::size_t>(got);
    }
    return true;
}

}  // namespace

ByteBuffer encode_question(const GenerateRequest& request, const Bounds& bounds) {
    Writer out = begin_message();
    put(out, own_build());
    put(out, request.name);
    out.number(static_cast<std::uint64_t>(bounds.processor_time.count()));
    out.number(static_cast<std::uint64_t>(bounds.memory));
    out.number(static_cast<std::uint64_t>(bounds.standstill.count()));
    put(out, request.in_image);
    put(out, as_text(request.bitcode));
    return end_message(std::move(out));
}

Result<Question> decode_question(ByteBuffer bytes) {
    Question question{.bytes = std::move(bytes), .request = {}, .bounds = {}};
    Reader in(question.bytes);
    if (take_text(in) != own_build())
        return fail(ErrorCode::internal,
                    "Rove was installed again while this process ran; start it again to compile bitcode");
    question.request.name = take_text(in);
    question.bounds.processor_time = std::chrono::seconds(in.number<std::uint64_t>());
    question.bounds.memory = in.number<std::uint64_t>();
    question.bounds.standstill = std::chrono::seconds(in.number<std::uint64_t>());
    question.request.in_image = take_texts(in);
    question.request.bitcode = take_bytes(in);
    if (!in.done()) return garbled();
    return question;
}

ByteBuffer encode_answer(const Result<Generated>& generated) {
    Writer out = begin_message();
    if (!generated) {
        out.number(static_cast<std::uint8_t>(AnswerKind::error));
        out.number(static_cast<std::uint8_t>(generated.error().code()));
        put(out, generated.error().message());
        return end_message(std::move(out));
    }
    out.number(static_cast<std::uint8_t>(AnswerKind::generated));
    out.number<std::uint8_t>(generated->own_statics ? 1 : 0);
    put(out, generated->constructors);
    put(out, generated->names);
    put(out, as_text(generated->object));
    return end_message(std::move(out));
}

bool is_last(Bytes answer) {
    return !answer.empty() && static_cast<AnswerKind>(answer.front()) == AnswerKind::gave_up;
}

Result<Generated> decode_answer(Bytes bytes, std::string_view name) {
    Reader in(bytes);
    switch (static_cast<AnswerKind>(in.number<std::uint8_t>())) {
        case AnswerKind::gave_up:
            return fail(ErrorCode::failed, "{} does not compile: LLVM gave up: {}", name, as_text(in.rest()));
        case AnswerKind::error: {
            const auto code = static_cast<ErrorCode>(in.number<std::uint8_t>());
            std::string message = take_text(in);
            if (!in.done()) return garbled();
            return tl::unexpected<Error>(Error(code, std::move(message)));
        }
        case AnswerKind::generated: {
            Generated generated;
            generated.own_statics = in.number<std::uint8_t>() != 0;
            generated.constructors = take_texts(in);
            generated.names = take_texts(in);
            const Bytes object = take_bytes(in);
            if (!in.done()) return garbled();
            generated.object.assign(object.begin(), object.end());
            return generated;
        }
    }
    return garbled();
}

bool send_message(int socket, Bytes message) {
    return send_all(socket, message, 0, [] { return false; });
}

bool send_message(int socket, Bytes message, const std::function<bool()>& wait_for_room) {
    return send_all(socket, message, MSG_DONTWAIT, wait_for_room);
}

void send_gave_up(int socket, std::string_view words) noexcept {
    const LengthPrefix bytes = sizeof(AnswerKind) + words.size();
    const auto kind = AnswerKind::gave_up;
    (void)(send_message(socket, std::as_bytes(std::span(&bytes, 1))) &&
           send_message(socket, std::as_bytes(std::span(&kind, 1))) && send_message(socket, as_bytes(words)));
}

std::optional<ByteBuffer> receive_message(int socket, std::size_t bytes_max) {
    LengthPrefix bytes = 0;
    if (!receive_all(socket, &bytes, sizeof bytes) || bytes > bytes_max) return std::nullopt;
    ByteBuffer message(bytes);
    if (!receive_all(socket, message.data(), message.size())) return std::nullopt;
    return message;
}

}  // namespace rove::bitcode
