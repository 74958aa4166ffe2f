import { mutationsOf } from './mutation.ts'

/** Orders, brackets and the reconciliation of accounts with the venue. */
export const venueMutations = [
  ...mutationsOf(
    'src/features/perp/swap-before-deposit.ts',
    ['src/features/perp/swap-before-deposit.test.ts'],
    [
      [
        "    outcome: 'partial',\n    error: {",
        "    outcome: 'not_executed',\n    error: {",
        'a funding whose swap was executed says that nothing was',
      ],
      [
        'amountUnits < minFundUnits(deps.limits)',
        'amountUnits < 0n',
        'less than the bridge credits is sent to it and lost',
      ],
      [
        'BigInt(data.swapped!.units)\n',
        'BigInt(data.amount_units)\n',
        'a deposit is the least output of the swap and not what arrived',
      ],
      [
        'if (swapEffect) await deps.policy.release',
        'if (!swapEffect) await deps.policy.release',
        'a funding counts twice against the limits',
      ],
      [
        '{ ...funds.spend, holdKey: depositHold(taskId) }',
        'funds.spend',
        'the deposit shares the hold of the swap',
      ],
      [
        '    writes: (tx) => batches.releaseGas(tx, taskId),',
        '',
        'the gas of a deposit that was never mined is charged for the day',
      ],
      ['if (ageMs > secondLegMs)', 'if (false)', 'a deposit is prepared for ever'],
    ],
  ),
  ...mutationsOf(
    'src/features/perp/swap-leg.ts',
    ['src/features/perp/swap-before-deposit.test.ts'],
    [
      [
        "end.outcome === 'not_executed' ? 'wallet' : 'provider'",
        "'wallet'",
        'a deposit that the provider keeps is shown in the wallet',
      ],
      [
        'briefReasons.includes(code) || briefReasons.includes(extras.reason) ? ageMs < briefMs : retryable',
        'true',
        'no refusal ends a second leg',
      ],
    ],
  ),
  ...mutationsOf(
    'src/features/perp/withdraw-swap.ts',
    ['src/features/perp/withdraw-swap.test.ts'],
    [
      [
        "    outcome: 'partial',\n    error: {",
        "    outcome: 'not_executed',\n    error: {",
        'a withdrawal that was paid out says that nothing was executed',
      ],
      [
        'amountUnits: BigInt(received.units),',
        'amountUnits: toUnits(data.amount_usd, usdcDecimals),',
        'the swap of a payout takes the fee of the venue from the wallet',
      ],
      [
        '      writes: (tx) => reserve(tx, task, spend, now),\n',
        '',
        'another task can spend the payout before its swap',
      ],
      [
        'found.tx_hash === null ? inWallet : found',
        'inWallet',
        'dollars that the provider keeps are shown in the wallet',
      ],
      ['if (ageMs > secondLegMs)', 'if (false)', 'the swap of a payout is prepared for ever'],
    ],
  ),
  ...mutationsOf(
    'src/features/swap/steps.ts',
    ['src/features/swap/steps.test.ts'],
    [
      [
        'if (chainId === origin.chain_id) return undefined',
        'return undefined',
        'a bridge is signed to a chain that the user has taken off the list since',
      ],
    ],
  ),
  ...mutationsOf(
    'src/features/perp/withdrawal-payout-search.ts',
    ['src/features/perp/withdraw.test.ts'],
    [
      [
        'from_block: isMissed ? first_block : String(next)',
        'from_block: String(next)',
        'a payout that one node of the provider hid is never found again',
      ],
      [
        'payout_read_poll === undefined ? polls + 1 - repollAfter : polls',
        'polls',
        'a payout that is listed a moment late ends half a minute later',
      ],
    ],
  ),
  ...mutationsOf(
    'src/engines/venue/orders/entry-outcome.ts',
    ['src/engines/venue/orders/entry-outcome.test.ts'],
    [
      [
        'timeMs(task.data.account), nonceMs, foundAtMs)',
        'timeMs(task.data.account), foundAtMs)',
        'the absence of an exit is judged by the time of a server that lags',
      ],
      [
        'isSettled && allRecords && exit.orderId === null',
        'isSettled && allRecords',
        'an exit that the venue showed before counts as missing while a server hides it',
      ],
    ],
  ),
  ...mutationsOf(
    'src/upstreams/hyperliquid/markets-cache.ts',
    ['test/venue/odd-market-lists.test.ts'],
    [
      [
        'const markets = withKnown(isFailed ? [] : read)',
        'const markets = isFailed ? [] : read',
        'a position cannot be closed while the list of markets does not parse',
      ],
      [
        'midPrice: null, isStale: true',
        'midPrice: null, isStale: false',
        'an order is opened in a market that the venue does not show readably',
      ],
    ],
  ),
  ...mutationsOf(
    'src/kernel/task/effect-steps.ts',
    ['test/venue/refused-signatures.test.ts'],
    [
      [
        'onRefused: (fault) => addToResult(onRefused(fault), addition)',
        'onRefused',
        'a transfer is not claimed where the signature of the following order is refused',
      ],
    ],
  ),
  ...mutationsOf(
    'src/engines/venue/perp-orders/unwind-unprotected-entry.ts',
    ['test/venue/unwind.test.ts', 'src/engines/venue/perp-orders/unwind-unprotected-entry.test.ts'],
    [
      [
        'const known = { order_outcome: { entry, exits }, closed_size: closedSize }',
        'const known = { closed_size: closedSize }',
        'an entry whose cancel is confirmed is cancelled again before a close that has to be repeated',
      ],
      [
        'if (isFinal) return finishBy(closed)',
        'if (exits) return finishBy(closed)',
        'a cancelled entry counts as unfilled by reads that are older than its fill',
      ],
      [
        'subtractDecimals(sumFills(own).size, closedSize)',
        'sumFills(own).size',
        'a position from before the entry is closed with it',
      ],
    ],
  ),
  ...mutationsOf(
    'src/engines/venue/orders/confirm-action.ts',
    ['src/engines/venue/orders/confirm-action.test.ts'],
    [
      [
        'if (timing.atMs - absence.at_ms < secondLookUpMs) break',
        '',
        'one look-up without a record proves that an order expired',
      ],
    ],
  ),
  ...mutationsOf(
    'src/features/perp/setup.ts',
    ['src/features/perp/setup.test.ts'],
    [
      [
        '(!data.rotate || isReplaced)',
        '!data.rotate',
        'a renewal replaces a key that a set-up approved meanwhile, and a stop signed by it is rejected',
      ],
    ],
  ),
  ...mutationsOf(
    'src/upstreams/hyperliquid/own-node.ts',
    ['src/upstreams/hyperliquid/requests.test.ts'],
    [
      [
        'Math.abs(atMs - time) <= clockDifferenceMaxMs',
        'time > 0',
        'an own node that stands still answers for the venue',
      ],
    ],
  ),
  ...mutationsOf(
    'src/upstreams/hyperliquid/stream-connection.ts',
    ['test/venue/foreign-frames.test.ts'],
    [
      [
        '    if (isReadableFrame(data)) return dispatch(event)\n',
        '    if (data !== undefined) return dispatch(event)\n',
        "a frame that the venue's client library cannot read ends the process",
      ],
    ],
  ),
  ...mutationsOf(
    'src/upstreams/hyperliquid/sign.ts',
    ['src/upstreams/hyperliquid/sign.test.ts'],
    [
      [
        "toPerp: action.to === 'perp'",
        "toPerp: action.to !== 'perp'",
        'cash moves to the other side of the account than requested',
      ],
      [
        'amount: action.amount,\n        time: nonce',
        'amount: action.amount,\n        time: 0',
        'a withdrawal has no time and can be signed twice alike',
      ],
      [
        'createL1ActionHash({ action: wire, nonce, ...expiry })',
        'createL1ActionHash({ action: wire, nonce })',
        'the expiry of an order is not covered by its signature',
      ],
    ],
  ),
  ...mutationsOf(
    'src/upstreams/hyperliquid/sign.ts',
    ['src/upstreams/hyperliquid/sign.test.ts'],
    [
      [
        '  local: testnet,\n',
        "  local: { chain: { signatureChainId: '0xa4b1', hyperliquidChain: 'Mainnet' }, source: 'a' },\n",
        'a signature for the local world is valid on the main network',
      ],
      [
        "  source: 'b',\n",
        "  source: 'a',\n",
        'an order that is signed for the test network is valid on the main network',
      ],
    ],
  ),
  ...mutationsOf(
    'src/engines/venue/records/bracket.ts',
    ['src/engines/venue/records/bracket.test.ts'],
    [
      [
        "return entryRests ? 'waiting' : 'open'",
        "return 'open'",
        'an exit of a resting entry counts as protection',
      ],
      [
        "return entry.status === 'resting' ? 'unwind' : 'repair'",
        "return 'complete'",
        'a position that lost its stop is not repaired',
      ],
      [
        "if (none && entry.status !== 'resting') return 'nothing'",
        "if (none) return 'nothing'",
        'an entry rests without the requested exits',
      ],
      [
        "  return 'missing'\n",
        "  return 'open'\n",
        'an exit that the venue has cancelled counts as protection',
      ],
      [
        'value += toFixedPoint(each.size) * toFixedPoint(each.price)',
        'value += toFixedPoint(each.price)',
        'the average price of fills ignores their sizes',
      ],
    ],
  ),
  ...mutationsOf(
    'src/engines/venue/records/expected-balances.ts',
    ['src/engines/venue/records/expected-balances.test.ts'],
    [
      ['size > allowed ?', 'size > allowed + roundingUnits ?', 'cash may differ by one entry more'],
      [
        '(held / floatDigits) * BigInt(entries)',
        'roundingUnits * BigInt(entries)',
        'tokens may differ by a rounding that only cash has',
      ],
      [
        "type !== 'accountClassTransfer' && (moves ?? []).some(({ amount }) => amount.startsWith('-'))",
        'false',
        'a withdrawal by another client is not detected',
      ],
      ['fill.isBuy ? fill.size :', 'fill.tradeId > 0 ? fill.size :', 'a sale is recorded as a purchase'],
    ],
  ),
  ...mutationsOf(
    'src/features/perp/withdraw.ts',
    ['test/venue/perp-http.test.ts'],
    [
      [
        'withdrawn_usd: amount_usd,',
        'withdrawn_usd: fromUnits(paid, usdcDecimals),',
        'the fee of a withdrawal is not reported as withdrawn',
      ],
      [
        'fee_usd: fromUnits(toUnits(amount_usd, usdcDecimals) - paid, usdcDecimals)',
        "fee_usd: '0'",
        'the fee of a withdrawal is reported as zero',
      ],
    ],
  ),
  ...mutationsOf(
    'src/engines/venue/orders/entry-outcome.ts',
    ['src/engines/venue/orders/entry-outcome.test.ts'],
    [
      [
        `as === 'waitingForFill' ? 'waiting' : 'open'`,
        "'open'",
        'a result lists an exit that waits for its entry as open',
      ],
    ],
  ),
  ...mutationsOf(
    'src/features/perp/views.ts',
    ['src/features/perp/views.test.ts'],
    [
      [
        ' && order.parentId === null)',
        ')',
        'a position lists a stop that waits for another entry and protects nothing',
      ],
      [
        "find(({ coin }) => coin === 'USDC')",
        "find(({ coin }) => coin === 'USDT')",
        'a unified account is worth nothing',
      ],
    ],
  ),
  ...mutationsOf(
    'src/engines/venue/orders/collateral-shortfall.ts',
    ['src/engines/venue/orders/collateral-shortfall.test.ts'],
    [
      [
        'knownUnified(mode)\n',
        'false\n',
        'a unified account transfers dollars that it cannot transfer, and withdraws nothing',
      ],
    ],
  ),
  ...mutationsOf(
    'src/features/perp/open.ts',
    ['test/venue/order-events.test.ts'],
    [
      [
        'Math.min(known?.leverage ?? 1, maxLeverage)',
        '1',
        'an order without leverage takes the margin of the whole position at leverage 1',
      ],
    ],
  ),
  ...mutationsOf(
    'src/features/perp/open-margin.ts',
    ['test/venue/order-events.test.ts'],
    [
      [
        '  return own + (extra > 0n ? extra : 0n)\n',
        '  return own\n',
        'the margin of a leverage change for the position is not checked',
      ],
    ],
  ),
  ...mutationsOf(
    'src/features/perp/key-renewal.ts',
    ['test/venue/key-renewal.test.ts'],
    [
      [
        'later(clock.now(), renewAheadMs)',
        'clock.now()',
        'a trading key is renewed only after it has expired',
      ],
      [
        'order by waiting.id is not null, case when',
        'order by due.expires_at, case when',
        'accounts whose keys the venue does not approve stop the renewal of all other keys',
      ],
    ],
  ),
  ...mutationsOf(
    'src/engines/venue/orders/action-outcome.ts',
    ['src/engines/venue/orders/action-outcome.test.ts'],
    [
      [
        `if (actionOutcome.type !== 'rejected' || !isThrottled(actionOutcome.message)) return undefined`,
        'return undefined',
        'a close fails at once where the account is above its request limit',
      ],
      [
        'if (effectOf(task, actionKey).intent.exit !== true) return undefined',
        '',
        'an opening order takes the one request in ten seconds that exits need',
      ],
      [
        'deriveCloid(task.executionId, retries === 0 ? actionKey :',
        'deriveCloid(task.executionId, retries >= 0 ? actionKey :',
        'a second signature overwrites the rejected one',
      ],
    ],
  ),
  ...mutationsOf(
    'src/upstreams/hyperliquid/venue-health.ts',
    ['src/upstreams/hyperliquid/venue-health.test.ts'],
    [
      [
        "status: failures > 0 ? 'down' : 'degraded', lastOkAt: null",
        "status: 'ok', lastOkAt: null",
        'a venue without any answer counts as well',
      ],
      [
        'if (!(fault instanceof Fault) || fault.extras.budget === undefined) failures',
        'if (false) failures',
        'a venue that does not answer counts as well',
      ],
      ["isLate ? 'down' :", "isLate ? 'ok' :", 'a venue that has been silent for long counts as well'],
    ],
  ),
  ...mutationsOf(
    'src/features/spot-venue/run-trigger.ts',
    ['test/venue/post-only-venue.test.ts'],
    [
      [
        'return closed < closedMax ?',
        'return closed > closedMax ?',
        'a stop that fires while the venue takes no market orders is lost',
      ],
    ],
  ),
  ...mutationsOf(
    'src/features/spot-venue/trigger-store.ts',
    ['test/venue/gateway-triggers.test.ts'],
    [
      [
        "  if (rows.length < ids.length) throw new Fault('unavailable', 'A trigger changed during its cancel')\n",
        '',
        'an exit that is firing is reported as cancelled',
      ],
    ],
  ),
  ...mutationsOf(
    'src/features/spot-venue/run-trigger.ts',
    ['test/venue/read-after-write.test.ts'],
    [
      [
        " || (code === 'insufficient_balance' && 'size' in data)",
        '',
        'a stop is lost whose size comes from a balance before a sale',
      ],
      [
        '(isNothing || (isShort(free, wanted) && (await mayGrow(deps, task, market, balances))))',
        'false',
        'a stop is lost whose balance is shown late',
      ],
      [
        'isHeld && (await recentlyCancelled(deps, userId)).size > 0',
        'false',
        'a stop leaves what a cancelled order has just held',
      ],
      ['wanted === null || ', 'wanted !== null && ', 'a stop of everything leaves what was just bought'],
    ],
  ),
  ...mutationsOf(
    'src/features/spot-venue/cancel-all.ts',
    ['test/venue/gateway-triggers.test.ts'],
    [
      [
        'writes: (tx) => cancelTriggers(tx, task.userId, open),',
        '',
        'exits of the gateway are reported as cancelled and stay armed',
      ],
    ],
  ),
  ...mutationsOf(
    'src/engines/venue/reconciliation/roll-baseline.ts',
    ['test/venue/baselines.test.ts'],
    [
      [
        'record.replaceBaseline(tx, current, expected, rollAtMs)',
        'record.replaceBaseline(tx, current, expected, atMs)',
        'records between the new baseline and the comparison are in no sum',
      ],
      [
        "await record.addAdjustments(tx, account, rounding, { kind: 'rounding', reason, atMs: rollAtMs })",
        'void [rounding, reason]',
        'what the venue has rounded becomes a mismatch once the records leave the sum',
      ],
    ],
  ),
  ...mutationsOf(
    'src/engines/venue/records/record-store.ts',
    ['test/venue/baselines.test.ts'],
    [
      [
        'where cloid = recent.cloid and user_id = $1 and venue = $2) f',
        'where cloid = recent.cloid and user_id = $1 and venue = $2 and at_ms > $3) f',
        'an order that a baseline divides is compared by its later fills alone',
      ],
    ],
  ),
  ...mutationsOf(
    'src/engines/venue/records/retention.ts',
    ['test/durable/retention.test.ts'],
    [
      [
        'least(baseline_at_ms, $3::bigint) as until_ms',
        '$3::bigint as until_ms',
        'fills that no baseline contains are deleted',
      ],
    ],
  ),
]
