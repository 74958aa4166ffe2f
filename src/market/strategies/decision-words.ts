import { isDecimal } from '#kernel/money/money.ts'
import { printedValue, type Unit } from '#market/figure-text.ts'
import { indicatorList, isIndicator } from '#market/indicator-list.ts'
import { pullback } from './farming-rule.ts'
import type { Decision, DecisionConfig, OrderIntent, StrategyState } from './strategy.ts'

/** Says in plain words what a strategy decided and why, also where it did nothing. */

const ordersMax = 3
const charactersMax = 400

/** Takes the arguments from which the decision was made. */
export function decisionWords(decision: Decision, state: StrategyState, config: DecisionConfig): string {
  const text = decision.action === 'hold' ? holdWords(decision, state) : actWords(decision, config)
  return text.length > charactersMax ? `${text.slice(0, charactersMax - 1)}…` : text
}

/** Says why a run closed what the strategy had open. */
export const exitWords = (reason: string): string =>
  `exit: what was open is closed, because ${whyActed(reason)}`

function holdWords(decision: Decision, { positions }: StrategyState): string {
  // While a position is open, the condition that the reason names is one of the exit.
  const isOfExit =
    decision.reason === 'flat' || (Object.keys(positions).length > 0 && condition.test(decision.reason))
  return `${isOfExit ? 'no exit' : 'no entry'}: ${whyNot(decision)}`
}

const indexUnit = (name: string): Unit => (isIndicator(name) ? indicatorList[name].unit : 'price')
const labelOf = (name: string): string => {
  if (isIndicator(name)) return indicatorList[name].label
  return name === 'ema_20' ? 'EMA 20' : name.replaceAll('_', ' ')
}

/** A whole number has no places, so that "RSI 47" reads as people say it. */
const shortened = (text: string): string => text.replace(/\.0+(?=$| )/, '')
const figureText = (value: string | undefined, unit: Unit): string =>
  value === undefined || !isDecimal(value)
    ? 'unknown'
    : shortened(printedValue({ value, unit })?.replace(/ USD$/, '') ?? value)
const usdText = (value: string | undefined): string => `${figureText(value, 'usd')} USD`

const guardWords: Readonly<Record<string, string>> = {
  max_loss: 'the guard on the loss since the beginning has tripped',
  max_drawdown: 'the guard on the fall from the highest worth has tripped',
  daily_loss: 'the guard on the loss of the day has tripped',
  max_consecutive_losses: 'the guard on losses in a row has tripped',
  max_trades_per_day: 'the entries that the guard allows on a day are used',
  max_open_positions: 'as many positions are open as the guard allows',
  cooldown: 'the time without an entry after the last one is not over',
  until: 'the time of the strategy is over',
  tripped: 'a guard has tripped',
}
const guardText = (reason: string): string | undefined =>
  reason.startsWith('guard_') ? guardWords[reason.slice('guard_'.length)] : undefined

const plainWhy: Readonly<Record<string, string>> = {
  not_enough_history: 'there are no 1,000 closed candles without a gap',
  market_closed: 'the market is closed, or has no price',
  foreign_position: 'the account has a position that this strategy has not opened',
  own_order_on_other_side: 'an own order rests on the other side, and could trade with it',
  position_open: 'a position is open',
  order_resting: 'an order rests already',
  day_ends: 'the local day ends',
  entries_of_the_day_used: 'the three entries of the day are used',
  no_trend: 'EMA 20 and EMA 50 are equal, so there is no trend',
  no_price_for_exits: 'the stop or the target has no valid price',
  stop_too_close: 'the stop is closer than two ticks',
  stop_beyond_liquidation: 'the stop is beyond 60 % of the way to the liquidation',
  flat: 'nothing is open',
  within_band: 'every share is within its band',
}

const condition = /^(?<left>.+)_not_(?<is>above|below|crosses_above|crosses_below)$/
const comparisons: Readonly<Record<string, string>> = {
  above: 'is not above',
  below: 'is not under',
  crosses_above: 'has not crossed above',
  crosses_below: 'has not crossed under',
}

