//! What the relay reads next: the leased groups with their floors, the rows in flight, the keys that are held back.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use sqlx::PgPool;
use time::OffsetDateTime;
use tokio::time::Instant;

use super::blocked::BlockedKeys;
use super::claim::{self, Range};
use super::floor::{self, Drawn, Evidence};
use super::leases::Lease;
use super::method::BATCH_ROWS_MAX;
use super::row::Row;

/// Most bytes of one round.
const ROUND_BYTES_MAX: usize = 8 * 1_024 * 1_024;

/// How often the floor is advanced while rows flow.
const FLOOR_EVERY: Duration = Duration::from_millis(50);

/// One leased bucket group.
#[derive(Debug, Clone, Copy)]
struct Group {
    lease: Lease,
    /// Nothing can appear at or below it any more.
    floor: i64,
}

/// Reads committed rows of the leased groups.
#[derive(Debug)]
pub(super) struct Reader {
    pool: PgPool,
    groups: Vec<Group>,
    pub(super) blocked: BlockedKeys,
    /// Claimed and neither settled nor given back: sequence and group.
    in_flight: HashMap<i64, i16>,
    evidence: Option<Evidence>,
    /// When the server that the floors were proven on had started.
    server: Option<OffsetDateTime>,
    floor_due: Instant,
    /// The last sequence for which all floors are known to be final.
    settled_up_to: Option<i64>,
}

impl Reader {
    pub(super) fn new(pool: PgPool) -> Self {
        let now = Instant::now();
        Self {
            pool,
            groups: Vec::new(),
            blocked: BlockedKeys::default(),
            in_flight: HashMap::new(),
            evidence: None,
            server: None,
            floor_due: now,
            settled_up_to: None,
        }
    }

    /// Takes over the leases that are held now. A group that is new, or whose epoch changed, starts from the beginning.
    pub(super) fn set_leases(&mut self, leases: &[Lease]) {
        let known = std::mem::take(&mut self.groups);
        for &lease in leases {
            let same = known.iter().find(|group| group.lease == lease);
            self.groups.push(same.copied().unwrap_or(Group { lease, floor: 0 }));
        }
        if self.groups.iter().any(|group| group.floor == 0) {
            self.settled_up_to = None;
        }
    }

    /// Takes over the keys behind dead rows. A key that is not among them any more had its row put back, at its old
    /// sequence, which may lie below the floor: everything is read anew.
    pub(super) fn set_dead_keys(&mut self, keys: Vec<String>) {
        if self.blocked.set_dead(keys) {
            self.reset_floors();
        }
    }

    fn reset_floors(&mut self) {
        for group in &mut self.groups {
            group.floor = 0;
        }
        self.settled_up_to = None;
        self.evidence = None;
    }

    pub(super) fn holds_nothing(&self) -> bool {
        self.groups.is_empty()
    }

    /// Whether the row is still covered by the lease under which it was read.
    fn covers(&self, row: &Row) -> bool {
        let lease = Lease { bucket_group: row.bucket_group, epoch: row.epoch };
        self.groups.iter().any(|group| group.lease == lease)
    }

    /// Of rows that were read ahead, those that may still be published: leased, and not of a key that failed meanwhile.
    /// The others are given back.
    pub(super) fn still_publishable(&mut self, rows: Vec<Row>, now: Instant) -> Vec<Row> {
        let (keep, give_back): (Vec<Row>, Vec<Row>) =
            rows.into_iter().partition(|row| self.covers(row) && !self.blocked.is_held(&row.key, now));
        self.give_back(give_back.iter().map(|row| row.seq));
        keep
    }

    /// The rows are not being published any more; the next claim sees them again.
    pub(super) fn give_back(&mut self, sequences: impl IntoIterator<Item = i64>) {
        for seq in sequences {
            self.in_flight.remove(&seq);
        }
    }

    /// The rows have left the outbox.
    pub(super) fn settled(&mut self, sequences: impl IntoIterator<Item = i64>) {
        self.give_back(sequences);
    }

    /// The groups with rows in flight.
    pub(super) fn busy_groups(&self) -> HashSet<i16> {
        self.in_flight.values().copied().collect()
    }

    /// Reads the next round: the first rows above each floor that are neither in flight nor of a held key.
    ///
    /// Always from the floor and in one statement. A reading position would pass a row that is committed late, and read a
    /// later row of its key first.
    pub(super) async fn claim(&mut self) -> sqlx::Result<Vec<Row>> {
        let held = self.blocked.held(Instant::now());
        let in_flight: Vec<i64> = self.in_flight.keys().copied().collect();
        // Round by round another group comes first, so that a cut round starves none.
        let step = usize::from(self.groups.len() > 1);
        self.groups.rotate_left(step);
        let ranges: Vec<Range> = self.groups.iter().map(Group::range).collect();
        let per_group = BATCH_ROWS_MAX.div_ceil(ranges.len().max(1)).max(64);
        let limit = i64::try_from(per_group).unwrap_or(i64::MAX);
        let mut rows = claim::above(&self.pool, &ranges, &in_flight, &held, limit).await?;
        cut(&mut rows);
        self.in_flight.extend(rows.iter().map(|row| (row.seq, row.bucket_group)));
        Ok(rows)
    }

    /// Advances the floors as far as it is proven, when it is time to.
    pub(super) async fn advance_floors(&mut self) -> sqlx::Result<()> {
        let now = Instant::now();
        if now < self.floor_due || self.groups.is_empty() {
            return Ok(());
        }
        self.floor_due = now + FLOOR_EVERY;
        let drawn = Drawn::now(&self.pool).await?;
        if self.server != Some(drawn.server) || self.groups.iter().any(|group| group.floor > drawn.sequence) {
            // Another server, or one that came back: the sequence may have gone backwards, below a floor.
            self.reset_floors();
            self.server = Some(drawn.server);
        }
        if self.settled_up_to == Some(drawn.sequence) {
            return Ok(());
        }
        let evidence = match self.evidence.take() {
            Some(evidence) => evidence,
            None => drawn.evidence(&self.pool).await?,
        };
        let open = if evidence.needs_no_wait() { HashSet::new() } else { floor::writers(&self.pool).await? };
        match evidence.proven(&open) {
            Some(proven) => self.raise_floors(proven).await?,
            None => self.evidence = Some(evidence),
        }
        Ok(())
    }

    async fn raise_floors(&mut self, proven: i64) -> sqlx::Result<()> {
        let groups: Vec<i16> = self.groups.iter().map(|group| group.lease.bucket_group).collect();
        let floors: Vec<i64> = self.groups.iter().map(|group| group.floor).collect();
        for (bucket_group, lowest) in floor::lowest_remaining(&self.pool, &groups, &floors).await? {
            if let Some(group) = self.groups.iter_mut().find(|group| group.lease.bucket_group == bucket_group) {
                group.floor = floor::advanced(group.floor, proven, lowest);
            }
        }
        let all_final = self.groups.iter().all(|group| group.floor >= proven);
        self.settled_up_to = all_final.then_some(proven);
        Ok(())
    }
}

impl Group {
    fn range(&self) -> Range {
        Range { bucket_group: self.lease.bucket_group, epoch: self.lease.epoch, after: self.floor }
    }
}

/// Cuts a round to its limits. Rows of one key are in order, so what is cut of a key is its end.
fn cut(rows: &mut Vec<Row>) {
    let mut bytes = 0;
    let within = rows.iter().take(BATCH_ROWS_MAX).take_while(|row| {
        bytes += row.bytes();
        bytes <= ROUND_BYTES_MAX
    });
    let length = within.count().max(1);
    rows.truncate(length);
}
