#include "catena/core/stream.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "catena/core/error.h"
#include "error_text.h"

namespace catena {
namespace {

TEST(CpuStreams, IsAlwaysDone) {
  const Stream stream = Stream::create(cpu(2), StreamOptions{-1, false});
  EXPECT_EQ(stream.device(), cpu(2));
  EXPECT_TRUE(stream.done());
  stream.synchronize();
  const Event event = stream.record();
  EXPECT_TRUE(event.done());
  stream.wait(event);
  event.synchronize();
  EXPECT_TRUE(Stream::null(cpu(2)) == Stream::default_of(cpu(2)));
  EXPECT_TRUE(Stream::per_thread(cpu(2)) == Stream::default_of(cpu(2)));
}

TEST(CpuStreams, CallsBackAtOnce) {
  const Stream stream = Stream::create(cpu(1));
  std::string seen = "nothing";
  stream.add_callback([&](const Stream& s, const std::string& error) {
    EXPECT_TRUE(s == stream);
    seen = error;
  });
  EXPECT_EQ(seen, "");
  int calls = 0;
  stream.launch_host_func([&] { ++calls; });
  EXPECT_EQ(calls, 1);
  EXPECT_THROW(stream.add_callback({}), ValueError);
  EXPECT_THROW(stream.launch_host_func({}), ValueError);
}

TEST(UndefinedStream, EveryMethodNamesItself) {
  const Stream s;
  EXPECT_FALSE(s.defined());
  EXPECT_EQ(s.state(), nullptr);
  EXPECT_TRUE(s == Stream());
  const Stream good = Stream::create(cpu(1));
  const Event event = Event::create(cpu(1));
  const std::vector<std::pair<const char*, std::function<void()>>> calls = {
      {"Stream::device", [&] { s.device(); }},
      {"Stream::native", [&] { s.native(); }},
      {"Stream::use", [&] { s.use(); }},
      {"Stream::synchronize", [&] { s.synchronize(); }},
      {"Stream::query", [&] { s.query(); }},
      {"Stream::query", [&] { s.done(); }},
      {"Stream::wait", [&] { s.wait(event); }},
      {"Stream::wait", [&] { s.wait(Event()); }},
      {"Stream::wait", [&] { s.wait(good); }},
      {"Stream::wait", [&] { good.wait(s); }},
      {"Stream::record", [&] { s.record(); }},
      {"Stream::record", [&] { s.record(event); }},
      {"Stream::add_callback", [&] { s.add_callback([](const Stream&, const std::string&) {}); }},
      {"Stream::launch_host_func", [&] { s.launch_host_func([] {}); }},
      {"StreamScope", [&] { StreamScope scope(s); }},
      {"Event::record", [&] { event.record(s); }},
  };
  for (const auto& [name, call] : calls)
    expect_contains(error_of<ValueError>(call), {name, ": this stream is undefined"});
}

TEST(UndefinedEvent, IsCompleteOrRefused) {
  const Event e;
  EXPECT_FALSE(bool(e));
  EXPECT_TRUE(e.query());
  EXPECT_TRUE(e.done());
  e.synchronize();
  EXPECT_EQ(e.state(), nullptr);
  EXPECT_THROW(e.record(), ValueError);
  EXPECT_THROW(e.record(Stream::create(cpu(1))), ValueError);
  EXPECT_THROW(Event::elapsed_ms(e, e), ValueError);
  EXPECT_THROW(get_elapsed_time(e, e), ValueError);
}

TEST(CurrentStream, IsPerThreadAndDevice) {
  const Stream a = Stream::create(cpu(1)), b = Stream::create(cpu(1));
  {
    StreamScope outer(a);
    EXPECT_TRUE(current_stream(cpu(1)) == a);
    EXPECT_FALSE(current_stream(cpu(2)) == a);
    {
      StreamScope inner(b);
      EXPECT_TRUE(current_stream(cpu(1)) == b);
    }
    EXPECT_TRUE(current_stream(cpu(1)) == a);
    std::thread([&] { EXPECT_FALSE(current_stream(cpu(1)) == a); }).join();
    const DeviceScope device(cpu(1));
    EXPECT_TRUE(current_stream() == a);
  }
  EXPECT_TRUE(current_stream(cpu(1)) == Stream::default_of(cpu(1)));
  a.use();
  EXPECT_TRUE(current_stream(cpu(1)) == a);
  Stream::default_of(cpu(1)).use();
  EXPECT_TRUE(current_stream(cpu(1)) == Stream::default_of(cpu(1)));
}

TEST(CpuEvent, MeasuresTime) {
  const Event start = Event::create(cpu(0), true), stop = Event::create(cpu(0), true);
  start.record();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  current_stream(cpu(0)).record(stop);
  EXPECT_GE(get_elapsed_time(start, stop), 19);
  EXPECT_LE(Event::elapsed_ms(stop, start), -19);
}

// Work on a CPU is done when its call returns: every event is.
TEST(CpuEvent, IsDoneInEveryForm) {
  const Stream stream = Stream::create(cpu(1));
  for (const EventOptions& options :
       {EventOptions{}, EventOptions{true, true, false}, EventOptions{false, true, true}}) {
    const Event event = Event::create(cpu(1), options), copied = event;
    EXPECT_TRUE(bool(event));
    EXPECT_EQ(copied.state(), event.state()) << "copies share it";
    EXPECT_EQ(event.state()->device, cpu(1));
    EXPECT_EQ(event.state()->timing, options.timing);
    EXPECT_TRUE(event.done()) << "nothing was recorded";
    event.record(stream);
    EXPECT_TRUE(event.done() && copied.done());
    event.synchronize();
    stream.wait(event);
  }
  EXPECT_FALSE(Event::create(cpu(1)).state()->timing);
  EXPECT_TRUE(Event::create(cpu(1), true).state()->timing);
}

TEST(CpuEvent, RefusesWhatMakesNoSense) {
  EXPECT_THROW(Event::create(cpu(0), EventOptions{true, false, true}), ValueError);
  const Event plain = Event::create(cpu(0)), timed = Event::create(cpu(0), true),
              other = Event::create(cpu(1), EventOptions{true, true, false});
  EXPECT_THROW(get_elapsed_time(plain, timed), ValueError);
  EXPECT_THROW(get_elapsed_time(timed, Event()), ValueError);
  EXPECT_THROW(get_elapsed_time(timed, other), DeviceError);
  EXPECT_THROW(Event().record(), ValueError);
  EXPECT_THROW(Event().record(Stream::default_of(cpu(0))), ValueError);
  EXPECT_TRUE(Event().done()) << "no event is a past one";
}

}  // namespace
}  // namespace catena
