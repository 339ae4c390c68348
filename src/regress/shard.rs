//! One of several equal parts of a set of cases.

use std::fmt;
use std::str::FromStr;

use sha2::{Digest, Sha256};

/// Shard `number` of `of`, counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    pub number: u64,
    pub of: u64,
}

impl Shard {
    /// Whether the case `name` is in this shard. It is in exactly one, whatever other cases there
    /// are: a hash of its name decides.
    pub fn has(&self, name: &str) -> bool {
        let hash = Sha256::digest(name.as_bytes());
        let word = u64::from_le_bytes(hash[..8].try_into().expect("a digest has 32 bytes"));
        word % self.of == self.number - 1
    }
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(s: &str) -> Result<Shard, String> {
        let parse = |text: &str| text.parse::<u64>().ok();
        let numbers = s
            .split_once('/')
            .and_then(|(i, n)| Some((parse(i)?, parse(n)?)));
        match numbers {
            Some((number, of)) if (1..=of).contains(&number) => Ok(Shard { number, of }),
            _ => Err(format!("{s:?} is not I/N with I from 1 to N")),
        }
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.number, self.of)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_case_is_in_exactly_one_shard_and_none_is_left_out() {
        let shards: Vec<Shard> = (1..=7).map(|n| format!("{n}/7").parse().unwrap()).collect();
        let mut sizes = [0; 7];
        for case in 0..1000 {
            let name = format!("case_{case}");
            let of: Vec<usize> = (0..7).filter(|&n| shards[n].has(&name)).collect();
            assert_eq!(of.len(), 1, "{name}");
            sizes[of[0]] += 1;
        }
        assert!(
            sizes.iter().all(|size| (100..200).contains(size)),
            "{sizes:?}"
        );
    }

    #[test]
    fn the_same_case_stays_in_its_shard() {
        // Farms cache what they know of a shard: the hash must not change.
        let shard = |name| (1..=5).find(|&number| Shard { number, of: 5 }.has(name));
        let found = ["q4_0_small", "q8_0_rows", "q6_k_ties"].map(|name| shard(name).unwrap());
        assert_eq!(found, [1, 3, 1]);
    }

    #[test]
    fn bad_shards_are_refused() {
        for text in ["", "1", "0/2", "3/2", "1/0", "-1/2", "a/b", "1/2/3"] {
            assert!(text.parse::<Shard>().is_err(), "{text}");
        }
        assert_eq!("2/3".parse::<Shard>().unwrap().to_string(), "2/3");
    }
}
