import { mutationsOf } from './mutation.ts'

/** Fees, nonces, signed batches, the vault, and the shares of positions. */
export const chainMutations = [
  ...mutationsOf(
    'src/engines/evm-batch/confirm.ts',
    ['test/chains/reorg.test.ts'],
    [
      [
        'if (fault instanceof Fault) return undefined\n    throw fault',
        'throw fault',
        'a payment whose wallet was emptied never ends',
      ],
    ],
  ),
  ...mutationsOf(
    'src/features/swap/settle/arrivals.ts',
    ['src/features/swap/settle/arrivals.test.ts'],
    [
      ['- before! - explained', '- before!', 'a gift of the same block counts as a refund'],
      [
        '!isTokenTransfer && input.includes(owner.slice(2).toLowerCase())',
        'false',
        'the fill of another swap in the same block counts as part of this one',
      ],
      [
        'Number(one.isSum ?? false) - Number(other.isSum ?? false) ||',
        '',
        'a swap takes the payments of two',
      ],
      ['&& units <= unitsMax', '', 'the refund of another swap counts as part of this one'],
      ['  if (traced) return traced\n', '', 'what the calls of a transaction paid is not looked at'],
      ['createdAt.getTime() - skewMs', '0', 'an old payment ends a new swap'],
      ['.filter(({ from }) => !isOther(from))', '', 'a payout of the venue fills a swap'],
    ],
  ),
  ...mutationsOf(
    'src/features/swap/settle/payments.ts',
    ['src/features/swap/settle/payments.test.ts'],
    [
      [
        'isNative ? betterFillMax(data)',
        'isNative ? fillMax(data)',
        'a fill a little above a tight quote is never proven by balances',
      ],
      [
        'maxUnits: fillMax(data)',
        'maxUnits: betterFillMax(data)',
        'a swap takes the payment of another one that is a little larger',
      ],
      [
        "state === 'success' ? [] : known",
        "state !== 'refunded' ? [] : known",
        'a payment in another token is left out where the provider reports a failure',
      ],
    ],
  ),
  ...mutationsOf(
    'src/upstreams/evm/native-transfers.ts',
    ['src/upstreams/evm/native-transfers.test.ts'],
    [
      ['    if (frame.error !== undefined) continue\n', '', 'a payment that failed counts'],
      [' spentUnits += valueUnits', ' spentUnits += 0n', 'what the account paid itself does not count'],
      [
        "'CREATE2', 'SELFDESTRUCT'",
        "'CREATE2', 'SELFDESTRUCT', 'DELEGATECALL'",
        'a delegate call pays twice',
      ],
    ],
  ),
  ...mutationsOf(
    'src/engines/chain-arrivals/claims.ts',
    ['test/durable/swap-arrivals.test.ts'],
    [
      ['if (!claimed) throw', 'if (claimed === null) throw', 'two swaps end with one payment'],
      [
        "and (starts_with(part, $3 || ':') or starts_with($3, part || ':'))",
        'and false',
        'a sum and one of its parts end two swaps',
      ],
      [
        'where claimed_arrival.claimant = excluded.claimant\n',
        '\n',
        'a payout of the venue ends a swap as well',
      ],
      ["family === 'evm' ? name.toLowerCase() : name", 'name', 'a fill in other letters ends another swap'],
      [
        'select external_id as tx_hash, null as part from tx_attempt where external_id = any($2::text[])\n     union all ',
        '',
        'a transaction of the gateway is a fill',
      ],
    ],
  ),
  ...mutationsOf(
    'src/features/swap/route/route-checks.ts',
    ['src/features/swap/route/route-checks.test.ts'],
    [
      [
        'assert(sameAddress(destination.chain, route.recipient, terms.recipient),',
        'assert(route.recipient.length > 0,',
        'the output of a route goes to another account',
      ],
      [
        'route.amountInUnits === terms.amountInUnits',
        'route.amountInUnits > 0n',
        'a route sells another amount',
      ],
      [
        'call !== undefined && others.length === 0',
        'call !== undefined',
        'a quote brings a second call along',
      ],
      [
        'call.value === valueUnits',
        'call.value >= valueUnits',
        'a quote takes native coins beside the token',
      ],
      [
        'read.requestId.toLowerCase() === route.depositId.toLowerCase()',
        'read.requestId.length > 0',
        'a deposit is made for the request of somebody else',
      ],
    ],
  ),
  ...mutationsOf(
    'src/kernel/money/provider-answer-reader.ts',
    ['src/upstreams/relay/quote.test.ts'],
    [
      [
        'minimumUnits <= 0n || minimumUnits < least',
        'minimumUnits <= 0n',
        'a quote has a minimum far below the slippage of its request',
      ],
    ],
  ),
  ...mutationsOf(
    'src/upstreams/relay/quote.ts',
    ['src/upstreams/relay/quote.test.ts'],
    [
      [
        "if (amountInUnits !== request.amountInUnits) throw changed('a quote for another amount')",
        '',
        'a quote is for another amount than was asked for',
      ],
    ],
  ),
  ...mutationsOf(
    'src/upstreams/evm/rpc.ts',
    ['src/upstreams/evm/rpc.test.ts'],
    [
      [
        "if (code === '0x')",
        "if (code === '')",
        'one node without the multicall contract stops every simulation until the next start',
      ],
    ],
  ),
  ...mutationsOf(
    'src/kernel/wire/json-rpc.ts',
    ['src/kernel/wire/json-rpc.test.ts'],
    [
      ['limit.lower(half)', '', 'each long batch is refused first'],
      [
        'if (named) return named',
        '',
        'the calls beyond the limit of a batch fail where the node answered the others',
      ],
    ],
  ),
  ...mutationsOf(
    'src/kernel/wire/json-rpc-retry.ts',
    ['src/kernel/wire/json-rpc-retry.test.ts'],
    [
      [
        'if (refused.length === 0 || monotonicMs() + waitMs >= endMs) break',
        'break',
        'one call beyond the rate limit of a provider fails its caller',
      ],
    ],
  ),
  ...mutationsOf(
    'src/upstreams/evm/log-search.ts',
    ['src/upstreams/evm/log-search.test.ts'],
    [
      [
        'isBehind(found.error) || hasTooManyResults(found.error)',
        'false',
        'a node that lags for a moment narrows every later search of logs',
      ],
    ],
  ),
  ...mutationsOf(
    'src/upstreams/evm/simulation.ts',
    ['src/upstreams/evm/simulation.test.ts'],
    [
      [
        'gas > emptyGas ? gas',
        'gas > 0n ? gas',
        'a batch gets the gas of an empty transaction, and the sponsor pays for its revert',
      ],
      [
        ' || callsGas > row.gas.callsMax',
        '',
        'calls with more gas than a transaction may have take a nonce of their sponsor',
      ],
      [
        '* gasPerCallUnmeasured + emptyGas',
        '* gasPerCallUnmeasured',
        'an unmeasured batch gets less gas than its data costs, and no node takes it',
      ],
    ],
  ),
  ...mutationsOf(
    'src/upstreams/evm/evm.ts',
    ['test/chains/gas-limits.test.ts'],
    [
      [
        '    gas: hexQuantity(row.gas.txMax),\n',
        '',
        'calls that no transaction has enough gas for are signed where the node estimates less',
      ],
    ],
  ),
  ...mutationsOf(
    'src/upstreams/evm/wire.ts',
    ['src/upstreams/evm/wire.test.ts'],
    [
      [
        "? 'invalid' : 'rejected'",
        "? 'rejected' : 'rejected'",
        'a gas limit that every node refuses holds up its sponsor until the batch expires',
      ],
    ],
  ),
  ...mutationsOf(
    'src/engines/evm-batch/batch-plan.ts',
    ['src/engines/evm-batch/batch-plan.test.ts'],
    [
      ['min(gasMin, simulatedGas * gasMinFactorMax)', 'gasMin', 'a quote sets the gas of its transaction'],
      [', txMax)', ', txMax * 2n)', 'a batch gets more gas than one transaction may have'],
    ],
  ),
  ...mutationsOf(
    'src/features/swap/route/route-checks.ts',
    ['src/features/swap/route/route-checks.test.ts'],
    [
      [
        'gas === null || gas <= chain.gas.callsMax',
        'gas === null || gas > 0n',
        'a route names more gas than one transaction may use',
      ],
    ],
  ),
  ...mutationsOf(
    'src/upstreams/evm/fees.ts',
    ['src/upstreams/evm/fees.test.ts'],
    [
      [
        'ceilDiv(wei * 9n, 8n)',
        'ceilDiv(wei * 10n, 10n)',
        'a replacement offers no more than the replaced transaction',
      ],
      [
        "if (fees.maxFeeWei <= capWei) return { kind: 'raise', fees }",
        "return { kind: 'raise', fees }",
        'a stuck transaction is replaced above the cap on fees',
      ],
      [
        'max(min(suggestedWei, rule.priorityCapWei), rule.priorityFloorWei)',
        'max(suggestedWei, rule.priorityFloorWei)',
        'the sponsor pays any tip that a node suggests, up to the cap on fees',
      ],
      ['if (baseFeeWei >= rule.capWei) return undefined', '', 'gas is bought above the cap on fees'],
      [
        'if (paysEnough && !isOverdue) return undefined',
        'if (!isOverdue) return undefined',
        'the nonce of an ended task that pays too little blocks its sponsor',
      ],
      [
        "return plan?.kind === 'raise' ? plan.fees : undefined",
        'return plan?.fees',
        'the nonce of an ended task is bought above the cap on fees',
      ],
    ],
  ),
  ...mutationsOf(
    'src/upstreams/evm/nonce-repair-plan.ts',
    ['src/upstreams/evm/nonce-repair-plan.test.ts'],
    [
      [
        'if (attempt.nonce >= mined)',
        'if (attempt.nonce > mined)',
        'the first open number is not sent again',
      ],
      [
        'resend.at(-1)!.nonce + 1n',
        'resend.at(-1)!.nonce',
        'the counter goes back to a number that is signed already',
      ],
      [
        "transactionCount(signer, 'pending')",
        "transactionCount(signer, 'latest')",
        'a new sequence begins at a nonce that is pending',
      ],
      ['if (!newest.has(nonce)) gaps.push(nonce)', '', 'a nonce without a transaction blocks the sequence'],
      [
        'findIndex(({ isFinal }) => !isFinal)',
        'findIndex(() => false)',
        'the transaction of a live task is given up for an empty one',
      ],
    ],
  ),
  ...mutationsOf(
    'src/engines/evm-batch/nonce-repair.ts',
    ['test/crash/failed-broadcasts.test.ts'],
    [
      [
        'const quickEveryMs = 1_000',
        'const quickEveryMs = 60_000',
        'transactions wait for up to a minute after their node has recovered',
      ],
    ],
  ),
  ...mutationsOf(
    'src/engines/evm-batch/nonce-repair.ts',
    ['test/chains/abandoned-nonces.test.ts'],
    [
      [
        'raw: replaced.get(nonce) ?? raw',
        'raw',
        'the nonce of an ended task is sent again with the bytes that are too cheap',
      ],
    ],
  ),
  ...mutationsOf(
    'src/upstreams/evm/batch.ts',
    ['src/upstreams/evm/custody-crypto.test.ts'],
    [
      [
        'executor: (batch.executor ?? zeroAddress) as Hex',
        'executor: zeroAddress as Hex',
        'any account may submit a signed batch',
      ],
      ['revertOnFailure: true', 'revertOnFailure: false', 'a batch runs in part when a call of it fails'],
    ],
  ),
  ...mutationsOf(
    'src/upstreams/vault/erc4626-abi.ts',
    ['src/upstreams/vault/erc4626-abi.test.ts'],
    [
      [
        "const ownerAt = event === 'deposit' ? 2 : 3",
        'const ownerAt = 2',
        'a withdrawal is booked by its receiver instead of by its owner',
      ],
      [
        'log.address.toLowerCase() === vault.toLowerCase() &&',
        '',
        'an event of another contract is booked as one of the vault',
      ],
    ],
  ),
  ...mutationsOf(
    'src/features/earn/share-division.ts',
    ['src/features/earn/share-division.test.ts'],
    [
      ['neededShares / 1_000n + 1n', '0n', 'a fall of the share price makes a withdrawal exceed its hold'],
      ['+ 1n, available)', '+ 1n, neededShares * 2n)', 'a hold exceeds the position'],
      ['missing -= removed', '', 'shares removed outside the gateway are subtracted from every position'],
    ],
  ),
  ...mutationsOf(
    'src/features/earn/withdraw.ts',
    ['test/journeys/exactly-once.test.ts'],
    [
      [
        'spent: burntUnits < heldUnits ? burntUnits : heldUnits',
        'spent: (burntUnits < heldUnits ? burntUnits : heldUnits) - 1n',
        'a withdrawal leaves a share in the position that the chain has burnt',
      ],
    ],
  ),
  ...mutationsOf(
    'src/features/earn/vault-task.ts',
    ['test/journeys/exactly-once.test.ts'],
    [
      [
        'const amount = fromUnits(flow.assetsUnits, usdcDecimals)',
        'const amount = fromUnits(flow.assetsUnits + 1n, usdcDecimals)',
        'a task reports a unit more than the vault has moved',
      ],
    ],
  ),
  ...mutationsOf(
    'src/engines/evm-batch/confirm.ts',
    ['src/engines/evm-batch/confirm.test.ts'],
    [
      [
        '        (await reassignNonce(context, chainState)) ??\n',
        '',
        'a batch whose nonce foreign bytes took waits for its deadline',
      ],
      [
        'AbortSignal.any([signal, stopping])',
        'signal',
        'an instance that ends waits for the next block first',
      ],
      [
        '        (await cancelInvalid(context, chainState)) ??\n',
        '',
        'a gas limit that the node refuses holds up its sponsor until the batch expires',
      ],
      [
        'executed(account, task.executionId, finalBlock)\n  if (executed > sequenceOf(effect)) return unprovenResult',
        'executed(account, task.executionId, receipt.block)\n  if (executed > sequenceOf(effect)) return unprovenResult',
        'a batch that reverted stays open where the node has no state of its block any more',
      ],
    ],
  ),
  ...mutationsOf(
    'src/kernel/async/reading-watcher.ts',
    ['src/upstreams/evm/receipt-watcher.test.ts'],
    [
      [
        '      for (const taskId of woken) remove(taskId)\n',
        '      for (const { taskId } of withNews) remove(taskId)\n',
        'a task that is parked after its receipt came is not woken',
      ],
    ],
  ),
  ...mutationsOf(
    'src/upstreams/evm/receipt-watcher.ts',
    ['src/upstreams/evm/receipt-watcher.test.ts'],
    [
      [
        'const isNew = head.hash !== newestHash',
        'const isNew = newestHash === undefined',
        'receipts are not asked for with each block',
      ],
    ],
  ),
  ...mutationsOf(
    'src/engines/evm-batch/sponsor-load.ts',
    ['test/chains/sponsor-load.test.ts'],
    [
      [
        'inFlight.set(payer, (inFlight.get(payer) ?? 0) + 1)',
        '',
        'batches between two readings go to a sponsor that is busy',
      ],
    ],
  ),
  ...mutationsOf(
    'src/engines/evm-batch/tx-replacement.ts',
    ['src/engines/evm-batch/confirm.test.ts'],
    [
      [
        'finalBlock)) <= nonce) return undefined',
        'finalBlock)) < nonce) return undefined',
        'a batch gives up a nonce that is still open',
      ],
      [
        'if (times > sequenceOf(effect) || latestState.mined) return undefined',
        'if (latestState.mined) return undefined',
        'a batch that the account executed is sent once more',
      ],
      [
        'if (times > sequenceOf(effect) || latestState.mined) return undefined',
        'if (times > 0n || latestState.mined) return undefined',
        'the second batch of a task counts as executed with the first one',
      ],
    ],
  ),
  ...mutationsOf(
    'src/kernel/task/sponsored-effect.ts',
    ['test/chains/sign-on-accept.test.ts'],
    [
      [
        'if (fault instanceof Fault && fault.retryable) return undefined',
        '',
        'a deposit is refused while its key is away for a moment',
      ],
    ],
  ),
  ...mutationsOf(
    'src/engines/evm-batch/batch.ts',
    ['test/chains/sign-on-accept.test.ts'],
    [
      [
        'const isFresh = ageMs >= 0 && ageMs <= trialMsMax',
        'const isFresh = true',
        'a deposit is signed with readings of any age',
      ],
    ],
  ),
  ...mutationsOf(
    'src/durable/accept/accept-in-transaction.ts',
    ['test/chains/sign-on-accept.test.ts'],
    [
      [
        'sign(firstNonce + BigInt(at))',
        'sign(firstNonce)',
        'deposits that share a commit take the same nonce of their sponsor',
      ],
    ],
  ),
  ...mutationsOf(
    'src/engines/evm-batch/deadline.ts',
    ['src/engines/evm-batch/deadline.test.ts'],
    [
      [
        'Math.min(ttlSeconds, leftSeconds)',
        'ttlSeconds',
        'the signature of a batch lasts longer than its section allows',
      ],
    ],
  ),
  ...mutationsOf(
    'src/features/swap/task-data.ts',
    ['src/features/swap/steps.test.ts'],
    [
      [
        '  validUntil: new Date(data.sign_until),\n',
        '',
        'the signature of a swap lasts longer than its deadline and its quote',
      ],
    ],
  ),
  ...mutationsOf(
    'src/features/swap/steps.ts',
    ['src/features/swap/steps.test.ts'],
    [
      [
        'later(new Date(data.sign_until), -signatureMsMin)',
        'new Date(data.sign_until)',
        'a swap is signed that no block can include in time, and the sponsor pays its gas',
      ],
    ],
  ),
  ...mutationsOf(
    'src/engines/evm-batch/batch.ts',
    ['test/chains/gas-charge.test.ts'],
    [
      [
        'exceedsCharge(fees.maxFeeWei * gas, chargedWei)',
        'false',
        'a sponsor pays any multiple of what its user was charged',
      ],
      ['!plan.fullExit && ', '', 'a fee that rises keeps a user from withdrawing everything'],
    ],
  ),
  ...mutationsOf(
    'src/kernel/task/sponsored-effect.ts',
    ['test/chains/gas-budget.test.ts', 'test/chains/svm-limits.test.ts'],
    [
      ['fullExit ? null : budgetUnits', 'null', 'one user empties the gas sponsor'],
      [
        'fullExit ? null : budgetUnits',
        'budgetUnits',
        'a used gas budget blocks the full withdrawal of its user',
      ],
      ['entryUnits * exitShares', 'entryUnits', 'entries use up the gas that exits need'],
    ],
  ),
  ...mutationsOf(
    'src/engines/evm-batch/user-gas-budget.ts',
    ['test/chains/gas-budget.test.ts'],
    [
      ['chargedWei * costFactorMax', 'chargedWei', 'a fee that rises a little ends what was accepted before'],
      [' and not is_final', '', 'a second transaction of a task is compared with the cost of the first one'],
    ],
  ),
  ...mutationsOf(
    'src/store/migrations/07-chains/0001_init.sql',
    ['test/chains/gas-budget.test.ts'],
    [
      [
        'set wei = greatest(wei + p_wei - v_charge.wei, 0)',
        'set wei = wei',
        'a task counts its maximum cost, and not the paid one',
      ],
    ],
  ),
  ...mutationsOf(
    'world/evm/reorg.ts',
    ['world/conformance/world-crash.test.ts'],
    [
      [
        "    await rpc.call('evm_setTime', [Math.floor(nowMs() / 1000)])\n",
        '',
        'a transaction of a removed block is mined again at an earlier time',
      ],
    ],
  ),
  ...mutationsOf(
    'world/evm/recorder.ts',
    ['world/conformance/world-crash.test.ts'],
    [
      [
        'unmined.isEmpty() && signing.size === 0 ? undefined : recordVisible()',
        'undefined',
        'a client sees a block whose time is not recorded, and a kill mines it at another one',
      ],
    ],
  ),
]
