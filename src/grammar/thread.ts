import { parseAmount } from './amount-text.ts'
import { assetPositions, findAmount, readChains } from './amounts.ts'
import { dollarSymbol, type Names } from './asset-and-chain-names.ts'
import { createReader, leftOver, type Reader, type Slots, take } from './clause-reader.ts'
import { leadingWords } from './english/words.ts'
import { list } from './feature-rules.ts'
import { type Frame, isMutating } from './intent-frame.ts'
import { frameOf } from './intents.ts'
import * as orderTerms from './order-terms.ts'
import type { Quantity, QuantityUnit } from './quantity.ts'
import type { Choice } from './question-choice.ts'
import { has, type Token } from './tag.ts'
import { readPeriod, readTimeframe } from './times.ts'
import type { Ask, ThreadState, Understanding } from './understanding.ts'

/** Reads a short message within its thread, as the reply to a question or a change of the last request. */

export const pendingMs = 10 * 60_000
export const contextMs = 30 * 60_000
const ellipsisTokensMax = 12

export const isFresh = (entry: { atMs: number } | undefined, nowMs: number, maxMs: number): boolean =>
  entry !== undefined && nowMs >= entry.atMs && nowMs - entry.atMs <= maxMs

/** Returns the task that was started last, unless something was recommended with it or after it. */
export function lastStarted({ started, recommendations }: ThreadState, nowMs: number): string | undefined {
  if (!started || !isFresh(started, nowMs, contextMs)) return undefined
  return (recommendations?.atMs ?? 0) < started.atMs ? started.taskId : undefined
}

const links = list(
  'FILLER OVERRIDE TO ON FROM OF AT MINE PAYWITH POLITE IT LEVERAGE CHAINWORD AGAIN THEN TOKENWORD STOP TARGET SLIPPAGE ALL REST ISOLATED CROSS EVERY PAST_SPAN PERP SPOT',
)

/** Whether a message has only values and linking words. */
export const isElliptic = (tokens: readonly Token[]): boolean =>
  tokens.length <= ellipsisTokensMax &&
  tokens.every(
    (token) =>
      token.kind === 'mark' ||
      token.kind === 'quantity' ||
      token.asset !== undefined ||
      token.chain !== undefined ||
      has(token, ...links) ||
      token.concepts.some((concept) => concept.startsWith('~') || concept.startsWith('tf')),
  )
export const hasValue = (tokens: readonly Token[]): boolean =>
  tokens.some(
    (token) =>
      token.kind === 'quantity' ||
      token.asset !== undefined ||
      token.chain !== undefined ||
      has(token, 'ALL', 'REST', 'PERP', 'SPOT') ||
      token.concepts.some((concept) => concept.startsWith('~')),
  )

/** Returns the slot that a new asset fills: the new asset replaces the traded asset, never the dollars that pay. */
function assetSlot(frame: Frame, slots: Slots): string | undefined {
  for (const slot of ['assets', 'asset', 'token']) if (frame.slots.includes(slot)) return slot
  if (!frame.slots.includes('asset_out')) return undefined
  return slots.asset_in !== undefined && slots.asset_in !== dollarSymbol && slots.asset_out === dollarSymbol
    ? 'asset_in'
    : 'asset_out'
}

function withAmount(reader: Reader, frame: Frame, slots: Slots): void {
  const amount = findAmount(reader)
  if (!amount || !frame.slots.includes('amount')) return
  const before = parseAmount(slots.amount)
  // A frame without a plan only asks in which market to trade, so its amount is not converted to dollars.
  const isDollars = frame.plan !== undefined && frame.readers.includes('dollars')
  if (amount.kind !== 'number')
    slots.amount =
      isDollars && amount.text.endsWith(` ${dollarSymbol}`)
        ? amount.text.replace(dollarSymbol, 'usd')
        : amount.text
  else if (before?.kind === 'token') slots.amount = `${amount.text} ${before.symbol}`
  else if (before?.kind === 'usd' || isDollars) slots.amount = `${amount.text} usd`
  else return
  take(reader, amount.at)
  if (amount.asset >= 0) take(reader, amount.asset)
}

