import { mutationsOf } from './mutation.ts'

/** Decimals, units, rounding, and the ticks and lots of prices and sizes. */
export const numberMutations = [
  ...mutationsOf(
    'src/features/portfolio/sums.ts',
    ['src/features/portfolio/sums.test.ts'],
    [
      [
        'others = sums.slice(assetsMax)',
        'others = sums.slice(assetsMax + 1)',
        'an asset is in no sum of a portfolio',
      ],
    ],
  ),
  ...mutationsOf(
    'src/features/portfolio/in-flight.ts',
    ['src/features/portfolio/in-flight.test.ts'],
    [['if (arrived.length > 0) return nothing', '', 'money that has arrived counts twice']],
  ),
  ...mutationsOf(
    'src/kernel/money/money.ts',
    ['src/kernel/money/money.test.ts'],
    [
      [
        "if (rounding === 'down' || product % c === 0n) return quotient",
        'if (product % c === 0n) return quotient',
        'every division rounds up',
      ],
      [
        'return product < 0n !== c < 0n ? quotient - 1n : quotient + 1n',
        'return quotient + 1n',
        'a negative amount is rounded towards zero where it should be rounded away from it',
      ],
      [
        'if (fraction.length > decimals) throw',
        'if (fraction.length > 18) throw',
        'decimals that the token does not have become units',
      ],
      ['return negative ? -units : units', 'return units', 'the sign of an amount is lost'],
      [
        ".padStart(decimals + 1, '0')",
        ".padStart(decimals, '0')",
        'an amount below one loses its leading zero',
      ],
      [
        '10n ** BigInt(from - to), rounding)',
        '10n ** BigInt(from - to))',
        'a change of scale ignores the direction of rounding',
      ],
      [
        'decimals + places, usdDecimals, rounding)',
        'decimals, usdDecimals, rounding)',
        'a value ignores the decimals of the price',
      ],
    ],
  ),
  ...mutationsOf(
    'src/kernel/money/money.ts',
    ['src/kernel/contract/decimal-fields.test.ts'],
    [['const shift = Number(exponent)', 'const shift = 0', 'the exponent of a JSON number is ignored']],
  ),
  ...mutationsOf(
    'src/kernel/contract/decimal-fields.ts',
    ['src/kernel/contract/decimal-fields.test.ts'],
    [
      [
        "words: 'greater than', holds: (c: number) => c > 0",
        "words: 'greater than', holds: (c: number) => c >= 0",
        'an amount of zero passes where it must be above zero',
      ],
      [
        'if (decimalPlaces(plain) > places) return',
        'if (decimalPlaces(plain) > places + 1) return',
        'one decimal too many is accepted',
      ],
      [
        'return left < right ? -1 : left > right ? 1 : 0',
        'return Number(left) < Number(right) ? -1 : Number(left) > Number(right) ? 1 : 0',
        'decimals are compared as floats',
      ],
    ],
  ),
  ...mutationsOf(
    'src/upstreams/hyperliquid/rounding.ts',
    ['src/upstreams/hyperliquid/rounding.test.ts'],
    [
      [
        'roundToLot(toFixedPoint(text), grid)',
        `roundToLot(toFixedPoint(text), grid, 'up')`,
        'a size is rounded up',
      ],
      [
        'isBuy ? hundred + share : hundred - share',
        'isBuy ? hundred - share : hundred + share',
        'the bound of a market order is on the wrong side of the price',
      ],
      [
        "return roundPrice(fromFixedPoint(units), grid, isBuy ? 'down' : 'up')",
        "return roundPrice(fromFixedPoint(units), grid, isBuy ? 'up' : 'down')",
        'rounding to the tick goes beyond the allowed slippage',
      ],
      [
        'figures - wholeDigits',
        'figures + 1 - wholeDigits',
        'a price has a figure more than the venue accepts',
      ],
      [
        '2 * fixedPointDecimals, usdDecimals',
        '2 * fixedPointDecimals + 1, usdDecimals',
        'a notional is ten times too small',
      ],
      [
        "toFixedPoint(size), 'up')), grid, 'up')",
        "toFixedPoint(size), 'up')), grid, 'down')",
        'the lowest price is below the required value of the size',
      ],
    ],
  ),
]
