-- The tables of the payments service, beside the runtime's own in schema `mesh`. PostgreSQL 15 and newer.

-- The ledger. One stream per account (`account-<customer id>`); the balance is the sum of its entries and is stored
-- nowhere else. The primary key is the optimistic lock: of two writers that read the same version one appends the next
-- one, the other gets a unique violation and runs again from a fresh read. No global position, so no global gaps.
create table event_store (
    stream_id      text        not null,
    stream_version bigint      not null,
    event_type     text        not null,
    payload        jsonb       not null,
    recorded_at    timestamptz not null default now(),
    constraint event_store_pkey primary key (stream_id, stream_version),
    constraint event_store_stream_version_check check (stream_version > 0),
    constraint event_store_event_type_check check (event_type in ('opened', 'deposited', 'charged', 'refunded'))
);
comment on table event_store is 'Append-only entries of the event-sourced accounts';
comment on column event_store.stream_version is 'Position in the stream: 1, 2, 3 ... without gaps';

-- History is not edited: a wrong entry is undone by another entry.
create function event_store_is_append_only() returns trigger language plpgsql as $$
begin
    raise exception 'event_store is append-only' using errcode = 'restrict_violation';
end
$$;
create trigger event_store_append_only before update or delete or truncate on event_store
    for each statement execute function event_store_is_append_only();

-- The folded state of a stream at one of its versions, so that a load reads few entries. Only a shortcut: every row may
-- be deleted at any time and no balance changes.
create table snapshot (
    stream_id      text        not null,
    stream_version bigint      not null,
    format         smallint    not null,
    state          jsonb       not null,
    taken_at       timestamptz not null default now(),
    constraint snapshot_pkey primary key (stream_id),
    constraint snapshot_entry_fkey foreign key (stream_id, stream_version)
        references event_store (stream_id, stream_version)
) with (fillfactor = 70);
comment on table snapshot is 'Newest folded state per account; a cache of event_store';
comment on column snapshot.format is 'Version of the fold that made the state; another version is not read';

-- What was done about each order: the guard of "at most one charge and at most one refund per order". `blocked` is the
-- tombstone of an order whose undoing came before its charge.
create table payment (
    order_id    uuid        not null,
    state       text        not null,
    customer_id uuid,
    payment_id  uuid,
    refund_id   uuid,
    amount      bigint,
    currency    text,
    scale       smallint,
    version     bigint      not null default 1,
    created_at  timestamptz not null default now(),
    updated_at  timestamptz not null default now(),
    constraint payment_pkey primary key (order_id),
    constraint payment_payment_id_key unique (payment_id),
    constraint payment_refund_id_key unique (refund_id),
    constraint payment_state_check check (state in ('charged', 'declined', 'refunded', 'blocked')),
    constraint payment_payment_id_check check ((state in ('charged', 'refunded')) = (payment_id is not null)),
    constraint payment_refund_id_check check ((state = 'refunded') = (refund_id is not null)),
    constraint payment_amount_check check (
        (payment_id is null) = (amount is null) and (payment_id is null) = (currency is null)
        and (payment_id is null) = (scale is null) and (payment_id is null) = (customer_id is null) and amount > 0),
    constraint payment_version_check check (version > 0)
);
comment on table payment is 'One row per order that payments has decided about';
comment on column payment.amount is 'Minor units that were charged; null when nothing was';
