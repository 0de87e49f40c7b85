// What the parts that hold meetings are made of, and processes at the other end of them that are written by hand: conversations of the same
// thread, so that each test takes its steps in one order. Each of them stops where a test says.
#pragma once

#include <asio/basic_socket_acceptor.hpp>
#include <asio/detached.hpp>
#include <asio/experimental/as_tuple.hpp>
#include <asio/use_awaitable.hpp>
#include <cstdlib>
#include <filesystem>
#include <functional>

#include "control/host.hpp"
#include "control/link_watch.hpp"
#include "control/meetings.hpp"
#include "control_parts.hpp"

namespace rove::test {

// Where a process written by hand stops: after that message.
enum class Stops : std::uint8_t { at_once, challenge, welcome, connected, never };

class MeetingParts : public ControlParts {
protected:
    using SomeChannel = std::shared_ptr<control::Channel>;
    using Welcome = wire::control::Welcome;
    using Goodbye = wire::control::Goodbye;
    using Request = wire::control::Request;
    using Role = wire::control::Role;
    using ConnectedBy = wire::control::ConnectedBy;

    ~MeetingParts() override {
        thread_.drop();
        std::filesystem::remove_all(folder_);
    }
    // Both ends of a connection: this node's, and the other one.
    std::pair<SomeChannel, SomeChannel> connection() {
        int ends[2] = {-1, -1};
        EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
        const auto channel = [this](int end, std::set<control::Channel*>& open) {
            return std::make_shared<control::Channel>(
                control::Socket(thread_.io(), asio::generic::stream_protocol(AF_UNIX, 0), end), open);
        };
        return {channel(ends[0], open_), channel(ends[1], far_open_)};
    }
    // Conversations go on until that is so, or nothing has happened for long.
    template <typename Done>
    bool run_until(const Done& done) {
        while (!done())
            if (thread_.io().run_one_for(std::chrono::seconds(20)) == 0) return done();
        return true;
    }
    std::size_t links() { return neighbours_.counted_fabric().links(); }
    std::size_t peers() { return peers_.count(); }
    // What it says to this node once it has met it.
    fabric::Link& far_link() { return *far_links_.back(); }

    // A link of the other end, connected to the one that this node offers.
    std::unique_ptr<fabric::Link> link_to(Bytes offer) {
        auto link = value_or_throw(neighbours_.far_fabric().open_link());
        if (!offer.empty()) value_or_throw(link->connect(offer));
        return link;
    }

    const std::string folder_ = [] {
        std::string folder = (std::filesystem::temp_directory_path() / "rove-control-XXXXXX").string();
        EXPECT_NE(mkdtemp(folder.data()), nullptr);
        return folder;
    }();
    std::set<control::Channel*> far_open_;
    std::vector<std::unique_ptr<fabric::Link>> far_links_;
    NodeFunctions functions_{cache_};
    const control::Host host_{.options = options_,
                              .ids = neighbours_.ids,
                              .engines = engines_,
                              .functions = functions_,
                              .name = &IdleLead::name,
                              .every_second = [] {}};
    control::LinkWatch links_{{.thread = thread_, .engines = engines_, .membership = membership_}};
    control::OwnCookie cookie_{folder_ + "/cookie"};
    const control::Opening::Beside beside_opening_{.host = host_,
                                                   .thread = thread_,
                                                   .channels = open_,
                                                   .cookie = cookie_,
                                                   .self = self_,
                                                   .members = members_,
                                                   .membership = membership_,
                                                   .links = links_};
};

// A node that this one opens meetings with, on a socket of its own. It lets everybody in, as the client or member that the test's welcome says,
// unless the test has it stop, redirect, or say goodbye.
class OpensMeetings : public MeetingParts {
protected:
    class ByHand {
    public:
        struct Answer {
            Stops stops = Stops::never;
            std::function<void(Welcome&)> change = [](Welcome&) {};  // before it is signed …
            std::function<void(Welcome&)> spoil = [](Welcome&) {};   // … and after it
            std::string redirect;                                    // instead of the welcome
            std::optional<Goodbye> goodbye;                          // instead of the welcome
            std::function<wire::control::Settled(const Request&)> settles = [](const Request&) {
                return wire::control::Settled{};
            };
        };
        ByHand(OpensMeetings& test, std::vector<Answer> answers, const std::string& listen = {})
            : test_(test),
              answers_(std::move(answers)),
              address_(listen.empty() ? "unix:" + test.folder_ + "/" + std::to_string(test.nodes_++) : listen),
              acceptor_(test.thread_.io()) {
            const auto endpoint = endpoints().front();
            acceptor_.open(endpoint.protocol());
            acceptor_.bind(endpoint);
            acceptor_.listen();
            if (!control::parse_address(address_)->is_unix())
                address_ = control::endpoint_text(acceptor_.local_endpoint());
            asio::co_spawn(test_.thread_.io(), accept(), asio::detached);
            test_.thread_.io().poll();
        }
        // Its conversations end with it.
        ~ByHand() {
            asio::error_code ignored;
            acceptor_.close(ignored);
            for (const SomeChannel& each : channels) each->close();
            test_.thread_.io().poll();
        }
        ByHand(const ByHand&) = delete;
        [[nodiscard]] const std::string& address() const { return address_; }
        [[nodiscard]] control::Endpoints endpoints() const {
            return value_or_throw(control::resolve(value_or_throw(control::parse_address(address_))));
        }
        const control::KeyPair keys;
        unsigned came = 0;                    // connections
        std::vector<Request> requests;        // of those that asked
        std::vector<Goodbye> goodbyes;        // that it was told instead of what it waited for
        std::function<void()> asked = [] {};  // when a request has come
        std::vector<SomeChannel> channels;    // all that there were

