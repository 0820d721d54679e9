-- The tables of the runtime, one set in every service database. The schema is `mesh`, the history of these migrations
-- is `mesh._sqlx_migrations`. PostgreSQL 15 and newer.

-- What is committed and not yet acknowledged by the stream. Rows are taken by visibility and leave on acknowledgement,
-- so the table stays small; `seq` is drawn while the key's `key_version` row is locked, so that for one key the order
-- of `seq` is the order of commits.
create table mesh.outbox (
    bucket_group  smallint    not null,
    seq           bigint      generated always as identity (cache 1),
    event_id      uuid        not null,
    subject       text        not null,
    event_type    text        not null,
    partition_key text        not null,
    key_version   bigint      not null,
    headers       text        not null,
    payload       bytea       not null,
    occurred_at   timestamptz not null default now(),
    created_at    timestamptz not null default clock_timestamp(),
    attempts      integer     not null default 0,
    last_error    text,
    constraint outbox_pkey primary key (bucket_group, seq),
    constraint outbox_bucket_group_check check (bucket_group between 0 and 15)
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0,
        vacuum_truncate = off);
comment on table mesh.outbox is 'Facts that are committed and not yet acknowledged by the stream';
comment on column mesh.outbox.headers is 'JSON array of [name, value]; ce-time and ce-sequence are added from the columns';
comment on column mesh.outbox.occurred_at is 'Start of the business transaction by the clock of the database (ce-time)';
comment on column mesh.outbox.created_at is 'For the lag metric only, never for an order';

-- What the stream acknowledged, kept for a window so that facts that the broker loses can be published again.
create table mesh.outbox_sent (
    bucket_group    smallint    not null,
    seq             bigint      not null,
    event_id        uuid        not null,
    subject         text        not null,
    event_type      text        not null,
    partition_key   text        not null,
    key_version     bigint      not null,
    headers         text        not null,
    payload         bytea       not null,
    occurred_at     timestamptz not null,
    created_at      timestamptz not null,
    attempts        integer     not null,
    stream          text        not null,
    stream_created  timestamptz not null,
    stream_sequence bigint      not null,
    sent_at         timestamptz not null default clock_timestamp(),
    constraint outbox_sent_stream_sequence_check check (stream_sequence > 0)
) partition by range (sent_at);
create table mesh.outbox_sent_default partition of mesh.outbox_sent default;
create index outbox_sent_event_id on mesh.outbox_sent (event_id);
comment on table mesh.outbox_sent is 'Facts that the stream acknowledged, with where and when; dropped by partition';

-- Rows that could not be published after all attempts. Later rows of the same key wait behind them.
create table mesh.outbox_dead (
    bucket_group  smallint    not null,
    seq           bigint      not null,
    event_id      uuid        not null,
    subject       text        not null,
    event_type    text        not null,
    partition_key text        not null,
    key_version   bigint      not null,
    headers       text        not null,
    payload       bytea       not null,
    occurred_at   timestamptz not null,
    created_at    timestamptz not null,
    attempts      integer     not null,
    error         text        not null,
    died_at       timestamptz not null default clock_timestamp(),
    constraint outbox_dead_pkey primary key (bucket_group, seq)
);
comment on table mesh.outbox_dead is 'Facts that the relay gave up, with the error; redrivable';

-- Who may publish which bucket group. The epoch grows with every change of hands and fences the statement that moves
-- acknowledged rows.
create table mesh.outbox_lease (
    bucket_group smallint    not null,
    owner        uuid,
    epoch        bigint      not null default 0,
    expires_at   timestamptz not null default '-infinity',
    constraint outbox_lease_pkey primary key (bucket_group)
) with (fillfactor = 20);
insert into mesh.outbox_lease (bucket_group) select generate_series(0, 15);
comment on table mesh.outbox_lease is 'Leases of the 16 bucket groups, by the clock of the database';

-- Which relays are alive, so that each takes its fair share of the groups.
create table mesh.outbox_relay (
    owner      uuid        not null,
    label      text        not null,
    expires_at timestamptz not null,
    constraint outbox_relay_pkey primary key (owner)
) with (fillfactor = 20);
comment on table mesh.outbox_relay is 'Relays that are alive; the fair share of leases follows from their number';

-- The gapless version of each key in this service: ce-sequence. Its row lock serialises the writers of a key.
create table mesh.key_version (
    partition_key text   not null,
    version       bigint not null,
    constraint key_version_pkey primary key (partition_key)
) with (fillfactor = 70);
comment on table mesh.key_version is 'The last ce-sequence given out per key';

-- Which subscriber has settled which fact. Partitioned on the id itself (its first 48 bits are the time of the flow's
-- root), so that uniqueness is global and old partitions can be dropped.
create table mesh.inbox (
    event_id   uuid        not null,
    subscriber text        not null,
    no_effect  text,
    settled_at timestamptz not null default now(),
    constraint inbox_pkey primary key (event_id, subscriber)
) partition by range (event_id);
create table mesh.inbox_default partition of mesh.inbox default;
comment on table mesh.inbox is 'Settled deliveries; a repeat is a no-op';
comment on column mesh.inbox.no_effect is 'Why the delivery changed nothing, when it changed nothing';