/** Says which condition is not true, such as "RSI 14 47 is not under 40". */
function conditionWords({ reason, figures }: Decision): string | undefined {
  const { left, is } = condition.exec(reason)?.groups ?? {}
  if (left === undefined || is === undefined || figures[left] === undefined) return undefined
  const { bound = '' } = figures
  const unit = indexUnit(left)
  const right = isDecimal(bound) ? figureText(bound, unit) : labelOf(bound)
  return `${labelOf(left)} at ${figureText(figures[left], unit)} ${comparisons[is]} ${right}`
}

function whyNot(decision: Decision): string {
  const { reason, figures } = decision
  const rsi = () => `RSI ${figureText(figures.rsi_14, 'index')}`
  switch (reason) {
    case 'rsi_not_low':
      return `${rsi()} is not under ${pullback.long}`
    case 'rsi_not_high':
      return `${rsi()} is not over ${pullback.short}`
    case 'price_above_maximum':
      return `the price of ${figureText(figures.price, 'price')} is above the maximum of ${figureText(figures.max_price, 'price')}`
    case 'insufficient_balance':
    case 'budget':
      return shortageWords(decision)
    case 'below_minimum':
      return figures.order_usd === undefined
        ? 'every order would be below the minimum of the venue'
        : `the order would be worth ${usdText(figures.order_usd)}, and the venue takes none below ${usdText(figures.minimum_usd)}`
    default:
      return guardText(reason) ?? plainWhy[reason] ?? conditionWords(decision) ?? reason.replaceAll('_', ' ')
  }
}

/** A purchase that may be smaller needs the minimum of the venue, and has what its order would be worth. */
function shortageWords({ reason, figures }: Decision): string {
  const { required_usd, minimum_usd, available_usd, order_usd } = figures
  const needed = required_usd ?? minimum_usd
  const there = available_usd ?? order_usd
  if (needed === undefined || there === undefined) return 'nothing is left to spend'
  const left = reason === 'budget' ? 'are left of the budget' : 'are available'
  return `it needs ${usdText(needed)}, and ${usdText(there)} ${left}`
}

const because: Readonly<Record<string, string>> = {
  due: 'its time has come',
  pullback_of_uptrend: 'the trend is up and the price has pulled back',
  pullback_of_downtrend: 'the trend is down and the price has pulled back',
  entry_conditions_true: 'every condition of the entry is true',
  exit_conditions_true: 'every condition of the exit is true',
  order_placed: 'the condition is one price, so the order waits for it',
  day_ends: 'the local day ends',
  disabled: 'the strategy was disabled',
  unprotected: 'the stop is gone and its price was passed',
  share_above_target: 'a share is above its target',
  share_below_target: 'a share is below its target',
}

const whyActed = (reason: string): string =>
  guardText(reason) ?? because[reason] ?? reason.replaceAll('_', ' ')

const orderTypes = { market: 'at the market', limit: 'at a limit of', stop: 'from' } as const

function orderWords({
  asset,
  side,
  size,
  order_type: type,
  price,
  stop_loss,
  take_profit,
}: OrderIntent): string {
  const at = price === undefined ? orderTypes.market : `${orderTypes[type]} ${figureText(price, 'price')}`
  const stop = stop_loss && `stop ${figureText(stop_loss.price, 'price')}`
  const target = take_profit && `target ${figureText(take_profit.price, 'price')}`
  return [`${side} ${size} ${asset} ${at}`, stop, target].filter((part) => part !== undefined).join(', ')
}

const actionWords = { enter: 'entry', exit: 'exit', adjust: 'change', hold: 'nothing' } as const

function actWords({ action, reason, figures, orders }: Decision, { strategy }: DecisionConfig): string {
  const shown = orders.slice(0, ordersMax).map(orderWords)
  const more = orders.length > ordersMax ? [`and ${orders.length - ordersMax} more`] : []
  const rsi =
    strategy.type === 'day_trade_farming' && figures.rsi_14 !== undefined
      ? ` (RSI ${figureText(figures.rsi_14, 'index')})`
      : ''
  return `${actionWords[action]}: ${[...shown, ...more].join('; ')}, because ${whyActed(reason)}${rsi}`
}