    private:
        asio::awaitable<void> accept() {
            for (;;) {
                auto [error, socket] = co_await acceptor_.async_accept(
                    test_.thread_.io(), asio::experimental::as_tuple(asio::use_awaitable));
                if (error) co_return;
                const std::size_t which = std::min<std::size_t>(came++, answers_.size() - 1);
                channels.push_back(std::make_shared<control::Channel>(std::move(socket), test_.far_open_));
                asio::co_spawn(test_.thread_.io(), serve(channels.back(), answers_[which]), asio::detached);
            }
        }
        // The next message from the opener; nothing: it said goodbye, or went.
        template <typename ControlMessage>
        asio::awaitable<std::optional<ControlMessage>> hear(SomeChannel channel) {
            Result<ControlMessage> message = co_await channel->template receive<ControlMessage>();
            if (!message && channel->farewell()) goodbyes.push_back(channel->farewell()->goodbye);
            co_return message ? std::optional<ControlMessage>(std::move(*message)) : std::nullopt;
        }
        asio::awaitable<void> serve(SomeChannel channel, Answer answer) {
            if (answer.stops == Stops::at_once) co_return channel->close();
            const auto hello = co_await hear<wire::control::Hello>(channel);
            if (!hello) co_return;
            const wire::control::Challenge challenge{.nonce = control::random_nonce(), .proof = {}};
            (void)co_await channel->send(encode(challenge));
            if (answer.stops == Stops::challenge) co_return channel->close();
            if (!co_await hear<wire::control::ProofGiven>(channel)) co_return;
            const auto request = co_await hear<Request>(channel);
            if (!request) co_return;
            requests.push_back(*request);
            asked();
            if (answer.goodbye) co_return channel->close(*answer.goodbye);
            if (!answer.redirect.empty()) {
                (void)co_await channel->send(encode(wire::control::Redirect{.address = answer.redirect}));
                co_return channel->close();
            }
            auto link = test_.link_to(request->offer);
            Welcome welcome{.id = 0,
                            .you = hello->role == Role::client ? client_id(0, 1) : 1,
                            .count = 2,
                            .triple = "x86_64-linux-gnu",
                            .resident = {},
                            .offer = link->offer()};
            answer.change(welcome);
            if (hello->role != Role::client) {
                welcome.key = keys.key();
                welcome.signature =
                    keys.sign(wire::control::statement("node", challenge.nonce, hello->nonce, channel->bound_here()));
            }
            answer.spoil(welcome);
            test_.far_links_.push_back(std::move(link));
            (void)co_await channel->send(encode(welcome));
            if (answer.stops == Stops::welcome) co_return channel->close();
            if (!co_await hear<wire::control::Connected>(channel)) co_return;
            if (answer.stops == Stops::connected) co_return channel->close();
            (void)co_await channel->send(encode(answer.settles(*request)));
            (void)co_await hear<wire::control::Settled>(channel);  // a goodbye, if it says one
        }
        OpensMeetings& test_;
        const std::vector<Answer> answers_;
        std::string address_;
        asio::basic_socket_acceptor<asio::generic::stream_protocol> acceptor_;
    };

    [[nodiscard]] static Goodbye says(Goodbye::Reason reason) {
        return {.reason = reason, .code = ErrorCode::refused, .text = "it does not want to"};
    }

private:
    unsigned nodes_ = 0;
};

}  // namespace rove::test
