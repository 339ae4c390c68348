//! Testbenches of the leaf modules, one file a module: random stimulus against a few lines of
//! reference, which are written from `docs/` and the formats alone.

mod ws_round;
