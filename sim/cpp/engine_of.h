// The clock loop over a Verilated model. A cycle is: inputs as the last cycle left them, clock low,
// settle, sample; clock high; drive what the ports decided.
#pragma once

#include <cerrno>
#include <cstdio>

#include "engine.h"
#include "hooks.h"
#include "ports.h"
#include "verilated.h"
#include "verilated_fst_c.h"

namespace ws {

template <class Model, class Root> class EngineOf : public Engine {
  public:
    static constexpr unsigned kBytes = sizeof(std::declval<Root&>().m_axi_mm2s_rdata);

    explicit EngineOf(const Settings& s)
        : memory_(s.memory, s.length, s.base, s.timing, s.dram, s.seed), watchdog_(s.watchdog),
          context_(new VerilatedContext) {
        Verilated::threadContextp(context_.get());
        context_->threads(1);
        context_->traceEverOn(true);
        // Registers without a reset start with seeded random bits, as on a board.
        context_->randReset(2);
        context_->randSeed(int(s.seed & 0x7FFFFFFF) | 1);
        model_.reset(new Model(context_.get(), "weightstream"));
        root_ = model_->rootp;
        reset(4);
    }

    ~EngineOf() override {
        // Verilator's destructors use the thread's context, which may be another simulation's.
        Verilated::threadContextp(context_.get());
        close_trace();
    }

    uint64_t now() const override { return now_; }
    uint32_t lines() const override { return lines_; }
    Memory& memory() override { return memory_; }

    std::array<uint64_t, kAxiChannels> beats() const override {
        return {ctrl_beats_[0], ctrl_beats_[1], ctrl_beats_[2], ctrl_beats_[3], ctrl_beats_[4],
                sg_write_.aw_beats, sg_write_.w_beats, sg_write_.b_beats, sg_read_.ar_beats,
                sg_read_.r_beats, mm2s_.ar_beats, mm2s_.r_beats, s2mm_.aw_beats, s2mm_.w_beats,
                s2mm_.b_beats};
    }

    uint32_t read32(uint32_t addr) override {
        guarded([&] {
            Root& r = *root_;
            r.s_axi_ctrl_araddr = addr;
            transfer({{Channel::CtrlAr, &r.s_axi_ctrl_arvalid}}, Channel::CtrlR);
        });
        return read_data_;
    }

    void write32(uint32_t addr, uint32_t value) override {
        guarded([&] {
            Root& r = *root_;
            r.s_axi_ctrl_awaddr = addr;
            r.s_axi_ctrl_wdata = value;
            r.s_axi_ctrl_wstrb = 0xF;
            transfer({{Channel::CtrlAw, &r.s_axi_ctrl_awvalid},
                      {Channel::CtrlW, &r.s_axi_ctrl_wvalid}},
                     Channel::CtrlB);
        });
    }

    uint32_t run(uint64_t cycles, uint32_t lines) override {
        guarded([&] {
            const uint64_t start = now_, end = now_ + cycles;
            while (now_ != end && !(lines_ & lines)) {
                cycle();
                if (now_ - last_move_ >= watchdog_) bite(lines && now_ - start >= watchdog_);
            }
        });
        return lines_;
    }

    void reset(uint32_t cycles) override {
        guarded([&] {
            Root& r = *root_;
            sg_read_.clear();
            sg_write_.clear();
            mm2s_.clear();
            s2mm_.clear();
            b_check_.clear();
            r_check_.clear();
            reset_ = true;
            r.aresetn = 0;
            r.s_axi_ctrl_awvalid = r.s_axi_ctrl_wvalid = r.s_axi_ctrl_arvalid = 0;
            r.s_axi_ctrl_bready = r.s_axi_ctrl_rready = 0;
            drive();
            // The accelerator sees its reset at the first edge, and may register it once. Until
            // then its outputs and its assertions' inputs are noise.
            look_ = false;
            context_->assertOn(false);
            cycle();
            look_ = true;
            cycle();
            context_->assertOn(true);
            for (uint32_t i = 2; i < cycles; ++i) cycle();
            reset_ = false;
            r.aresetn = 1;
            last_move_ = now_;
        });
    }

    void trace_start(const std::string& path, uint64_t first, uint64_t end) override {
        close_trace();
        // Verilator does not look whether the file could be made.
        FILE* file = fopen(path.c_str(), "wb");
        if (!file) throw trace_fault(strerror(errno));
        fclose(file);
        trace_path_ = path;
        trace_end_ = end;
        if (first > now_) {
            trace_turn_ = first;
        } else {
            turn_trace();
        }
    }

    void trace_stop() override { close_trace(); }

  protected:
    Root& root() { return *root_; }

  private:
    struct Request {
        Channel channel;
        CData* valid;
    };

    // Runs `f`. What goes wrong gets the cycle; a model that broke a rule is not run again.
    template <class F> void guarded(F f) {
        if (broken_) throw *broken_;
        Verilated::threadContextp(context_.get());
        try {
            f();
        } catch (Fault& fault) {
            fault.cycle = now_;
            if (fault.kind == FaultKind::Protocol) break_with(fault);
            throw;
        } catch (const RtlStop& stop) {
            const Fault fault{FaultKind::Assertion, Channel::None, now_, stop.message, stop.file,
                              stop.line};
            break_with(fault);
            throw fault;
        }
        const std::string text = take_text();
        if (!text.empty()) fputs(text.c_str(), stderr);
    }

    void break_with(const Fault& fault) {
        broken_.reset(new Fault(fault));
        if (trace_) trace_->flush();
    }

    void step(bool clock) {
        root_->aclk = clock;
        context_->time(2 * now_ + clock);
        model_->eval();
        if (__builtin_expect(trace_ != nullptr, 0)) trace_->dump(2 * now_ + clock);
    }

    void cycle() {
        Root& r = *root_;
        if (__builtin_expect(now_ == trace_turn_, 0)) turn_trace();
        step(false);
        if (look_) sample();
        step(true);
        ++now_;
        drive();
        lines_ = r.mm2s_introut | r.s2mm_introut << 1;
    }

    void sample() {
        Root& r = *root_;
        memory_.tick();
        bool moved = sg_read_.sample(now_, reset_, r.m_axi_sg_arvalid, r.m_axi_sg_rready, [&r] {
            return Addr{r.m_axi_sg_araddr, r.m_axi_sg_arlen, r.m_axi_sg_arsize, r.m_axi_sg_arburst};
        });
        moved |= sg_write_.sample(
            now_, reset_, r.m_axi_sg_awvalid, r.m_axi_sg_wvalid, &r.m_axi_sg_wdata,
            r.m_axi_sg_wstrb, r.m_axi_sg_wlast, r.m_axi_sg_bready, [&r] {
                return Addr{r.m_axi_sg_awaddr, r.m_axi_sg_awlen, r.m_axi_sg_awsize,
                            r.m_axi_sg_awburst};
            });
        moved |= mm2s_.sample(now_, reset_, r.m_axi_mm2s_arvalid, r.m_axi_mm2s_rready, [&r] {
            return Addr{r.m_axi_mm2s_araddr, r.m_axi_mm2s_arlen, r.m_axi_mm2s_arsize,
                        r.m_axi_mm2s_arburst};
        });
        moved |= s2mm_.sample(
            now_, reset_, r.m_axi_s2mm_awvalid, r.m_axi_s2mm_wvalid, &r.m_axi_s2mm_wdata,
            r.m_axi_s2mm_wstrb, r.m_axi_s2mm_wlast, r.m_axi_s2mm_bready, [&r] {
                return Addr{r.m_axi_s2mm_awaddr, r.m_axi_s2mm_awlen, r.m_axi_s2mm_awsize,
                            r.m_axi_s2mm_awburst};
            });
        if (moved) last_move_ = now_ + 1;
        if (r.s_axi_ctrl_bvalid || r.s_axi_ctrl_rvalid || in_transfer_) sample_ctrl();
    }

    // AXI4-Lite: what moves in this cycle.
    void sample_ctrl() {
        Root& r = *root_;
        if (reset_ && r.s_axi_ctrl_bvalid) violation(Channel::CtrlB, "VALID is high during reset");
        if (reset_ && r.s_axi_ctrl_rvalid) violation(Channel::CtrlR, "VALID is high during reset");
        b_check_.cycle(r.s_axi_ctrl_bvalid, r.s_axi_ctrl_bready, true, r.s_axi_ctrl_bresp);
        r_check_.cycle(r.s_axi_ctrl_rvalid, r.s_axi_ctrl_rready, true,
                       r.s_axi_ctrl_rdata | uint64_t(r.s_axi_ctrl_rresp) << 32);
        const uint8_t valid[5] = {r.s_axi_ctrl_awvalid, r.s_axi_ctrl_wvalid, r.s_axi_ctrl_bvalid,
                                  r.s_axi_ctrl_arvalid, r.s_axi_ctrl_rvalid};
        const uint8_t ready[5] = {r.s_axi_ctrl_awready, r.s_axi_ctrl_wready, r.s_axi_ctrl_bready,
                                  r.s_axi_ctrl_arready, r.s_axi_ctrl_rready};
        ctrl_moved_ = 0;
        for (unsigned i = 0; i < 5; ++i) {
            const bool fire = valid[i] && ready[i];
            ctrl_moved_ |= unsigned(fire) << i;
            ctrl_beats_[i] += fire;
        }
        if (ctrl_moved_ >> unsigned(Channel::CtrlB) & 1) reply_ = r.s_axi_ctrl_bresp;
        if (ctrl_moved_ >> unsigned(Channel::CtrlR) & 1) {
            reply_ = r.s_axi_ctrl_rresp;
            read_data_ = r.s_axi_ctrl_rdata;
        }
        // The last of a write's address and data makes its response due.
        const unsigned write = ctrl_moved_ & 3;
        write_taken_ |= write;
        if (write && write_taken_ == 3) {
            b_check_.due(0);
            write_taken_ = 0;
        }
        if (ctrl_moved_ >> unsigned(Channel::CtrlAr) & 1) r_check_.due(0);
    }

    // One AXI4-Lite transfer. The requests are raised at once, or at random apart when the
    // channel has stalls.
    void transfer(std::initializer_list<Request> requests, Channel reply) {
        Root& r = *root_;
        CData& ready = reply == Channel::CtrlB ? r.s_axi_ctrl_bready : r.s_axi_ctrl_rready;
        const uint64_t start = now_;
        unsigned raised = 0, done = 0;
        const unsigned reply_bit = 1u << unsigned(reply);
        in_transfer_ = true;
        while (!(done & reply_bit)) {
            for (const Request& q : requests) {
                const unsigned bit = 1u << unsigned(q.channel);
                if (!(raised & bit) && !memory_.stall(q.channel)) {
                    *q.valid = 1;
                    raised |= bit;
                }
            }
            ready = !memory_.stall(reply);
            cycle();
            done |= ctrl_moved_;
            for (const Request& q : requests) {
                if (ctrl_moved_ >> unsigned(q.channel) & 1) *q.valid = 0;
            }
            if (now_ - start >= watchdog_) {
                Channel stuck = reply;
                for (const Request& q : requests) {
                    if (!(done >> unsigned(q.channel) & 1)) stuck = q.channel;
                }
                // Only a reset frees the port.
                in_transfer_ = false;
                throw Fault{FaultKind::Watchdog, stuck, now_, {}, {}, 0};
            }
        }
        ready = 0;
        in_transfer_ = false;
        ctrl_moved_ = 0;
        if (reply_ != kOkay) violation(reply, "a response of " + std::to_string(reply_));
    }

    // What the ports decided, onto the model's inputs. IDs stay 0.
    void drive() {
        Root& r = *root_;
        r.m_axi_sg_arready = sg_read_.arready;
        r.m_axi_sg_rvalid = sg_read_.rvalid;
        if (sg_read_.rvalid) {
            r.m_axi_sg_rlast = sg_read_.rlast;
            r.m_axi_sg_rresp = sg_read_.rresp;
            sg_read_.put_data(&r.m_axi_sg_rdata);
        }
        r.m_axi_sg_awready = sg_write_.awready;
        r.m_axi_sg_wready = sg_write_.wready;
        r.m_axi_sg_bvalid = sg_write_.bvalid;
        r.m_axi_sg_bresp = sg_write_.bresp;
        r.m_axi_mm2s_arready = mm2s_.arready;
        r.m_axi_mm2s_rvalid = mm2s_.rvalid;
        if (mm2s_.rvalid) {
            r.m_axi_mm2s_rlast = mm2s_.rlast;
            r.m_axi_mm2s_rresp = mm2s_.rresp;
            mm2s_.put_data(&r.m_axi_mm2s_rdata);
        }
        r.m_axi_s2mm_awready = s2mm_.awready;
        r.m_axi_s2mm_wready = s2mm_.wready;
        r.m_axi_s2mm_bvalid = s2mm_.bvalid;
        r.m_axi_s2mm_bresp = s2mm_.bresp;
    }

    // Nothing has moved on the memory's ports for long. Is something stuck? Silence alone counts
    // only for one who waits for an interrupt.
    void bite(bool silence_counts) {
        const Root& r = *root_;
        Channel stuck = mm2s_.stuck(r.m_axi_mm2s_arvalid);
        if (stuck == Channel::None) {
            stuck = s2mm_.stuck(r.m_axi_s2mm_awvalid, r.m_axi_s2mm_wvalid);
        }
        if (stuck == Channel::None) stuck = sg_read_.stuck(r.m_axi_sg_arvalid);
        if (stuck == Channel::None) {
            stuck = sg_write_.stuck(r.m_axi_sg_awvalid, r.m_axi_sg_wvalid);
        }
        if (stuck == Channel::None && r.weightstream__DOT__s2mm_tvalid &&
            !r.weightstream__DOT__s2mm_tready) {
            stuck = Channel::KernelOut;
        }
        if (stuck == Channel::None && r.weightstream__DOT__mm2s_tvalid &&
            !r.weightstream__DOT__mm2s_tready) {
            stuck = Channel::KernelIn;
        }
        last_move_ = now_;
        if (stuck == Channel::None && !silence_counts) return;
        throw Fault{FaultKind::Watchdog, stuck, now_, {}, {}, 0};
    }

    // The cycle has come in which the trace begins or ends.
    void turn_trace() {
        if (trace_) return close_trace();
        trace_turn_ = trace_end_;
        trace_.reset(new VerilatedFstC);
        model_->trace(trace_.get(), 99);
        trace_->open(trace_path_.c_str());
        if (!trace_->isOpen()) {
            close_trace();
            throw trace_fault("the FST writer could not open it");
        }
    }

    void close_trace() {
        trace_turn_ = kNever;
        if (trace_) trace_->close();
        trace_.reset();
    }

    Fault trace_fault(const char* message) const {
        return Fault{FaultKind::Trace, Channel::None, now_, message, {}, 0};
    }

    Memory memory_;
    const uint64_t watchdog_;
    ReadPort<4> sg_read_{memory_, Channel::SgAr, Channel::SgR};
    WritePort<4> sg_write_{memory_, Channel::SgAw, Channel::SgW, Channel::SgB};
    ReadPort<kBytes> mm2s_{memory_, Channel::Mm2sAr, Channel::Mm2sR};
    WritePort<kBytes> s2mm_{memory_, Channel::S2mmAw, Channel::S2mmW, Channel::S2mmB};
    ReplyChecker b_check_{Channel::CtrlB}, r_check_{Channel::CtrlR};

    uint64_t now_ = 0, last_move_ = 0;
    uint32_t lines_ = 0;
    bool reset_ = false, look_ = true, in_transfer_ = false;
    unsigned ctrl_moved_ = 0, write_taken_ = 0;
    uint64_t ctrl_beats_[5] = {};
    uint32_t read_data_ = 0;
    uint8_t reply_ = kOkay;
    std::unique_ptr<Fault> broken_;

    std::unique_ptr<VerilatedContext> context_;
    std::unique_ptr<Model> model_;
    Root* root_;
    std::unique_ptr<VerilatedFstC> trace_;
    std::string trace_path_;
    static constexpr uint64_t kNever = ~uint64_t(0);
    uint64_t trace_turn_ = kNever;  // the cycle in which the trace begins or ends
    uint64_t trace_end_ = kNever;
};

}  // namespace ws
