// Facade of ns-3: hosts, gateways, WAN links and messages, described by numbers alone.
//
// One host a domain, each joined to a gateway of its own; WAN links join gateways. A message is written to a TCP
// connection in pieces of one segment and has arrived when the receiver has read its last byte. Nothing is checked
// here: the caller has validated all numbers, since ns-3 aborts the process on bad ones. Times are in nanoseconds,
// rates in bits per second, sizes in bytes.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ns3/core-module.h"
#include "ns3/drop-tail-queue.h"
#include "ns3/error-model.h"
#include "ns3/internet-stack-helper.h"
#include "ns3/ipv4-address-helper.h"
#include "ns3/ipv4-header.h"
#include "ns3/ipv4-static-routing-helper.h"
#include "ns3/pointer.h"
#include "ns3/point-to-point-helper.h"
#include "ns3/point-to-point-net-device.h"
#include "ns3/ppp-header.h"
#include "ns3/tcp-header.h"
#include "ns3/tcp-socket-factory.h"
#include "ns3/tcp-socket-state.h"

namespace eastwest
{

/// Figures of the transport; sizes in bytes, times in nanoseconds.
struct Transport
{
    bool is_bbr;
    bool reuses_connections;
    std::uint32_t segment_size_bytes;
    std::uint32_t initial_window_segments;
    std::uint32_t send_buffer_bytes;
    std::uint32_t receive_buffer_bytes;
    std::uint32_t delayed_ack_count;
    std::int64_t delayed_ack_ns;
    std::int64_t min_rto_ns;
    std::int32_t num_flows;
    bool acknowledges_first;
};

/// Figures of a link: rates of both directions, delay, room of each queue, share of packets lost at each end.
struct Joint
{
    std::uint64_t there_bits_per_s;
    std::uint64_t back_bits_per_s;
    std::int64_t delay_ns;
    std::uint32_t queue_bytes;
    double loss_fraction;
};

/// IP and TCP headers with time stamps, and the first address of the links.
inline constexpr std::uint32_t kHeaderBytes = 52;
inline constexpr std::uint32_t kFirstAddress = 0x0a000000;

/// The link between a host and its gateway, much quicker than a WAN link.
inline constexpr Joint kHostLink{100000000000ULL, 100000000000ULL, 10000, 1073741824U, 0.0};

/// Queue whose packets without payload, acknowledgements above all, leave before those with one.
///
/// Else the acknowledgements of one direction wait behind the data of the other, arrive in bunches, and windows leave
/// the link idle in between (L. Zhang, S. Shenker, D. Clark, "Observations on the dynamics of a congestion control
/// algorithm: the effects of two-way traffic", SIGCOMM 1991).
class AcknowledgementsFirst : public ns3::Queue<ns3::Packet>
{
  public:
    bool Enqueue(ns3::Ptr<ns3::Packet> packet) override
    {
        if (HasPayload(packet))
        {
            return DoEnqueue(GetContainer().end(), packet);
        }
        const bool is_in = DoEnqueue(std::next(GetContainer().begin(), m_num_first), packet);
        m_num_first += is_in ? 1 : 0;
        return is_in;
    }

    ns3::Ptr<ns3::Packet> Dequeue() override
    {
        m_num_first -= m_num_first > 0 ? 1 : 0;
        return DoDequeue(GetContainer().begin());
    }

    ns3::Ptr<ns3::Packet> Remove() override
    {
        m_num_first -= m_num_first > 0 ? 1 : 0;
        return DoRemove(GetContainer().begin());
    }

    ns3::Ptr<const ns3::Packet> Peek() const override { return DoPeek(GetContainer().begin()); }

  private:
    /// Headers are read of small packets alone: TCP's are at most 60 bytes long.
    static bool HasPayload(ns3::Ptr<const ns3::Packet> packet)
    {
        if (packet->GetSize() > 2 + 20 + 60)
        {
            return true;
        }
        const ns3::Ptr<ns3::Packet> copy = packet->Copy();
        ns3::PppHeader frame;
        ns3::Ipv4Header address;
        ns3::TcpHeader segment;
        copy->RemoveHeader(frame);
        copy->RemoveHeader(address);
        copy->RemoveHeader(segment);
        return copy->GetSize() > 0;
    }

