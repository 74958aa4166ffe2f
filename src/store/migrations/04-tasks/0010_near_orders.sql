-- As the functions with seven and with nine arguments, which instances of earlier releases call, but of all markets together
-- it takes at most p_all orders: of those that come first, and no further market is read. orders: how many it took of a
-- quote. All users of a quote are named, those with the fewest orders here first.
create function trigger_quotes_near(p_markets text[], p_low numeric[], p_high numeric[], p_except text[], p_max integer,
  p_each integer, p_read integer, p_all integer)
returns table (market text, quote_key text, lte numeric, gte numeric, owners uuid[], orders integer) language sql stable
set enable_seqscan = off set enable_bitmapscan = off as $$
  select u.market, u.quote_key, max(u.lte), min(u.gte), array_agg(u.user_id order by u.of_user, u.user_id),
    sum(u.taken)::integer
  from (select n.market, n.quote_key, n.user_id, min(n.of_user) as of_user, count(*) as taken,
      max(n.trigger_price) filter (where n.direction = 'lte') as lte,
      min(n.trigger_price) filter (where n.direction = 'gte') as gte
    from (select o.*, count(*) over (partition by o.user_id) as of_user from (
    select o.* from unnest(p_markets, p_low, p_high) m (market, low, high), lateral (
      (select b.* from (select t.*, row_number() over (partition by t.user_id order by t.trigger_price desc) as nth from (
        select a.market, a.quote_key, a.direction, a.trigger_price, a.user_id from trigger_order a
          where a.market = m.market and a.status = 'armed' and a.direction = 'lte' and a.trigger_price >= m.low
            and a.quote_key is not null and a.quote_key <> all(p_except)
          order by a.trigger_price desc limit p_read) t) b
        where b.nth <= p_each order by b.trigger_price desc limit p_max)
      union all
      (select b.* from (select t.*, row_number() over (partition by t.user_id order by t.trigger_price) as nth from (
        select a.market, a.quote_key, a.direction, a.trigger_price, a.user_id from trigger_order a
          where a.market = m.market and a.status = 'armed' and a.direction = 'gte' and a.trigger_price <= m.high
            and a.quote_key is not null and a.quote_key <> all(p_except)
          order by a.trigger_price limit p_read) t) b
        where b.nth <= p_each order by b.trigger_price limit p_max)) o limit p_all) o) n
    group by n.market, n.quote_key, n.user_id) u
  group by u.market, u.quote_key
$$;
