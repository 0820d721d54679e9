-- The tables of the loyalty service, beside the runtime's own in schema `mesh`. PostgreSQL 15 and newer.

-- What each order earned, and whether it was taken back. A row without points is the tombstone of an order whose refund
-- was heard first: the points that come later count for nothing.
create table award (
    order_id    uuid    not null,
    customer_id uuid,
    points      bigint,
    taken_back  boolean not null default false,
    constraint award_pkey primary key (order_id),
    constraint award_points_check check ((points is null) = (customer_id is null) and points >= 0)
);
comment on table award is 'Points by order; taken back when the payment was refunded';

create view balance as
    select customer_id, sum(points)::bigint as points
    from award
    where not taken_back and customer_id is not null
    group by customer_id;
comment on view balance is 'Points by customer';
