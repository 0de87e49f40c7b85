// UCX contexts, one for each kind of transport, and workers of them.
//
// Threads: UCS_THREAD_MODE_SERIALIZED: any thread, one at a time (the fabric's users hold one lock).
//
// Invariant: an endpoint exists until its worker ends, and a context for as long as any worker of it.
#pragma once

#include <ucp/api/ucp.h>

#include <memory>
#include <string>
#include <utility>

#include "base/bytes.hpp"
#include "base/result.hpp"

namespace rove::fabric {

enum class Transport : std::uint8_t { shm, tcp };

class UcxContext {
public:
    [[nodiscard]] static Result<std::shared_ptr<UcxContext>> open(Transport transport);
    ~UcxContext();
    UcxContext(const UcxContext&) = delete;
    [[nodiscard]] ucp_context_h handle() const { return handle_; }

private:
    UcxContext() = default;
    ucp_context_h handle_ = nullptr;
};

class UcxWorker {
public:
    [[nodiscard]] static Result<std::unique_ptr<UcxWorker>> open(std::shared_ptr<UcxContext> context);
    ~UcxWorker();
    UcxWorker(const UcxWorker&) = delete;

    [[nodiscard]] ucp_context_h context() const { return context_->handle(); }
    [[nodiscard]] ucp_worker_h worker() const { return worker_; }
    [[nodiscard]] const ByteBuffer& address() const { return address_; }
    [[nodiscard]] int descriptor() const { return descriptor_; }
    unsigned progress() { return ucp_worker_progress(worker_); }
    // Prepares a sleep on descriptor(). False: events are still to be handled.
    [[nodiscard]] bool arm();

    // If the peer has ended, a later send() fails, or the control connection ends: see worker.cpp about error handlers.
    // The endpoint exists until the worker ends.
    [[nodiscard]] Result<ucp_ep_h> connect(Bytes address);
    [[nodiscard]] Status on_message(unsigned id, ucp_am_recv_callback_t callback, void* argument);
    // Sends header and data, which must stay unchanged until the peer has them. If UCX reads them after this call, the message counts in
    // `on_their_way` until UCX has finished reading, whatever happens to the endpoint; null: they exist for ever.
    [[nodiscard]] Status send(ucp_ep_h endpoint, unsigned id, Bytes header, Bytes data, unsigned* on_their_way);

private:
    explicit UcxWorker(std::shared_ptr<UcxContext> context) : context_(std::move(context)) {}
    std::shared_ptr<UcxContext> context_;
    ucp_worker_h worker_ = nullptr;
    ByteBuffer address_;
    int descriptor_ = -1;
};

// Whether UCX_TLS, if the user has set it, allows this transport.
[[nodiscard]] bool allowed_by_environment(Transport transport);

}  // namespace rove::fabric
