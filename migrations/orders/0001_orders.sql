-- The tables of the orders service, beside the runtime's own in schema `mesh`. PostgreSQL 15 and newer.

-- One row per order. `pending` is a semantic lock: nothing about the order is promised to anybody before it ends as
-- `confirmed` or `cancelled`, and only a pending order may go on.
create table orders (
    order_id      uuid        not null,
    customer_id   uuid        not null,
    currency      text        not null,
    total         bigint      not null,
    lines         jsonb       not null,
    status        text        not null default 'pending',
    cancel_reason text,
    version       bigint      not null default 1,
    created_at    timestamptz not null default now(),
    updated_at    timestamptz not null default now(),
    constraint orders_pkey primary key (order_id),
    constraint orders_currency_check check (currency ~ '^[A-Z]{3}$'),
    constraint orders_total_check check (total between 1 and 9007199254740991),
    constraint orders_lines_check check (jsonb_typeof(lines) = 'array' and jsonb_array_length(lines) between 1 and 200),
    constraint orders_status_check check (status in ('pending', 'confirmed', 'cancelled')),
    constraint orders_cancel_reason_check check ((status = 'cancelled') = (cancel_reason is not null)),
    constraint orders_version_check check (version > 0)
);
-- The ids are time-ordered, so they are the keyset of every list: newest first is `order_id desc`.
create index orders_customer on orders (customer_id, order_id);
create index orders_status on orders (status, order_id);
comment on table orders is 'One row per order; only a pending one may change';
comment on column orders.currency is 'ISO 4217 code of the total and of every unit price';
comment on column orders.total is 'Minor units: the sum of quantity times unit price';
comment on column orders.lines is 'Lines as OrderCreated says them, one per SKU; written once, always read whole';
comment on column orders.version is 'Number of changes, the placing included';

-- The flow that each order started, as far as orders can see it: its stage, and the instant at which it is given up.
-- Instants are by the clock of the database, whatever the clocks of the replicas say.
create table flow_state (
    order_id         uuid        not null,
    stage            text        not null default 'open',
    created_event_id uuid        not null,
    last_updated_at  timestamptz not null default now(),
    deadline_at      timestamptz not null,
    constraint flow_state_pkey primary key (order_id),
    constraint flow_state_order_fkey foreign key (order_id) references orders (order_id),
    constraint flow_state_stage_check check (stage in ('open', 'confirmed', 'cancelled'))
);
-- The deadline and the stuck metric look at open flows only, oldest deadline first.
create index flow_state_open on flow_state (deadline_at) where stage = 'open';
comment on table flow_state is 'Stage and deadline of the flow that each order started';
comment on column flow_state.created_event_id is 'Id of the OrderCreated fact: the cause that a deadline names';
