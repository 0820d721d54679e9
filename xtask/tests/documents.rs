//! Documents that are generated from definitions in the code.
