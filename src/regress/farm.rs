//! Work on several threads, its results in order.

use std::collections::BTreeMap;
use std::sync::mpsc::sync_channel;
use std::sync::{Mutex, PoisonError};
use std::thread;

/// Does `work` on each of `items` on `threads` threads, and gives the results to `each` in the
/// order of the items. Items are taken as they are needed.
pub fn in_order<I: Send, T: Send>(
    items: impl Iterator<Item = I> + Send,
    threads: usize,
    work: impl Fn(I) -> T + Sync,
    mut each: impl FnMut(T),
) {
    let items = Mutex::new(items.enumerate());
    let next = || {
        let mut items = items.lock().unwrap_or_else(PoisonError::into_inner);
        items.next()
    };
    let (sender, receiver) = sync_channel(threads);
    thread::scope(|scope| {
        for _ in 0..threads {
            let (sender, next, work) = (sender.clone(), &next, &work);
            scope.spawn(move || {
                while let Some((number, item)) = next() {
                    // The receiver goes only when the scope ends.
                    let _ = sender.send((number, work(item)));
                }
            });
        }
        drop(sender);
        let mut early = BTreeMap::new();
        let mut wanted = 0;
        for (number, result) in receiver {
            early.insert(number, result);
            while let Some(result) = early.remove(&wanted) {
                each(result);
                wanted += 1;
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    #[test]
    fn results_come_in_order_though_the_first_takes_longest() {
        let together = AtomicUsize::new(0);
        let most = AtomicUsize::new(0);
        let work = |n: u64| {
            let now = together.fetch_add(1, Ordering::SeqCst) + 1;
            most.fetch_max(now, Ordering::SeqCst);
            thread::sleep(Duration::from_millis(20 - n));
            together.fetch_sub(1, Ordering::SeqCst);
            n * n
        };
        let mut results = Vec::new();
        in_order(0..20, 4, work, |square| results.push(square));
        assert_eq!(results, (0..20).map(|n| n * n).collect::<Vec<u64>>());
        assert!((2..=4).contains(&most.load(Ordering::SeqCst)));
    }

    #[test]
    fn no_items_are_no_results() {
        in_order(
            std::iter::empty::<u8>(),
            2,
            |n| n,
            |_| panic!("a result of nothing"),
        );
    }
}
