import type { Choice } from './choice.ts'
import type { Problem } from './formula.ts'
import type { Frame, SlotRule } from './frame.ts'
import { type Asset, type Names, tokenOn } from './names.ts'
import { sidesOf } from './plan-conditions.ts'
import type { Slots } from './reader.ts'
import { missingOf } from './score.ts'
import type { Token } from './tag.ts'
import type { Ask, Intent } from './understanding.ts'

/** One question at a time, with at most four choices. */
const choicesMax = 4

const assetOf = (symbol: string | undefined, { bySymbol }: Names): Asset | undefined =>
  symbol === undefined ? undefined : bySymbol.get(symbol.toLowerCase())

type Found = { frame: Frame; slots: Slots; left: readonly Token[] }
const ask = (
  { frame, slots }: Found,
  given: Pick<Ask, 'slot' | 'question'> & { choices?: readonly Choice[] },
): Ask => ({
  intent: frame.intent,
  slots,
  slot: given.slot,
  question: given.question,
  choices: (given.choices ?? []).slice(0, choicesMax),
})

const chainChoices = (chainIds: readonly string[], { chainById }: Names, slot = 'chain'): Choice[] =>
  chainIds.flatMap((id) => {
    const chain = chainById.get(id)
    return chain ? [{ label: chain.displayName, fill: { [slot]: id } }] : []
  })

function choicesFor({ name }: SlotRule, { frame, slots, left }: Found, names: Names): Choice[] {
  if (name === 'chain' && frame.intent === 'recharge') return chainChoices([...names.chainById.keys()], names)
  if (name === 'chain_out')
    return chainChoices(
      [...names.chainById.keys()].filter((id) => id !== slots.chain),
      names,
      'chain_out',
    )
  if (name === 'side')
    return frame.intent === 'limit_order'
      ? [
          { label: 'buy', fill: { side: 'buy' } },
          { label: 'sell', fill: { side: 'sell' } },
        ]
      : [
          { label: 'long', fill: { side: 'long' } },
          { label: 'short', fill: { side: 'short' } },
        ]
  if (name === 'place') {
    const names =
      frame.intent === 'deposit' ? ['earn_deposit', 'perp_fund'] : ['earn_withdraw', 'perp_withdraw']
    const labels = ['the vault', 'the perpetual account']
    return names.map((intent, at) => ({ label: labels[at] ?? '', intent, fill: slots }))
  }
  if (name === 'field')
    return [
      { label: 'per transaction', fill: { field: 'per_transaction' } },
      { label: 'per day', fill: { field: 'per_day' } },
      { label: 'above which a person approves', fill: { field: 'approval_above' } },
    ]
  if (name === 'amount' && frame.intent === 'recharge')
    return ['5', '10', '20'].map((usd) => ({ label: `${usd} dollars`, fill: { amount: `${usd} usd` } }))
  if (name !== 'amount') return []
  // The number that was said, with each unit that it could have.
  const number = left.find(({ quantity }) => quantity?.unit === 'number')?.quantity?.value
  const symbol = slots.asset ?? (slots.asset_in === 'USDC' ? slots.asset_out : slots.asset_in)
  if (number === undefined || symbol === undefined) return []
  return [
    { label: `${number} dollars`, fill: { amount: `${number} usd` } },
    { label: `${number} ${symbol}`, fill: { amount: `${number} ${symbol}` } },
  ]
}

/** `buy $50 of btc`: no chain has it, but its wrapped forms, or the venue. */
function askUnlisted(found: Found, names: Names): Ask | undefined {
  const { frame, slots } = found
  if (!['swap', 'quote', 'limit_order', 'bridge', 'hook'].includes(frame.intent)) return undefined
  const sides = sidesOf(slots)
  for (const [slot, symbol] of [
    ['asset_in', sides.in],
    ['asset_out', sides.out],
  ] as const) {
    const asset = assetOf(symbol, names)
    if (!asset || asset.tokens.length > 0) continue
    const field = slots[slot] === undefined ? 'asset' : slot
    const wrapped = names.universe.assets.filter(
      ({ symbol: other, tokens }) =>
        tokens.length > 0 &&
        other !== asset.symbol &&
        other.toLowerCase().endsWith(asset.symbol.toLowerCase()),
    )
    const choices: Choice[] = wrapped.map(({ symbol: other }) => ({ label: other, fill: { [field]: other } }))
    const open = { asset: asset.symbol, ...(slots.amount === undefined ? {} : { amount: slots.amount }) }
    if (asset.perp && frame.intent === 'swap' && field === 'asset_out')
      choices.push({
        label: `a long position in ${asset.symbol}`,
        intent: 'perp_open',
        fill: { ...open, side: 'long' },
      })
    if (asset.perp && frame.intent === 'hook')
      choices.push({
        label: 'the perpetual position',
        intent: 'perp_protect',
        fill: { ...slots, asset: asset.symbol },
      })
    return ask(found, {
      slot: field,
      question: `${asset.symbol} itself is on no chain here. Which do you mean?`,
      choices,
    })
  }
  return undefined
}

