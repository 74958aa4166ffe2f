-- A fill of an order of another client has no title; that of its outcome is that of any other fill.
create index prediction_fill_titled on prediction_fill (user_id, venue, outcome_id) where title <> '';
