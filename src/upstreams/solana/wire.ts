import { Fault } from '#kernel/fault.ts'
import { isRecord } from '#kernel/json.ts'
import type { RpcAnswer } from '#kernel/json-rpc.ts'

/** What Solana nodes answer. Amounts of lamports can exceed a float's range: unsafe numbers are read as text. */

export const tokenPrograms = [
  'TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA',
  'TokenzQdBNbLqP5VEhdkAS6EPFLC1PHnBqCXEpPxuEb',
] as const

export type TokenBalance = { mint: string; amountUnits: bigint; decimals: number; program: string }

const broken = (what: string) => new Fault('unavailable', `The Solana node answered with ${what}`)

/** An unsafe number becomes its source text. */
export const parseExactly = (body: string): unknown =>
  JSON.parse(body, (_key, value, context?: { source?: string }) =>
    typeof value === 'number' && !Number.isSafeInteger(value) && context?.source ? context.source : value,
  )

export function resultOf(answer: RpcAnswer): unknown {
  if ('result' in answer) return answer.result
  throw broken(`an error: ${answer.error.message}`)
}

const integerOf = (value: unknown): bigint | undefined => {
  const text = typeof value === 'number' ? String(value) : value
  return typeof text === 'string' && /^\d{1,20}$/.test(text) ? BigInt(text) : undefined
}

const unitsOf = (value: unknown): bigint => {
  const units = integerOf(value)
  if (units === undefined) throw broken('a reply without an amount')
  return units
}

const contextOf = (result: unknown): { slot: bigint; value: unknown } => {
  if (!isRecord(result) || !isRecord(result.context)) throw broken('a reply without a context')
  return { slot: unitsOf(result.context.slot), value: result.value }
}

export function balanceOf(result: unknown): { slot: bigint; lamports: bigint } {
  const { slot, value } = contextOf(result)
  return { slot, lamports: unitsOf(value) }
}

/**
 * Accounts of one owner under one token program in `jsonParsed` form; extensions are irrelevant here. An account that
 * the node cannot parse arrives as bytes and is skipped: any account can send one to a wallet.
 */
export function tokensOf(result: unknown, program: string): TokenBalance[] {
  const { value } = contextOf(result)
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

const valueAt = (value: unknown, path: readonly string[]): unknown =>
  path.reduce<unknown>((at, key) => (isRecord(at) ? at[key] : undefined), value)

export const slotOf = (result: unknown): bigint => unitsOf(result)
