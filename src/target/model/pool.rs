//! Helper threads for jobs of some tens of microseconds.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// How long an idle helper looks for work before it sleeps. Jobs of a token follow each other
/// within tens of microseconds, and to wake a thread takes longer than most of them.
const SPIN: Duration = Duration::from_micros(60);
/// Looks at the state between two looks at the clock.
const LOOKS: u32 = 64;

/// What the helpers see. `state` holds, from bit 0: whether a task is open (1 bit), how many
/// helpers are in it (15 bits), its number (48 bits).
struct Shared {
    state: AtomicU64,
    /// The open task; written only while none is open and no helper is in one.
    task: std::cell::UnsafeCell<Option<Task>>,
    stop: AtomicBool,
}

#[derive(Clone, Copy)]
struct Task(*const (dyn Fn() + Sync));

const OPEN: u64 = 1;
const HELPER: u64 = 2;
const HELPERS: u64 = 0xFFFE;
const NUMBER: u64 = 1 << 16;

// SAFETY: `task` is written by the pool's owner alone, while no helper can read it, and what it
// points to is Sync.
unsafe impl Sync for Shared {}
// SAFETY: as above.
unsafe impl Send for Shared {}

struct Helper {
    asleep: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

/// Threads that run a closure together with the thread that uses the pool.
struct Pool {
    shared: Arc<Shared>,
    helpers: Vec<Helper>,
}

/// The pools in use, by their threads.
static POOLS: Mutex<Vec<(usize, Weak<Mutex<Pool>>)>> = Mutex::new(Vec::new());

/// A pool that several engines use, one at a time: their jobs follow each other, and helpers of
/// one's own would be in each other's way.
pub struct SharedPool(Arc<Mutex<Pool>>);

impl SharedPool {
    /// The pool of `threads` threads.
    pub fn of(threads: usize) -> SharedPool {
        let mut pools = POOLS.lock().unwrap_or_else(PoisonError::into_inner);
        pools.retain(|(_, pool)| pool.strong_count() != 0);
        let same = pools.iter().filter(|(n, _)| *n == threads);
        let pool = same.filter_map(|(_, pool)| pool.upgrade()).next();
        SharedPool(pool.unwrap_or_else(|| {
            let pool = Arc::new(Mutex::new(Pool::new(threads)));
            pools.push((threads, Arc::downgrade(&pool)));
            pool
        }))
    }

    /// As [`Pool::run`]; alone in this thread while another engine uses the pool.
    pub fn run(&self, work: &(dyn Fn() + Sync)) {
        match self.0.try_lock() {
            Ok(mut pool) => pool.run(work),
            Err(_) => work(),
        }
    }
}

impl Pool {
    /// A pool of `threads` threads, one of them the caller's. Helpers that the system does not
    /// give are done without.
    fn new(threads: usize) -> Pool {
        let shared = Arc::new(Shared {
            state: AtomicU64::new(0),
            task: std::cell::UnsafeCell::new(None),
            stop: AtomicBool::new(false),
        });
        let start = |i: usize| {
            let asleep = Arc::new(AtomicBool::new(false));
            let (ours, theirs) = (asleep.clone(), shared.clone());
            let thread = thread::Builder::new()
                .name(format!("weightstream-{i}"))
                .spawn(move || help(&theirs, &ours))
                .inspect_err(|e| log::warn!("the model runs with {i} threads: {e}"))
                .ok()?;
            Some(Helper { asleep, thread })
        };
        let helpers = (1..threads).map_while(start).collect();
        Pool { shared, helpers }
    }

