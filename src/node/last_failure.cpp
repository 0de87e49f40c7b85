#include "node/last_failure.hpp"

#include <new>
#include <string>

#include "base/of_thread.hpp"

namespace rove {

namespace {

constexpr rove_failure kNoMemory{ROVE_OVERLOADED, Error::no_node, "", "no memory"};

struct LastFailure {
    rove_failure told = kNoMemory;
    std::string type, message;
};
OfThread<LastFailure> last_failure;

int record(ErrorCode code, rove_node_id node, std::string_view type, std::string_view message) noexcept {
    LastFailure* last = last_failure.get();
    if (last == nullptr) return static_cast<int>(code);
    last->told = kNoMemory;
    last->told.error = static_cast<int>(code);
    last->told.node = node;
    try {
        last->type = type;
        last->message = message;
        last->told.type = last->type.c_str();
        last->told.message = last->message.c_str();
    } catch (const std::bad_alloc&) {  // `told` has kNoMemory's words
    }
    return last->told.error;
}

}  // namespace

int failed_without_memory() noexcept {
    if (LastFailure* last = last_failure.get()) last->told = kNoMemory;
    return ROVE_OVERLOADED;
}

int failed(const Error& error) noexcept {
    return record(error.code(), error.node(), error.exception_type(), error.message());
}
int failed(ErrorCode code, std::string_view message) noexcept {
    return record(code, Error::no_node, {}, message);
}

}  // namespace rove

extern "C" const rove_failure* rove_last_failure(void) noexcept {
    const rove::LastFailure* last = rove::last_failure.get();
    return last != nullptr ? &last->told : &rove::kNoMemory;
}