-- Attempts that did not settle, counted durably: written when an attempt fails and before a redelivery is decoded.
create table mesh.delivery_attempt (
    event_id   uuid        not null,
    subscriber text        not null,
    attempts   integer     not null,
    history    jsonb       not null default '[]',
    first_at   timestamptz not null default now(),
    constraint delivery_attempt_pkey primary key (event_id, subscriber)
);
comment on table mesh.delivery_attempt is 'Deliveries that failed or were cut off, until they settle';

-- Deliveries that were given up, with everything needed to run them again.
create table mesh.dead_letter (
    id              bigint      generated always as identity,
    subscriber      text        not null,
    event_id        uuid        not null,
    event_type      text        not null,
    partition_key   text        not null,
    correlation_id  uuid,
    state           text        not null,
    reason          text        not null,
    detail          text        not null,
    attempts        integer     not null,
    history         jsonb       not null default '[]',
    behind_event    uuid,
    subject         text        not null,
    headers         text        not null,
    payload         bytea       not null,
    stream_sequence bigint      not null,
    build           text        not null,
    parked_at       timestamptz not null default now(),
    constraint dead_letter_pkey primary key (id),
    constraint dead_letter_delivery_key unique (event_id, subscriber),
    constraint dead_letter_state_check check (state in ('parked', 'dead'))
);
create index dead_letter_key on mesh.dead_letter (subscriber, partition_key, id);
comment on table mesh.dead_letter is 'Deliveries that were parked or given up, with their bytes and their history';

-- Idempotency-Key: the claim, the business write, the facts and the stored reply are one transaction.
create table mesh.idempotency (
    operation     text        not null,
    key           text        not null,
    fingerprint   bytea       not null,
    root_id       uuid        not null,
    status        smallint    not null,
    headers       text        not null,
    body          bytea       not null,
    created_at    timestamptz not null default now(),
    constraint idempotency_pkey primary key (operation, key)
);
create index idempotency_created_at on mesh.idempotency (created_at);
comment on table mesh.idempotency is 'Replies of completed requests by Idempotency-Key';

-- The textbook columns, for people who look with psql. The hot table has no status column.
create view mesh.outbox_events as
    select event_id as id, split_part(event_type, '.', 1) as aggregate_type, partition_key as aggregate_id, event_type,
           payload, created_at, null::timestamptz as published_at, attempts as retry_count, 'PENDING'::text as status
    from mesh.outbox
    union all
    select event_id, split_part(event_type, '.', 1), partition_key, event_type, payload, created_at, sent_at, attempts,
           'PUBLISHED'
    from mesh.outbox_sent
    union all
    select event_id, split_part(event_type, '.', 1), partition_key, event_type, payload, created_at, null, attempts,
           'FAILED'
    from mesh.outbox_dead;

-- The partitions of one day, `days_ahead` from today, UTC. With the rights of their owner, since a service may run under a
-- role that owns nothing. One day per call, so that the locks of one do not add up with those of the next;
-- `lock_timeout` keeps a waiting DDL statement from holding up the writers behind it. Returns how many were made. Rows of a
-- day without a partition of its own land in the default one.
create function mesh.ensure_partitions(days_ahead integer) returns integer language plpgsql
security definer set search_path = pg_catalog, pg_temp set timezone = 'UTC' set lock_timeout = '100ms' as $$
declare
    day  date := current_date + days_ahead;
    name text := to_char(day, 'YYYYMMDD');
    made integer := 0;
    low  text := lpad(to_hex((extract(epoch from day::timestamptz) * 1000)::bigint), 12, '0');
    high text := lpad(to_hex((extract(epoch from (day + 1)::timestamptz) * 1000)::bigint), 12, '0');
begin
    if to_regclass(format('mesh.outbox_sent_%s', name)) is null then
        execute format('create table mesh.outbox_sent_%s partition of mesh.outbox_sent for values from (%L) to (%L)',
                       name, day::timestamptz, (day + 1)::timestamptz);
        made := made + 1;
    end if;
    if to_regclass(format('mesh.inbox_%s', name)) is null then
        execute format('create table mesh.inbox_%s partition of mesh.inbox for values from (%L) to (%L)',
                       name, rpad(low, 32, '0')::uuid, rpad(high, 32, '0')::uuid);
        made := made + 1;
    end if;
    return made;
exception
    -- Rows of that day sit in the default partition already, a reader holds the parent, or another replica was faster: the
    -- default partition keeps serving, and the next call tries again.
    when lock_not_available or check_violation or duplicate_table or invalid_object_definition then return 0;
end
$$;
