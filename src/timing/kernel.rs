//! The streaming kernel, cycle by cycle, without its data: `ws_realign`, `ws_job_parser`,
//! `ws_job_walk`, `ws_group`, `ws_issue`, the pipeline of fixed length behind it, `ws_result`.

use std::collections::VecDeque;

use super::config::{Config, Kind, Walk};
use crate::regs::job::{FOOTER_BYTES, HEADER_BYTES};

/// A job as its packet lies on the stream.
#[derive(Clone, Copy, Debug)]
pub(super) struct Packet {
    /// Beats of the packet, and bytes of the last.
    pub beats: u64,
    pub last_bytes: u32,
    pub activations: Option<Walk>,
    pub weights: Walk,
    pub rows: u64,
    pub cols: u32,
    pub skip: u32,
}

/// Words of the result buffer (`ResultDepth`).
const CREDITS: u32 = 64;
/// From a slot to its word at the result buffer, beside log2(lanes): `LaneLatency` 12, `ws_acc` 2,
/// `ws_round` 6.
const PIPELINE: u64 = 12 + 2 + 6;
const FOOTER_WORDS: u32 = FOOTER_BYTES as u32 / 4;

/// What goes down from the parser: an extraction, or a footer token.
#[derive(Clone, Copy, Debug)]
struct Label {
    kind: Kind,
    piece_last: bool,
    slots: u32,
    /// The last slots that make a word each.
    words: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Header(u32),
    Check,
    Decide,
    Activations,
    Pad,
    Weights,
    End,
}

/// Why the kernel did not take a beat that was there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hold {
    Parser,
    Lanes,
    Output,
}

/// What a cycle brought.
pub(super) struct Step {
    /// The kernel takes a beat where one is offered.
    pub ready: bool,
    /// A row of weights has been parsed to its end.
    pub row_done: bool,
}

pub(super) struct Kernel {
    bus: u32,
    words_most: u32,
    pipeline: u64,
    bus_words: u32,
    packets: Vec<Packet>,
    /// The packet whose beats come in, and the one that is parsed.
    accepting: usize,
    parsing: usize,
    /// Words of the answers that are yet to go out, after the present one.
    answers: VecDeque<u64>,
    // ws_realign: input register, word buffer, output pipeline
    in_beat: Option<(bool, u32)>,
    arrived: u64,
    words: u32,
    avail: u32,
    pos: u32,
    line: u32,
    ended: bool,
    sel: Option<Label>,
    raw: Option<Label>,
    // ws_job_parser, ws_job_walk
    state: State,
    need: u32,
    walk: Walk,
    rows_left: u64,
    group: u32,
    piece: u32,
    footer_busy: bool,
    footer_done: bool,
    // ws_group: skid register, second buffer
    skid: Option<Label>,
    held: Option<Label>,
    // ws_issue
    slot: u32,
    used: u32,
    room: bool,
    stored: [bool; 2],
    // The pipeline: when each word comes out; the last of a footer.
    due: VecDeque<(u64, bool)>,
    // ws_result
    buffered: u32,
    popped: bool,
    packed: u32,
    words_left: u64,
    pub out: Option<bool>,
    hold: Hold,
}

impl Kernel {
    pub fn new(config: &Config, packets: &[Packet]) -> Kernel {
        let answers = packets
            .iter()
            .map(|p| p.rows * u64::from(p.cols) + u64::from(FOOTER_WORDS));
        let mut answers: VecDeque<u64> = answers.collect();
        Kernel {
            bus: config.bus_bytes as u32,
            words_most: config.realign_words(),
            pipeline: PIPELINE + config.levels(),
            bus_words: config.bus_bytes as u32 / 4,
            packets: packets.to_vec(),
            accepting: 0,
            parsing: 0,
            words_left: answers.pop_front().unwrap_or(0),
            answers,
            in_beat: None,
            arrived: 0,
            words: 0,
            avail: 0,
            pos: 0,
            line: 0,
            ended: false,
            sel: None,
            raw: None,
            state: State::Header(0),
            need: 0,
            walk: packets[0].weights,
            rows_left: 0,
            group: 0,
            piece: 0,
            footer_busy: false,
            footer_done: false,
            skid: None,
            held: None,
            slot: 0,
            used: 0,
            room: true,
            stored: [false; 2],
            due: VecDeque::new(),
            buffered: 0,
            popped: false,
            packed: 0,
            out: None,
            hold: Hold::Parser,
        }
    }

