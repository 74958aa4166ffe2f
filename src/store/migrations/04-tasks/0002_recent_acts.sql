-- Finds the act that a request without its key repeats. Only acts have no task, and their rows are few.
create index idempotency_act_request on idempotency (user_id, body_hash, at) where task_id is null;
