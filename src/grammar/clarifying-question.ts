import { isDecimal, toUnits } from '#kernel/money/money.ts'
import { type Asset, assetNamed, dollarSymbol, type Names, tokenOn } from './asset-and-chain-names.ts'
import type { Slots } from './clause-reader.ts'
import { type Frame, missingOf, type Place, type SlotRule } from './intent-frame.ts'
import { type Choice, chainChoices, choose } from './question-choices.ts'
import { sidesOf } from './step-predicates.ts'
import type { Token } from './tag.ts'
import type { Ask } from './understanding.ts'

/** The chat asks one question at a time, with at most four choices. */
const choicesMax = 4

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

const isAboveZero = (value: string): boolean => isDecimal(value) && toUnits(value, 18) > 0n

function choicesFor({ name, choices }: SlotRule, { slots, left }: Found, names: Names): readonly Choice[] {
  if (choices === 'chains')
    return chainChoices(
      [...names.chainById.keys()].filter((id) => id !== slots.chain),
      names,
      name,
    )
  if (choices)
    return choices.map((each) => (each.intent ? { ...each, fill: { ...slots, ...each.fill } } : each))
  // The choices are the number that the user said, with each unit that the number could have.
  const number = left.find(({ quantity }) => quantity?.unit === 'number')?.quantity?.value
  const symbol = slots.asset ?? (slots.asset_in === dollarSymbol ? slots.asset_out : slots.asset_in)
  if (name !== 'amount' || number === undefined || symbol === undefined || !isAboveZero(number)) return []
  return choose('amount', {
    [`${number} usd`]: `${number} dollars`,
    [`${number} ${symbol}`]: `${number} ${symbol}`,
  })
}

/**
 * Asks about an asset that no chain has, as in `buy $50 of btc`: the choices are its wrapped forms, or the venue.
 */
function askUnlisted(found: Found, names: Names): Ask | undefined {
  const { frame, slots } = found
  const sides = sidesOf(slots)
  for (const [side, symbol] of [
    ['asset_in', sides.in],
    ['asset_out', sides.out],
  ] as const) {
    const asset = assetNamed(symbol, names)
    if (!asset || asset.tokens.length > 0) continue
    const slot = slots[side] === undefined ? 'asset' : side
    const isWrapped = ({ symbol: other, tokens }: Asset) =>
      tokens.length > 0 && other !== asset.symbol && other.toLowerCase().endsWith(asset.symbol.toLowerCase())
    const wrapped = names.universe.assets.filter(isWrapped)
    const atPerp = asset.perp ? frame.atPerp?.(slots, { symbol: asset.symbol, slot }) : undefined
    return ask(found, {
      slot,
      question: `${asset.symbol} itself is on no chain here. Which do you mean?`,
      choices: [
        ...wrapped.map(({ symbol: other }) => ({ label: other, fill: { [slot]: other } })),
        ...(atPerp ? [atPerp] : []),
      ],
    })
  }
  return undefined
}

/** Asks for another chain if the asset is not listed on the chain that the user said. */
function askChain(found: Found, names: Names): Ask | undefined {
  const { slots } = found
  if (slots.chain === undefined) return undefined
  const sides = sidesOf(slots)
  for (const [symbol, chain, slot] of [
    [sides.in, slots.chain, 'chain'],
    [sides.out, slots.chain_out ?? slots.chain, slots.chain_out === undefined ? 'chain' : 'chain_out'],
  ] as const) {
    const asset = assetNamed(symbol, names)
    if (!asset || tokenOn(asset, chain)) continue
    const others = asset.tokens.map(({ chainId }) => chainId)
    const question = `${asset.symbol} is not listed on ${names.chainById.get(chain)?.displayName ?? chain}. Which chain?`
    return ask(found, { slot, question, choices: chainChoices(others, names, slot) })
  }
  return undefined
}

/** Asks for another asset if the venue has no spot market of the one that the user said, such as UBTC for BTC. */
function askSpot(found: Found, names: Names): Ask | undefined {
  const asset = found.frame.place === 'spot' ? assetNamed(found.slots.asset, names) : undefined
  if (!asset || asset.spot) return undefined
  const isForm = ({ symbol, spot }: Asset) =>
    spot && symbol.toLowerCase().endsWith(asset.symbol.toLowerCase())
  return ask(found, {
    slot: 'asset',
    question: `${asset.symbol} is not at the spot venue. Which do you mean?`,
    choices: names.universe.assets
      .filter(isForm)
      .map(({ symbol }) => ({ label: symbol, fill: { asset: symbol } })),
  })
}

/**
 * Asks which market is meant, as for a stop on ETH: the tokens in the wallet, the perp position, or the spot
 * holding.
 */
function askMarket(found: Found, names: Names, market: Place | undefined): Ask | undefined {
  const { frame, slots } = found
  const asset = assetNamed(slots.asset, names)
  const isOfToken = ['trailing', 'share', 'chain'].some((name) => slots[name] !== undefined)
  if (!frame.markets || !asset || isOfToken || market === 'token') return undefined
  const { perp, spot } = frame.markets
  const { symbol } = asset
  const token = { intent: frame.intent, fill: { ...slots, market: 'token' } }
  const choices: Choice[] = [
    ...(asset.tokens.length > 0 ? [{ label: `the ${symbol} in your wallet`, ...token }] : []),
    ...(asset.perp ? [{ label: `the perp position in ${symbol}`, intent: perp, fill: slots }] : []),
    ...(asset.spot ? [{ label: `the ${symbol} at the spot venue`, intent: spot, fill: slots }] : []),
  ]
  if (choices.length < 2) return undefined
  return ask(found, { slot: 'market', question: 'Which of them do you mean?', choices })
}

/** Returns the question that the user has to answer before an order or a read; undefined if nothing is open. */
export function questionOf(found: Found, names: Names, market?: Place): Ask | undefined {
  const { frame, slots, left } = found
  const [missing] = missingOf(frame, slots)
  if (missing) {
    const [first] = left
    const isNone =
      first?.quantity !== undefined && isDecimal(first.quantity.value) && !isAboveZero(first.quantity.value)
    const unknown =
      first === undefined
        ? ''
        : isNone
          ? ' An amount is above zero, such as "fifty dollars".'
          : ` "${first.text}" is unclear.`
    return ask(found, {
      slot: missing.name,
      question: `${missing.question}${missing.name === 'amount' ? unknown : ''}`,
      choices: choicesFor(missing, found, names),
    })
  }
  const isOnChain = (assetNamed(slots.asset, names)?.tokens.length ?? 1) > 0
  const atVenue = isOnChain ? undefined : askMarket(found, names, market)
  const place = frame.place === 'token' ? (askUnlisted(found, names) ?? askChain(found, names)) : undefined
  const open = atVenue ?? askSpot(found, names) ?? place ?? askMarket(found, names, market)
  if (open) return open
  const [number] = left
  if (number && frame.effect !== 'read' && frame.effect !== 'none')
    return ask(found, {
      slot: 'number',
      question: `What does "${number.text}" mean here? Say the order again without it, or with its meaning.`,
    })
  return undefined
}

/** Writes a question with its choices, numbered so that a reply can name one by its number. */
export const questionText = ({ question, choices }: Pick<Ask, 'question' | 'choices'>): string =>
  [question, ...choices.map(({ label }, at) => `${at + 1}. ${label}`)].join('\n')
