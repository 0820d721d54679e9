-- The tables of the inventory service, beside the runtime's own in schema `mesh`. PostgreSQL 15 and newer.

-- How much there is of each SKU and how much of that is set aside. What may be sold is `on_hand - reserved`; the check
-- makes an oversell impossible whatever the code above it does.
create table stock (
    sku        text        collate "C" not null,
    on_hand    bigint      not null,
    reserved   bigint      not null default 0,
    version    bigint      not null default 1,
    updated_at timestamptz not null default now(),
    constraint stock_pkey primary key (sku),
    constraint stock_sku_check check (sku ~ '^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$'),
    constraint stock_on_hand_check check (on_hand between 0 and 1000000000),
    constraint stock_reserved_check check (reserved between 0 and on_hand),
    constraint stock_version_check check (version > 0)
) with (fillfactor = 70);
comment on table stock is 'Pieces on hand per SKU, and how many of them are set aside for orders';
comment on column stock.sku is 'In byte order, in every database the same: the order in which stock is locked and listed';
comment on column stock.on_hand is 'Pieces in the house, the reserved ones included';

-- What inventory knows and has done about each order. Order and payment arrive in whichever order; `cancelled` and
-- `cancelled_paid` are tombstones of orders whose cancellation came before their reservation.
create table reservation (
    order_id       uuid        not null,
    state          text        not null,
    reservation_id uuid,
    lines          jsonb,
    version        bigint      not null default 1,
    created_at     timestamptz not null default now(),
    updated_at     timestamptz not null default now(),
    constraint reservation_pkey primary key (order_id),
    constraint reservation_reservation_id_key unique (reservation_id),
    constraint reservation_state_check check (
        state in ('noted', 'paid', 'reserved', 'failed', 'released', 'cancelled', 'cancelled_paid')),
    constraint reservation_reservation_id_check check ((state in ('reserved', 'released')) = (reservation_id is not null)),
    constraint reservation_lines_check check (state not in ('noted', 'reserved', 'released') or lines is not null),
    constraint reservation_version_check check (version > 0)
);
comment on table reservation is 'One row per order that inventory has heard of';
comment on column reservation.lines is 'Array of {sku, quantity}, one per SKU in SKU order; null until the order is known';