    /// Runs `work` in this thread and in every helper that comes while this thread is at it;
    /// returns when all have returned. The closures share the work out among themselves.
    fn run(&mut self, work: &(dyn Fn() + Sync)) {
        if self.helpers.is_empty() {
            return work();
        }
        let shared = &*self.shared;
        // SAFETY: `&mut self` and the wait below mean that no task is open and no helper in one.
        // The lifetime is taken off; the wait keeps `work` alive for as long as it is used.
        unsafe {
            let work: *const (dyn Fn() + Sync + '_) = work;
            *shared.task.get() = Some(Task(std::mem::transmute::<
                *const (dyn Fn() + Sync + '_),
                *const (dyn Fn() + Sync + 'static),
            >(work)));
        }
        // Sequentially consistent, as in `help`: either a helper sees the task before it sleeps, or
        // it is seen asleep here.
        shared.state.fetch_add(NUMBER + OPEN, Ordering::SeqCst);
        let close = Close(shared);
        for helper in &self.helpers {
            if helper.asleep.swap(false, Ordering::SeqCst) {
                helper.thread.thread().unpark();
            }
        }
        work();
        drop(close);
    }
}

/// Closes the task, also when it panics, so that no helper outlives what it works on.
struct Close<'a>(&'a Shared);

impl Drop for Close<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state.fetch_sub(OPEN, Ordering::AcqRel);
        let mut looks = 0;
        while state & HELPERS != 0 {
            // A helper that was preempted needs a core to finish on.
            looks += 1;
            match looks % LOOKS {
                0 => thread::yield_now(),
                _ => std::hint::spin_loop(),
            }
            state = self.0.state.load(Ordering::Acquire);
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::SeqCst);
        for helper in self.helpers.drain(..) {
            helper.thread.thread().unpark();
            // A helper that panicked has nothing more to say than it said.
            let _ = helper.thread.join();
        }
    }
}

/// A helper's life.
fn help(shared: &Shared, asleep: &AtomicBool) {
    let mut last = 0;
    let mut idle_since = Instant::now();
    let mut looks = 0;
    while !shared.stop.load(Ordering::Relaxed) {
        let state = shared.state.load(Ordering::SeqCst);
        if state & OPEN != 0 && state / NUMBER != last {
            let entered = shared.state.compare_exchange(
                state,
                state + HELPER,
                Ordering::AcqRel,
                Ordering::Relaxed,
            );
            if entered.is_ok() {
                last = state / NUMBER;
                let _leave = Leave(shared);
                // SAFETY: the owner waits for this helper to leave before it changes the task or
                // lets go of what it points to.
                let task = unsafe { (*shared.task.get()).expect("an open task") };
                unsafe { (*task.0)() };
                idle_since = Instant::now();
            }
            continue;
        }
        looks += 1;
        if looks % LOOKS != 0 {
            std::hint::spin_loop();
            continue;
        }
        if idle_since.elapsed() < SPIN {
            // Whoever has work for this core goes first, above all the pool's owner.
            thread::yield_now();
            continue;
        }
        asleep.store(true, Ordering::SeqCst);
        let now = shared.state.load(Ordering::SeqCst);
        if (now & OPEN == 0 || now / NUMBER == last) && !shared.stop.load(Ordering::SeqCst) {
            thread::park();
        }
        asleep.store(false, Ordering::SeqCst);
        idle_since = Instant::now();
    }
}

struct Leave<'a>(&'a Shared);

impl Drop for Leave<'_> {
    fn drop(&mut self) {
        self.0.state.fetch_sub(HELPER, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;

    #[test]
    fn shares_work_out_exactly_once() {
        for threads in [1, 2, 4] {
            let mut pool = Pool::new(threads);
            for round in 0..2000usize {
                let mut items = vec![0usize; round % 37];
                let queue = Mutex::new(items.iter_mut());
                pool.run(&|| {
                    while let Some(item) = { queue.lock().unwrap().next() } {
                        *item += round;
                    }
                });
                assert!(items.iter().all(|item| *item == round));
                if round % 500 == 0 {
                    // Long enough for the helpers to fall asleep.
                    thread::sleep(SPIN * 5);
                }
            }
        }
    }

    #[test]
    fn engines_share_a_pool_and_do_not_wait_for_it() {
        let (one, two) = (SharedPool::of(3), SharedPool::of(3));
        assert!(Arc::ptr_eq(&one.0, &two.0));
        assert!(!Arc::ptr_eq(&one.0, &SharedPool::of(2).0));
        let used = one.0.lock().unwrap();
        let runs = AtomicUsize::new(0);
        two.run(&|| {
            runs.fetch_add(1, Ordering::SeqCst);
        });
        assert_eq!(runs.into_inner(), 1);
        drop(used);
    }

    #[test]
    fn helpers_take_part_and_end_with_the_pool() {
        let inside = Arc::new(AtomicUsize::new(0));
        let mut pool = Pool::new(2);
        // Only a helper lets this end.
        pool.run(&|| {
            inside.fetch_add(1, Ordering::SeqCst);
            while inside.load(Ordering::SeqCst) < 2 {
                thread::yield_now();
            }
        });
        let shared = Arc::downgrade(&pool.shared);
        drop(pool);
        assert!(shared.upgrade().is_none());
    }
}
