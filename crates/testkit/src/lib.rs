//! Throwaway PostgreSQL and NATS servers, a chaos proxy, and waits.
