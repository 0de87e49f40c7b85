// The host half of rove/rove.h, over the C++ edge: exceptions become numbers, and their words wait for rove_error_message.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <list>
#include <optional>

#include "base/mutex.hpp"
#include "base/of_thread.hpp"
#include "node/options.hpp"
#include "rove/node.hpp"
#include "rove/rove.h"

struct rove_peer_t {
    rove::Peer peer;
    std::atomic<int> timeout_ms{-1};
    explicit rove_peer_t(rove::Peer to) : peer(std::move(to)) {}
    [[nodiscard]] rove::Peer limited() const {
        const int limit = timeout_ms.load(std::memory_order_relaxed);
        return peer.limited(limit < 0 ? rove::Within{rove::detail::kForever}
                                      : rove::within(std::chrono::milliseconds(limit)));
    }
};
struct rove_node_t {
    rove::Node node;
    rove::Mutex mutex;
    std::list<rove_peer_t> peers GUARDED_BY(mutex);  // a list: their addresses are the caller's handles
};
struct rove_package_t {
    rove::Package package;
};
struct rove_call_t {
    std::optional<rove::RawCall> call;  // none: ended, and what it brought is below
    std::vector<std::byte> data;
    std::optional<rove::Error> error;
};

namespace {

constexpr const char* kNoMemory = "this process has no memory left for it";

// One message a thread is the contract.
rove::OfThread<std::string> last_message;
thread_local const char* last_words = "";  // NOLINT: that message, or words that need no memory

int no_memory() noexcept {
    last_words = kNoMemory;
    return ROVE_OVERLOADED;
}

// Keeps the code where there is no memory for the message.
int failed(rove::ErrorCode code, const char* message) noexcept {
    last_words = kNoMemory;
    try {
        if (std::string* const last = last_message.get()) last_words = (*last = message).c_str();
    } catch (const std::bad_alloc&) {  // those words, then
    }
    return static_cast<int>(code);
}

// Runs `work`, turning what it throws into an error number.
template <typename Work>
int guarded(Work&& work) {
    try {
        return work();
    } catch (const rove::Error& error) {
        return failed(error.code(), error.what());
    } catch (const std::bad_alloc&) {
        return no_memory();
    } catch (const std::exception& error) {
        return failed(rove::ErrorCode::internal, error.what());
    }
}

int missing(const char* what) {
    return failed(rove::ErrorCode::invalid, what);
}

std::span<const std::byte> bytes_of(const void* data, size_t size) {
    return {static_cast<const std::byte*>(data), size};
}

rove::NodeOptions options_of(const rove_node_options* options) {
    rove::NodeOptions result;
    result.own_thread = false;
    if (options == nullptr) return result;
    const auto text = [](const char* value) { return value != nullptr ? std::string(value) : std::string(); };
    result.listen = text(options->listen);
    result.join = text(options->join);
    result.host_object = options->host_object;
    result.own_thread = options->own_thread != 0;
    if (options->engines != 0) result.engines = options->engines;
    const std::string fabric = text(options->fabric);
    if (fabric.empty()) return result;
    const auto* const named = std::ranges::find(rove::kFabricWords, fabric, &rove::FabricWord::word);
    if (named == rove::kFabricWords.end())
        throw rove::Error(rove::ErrorCode::invalid, fmt::format("fabric '{}' is none of its choices: {}", fabric,
                                                                fmt::join(rove::fabric_words(), ", ")));
    result.fabric = named->choice;
    return result;
}

// Takes the end of a call that has ended over into the handle.
void settle(rove_call_t* call) {
    try {
        call->data = call->call->get();
    } catch (const rove::Error& error) {
        call->error = error;
    }
    call->call.reset();
}

}  // namespace

