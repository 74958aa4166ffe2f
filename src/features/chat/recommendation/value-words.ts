import { Fault } from '#kernel/contract/fault.ts'
import { findChain, tokenByRef } from '#kernel/contract/token-ref.ts'
import type { Chain, Token } from '#kernel/money/chains.ts'
import { canonicalDecimal, decimalOfSource, fromUnits, toUnits } from '#kernel/money/money.ts'
import { isRecord, type Json, type JsonObject } from '#kernel/wire/json.ts'

/** This module writes arguments of a call for a person exactly: nothing is rounded, shortened or left out. */

/** Printed names and decimals come from these lists alone, by the rules by which operations read arguments. */
export type Lists = {
  chains: readonly Pick<Chain, 'id' | 'name' | 'displayName' | 'family' | 'native' | 'tokens'>[]
  /** Returns an EVM address with its checksum, and any other text unchanged. */
  spellAddress: (text: string) => string
}
type ListedChain = Lists['chains'][number]

const notListed = 'not on the list of the gateway'
const plainWord = /^[A-Za-z0-9.:/@_+-]{1,100}$/
const unprintable = /[^\x20-\x7e]/g
const units = /^(0|[1-9][0-9]{0,77})$/

/** Puts the words of others in quotation marks, without characters that could steer or imitate the rest of the text. */
export function spelled(value: Json): string {
  if (typeof value === 'string' && plainWord.test(value)) return value
  if (value === null) return 'not set'
  return JSON.stringify(value).replace(
    unprintable,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}

const grouped = (decimal: string): string => {
  const [whole = '', fraction] = decimal.split('.')
  const groups = whole.replace(/\B(?=(\d{3})+(?!\d))/g, ',')
  return fraction === undefined ? groups : `${groups}.${fraction}`
}

const decimalOf = (value: Json): string | undefined =>
  typeof value === 'number'
    ? decimalOfSource(String(value))
    : typeof value === 'string'
      ? canonicalDecimal(value)
      : undefined

export function numberText(value: Json): string {
  const decimal = decimalOf(value)
  return decimal === undefined ? spelled(value) : grouped(decimal)
}
export const usdText = (value: Json): string => `${numberText(value)} USD`

/** `shift` is how many places the point moves to the right: 2 for a fraction, -2 for hundredths of a percent. */
function percentText(value: Json, shift: 2 | -2): string {
  const decimal = decimalOf(value)
  if (decimal === undefined) return spelled(value)
  const text = shift === 2 ? fromUnits(toUnits(decimal, 18), 16) : fromUnits(toUnits(decimal, 18), 20)
  return `${text} %`
}
export const fractionText = (value: Json): string => percentText(value, 2)
export const bpsText = (value: Json): string => percentText(value, -2)

export type ChainWords = { chain: ListedChain | undefined; text: string }

export function chainWords(ref: Json, { chains }: Lists): ChainWords {
  const isRef = typeof ref === 'string' || typeof ref === 'number'
  const chain = isRef ? findChain(chains, ref) : undefined
  return { chain, text: chain?.displayName ?? `chain ${spelled(ref)} (${notListed})` }
}

/** The words for a token: `text` has the address; `name` is the symbol of a listed token, or the address. */
export type TokenWords = { token: Token | undefined; name: string; text: string }

export function tokenWords(ref: Json, chain: ListedChain | undefined, { spellAddress }: Lists): TokenWords {
  const found = chain && typeof ref === 'string' ? findToken(chain, ref) : undefined
  if (found && 'token' in found) {
    const { token, isNative } = found
    const { symbol, address } = token
    return { token, name: symbol, text: `${symbol} (${isNative ? 'the native coin' : address})` }
  }
  const name = typeof ref === 'string' ? spelled(spellAddress(ref.trim())) : spelled(ref)
  return { token: undefined, name, text: `${name} (${notListed})` }
}

/** Finds a listed token; undefined for a symbol that none or several have, which the operation refuses. */
function findToken(chain: ListedChain, ref: string) {
  try {
    return tokenByRef(chain, ref, 'token')
  } catch (error) {
    if (error instanceof Fault) return undefined
    throw error
  }
}

/** An amount in smallest units, or in dollars; a token that is not listed has no known decimals. */
export type Amount = { units?: Json | undefined; usd?: Json | undefined }

export function amountText({ units: amount, usd }: Amount, token: Token | undefined): string | undefined {
  if (amount !== undefined) {
    const text = String(amount)
    if (!units.test(text)) return `${spelled(amount)} smallest units of`
    return token
      ? grouped(fromUnits(BigInt(text), token.decimals))
      : `${grouped(text)} smallest ${text === '1' ? 'unit' : 'units'} of`
  }
  return usd === undefined ? undefined : `${usdText(usd)} of`
}

type LegType = 'Stop-loss' | 'Take-profit'

export const legLines = (type: LegType, value: Json): string =>
  (Array.isArray(value) ? value : [value]).map((leg) => `${type}: ${legText(type, leg)}`).join('\n')

function legText(type: LegType, leg: Json): string {
  if (!isRecord(leg)) return spelled(leg)
  const { price_percentage, price_usd, sell_percentage, ...others } = leg as JsonObject
  const side = type === 'Stop-loss' ? 'below' : 'above'
  const prices = [
    ...(price_percentage === undefined
      ? []
      : [`${fractionText(price_percentage)} ${side} the reference price`]),
    ...(price_usd === undefined ? [] : [usdText(price_usd)]),
    ...Object.entries(others).map(([name, each]) => `${spelled(name)} ${spelled(each)}`),
  ]
  const sold = sell_percentage === undefined ? 'all of it' : `${fractionText(sell_percentage)} of it`
  return `sells ${sold} at ${prices.join(', ')}`
}
