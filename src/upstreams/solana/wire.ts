import { Fault } from '#kernel/contract/fault.ts'
import { isRecord } from '#kernel/wire/json.ts'
import type { RpcAnswer } from '#kernel/wire/json-rpc.ts'
import { isAddress } from './base58.ts'

/** Reads what Solana nodes answer. Lamports can exceed a float's exact range, so unsafe numbers are read as text. */

export type TokenBalance = { mint: string; amountUnits: bigint; decimals: number; program: string }

export const broken = (what: string) => new Fault('unavailable', `The Solana node answered with ${what}`)

export const parseExactly = (body: string): unknown =>
  JSON.parse(body, (_key, value, context?: { source?: string }) =>
    typeof value === 'number' && !Number.isSafeInteger(value) && context?.source ? context.source : value,
  )

export function resultOf(answer: RpcAnswer): unknown {
  if ('result' in answer) return answer.result
  throw broken(`an error: ${answer.error.message}`)
}

export const integerOf = (value: unknown): bigint | undefined => {
  const text = typeof value === 'number' ? String(value) : value
  return typeof text === 'string' && /^\d{1,20}$/.test(text) ? BigInt(text) : undefined
}

export const parseUnits = (value: unknown): bigint => {
  const units = integerOf(value)
  if (units === undefined) throw broken('a reply without an amount')
  return units
}

export const parseContext = (result: unknown): { slot: bigint; value: unknown } => {
  if (!isRecord(result) || !isRecord(result.context)) throw broken('a reply without a context')
  return { slot: parseUnits(result.context.slot), value: result.value }
}

/** Returns the list of a reply, which must have as many entries as were requested. */
export function parseList(value: unknown, count: number): unknown[] {
  if (Array.isArray(value) && value.length === count) return value
  throw broken('a list of another length than asked for')
}

export const parseAddress = (value: unknown): string => {
  if (isAddress(value)) return value
  throw broken('a reply without an address')
}

export function balanceOf(result: unknown): { slot: bigint; lamports: bigint } {
  const { slot, value } = parseContext(result)
  return { slot, lamports: parseUnits(value) }
}

/**
 * Reads the accounts of one owner under one token program in `jsonParsed` form; extensions are irrelevant here.
 * An account that the node cannot parse arrives as bytes and is skipped, because anybody can send one to a
 * wallet.
 */
export function tokensOf(result: unknown, program: string): TokenBalance[] {
  const { value } = parseContext(result)
  if (!Array.isArray(value)) throw broken('a reply without a list of token accounts')
  return value.flatMap((item: unknown) => {
    const info = valueAt(item, ['account', 'data', 'parsed', 'info'])
    const amount = valueAt(info, ['tokenAmount'])
    if (!isRecord(info) || !isRecord(amount) || typeof info.mint !== 'string') return []
    const [units, decimals] = [amount.amount, amount.decimals].map(integerOf)
    if (units === undefined || decimals === undefined) return []
    return [{ mint: info.mint, amountUnits: units, decimals: Number(decimals), program }]
  })
}

export const valueAt = (value: unknown, path: readonly string[]): unknown =>
  path.reduce<unknown>((at, key) => (isRecord(at) ? at[key] : undefined), value)

export const slotOf = (result: unknown): bigint => parseUnits(result)

export function slotsOf(result: unknown, limit: number): bigint[] {
  if (Array.isArray(result) && result.length <= limit) return result.map(parseUnits)
  throw broken('no list of blocks')
}

export type Account = { lamports: bigint; owner: string; data: Uint8Array }

const base64Max = 16 * 1024

/** Reads an account in base64; undefined for a missing one, which a simulation shows without lamports. */
export function parseAccount(value: unknown): Account | undefined {
  if (value === null) return undefined
  if (!isRecord(value) || !Array.isArray(value.data)) throw broken('a malformed account')
  const [text, encoding] = value.data
  if (typeof text !== 'string' || encoding !== 'base64' || text.length > base64Max)
    throw broken('an account of another encoding or size')
  const lamports = parseUnits(value.lamports)
  if (lamports === 0n) return undefined
  return { lamports, owner: parseAddress(value.owner), data: Buffer.from(text, 'base64') }
}

/** The chain as one node sees it at one commitment. */
export type ChainHeight = { slot: bigint; height: bigint }

export function chainHeightOf(result: unknown): ChainHeight {
  if (!isRecord(result)) throw broken('no description of the epoch')
  return { slot: parseUnits(result.absoluteSlot), height: parseUnits(result.blockHeight) }
}

export type LatestBlockhash = { blockhash: string; lastValidBlockHeight: bigint; slot: bigint }

export function latestBlockhashOf(result: unknown): LatestBlockhash {
  const { slot, value } = parseContext(result)
  if (!isRecord(value)) throw broken('no blockhash')
  const lastValidBlockHeight = parseUnits(value.lastValidBlockHeight)
  return { blockhash: parseAddress(value.blockhash), lastValidBlockHeight, slot }
}
