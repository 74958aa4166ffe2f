import { mutationsOf } from './mutation.ts'

/** The second provider of routes: its calls, its quotes, and the choice between providers. */
export const providerMutations = [
  ...mutationsOf(
    'src/kernel/async/quote-rate-shares.ts',
    ['src/kernel/async/quote-rate-shares.test.ts'],
    [
      ['trade: 75,', 'trade: 100,', 'swaps use up the quotes that the exits of others need'],
      ['trade: 25,', 'trade: 100,', 'one user uses up the quotes of all'],
      ['const lightShare = 10', 'const lightShare = 100', 'the exits of one user use up those of others'],
      [
        'for (const window of [all, own, ofAll]) window.add(1, now)',
        'for (const window of [all, own]) window.add(1, now)',
        'one user gets its share of every class',
      ],
    ],
  ),
  ...mutationsOf(
    'src/features/swap/route/best-route.ts',
    ['test/journeys/swap-providers.test.ts'],
    [
      [
        "if (intoUsdc && !fromUsdc) return isExecuted ? 'exit' : 'trade'",
        "if (intoUsdc && !fromUsdc) return 'watch'",
        'a sale waits for the quotes of dry runs',
      ],
    ],
  ),
  ...mutationsOf(
    'src/upstreams/lifi/lifi.ts',
    ['test/journeys/swap-providers.test.ts'],
    [['beforeAttempt: () => quotes.take(request),', '', 'the quotes of the second provider are not counted']],
  ),
  ...mutationsOf(
    'src/features/swap/route/loss.ts',
    ['src/features/swap/route/loss.test.ts'],
    [
      [
        'poolMicros === null ? null :',
        'poolMicros !== null ? null :',
        'a token without a price is bought for more than its pool can return',
      ],
      [
        'if (outMicros !== null) return valueInMicros - outMicros',
        'if (outMicros !== null) return 0n',
        'a pool that somebody has moved takes most of the value',
      ],
    ],
  ),
  ...mutationsOf(
    'src/engines/custody/swap-rules.ts',
    ['test/identity/aggregator-rules.test.ts'],
    [
      [
        'isSameAddress(read.recipient, own)',
        "read.recipient !== ''",
        'a swap of the second provider pays another account',
      ],
      ['isSameAddress(arrival.recipient, own)', "arrival.recipient !== ''", 'a bridge pays another account'],
      ['arrival.amountMinUnits > 0n', 'arrival.amountMinUnits >= 0n', 'a bridge has no minimum'],
      [
        'assertTarget(read.contract, [swaps.aggregator])',
        'assertTarget(read.contract, [read.contract])',
        'any contract swaps',
      ],
    ],
  ),
  ...mutationsOf(
    'src/upstreams/evm/lifi-calls.ts',
    ['src/upstreams/evm/lifi-calls.test.ts'],
    [
      ['|| others.some((each) => each.requiresDeposit)', '', 'a swap takes more than its first part'],
      [" && across.message === '0x'", '', 'a bridge carries a message for a contract'],
      ['|| bridge.receiver !== across.receiverAddress', '', 'a bridge pays another account than it names'],
      [
        'bridge.sendingAssetId !== zeroAddress && bridge.sendingAssetId !== sendingAssetId',
        'bridge.sendingAssetId === zeroAddress && sendingAssetId === zeroAddress',
        'a bridge in the fourth form takes another token than it names',
      ],
      [
        'if (!bridge.hasSourceSwaps || !across || !taken || !isJoined)',
        'if (!bridge.hasSourceSwaps || !across || !taken)',
        'the swaps before a bridge bring another token than it bridges',
      ],
      [
        'across: { ...across, outputAmount } })',
        'across })',
        'the output of a bridge after swaps is taken for the quoted one',
      ],
      [
        'if (!isGeneric && !functionName.endsWith(form)) return undefined',
        '',
        'a swap function is read with tokens that its name contradicts',
      ],
      [
        '!hasItsValue(call, taken)) return undefined\n  const [tokenIn',
        'false) return undefined\n  const [tokenIn',
        'a swap carries coins that nothing takes',
      ],
      [
        'const addressWord = /^0x0{24}',
        'const addressWord = /^0x[0-9a-f]{24}',
        'a word of another chain is cut to an address',
      ],
    ],
  ),
  ...mutationsOf(
    'src/upstreams/evm/relay-calls.ts',
    ['src/upstreams/evm/relay-calls.test.ts'],
    [
      [
        '!allowFailure && !isSame(target, refundTo)',
        '!isSame(target, refundTo)',
        'a swap that fails is passed over',
      ],
      [
        '!allowFailure && !isSame(target, refundTo)',
        '!allowFailure',
        'the router calls the account of the user',
      ],
      ['isSame(payout.recipient, rest.recipient) &&', '', 'the minimum and the rest go to two accounts'],
      [
        'rest.tokens.some((each) => isSameToken(each, payout.token))',
        'rest.tokens.length > 0',
        'the minimum is of another token than the rest',
      ],
      ['others.length === 0 &&', '', 'a second payout stands beside the minimum'],
      ['units === 0n && isSame(to, recipient)', 'isSame(to, recipient)', 'the minimum is taken for the rest'],
      ['units === 0n && isSame(to, recipient)', 'units === 0n', 'the rest goes to another account'],
      ['others.length > 0 || otherAmounts.length > 0 ||', '', 'a router takes a second token'],
      ['|| value !== 0n || innerUnits !== 0n', '|| innerUnits !== 0n', 'coins are sent beside the token'],
      ['innerUnits <= value', 'true', 'a router spends coins that were not sent'],
      [
        '!isBound || isAtRouter !== (multicall.pulled === null)',
        '!isBound',
        'coins are sent to the contract that takes tokens',
      ],
      [
        'if (!isSame(target, router) || allowFailure || value !== 0n)',
        'if (allowFailure || value !== 0n)',
        'another contract pays the minimum',
      ],
      [
        "data === '0x' ? [{ token: null, recipient, units }]",
        "data !== '' ? [{ token: null, recipient, units }]",
        'a payout calls a contract with bytes',
      ],
      [
        'if (isSame(args.to, log.address)) return undefined',
        '',
        'coins that a router receives count as paid',
      ],
    ],
  ),
  ...mutationsOf(
    'src/engines/custody/swap-rules.ts',
    ['test/identity/relay-rules.test.ts'],
    [
      [
        'isSameAddress(router, read.router))\n  assertRule(known',
        "router !== '')\n  assertRule(known",
        'any contract is taken for a router',
      ],
      [
        'assertTarget(read.contract, [read.tokenIn === null ? known.router : known.approvalProxy])',
        '',
        'any contract takes tokens for a router',
      ],
      [
        'isSameAddress(read.refundTo, own)',
        "read.refundTo !== ''",
        'a router returns coins to another account',
      ],
      [
        'const proxies = relayRouters.map(({ approvalProxy }) => approvalProxy)',
        'const proxies = relayRouters.flatMap(({ router, approvalProxy }) => [router, approvalProxy])',
        'a router gets an approval that anybody can use',
      ],
    ],
  ),
  ...mutationsOf(
    'src/features/swap/route/route-checks.ts',
    ['test/identity/relay-rules.test.ts'],
    [
      [
        'calls.withMinimum({ to, value, data }, minimumOf(route, terms))',
        '{ to, value, data }',
        'nothing demands the minimum of a quote',
      ],
      [
        'units: amountOutMinUnits,\n})',
        'units: 1n,\n})',
        'the payout that a quote is bound to is below its minimum',
      ],
      [
        'const contract = read.tokenIn === null ? known?.router : known?.approvalProxy',
        'const contract = known && call.to',
        'a quote calls a contract of its own choice',
      ],
      [
        'isSame(terms, read.refundTo, terms.account)',
        "read.refundTo !== ''",
        'a quote refunds another account',
      ],
    ],
  ),
  ...mutationsOf(
    'src/features/swap/settle/balance-changes.ts',
    ['src/features/swap/settle/balance-changes.test.ts'],
    [
      [
        'const routers = isRelayed ? [] : ',
        'const routers = ',
        'coins that a router of pools unwraps for another router count twice',
      ],
      [
        "if (kind === 'paid' && of === own) add(coin, amountUnits)",
        '',
        'coins that a router pays are not seen',
      ],
    ],
  ),
  ...mutationsOf(
    'src/kernel/money/provider-answer-reader.ts',
    ['src/upstreams/lifi/quote.test.ts'],
    [['minimumUnits < least', 'minimumUnits < 0n', 'the filler keeps the slippage']],
  ),
  ...mutationsOf(
    'src/upstreams/lifi/quote.ts',
    ['src/upstreams/lifi/quote.test.ts'],
    [['!== request.amountInUnits)', '=== 0n)', 'a quote for another amount is taken']],
  ),
  ...mutationsOf(
    'src/features/swap/route/best-route.ts',
    ['src/features/swap/route/best-route.test.ts'],
    [
      [
        'const served = known.filter((fault) => !isOfChain(fault))',
        'const served = known',
        'a chain is called unsupported that another provider serves',
      ],
      [
        'const safe = safeOf(route)',
        'const safe = undefined',
        'a hostile quote keeps a good one from being taken',
      ],
      [
        '  Number(other.amountOutMinUnits > one.amountOutMinUnits) -',
        '  -Number(other.amountOutMinUnits > one.amountOutMinUnits) +',
        'the worse output wins',
      ],
      ['[...near.toSorted(byMinimum), ...far', '[...far', 'a provider that promises too much wins'],
      ['|| isFarAbove(route, [], worth)', '', 'a provider that promises too much is waited for alone'],
      [
        'others.every((other) => isAbove(other.amountOutUnits, aboveWorthBps))',
        'true',
        'an old price makes the better of two honest quotes lose',
      ],
    ],
  ),
  ...mutationsOf(
    'src/engines/chain-arrivals/claims.ts',
    ['test/journeys/swap-lies.test.ts'],
    [['account = $3 and claimant <> $4', 'account = $3 and claimant = $4', 'one payment ends two swaps']],
  ),
  ...mutationsOf(
    'src/features/swap/settle/arrivals.ts',
    ['src/features/swap/settle/arrivals.test.ts'],
    [
      ['!isSum && amountUnits < minUnits', '!isSum', 'the rest of a payment of two swaps ends one of them'],
      [
        'return free.filter(({ isSum',
        'return [].filter(({ isSum',
        'two parts of one transaction are never counted',
      ],
      ['block < head - forkBlocks', 'block < head - 32', 'a payment of before the swap ends it'],
      ['at <= headAt', 'at < headAt', 'a payment of just before the swap ends it'],
    ],
  ),
  ...mutationsOf(
    'src/features/swap/route/request-terms.ts',
    ['src/features/swap/route/request-terms.test.ts'],
    [
      [
        'amount: amountField(given, fields)',
        'amount: fields.amount',
        'a fault of a provider names a field that the request has not',
      ],
    ],
  ),
  ...mutationsOf(
    'src/features/swap/settle/track.ts',
    ['src/features/swap/settle/track.test.ts'],
    [
      ['const isLate = isUnproven || ', 'const isLate = ', 'an unproven payment keeps a swap settling'],
      [
        'paid_since: isPaid(status) ?',
        'paid_since: true ?',
        'a payment that was taken back counts as announced',
      ],
    ],
  ),
  ...mutationsOf(
    'src/features/swap/settle/track.ts',
    ['src/features/swap/settle/swap-end.test.ts'],
    [['ageOf(said.short.since, now) >= shortLastsMs', 'true', 'one unit from a stranger ends a swap']],
  ),
  ...mutationsOf(
    'src/features/swap/settle/swap-fill.ts',
    ['src/features/swap/settle/swap-fill.test.ts'],
    [["settled_by === 'receipt'", 'settled_by !== undefined', 'one unit has the cost of the whole purchase']],
  ),
  ...mutationsOf(
    'src/features/swap/settle/swap-end.ts',
    ['src/features/swap/settle/swap-end.test.ts'],
    [
      [
        'if (!isOver) await deps.watchLatePayment',
        'if (isOver) await deps.watchLatePayment',
        'a late refund is never looked for',
      ],
      ['      await claimPayments(tx, all, at)\n', '', 'what the end has counted is reported once more'],
      ["verdict === 'returned' ? returnOf", 'true ? returnOf', 'dust is reported as a refund'],
    ],
  ),
  ...mutationsOf(
    'src/features/swap/settle/verdict.ts',
    ['src/features/swap/settle/swap-end.test.ts'],
    [
      ['isReturned && isLossAccepted', 'isReturned || isLossAccepted', 'a refund by dust ends a swap'],
      ['if (fillUnits >= minUnits) return', 'if (fillUnits > 0n) return', 'less than the minimum is a fill'],
    ],
  ),
  ...mutationsOf(
    'src/features/swap/settle/announced-transactions.ts',
    ['src/features/swap/settle/swap-end.test.ts'],
    [
      [
        'const all = [...known, ...destinationTxs]',
        'const all = [...destinationTxs]',
        'a payment that is no longer named is forgotten',
      ],
    ],
  ),
  ...mutationsOf(
    'src/features/swap/route/loss.ts',
    ['src/features/swap/route/loss.test.ts'],
    [
      [
        'smaller(exemptLossMicros, valueMicros / 2n)',
        'exemptLossMicros',
        'a swap below five dollars has no bound',
      ],
      ['fullBps - remainingBpsMin, fullBps))', 'fullBps, fullBps))', 'a swap may leave nothing of its value'],
    ],
  ),
  ...mutationsOf(
    'src/features/policy/approval-rules.ts',
    ['src/features/policy/approval-rules.test.ts'],
    [
      [
        'if (acceptedLossBps !== undefined)',
        'if (acceptedLossBps === -1)',
        'an agent accepts any loss by itself',
      ],
    ],
  ),
  ...mutationsOf(
    'src/features/swap/settle/late-payment.ts',
    ['src/features/swap/settle/swap-end.test.ts'],
    [
      [
        'row ? await claimPayments(tx, payments, at) : []',
        '[...payments]',
        'a late fill ends another swap as well',
      ],
    ],
  ),
  ...mutationsOf(
    'src/features/swap/settle/payments.ts',
    ['test/journeys/swap-lies.test.ts'],
    [
      [
        'gained.filter((each) => sameAddress(chain, each.token, address))',
        'gained',
        'a token that anybody sends ends a swap as refunded',
      ],
    ],
  ),
  ...mutationsOf(
    'src/features/swap/orders/run-order.ts',
    ['src/features/swap/orders/run-order.test.ts'],
    [
      [
        "code === 'token_unsafe' && extras.status !== 'flagged'",
        "code === 'token_unsafe' && extras.status === 'none'",
        'a node that is away for a moment ends every order for a token on no list',
      ],
    ],
  ),
  ...mutationsOf(
    'src/features/swap/route/prepare-swap.ts',
    ['test/journeys/order-attacks.test.ts'],
    [
      [
        '  assertLossBounded(terms, { outMicros, poolMicros: security.poolMicros })\n',
        '',
        'a stop sells into a pool that somebody moved, at any price',
      ],
    ],
  ),
]
