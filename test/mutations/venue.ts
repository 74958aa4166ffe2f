import { mutationsOf } from './mutation.ts'

/** Orders, brackets and the agreement of accounts with the venue. */
export const venueMutations = [
  ...mutationsOf(
    'src/upstreams/hyperliquid/sign.ts',
    ['src/upstreams/hyperliquid/sign.test.ts'],
    [
      [
        "toPerp: action.to === 'perp'",
        "toPerp: action.to !== 'perp'",
        'cash moves to the other side of the account than was asked for',
      ],
      [
        'amount: action.amount, time: nonce',
        'amount: action.amount, time: 0',
        'a withdrawal carries no time and can be signed twice alike',
      ],
      [
        'createL1ActionHash({ action: wire, nonce, ...expiry })',
        'createL1ActionHash({ action: wire, nonce })',
        'the expiry of an order is not covered by its signature',
      ],
    ],
  ),
  ...mutationsOf(
    'src/features/venue/bracket.ts',
    ['src/features/venue/bracket.test.ts'],
    [
      [
        "return entry.status === 'resting' ? 'unwind' : 'repair'",
        "return 'stands'",
        'a position that lost its stop is left as it is',
      ],
      [
        "if (none && entry.status !== 'resting') return 'nothing'",
        "if (none) return 'nothing'",
        'an entry rests on without the exits that were asked for',
      ],
      [
        "  return 'gone'\n",
        "  return 'standing'\n",
        'an exit that the venue has cancelled counts as protection',
      ],
      [
        'value += units(each.size) * units(each.price)',
        'value += units(each.price)',
        'the average price of fills ignores their sizes',
      ],
    ],
  ),
  ...mutationsOf(
    'src/features/venue/agreement.ts',
    ['src/features/venue/agreement.test.ts'],
    [
      ['size > allowed ?', 'size > allowed + roundingUnits ?', 'cash may be off by one entry more'],
      [
        '(held / floatDigits) * BigInt(entries)',
        'roundingUnits * BigInt(entries)',
        'tokens may be off by a rounding that only cash has',
      ],
      [
        "type !== 'accountClassTransfer' && (moves ?? []).some(({ amount }) => amount.startsWith('-'))",
        'false',
        'money that somebody else takes out is not noticed',
      ],
      ['fill.isBuy ? fill.size :', 'fill.tradeId > 0 ? fill.size :', 'a sale is recorded as a purchase'],
    ],
  ),
  ...mutationsOf(
    'src/features/perp/withdraw.ts',
    ['test/venue/front-door.test.ts'],
    [
      [
        'withdrawn_usd: amount_usd, chain_id',
        'withdrawn_usd: fromUnits(BigInt(paid_units), usdcDecimals), chain_id',
        'the fee of a withdrawal is not told as having left the venue',
      ],
      ['{ fee_usd: limits.withdrawFeeUsd,', "{ fee_usd: '0',", 'the fee of a withdrawal is told as none'],
    ],
  ),
]