/** Takes the value that answers a question, if it has one of the given units. */
function takeValue(reader: Reader, units: readonly QuantityUnit[]): Quantity | undefined {
  const at = reader.tokens.findIndex(({ quantity }) => quantity && units.includes(quantity.unit))
  if (at >= 0) take(reader, at)
  return reader.tokens[at]?.quantity
}

const movesBetweenChains = ({ required = [] }: Frame): boolean =>
  required.some(({ name }) => name === 'chain_out')

/** Returns the slots with the new values of a short message in them; undefined if some value has no slot. */
export function override(
  frame: Frame,
  before: Slots,
  tokens: readonly Token[],
  { names, asked }: { names: Names; asked?: string },
): Slots | undefined {
  const reader = createReader(tokens, names, [])
  const slots: Slots = { ...before }
  orderTerms.readLeverage(reader, slots)
  orderTerms.readSlippage(reader, slots)
  orderTerms.readLegs(reader, slots)
  if (asked === 'price' || frame.waitsForPrice) orderTerms.readPrice(reader, slots)
  if (asked === 'stop' && slots.stop === undefined && slots.target === undefined) {
    const quantity = takeValue(reader, ['percent', 'number', 'usd'])
    if (quantity)
      slots.stop = quantity.unit === 'percent' ? `${quantity.value.replace(/^-/, '')}%` : quantity.value
  }
  if (asked === 'price' && slots.price === undefined) {
    const quantity = takeValue(reader, ['number', 'usd'])
    if (quantity)
      Object.assign(slots, { price: quantity.value, condition: slots.side === 'sell' ? 'gte' : 'lte' })
  }
  const all = reader.tokens.findIndex((token) => has(token, 'ALL'))
  if (frame.slots.includes('all') && all >= 0) {
    take(reader, all)
    slots.all = 'yes'
  }
  withAmount(reader, frame, slots)
  const chains: Slots = {}
  readChains(reader, chains, {
    isReply: frame.slots.includes('chain'),
    moves: frame.slots.includes('chain_out') && (asked === 'chain_out' || movesBetweenChains(frame)),
  })
  const onlyChain = asked === 'chain_out' && chains.chain_out === undefined ? chains.chain : undefined
  if (onlyChain !== undefined) slots.chain_out = onlyChain
  else Object.assign(slots, chains)
  if ((asked === 'chain' || asked === 'chain_out') && Object.keys(chains).length === 0) {
    // The answer to "which chain" may be a name that is a coin elsewhere, such as `solana`.
    const at = reader.tokens.findIndex((token) => token.chain !== undefined)
    const chain = reader.tokens[at]?.chain
    if (chain) {
      take(reader, at)
      slots[asked] = chain.id
    }
  }
  const slot =
    asked !== undefined && ['asset', 'asset_in', 'asset_out', 'assets', 'token'].includes(asked)
      ? asked
      : assetSlot(frame, before)
  const found = assetPositions(reader)
  if (slot !== undefined && found.length > 0) {
    const symbols = [...new Set(found.map((at) => reader.tokens[at]?.asset?.symbol ?? ''))]
    if (slot !== 'assets' && symbols.length > 1) return undefined
    take(reader, ...found)
    const old = slots[slot]
    slots[slot] = symbols.join(',')
    // An amount that counts the replaced asset means nothing any more.
    if (old !== undefined && slots.amount?.endsWith(` ${old}`) && slots.amount === before.amount)
      delete slots.amount
  }
  if (frame.slots.includes('venue')) {
    if (reader.tokens.some((token) => has(token, 'PERP'))) slots.venue = 'perp'
    if (reader.tokens.some((token) => has(token, 'SPOT'))) slots.venue = 'spot'
  }
  if (frame.slots.includes('timeframe')) readTimeframe(reader, slots)
  if (frame.slots.includes('period')) readPeriod(reader, slots)
  for (const name of Object.keys(slots))
    if (!frame.slots.includes(name) && before[name] === undefined) delete slots[name]
  if (leftOver(reader).length > 0) return undefined
  return Object.keys(slots).some((name) => slots[name] !== before[name]) ? slots : undefined
}

