//! Simulated cycles in a second of one core's time, with jobs running and with nothing to do.

#[path = "../tests/rig/mod.rs"]
mod rig;

use std::time::Duration;

use rig::{
    Rig,
    jobs::{Job, TYPES, run},
};
use rustix::time::{ClockId, clock_gettime};
use weightstream_sim::{SimOptions, configs};

/// What this thread has used of a core. The machine may do other things beside.
fn used() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

fn report(config: &str, what: &str, cycles: u64, time: Duration) {
    let rate = cycles as f64 / time.as_secs_f64() / 1e6;
    let cost = time.as_secs_f64() * 1e9 / cycles as f64;
    println!("{config} {what}: {rate:.2} M cycles/s, {cost:.0} ns a cycle");
}

fn main() {
    for config in configs().iter().filter(|name| !name.starts_with("loop")) {
        let mut rig = Rig::new(config, 32 << 20, &SimOptions::default());
        let (start, begin) = (used(), rig.sim.now());
        rig.sim.run(300_000).unwrap();
        report(config, "idle", rig.sim.now() - begin, used() - start);
        for ty in TYPES {
            let (rows, k) = (576, 1536);
            let job = Job {
                ty,
                k,
                rows,
                cols: 1,
                skip: 0,
                activations: &vec![0x11; k / 32 * 34],
                weights: &vec![0x11; rows * k / ty.weights * ty.bytes],
            };
            let (start, begin) = (used(), rig.sim.now());
            for _ in 0..4 {
                run(&mut rig, std::slice::from_ref(&job));
            }
            report(config, ty.name, rig.sim.now() - begin, used() - start);
        }
    }
}
