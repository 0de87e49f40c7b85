// The messages of control connections: what is written is read again, and nothing else is read.
#include "wire/control.hpp"

#include <gtest/gtest.h>

namespace rove::wire::control {
namespace {

template <typename Id>
Id filled(std::uint8_t with) {
    Id id;
    id.bytes.fill(with);
    return id;
}

Certificate certificate() {
    return {.id = 3, .generation = 2, .signature = filled<Signature>(8)};
}
Member member(NodeId id) {
    return {.id = id,
            .generation = 1,
            .address = "127.0.0.1:7400",
            .key = filled<PublicKey>(9),
            .signature = filled<Signature>(10)};
}
Request request() {
    return {.has_residents = true,
            .replace = true,
            .features = 0x8000'0001,
            .triple = "x86_64-linux-gnu",
            .address = "unix:/run/node",
            .key = filled<PublicKey>(1),
            .signature = filled<Signature>(2),
            .certificate = certificate(),
            .whom = filled<PublicKey>(3),
            .offer = ByteBuffer(100, std::byte{5})};
}
Welcome welcome() {
    return {.has_residents = true,
            .has_ticket = true,
            .features = 0x4000'0002,
            .id = 1,
            .you = client_id(1, 4),
            .count = 2,
            .key = filled<PublicKey>(4),
            .signature = filled<Signature>(5),
            .ticket = filled<Ticket>(6),
            .secret = filled<LaneSecret>(7),
            .triple = "x86_64-linux-gnu",
            .resident = {filled<Digest>(1), filled<Digest>(2)},
            .offer = ByteBuffer(50, std::byte{6})};
}

Bytes body_of(const ByteBuffer& message) {
    return Bytes(message).subspan(kLengthBytes);
}

// It says its own length, is read as it was written, and every shorter or longer one is none.
template <typename ControlMessage>
void comes_back(const ControlMessage& message) {
    SCOPED_TRACE(ControlMessage::kName);
    const ByteBuffer bytes = encode(message);
    EXPECT_EQ(Reader(bytes).number<std::uint32_t>(), bytes.size() - kLengthBytes);
    const Bytes body = body_of(bytes);
    EXPECT_LE(body.size(), ControlMessage::kBytesMax);
    const Result<ControlMessage> read = decode<ControlMessage>(body);
    ASSERT_TRUE(read) << read.error().message();
    EXPECT_EQ(*read, message);
    for (std::size_t size = 0; size < body.size(); ++size)
        EXPECT_FALSE(decode<ControlMessage>(body.first(size))) << size;
    ByteBuffer longer(body.begin(), body.end());
    longer.push_back(std::byte{0});
    EXPECT_FALSE(decode<ControlMessage>(longer));
    for (unsigned kind = 0; kind < 256; ++kind) {
        ByteBuffer other(body.begin(), body.end());
        other[0] = static_cast<std::byte>(kind);
        EXPECT_EQ(decode<ControlMessage>(other).has_value(), kind == static_cast<unsigned>(ControlMessage::kKind));
    }
}

TEST(ControlMessages, ComeBackAsTheyWereWritten) {
    comes_back(Hello{.role = Role::member, .nonce = filled<Nonce>(1)});
    comes_back(LaneHello{.ticket = filled<Ticket>(2)});
    comes_back(Challenge{.nonce = filled<Nonce>(3), .proof = filled<Proof>(4)});
    comes_back(ProofGiven{.proof = filled<Proof>(5)});
    comes_back(request());
    comes_back(welcome());
    comes_back(Redirect{.address = "127.0.0.1:1"});
    comes_back(Connected{.by = ConnectedBy::ticket});
    comes_back(Settled{.certificate = certificate(), .cluster = filled<KeySeed>(4), .members = {member(0), member(2)}});
    comes_back(Members{.members = {member(5)}});
    comes_back(Goodbye{.reason = Goodbye::Reason::cut, .code = ErrorCode::invalid, .text = "a part out of its order"});
}

// The example of docs/meeting.md.
TEST(ControlMessages, AHelloInBytes) {
    const ByteBuffer bytes = encode(Hello{.role = Role::join, .nonce = filled<Nonce>(0x5a)});
    std::string hex;
    for (const std::byte each : bytes) hex += fmt::format("{:02x}", std::to_integer<unsigned>(each));
    EXPECT_EQ(hex,
              "28000000"
              "01"
              "524f5645"
              "0700"
              "01"
              "5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a");
}

TEST(ControlMessages, TheLargestKeepTheBoundOfTheirKind) {
    Request most = request();
    most.triple.assign(kTripleBytesMax, 'x');
    most.address.assign(kAddressBytesMax, 'x');
    most.offer.resize(kOfferBytesMax);
    EXPECT_EQ(body_of(encode(most)).size(), Request::kBytesMax);
    EXPECT_TRUE(decode<Request>(body_of(encode(most))));
    Welcome welcome_most = welcome();
    welcome_most.triple.assign(kTripleBytesMax, 'x');
    welcome_most.resident.resize(kResidentMax);
    welcome_most.offer.resize(kOfferBytesMax);
    EXPECT_EQ(body_of(encode(welcome_most)).size(), Welcome::kBytesMax);
    EXPECT_TRUE(decode<Welcome>(body_of(encode(welcome_most))));
    Member member_most = member(kNodeIdMax);
    member_most.address.assign(kAddressBytesMax, 'x');
    const Settled settled_most{.members = std::vector(kMembersMax, member_most)};
    EXPECT_EQ(body_of(encode(settled_most)).size(), Settled::kBytesMax);
    EXPECT_TRUE(decode<Settled>(body_of(encode(settled_most))));
    const Members members_most{.members = std::vector(Members::kMost, member_most)};
    EXPECT_EQ(body_of(encode(members_most)).size(), Members::kBytesMax);
    const Goodbye long_one{.text = std::string(10'000, 'x')};
    EXPECT_EQ(body_of(encode(long_one)).size(), Goodbye::kBytesMax);
    EXPECT_EQ(decode<Goodbye>(body_of(encode(long_one)))->text.size(), kGoodbyeTextMax);
}

TEST(ControlMessages, FieldsOutOfTheirBoundsAreRefused) {
    const auto refused = [](const char* what, const auto& message) {
        using ControlMessage = std::decay_t<decltype(message)>;
        EXPECT_FALSE(decode<ControlMessage>(body_of(encode(message)))) << what;
    };
    Request bad = request();
    bad.address.assign(kAddressBytesMax + 1, 'x');
    refused("a long address", bad);
    bad = request();
    bad.address = "unix:/a\nb";
    refused("an address with a line's end in it", bad);
    bad = request();
    bad.triple.assign(kTripleBytesMax + 1, 'x');
    refused("a long target", bad);
    bad = request();
    bad.offer.resize(kOfferBytesMax + 1);
    refused("a long offer", bad);
    bad = request();
    bad.certificate.id = kNodeIdMax + 1;
    refused("a certificate for an id that there cannot be", bad);
    Welcome wrong = welcome();
    wrong.id = kNodeIdMax + 1;
    refused("an id over the most", wrong);
    wrong = welcome();
    wrong.you = kNoNode & ~kClientBit;
    refused("an id over the most for the opener", wrong);
    wrong = welcome();
    wrong.count = kNodeIdMax + 2;
    refused("more nodes than there may be", wrong);
    wrong = welcome();
    wrong.resident.resize(kResidentMax + 1);
    refused("a long list of packages", wrong);
    refused("a redirect to nowhere", Redirect{});
    refused("a member without an address", Members{.members = {Member{.id = 1}}});
    refused("a member of an id over the most", Members{.members = {member(kNodeIdMax + 1)}});
    refused("a long list of members", Members{.members = std::vector(Members::kMost + 1, member(1))});
    refused("a role that there is none of", Hello{.role = static_cast<Role>(3)});
    refused("a way to connect that there is none of", Connected{.by = static_cast<ConnectedBy>(2)});
    refused("a reason that there is none of", Goodbye{.reason = static_cast<Goodbye::Reason>(6)});
    refused("a code that there is none of", Goodbye{.code = static_cast<ErrorCode>(200)});
}

// The flags' byte follows the kind's.
TEST(ControlMessages, UnknownFlagsAreRefused) {
    const auto refused = [](const auto& message, std::uint8_t known) {
        using ControlMessage = std::decay_t<decltype(message)>;
        ByteBuffer bytes = encode(message);
        std::byte& flags = bytes[kLengthBytes + 1];
        ASSERT_EQ(flags, std::byte{known}) << "the message has all that there are";
        for (unsigned bit = 0; bit < 8; ++bit) {
            flags = std::byte{known} | std::byte(1U << bit);
            EXPECT_EQ(decode<ControlMessage>(body_of(bytes)).has_value(), ((known >> bit) & 1U) != 0)
                << ControlMessage::kName << " with bit " << bit;
        }
    };
    refused(request(), 3);
    refused(welcome(), 3);
}

TEST(ControlMessages, AnotherVersionIsSaidToBeOne) {
    ByteBuffer bytes = encode(Hello{});
    bytes[kLengthBytes + 1 + 4] = std::byte{9};
    bytes.resize(kLengthBytes + 1 + 4 + 2);  // whatever follows there
    const Result<Hello> read = decode<Hello>(body_of(bytes));
    ASSERT_FALSE(read);
    EXPECT_EQ(read.error().code(), ErrorCode::unsupported);
    EXPECT_NE(read.error().message().find("version 9"), std::string::npos) << read.error().message();
}

TEST(ControlMessages, AGoodbyeCannotWriteToATerminal) {
    EXPECT_EQ(decode<Goodbye>(body_of(encode(Goodbye{.text = "\x1b[2Jgone\n"})))->text, "?[2Jgone?");
}

TEST(ControlMessages, StatementsOfDifferentThingsDiffer) {
    const auto one = statement(member(1));
    for (auto change : {+[](Member& m) { ++m.id; }, +[](Member& m) { ++m.generation; },
                        +[](Member& m) { m.address.back() = '1'; }, +[](Member& m) { m.key.bytes[31] ^= 1; }}) {
        Member other = member(1);
        change(other);
        EXPECT_NE(statement(other), one);
    }
    Member unsigned_one = member(1);
    unsigned_one.signature = {};
    EXPECT_EQ(statement(unsigned_one), one);
    const Nonce a = filled<Nonce>(1), b = filled<Nonce>(2);
    EXPECT_NE(statement("node", a, b, "unix:/n"), statement("peer", a, b, "unix:/n"));
    EXPECT_NE(statement("node", a, b, "unix:/n"), statement("node", b, a, "unix:/n"));
    EXPECT_NE(statement("node", a, b, "unix:/n"), statement("node", a, b, "unix:/m"));
}

}  // namespace
}  // namespace rove::wire::control
