-- What is held of the outcome after a confirmed fill, in the order of the matches: shares, what they cost with fees, and
-- what sales have brought beyond their cost. Null until the fill is confirmed.
alter table prediction_fill
  add column held numeric(40),
  add column held_cost numeric(40),
  add column realized numeric(40);
create index prediction_fill_of_outcome
  on prediction_fill (user_id, venue, outcome_id, matched_at, side, trade_id, order_id) where settlement = 'confirmed';
