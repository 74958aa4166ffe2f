-- How a user's positions compare with the vault, and what a position cost. Forward only.

create table earn_account (
  user_id uuid not null references app_user (id),
  chain_id text not null,
  vault text not null,
  state text not null default 'active' check (state in ('active', 'frozen')),
  -- The highest block in which a deposit or a withdrawal of this user was settled: an older state of the chain proves nothing.
  settled_block bigint not null default 0,
  settled_at timestamptz,
  -- Raised by each booking of an external change, so that one difference is booked once.
  version bigint not null default 0,
  -- Shares on the chain less shares of the positions, as last compared; a difference counts when it is seen again later.
  mismatch numeric,
  mismatch_since timestamptz,
  compared_at timestamptz,
  next_at timestamptz not null,
  reason text,
  frozen_since timestamptz,
  frozen_by text,
  unfrozen_by text,
  primary key (user_id, chain_id, vault)
);
create index earn_account_due on earn_account (chain_id, vault, next_at);
create index earn_account_frozen on earn_account (chain_id, vault) where state = 'frozen';

-- Sums of what was settled. They were counted from the whole history at each request before.
alter table earn_position add column cost_units numeric(78, 0) not null default 0;
alter table earn_position add column counted_shares numeric(78, 0) not null default 0;
-- Null until the first deposit is settled: where that failed, there never was a position.
alter table earn_position add column settled_at timestamptz;
alter table earn_position add column opened_by uuid;
create index earn_position_of_user on earn_position (user_id, chain_id, vault, id desc);

insert into earn_account (user_id, chain_id, vault, next_at)
  select distinct user_id, chain_id, vault, now() from earn_position;

-- A withdrawal takes its part of the cost along, rounded down.
create function earn_position_add(p_id uuid, p_assets numeric, p_shares numeric, p_at timestamptz) returns void language sql as $$
  update earn_position set
    cost_units = case
      when p_shares >= 0 then cost_units + p_assets
      when counted_shares <= -p_shares then 0
      else cost_units - div(cost_units * -p_shares, counted_shares) end,
    counted_shares = greatest(counted_shares + p_shares, 0),
    settled_at = coalesce(settled_at, p_at)
  where id = p_id
$$;

do $$
declare
  v_task record;
begin
  for v_task in
    select (data ->> 'position_id')::uuid as position, (result ->> 'shares_delta')::numeric as shares,
      (result ->> 'amount_usdc_decimal')::numeric * 1000000 as assets, completed_at,
      (select max((t ->> 'block')::bigint) from jsonb_array_elements(data -> 'transactions') t) as block, user_id,
      data ->> 'chain_id' as chain_id, lower(data ->> 'vault') as vault
    from task where kind in ('earn_deposit', 'earn_withdraw') and status = 'completed' order by id
  loop
    perform earn_position_add(v_task.position, v_task.assets, v_task.shares, v_task.completed_at);
    update earn_account set settled_block = greatest(settled_block, coalesce(v_task.block, 0))
      where user_id = v_task.user_id and chain_id = v_task.chain_id and vault = v_task.vault;
  end loop;
end $$;
