import { mutationsOf } from './mutation.ts'

/** Fencing, ledger, holds, idempotency keys and the event log. */
export const durableMutations = [
  ...mutationsOf(
    'src/durable/accept/act-invoker.ts',
    ['test/durable/duplicates.test.ts'],
    [
      [
        '    await assertNoRepeatedAct(tx, keyed, clock)\n',
        '',
        'of equal acts that arrive at once under other keys each is done',
      ],
    ],
  ),
  ...mutationsOf(
    'src/durable/accept/act-invoker.ts',
    ['test/durable/blocked-users.test.ts'],
    [
      [
        'return lockWaiters.run(userId, () => transactions.run(runOnce))',
        'return transactions.run(runOnce)',
        'acts that wait for locked rows keep every connection',
      ],
    ],
  ),
  ...mutationsOf(
    'src/store/migrations/04-tasks/0001_init.sql',
    ['test/durable/duplicates.test.ts'],
    [
      [
        'hashtextextended(x.user_id || x.request_hash, 0) as id',
        'hashtextextended(x.id::text, 0) as id',
        'equal requests without a key that arrive at once are all accepted',
      ],
      [
        'where r.at > x.duplicates_since\n',
        "where r.at > x.duplicates_since + interval '5 minutes'\n",
        'a repeated request is a duplicate for five minutes only',
      ],
    ],
  ),
  ...mutationsOf(
    'src/durable/ledger/ledger.ts',
    ['test/durable/history.test.ts'],
    [
      [
        'and has_units order by',
        'order by',
        'a comparison with the chain reads every position that a user ever opened',
      ],
    ],
  ),
  ...mutationsOf(
    'src/durable/accept/idempotency.ts',
    ['test/durable/engine.test.ts'],
    [
      [
        'row.operation !== operation || row.body_hash !== hash',
        'row.operation !== operation',
        'a key of one body answers another one',
      ],
    ],
  ),
  ...mutationsOf(
    'src/durable/events/event-log.ts',
    ['test/durable/engine.test.ts'],
    [[".where('seq', '>', after)", ".where('seq', '>=', after)", 'a resumed stream repeats an event']],
  ),
  ...mutationsOf(
    'src/durable/run/advance-task.ts',
    ['test/durable/step-failures.test.ts'],
    [
      [
        '  if (live) {\n',
        '  if (live && attempts < 0) {\n',
        'a step that throws while its effect is live ends its task as failed',
      ],
      [
        "(effect) => isLive(effect) || effect.status === 'confirmed'",
        "(effect) => effect.status === 'confirmed'",
        'a step that throws ends its task as failed unless its effect is confirmed',
      ],
      [
        'const ended = exposed ? undefined : endBeforeStep(',
        'const ended = endBeforeStep(',
        'a cancel ends a task whose bytes may still land',
      ],
      [
        'if (ended && mayBeForgotten(',
        'if (!ended && mayBeForgotten(',
        'a task that is late before its first step looks up nothing',
      ],
      [
        "task.outcome === 'unknown' || effects.some(isExposed)",
        'effects.some(isExposed)',
        'the deadline ends a task that looks up what the database forgot, as not executed',
      ],
      [
        "'this version has no such step')\n    return deferToNewerVersion(task)",
        "'this version has no such step')\n    return failed('internal', 'The task has no such step')",
        'a step that this version lacks fails its task, also while an effect is live',
      ],
      [
        'return changed ? { task: now.task } : undefined',
        'return { task: now.task }',
        'a step whose commit is refused is repeated without a pause and without an end',
      ],
    ],
  ),
  ...mutationsOf(
    'src/durable/run/advance-task.ts',
    ['test/durable/fencing.test.ts'],
    [
      [
        '    if (ends.lost.aborted) return undefined\n',
        '',
        'a run without its lease reports the failure of its step',
      ],
    ],
  ),
  ...mutationsOf(
    'src/durable/run/lease.ts',
    ['test/durable/fencing.test.ts'],
    [
      [
        '  for (const [taskId, run] of runs) if (!owned.has(taskId)) run.lost.abort()\n',
        '',
        'a run continues after another instance has taken its task',
      ],
    ],
  ),
  ...mutationsOf(
    'src/store/migrations/04-tasks/0004_order_ends.sql',
    ['test/identity/policy.test.ts'],
    [
      [
        "update policy_spend s set state = 'released' from",
        "update policy_spend s set state = 'reserved' from",
        'a task without execution counts against the cap of the day',
      ],
    ],
  ),
  ...mutationsOf(
    'src/store/migrations/04-tasks/0001_init.sql',
    ['test/durable/fencing.test.ts'],
    [
      [
        "(select 1 from effect where task_id = p_task and status not in ('dropped', 'rejected'))\n    returning *",
        "(select 1 from effect where task_id = p_task and status = 'confirmed')\n    returning *",
        'a cancel is accepted after the signature is stored',
      ],
    ],
  ),
  ...mutationsOf(
    'src/store/migrations/04-tasks/0001_init.sql',
    ['test/durable/step-failures.test.ts', 'test/durable/engine.test.ts'],
    [
      [
        'then coalesce(x.spent, 0) else 0 end,',
        'then coalesce(x.spent, h.amount) else 0 end,',
        'a task that ends without execution posts its hold',
      ],
    ],
  ),
  ...mutationsOf(
    'src/store/migrations/04-tasks/0001_init.sql',
    ['test/durable/step-failures.test.ts'],
    [
      [
        "status in ('pending', 'running') for no key update;\n  if not found",
        "status in ('pending', 'running');\n  if not found",
        'a cancel that waits for the transaction of a signature is accepted after it',
      ],
    ],
  ),
  ...mutationsOf(
    'src/store/migrations/04-tasks/0004_order_ends.sql',
    ['test/durable/lock-order.test.ts'],
    [
      [
        "update policy_spend s set state = 'released'",
        "update policy_spend s set state = 'reserved'",
        'a task without execution counts against the cap of the day',
      ],
    ],
  ),
  ...mutationsOf(
    'src/store/migrations/04-tasks/0004_order_ends.sql',
    ['test/durable/fencing.test.ts'],
    [
      [
        "t.id = x.id and t.version = x.version and t.status in ('pending', 'running')",
        "t.id = x.id and t.status in ('pending', 'running')",
        'an instance that lost its task commits its step, and a step whose commit lost its reply is committed twice',
      ],
      [
        'version = t.version + 1, updated_at = x.at,',
        'updated_at = x.at,',
        'a step whose commit lost its reply is committed once more',
      ],
    ],
  ),
  ...mutationsOf(
    'src/store/migrations/04-tasks/0004_order_ends.sql',
    ['test/durable/step-failures.test.ts', 'test/durable/engine.test.ts'],
    [
      [
        "select x.* into v_change from unnest(v_all) x where x.outcome = 'not_executed' and exists",
        "select x.* into v_change from unnest(v_all) x where x.outcome = 'nothing' and exists",
        'a task ends as not executed while its effect may still land',
      ],
    ],
  ),
  ...mutationsOf(
    'src/store/migrations/04-tasks/0004_order_ends.sql',
    ['test/durable/step-failures.test.ts'],
    [
      [
        "(not t.cancel_requested or x.status = 'cancelled' or exists\n          (select 1 from effect where task_id = t.id and effect.status not in ('dropped', 'rejected')))",
        "(not t.cancel_requested or x.status = 'cancelled')",
        'a task with a cancel request beside a stored effect commits nothing any more and never ends',
      ],
    ],
  ),
  ...mutationsOf(
    'src/durable/run/step-committer.ts',
    ['test/durable/blocked-users.test.ts'],
    [
      [
        'turns.run(task.user_id === systemOwner ? task.id : task.user_id, ',
        'turns.run(task.id, ',
        'the locked row of one user takes every connection to the database',
      ],
    ],
  ),
  ...mutationsOf(
    'src/engines/trigger-orders/fire-orders.ts',
    ['test/durable/triggers.test.ts'],
    [
      [
        '        batchLockWaitMs,\n',
        '        null,\n',
        'the locked row of one user delays the stops of the others',
      ],
    ],
  ),
  ...mutationsOf(
    'src/store/migrations/04-tasks/0001_init.sql',
    ['test/durable/triggers.test.ts'],
    [
      [
        'select distinct on (coalesce(c.oco_group, c.id)) c.id',
        'select c.id',
        'a price that crosses both exits of a pair fires both',
      ],
    ],
  ),
  ...mutationsOf(
    'src/engines/trigger-orders/store.ts',
    ['test/durable/triggers.test.ts'],
    [
      [
        'where id = $1 and task_id = $2 and status',
        'where id = $1 and $2::uuid is not null and status',
        'an order is armed again by a task that is not its last one',
      ],
      [
        "from again where t.cancelled_by = again.id and t.status = 'cancelled'",
        "from again where t.cancelled_by = again.id and t.status = 'armed'",
        'a stop that is armed again has lost its take-profit',
      ],
    ],
  ),
  ...mutationsOf(
    'src/engines/trigger-orders/quote-turns.ts',
    ['src/engines/trigger-orders/quote-turns.test.ts'],
    [
      [
        'one.place - other.place || one.turn - other.turn',
        'one.place - other.place',
        'many orders of one user keep the stop of another one from firing',
      ],
      [
        'lastTurnOf(keyOf(one)) - lastTurnOf(keyOf(other))',
        '0',
        'of many orders of one user only the first ones are ever quoted',
      ],
    ],
  ),
  ...mutationsOf(
    'src/engines/cost-basis/store.ts',
    ['test/durable/cost-basis.test.ts'],
    [
      [
        'least(b.units + excluded.units, $7::numeric)',
        'b.units + excluded.units',
        'a token that announces huge numbers keeps its swap from ending',
      ],
    ],
  ),
  ...mutationsOf(
    'src/durable/accept/lock-waiters.ts',
    ['test/durable/blocked-users.test.ts'],
    [
      ['if (!mayWait) return', 'if (!userId) return', 'a locked row of one user delays every other user'],
      [
        "'select 1 from user_event_seq where user_id = $1 for no key update'",
        "'select 1 from user_event_seq where user_id = $1'",
        'a promise that waits for a row of its user holds rows that other users need',
      ],
    ],
  ),
  ...mutationsOf(
    'src/store/migrations/03-ledger/0001_init.sql',
    ['test/durable/engine.test.ts', 'test/durable/step-failures.test.ts'],
    [
      ['if found and v_avail < v_amount then', 'if found and v_avail < 0 then', 'a hold exceeds the account'],
      ["if v_transfer.state <> 'pending' then continue; end if;", '', 'an ended hold is settled once more'],
    ],
  ),
  ...mutationsOf(
    'src/store/migrations/03-ledger/0001_init.sql',
    ['test/durable/balance-snapshots.test.ts'],
    [
      [
        'perform ledger_write(v_debit, -v_amount, v_amount, false);',
        'perform ledger_write(v_debit, -v_amount, v_amount, true);',
        'a hold raises the version of its account and makes balance snapshots stale for ever',
      ],
    ],
  ),
  ...mutationsOf(
    'src/store/migrations/03-ledger/0001_init.sql',
    ['test/durable/engine.test.ts'],
    [
      [
        '(h.debit, h.amount - h.posted, -h.amount, true)',
        '(h.debit, 0, -h.amount, true)',
        'a released hold is not returned',
      ],
    ],
  ),
  ...mutationsOf(
    'src/store/migrations/04-tasks/0001_init.sql',
    ['test/durable/balance-snapshots.test.ts'],
    [
      [
        'greatest(o.seen_total - o.avail - o.held, -o.avail)',
        'greatest(o.seen_total - o.avail, -o.avail)',
        'a snapshot books the held part as available once more',
      ],
      [
        'coalesce(o.version <> o.seen_version, false)',
        'false',
        'a balance that was read before a settlement is accepted after it',
      ],
    ],
  ),
  ...mutationsOf(
    'src/store/migrations/04-tasks/0001_init.sql',
    ['test/durable/sign-on-accept.test.ts'],
    [
      [
        'set next = greatest(next, p_min) + 1',
        'set next = greatest(next, p_min)',
        'two signatures take one nonce',
      ],
    ],
  ),
  ...mutationsOf(
    'src/durable/task/task-queries.ts',
    ['test/durable/fencing.test.ts'],
    [
      [
        'const db = act.tx ?? pool',
        'const db = pool',
        'each cancel takes a second connection, and many at once take all of the pool and wait for ever',
      ],
    ],
  ),
  ...mutationsOf(
    'src/durable/run/runner.ts',
    ['test/durable/leases.test.ts'],
    [
      [
        '      if (running.get(id) === entry) {\n',
        '      {\n',
        'the end of an old run deletes the entry of the new one, whose lease is then not renewed',
      ],
      [
        '  running.get(id)?.lost.abort()\n',
        '',
        'the run of an earlier claim goes on beside the one of the new claim',
      ],
    ],
  ),
  ...mutationsOf(
    'src/durable/run/lease.ts',
    ['test/durable/leases.test.ts'],
    [
      [
        'else owner not in (select id from others) end for update skip locked)',
        'else owner not in (select id from others) end for update)',
        'one locked row costs an instance its lease',
      ],
      [
        'where owner = $1 and exists (select from renewed)) as owned',
        'where owner = $1 and exists (select from renewed) for update) as owned',
        'the heartbeat locks the tasks of its instance, and one of them that is locked costs it all leases',
      ],
      [
        'query<Heartbeat>(deps.heartbeats, heartbeatSql',
        'query<Heartbeat>(deps.pool, heartbeatSql',
        'work that takes every connection delays the heartbeat until the lease has ended',
      ],
      [
        '  leases.strays = new Set(row.owned.filter((taskId) => !running.has(taskId)))\n',
        '',
        'a task that its instance does not run is never released',
      ],
    ],
  ),
  ...mutationsOf(
    'src/durable/run/claims.ts',
    ['test/durable/leases.test.ts'],
    [
      [
        "set status = 'running', version = version + 1 where",
        "set status = 'running' where",
        'the former run of a claimed task commits its step',
      ],
    ],
  ),
  ...mutationsOf(
    'src/durable/events/notifier.ts',
    ['src/durable/events/notifier.test.ts'],
    [
      [
        'if ((await publish(items)) || undelivered.length === 0) continue',
        'void publish(items)\n      if (undelivered.length === 0) continue',
        'a notification does not wait for the previous one, and a slow bus takes every connection',
      ],
      [
        'if (item === question) announceAll()',
        'if (item === question) continue',
        'an instance that has just connected does not learn what the others listen to',
      ],
    ],
  ),
  ...mutationsOf(
    'src/durable/upkeep/task-retention.ts',
    ['test/durable/retention.test.ts'],
    [
      [
        'not exists (select from effect where task_id = passed.id)\n    and ',
        '',
        'a task that has signed is deleted as one that moved nothing',
      ],
      [
        'from passed where completed_at is not null and',
        'from passed where',
        'a task that has not ended is deleted',
      ],
    ],
  ),
  ...mutationsOf(
    'src/features/policy/retention.ts',
    ['test/durable/retention.test.ts'],
    [
      [
        'and exists (select from task where id = s.task_id and completed_at is not null)',
        '',
        'the reservation of an open task is deleted',
      ],
    ],
  ),
  ...mutationsOf(
    'src/durable/ledger/audit.ts',
    ['test/durable/ledger-audit.test.ts'],
    [
      [
        'left = new Set(await writers()); left.size > 0; )',
        'left = new Set<string>(); left.size > 0; )',
        'the audit counts past a transaction in flight and never counts what it settles',
      ],
      [
        '    on conflict (account_id) do update set units = c.units + excluded.units),',
        '    on conflict (account_id) do update set units = excluded.units),',
        'the audit forgets what it counted of an account before',
      ],
      [
        'from change join account a using (id) where a.id <= $3 group by a.asset',
        'from change join account a using (id) where false group by a.asset',
        'the sums of the assets miss what is counted during a cycle',
      ],
      [
        'set compared_account = (select max(id) from chosen)',
        'set compared_account = 0',
        'the audit compares the first accounts only',
      ],
      [
        'where (again.transfers, again.digest) <> (kept.transfers, kept.digest)',
        'where again.transfers <> kept.transfers',
        'a counted transfer whose content is changed goes unnoticed',
      ],
    ],
  ),
  ...mutationsOf(
    'src/store/migrations/03-ledger/0001_init.sql',
    ['test/durable/ledger-model.test.ts'],
    [
      ['if v_transfer.id is null then continue; end if;', '', 'a repeated movement is booked once more'],
      ["when 'void' then 0 else", "when 'void' then v_transfer.amount else", 'a void delivers what was held'],
    ],
  ),
  ...mutationsOf(
    'src/start/stop-signals.ts',
    ['src/start/stop-signals.test.ts'],
    [
      [
        'nowMs() - firstAtMs > copiesMsMax',
        'nowMs() > firstAtMs',
        'the copy of a signal ends the gateway in the middle of its stop',
      ],
    ],
  ),
  ...mutationsOf(
    'src/store/migrate.ts',
    ['test/store/migrate.test.ts'],
    [
      [
        'checksum, release ?? null]',
        'checksum, null]',
        'no refusal can name the release that reads the database',
      ],
    ],
  ),
]
