#include "fabric/ucx/worker.hpp"

#include <dlfcn.h>
#include <signal.h>
#include <ucm/api/ucm.h>
#include <ucs/config/global_opts.h>

#include <cstdlib>

#include "base/made_once.hpp"

namespace rove::fabric {
namespace {

tl::unexpected<Error> ucx_failure(std::string_view what, ucs_status_t status) {
    return fail(ErrorCode::unsupported, "UCX cannot {} ({}); see `ucx_info -d` for the transports that there are", what,
                ucs_status_string(status));
}

// UCX handles SIGSEGV and similar signals to print a backtrace; a library that others embed must not handle them.
void give_signals_back() {
    for (const int number : {SIGSEGV, SIGBUS, SIGILL, SIGFPE}) {
        struct sigaction action{};
        Dl_info owner{};
        if (sigaction(number, nullptr, &action) != 0 || action.sa_handler == SIG_DFL || action.sa_handler == SIG_IGN)
            continue;
        if (dladdr(reinterpret_cast<void*>(action.sa_sigaction), &owner) != 0 && owner.dli_fname != nullptr &&
            std::string_view(owner.dli_fname).find("libucs") != std::string_view::npos)
            signal(number, SIG_DFL);
    }
}

// UCX has read its environment before main, so settings that the user has not made are made by its own interface.
void set_defaults_once() {
    static constinit MadeOnce<const bool> done;
    (void)done.get([] {
        give_signals_back();
        // UCX must not patch the C library's mmap either, because that needs a page that is writable and executable.
        if (std::getenv("UCX_MEM_EVENTS") == nullptr) ucm_global_opts.enable_events = 0;
        if (std::getenv("UCX_LOG_LEVEL") == nullptr)
            ucs_global_opts_set_value("LOG_LEVEL", "fatal");  // errors are returned as values
        return new const bool(true);
    });
}

}  // namespace

bool allowed_by_environment(Transport transport) {
    const char* value = std::getenv("UCX_TLS");
    if (value == nullptr || *value == '\0') return true;
    const std::string list = std::string(",") + value + ",";
    if (value[0] == '^') return list.find(transport == Transport::shm ? "posix" : "tcp") == std::string::npos;
    const auto names = [&list](std::string_view name) {
        return list.find("," + std::string(name) + ",") != std::string::npos;
    };
    if (names("all")) return true;
    return transport == Transport::shm ? names("posix") || names("shm") || names("sm") || names("mm") : names("tcp");
}

Result<std::shared_ptr<UcxContext>> UcxContext::open(Transport transport) {
    set_defaults_once();
    std::shared_ptr<UcxContext> self(new UcxContext());
    const bool shm = transport == Transport::shm;
    ucp_config_t* config = nullptr;
    if (const ucs_status_t status = ucp_config_read(nullptr, nullptr, &config); status != UCS_OK)
        return ucx_failure("read its settings", status);
    // UCX's queues are in posix memory only, because sysv segments are created with mode 0660.
    ucp_config_modify(config, "TLS", shm ? "posix,self" : "tcp,self");
    if (!shm) ucp_config_modify(config, "NET_DEVICES", "lo");
    ucp_params_t params{};
    params.field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_NAME;
    params.features =
        UCP_FEATURE_AM | UCP_FEATURE_WAKEUP;  // and no RMA: an emulated put writes to any address that the sender names
    params.name = shm ? "rove-shm" : "rove-tcp";
    const ucs_status_t initialised = ucp_init(&params, config, &self->handle_);
    ucp_config_release(config);
    if (initialised != UCS_OK) return ucx_failure(shm ? "use shared memory" : "use TCP", initialised);
    return self;
}

UcxContext::~UcxContext() {
    if (handle_ != nullptr) ucp_cleanup(handle_);
}

Result<std::unique_ptr<UcxWorker>> UcxWorker::open(std::shared_ptr<UcxContext> context) {
    std::unique_ptr<UcxWorker> self(new UcxWorker(std::move(context)));
    ucp_worker_params_t worker{};
    worker.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
    worker.thread_mode = UCS_THREAD_MODE_SERIALIZED;
    if (const ucs_status_t status = ucp_worker_create(self->context(), &worker, &self->worker_); status != UCS_OK)
        return ucx_failure("create a worker", status);
    if (const ucs_status_t status = ucp_worker_get_efd(self->worker_, &self->descriptor_); status != UCS_OK)
        return ucx_failure("wake a sleeping node", status);
    ucp_address_t* address = nullptr;
    std::size_t bytes = 0;
    if (const ucs_status_t status = ucp_worker_get_address(self->worker_, &address, &bytes); status != UCS_OK)
        return ucx_failure("tell its address", status);
    const auto* first = reinterpret_cast<const std::byte*>(address);
    self->address_.assign(first, first + bytes);
    ucp_worker_release_address(self->worker_, address);
    return self;
}

UcxWorker::~UcxWorker() {
    if (worker_ != nullptr) ucp_worker_destroy(worker_);
}

bool UcxWorker::arm() {
    for (unsigned tries = 0; tries < 16; ++tries) {
        if (ucp_worker_arm(worker_) != UCS_ERR_BUSY) return true;
        (void)progress();
    }
    return false;
}

// The endpoint has no error handler, although TCP endpoints may have one: with a handler UCX 1.13 first exchanges messages of its own, and
// if the peer closes or dies during that exchange, one of UCX's assertions ends this process (seen: wireup_ep.c, pending_count; ucp_ep.inl,
// remote_ep_id). Without a handler, sends to a peer that has ended fail, and nothing else happens.
// But UCX refuses to close such an endpoint at once (UCS_ERR_INVALID_PARAM), and closing it in order, with messages in transit, ended a
// node by SIGSEGV or kept it from ending (mixed life under the thread sanitizer). So it is never closed: UcxWorkers ends a worker that has
// many endpoints.
Result<ucp_ep_h> UcxWorker::connect(Bytes address) {
    // UCX reads an address without knowing its length, and some invalid data makes it end this process. The properties of an address
    // of this version are checked: its first byte (version and flags), and that it is about as long as this worker's own.
    if (address.size() < address_.size() / 2 || address.size() > 2 * address_.size() || address[0] != address_[0])
        return fail(ErrorCode::unsupported, "the peer's offer holds no address of this version of UCX");
    ucp_ep_params_t params{};
    params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS;
    params.address = reinterpret_cast<const ucp_address_t*>(address.data());
    ucp_ep_h endpoint = nullptr;
    if (const ucs_status_t status = ucp_ep_create(worker_, &params, &endpoint); status != UCS_OK)
        return ucx_failure("reach the peer", status);
    return endpoint;
}

Status UcxWorker::on_message(unsigned id, ucp_am_recv_callback_t callback, void* argument) {
    ucp_am_handler_param_t param{};
    param.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG |
                       UCP_AM_HANDLER_PARAM_FIELD_FLAGS;
    param.id = id;
    param.cb = callback;
    param.arg = argument;
    param.flags = UCP_AM_FLAG_WHOLE_MSG;
    if (const ucs_status_t status = ucp_worker_set_am_recv_handler(worker_, &param); status != UCS_OK)
        return ucx_failure("receive messages", status);
    return {};
}

Status UcxWorker::send(ucp_ep_h endpoint, unsigned id, Bytes header, Bytes data, unsigned* on_their_way) {
    ucp_request_param_t param{};
    param.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS | UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
    param.flags = UCP_AM_SEND_FLAG_EAGER;
    param.user_data = on_their_way;
    param.cb.send = [](void* request, ucs_status_t, void* counted_in) {
        if (counted_in != nullptr) --*static_cast<unsigned*>(counted_in);
        ucp_request_free(request);
    };
    const ucs_status_ptr_t request =
        ucp_am_send_nbx(endpoint, id, header.data(), header.size(), data.data(), data.size(), &param);
    if (UCS_PTR_IS_ERR(request))
        return fail(ErrorCode::disconnected, "the peer cannot be reached ({})",
                    ucs_status_string(UCS_PTR_STATUS(request)));
    if (request != nullptr && on_their_way != nullptr) ++*on_their_way;
    return {};
}

}  // namespace rove::fabric