    std::size_t m_num_first = 0;
};

/// Most that a connection between two hosts has under way: its first window and its socket buffers.
struct Window
{
    std::uint32_t initial_segments;
    std::uint32_t buffer_bytes;
};

/// A part of a message on its way over one connection.
struct Part
{
    std::int64_t message;
    std::uint64_t left_bytes;
};

/// One TCP connection, with the parts that its sender still writes and its receiver still reads.
struct Connection
{
    ns3::Ptr<ns3::Socket> sender;
    ns3::Ptr<ns3::Socket> receiver;
    std::deque<Part> to_write;
    std::deque<Part> to_read;
    bool is_open = false;
};

/// A simulated network. There is one at a time: ns-3 keeps its clock and its events in one place.
class PacketNetwork
{
  public:
    PacketNetwork(std::int32_t num_hosts, const Transport& transport, std::uint32_t seed, std::uint64_t run)
        : m_transport(transport)
    {
        SetDefaults();
        ns3::RngSeedManager::SetSeed(seed);
        ns3::RngSeedManager::SetRun(run);
        m_hosts.Create(num_hosts);
        m_gateways.Create(num_hosts);
        ns3::InternetStackHelper stack;
        stack.Install(m_hosts);
        stack.Install(m_gateways);
        m_next_port.assign(num_hosts, 1024);
        for (std::int32_t host = 0; host < num_hosts; host++)
        {
            const Addresses ends = Join(m_hosts.Get(host), m_gateways.Get(host), kHostLink).second;
            m_addresses.push_back(ends[0]);
            Table(m_hosts.Get(host))->SetDefaultRoute(ends[1], 1);
        }
    }

    PacketNetwork(const PacketNetwork&) = delete;
    PacketNetwork& operator=(const PacketNetwork&) = delete;

    ~PacketNetwork()
    {
        m_connections.clear();
        m_reused.clear();
        ns3::Simulator::Destroy();
    }

    /// Joins the gateways of two hosts in both directions; links count from 0 in the order of calls.
    void AddLink(std::int32_t first, std::int32_t second, const Joint& joint)
    {
        auto [ends, addresses] = Join(m_gateways.Get(first), m_gateways.Get(second), joint);
        m_links.push_back(ends);
        m_link_addresses.push_back(addresses);
    }

    /// Lets the gateway at one end of a link send what is for a host over it; end 0 is the link's first gateway.
    void AddRoute(std::int32_t target, std::int32_t link, std::int32_t end)
    {
        ns3::Ptr<ns3::PointToPointNetDevice> device = m_links[link][end];
        ns3::Ptr<ns3::Node> gateway = device->GetNode();
        Table(gateway)->AddHostRouteTo(m_addresses[target],
                                       m_link_addresses[link][1 - end],
                                       gateway->GetObject<ns3::Ipv4>()->GetInterfaceForDevice(device));
    }

    /// Gives connections from one host to another a window of their own, before the first of them opens.
    void SetWindow(std::int32_t source, std::int32_t target, std::uint32_t initial_segments, std::uint32_t buffer_bytes)
    {
        m_windows[{source, target}] = {initial_segments, buffer_bytes};
    }

    /// Gives one direction of a link another rate from a time on; 0 takes it down: what crosses it then is lost.
    void ChangeRate(std::int32_t link, std::int32_t direction, std::int64_t time_ns, std::uint64_t rate_bits_per_s)
    {
        ns3::Simulator::Schedule(ns3::NanoSeconds(time_ns) - ns3::Simulator::Now(),
                                 &PacketNetwork::SetRate,
                                 this,
                                 link,
                                 direction,
                                 rate_bits_per_s);
    }

    /// Hands a message over at a time that is not past.
    void Send(std::int64_t message, std::int32_t source, std::int32_t target, std::uint64_t num_bytes, std::int64_t time_ns)
    {
        ns3::Simulator::ScheduleWithContext(source,
                                            ns3::NanoSeconds(time_ns) - ns3::Simulator::Now(),
                                            &PacketNetwork::Start,
                                            this,
                                            message,
                                            source,
                                            target,
                                            num_bytes);
    }

    /// Runs until a message arrives or a time has passed; returns the time reached. [ns]
    std::int64_t Advance(std::int64_t until_ns)
    {
        m_arrived.clear();
        const ns3::EventId end = ns3::Simulator::Schedule(ns3::NanoSeconds(until_ns) - ns3::Simulator::Now(),
                                                          [] { ns3::Simulator::Stop(); });
        ns3::Simulator::Run();
        ns3::Simulator::Cancel(end);
        return ns3::Simulator::Now().GetNanoSeconds();
    }

