import { findAmount } from './amounts.ts'
import { type Asset, dollarSymbol, type Names } from './asset-and-chain-names.ts'
import { assetAt, chainAt, createReader, type Reader, roleOf } from './clause-reader.ts'
import type { Clause } from './clauses.ts'
import { offTopicWords, plainWords } from './english/word-lists.ts'
import { type Feature, list } from './feature-rules.ts'
import { readPrice } from './order-terms.ts'
import { has, type Token } from './tag.ts'
import { isTimed, windowOf } from './times.ts'

/** Computes the features of a clause: the concepts of its words, and kinds of values, which begin with `@`. */

const longSpans = list('~1w ~1mo ~3mo ~1y ~all')
const talk = list('GREET THANKS FILLER POLITE IT')
const bareWords = list('AT FILLER OVERRIDE POLITE QUESTION WANT')

/** Whether a word is no word of the lexicon and no plain one, as the name of a person. */
export const isUnknownName = ({ kind, concepts, asset, chain, words }: Token): boolean =>
  kind === 'word' &&
  concepts.length === 0 &&
  !asset &&
  !chain &&
  !plainWords.has(words) &&
  !offTopicWords.has(words)

const isLongSpan = ({ tokens }: Reader): boolean =>
  tokens.some(({ quantity, concepts }) => {
    if (concepts.some((concept) => longSpans.includes(concept))) return true
    if (quantity?.unit === 'date') return true
    if (quantity?.unit !== 'span') return false
    return quantity.span === 'h'
      ? Number(quantity.value) > 24
      : quantity.span !== 'm' && !(quantity.span === 'd' && quantity.value === '1')
  })

function assetFeatures(assets: readonly Asset[]): Feature[] {
  const traded = assets.filter(({ symbol }) => symbol !== dollarSymbol)
  const found: Feature[] = []
  if (assets.length > 0) found.push('@asset')
  if (assets.length > 1) found.push('@assets')
  if (traded.length === 0) return found
  if (traded.every(({ perp, spot, tokens }) => perp && !spot && tokens.length === 0)) found.push('@perponly')
  if (traded.every(({ perp, spot, tokens }) => spot && !perp && tokens.length === 0)) found.push('@spotonly')
  if (traded.every(({ spot, tokens }) => spot && tokens.length === 0)) found.push('@spotprefer')
  if (traded.some(({ perp }) => perp)) found.push('@perpasset')
  if (traded[0]?.perp) found.push('@perpfirst')
  if (traded.some(({ tokens }) => tokens.length > 0)) found.push('@tokenasset')
  return found
}

function valueFeatures(reader: Reader): Feature[] {
  const found: Feature[] = []
  for (const { kind, quantity, concepts } of reader.tokens) {
    if (kind === 'address') found.push('@address')
    if (kind === 'uuid' || quantity?.unit === 'id') found.push('@id')
    if (quantity?.unit === 'usd') found.push('@usd')
    if (quantity?.unit === 'number') found.push('@number')
    if (quantity?.unit === 'times') found.push('@times')
    if (concepts.some((concept) => concept.startsWith('#'))) found.push('@indicator')
  }
  const amount = findAmount(reader)
  if (amount) found.push('@amount')
  // One of an asset is worth its price.
  if (amount?.kind === 'usd' || (amount?.kind === 'token' && !amount.text.startsWith('1 ')))
    found.push('@worth')
  return found
}

export function featuresOf(clause: Clause, names: Names, nowMs: number): Set<Feature> {
  const reader = createReader(clause.tokens, names, clause.head)
  const positions = [...clause.tokens.keys()]
  const moves = clause.head.some((verb) => verb === 'BRIDGE' || verb === 'MOVE')
  const assets = new Map<string, Asset>()
  for (const at of positions) {
    const asset = assetAt(reader, at)
    if (asset && !(chainAt(reader, at, { moves }) && clause.tokens.length > 1))
      assets.set(asset.symbol, asset)
  }
  const chains = positions.filter((at) => chainAt(reader, at, { moves: true }))
  const found = new Set<Feature>(clause.tokens.flatMap(({ concepts }) => concepts))
  for (const verb of clause.head) {
    found.add(`^${verb}`)
    if (clause.mood === 'suppose') found.add(verb)
  }
  // An order that takes its verb from the order before it has no word for the verb.
  if (clause.isCarried) for (const verb of clause.head) found.add(verb)
  for (const feature of [...assetFeatures([...assets.values()]), ...valueFeatures(reader)]) found.add(feature)
  if (chains.length > 0) found.add('@chain')
  if (chains.length > 1) found.add('@chains')
  if (chains.some((at) => roleOf(reader, at) === 'to')) found.add('@chainto')
  if (isLongSpan(reader)) found.add('@longspan')
  if (windowOf(reader, nowMs) !== undefined) found.add('@window')
  if (isTimed(reader)) found.add('@timed')
  if (clause.isQuestion) found.add('QUESTION')
  if (clause.mood === 'suppose') found.add('@thought')
  if (clause.mood === 'ask') found.add('@asked')
  if (clause.mood === 'do') found.add('@do')
  const words = clause.tokens.filter(({ kind }) => kind !== 'mark')
  if (words.every((token) => token.asset !== undefined || has(token, ...bareWords))) found.add('@bare')
  if (words.every((token) => has(token, ...talk))) found.add('@only-talk')
  if (words.some(({ kind, concepts, asset }) => kind === 'word' && concepts.length === 0 && !asset))
    found.add('@word')
  if (
    words.some((token, at) => isUnknownName(token) && has(words[at - 1], 'TO') && !has(words[at - 1], 'IN'))
  )
    found.add('@stranger')
  const slots = {}
  readPrice(reader, slots)
  if ('price' in slots) found.add('@price')
  return found
}
