-- Giving up well: letters that are discarded and stay, letters that wait for another try, and the record of what an
-- operator had done to which exact set.

alter table mesh.dead_letter
    drop constraint dead_letter_state_check,
    add constraint dead_letter_state_check check (state in ('parked', 'dead', 'discarded')),
    add column retry_at timestamptz,
    add column discarded_at timestamptz,
    add column discarded_by text,
    add column discard_reason text,
    add constraint dead_letter_discarded_check check ((state = 'discarded') = (discarded_at is not null));
comment on column mesh.dead_letter.state is 'A discarded letter blocks nothing, and is kept until its retention ends';
comment on column mesh.dead_letter.retry_at is 'When a letter whose way is free is tried again by itself; null: at once';
-- What is in the way of what: the letters of a key in the order of the stream.
create index dead_letter_order on mesh.dead_letter (subscriber, partition_key, stream_sequence, id)
    where state <> 'discarded';
-- What goes on by itself once its way is free.
create index dead_letter_behind on mesh.dead_letter (stream_sequence, id) where reason = 'behind' and state = 'parked';

-- The exact set that an operator was shown. What is asked for with its token is done to this set and to nothing else.
create table mesh.operation_preview (
    token      uuid        not null,
    action     text        not null,
    members    bigint[]    not null,
    digest     bytea       not null,
    expires_at timestamptz not null,
    constraint operation_preview_pkey primary key (token),
    constraint operation_preview_action_check check (action in ('redrive', 'discard', 'retry'))
);
comment on table mesh.operation_preview is 'Sets that were shown and not yet acted upon, valid for minutes';
comment on column mesh.operation_preview.members is 'Dead letters by id, or rows of the outbox by seq, in the order of the work';
comment on column mesh.operation_preview.digest is 'What was shown of them: a member that has changed since makes the token void';

-- What an operator had done: written before the first member is touched.
create table mesh.operation (
    operation_id    uuid        not null,
    token           uuid        not null,
    action          text        not null,
    reason          text        not null,
    requested_by    text        not null,
    requested_at    timestamptz not null default now(),
    rate_per_second integer     not null,
    state           text        not null,
    stop_reason     text,
    failures_in_row integer     not null default 0,
    last_signature  text,
    finished_at     timestamptz,
    owner           uuid,
    expires_at      timestamptz not null default '-infinity',
    constraint operation_pkey primary key (operation_id),
    constraint operation_action_check check (action in ('redrive', 'discard', 'retry')),
    constraint operation_state_check check (state in ('running', 'finished', 'stopped')),
    constraint operation_rate_check check (rate_per_second > 0),
    constraint operation_finished_check check ((state = 'running') = (finished_at is null))
);
create index operation_running on mesh.operation (requested_at) where state = 'running';
comment on table mesh.operation is 'Redrives, discards and retries: who, why, how far; one replica works on one at a time';
comment on column mesh.operation.expires_at is 'End of the lease of the working replica, by the clock of the database';

-- One row per member, with what became of it.
create table mesh.operation_item (
    operation_id uuid        not null,
    position     integer     not null,
    member       bigint      not null,
    event_id     uuid        not null,
    subscriber   text,
    begun_at     timestamptz,
    outcome      text,
    detail       text,
    ended_at     timestamptz,
    constraint operation_item_pkey primary key (operation_id, position),
    constraint operation_item_operation_fkey foreign key (operation_id) references mesh.operation (operation_id)
        on delete cascade,
    constraint operation_item_outcome_check
        check (outcome in ('redriven', 'failed', 'settled', 'waits', 'refused', 'discarded', 'returned'))
);
create index operation_item_open on mesh.operation_item (member) where outcome is null;
comment on table mesh.operation_item is 'The members of an operation in the order of the work, each with its outcome';
comment on column mesh.operation_item.begun_at is 'Written before the work begins: an end of the process in the middle counts as a failure';