const ordinals = list('ORDINAL1 ORDINAL2 ORDINAL3 ORDINAL4')
const choosing = list('FILLER OVERRIDE ACCEPT DECLINE RECOMMENDATION IT AT MINE TO ON FROM OF')
const isOfChoice = (token: Token): boolean => token.kind === 'mark' || has(token, ...choosing, ...ordinals)

const doubts = list('NEGATE QUESTION EXCEPT IF SUPPOSE REPORT EXPLAIN SHOULD')
/** Whether a reply is doubtful: `base?` and `not the vault` are no answers. */
export const isDoubtful = (tokens: readonly Token[]): boolean =>
  tokens.some((token) => token.words === '?' || (has(token, ...doubts) && !has(token, 'ACCEPT', 'DECLINE')))

/** Returns the zero-based position that a reply such as `the second` names among `count` choices. */
export function ordinalOf(tokens: readonly Token[], count: number): number | undefined {
  const spoken = ordinals.findIndex((concept) => tokens.some((token) => has(token, concept)))
  if (spoken >= 0) return spoken < count && tokens.every(isOfChoice) ? spoken : undefined
  const values = tokens.filter(({ kind }) => kind === 'quantity')
  const [only] = values
  if (values.length !== 1 || only?.quantity?.unit !== 'number' || !/^[1-9]$/.test(only.quantity.value))
    return undefined
  const rest = tokens.filter(
    (token) => token !== only && token.kind !== 'mark' && !has(token, 'FILLER', 'OVERRIDE', 'AT'),
  )
  const at = Number(only.quantity.value) - 1
  return rest.length === 0 && at < count ? at : undefined
}

const simple = (text: string): string => text.toLowerCase().replace(leadingWords, '').trim()
/**
 * Returns a text without the full stops and exclamation marks at its end. The loop takes linear time; a regular
 * expression would start again at each mark of a long run.
 */
function withoutEnd(text: string): string {
  let end = text.length
  while (text[end - 1] === '.' || text[end - 1] === '!') end--
  return text.slice(0, end)
}
/** Returns the choice that a reply names by its number or by its words. */
export function choiceOf({ choices }: Ask, tokens: readonly Token[], text: string): Choice | undefined {
  const at = ordinalOf(tokens, choices.length)
  if (at !== undefined) return choices[at]
  const said = simple(withoutEnd(text))
  if (said.length < 3) return undefined
  const named = choices.filter(({ label }) => ` ${simple(label)} `.includes(` ${said} `))
  return named.length === 1 ? named[0] : undefined
}

/** Returns what the thread remembers after a message. Only what the user said is remembered. */
export function remember(state: ThreadState, understanding: Understanding, nowMs: number): ThreadState {
  const next: ThreadState = { ...state }
  delete next.pending
  if (understanding.ask) next.pending = { ...understanding.ask, atMs: nowMs }
  const last = understanding.intents.at(-1)
  const frame = last && frameOf(last.intent)
  if (!last || !frame) return next
  const isTalk = last.effect === 'none' && last.route === undefined
  if (!isTalk) next.last = { intent: last.intent, slots: last.slots, effect: last.effect, atMs: nowMs }
  if (frame.executedBy) next.quote = { slots: last.slots, atMs: nowMs }
  else if (isMutating(last)) delete next.quote
  const { asset = last.slots.asset_out, asset_in, token } = last.slots
  const [first, ...others] = (last.slots.assets ?? '').split(',')
  const focus =
    asset !== undefined && asset !== dollarSymbol
      ? asset
      : (asset_in ?? token ?? (others.length === 0 ? first : undefined))
  if (focus !== undefined && focus !== '')
    next.focus = { asset: focus, market: frame.place ?? 'token', atMs: nowMs }
  return next
}
