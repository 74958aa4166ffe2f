import type { Json } from '#kernel/wire/json.ts'
import { bpsText, fractionText, legLines, numberText, spelled, usdText } from './value-words.ts'

export const yesOrNo = (value: Json): string =>
  value === true ? 'yes' : value === false ? 'no' : spelled(value)
const orderKind = (value: Json): string =>
  value === true ? 'a market order' : value === false ? 'a limit order' : spelled(value)
const tifs = new Map<Json, string>([
  ['gtc', 'until it is cancelled (gtc)'],
  ['ioc', 'at once, and the rest is cancelled (ioc)'],
  ['alo', 'only as an order that rests in the book (alo)'],
])
const references = new Map<Json, string>([
  ['entry', 'the average cost of your own fills (entry)'],
  ['mark', 'what a sale would bring now (mark)'],
])

/** These fields mean the same in every operation, so each is printed without regard to the others. */
export const fieldWords: ReadonlyMap<string, (value: Json) => string> = new Map([
  ['slippage_bps', (value) => `Slippage: at most ${bpsText(value)}`],
  ['slippage_pct', (value) => `Slippage: at most ${numberText(value)} % from the middle price`],
  ['max_price_impact_bps', (value) => `Loss of value: at most ${bpsText(value)}`],
  ['max_fee_bps', (value) => `Fees: at most ${bpsText(value)} of what is paid`],
  ['deadline_seconds', (value) => `Void after: ${numberText(value)} seconds`],
  ['quote_id', (value) => `Quote: ${spelled(value)}`],
  ['dryrun', (value) => `Only a quote: ${yesOrNo(value)}`],
  ['expires_at', (value) => `Expires: ${spelled(value)}`],
  ['stop_loss', (value) => legLines('Stop-loss', value)],
  ['stop_losses', (value) => legLines('Stop-loss', value)],
  ['take_profit', (value) => legLines('Take-profit', value)],
  ['take_profits', (value) => legLines('Take-profit', value)],
  ['trailing_percentage', (value) => `Trailing stop: ${fractionText(value)} below the highest price`],
  ['reference', (value) => `Reference price: ${references.get(value) ?? spelled(value)}`],
  ['oco', (value) => `One that sells everything cancels the others: ${yesOrNo(value)}`],
  ['leverage', (value) => `Leverage: ${numberText(value)}x`],
  [
    'is_cross',
    (value) => `Margin: ${value === true ? 'cross' : value === false ? 'isolated' : spelled(value)}`,
  ],
  ['order_type', (value) => `Order: ${spelled(value)}`],
  ['limit_price', (value) => `Limit price: ${usdText(value)}`],
  ['tif', (value) => `In force: ${tifs.get(value) ?? spelled(value)}`],
  ['tp_price', (value) => `Take-profit: at ${usdText(value)}`],
  ['tp_is_market', (value) => `Take-profit by: ${orderKind(value)}`],
  ['sl_price', (value) => `Stop-loss: at ${usdText(value)}`],
  ['sl_is_market', (value) => `Stop-loss by: ${orderKind(value)}`],
  ['reduce_only', (value) => `Only reduces a position: ${yesOrNo(value)}`],
  ['replace', (value) => `Replaces earlier ones: ${yesOrNo(value)}`],
  ['client_order_id', (value) => `Label: ${spelled(value)}`],
  ['position_id', (value) => `Position: ${spelled(value)}`],
  ['order_id', (value) => `Order: ${spelled(value)}`],
  ['oid', (value) => `Order: ${spelled(value)}`],
  ['pack_id', (value) => `Pack: ${spelled(value)}`],
  ['rotate', (value) => `A new key in place of the present one: ${yesOrNo(value)}`],
])
