-- What looks after the past: comparing the outbox with the stream, and removing what is no longer needed.

-- A row that the stream lost comes back into the outbox under a new `seq`, and is published again under its own id.
alter table mesh.outbox add column lost_sequence bigint;
comment on column mesh.outbox.lost_sequence is
    'Where the stream had stored the fact before it lost it, 0 when the whole stream was replaced; null when it never was';

-- Both tables are only appended to, so that a block range index is all that a look at a stretch of time needs. It costs an
-- insert next to nothing.
create index outbox_sent_sent_at on mesh.outbox_sent using brin (sent_at) with (pages_per_range = 32, autosummarize = on);
create index inbox_settled_at on mesh.inbox using brin (settled_at) with (pages_per_range = 32, autosummarize = on);

-- What the gauges count, every few seconds.
create index dead_letter_state on mesh.dead_letter (state);

-- Work that one replica does for all. The epoch grows with every change of hands.
create table mesh.task_lease (
    task       text        not null,
    owner      uuid,
    epoch      bigint      not null default 0,
    expires_at timestamptz not null default '-infinity',
    constraint task_lease_pkey primary key (task)
) with (fillfactor = 20);
insert into mesh.task_lease (task) values ('reconcile'), ('janitor');
comment on table mesh.task_lease is 'Who does the work that is done once for all replicas, by the clock of the database';

-- The last comparison of the outbox with the stream.
create table mesh.reconcile_state (
    only_row          boolean     not null default true,
    requested_at      timestamptz,
    stream_created    timestamptz,
    last_sequence     bigint,
    verified_at       timestamptz,
    cause             text,
    started_at        timestamptz,
    finished_at       timestamptz,
    checked           bigint      not null default 0,
    lost              bigint      not null default 0,
    republished       bigint      not null default 0,
    republished_total bigint      not null default 0,
    error             text,
    constraint reconcile_state_pkey primary key (only_row),
    constraint reconcile_state_only_row_check check (only_row)
) with (fillfactor = 20);
insert into mesh.reconcile_state default values;
comment on table mesh.reconcile_state is 'The last comparison of the outbox with the stream, and whether another one is wanted';
comment on column mesh.reconcile_state.verified_at is 'Everything that was sent before it was in the stream, or was published again';
comment on column mesh.reconcile_state.last_sequence is 'The last sequence of the stream when it was last looked at';

-- Drops the oldest partition of `kept` ('outbox_sent' or 'inbox') in which nothing is younger than `cutoff`, and returns its
-- name; null when there is none. With the rights of their owner, since a service may run under a role that owns nothing.
--
-- Dropping a partition takes an exclusive lock on its parent, and every writer queues up behind whoever waits for one. So
-- the locks are taken by themselves, first the one that writers do not need; when one is not free within `lock_timeout`, the
-- error 55P03 says that somebody reads, and the next call tries again.
create function mesh.drop_partition(kept text, cutoff timestamptz) returns text language plpgsql
security definer set search_path = pg_catalog, pg_temp set timezone = 'UTC' set lock_timeout = '50ms' as $$
declare
    parent  regclass;
    settled text;
    old     record;
    young   boolean;
begin
    case kept
        when 'outbox_sent' then parent := 'mesh.outbox_sent'; settled := 'sent_at';
        when 'inbox' then parent := 'mesh.inbox'; settled := 'settled_at';
        else raise exception 'there are no partitions of %', kept;
    end case;
    for old in
        select c.oid::regclass as name
        from pg_inherits i join pg_class c on c.oid = i.inhrelid
        where i.inhparent = parent and c.relname ~ ('^' || kept || '_[0-9]{8}$')
          and to_date(right(c.relname, 8), 'YYYYMMDD') + 1 <= cutoff::date
        order by c.relname
    loop
        -- A partition of the inbox is one of ids: a flow that lived long settles facts in a partition of its first day.
        execute format('select exists (select from only %s where %I >= $1)', old.name, settled) into young using cutoff;
        continue when young;
        execute format('lock table only %s in access exclusive mode', old.name);
        execute format('select exists (select from only %s where %I >= $1)', old.name, settled) into young using cutoff;
        continue when young;
        execute format('lock table only %s in access exclusive mode', parent);
        execute format('drop table %s', old.name);
        return old.name::text;
    end loop;
    return null;
end
$$;

-- Deletes at most `most` rows older than `cutoff` from the default partition of `kept`, where rows land whose day had no
-- partition. Returns how many.
create function mesh.delete_from_default(kept text, cutoff timestamptz, most integer) returns integer language plpgsql
security definer set search_path = pg_catalog, pg_temp set lock_timeout = '50ms' as $$
declare
    deleted integer;
begin
    case kept
        when 'outbox_sent' then
            delete from only mesh.outbox_sent_default where ctid = any (array(
                select ctid from only mesh.outbox_sent_default where sent_at < cutoff limit most for update skip locked));
        when 'inbox' then
            delete from only mesh.inbox_default where ctid = any (array(
                select ctid from only mesh.inbox_default where settled_at < cutoff limit most for update skip locked));
        else raise exception 'there is no default partition of %', kept;
    end case;
    get diagnostics deleted = row_count;
    return deleted;
end
$$;