extern "C" {

int rove_node_create(const rove_node_options* options, rove_node_t** out) noexcept {
    if (out == nullptr) return missing("rove_node_create: out is NULL");
    return guarded([&] {
        *out = new rove_node_t{rove::Node(options_of(options)), {}, {}};
        return ROVE_OK;
    });
}

const char* rove_node_address(const rove_node_t* node) noexcept {
    return node != nullptr ? node->node.address().c_str() : "";
}

int rove_node_poll(rove_node_t* node, int timeout_ms) noexcept {
    if (node == nullptr) return -missing("rove_node_poll: node is NULL");
    unsigned handled = 0;
    const int error = guarded([&] {
        handled = node->node.poll(std::chrono::milliseconds(timeout_ms));
        return ROVE_OK;
    });
    return error == ROVE_OK ? static_cast<int>(handled) : -error;
}

void rove_node_destroy(rove_node_t* node) noexcept {
    delete node;
}

int rove_connect(rove_node_t* node, const char* address, rove_peer_t** out) noexcept {
    if (node == nullptr || address == nullptr || out == nullptr) return missing("rove_connect: an argument is NULL");
    return guarded([&] {
        rove::Peer peer = node->node.connect(address);
        const rove::MutexLock lock(node->mutex);
        *out = &node->peers.emplace_back(std::move(peer));
        return ROVE_OK;
    });
}

int rove_peer_limit(rove_peer_t* peer, int timeout_ms) noexcept {
    if (peer == nullptr) return missing("rove_peer_limit: peer is NULL");
    peer->timeout_ms.store(timeout_ms, std::memory_order_relaxed);
    return ROVE_OK;
}

int rove_package_open(const char* path, rove_package_t** out) noexcept {
    if (path == nullptr || out == nullptr) return missing("rove_package_open: an argument is NULL");
    return guarded([&] {
        *out = new rove_package_t{rove::Package::open(path)};
        return ROVE_OK;
    });
}

void rove_package_close(rove_package_t* package) noexcept {
    delete package;
}

int rove_load(rove_peer_t* peer, rove_package_t* package) noexcept {
    if (peer == nullptr || package == nullptr) return missing("rove_load: an argument is NULL");
    return guarded([&] {
        (void)peer->limited().load(package->package);
        return ROVE_OK;
    });
}

int rove_call_begin(rove_peer_t* peer, rove_package_t* package, const char* entry, const void* payload, size_t size,
                    rove_call_t** out) noexcept {
    if (peer == nullptr || package == nullptr || entry == nullptr || out == nullptr || (payload == nullptr && size > 0))
        return missing("rove_call_begin: an argument is NULL");
    return guarded([&] {
        *out = new rove_call_t{
            peer->limited().call(package->package.entry(entry), bytes_of(payload, size)), {}, std::nullopt};
        return ROVE_OK;
    });
}

int rove_call_post(rove_peer_t* peer, rove_package_t* package, const char* entry, const void* payload,
                   size_t size) noexcept {
    if (peer == nullptr || package == nullptr || entry == nullptr || (payload == nullptr && size > 0))
        return missing("rove_call_post: an argument is NULL");
    return guarded([&] {
        peer->limited().post(package->package.entry(entry), bytes_of(payload, size));
        return ROVE_OK;
    });
}

int rove_call_test(rove_call_t* call) noexcept {
    if (call == nullptr || !call->call) return 1;
    return guarded([&] { return call->call->done() ? 1 : 0; }) != 0 ? 1 : 0;
}

int rove_call_wait(rove_call_t* call, int timeout_ms, const void** data, size_t* size) noexcept {
    if (call == nullptr) return missing("rove_call_wait: call is NULL");
    return guarded([&] {
        if (call->call) {
            if (timeout_ms >= 0 && !call->call->wait_for(std::chrono::milliseconds(timeout_ms)))
                return failed(rove::ErrorCode::timed_out, "the call has not ended in that time; it is still in flight");
            settle(call);
        }
        if (call->error) return failed(call->error->code(), call->error->what());
        if (data != nullptr) *data = call->data.data();
        if (size != nullptr) *size = call->data.size();
        return static_cast<int>(ROVE_OK);
    });
}

void rove_call_free(rove_call_t* call) noexcept {
    delete call;
}

const char* rove_error_message(void) noexcept {
    return last_words;
}

const char* rove_error_name(int error) noexcept {
    return rove::to_string(static_cast<rove::ErrorCode>(error)).data();
}

}  // extern "C"