    /// Why the last cycle took no beat, if one was offered.
    pub fn hold(&self) -> Hold {
        self.hold
    }

    /// One cycle, from the output back to the input. `out_ready`: the beat in `out` is taken.
    pub fn step(&mut self, now: u64, offered: bool, out_ready: bool) -> Step {
        let popped = self.result(out_ready);
        let done = self.issue(now);
        let raw_ready = self.group(done);
        let step = self.parse(offered, raw_ready);
        if std::mem::take(&mut self.footer_done) {
            self.footer_busy = false;
        }
        // ws_issue's credits see a word leave two cycles after it does.
        self.used -= u32::from(std::mem::replace(&mut self.popped, popped));
        self.room = self.used != CREDITS;
        step
    }

    /// `ws_result` and `ws_footer`. Whether a word left the buffer.
    fn result(&mut self, out_ready: bool) -> bool {
        let complete = self.packed + 1 == self.bus_words || self.words_left == 1;
        let pop = self.buffered != 0 && (!complete || self.out.is_none() || out_ready);
        if self.out.is_some() && out_ready {
            self.out = None;
        }
        if pop {
            self.buffered -= 1;
            self.words_left -= 1;
            self.packed = if complete { 0 } else { self.packed + 1 };
            if complete {
                let last = self.words_left == 0;
                self.out = Some(last);
                if last {
                    self.words_left = self.answers.pop_front().unwrap_or(0);
                }
            }
        }
        pop
    }

    /// `ws_issue`; whether the group is done with.
    fn issue(&mut self, now: u64) -> bool {
        // Words that come out of the pipeline in this cycle are in the buffer in the next.
        while let Some(&(at, footer)) = self.due.front()
            && at <= now
        {
            self.due.pop_front();
            self.buffered += 1;
            self.footer_done |= footer;
        }
        let store_busy = self.stored[0] || self.stored[1];
        let mut store = false;
        let mut done = false;
        if let Some(label) = self.held {
            let makes = self.slot + label.words >= label.slots;
            let blocked = makes && !self.room;
            self.hold = if blocked { Hold::Output } else { Hold::Lanes };
            if !(blocked || label.kind == Kind::Weights && store_busy) {
                store = label.kind == Kind::Activations;
                self.slot += 1;
                done = self.slot == label.slots;
                if makes {
                    self.used += 1;
                    let last = label.kind == Kind::Footer && done;
                    self.due.push_back((now + self.pipeline, last));
                }
                if done {
                    self.slot = 0;
                    self.hold = Hold::Parser;
                }
            }
        } else {
            self.hold = Hold::Parser;
        }
        self.stored = [store, self.stored[0]];
        done
    }

    /// `ws_group`; whether it takes what `ws_realign` holds out.
    fn group(&mut self, done: bool) -> bool {
        let ready = self.skid.is_none();
        let input = self.skid.or(self.raw);
        let free = self.held.is_none() || done;
        if done {
            self.held = None;
        }
        if let Some(label) = input {
            if !label.piece_last || free {
                if label.piece_last {
                    self.held = Some(label);
                }
                self.skid = None;
            } else {
                self.skid = Some(label);
            }
        }
        ready
    }

