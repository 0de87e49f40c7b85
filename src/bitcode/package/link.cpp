#include "bitcode/package/link.hpp"

#include <lld/Common/Driver.h>
#include <llvm/Support/CrashRecoveryContext.h>
#include <llvm/Support/Signals.h>

#include <atomic>
#include <csignal>

#include "bitcode/guard.hpp"

LLD_HAS_DRIVER(elf)

namespace rove::bitcode {
namespace {

// lld has not returned from a fault, and its process-wide state cannot be used again.
std::atomic<bool> broken{false};

// lld calls exit() after a fatal error; within a recovery context that ends lld and not the process.
class RecoveryEnabled {
public:
    RecoveryEnabled() { llvm::CrashRecoveryContext::Enable(); }
    ~RecoveryEnabled() { llvm::CrashRecoveryContext::Disable(); }
    RecoveryEnabled(const RecoveryEnabled&) = delete;
    RecoveryEnabled& operator=(const RecoveryEnabled&) = delete;
};

// lld has a file to be removed when a signal arrives, so LLVM handles the process's signals from then on. If a thread has a large stack for
// them, LLVM does not change it; otherwise it gives the thread a stack that outlives it.
class SignalsKept {
public:
    SignalsKept() {
        stack_t own{};
        own.ss_sp = stack_.data();
        own.ss_size = stack_.size();
        (void)sigaltstack(&own, &before_);
    }
    ~SignalsKept() {
        llvm::sys::unregisterHandlers();
        (void)sigaltstack(&before_, nullptr);
    }
    SignalsKept(const SignalsKept&) = delete;
    SignalsKept& operator=(const SignalsKept&) = delete;

private:
    std::vector<std::byte> stack_ = std::vector<std::byte>(std::size_t{256} * 1024);
    stack_t before_{};
};

}  // namespace

Status link(const std::vector<std::string>& arguments) {
    std::string said;
    int status = 0;
    const Status ended = run_guarded_alone("the image", [&] {
        if (broken) return;
        broken = true;  // until lld has returned
        std::vector<const char*> words{"ld.lld"};
        for (const std::string& argument : arguments) words.push_back(argument.c_str());
        words.push_back("--threads=1");
        llvm::raw_string_ostream out(said);
        const RecoveryEnabled recovery;
        const SignalsKept signals;  // destroyed first: it restores the recovery's handlers
        const lld::Result result = lld::lldMain(words, out, out, {{lld::Gnu, &lld::elf::link}});
        status = result.retCode;
        broken = !result.canRunAgain;
        if (broken && status == 0) status = 1;
    });
    ROVE_CHECK(ended);
    if (broken && said.empty())
        return fail(ErrorCode::unsupported, "the linker has failed for good in this process; start it again");
    if (status != 0) return fail(ErrorCode::unsupported, "the linker says: {}", said.substr(0, said.find('\n')));
    return {};
}

}  // namespace rove::bitcode
