//! What the relay reads next: the leased groups with their floors, the rows in flight, the keys that are held back.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use sqlx::PgPool;
use tokio::time::Instant;

use super::blocked::BlockedKeys;
use super::claim::{self, Range};
use super::floor::{self, Evidence};
use super::leases::Lease;
use super::method::BATCH_ROWS_MAX;
use super::row::Row;

/// Most bytes of one round.
const ROUND_BYTES_MAX: usize = 8 * 1_024 * 1_024;

/// Up to this many rows in flight, each claim reads from the floor and leaves out what is in flight. Above it, that would
/// read the same rows again and again, so claims go on from a reading position and late commits below it are looked
/// for apart.
const IN_FLIGHT_FEW: usize = 64;

/// How often late commits are looked for behind the reading position.
const LATE_COMMITS_EVERY: Duration = Duration::from_millis(100);

/// How often the floor is advanced while rows flow.
const FLOOR_EVERY: Duration = Duration::from_millis(50);

/// One leased bucket group.
#[derive(Debug, Clone, Copy)]
struct Group {
    lease: Lease,
    /// Nothing can appear at or below it any more.
    floor: i64,
    /// The highest sequence that was claimed. Never evidence, only where a deep backlog reads on.
    position: i64,
}

/// Reads committed rows of the leased groups.
#[derive(Debug)]
pub(super) struct Reader {
    pool: PgPool,
    groups: Vec<Group>,
    pub(super) blocked: BlockedKeys,
    /// Claimed and neither settled nor given back: sequence and group.
    in_flight: HashMap<i64, i16>,
    /// The keys that the last claim left out.
    left_out: Vec<String>,
    evidence: Option<Evidence>,
    floor_due: Instant,
    late_commits_due: Instant,
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
            left_out: Vec::new(),
            evidence: None,
            floor_due: now,
            late_commits_due: now,
            settled_up_to: None,
        }
    }

    /// Takes over the leases that are held now. A group that is new, or whose epoch changed, starts from the beginning.
    pub(super) fn set_leases(&mut self, leases: &[Lease]) {
        let known = std::mem::take(&mut self.groups);
        for &lease in leases {
            let same = known.iter().find(|group| group.lease == lease);
            self.groups.push(same.copied().unwrap_or(Group { lease, floor: 0, position: 0 }));
        }
        if self.groups.iter().any(|group| group.floor == 0) {
            self.settled_up_to = None;
        }
    }

    /// Takes over the keys behind dead rows. A key that is not among them any more had its row put back, at its old
    /// sequence, which may lie below the floor: everything is read anew.
    pub(super) fn set_dead_keys(&mut self, keys: Vec<String>) {
        if self.blocked.set_dead(keys) {
            for group in &mut self.groups {
                (group.floor, group.position) = (0, 0);
            }
            self.settled_up_to = None;
        }
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

    /// The rows are not being published any more; the next claims may see them again.
    pub(super) fn give_back(&mut self, sequences: impl IntoIterator<Item = i64>) {
        let mut any = false;
        for seq in sequences {
            any |= self.in_flight.remove(&seq).is_some();
        }
        if any {
            self.read_from_floors();
        }
    }

    fn read_from_floors(&mut self) {
        for group in &mut self.groups {
            group.position = group.floor;
        }
    }

    /// The rows have left the outbox.
    pub(super) fn settled(&mut self, sequences: impl IntoIterator<Item = i64>) {
        for seq in sequences {
            self.in_flight.remove(&seq);
        }
    }

    /// The groups with rows in flight.
    pub(super) fn busy_groups(&self) -> HashSet<i16> {
        self.in_flight.values().copied().collect()
    }

    /// Reads the next round.
    pub(super) async fn claim(&mut self) -> sqlx::Result<Vec<Row>> {
        let now = Instant::now();
        let held = self.blocked.held(now);
        self.follow_released_keys(&held, now);
        let few = self.in_flight.len() <= IN_FLIGHT_FEW;
        if !few && now >= self.late_commits_due {
            self.late_commits_due = now + LATE_COMMITS_EVERY;
            self.turn_back_to_late_commits(&held).await?;
        }
        // Round by round another group comes first, so that a cut round starves none.
        let step = usize::from(self.groups.len() > 1);
        self.groups.rotate_left(step);
        let ranges: Vec<Range> = self.groups.iter().map(|group| group.range(few)).collect();
        let extra = if few { self.in_flight.len() } else { 0 };
        let per_group = BATCH_ROWS_MAX.div_ceil(ranges.len().max(1)).max(64) + extra;
        let limit = i64::try_from(per_group).unwrap_or(i64::MAX);
        let rows = claim::above(&self.pool, &ranges, &held, limit).await?;
        Ok(self.take(rows))
    }

    /// Claims went on above the rows of a key that was held back. Now that it may be published again, its first row must
    /// be found before its later ones.
    fn follow_released_keys(&mut self, held: &[String], now: Instant) {
        if self.left_out.iter().any(|key| !self.blocked.is_held(key, now)) {
            self.read_from_floors();
        }
        self.left_out = held.to_vec();
    }

    /// Of rows that were read, those that make the next round: not in flight, within its limits. The positions stop at
    /// the first row that does not fit, so that the next claim begins with it.
    fn take(&mut self, rows: Vec<Row>) -> Vec<Row> {
        let mut taken = Vec::with_capacity(rows.len().min(BATCH_ROWS_MAX));
        let mut bytes = 0;
        for row in rows {
            let is_new = !self.in_flight.contains_key(&row.seq);
            if is_new {
                bytes += row.bytes();
                let fits = taken.len() < BATCH_ROWS_MAX && bytes <= ROUND_BYTES_MAX;
                if !fits && !taken.is_empty() {
                    break;
                }
            }
            if let Some(group) = self.groups.iter_mut().find(|group| group.lease.bucket_group == row.bucket_group) {
                group.position = group.position.max(row.seq);
            }
            if is_new {
                self.in_flight.insert(row.seq, row.bucket_group);
                taken.push(row);
            }
        }
        taken
    }

    /// A row below the position that is not in flight was committed late: the next claim reads from there.
    async fn turn_back_to_late_commits(&mut self, held: &[String]) -> sqlx::Result<()> {
        let ranges: Vec<Range> = self.groups.iter().map(|group| group.range(true)).collect();
        let until: Vec<i64> = self.groups.iter().map(|group| group.position).collect();
        for (bucket_group, seq) in claim::sequences_up_to(&self.pool, &ranges, &until, held).await? {
            let group = self.groups.iter_mut().find(|group| group.lease.bucket_group == bucket_group);
            if let Some(group) = group.filter(|group| seq <= group.position && !self.in_flight.contains_key(&seq)) {
                group.position = seq - 1;
            }
        }
        Ok(())
    }

    /// Advances the floors as far as it is proven, when it is time to.
    pub(super) async fn advance_floors(&mut self) -> sqlx::Result<()> {
        let now = Instant::now();
        if now < self.floor_due || self.groups.is_empty() {
            return Ok(());
        }
        self.floor_due = now + FLOOR_EVERY;
        let evidence = match self.evidence.take() {
            Some(evidence) => evidence,
            None => Evidence::begin(&self.pool).await?,
        };
        if self.settled_up_to == Some(evidence.drawn()) {
            return Ok(());
        }
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
                group.position = group.position.max(group.floor);
            }
        }
        let all_final = self.groups.iter().all(|group| group.floor >= proven);
        self.settled_up_to = all_final.then_some(proven);
        Ok(())
    }
}

impl Group {
    fn range(&self, from_floor: bool) -> Range {
        let after = if from_floor { self.floor } else { self.position };
        Range { bucket_group: self.lease.bucket_group, epoch: self.lease.epoch, after }
    }
}