    /// `ws_realign`'s output pipeline, `ws_job_parser`, and `ws_realign`'s word buffer.
    fn parse(&mut self, offered: bool, raw_ready: bool) -> Step {
        let raw_go = self.raw.is_none() || raw_ready;
        let push_ready = self.sel.is_none() || raw_go;
        let in_move = self.in_beat.is_some() && !self.ended && self.words != self.words_most;

        let mut push = None;
        let mut row_done = false;
        let mut next_packet = false;
        let packet = self.packets[self.parsing.min(self.packets.len() - 1)];
        match self.state {
            State::Header(word) => {
                if self.words != 0 {
                    self.skip_word();
                    let last = word + 1 == HEADER_BYTES as u32 / self.bus;
                    self.state = if last {
                        State::Check
                    } else {
                        State::Header(word + 1)
                    };
                }
            }
            State::Check => self.state = State::Decide,
            State::Decide => match packet.activations {
                Some(walk) => {
                    self.begin(walk, u64::from(packet.cols));
                    self.state = State::Activations;
                }
                None => {
                    self.need = packet.skip;
                    self.state = State::Pad;
                }
            },
            State::Activations | State::Weights => {
                if self.avail >= self.need && push_ready {
                    self.take();
                    let (label, row, part) = self.extract();
                    push = Some(label);
                    let weights = self.state == State::Weights;
                    row_done = row && weights;
                    if part {
                        self.need = packet.skip;
                        self.state = if weights { State::End } else { State::Pad };
                    }
                }
            }
            State::Pad => {
                if self.line != 0 || self.pos != 0 {
                    if self.words != 0 {
                        self.skip_word();
                    }
                } else if self.avail >= self.need {
                    self.take();
                    self.begin(packet.weights, packet.rows);
                    self.state = State::Weights;
                }
            }
            State::End => {
                if push_ready && !self.footer_busy {
                    push = Some(Label {
                        kind: Kind::Footer,
                        piece_last: true,
                        slots: FOOTER_WORDS,
                        words: FOOTER_WORDS,
                    });
                    self.footer_busy = true;
                    (self.words, self.avail, self.pos, self.line) = (0, 0, 0, 0);
                    next_packet = true;
                    self.state = State::Header(0);
                }
            }
        }

        if raw_go {
            self.raw = self.sel;
        }
        if push_ready {
            self.sel = push;
        }
        let ready = self.in_beat.is_none() || in_move;
        if in_move && let Some((last, bytes)) = self.in_beat.take() {
            self.words += 1;
            self.avail += bytes;
            self.ended = last;
        }
        if next_packet {
            self.ended = false;
            self.parsing += 1;
        }
        if offered && ready {
            self.in_beat = Some(self.accept());
        }
        Step { ready, row_done }
    }

    /// The beat that comes in: whether it is its packet's last, and its bytes.
    fn accept(&mut self) -> (bool, u32) {
        let packet = self.packets[self.accepting];
        self.arrived += 1;
        let last = self.arrived == packet.beats;
        if last {
            self.arrived = 0;
            self.accepting += 1;
        }
        (last, if last { packet.last_bytes } else { self.bus })
    }

    fn begin(&mut self, walk: Walk, rows: u64) {
        self.walk = walk;
        self.rows_left = rows;
        self.group = 0;
        self.piece = 0;
        self.need = self.piece_bytes();
    }

    fn pieces(&self) -> super::config::Group {
        if self.group + 1 == self.walk.groups {
            self.walk.tail
        } else {
            self.walk.full
        }
    }

    fn piece_bytes(&self) -> u32 {
        let group = self.pieces();
        if self.piece + 1 == group.pieces {
            group.last
        } else {
            group.piece
        }
    }

    /// `ws_job_walk`'s step: the present extraction's label, whether it ends its row, its part.
    fn extract(&mut self) -> (Label, bool, bool) {
        let group = self.pieces();
        let piece_last = self.piece + 1 == group.pieces;
        let group_last = self.group + 1 == self.walk.groups;
        let label = Label {
            kind: self.walk.kind,
            piece_last,
            slots: self.walk.slots,
            words: if group_last { self.walk.words } else { 0 },
        };
        self.piece = if piece_last { 0 } else { self.piece + 1 };
        let row = piece_last && group_last;
        if piece_last {
            self.group = if group_last { 0 } else { self.group + 1 };
        }
        if row {
            self.rows_left -= 1;
        }
        self.need = self.piece_bytes();
        (label, row, self.rows_left == 0)
    }

    fn take(&mut self) {
        let moved = self.pos + self.need;
        self.drop_words(moved / self.bus);
        self.pos = moved % self.bus;
        self.avail -= self.need;
    }

    fn skip_word(&mut self) {
        self.avail = if self.words == 1 {
            0
        } else {
            self.avail - (self.bus - self.pos)
        };
        self.drop_words(1);
        self.pos = 0;
    }

    fn drop_words(&mut self, n: u32) {
        self.words -= n;
        self.line = (self.line + n) % (HEADER_BYTES as u32 / self.bus).max(1);
    }
}
