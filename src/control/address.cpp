#include "control/address.hpp"

#include <netdb.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <asio/ip/address.hpp>
#include <asio/local/stream_protocol.hpp>
#include <atomic>
#include <charconv>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <future>
#include <memory>
#include <utility>

#include "base/float_environment.hpp"

namespace rove::control {
namespace {

// Look-ups of names that may run at the same time, each in a thread of its own.
constexpr unsigned kLookUpsMax = 16;

constexpr std::string_view kShapes = "write host:port, [v6]:port or unix:PATH";

Result<std::uint16_t> parse_port(std::string_view text, std::string_view whole) {
    std::uint16_t port = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
    if (error != std::errc() || end != text.data() + text.size() || text.empty())
        return fail(ErrorCode::invalid, "address '{}': '{}' is not a port (0 to 65535); {}", whole, text, kShapes);
    return port;
}

}  // namespace

std::string Address::to_string() const {
    if (is_unix()) return "unix:" + path;
    if (host.find(':') != std::string::npos) return fmt::format("[{}]:{}", host, port);
    return fmt::format("{}:{}", host, port);
}

Result<Address> parse_address(std::string_view text) {
    Address address;
    if (const std::size_t end = text.find('\0'); end != std::string_view::npos)
        return fail(ErrorCode::invalid, "an address that begins with '{}' contains a zero byte; {}",
                    text.substr(0, end), kShapes);
    if (text.starts_with("unix:")) {
        address.path = text.substr(5);
        if (address.path.empty()) return fail(ErrorCode::invalid, "address '{}' names no socket; {}", text, kShapes);
        if (address.path.size() >= sizeof(sockaddr_un{}.sun_path))
            return fail(ErrorCode::invalid, "address '{}': a socket's path has at most {} bytes; use a shorter one",
                        text, sizeof(sockaddr_un{}.sun_path) - 1);
        return address;
    }
    if (const std::size_t scheme = text.find("://"); scheme != std::string_view::npos)
        return fail(ErrorCode::invalid, "address '{}': leave out '{}'; {}", text, text.substr(0, scheme + 3), kShapes);
    const std::size_t colon = text.rfind(':');
    if (colon == std::string_view::npos || colon == 0)
        return fail(ErrorCode::invalid, "'{}' is not an address; {}", text, kShapes);
    std::string_view host = text.substr(0, colon);
    if (host.front() == '[') {
        if (host.back() != ']' || host.size() < 3)
            return fail(ErrorCode::invalid, "address '{}': brackets do not match; {}", text, kShapes);
        host = host.substr(1, host.size() - 2);
    } else if (host.find(':') != std::string_view::npos) {
        return fail(ErrorCode::invalid, "address '{}': write an IPv6 address in brackets, as [{}]:PORT", text, host);
    }
    address.host = host;
    ROVE_TRY(address.port, parse_port(text.substr(colon + 1), text));
    return address;
}

Result<std::vector<asio::generic::stream_protocol::endpoint>> resolve_until(const Address& address,
                                                                            TimePoint deadline) {
    if (auto numbers = resolve(address, true); numbers || numbers.error().code() != ErrorCode::invalid) return numbers;
    // The C library's resolver has no time limit. A look-up that takes longer is abandoned, and counts until it ends.
    static constinit std::atomic<unsigned> under_way{0};
    struct LookUp {
        LookUp() { before = under_way.fetch_add(1); }
        LookUp(LookUp&& other) noexcept : before(other.before), counts(std::exchange(other.counts, false)) {}
        ~LookUp() {
            if (counts) under_way.fetch_sub(1);
        }
        unsigned before = 0;
        bool counts = true;
    } look_up;
    if (look_up.before >= kLookUpsMax)
        return fail(ErrorCode::overloaded,
                    "address '{}': {} look-ups of names take longer than the time that they were given, the most that "
                    "may; use a number, or mend the resolver",
                    address.to_string(), kLookUpsMax);
    std::promise<decltype(resolve(address))> promise;
    auto named = promise.get_future();
    start_thread([address, promise = std::move(promise), look_up = std::move(look_up)]() mutable {
        try {
            promise.set_value(resolve(address));
        } catch (...) {
            promise.set_exception(std::current_exception());
        }
    }).detach();
    if (named.wait_until(deadline) == std::future_status::ready) return named.get();
    return fail(ErrorCode::timed_out, "address '{}': the name '{}' was not resolved in the time that was given",
                address.to_string(), address.host);
}

Result<std::vector<asio::generic::stream_protocol::endpoint>> resolve(const Address& address, bool numeric) {
    std::vector<asio::generic::stream_protocol::endpoint> endpoints;
    if (address.is_unix()) {
        endpoints.emplace_back(asio::local::stream_protocol::endpoint(address.path));
        return endpoints;
    }
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = AI_NUMERICSERV | (numeric ? AI_NUMERICHOST : 0);
    addrinfo* found = nullptr;
    if (const int error = getaddrinfo(address.host.c_str(), std::to_string(address.port).c_str(), &hints, &found);
        error != 0)
        return fail(ErrorCode::invalid, "address '{}': host '{}' cannot be resolved ({})", address.to_string(),
                    address.host, gai_strerror(error));
    const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(found, freeaddrinfo);
    for (const addrinfo* each = found; each != nullptr; each = each->ai_next) {
        asio::ip::tcp::endpoint endpoint;
        if (each->ai_addrlen > endpoint.capacity()) continue;
        std::memcpy(endpoint.data(), each->ai_addr, each->ai_addrlen);
        endpoint.resize(each->ai_addrlen);
        if (!endpoint.address().is_loopback())
            return fail(ErrorCode::refused,
                        "address '{}' is not on this machine's loopback: nodes meet by loopback or a Unix socket only; "
                        "use 127.0.0.1, [::1] or unix:PATH",
                        address.to_string());
        endpoints.emplace_back(endpoint);
    }
    if (endpoints.empty())
        return fail(ErrorCode::invalid, "address '{}': host '{}' has no address", address.to_string(), address.host);
    return endpoints;
}

std::string canonical(const asio::generic::stream_protocol::endpoint& endpoint) {
    constexpr std::string_view kUnix = "unix:";
    std::string text = bound_text(endpoint);
    if (!text.starts_with(kUnix)) return text;
    std::error_code error;
    const auto real = std::filesystem::canonical(text.substr(kUnix.size()), error);
    return error ? text : std::string(kUnix) + real.string();
}

std::string bound_text(const asio::generic::stream_protocol::endpoint& endpoint) {
    if (std::string text = endpoint_text(endpoint); text != "unix") return text;
    const auto* address = reinterpret_cast<const sockaddr_un*>(endpoint.data());
    const std::size_t begin = offsetof(sockaddr_un, sun_path);
    if (endpoint.size() <= begin) return "unix:";
    return "unix:" + std::string(address->sun_path, strnlen(address->sun_path, endpoint.size() - begin));
}

std::string endpoint_text(const asio::generic::stream_protocol::endpoint& endpoint) {
    const int family = endpoint.protocol().family();
    if (family != AF_INET && family != AF_INET6) return "unix";
    asio::ip::tcp::endpoint tcp;
    std::memcpy(tcp.data(), endpoint.data(), endpoint.size());
    tcp.resize(endpoint.size());
    return Address{tcp.address().to_string(), tcp.port(), {}}.to_string();
}

}  // namespace rove::control