    std::size_t NumArrived() const { return m_arrived.size(); }
    std::int64_t Arrived(std::size_t place) const { return m_arrived[place]; }
    std::int64_t NowNs() const { return ns3::Simulator::Now().GetNanoSeconds(); }
    std::uint64_t NumEvents() const { return ns3::Simulator::GetEventCount(); }
    std::uint64_t NumDrops() const { return m_num_drops; }

  private:
    using Ends = std::array<ns3::Ptr<ns3::PointToPointNetDevice>, 2>;
    using Addresses = std::array<ns3::Ipv4Address, 2>;

    static ns3::Ptr<ns3::Ipv4StaticRouting> Table(ns3::Ptr<ns3::Node> node)
    {
        return ns3::Ipv4StaticRoutingHelper().GetStaticRouting(node->GetObject<ns3::Ipv4>());
    }

    void SetDefaults() const
    {
        using ns3::Config::SetDefault;
        const Transport& t = m_transport;
        SetDefault("ns3::TcpL4Protocol::SocketType",
                   ns3::TypeIdValue(ns3::TypeId::LookupByName(t.is_bbr ? "ns3::TcpBbr" : "ns3::TcpCubic")));
        SetDefault("ns3::TcpSocket::SegmentSize", ns3::UintegerValue(t.segment_size_bytes));
        SetDefault("ns3::TcpSocket::InitialCwnd", ns3::UintegerValue(t.initial_window_segments));
        SetDefault("ns3::TcpSocket::SndBufSize", ns3::UintegerValue(t.send_buffer_bytes));
        SetDefault("ns3::TcpSocket::RcvBufSize", ns3::UintegerValue(t.receive_buffer_bytes));
        SetDefault("ns3::TcpSocket::DelAckCount", ns3::UintegerValue(t.delayed_ack_count));
        SetDefault("ns3::TcpSocket::DelAckTimeout", ns3::TimeValue(ns3::NanoSeconds(t.delayed_ack_ns)));
        SetDefault("ns3::TcpSocketBase::MinRto", ns3::TimeValue(ns3::NanoSeconds(t.min_rto_ns)));
        SetDefault("ns3::TcpSocketBase::Sack", ns3::BooleanValue(true));
        SetDefault("ns3::TcpSocketState::MaxPacingRate", ns3::DataRateValue(ns3::DataRate(100000000000ULL)));
    }

    std::pair<Ends, Addresses> Join(ns3::Ptr<ns3::Node> first, ns3::Ptr<ns3::Node> second, const Joint& joint)
    {
        ns3::PointToPointHelper helper;
        helper.DisableFlowControl();
        helper.SetDeviceAttribute("Mtu", ns3::UintegerValue(m_transport.segment_size_bytes + kHeaderBytes));
        helper.SetChannelAttribute("Delay", ns3::TimeValue(ns3::NanoSeconds(joint.delay_ns)));
        const ns3::QueueSize room(ns3::QueueSizeUnit::BYTES, joint.queue_bytes);
        helper.SetQueue("ns3::DropTailQueue", "MaxSize", ns3::QueueSizeValue(room));
        const ns3::NetDeviceContainer devices = helper.Install(first, second);
        m_num_joints++;
        Ends ends;
        for (std::uint32_t end = 0; end < 2; end++)
        {
            ends[end] = ns3::DynamicCast<ns3::PointToPointNetDevice>(devices.Get(end));
            if (m_transport.acknowledges_first)
            {
                const auto queue = ns3::CreateObject<AcknowledgementsFirst>();
                queue->SetMaxSize(room);
                ends[end]->SetQueue(queue);
            }
            ends[end]->SetDataRate(ns3::DataRate(end == 0 ? joint.there_bits_per_s : joint.back_bits_per_s));
            if (joint.loss_fraction > 0)
            {
                auto losses = Losses(joint.loss_fraction);
                losses->AssignStreams(1000 + 2 * m_num_joints + end);
                ends[end]->SetReceiveErrorModel(losses);
            }
            ends[end]->GetQueue()->TraceConnectWithoutContext("Drop", ns3::MakeCallback(&PacketNetwork::Dropped, this));
        }
        ns3::Ipv4AddressHelper addresses;
        addresses.SetBase(ns3::Ipv4Address(kFirstAddress + 4 * (m_num_joints - 1)), ns3::Ipv4Mask("255.255.255.252"));
        const ns3::Ipv4InterfaceContainer interfaces = addresses.Assign(devices);
        return {ends, {interfaces.GetAddress(0), interfaces.GetAddress(1)}};
    }

