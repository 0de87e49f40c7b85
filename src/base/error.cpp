#include "rove/error.hpp"

namespace rove {

std::string_view to_string(ErrorCode code) noexcept {
    switch (code) {
        case ErrorCode::ok: return "ok";
        case ErrorCode::invalid: return "invalid";
        case ErrorCode::refused: return "refused";
        case ErrorCode::unsupported: return "unsupported";
        case ErrorCode::overloaded: return "overloaded";
        case ErrorCode::disconnected: return "disconnected";
        case ErrorCode::timed_out: return "timed_out";
        case ErrorCode::cancelled: return "cancelled";
        case ErrorCode::failed: return "failed";
        case ErrorCode::internal: return "internal";
    }
    return "unknown";
}

}  // namespace rove
