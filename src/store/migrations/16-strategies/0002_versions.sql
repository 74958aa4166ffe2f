-- Whether a run names a version; others than the newest are deleted.
create index strategy_execution_of_version on strategy_execution (strategy_id, version);
