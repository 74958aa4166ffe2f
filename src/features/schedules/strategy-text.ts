import type { StrategyFields, StrategyType } from '#engines/strategy-terms/strategy-schemas.ts'
import type { Compiled } from './strategy-orders.ts'

/** Says in words what a strategy does. */

/** Says what a purchase is, since a buyer of an asset may expect tokens. */
export function purchaseNotes({ strategy, assets = [] }: Compiled): string[] {
  if (strategy?.type !== 'dca' && strategy?.type !== 'rebalance') return []
  return [
    `It holds ${assets.join(', ')} as perpetual positions at leverage 1, which follow the price and pay or receive funding each hour: no tokens come into the wallet. To buy tokens, name a chain in the sentence, such as \`buy 20 dollars of eth on base\`, which makes a scheduled chat`,
  ]
}

type Conditions = NonNullable<StrategyFields['enter_if']>

const conditionsText = (conditions: Conditions): string =>
  conditions.map(({ left, is, right }) => `${left} ${is.replace('_', ' ')} ${right}`).join(' and ')

const worthOf = ({ order_notional_usd: usd, order_size: size }: StrategyFields): string =>
  usd === undefined ? `${size}` : `${usd} USD`

export function strategyText(type: StrategyType, fields: StrategyFields): string {
  const { asset, targets = [], enter_if = [], exit_if, side = 'long' } = fields
  switch (type) {
    case 'dca':
      return `Buy ${asset} for ${fields.amount_usd} USD`
    case 'rebalance':
      return `Hold ${targets.map((target) => `${target.share_pct} % ${target.asset}`).join(', ')}`
    case 'condition': {
      const exit = exit_if ? `, and close when ${conditionsText(exit_if)}` : ''
      return `Go ${side} ${asset} for ${worthOf(fields)} when ${conditionsText(enter_if)}${exit}`
    }
    case 'day_trade_farming':
      return `Day trades of ${asset} for ${worthOf(fields)} each`
  }
}
