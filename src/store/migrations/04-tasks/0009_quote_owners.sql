-- As the function with seven arguments, which instances of the previous release call, and with the users of each quote: those
-- with the fewest orders here first, whose turn comes soonest, and those in p_last after all others. At most p_owners of a
-- quote.
create function trigger_quotes_near(p_markets text[], p_low numeric[], p_high numeric[], p_except text[], p_last uuid[],
  p_max integer, p_each integer, p_read integer, p_owners integer)
returns table (market text, quote_key text, lte numeric, gte numeric, owners uuid[]) language sql stable
set enable_seqscan = off set enable_bitmapscan = off as $$
  select u.market, u.quote_key, max(u.lte), min(u.gte),
    (array_agg(u.user_id order by u.user_id = any(p_last), u.orders, u.user_id))[1:p_owners]
  from (select n.market, n.quote_key, n.user_id, min(n.orders) as orders,
      max(n.trigger_price) filter (where n.direction = 'lte') as lte,
      min(n.trigger_price) filter (where n.direction = 'gte') as gte
    from (select o.*, count(*) over (partition by o.user_id) as orders
    from unnest(p_markets, p_low, p_high) m (market, low, high), lateral (
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
        where b.nth <= p_each order by b.trigger_price limit p_max)) o) n
    group by n.market, n.quote_key, n.user_id) u
  group by u.market, u.quote_key
$$;