    static ns3::Ptr<ns3::RateErrorModel> Losses(double fraction)
    {
        auto losses = ns3::CreateObject<ns3::RateErrorModel>();
        losses->SetUnit(ns3::RateErrorModel::ERROR_UNIT_PACKET);
        losses->SetRate(fraction);
        return losses;
    }

    void SetRate(std::int32_t link, std::int32_t direction, std::uint64_t rate_bits_per_s)
    {
        const ns3::Ptr<ns3::PointToPointNetDevice> receiver = m_links[link][1 - direction];
        const std::pair<std::int32_t, std::int32_t> key{link, direction};
        if (rate_bits_per_s == 0 && m_losses.count(key) == 0)
        {
            ns3::PointerValue before;
            receiver->GetAttribute("ReceiveErrorModel", before);
            m_losses[key] = before.Get<ns3::ErrorModel>();
            receiver->SetReceiveErrorModel(Losses(1.0));
        }
        if (rate_bits_per_s == 0)
        {
            return;
        }
        m_links[link][direction]->SetDataRate(ns3::DataRate(rate_bits_per_s));
        const auto before = m_losses.find(key);
        if (before != m_losses.end())
        {
            receiver->SetReceiveErrorModel(before->second);
            m_losses.erase(before);
        }
    }

    void Dropped(ns3::Ptr<const ns3::Packet>) { m_num_drops++; }

    void Start(std::int64_t message, std::int32_t source, std::int32_t target, std::uint64_t num_bytes)
    {
        const std::int32_t flows = m_transport.num_flows;
        m_open_parts[message] = flows;
        for (std::int32_t flow = 0; flow < flows; flow++)
        {
            const std::uint64_t part = num_bytes / flows + (flow < static_cast<std::int64_t>(num_bytes % flows) ? 1 : 0);
            std::shared_ptr<Connection> connection = ConnectionFor(source, target, flow);
            connection->to_read.push_back({message, part});
            connection->to_write.push_back({message, part});
            if (part == 0)
            {
                Read(connection.get(), 0);
            }
            else if (connection->is_open)
            {
                Write(connection.get());
            }
        }
    }

    std::shared_ptr<Connection> ConnectionFor(std::int32_t source, std::int32_t target, std::int32_t flow)
    {
        const std::vector<std::int32_t> key{source, target, flow};
        if (m_transport.reuses_connections)
        {
            auto found = m_reused.find(key);
            if (found != m_reused.end())
            {
                return found->second;
            }
        }
        std::shared_ptr<Connection> connection = Open(source, target);
        if (m_transport.reuses_connections)
        {
            m_reused[key] = connection;
        }
        return connection;
    }

    std::shared_ptr<Connection> Open(std::int32_t source, std::int32_t target)
    {
        auto connection = std::make_shared<Connection>();
        Connection* plain = connection.get();
        m_connections.push_back(connection);
        const std::uint16_t port = m_next_port[target]++;
        ns3::Ptr<ns3::Socket> listener =
            ns3::Socket::CreateSocket(m_hosts.Get(target), ns3::TcpSocketFactory::GetTypeId());
        SetWindowOf(*listener, source, target);
        listener->Bind(ns3::InetSocketAddress(ns3::Ipv4Address::GetAny(), port));
        listener->Listen();
        listener->SetAcceptCallback(ns3::MakeNullCallback<bool, ns3::Ptr<ns3::Socket>, const ns3::Address&>(),
                                    ns3::Callback<void, ns3::Ptr<ns3::Socket>, const ns3::Address&>(
                                        [this, plain](ns3::Ptr<ns3::Socket> socket, const ns3::Address&) {
                                            plain->receiver = socket;
                                            socket->SetRecvCallback(ns3::Callback<void, ns3::Ptr<ns3::Socket>>(
                                                [this, plain](ns3::Ptr<ns3::Socket> from) { Receive(plain, from); }));
                                        }));
        connection->sender = ns3::Socket::CreateSocket(m_hosts.Get(source), ns3::TcpSocketFactory::GetTypeId());
        SetWindowOf(*connection->sender, source, target);
        connection->sender->SetConnectCallback(ns3::Callback<void, ns3::Ptr<ns3::Socket>>(
                                                   [this, plain](ns3::Ptr<ns3::Socket>) {
                                                       plain->is_open = true;
                                                       Write(plain);
                                                   }),
                                               ns3::MakeNullCallback<void, ns3::Ptr<ns3::Socket>>());
        connection->sender->SetSendCallback(ns3::Callback<void, ns3::Ptr<ns3::Socket>, std::uint32_t>(
            [this, plain](ns3::Ptr<ns3::Socket>, std::uint32_t) {
                if (plain->is_open)
                {
                    Write(plain);
                }
            }));
        connection->sender->Connect(ns3::InetSocketAddress(m_addresses[target], port));
        return connection;
    }

