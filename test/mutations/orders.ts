import { mutationsOf } from './mutation.ts'

/** Limit orders and hooks: what they count from, when they fire, and what they sell. */
export const orderMutations = [
  ...mutationsOf(
    'src/features/hooks/hooks.ts',
    ['test/journeys/order-attacks.test.ts'],
    [['exit: acceptedLossBps === undefined,', 'exit: true,', 'a stop is left whose sale the policy refuses']],
  ),
  ...mutationsOf(
    'src/engines/trigger-orders/tp-sl.ts',
    ['src/engines/trigger-orders/tp-sl.test.ts'],
    [
      [
        "type === 'trailing' ? mark : reference",
        "type === 'trailing' ? reference : mark",
        'a hook counts from another price',
      ],
      [
        'if (isProfit ? side > 0 : side < 0) return',
        'if (isProfit ? side >= 0 : side <= 0) return',
        'a hook fires at once',
      ],
      [
        "type === 'stop_loss' ? { below: '1' } : { atMost: profitMax }",
        '{ atMost: profitMax }',
        'a stop is below zero',
      ],
      [
        ".sell_percentage`, { atMost: '1' })",
        ".sell_percentage`, { atMost: '2' })",
        'a hook sells more than there is',
      ],
    ],
  ),
  ...mutationsOf(
    'src/features/hooks/hook-execution.ts',
    ['src/features/hooks/hook-execution.test.ts', 'test/durable/swap-hooks.test.ts'],
    [
      ['atMost(wanted, sellableUnits)', 'wanted', 'a hook sells what is not there'],
      [
        'lot_units === undefined ? sellableUnits : BigInt(lot_units)',
        'sellableUnits',
        'a hook of a swap sells the rest of the balance as well',
      ],
      ['      isExit: true,', '      isExit: false,', 'a cap stops a stop'],
      ['if (units === 0n) return null', '', 'a hook on nothing makes a swap'],
      [
        '      maxImpactBps: input.max_price_impact_bps,\n',
        '',
        'a stop waits although its owner accepts any loss',
      ],
      [
        'toAssetId({ id: chain_id }, token_address)',
        'toAssetId({ id: chain_id }, token_address.toLowerCase())',
        'a hook on Solana that fired finds no price of its token',
      ],
      [
        "and s.id <> o.id and s.status = 'fired'",
        "and s.id <> o.id and s.status = 'armed'",
        'two hooks that fire at once sell the same units',
      ],
      [
        'case when s.task_id < $2 then',
        'case when s.task_id > $2 then',
        'the hook that fired first gets nothing',
      ],
    ],
  ),
  ...mutationsOf(
    'src/engines/trigger-orders/cancel.ts',
    ['test/durable/swap-hooks.test.ts'],
    [
      [
        'and t.id <> all($2::uuid[])',
        'and t.id is not null and $2::uuid[] is not null',
        'a cancel of a whole group arms one of its hooks again',
      ],
      [
        'where task_id = any($1::uuid[])',
        'where false and task_id = any($1::uuid[])',
        'an order whose task is cancelled stays fired',
      ],
      [
        "and kind = any($3) and status in ('waiting', 'armed') returning *",
        "and kind = any($3) and status <> 'cancelled' returning *",
        'a sale that goes on is cancelled',
      ],
    ],
  ),
  ...mutationsOf(
    'src/features/limit-orders/limit-order-execution.ts',
    ['src/features/limit-orders/limit-order-execution.test.ts'],
    [
      [
        'toAssetId({ id: chain_id_out }, token_out)',
        'toAssetId({ id: chain_id_out }, token_out.toLowerCase())',
        'a limit order that buys on Solana finds no price of its token',
      ],
      [
        'wanted < availableUnits ? wanted : availableUnits',
        'wanted',
        'a limit order sells what is not there',
      ],
    ],
  ),
  ...mutationsOf(
    'src/features/swap/order-swaps.ts',
    ['test/journeys/order-attacks.test.ts'],
    [['isExit && isExitLoss(terms.maxImpactBps)', 'isExit', 'a stop that accepts any loss passes the caps']],
  ),
  ...mutationsOf(
    'src/features/tasks/tasks.ts',
    ['test/journeys/orders.test.ts'],
    [
      [
        '{ taskIds: [task.id], ids: [], at: clock.now() }',
        '{ taskIds: [], ids: [task.id], at: clock.now() }',
        'a cancel of the task of a stop leaves the position without protection',
      ],
    ],
  ),
  ...mutationsOf(
    'src/features/swap/order-swaps.ts',
    ['test/journeys/svm-orders.test.ts'],
    [
      [
        'account: accountOn(origin.chain, wallets)',
        'account: accountOn(deps.chains[0]!, wallets)',
        'a quote on Solana is asked for an account that is none',
      ],
    ],
  ),
  ...mutationsOf(
    'src/kernel/money/chains.ts',
    ['test/journeys/svm-orders.test.ts'],
    [
      [
        "supportedOperations.includes('swap')",
        'supportedOperations.length >= 0',
        'an order waits where nothing can be sold',
      ],
    ],
  ),
  ...mutationsOf(
    'src/features/swap/order-swaps.ts',
    ['test/journeys/svm-orders.test.ts'],
    [
      [
        'rest > 0n && rest < rent && total > rent ? total - rent : units',
        'units',
        'a stop on nearly all SOL never sells',
      ],
    ],
  ),
  ...mutationsOf(
    'src/features/hooks/trigger-row.ts',
    ['test/durable/swap-hooks.test.ts'],
    [
      ["ends_group: leg.sell === '1',", 'ends_group: true,', 'a sale of a part ends the stop of the rest'],
      ['    id: hook.id,', '    id: crypto.randomUUID(),', 'a repeated step arms hooks twice'],
    ],
  ),
  ...mutationsOf(
    'src/features/hooks/swap-hooks.ts',
    ['test/durable/swap-hooks.test.ts'],
    [
      [
        '{ kind: hookKind, market: marketOf(chain, token.address) }',
        '{ kind: hookKind, market: token.symbol }',
        'the hooks on the sold token stay',
      ],
    ],
  ),
  ...mutationsOf(
    'src/engines/trigger-orders/price-watch.ts',
    ['test/durable/swap-hooks.test.ts'],
    [
      [
        'if (!first || atMs - first.atMs > agreeMsMax) return',
        'if (!first) await priceTriggers.fireTriggers(lease, { low: price, high: price }, quoteKey)\n    if (!first) return',
        'one bad price fires a stop',
      ],
      [
        'low: isLower ? price : first.price, high: isLower ? first.price : price',
        'low: price, high: isLower ? price : first.price',
        'the worse of two prices fires a stop',
      ],
    ],
  ),
  ...mutationsOf(
    'src/engines/trigger-orders/store.ts',
    ['test/durable/swap-hooks.test.ts', 'test/durable/order-lists.test.ts'],
    [
      [
        'where o.kind = $2 and o.market = $3 and o.id in',
        "where o.kind = $2 and $3::text <> '' and o.id in",
        'a swap cancels the hooks on other tokens',
      ],
      [
        "  await query(tx, 'select policy_lock($1, $2)', [userId, at])\n",
        '',
        'requests at once pass the limit of orders together',
      ],
      [
        "taskEnd === null ? 'is null'",
        "taskEnd !== null ? 'is null'",
        'a list shows orders of other statuses',
      ],
      [
        'where id = $1 or oco_group = (select oco_group from trigger_order where id = $1) order by id',
        'where id = $1 order by id',
        'the others of a group sell again what one has sold',
      ],
    ],
  ),
  ...mutationsOf(
    'src/engines/trigger-orders/after-task-end.ts',
    ['test/durable/order-ends.test.ts', 'test/durable/operator-ends.test.ts'],
    [
      [
        'each.id === orderId ? { ...order, ...each, ...ofTask, updated_at: now } : toRow(each)',
        'toRow(each)',
        'an order that failed reports that it goes on',
      ],
      [
        'if (units > 0n) await rules.onSold',
        'if (units < 0n) await rules.onSold',
        'a lost deposit is sold again',
      ],
      ["  'ended_by_operator',\n", '', 'an operator who sees that nothing was sold leaves a stop unarmed'],
    ],
  ),
  ...mutationsOf(
    'src/engines/trigger-orders/run-order.ts',
    ['src/engines/trigger-orders/run-order.test.ts'],
    [
      [
        "  code === 'insufficient_balance' ||\n",
        '',
        'a stop dies where another task reserves its token while it is quoted',
      ],
      ["  code === 'upstream_rejected' ||\n", '', 'one refusal of one node ends a stop'],
      [
        'await step(task, context).catch(throwRetried)',
        'await step(task, context)',
        'a stop dies where a node refuses a call before its signature',
      ],
      [
        "heldUnits > 0n && fault instanceof Fault && fault.code === 'validation'",
        "heldUnits < 0n && fault instanceof Fault && fault.code === 'validation'",
        'a stop dies where another task leaves too little for a swap',
      ],
      [
        'if (!swap && !isLimited && !task.data.is_empty)',
        'if (!swap && !isLimited && task.data.is_empty)',
        'one read of a node that lags ends a stop',
      ],
    ],
  ),
  ...mutationsOf(
    'src/engines/trigger-orders/after-task-end.ts',
    ['src/engines/trigger-orders/run-order.test.ts'],
    [
      [
        ' || faults[code as FaultCode]?.retryable === true',
        '',
        'a stop ends for good where its node was away until the deadline',
      ],
      [
        'isRecord(ending.result?.refunded) ?',
        "ending.outcome !== 'not_executed' ?",
        'a stop whose deposit came back as a whole never sells',
      ],
    ],
  ),
  ...mutationsOf(
    'src/engines/trigger-orders/run-order.ts',
    ['test/durable/order-ends.test.ts'],
    [
      [
        "ending.end === 'failed'\n        ?",
        "ending.end !== 'failed'\n        ?",
        'a stop whose deadline passes while the gateway is away stays unarmed, without an event',
      ],
    ],
  ),
  ...mutationsOf(
    'src/features/swap/settle/operator-end.ts',
    ['test/durable/operator-ends.test.ts'],
    [
      [
        'return withFill(deps, task, { ...ending, result, data: { ...ending.data, ...changes } }, at)',
        'return { ...ending, result }',
        'a swap that an operator ends arms no hooks',
      ],
      [
        'deps.watchLatePayment(tx, { ...task, data: { ...data, paid } })',
        'Promise.resolve()',
        'what a provider pays after an operator gave a swap up is not found',
      ],
      [
        "if (finding.outcome === 'not_executed' && deposit !== undefined)",
        "if (finding.outcome === 'not_executed' && deposit === null)",
        'a deposit that was made is ended as not executed',
      ],
    ],
  ),
  ...mutationsOf(
    'src/admin/operator-task-end.ts',
    ['test/durable/operator-ends-by-kind.test.ts'],
    [
      [
        '    assertNothingExecuted(task)\n',
        '',
        'a task of which a part was executed is ended as not executed',
      ],
      [
        "if (outcome === 'executed') assertOwnTransaction(task, resolution)",
        "if (outcome === 'executed') void assertOwnTransaction",
        'a task is executed by the transaction of somebody else',
      ],
    ],
  ),
  ...mutationsOf(
    'src/kernel/task/operator-end.ts',
    ['test/durable/operator-ends-by-kind.test.ts'],
    [
      [
        'validUntil ?? new Date(at.getTime() + unboundedMs)',
        'validUntil ?? at',
        'what was signed without an expiry counts as void',
      ],
    ],
  ),
  ...mutationsOf(
    'src/kernel/task/poll-again.ts',
    ['src/kernel/task/poll-again.test.ts', 'src/engines/evm-batch/confirm.test.ts'],
    [
      [
        'if (age.ageMs > silentMaxMs)',
        'if (age.ageMs < 0)',
        'a chain that is silent for good keeps its tasks from every operator',
      ],
    ],
  ),
  ...mutationsOf(
    'src/features/swap/settle/operator-found-payment.ts',
    ['test/durable/operator-ends-by-kind.test.ts'],
    [["claimant: ''", 'claimant: id', 'an operator adds a payment twice']],
  ),
  ...mutationsOf(
    'src/features/perp/fund-operator-end.ts',
    ['test/durable/operator-ends-by-kind.test.ts'],
    [
      [
        'if (!isWhole) {\n    const failed = fundingSwapFailed',
        'if (outUnits === 0n) {\n    const failed = fundingSwapFailed',
        'a deposit with the provider is shown in the wallet',
      ],
    ],
  ),
  ...mutationsOf(
    'src/store/migrations/04-tasks/0004_order_ends.sql',
    ['test/durable/order-ends.test.ts', 'test/durable/order-lists.test.ts'],
    [
      [
        'where o.id = any(v_orders) and o.task_id = x.id',
        'where o.id = any(v_orders) and o.task_id <> x.id',
        'an order takes the end of the task of another one',
      ],
    ],
  ),
  ...mutationsOf(
    'src/engines/trigger-orders/price-watch.ts',
    ['test/durable/quote-owners.test.ts'],
    [
      [
        'if (waitMs === undefined) return { price: undefined }',
        'return { price: undefined }',
        'a user without a share of the quotes keeps the stops of others from firing for ten seconds at a time',
      ],
      [
        'owners.failed(key, userId, waitMs ?? 0)',
        'if (waitMs !== undefined) owners.failed(key, userId, waitMs)',
        'a user whom the providers do not serve keeps the stops of others from firing',
      ],
      [
        "if (answer === 'no_share') return budget.giveBack(1)",
        "if (answer === 'no_share') return",
        'orders of a user without a share use up the quotes of the gateway',
      ],
    ],
  ),
  ...mutationsOf(
    'src/engines/trigger-orders/price-watch.ts',
    ['test/durable/quote-rounds.test.ts'],
    [
      [
        ' && clockMs() - quote.atMs <= agreeMsMax',
        '',
        'of many stops that one price reaches those that were quoted too long ago keep each other from firing',
      ],
      [
        ' && clockMs() - startedMs < askMsMax',
        '',
        'a round of slow quotes lasts longer than two of them agree, so that no stop fires',
      ],
    ],
  ),
  ...mutationsOf(
    'src/engines/trigger-orders/trailing.ts',
    ['test/durable/trailing-orders.test.ts'],
    [
      [
        'counts.get(market)?.length === share)',
        'counts.get(market)?.length === 0)',
        'of many trailing stops of a market only a thousand follow the price',
      ],
      [
        'Math.ceil(batchMax / prices.length)',
        'batchMax',
        'one statement changes as many orders as all markets have',
      ],
      [
        'if (monotonicMs() - startedMs >= msMax) return',
        '',
        'a price that rises delays the stops of all other markets',
      ],
    ],
  ),
  ...mutationsOf(
    'src/engines/trigger-orders/choose-quote-owner.ts',
    ['src/engines/trigger-orders/choose-quote-owner.test.ts'],
    [
      [
        'userId > last.userId ||',
        'userId < last.userId ||',
        'of many users without a share the same few are asked in each round',
      ],
      [
        ' || (last.isAnswered && userId === last.userId)',
        '',
        'the second quote of an order is asked for in the name of a user who has no share',
      ],
    ],
  ),
  ...mutationsOf(
    'src/engines/trigger-orders/quotes-near-triggers.ts',
    ['src/engines/trigger-orders/quotes-near-triggers.test.ts'],
    [
      [
        'Math.max(last, 1)',
        'last',
        'a market with as many orders as one read takes keeps those of all others from firing',
      ],
      ['inTurn.slice(last).filter', 'inTurn.slice(last + 1).filter', 'a second quote comes too late'],
    ],
  ),
  ...mutationsOf(
    'src/kernel/money/quote-budget.ts',
    ['src/kernel/money/quote-budget.test.ts'],
    [
      [
        "scope === 'account' ? Number(seconds)",
        "scope !== 'account' ? Number(seconds)",
        'a share that is used up is taken for a provider that is away',
      ],
    ],
  ),
  ...mutationsOf(
    'src/store/migrations/04-tasks/0010_near_orders.sql',
    ['test/durable/triggers.test.ts'],
    [
      [
        'where b.nth <= p_each order by b.trigger_price desc limit p_max',
        'order by b.trigger_price desc limit p_max',
        'three users with orders near the price keep those of others from firing',
      ],
      ['o limit p_all) o) n', 'o) o) n', 'a round loads the orders of all markets at once'],
    ],
  ),
  ...mutationsOf(
    'src/store/migrations/04-tasks/0001_init.sql',
    ['test/durable/triggers.test.ts', 'test/durable/order-lists.test.ts'],
    [
      [
        'where starts_with(m.market, p_prefix) group',
        'where m.market is not null group',
        'exits at the venue use up the number of markets that are watched',
      ],
      [
        "quote_key is null\n        and direction = 'lte' and trigger_price >= p_high and (expires_at is null or expires_at > p_at)",
        "quote_key is null\n        and direction = 'lte' and trigger_price >= p_high",
        'an order fires after its time',
      ],
      [
        "and f.ends_group and t.id <> f.id and t.status in ('waiting', 'armed') returning t.*",
        "and f.ends_group and t.id <> f.id and t.status = 'waiting' returning t.*",
        'both orders of a pair sell',
      ],
    ],
  ),
]
