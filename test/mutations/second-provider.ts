import { mutationsOf } from './mutation.ts'

/** The second provider of routes: its calls, its quotes, and the choice between providers. */
export const providerMutations = [
  ...mutationsOf(
    'src/features/wallets/swap-rules.ts',
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
    ],
  ),
  ...mutationsOf(
    'src/upstreams/lifi/quote.ts',
    ['src/upstreams/lifi/quote.test.ts'],
    [
      ['minimumUnits < least', 'minimumUnits < 0n', 'the filler keeps the slippage'],
      ['!== request.amountInUnits)', '=== 0n)', 'a quote for another amount is taken'],
    ],
  ),
  ...mutationsOf(
    'src/features/swap/best-route.ts',
    ['src/features/swap/best-route.test.ts'],
    [
      ['      assertSafe(route)\n', '', 'a hostile quote keeps a good one from being taken'],
      [
        'other.amountOutMinUnits > one.amountOutMinUnits',
        'other.amountOutMinUnits < one.amountOutMinUnits',
        'the worse output wins',
      ],
    ],
  ),
]