    void SetWindowOf(ns3::Socket& socket, std::int32_t source, std::int32_t target) const
    {
        const auto window = m_windows.find({source, target});
        if (window != m_windows.end())
        {
            socket.SetAttribute("InitialCwnd", ns3::UintegerValue(window->second.initial_segments));
            socket.SetAttribute("SndBufSize", ns3::UintegerValue(window->second.buffer_bytes));
            socket.SetAttribute("RcvBufSize", ns3::UintegerValue(window->second.buffer_bytes));
        }
    }

    void Write(Connection* connection)
    {
        while (!connection->to_write.empty())
        {
            Part& part = connection->to_write.front();
            const std::uint64_t piece = std::min<std::uint64_t>(m_transport.segment_size_bytes, part.left_bytes);
            if (connection->sender->GetTxAvailable() < piece)
            {
                return;
            }
            if (piece > 0 && connection->sender->Send(ns3::Create<ns3::Packet>(piece)) < 0)
            {
                return;
            }
            part.left_bytes -= piece;
            if (part.left_bytes == 0)
            {
                connection->to_write.pop_front();
            }
        }
    }

    void Receive(Connection* connection, ns3::Ptr<ns3::Socket> from)
    {
        // One segment a call: ns-3 copies the data of all packets that a call returns.
        while (ns3::Ptr<ns3::Packet> packet = from->Recv(m_transport.segment_size_bytes, 0))
        {
            if (packet->GetSize() == 0)
            {
                return;
            }
            Read(connection, packet->GetSize());
        }
    }

    void Read(Connection* connection, std::uint64_t num_bytes)
    {
        while (!connection->to_read.empty())
        {
            Part& part = connection->to_read.front();
            const std::uint64_t piece = std::min(num_bytes, part.left_bytes);
            part.left_bytes -= piece;
            num_bytes -= piece;
            if (part.left_bytes > 0)
            {
                return;
            }
            Finish(part.message);
            connection->to_read.pop_front();
            if (num_bytes == 0 && (connection->to_read.empty() || connection->to_read.front().left_bytes > 0))
            {
                return;
            }
        }
    }

    void Finish(std::int64_t message)
    {
        if (--m_open_parts[message] == 0)
        {
            m_open_parts.erase(message);
            m_arrived.push_back(message);
            ns3::Simulator::Stop();
        }
    }

    Transport m_transport;
    ns3::NodeContainer m_hosts;
    ns3::NodeContainer m_gateways;
    std::int64_t m_num_joints = 0;
    std::uint64_t m_num_drops = 0;
    std::vector<std::uint16_t> m_next_port;
    std::vector<ns3::Ipv4Address> m_addresses;
    std::vector<Ends> m_links;
    std::vector<Addresses> m_link_addresses;
    std::map<std::pair<std::int32_t, std::int32_t>, Window> m_windows;
    std::map<std::pair<std::int32_t, std::int32_t>, ns3::Ptr<ns3::ErrorModel>> m_losses;
    std::vector<std::shared_ptr<Connection>> m_connections;
    std::map<std::vector<std::int32_t>, std::shared_ptr<Connection>> m_reused;
    std::map<std::int64_t, std::int32_t> m_open_parts;
    std::vector<std::int64_t> m_arrived;
};

} // namespace eastwest