/** The chain was said, and the token is not there. */
function askChain(found: Found, names: Names): Ask | undefined {
  const { frame, slots } = found
  if (slots.chain === undefined || !['swap', 'quote', 'limit_order', 'bridge', 'hook'].includes(frame.intent))
    return undefined
  const sides = sidesOf(slots)
  for (const [symbol, chain, slot] of [
    [sides.in, slots.chain, 'chain'],
    [sides.out, slots.chain_out ?? slots.chain, slots.chain_out === undefined ? 'chain' : 'chain_out'],
  ] as const) {
    const asset = assetOf(symbol, names)
    if (!asset || tokenOn(asset, chain)) continue
    const others = asset.tokens.map(({ chainId }) => chainId)
    const question = `${asset.symbol} is not listed on ${names.chainById.get(chain)?.displayName ?? chain}. Which chain?`
    return ask(found, { slot, question, choices: chainChoices(others, names, slot) })
  }
  return undefined
}

/** A stop on ETH: on the tokens in the wallet, or on the position. */
function askMarket(
  found: Found,
  names: Names,
  market: 'perp' | 'spot' | 'token' | undefined,
): Ask | undefined {
  const { frame, slots } = found
  const asset = assetOf(slots.asset, names)
  if (
    frame.intent !== 'hook' ||
    !asset ||
    slots.trailing !== undefined ||
    slots.share !== undefined ||
    slots.chain !== undefined
  )
    return undefined
  const legs = Object.fromEntries(
    ['asset', 'stop', 'target'].flatMap((name) => (slots[name] === undefined ? [] : [[name, slots[name]]])),
  )
  const choices: Choice[] = []
  if (asset.tokens.length > 0)
    choices.push({
      label: `the ${asset.symbol} in your wallet`,
      intent: 'hook',
      fill: { ...slots, market: 'token' },
    })
  if (asset.perp)
    choices.push({ label: `the perp position in ${asset.symbol}`, intent: 'perp_protect', fill: legs })
  if (asset.spot)
    choices.push({ label: `the ${asset.symbol} at the spot venue`, intent: 'spot_protect', fill: legs })
  if (choices.length < 2 || market === 'token') return undefined
  return ask(found, { slot: 'market', question: 'Which of them do you mean?', choices })
}

/** The question that an order or a read needs answered first; undefined where nothing is open. */
export function questionOf(found: Found, names: Names, market?: 'perp' | 'spot' | 'token'): Ask | undefined {
  const { frame, slots, left } = found
  const [missing] = missingOf(frame, slots)
  if (missing) {
    const unknown = left.length === 0 ? '' : ` "${left[0]?.text ?? ''}" is unclear.`
    return ask(found, {
      slot: missing.name,
      question: `${missing.question}${missing.name === 'amount' ? unknown : ''}`,
      choices: choicesFor(missing, found, names),
    })
  }
  const place = askUnlisted(found, names) ?? askChain(found, names) ?? askMarket(found, names, market)
  if (place) return place
  const [number] = left
  if (number && frame.effect !== 'read' && frame.effect !== 'none')
    return ask(found, {
      slot: 'number',
      question: `What does "${number.text}" mean here? Say the order again without it, or with its meaning.`,
    })
  return undefined
}

/** The question of a step that met something that only the user can decide. */
export const askOf = (
  { intent, slots }: Pick<Intent, 'intent' | 'slots'>,
  { slot, question, choices }: Extract<Problem, { problem: 'ask' }>,
): Ask => ({
  intent,
  slots,
  slot,
  question,
  choices: choices.slice(0, choicesMax),
})

/** The question with its choices, numbered as they are answered. */
export const questionText = ({ question, choices }: Pick<Ask, 'question' | 'choices'>): string =>
  [question, ...choices.map(({ label }, at) => `${at + 1}. ${label}`)].join('\n')
